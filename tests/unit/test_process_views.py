"""Steps laid over tokens, first steps made up, and the outcome beside them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import build_scenario, evaluate, group_advantages
from grpo_core.process_views import (
    against_outcome,
    has_steps,
    judged_by_steps,
    token_step_rewards,
    token_steps,
)
from tests.property import drawn
from tests.unit.stepped import stepped

NAN = np.nan


def plain(rewards=((1.0, 0.0),), L=4, **arrays):
    return build_scenario(
        rewards=rewards, logp_new=np.full((*np.shape(rewards), L), -1.0), **arrays
    )


class TestTokenSteps:
    def test_a_token_belongs_to_the_first_step_that_ends_at_or_after_it(self):
        # Ends 1 and 3 of five tokens: two tokens each, the last one belongs to none.
        scenario = stepped([[1.0, 0.5], []], [[1, 3], []], lengths=[5, 5])
        assert token_steps(scenario)[0].tolist() == [[0, 0, 1, 1, -1], [-1] * 5]
        assert_array_equal(token_step_rewards(scenario)[0], [[1, 1, 0.5, 0.5, NAN], [NAN] * 5])

    def test_of_two_steps_with_one_end_it_is_the_first(self):
        scenario = stepped([[1.0, 0.25, 0.5]], [[1, 1, 2]])
        assert token_steps(scenario)[0].tolist() == [[0, 0, 2]]

    def test_a_gap_in_the_arrays_keeps_the_steps_own_numbers(self):
        scenario = plain(step_ends=[[[NAN, 1], [2, NAN]]], step_rewards=[[[NAN, 1], [0, NAN]]])
        assert token_steps(scenario)[0].tolist() == [[1, 1, -1, -1], [0, 0, 0, -1]]

    def test_padding_and_absent_completions_have_none(self):
        scenario = stepped([[1.0], [1.0]], [[0], [3]], lengths=[1, 4], present=[[1, 0]])
        assert token_steps(scenario)[0].tolist() == [[0, -1, -1, -1], [-1] * 4]

    def test_without_step_arrays_there_are_none(self):
        assert not has_steps(plain())
        assert not has_steps(plain(step_ends=np.full((1, 2, 1), NAN), step_rewards=[[[NAN]] * 2]))
        assert (token_steps(plain()) == -1).all()
        assert np.isnan(token_step_rewards(plain())).all()


class TestJudgedBySteps:
    def test_what_is_judged_by_steps_stays_as_it_is(self):
        scenario = stepped([[1, 0], [0, 1]])
        assert judged_by_steps(scenario) is scenario

    def test_steps_are_made_up_where_there_are_none(self):
        # Seven tokens in three parts: 7/3 and 14/3 are complete with tokens 2 and 4 (counted from
        # 0). Two tokens are two parts, the last one worth the reward.
        mask = np.arange(7) < np.array([7, 2])[:, None]
        made = judged_by_steps(plain([[1.0, 0.25]], 7, mask=[mask]))
        assert_array_equal(made["step_ends"], [[[2, 4, 6], [0, 1, NAN]]])
        assert_array_equal(made["step_rewards"], [[[1, 1, 1], [1, 0.25, NAN]]])
        assert made.conventions["advantage"].variant == "process"

    def test_made_up_steps_follow_the_mask_wherever_it_is(self):
        made = judged_by_steps(plain([[1.0]], 5, mask=[[[0, 1, 0, 1, 1]]]))
        assert_array_equal(made["step_ends"], [[[1, 3, 4]]])

    def test_without_a_score_or_a_token_there_is_little_to_make_up(self):
        made = judged_by_steps(plain([[NAN, 1.0]], 2, mask=[[[1, 1], [0, 0]]]))
        assert_array_equal(made["step_ends"], [[[0, 1], [NAN, NAN]]])
        assert_array_equal(made["step_rewards"], [[[1, 0], [NAN, NAN]]])

    def test_the_standard_deviation_and_eps_go_along(self):
        given_ = plain().choose("advantage", "mean_std", ddof=1, eps=0.5)
        options = judged_by_steps(given_).conventions["advantage"].options
        assert (options["ddof"], options["eps"]) == (1, 0.5)
        without = judged_by_steps(plain().choose("advantage", "mean_only"))
        assert without.conventions["advantage"].options["ddof"] == 0

    def test_steps_that_are_there_are_kept_whatever_judges(self):
        scenario = stepped([[1, 0], [0, 1]])
        other = scenario.choose("advantage", "mean_std")
        assert_array_equal(judged_by_steps(other)["step_ends"], scenario["step_ends"])

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_the_made_up_steps_of_any_kind_of_numbers_evaluate(self, kind):
        made = judged_by_steps(build_scenario(rewards=np.array([[1, 0, 0.5]], dtype=kind)))
        assert np.isfinite(evaluate(made).token_advantages).all()


class TestAgainstOutcome:
    def test_the_outcome_alone_by_hand(self):
        # Outcome 1 and 0: advantages 1 and -1 on all three tokens. Steps 1 0 1 and 0 0: 1.633,
        # 0.408, 1.225 and -1.633, -0.816, then 0 after the last step.
        scenario = stepped([[1, 0, 1], [0, 0]], lengths=[3, 3], outcome=[1, 0])
        compared = against_outcome(evaluate(scenario))
        assert_array_equal(compared.outcome.token_advantages[0], [[1] * 3, [-1] * 3])
        expected = [[0.633, -0.592, 0.225], [-0.633, 0.184, 1]]
        assert_allclose(compared.difference.token_advantages[0], expected, atol=5e-4)
        assert_allclose(compared.process.token_advantages[0, 0], [1.633, 0.408, 1.225], atol=5e-4)
        assert not compared.changes.flipped.any()
        assert np.argwhere(compared.changes.lost).tolist() == [[0, 1, 2]]

    @pytest.mark.parametrize("ddof", [0, 1])
    def test_the_outcome_uses_the_same_standard_deviation_and_eps(self, ddof):
        scenario = stepped([[1, 0], [0, 1], [1, 1]], outcome=[1, 0, 0.5],
                           options={"ddof": ddof, "eps": 0.25})  # fmt: skip
        outcome = against_outcome(evaluate(scenario)).outcome
        scale = np.std([1, 0, 0.5], ddof=ddof) + 0.25
        assert_allclose(outcome.advantages, [np.array([0.5, -0.5, 0]) / scale], rtol=1e-12)

    def test_one_step_each_worth_the_reward_is_the_outcome(self):
        scenario = stepped([[1.0], [0.0], [0.5]], outcome=[1, 0, 0.5])
        assert against_outcome(evaluate(scenario)).changes.where is None
        assert_allclose(evaluate(scenario).advantages, group_advantages([[1, 0, 0.5]], eps=0))


@st.composite
def scenarios(draw):
    P, G, L = draw(st.tuples(*[st.integers(1, 3)] * 3))
    flags = st.lists(st.booleans(), min_size=P * G * L, max_size=P * G * L)
    mask = np.array(draw(flags)).reshape(P, G, L)
    present = np.array(draw(flags))[: P * G].reshape(P, G)
    ends, rewards = draw(drawn.steps(mask, present, st.sampled_from([-1.0, 0.0, 0.5, 1.0])))
    return judged_by_steps(
        build_scenario(
            rewards=np.arange(P * G).reshape(P, G) % 2.0, logp_new=np.full((P, G, L), -1.0),
            mask=mask, present=present, step_ends=ends, step_rewards=rewards,
        )
    )  # fmt: skip


@given(scenarios())
def test_a_token_has_a_step_if_and_only_if_one_ends_at_or_after_it(scenario):
    steps, ends = token_steps(scenario), scenario["step_ends"]
    for p, g, t in np.argwhere(scenario.valid).tolist():
        after = [s for s, end in enumerate(ends[p, g]) if end >= t]
        assert steps[p, g, t] == (after[0] if after else -1)
    assert (steps[~scenario.valid] == -1).all()


@given(scenarios())
def test_tokens_without_a_step_get_nothing_and_differences_add_up(scenario):
    evaluation = evaluate(scenario)
    compared = against_outcome(evaluation)
    assert not evaluation.token_advantages[token_steps(scenario) == -1].any()
    again = compared.outcome.token_advantages + compared.difference.token_advantages
    assert_allclose(np.where(evaluation.valid, again, 0), evaluation.token_advantages, atol=1e-12)


@given(st.integers(1, 9), st.lists(st.booleans(), min_size=9, max_size=9))
def test_made_up_steps_are_fit_and_end_with_the_last_token_that_counts(L, flags):
    mask = np.array(flags[:L])
    made = judged_by_steps(plain([[0.5]], L, mask=[[mask]]))
    ends = made["step_ends"][0, 0]
    ends = ends[~np.isnan(ends)]
    assert len(ends) == min(mask.sum(), 3)
    assert (np.diff(ends) > 0).all()
    if len(ends):
        assert ends[-1] == np.flatnonzero(mask)[-1]
