"""Stage advantage: hand-worked groups, exact ties, and groups at the ends of the number range."""

import numpy as np
import pytest

from grpo_core import (
    Conventions,
    build_scenario,
    evaluate,
    group_advantages,
    process_advantages,
)

NAN = np.nan
ROOT = np.sqrt(0.5)


def evaluated(rewards, variant="mean_std", **options):
    conventions = Conventions.of(advantage=(variant, options))
    return evaluate(build_scenario(rewards=rewards, conventions=conventions))


def test_two_right_two_wrong():
    # mean 1/2, every deviation is 1/2, population std 1/2: advantages +1 and -1.
    np.testing.assert_allclose(group_advantages([[1, 0, 0, 1]]), [[1, -1, -1, 1]], rtol=3e-8)


def test_each_group_is_judged_by_itself():
    # 1, 2, 3: mean 2, variance (1 + 0 + 1)/3, so +-1/0.8164966 = +-1.2247449.
    np.testing.assert_allclose(
        group_advantages([[0.5, 0.5, 0.5], [1, 2, 3]]),
        [[0, 0, 0], [-1.224745, 0, 1.224745]],
        atol=5e-7,
    )


def test_sample_formula_divides_by_one_less():
    # 1, 0, 0, 1: squares sum to 1, over 3: std 0.5773503, so +-0.5/0.5773503 = +-0.8660254.
    evaluation = evaluated([[1, 0, 0, 1]], ddof=1, eps=0)
    np.testing.assert_allclose(evaluation.std, [np.sqrt(1 / 3)], rtol=1e-15)
    np.testing.assert_allclose(evaluation.advantages, [[0.75**0.5 * s for s in (1, -1, -1, 1)]])


def test_groups_of_two_always_have_the_same_advantages():
    for gap in (5e-324, 1e-12, 0.3, 7.0, 1e200):
        for ddof, size in ((0, 1.0), (1, ROOT)):
            computed = evaluated([[gap, 0]], ddof=ddof, eps=0).advantages
            np.testing.assert_allclose(computed, [[size, -size]], rtol=1e-15)


def test_eps_decides_once_the_spread_is_no_larger():
    # +-1e-4 about the mean: std 1e-4, plus eps 1e-4: halved.
    computed = evaluated([[2e-4, 0]], eps=1e-4).advantages
    np.testing.assert_allclose(computed, [[0.5, -0.5]], rtol=1e-14)


def test_mean_only_keeps_the_reward_scale():
    np.testing.assert_array_equal(evaluated([[3, 1, -1]], "mean_only").advantages, [[2, 0, -2]])


def test_given_advantages_pass_through_bit_for_bit():
    given = [[0.1, -0.0]]
    scenario = build_scenario(
        rewards=[[1, 0]], advantages=given, conventions=Conventions.of(advantage="given")
    )
    assert evaluate(scenario).advantages.tobytes() == np.array(given).tobytes()
    assert evaluate(scenario).mean.tolist() == [0.5]


def test_given_advantages_are_zero_where_nothing_is_present():
    scenario = build_scenario(
        advantages=[[1, NAN]], present=[[1, 0]], conventions=Conventions.of(advantage="given")
    )
    assert evaluate(scenario).advantages.tolist() == [[1, 0]]


def test_given_double_advantages_are_not_squeezed_into_single():
    scenario = build_scenario(
        rewards=np.float32([[1, 0]]),
        advantages=[[1e300, 0.1]],
        conventions=Conventions.of(advantage="given"),
    )
    assert evaluate(scenario).advantages.tolist() == [[1e300, 0.1]]


TIED = [0.1, 0.7, 1e8 + 0.1, 1e200, -1e308, 1.7976931348623157e308, 5e-324, 0.0, -0.0]


@pytest.mark.parametrize("reward", TIED)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_identical_rewards_give_exactly_zero(reward, size):
    rewards = [[reward] * size]
    for variant, options in (
        ("mean_std", {"ddof": 0, "eps": 0}),
        ("mean_std", {"ddof": 1, "eps": 0}),
        ("mean_std", {}),
        ("mean_only", {}),
    ):
        evaluation = evaluated(rewards, variant, **options)
        assert evaluation.advantages.tolist() == [[0.0] * size]
        assert evaluation.std.tolist() == [0.0]
        assert evaluation.mean.tolist() == [reward]
        assert evaluation.tied.tolist() == [size > 1]
    assert group_advantages(rewards, eps=0).tolist() == [[0.0] * size]


