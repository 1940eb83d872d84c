"""Stage rewards: missing scores, and the KL penalty that may stand in a reward."""

import numpy as np
import pytest

from grpo_core import STAGES, Conventions, Term, build_scenario, evaluate

NAN, INF = np.nan, np.inf


def scores(rewards, **more):
    evaluation = evaluate(build_scenario(rewards=rewards, **more))
    return evaluation.scores.tolist(), evaluation.scored.tolist()


def test_missing_reward_is_left_out():
    assert scores([[1.0, NAN, 0.0]]) == ([[1, 0, 0]], [[True, False, True]])


def test_missing_reward_may_count_as_zero():
    conventions = Conventions.of(rewards=("outcome", {"missing": "as_zero"}))
    assert scores([[1.0, NAN, 0.0]], conventions=conventions) == ([[1, 0, 0]], [[True] * 3])


def test_absent_completion_has_no_score_under_either_convention():
    for missing in ("leave_out", "as_zero"):
        conventions = Conventions.of(rewards=("outcome", {"missing": missing}))
        _, scored = scores([[1.0, NAN, 3.0]], present=[[1, 0, 0]], conventions=conventions)
        assert scored == [[True, False, False]]


def test_kl_in_the_reward_is_summed_over_valid_tokens_and_subtracted():
    # k1 per token = logp_old - logp_ref: 1.0 and 0.5 for the first, 2.0 for the second (its other
    # token is masked). With beta 0.1: 1 - 0.15 = 0.85 and 0 - 0.2 = -0.2.
    evaluation = evaluate(
        build_scenario(
            rewards=[[1.0, 0.0]],
            logp_new=[[[-7.0, -8.0], [-9.0, NAN]]],
            logp_old=[[[-1.0, -1.0], [-1.0, NAN]]],
            logp_ref=[[[-2.0, -1.5], [-3.0, INF]]],
            mask=[[[1, 1], [1, 0]]],
            conventions=Conventions.of(kl=("k1", {"beta": 0.1, "place": "reward"})),
        )
    )
    np.testing.assert_allclose(evaluation.scores, [[0.85, -0.2]], rtol=1e-15)
    np.testing.assert_allclose(evaluation.mean, [0.325], rtol=1e-15)
    assert not evaluation.kl_penalty.any()
    assert not evaluation.kl_gradient.any()


def test_penalty_breaks_a_tie():
    conventions = Conventions.of(kl=("k3", {"beta": 0.1, "place": "reward"}))
    arrays = {"rewards": [[1.0, 1.0]], "logp_new": [[[-1.0], [-1.0]]]}
    same = evaluate(build_scenario(**arrays, conventions=conventions))
    moved = evaluate(build_scenario(**arrays, logp_ref=[[[-1.0], [-2.0]]], conventions=conventions))
    assert same.tied.tolist() == [True]
    assert same.advantages.tolist() == [[0, 0]]
    assert moved.tied.tolist() == [False]
    np.testing.assert_allclose(moved.advantages, [[1, -1]], rtol=1e-6)


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_infinite_penalty_gives_the_limit_of_the_advantage(estimator):
    # One of three scores goes to -inf: (r - mean)/std -> -2/sqrt(2) for it, 1/sqrt(2) for the rest.
    sign = -1 if estimator == "k3" else 1  # k3 is infinite for logp_ref above, the others below
    ref = [[[-1.0], [-1.0], [-INF]]]
    old = [[[-1.0], [-1.0], [-1.0]]]
    if sign < 0:
        ref, old = old, ref
    evaluation = evaluate(
        build_scenario(
            rewards=[[1.0, 0.0, 5.0]],
            logp_old=old,
            logp_ref=ref,
            conventions=Conventions.of(kl=(estimator, {"place": "reward"})),
        )
    )
    assert evaluation.scores[0, 2] == evaluation.mean[0] == -INF
    assert evaluation.std[0] == INF
    root = np.sqrt(0.5)
    np.testing.assert_allclose(evaluation.advantages, [[root, root, -2 * root]], rtol=1e-15)


def test_infinite_penalties_of_both_signs_count_against_the_completion():
    evaluation = evaluate(
        build_scenario(
            rewards=[[1.0, 0.0]],
            logp_old=[[[-1.0, -INF], [-1.0, -1.0]]],
            logp_ref=[[[-INF, -1.0], [-1.0, -1.0]]],
            conventions=Conventions.of(kl=("k1", {"place": "reward"})),
        )
    )
    assert evaluation.scores.tolist() == [[-INF, 0]]


def test_penalty_beyond_float32_is_infinite_without_a_warning():
    single = np.float32
    evaluation = evaluate(
        build_scenario(
            rewards=single([[1, 0]]),
            logp_new=single([[[-1, -1], [-1, -1]]]),
            logp_ref=single([[[-3e38, -3e38], [-1, -1]]]),
            conventions=Conventions.of(kl=("k1", {"beta": 1.0, "place": "reward"})),
        )
    )
    assert evaluation.scores.tolist() == [[-INF, 0]]
    assert evaluation.scores.dtype == single


