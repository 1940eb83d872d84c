"""Steps of a scenario: every error names the completion and the step."""

import numpy as np
import pytest

from grpo_core import ScenarioError, build_scenario, resize

NAN, INF = np.nan, np.inf


def steps(ends, rewards, mask=((1, 1, 1, 1), (1, 1, 1, 0)), **more):
    """Two completions of four tokens, the last of the second masked."""
    given = {"step_ends": ends, "step_rewards": rewards}
    arrays = {key: [value] for key, value in given.items() if value is not None}
    return build_scenario(rewards=[[1, 0]], mask=[mask], **arrays, **more)


@pytest.mark.parametrize(
    ("ends", "rewards", "message", "field", "where"),
    [
        (
            [[0, 4], [0, NAN]],
            [[1, 1], [1, NAN]],
            "step_ends at prompt 0, completion 0, step 1 is 4; wanted a token position from 0 to 3",
            "step_ends",
            (0, 0, 1),
        ),
        (
            [[0], [3]],
            [[1], [1]],
            "step_ends at prompt 0, completion 1, step 0 is 3; wanted a token that counts; "
            "this one is masked",
            "step_ends",
            (0, 1, 0),
        ),
        (
            [[0, 2, 1], [0, 0, 0]],
            [[1, 1, 1], [1, 1, 1]],
            "step_ends at prompt 0, completion 0, step 2 is 1; "
            "wanted steps in the order of their tokens",
            "step_ends",
            (0, 0, 2),
        ),
        (  # the gap does not hide that 1 comes after 2
            [[2, NAN, 1], [0, NAN, NAN]],
            [[1, NAN, 1], [1, NAN, NAN]],
            "step_ends at prompt 0, completion 0, step 2 is 1; "
            "wanted steps in the order of their tokens",
            "step_ends",
            (0, 0, 2),
        ),
        (
            [[0, 1], [0, 2]],
            [[1, 1], [1, NAN]],
            "step_rewards at prompt 0, completion 1, step 1 is missing; "
            "wanted a finite reward for every step",
            "step_rewards",
            (0, 1, 1),
        ),
        (
            [[0, NAN], [0, 2]],
            [[1, 1], [1, 1]],
            "step_ends at prompt 0, completion 0, step 1 is missing; "
            "wanted an end for every step reward",
            "step_ends",
            (0, 0, 1),
        ),
        (
            [[0], [0]],
            [[1], [INF]],
            "step_rewards at prompt 0, completion 1, step 0 is inf; "
            "wanted a finite number, or blank where there is no step",
            "step_rewards",
            (0, 1, 0),
        ),
        *(
            (
                [[0], [bad]],
                [[1], [1]],
                f"step_ends at prompt 0, completion 1, step 0 is {float(bad)}; wanted a token "
                "position: a whole number of at least 0, or blank for no step",
                "step_ends",
                (0, 1, 0),
            )
            for bad in (-1, 0.5, INF)
        ),
        ([[0], [0]], None, "step_rewards is missing; step_ends needs it", "step_rewards", ()),
        (None, [[0], [0]], "step_ends is missing; step_rewards needs it", "step_ends", ()),
        (
            [[0], [0]],
            [[1, 1], [1, 1]],
            "step_rewards has 2 steps; expected 1 like step_ends",
            "step_rewards",
            (),
        ),
        ([[], []], [[], []], "step_ends has 0 steps; wanted 1 to 256", "step_ends", ()),
        (
            [[0] * 257, [0] * 257],
            [[0] * 257, [0] * 257],
            "step_ends has 257 steps; wanted 1 to 256",
            "step_ends",
            (),
        ),
        (
            [[0, 1], [0]],
            [[0, 1], [0, 1]],
            "step_ends: prompt 0, completion 1 has 1 values; expected 2 like the first row",
            "step_ends",
            (0, 1),
        ),
        (
            [["x"], [0]],
            [[0], [0]],
            "step_ends at prompt 0, completion 0, step 0 is 'x'; wanted a token position: "
            "a whole number of at least 0, or blank for no step",
            "step_ends",
            (0, 0, 0),
        ),
    ],
)
def test_steps_that_do_not_fit_are_named(ends, rewards, message, field, where):
    with pytest.raises(ScenarioError) as caught:
        steps(ends, rewards)
    assert str(caught.value) == message
    assert (caught.value.field, caught.value.where) == (field, where)


def test_the_first_token_that_counts_need_not_be_the_first():
    with pytest.raises(ScenarioError, match="completion 0, step 0 is 1; wanted a token that"):
        steps([[1, 3], [0, 0]], [[1, 1], [1, 1]], mask=((0, 0, 1, 1), (1, 1, 1, 1)))


@pytest.mark.parametrize(
    "ends",
    [
        [[NAN, NAN], [NAN, NAN]],  # no step anywhere
        [[3, NAN], [NAN, 2]],  # one each, with a gap before it
        [[1, 1], [0, 2]],  # two at one token
    ],
)
def test_ragged_steps_are_taken(ends):
    scenario = steps(ends, np.where(np.isnan(ends), NAN, 1.0))
    np.testing.assert_array_equal(scenario["step_ends"][0], ends)


def test_what_stands_at_an_absent_completion_is_never_read():
    garbage = [[0, 1], [-3, INF]], [[1, 1], [NAN, -INF]]
    scenario = steps(*garbage, present=[[1, 0]])
    assert scenario["step_ends"][0, 1].tolist() == [-3, INF]


def test_none_is_no_step():
    assert np.isnan(steps([[0, None], [0, 1]], [[1, None], [1, 1]])["step_ends"][0, 0, 1])


def test_cutting_positions_takes_the_steps_that_end_there_along():
    scenario = steps([[0, 3], [2, 2]], [[1, 5], [6, 7]])
    cut = resize(scenario, L=3)
    np.testing.assert_array_equal(cut["step_ends"], [[[0, NAN], [2, 2]]])
    np.testing.assert_array_equal(cut["step_rewards"], [[[1, NAN], [6, 7]]])
    np.testing.assert_array_equal(resize(cut, L=1)["step_ends"], [[[0, NAN], [NAN, NAN]]])


def test_a_completion_that_is_added_has_no_steps():
    grown = resize(steps([[0], [1]], [[1], [2]]), P=2, G=3, L=6)
    assert np.isnan(grown["step_ends"][0, 2]).all()
    assert np.isnan(grown["step_rewards"][1]).all()
    assert grown["step_ends"][0, :2].tolist() == [[0], [1]]