@pytest.mark.parametrize("place", [0, 1, 3])
def test_identical_rewards_are_exact_around_a_missing_one(place):
    # Deviations are taken from a score that exists, not from the 0 that stands for the missing one.
    rewards = np.insert(np.full(3, 0.1), place, NAN)
    assert evaluated([rewards], eps=0).advantages.tolist() == [[0.0] * 4]


@pytest.mark.parametrize("reward", [0.1, 3.4e38, 1e-45])
def test_identical_float32_rewards_give_exactly_zero(reward):
    computed = group_advantages(np.full((2, 3), reward, np.float32), eps=0)
    np.testing.assert_array_equal(computed, np.zeros((2, 3), np.float32), strict=True)


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 1e-200, 1e-160, 1.0, 1e200, 5e307])
def test_advantages_do_not_depend_on_the_size_of_the_rewards(unit):
    # With eps 0 the scale cancels, also where the square of the spread has no double.
    rewards = [[unit, 0, 2 * unit, unit]]
    for computed in (group_advantages(rewards, eps=0), evaluated(rewards, eps=0).advantages):
        np.testing.assert_allclose(computed, [[0, -2 * ROOT, 2 * ROOT, 0]], atol=1e-15)


def test_opposite_ends_of_the_number_range():
    biggest = np.finfo(float).max
    np.testing.assert_allclose(group_advantages([[biggest, -biggest]]), [[1, -1]], rtol=1e-15)
    evaluation = evaluated([[biggest, -biggest]], "mean_only")
    assert evaluation.advantages.tolist() == [[biggest, -biggest]]
    assert evaluation.mean.tolist() == [0]


def test_advantage_beyond_float32_is_infinite_without_a_warning():
    computed = evaluate(
        build_scenario(
            rewards=np.float32([[3e38, -3e38, -3e38]]),
            conventions=Conventions.of(advantage="mean_only"),
        )
    ).advantages
    np.testing.assert_array_equal(computed, np.float32([[np.inf, -2e38, -2e38]]), strict=True)


def test_tiny_spread_over_eps_has_its_own_tiny_advantage():
    # deviation 1e-300 over (1e-300 + 1e-8): 1e-292, not 0.
    np.testing.assert_allclose(group_advantages([[2e-300, 0]]), [[1e-292, -1e-292]], rtol=1e-12)


def test_nearly_tied_group_is_computed_as_asked():
    # Neighbouring doubles near 1e8, and eps far below their distance 1.5e-8.
    low = 1e8 + 0.1
    rewards = [[low, np.nextafter(low, np.inf)]]
    np.testing.assert_allclose(evaluated(rewards, eps=0).advantages, [[-1, 1]], rtol=1e-15)


def test_missing_reward_does_not_touch_the_others():
    full, partly = group_advantages([[3, 1, 2]]), group_advantages([[3, NAN, 1, 2]])
    np.testing.assert_array_equal(partly, [[full[0, 0], 0, full[0, 1], full[0, 2]]])


def test_first_score_may_be_the_missing_one():
    np.testing.assert_allclose(group_advantages([[NAN, 1, 0]]), [[0, 1, -1]], rtol=3e-8)


@pytest.mark.parametrize("rewards", [[[NAN, NAN]], [[NAN, 5.0]], [[5.0]]])
@pytest.mark.parametrize("ddof", [0, 1])
def test_group_with_one_score_or_none_gives_zero(rewards, ddof):
    evaluation = evaluated(rewards, ddof=ddof, eps=0)
    assert not evaluation.advantages.any()
    assert evaluation.std.tolist() == [0]
    assert evaluation.tied.tolist() == [False]


def test_absent_completions_do_not_change_a_group():
    scenario = build_scenario(rewards=[[1, 0, 99]], present=[[1, 1, 0]])
    np.testing.assert_array_equal(
        evaluate(scenario).advantages[:, :2], group_advantages([[1.0, 0.0]])
    )


def test_every_valid_token_gets_its_completions_advantage():
    evaluation = evaluate(build_scenario(rewards=[[1, 0]], mask=[[[1, 0, 1], [0, 0, 1]]]))
    A = evaluation.advantages[0]
    assert evaluation.token_advantages.tolist() == [[[A[0], 0, A[0]], [0, 0, A[1]]]]