COMBINING = [key for key in STAGES["rewards"].variants if key != "outcome"]


def combined(rewards, column, combine, **options):
    """Two components of weight 1 without eps; a blank is None."""
    return evaluate(
        build_scenario(
            rewards=[rewards],
            term_values=[[[value] for value in column]],
            terms=[Term("term")],
            conventions=Conventions.of(
                rewards=(combine, options), advantage=("mean_std", {"eps": 0})
            ),
        )
    )


@pytest.mark.parametrize("combine", COMBINING)
@pytest.mark.parametrize("missing", ["leave_out", "as_zero"])
def test_a_missing_component_adds_nothing_to_a_sum(combine, missing):
    computed = combined([1, 0, None], [None, 1, 3], combine, missing=missing)
    assert computed.scores.tolist() == [[1, 1, 3]]
    assert computed.scored.all()


@pytest.mark.parametrize("combine", COMBINING)
def test_a_completion_without_any_component_is_scored_as_zero_only(combine):
    for missing, scored in (("leave_out", False), ("as_zero", True)):
        computed = combined([1, None], [2, None], combine, missing=missing)
        assert computed.scores.tolist() == [[3, 0]]
        assert computed.scored.tolist() == [[True, scored]]


ROOT = 0.5**0.5


@pytest.mark.parametrize(
    ("rewards", "column", "combine", "missing", "expected"),
    [
        # Sums 1 1 1 0 whatever a blank counts: mean 3/4, std sqrt(3)/4.
        *(
            (
                [1, 0, 1, 0],
                [None, 1, 0, None],
                "sum_then_normalize",
                missing,
                [3**-0.5, 3**-0.5, 3**-0.5, -(3**0.5)],
            )
            for missing in ("leave_out", "as_zero")
        ),
        # Where all is blank: left out of 1 1, or 0 beside them, mean 2/3 and std sqrt(2)/3.
        ([1, 0, None], [None, 1, None], "sum_then_normalize", "leave_out", [0, 0, 0]),
        ([1, 0, None], [None, 1, None], "sum_then_normalize", "as_zero", [ROOT, ROOT, -2 * ROOT]),
        # Task 1 -1 1 -1; the term is 1 -1 among the two that have it.
        ([1, 0, 1, 0], [None, 1, 0, None], "normalize_then_sum", "leave_out", [1, 0, 0, -1]),
        # Now it is 0 1 0 0: mean 1/4, std sqrt(3)/4, so -1/sqrt(3) three times and sqrt(3).
        (
            [1, 0, 1, 0],
            [None, 1, 0, None],
            "normalize_then_sum",
            "as_zero",
            [1 - 3**-0.5, 3**0.5 - 1, 1 - 3**-0.5, -1 - 3**-0.5],
        ),
        # The term is added as it is; blank is nothing either way.
        ([1, 0, 1, 0], [None, 1, 0, None], "add_after", "leave_out", [1, 0, 1, -1]),
        ([1, 0, 1, 0], [None, 1, 0, None], "add_after", "as_zero", [1, 0, 1, -1]),
        # A blank task reward: 1 and 0 among themselves, or 0 1 0: mean 1/3, std sqrt(2)/3.
        ([None, 1, 0], [1, 0, 0], "add_after", "leave_out", [1, 1, -1]),
        ([None, 1, 0], [1, 0, 0], "add_after", "as_zero", [1 - ROOT, 2 * ROOT, -ROOT]),
        ([None, 1, 0], [1, 0, None], "normalize_then_sum", "leave_out", [1, 0, -1]),
    ],
)
def test_what_a_missing_value_does_to_the_advantages(rewards, column, combine, missing, expected):
    computed = combined(rewards, column, combine, missing=missing)
    np.testing.assert_allclose(computed.advantages, [expected], atol=1e-15)
    np.testing.assert_allclose(
        computed.attribution.parts.sum(axis=0), computed.advantages, atol=1e-15
    )


@pytest.mark.parametrize("combine", COMBINING)
def test_an_absent_completion_has_no_score_under_any_combination(combine):
    for missing in ("leave_out", "as_zero"):
        scenario = combined([1, 0, None], [0, 1, None], combine, missing=missing).scenario
        gone = evaluate(scenario.replace(present=[[1, 1, 0]]))
        assert gone.scored.tolist() == [[True, True, False]]
        assert gone.advantages[0, 2] == 0


@pytest.mark.parametrize("combine", ["outcome", *COMBINING])
def test_equal_scores_are_tied_under_every_combination(combine):
    rewards = [[0.1, 0.1, 0.1], [1.0, 0.0, 0.0]]
    options = {"terms": [Term("term", 0.3)], "term_values": np.full((2, 3, 1), 0.7)}
    conventions = Conventions.of(rewards=combine)
    computed = evaluate(build_scenario(rewards=rewards, conventions=conventions, **options))
    assert computed.tied.tolist() == [True, False]
