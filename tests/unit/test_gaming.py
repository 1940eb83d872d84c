"""What tricks on steps bring: worked by hand, by the closed forms, and refused with a sentence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core import Texts, evaluate
from grpo_core.gaming import credited, normalised_steps, present_steps, standing, try_edits
from grpo_core.step_edits import EDITS
from tests.step_pools import pool_with_step
from tests.unit.stepped import stepped

NAN = np.nan


def tried(scenario, where):
    return {trial.edit.key: trial for trial in try_edits(scenario, where)}


def two():
    """Steps 1 0 1 and 0 0, a token each, in answers of three tokens."""
    return stepped([[1, 0, 1], [0, 0]], lengths=[3, 3])


def test_what_steps_give_before_any_trick():
    # Pool 1 0 1 0 0: mean 0.4, std 0.4899, so a 1 is worth 1.225 and a 0 -0.8165.
    # First tokens: 2 x 1.225 - 0.8165 = 1.633 and -1.633.
    # Over all tokens: 1.225 + 2 x (-0.8165) + 3 x 1.225 = 3.266, and (1 + 2) x (-0.8165) = -2.449.
    first, masses = credited(two())
    assert first[0] == pytest.approx([1.633, -1.633], abs=5e-4)
    assert masses[0] == pytest.approx([3.266, -2.449], abs=5e-4)
    assert standing(two(), (0, 1)) == (first[0, 1], masses[0, 1])


# A trick on one step, and what it makes of the first token and of all tokens.
#   A copy of the first 1: pool 1 1 0 1 0 0, mean and std 1/2, z 1 and -1. First 1+1-1+1 = 2; the
#     copies both end at token 0: 1 + 1 - 2 + 3 = 3.
#   A copy of the 0: mean 1/3, std 0.4714, z 1.414 and -0.7071. First 2 x 1.414 - 2 x 0.7071 =
#     1.414; 1.414 - 2 x 2 x 0.7071 + 3 x 1.414 = 2.828.
#   The first 1 in halves: mean 1/3, std 0.3727. 1/2 is worth 0.4472, 1 1.789, 0 -0.8944.
#     First 2 x 0.4472 - 0.8944 + 1.789 = 1.789; 2 x 0.4472 - 2 x 0.8944 + 3 x 1.789 = 4.472.
#   A pass behind 0 0: mean and std 1/2; first -1 - 1 + 1 = -1; -1 - 2 + 3 = 0.
#   0 1 1 in place of 1 0 1: the first token stays; -0.8165 + 2 x 1.225 + 3 x 1.225 = 5.307.
#   1 and 0 merged: pool 0.5 1 0 0, mean 3/8, std 0.4146, z 0.3015, 1.508; first 1.809; they end
#     at tokens 1 and 2: 2 x 0.3015 + 3 x 1.508 = 5.126.
#   The 0 dropped: pool 1 1 0 0, mean and std 1/2; first 2, and 1 + 3 = 4.
BY_HAND = {
    "a right step copied": ("split_copy", (0, 0, 0), 2, 3),
    "a wrong step copied": ("split_copy", (0, 0, 1), 1.414, 2.828),
    "a right step in halves": ("split_halves", (0, 0, 0), 1.789, 4.472),
    "a pass appended": ("append_pass", (0, 1, 0), -1, 0),
    "two steps swapped": ("swap", (0, 0, 0), 1.633, 5.307),
    "two steps merged": ("merge", (0, 0, 0), 1.809, 5.126),
    "a wrong step dropped": ("drop", (0, 0, 1), 2, 4),
}


@pytest.mark.parametrize(("key", "where", "first", "whole"), BY_HAND.values(), ids=BY_HAND)
def test_a_trick_by_hand(key, where, first, whole):
    trial = tried(two(), where)[key]
    assert (trial.first, trial.mass) == pytest.approx((first, whole), abs=6e-4)


@pytest.mark.parametrize(("key", "where"), [row[:2] for row in BY_HAND.values()], ids=BY_HAND)
def test_what_a_trial_promises_is_what_the_edited_scenario_evaluates_to(key, where):
    trial = tried(two(), where)[key]
    p, g = where[:2]
    tokens = evaluate(trial.scenario).token_advantages[p, g]
    assert trial.first == pytest.approx(tokens[0], abs=1e-12)
    assert trial.mass == pytest.approx(tokens.sum(), abs=1e-12)


def test_a_trick_changes_no_token_and_nothing_but_the_steps():
    for trial in try_edits(two(), (0, 0, 0)):
        for key in two().arrays:
            if key not in ("step_ends", "step_rewards"):
                assert np.array_equal(trial.scenario[key], two()[key], equal_nan=True)
        assert trial.scenario.conventions == two().conventions


# Of a completion that repeats one step beside others of 0.2 0.2 0.9 0.9 and 0.4 0.4.
@pytest.mark.parametrize(
    ("step", "others", "firsts"),
    [
        (0.6, [[0.2, 0.2, 0.9, 0.9], [0.4, 0.4]], [0.312, 0.580, 1.029, 1.723, 2.726]),
        (0.2, [[0.6, 0.6, 0.9, 0.9], [0.4, 0.4]], [-1.53, -2.51, -3.92, -5.87, -8.56]),
    ],
)
def test_repeating_a_step_pays_if_it_is_better_than_the_mean_and_costs_if_worse(
    step, others, firsts
):
    for n, expected in zip((1, 2, 4, 8, 16), firsts, strict=True):
        first, masses = credited(stepped([[step] * n, *others]))
        assert first[0, 0] == pytest.approx(expected, abs=5e-3)
        # n equal steps z: first token n z, all tokens z n (n + 1) / 2.
        assert masses[0, 0] == pytest.approx(first[0, 0] * (n + 1) / 2)


# A wrong answer 0 0 with passed steps behind it, beside a right one 1 1: first token and all tokens
# of both.
PADDED = {
    0: (-2, 2, -3, 3),
    1: (-1.633, 1.633, -1.225, 2.449),
    2: (-1.414, 1.414, 0.707, 2.121),
    3: (-1.265, 1.265, 2.846, 1.897),
    4: (-1.155, 1.155, 5.196, 1.732),
    8: (-0.894, 0.894, 16.55, 1.342),
}


@pytest.mark.parametrize("pads", PADDED)
def test_padding_a_wrong_answer_turns_what_its_tokens_get_together(pads):
    first, masses = credited(stepped([[0, 0] + [1] * pads, [1, 1]]))
    own, other, whole, rival = PADDED[pads]
    assert first[0] == pytest.approx([own, other], abs=5e-4)
    assert masses[0] == pytest.approx([whole, rival], abs=5e-3)


rewards_of_steps = st.lists(
    st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=4),
    min_size=2, max_size=4,
)  # fmt: skip


@given(rewards_of_steps, st.sampled_from([0, 1]))
def test_a_copy_and_an_easy_step_bring_what_the_closed_form_says(rewards, ddof):
    scenario = stepped(rewards, options={"ddof": ddof, "eps": 1e-8})
    _, values = present_steps(scenario)
    for key, added in (("split_copy", values[0, 0, 0]), ("append_pass", 1.0)):
        trial = tried(scenario, (0, 0, 0))[key]
        pool = pool_with_step(values, (0, 0), added, ddof=ddof)
        assert trial.first == pytest.approx(pool.first[0], abs=1e-9)


@given(rewards_of_steps)
def test_before_the_division_an_easy_step_never_costs_where_1_is_the_most(rewards):
    scenario = stepped(rewards)
    trial = tried(scenario, (0, 0, 0))["append_pass"]
    deviations = []
    for one in (scenario, trial.scenario):
        pool = one["step_rewards"][0]
        deviations.append(np.nansum(pool[0] - np.nanmean(pool)))
    assert deviations[1] >= deviations[0] - 1e-12


@given(rewards_of_steps)
def test_first_tokens_add_up_to_0(rewards):
    first, _ = credited(stepped(rewards))
    assert first.sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("over", ["group", "completion"])
def test_a_sum_that_is_only_rounding_is_0(over):
    # Among its own three steps the rewards of a completion cancel in exact arithmetic.
    scenario = stepped([[0.1, 0.2, 0.6], [0.7, 0.1, 0.4]], options={"over": over})
    first, _ = credited(scenario)
    assert (first[0] == 0).all() == (over == "completion")


def test_a_step_that_is_not_chosen_leaves_only_the_easy_step():
    trials = tried(two(), (0, 1, -1))
    assert [key for key, trial in trials.items() if trial.scenario is not None] == ["append_pass"]
    assert "steps to choose from; choose one of 0, 1" in trials["drop"].refusal
    assert np.isnan(trials["drop"].first)


def test_the_last_step_has_none_to_swap_or_merge_with():
    trials = tried(two(), (0, 0, 2))
    refused = {key for key, trial in trials.items() if trial.scenario is None}
    assert refused == {"swap", "merge"}
    assert "step 2 is the last one; choose a step that has one after it" in trials["swap"].refusal


REFUSED = {
    "absent": (stepped([[1, 0], [0, 1]], present=[[1, 0]]), "no token that counts"),
    "masked": (stepped([[1, 0], []], lengths=[2, 0]), "no token that counts"),
}


@pytest.mark.parametrize(("scenario", "words"), REFUSED.values(), ids=REFUSED)
def test_a_completion_without_tokens_can_do_nothing(scenario, words):
    trials = tried(scenario, (0, 1, -1))
    assert all(trial.scenario is None for trial in trials.values())
    assert words in trials["append_pass"].refusal
    assert standing(scenario, (0, 1)) == (0, 0)


def test_steps_of_an_absent_completion_are_not_pooled():
    scenario = stepped([[1, 0], [9, 9]], present=[[1, 0]])
    steps, _ = normalised_steps(scenario)
    assert steps.tolist() == [[[1, -1], [0, 0]]]
    assert np.isnan(present_steps(scenario)[1][0, 1]).all()


def test_more_steps_than_there_may_be_are_refused_and_the_rest_still_works():
    full = stepped([[1.0, 0.0] * 128, [1.0]], ends=[[0] * 256, [0]])
    trials = tried(full, (0, 0, 0))
    for key in ("split_copy", "split_halves", "append_pass"):
        assert "257 steps; wanted 1 to 256" in trials[key].refusal
    assert trials["drop"].scenario is not None


def test_a_merge_beyond_the_largest_number_is_refused_and_warns_of_nothing():
    top = np.finfo(float).max
    trials = tried(stepped([[top, top], [0.0]]), (0, 0, 0))
    assert "finite" in trials["merge"].refusal
    assert trials["append_pass"].scenario is not None


def test_every_edit_is_tried_in_the_order_of_the_table_and_texts_are_kept():
    texts = Texts(("p",), ((("a", "b", "c"), ("d", "e", "f")),))
    trials = try_edits(two().with_texts(texts), (0, 0, 0))
    assert [trial.edit.key for trial in trials] == list(EDITS)
    assert all(trial.scenario.texts == texts for trial in trials)