def test_no_negative_zero_is_shown():
    assert not np.signbit(evaluated([[2, 1, 0], [1, 1, 1]], "mean_only").advantages[0, 1])
    assert not np.signbit(evaluated([[2, 1, 0], [1, 1, 1]]).advantages).any(where=[[False, 1, 0]])


def stepped(**options):
    """Two completions of three tokens; steps 1 0 1 that end at each, and 0 0 at the ends."""
    return evaluate(
        build_scenario(
            rewards=[[1, 0]],
            mask=np.ones((1, 2, 3)),
            step_ends=[[[0, 1, 2], [0, 2, NAN]]],
            step_rewards=[[[1, 0, 1], [0, 0, NAN]]],
            conventions=Conventions.of(advantage=("process", {"eps": 0, **options})),
        )
    )


# Pool 1 0 1 0 0: mean 0.4, std sqrt(.24): a 1 is 0.6 / .489898 = 1.224745, a 0 is -0.816497.
ONE, ZERO = 1.5**0.5, -((2 / 3) ** 0.5)


def test_step_rewards_are_summed_from_each_token_on():
    computed = stepped()
    np.testing.assert_allclose(computed.step_advantages, [[[ONE, ZERO, ONE], [ZERO, ZERO, 0]]])
    expected = [[[2 * ONE + ZERO, ZERO + ONE, ONE], [2 * ZERO, ZERO, ZERO]]]
    np.testing.assert_allclose(computed.token_advantages, expected)
    np.testing.assert_allclose(computed.advantages, [[2 * ONE + ZERO, 2 * ZERO]])
    # Mean and std are those of the outcome: 1 and 0.
    assert (computed.mean.tolist(), computed.std.tolist()) == ([0.5], [0.5])
    assert computed.attribution is None


def test_steps_may_be_judged_within_their_completion():
    # 1 0 1: mean 2/3, std sqrt(2)/3: 1/sqrt(2) for a 1, -sqrt(2) for the 0. 0 0 is tied.
    computed = stepped(over="completion")
    np.testing.assert_allclose(computed.step_advantages[0, 0], [ROOT, -2 * ROOT, ROOT])
    np.testing.assert_allclose(
        computed.token_advantages, [[[0, -ROOT, ROOT], [0, 0, 0]]], atol=1e-15
    )


def test_the_outcome_may_be_added_with_a_weight():
    # Rewards 1 and 0: +-1, half of it at every token.
    plain, both = stepped(), stepped(outcome_weight=0.5)
    shift = np.array([[0.5, -0.5]])
    np.testing.assert_allclose(both.advantages, plain.advantages + shift)
    np.testing.assert_allclose(both.token_advantages, plain.token_advantages + shift[..., None])
    np.testing.assert_array_equal(both.step_advantages, plain.step_advantages)


def test_process_rewards_use_the_sample_formula_where_asked():
    population, sample = stepped(), stepped(ddof=1)
    np.testing.assert_allclose(
        sample.step_advantages, population.step_advantages * np.sqrt(4 / 5), rtol=1e-14
    )
    np.testing.assert_allclose(sample.std, [ROOT])


def test_the_row_equals_the_function():
    for options in ({}, {"ddof": 1}, {"over": "completion"}, {"eps": 0.3}):
        alone = process_advantages(
            [[[1, 0, 1], [0, 0]]],
            [[[0, 1, 2], [0, 2]]],
            np.ones((1, 2, 3)),
            **{"eps": 0, **options},
        )
        np.testing.assert_array_equal(stepped(**options).token_advantages, alone)


def test_steps_of_equal_reward_or_none_give_exactly_zero():
    scenario = stepped().scenario
    ends, none = scenario["step_ends"], np.full((1, 2, 3), NAN)
    for arrays in ((ends, np.where(np.isnan(ends), NAN, 0.1)), (none, none)):
        steps = dict(zip(("step_ends", "step_rewards"), arrays, strict=True))
        computed = evaluate(scenario.replace(**steps))
        assert not computed.step_advantages.any()
        assert not computed.token_advantages.any()


def test_objective_and_gradient_read_the_advantage_of_each_token():
    # On policy the ratio is 1: the objective is the mean of the tokens' advantages, 1/2 over the
    # completions and 1/3 over their tokens, and the gradient of a token its advantage over 6.
    computed = stepped()
    scenario = computed.scenario.choose("kl", beta=0.0)
    assert evaluate(scenario).objective == pytest.approx(computed.token_advantages.sum() / 6)
    np.testing.assert_allclose(evaluate(scenario).gradient, computed.token_advantages / 6)
