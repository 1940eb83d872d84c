"""Noise of the policy gradient under each baseline: by hand, by enumeration, by simulation."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import ScenarioError
from grpo_core.answer_policies import (
    policy_of,
    rate_policy,
    softmax_policy,
    token_policy,
)
from grpo_core.baseline_trials import sampled_noise, value_estimates
from grpo_core.baselines import BASELINES, BaselineOptions, gradient_noise
from tests.unit.token_values import token_value_noise

# Four answers, the second and the fourth right: p = 0.4.
FOUR = softmax_policy(np.log([[0.4, 0.3, 0.2, 0.1]]), [[0, 1, 0, 1]])
HARD = softmax_policy(np.log([[0.4, 0.3, 0.2, 0.1]]), [[0, 0, 0, 1]])
GRADED = softmax_policy(
    [[0.3, -0.2, 0.9, 0.0], [1.0, 0.0, -1.0, np.nan]], [[0.5, -1, 2, 0.5], [3, 3, 0.25, np.nan]]
)


def one_logit(rate):
    """Two answers and a single logit: the score is the reward less the rate."""
    return policy_of([[rate, 1 - rate]], [[1, 0]], [[[1 - rate], [-rate]]])


def of(policy, G, field, **options):
    noise = gradient_noise(policy, G, BaselineOptions(**options))
    return {key: float(getattr(row, field)[0]) for key, row in noise.items()}


# --- known numbers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("G", "leave_one_out"), [(2, 0.344), (4, 0.1867), (8, 0.1417), (16, 0.1237), (64, 0.1117)]
)
def test_known_noise_of_four_answers(G, leave_one_out):
    found = of(FOUR, G, "per_sample")
    assert found["leave_one_out"] == pytest.approx(leave_one_out, abs=5e-5)
    assert found["own_included"] == pytest.approx(((G - 1) / G) ** 2 * found["leave_one_out"])
    assert found["none"] == pytest.approx(0.252)
    assert found["true_value"] == pytest.approx(0.108)
    assert found["best_constant"] == pytest.approx(0.1057, abs=5e-5)
    assert FOUR.best_constant[0] == pytest.approx(0.4571, abs=5e-5)


def test_in_a_group_of_two_leave_one_out_is_noisier_than_no_baseline_at_all():
    found = of(FOUR, 2, "per_sample")
    assert found["leave_one_out"] > found["none"]


@pytest.mark.parametrize(
    ("policy", "leave_one_out", "over_std", "true_value"),
    [
        (FOUR, (0.198, 0.364, 0.438, 0.480), (0.198, 0.373, 0.472, 0.531), 0.630),
        (HARD, (0.0696, 0.1012, 0.1113, 0.1163), (0.0696, 0.1030, 0.1201, 0.1345), 0.131),
    ],
)
def test_known_signal_with_and_without_the_std(policy, leave_one_out, over_std, true_value):
    for G, one, std in zip((2, 4, 6, 8), leave_one_out, over_std, strict=True):
        found = of(policy, G, "signal", eps=0)
        assert found["leave_one_out"] == pytest.approx(one, abs=5e-4)
        assert found["own_included"] == pytest.approx(found["leave_one_out"])
        assert found["over_std"] == pytest.approx(std, abs=5e-4)
        assert found["true_value"] == pytest.approx(true_value, abs=5e-4)


def test_two_answers_make_the_std_look_far_too_good():
    found = of(one_logit(0.5), 8, "signal", eps=0)
    assert found["leave_one_out"] == pytest.approx(3.5)
    assert found["over_std"] == pytest.approx(7.6, abs=0.05)
    spread = of(rate_policy([0.5], right=3, wrong=3), 8, "signal", eps=0)
    assert spread["over_std"] < 1.2 * spread["leave_one_out"]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.6, 0.7, 0.9])
def test_the_true_value_is_not_the_best_baseline_and_sometimes_worse_than_none(p):
    # With one logit: E[R^2 S^2] - (pq)^2 = p q^2 - p^2 q^2 = p q^3;
    # about the value p q^4 + q p^4 - (pq)^2 = pq (1 - 4pq); about 1 - p it is constant: (pq)^2.
    q, policy = 1 - p, one_logit(p)
    found = of(policy, 8, "per_sample")
    assert found["none"] == pytest.approx(p * q**3, rel=1e-9)
    assert found["true_value"] == pytest.approx(p * q * (1 - 4 * p * q), rel=1e-9, abs=1e-15)
    assert found["best_constant"] == 0
    assert policy.best_constant[0] == pytest.approx(q)
    assert (found["none"] < found["true_value"]) == (p > 2 / 3)


@pytest.mark.parametrize(
    ("u", "none", "value", "per_token"),
    [(0.5, 0.0938, 0.0625, 0.0469), (0.8, 0.0184, 0.0840, 0.0922)],
)
def test_what_a_value_per_token_buys_in_a_world_of_two_tokens(u, none, value, per_token):
    found = of(token_policy([u, u]), 4, "per_sample")
    assert found["none"] == pytest.approx(none, abs=5e-5)
    assert found["true_value"] == pytest.approx(value, abs=5e-5)
    assert token_value_noise([u, u]) == pytest.approx(per_token, abs=5e-5)


@pytest.mark.parametrize("rates", [[0.3], [0.5, 0.9], [0.2, 0.7, 0.6], [0.9, 0.8, 1.0, 0.4]])
def test_value_per_token_against_a_sum_over_all_sequences(rates):
    rates, second = np.array(rates), 0.0
    gradient = np.zeros(len(rates))
    for tokens in product([0, 1], repeat=len(rates)):
        chance = np.prod(np.where(np.array(tokens) == 1, rates, 1 - rates))
        for t, token in enumerate(tokens):
            value = np.prod(tokens[:t]) * np.prod(rates[t:])
            push = (np.prod(tokens) - value) * (token - rates[t])
            second += chance * push**2
            gradient[t] += chance * push
    assert token_value_noise(rates) == pytest.approx(second - np.sum(gradient**2), abs=1e-15)
    assert_allclose(gradient, token_policy(rates).gradient[0], atol=1e-15)


# --- against brute force -----------------------------------------------------------------


def advantages_by_hand(key, rewards, policy, p, constant, ddof, eps):
    G, mean = len(rewards), np.mean(rewards)
    fixed = {
        "none": 0.0,
        "constant": constant,
        "true_value": policy.value[p],
        "best_constant": policy.best_constant[p],
    }
    if key in fixed:
        return rewards - fixed[key]
    if key == "leave_one_out":
        return rewards - (np.sum(rewards) - rewards) / (G - 1)
    if key == "own_included":
        return rewards - mean
    tied = np.ptp(rewards) == 0
    return np.zeros(G) if tied else (rewards - mean) / (np.std(rewards, ddof=ddof) + eps)


@pytest.mark.parametrize("key", BASELINES)
@pytest.mark.parametrize("policy", [FOUR, HARD, GRADED], ids=["four", "hard", "graded"])
@pytest.mark.parametrize(("G", "ddof", "eps"), [(2, 0, 0.0), (3, 1, 0.5), (4, 0, 1e-4)])
def test_mean_and_variance_are_those_of_all_groups_there_can_be(key, policy, G, ddof, eps):
    exact = gradient_noise(policy, G, BaselineOptions(constant=0.3, ddof=ddof, eps=eps))[key]
    for p in range(len(policy.value)):
        answers = [k for k in range(4) if policy.probabilities[p, k] > 0]
        mean, second = np.zeros(4), 0.0
        for group in product(answers, repeat=G):
            group = list(group)
            chance = np.prod(policy.probabilities[p, group])
            rewards = policy.rewards[p, group]
            advantages = advantages_by_hand(key, rewards, policy, p, 0.3, ddof, eps)
            gradient = advantages @ policy.scores[p, group] / G
            mean += chance * gradient
            second += chance * np.sum(gradient**2)
        assert_allclose(exact.mean[p], mean, atol=1e-13)
        assert exact.variance[p] == pytest.approx(second - np.sum(mean**2), abs=1e-13)


@pytest.mark.parametrize("policy", [FOUR, GRADED, token_policy([0.3, 0.8])])
@pytest.mark.parametrize("G", [2, 5, 16])
def test_simulation_agrees_within_its_own_error(policy, G):
    options = BaselineOptions(constant=0.2, ddof=1, eps=1e-4)
    exact = gradient_noise(policy, G, options)
    found = sampled_noise(policy, G, options, groups=4000, seed=7)
    for key, row in found.items():
        assert np.all(np.abs(row.mean - exact[key].mean) <= 4.5 * row.mean_error + 1e-12)
        off = np.abs(row.variance - exact[key].variance)
        assert np.all(off <= 4.5 * row.variance_error + 1e-12)


def test_group_means_scatter_about_the_true_value():
    means = value_estimates(FOUR, 8, groups=4000, seed=3)
    exact = gradient_noise(FOUR, 8)
    level, error = exact["own_included"].level[0], exact["own_included"].error[0]
    assert (level, error) == pytest.approx((0.4, 0.4 * 0.6 / 8))
    assert exact["leave_one_out"].error[0] == pytest.approx(0.4 * 0.6 / 7)
    assert np.mean(means) == pytest.approx(level, abs=4.5 * np.sqrt(error / 4000))
    assert np.var(means) == pytest.approx(error, rel=0.1)


def test_the_same_seed_gives_the_same_samples_however_large_the_group():
    one, two = (sampled_noise(GRADED, 3, groups=50, seed=s)["none"].mean for s in (1, 1))
    assert_array_equal(one, two)
    other = sampled_noise(GRADED, 3, groups=50, seed=2)["none"].mean
    assert not np.array_equal(one, other)


# --- limits ------------------------------------------------------------------------------


def test_at_two_samples_dividing_by_the_std_leaves_the_signal_of_leave_one_out():
    for ddof in (0, 1):
        found = of(HARD, 2, "signal", ddof=ddof, eps=0)
        assert found["over_std"] == pytest.approx(found["leave_one_out"], rel=1e-12)
    # s0 gives leave-one-out itself, s1 the same over sqrt 2.
    assert of(HARD, 2, "factor", ddof=0, eps=0)["over_std"] == pytest.approx(1)
    assert of(HARD, 2, "factor", ddof=1, eps=0)["over_std"] == pytest.approx(0.5**0.5)


@pytest.mark.parametrize(
    ("p", "factors"),
    [(0.01, (1, 1.7275, 2.6089, 3.7330, 6.7362)), (0.5, (1, 1.6160, 1.8557, 1.9341, 1.9842))],
)
def test_dividing_by_the_std_aims_at_another_multiple_of_the_gradient(p, factors):
    policy = rate_policy([p, 1 - p])
    for G, factor in zip((2, 4, 8, 16, 64), factors, strict=True):
        found = gradient_noise(policy, G, BaselineOptions(eps=0))["over_std"].factor
        assert_allclose(found, factor, atol=5e-5)


def test_the_rarest_prompts_are_weighted_by_the_root_of_the_group_not_more():
    found = gradient_noise(rate_policy([1e-9, 1 - 1e-9]), 16, BaselineOptions(eps=0))
    assert_allclose(found["over_std"].factor, 15**0.5, rtol=1e-6)


@pytest.mark.parametrize("G", [2, 3, 8, 64])
def test_the_own_answer_in_the_mean_takes_a_factor_off_and_no_signal(G):
    factor, signal = of(FOUR, G, "factor"), of(FOUR, G, "signal")
    assert factor["own_included"] == pytest.approx((G - 1) / G)
    assert factor["leave_one_out"] == factor["true_value"] == 1
    assert signal["own_included"] == pytest.approx(signal["leave_one_out"])


def test_a_large_group_comes_near_the_true_value():
    found = of(FOUR, 1024, "per_sample")
    assert found["leave_one_out"] == pytest.approx(found["true_value"], rel=5e-3)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_certain_prompts_have_no_gradient_and_no_noise_about_their_mean(rate):
    noise = gradient_noise(rate_policy([rate]), 4)
    for key in ("own_included", "leave_one_out", "over_std", "true_value"):
        assert not noise[key].mean.any()
        assert noise[key].variance[0] == pytest.approx(0, abs=1e-30)
        assert noise[key].signal[0] == 0
        assert noise[key].factor[0] == 0


def test_equal_rewards_are_a_tie_whatever_they_are():
    policy = softmax_policy([[0.1, 0.7, -0.4]], [[0.1, 0.1, 0.1]])
    assert policy.value[0] == 0.1
    assert policy.reward_variance[0] == 0
    noise = gradient_noise(policy, 3)
    for key in ("own_included", "leave_one_out", "over_std", "true_value", "best_constant"):
        assert noise[key].variance[0] == 0


def test_rates_are_spread_evenly_over_right_and_wrong_answers():
    policy = rate_policy([0.3, 0.0], right=3, wrong=1)
    assert_allclose(policy.probabilities, [[0.1, 0.1, 0.1, 0.7], [0, 0, 0, 1]])
    assert_allclose(policy.value, [0.3, 0])


def test_an_answer_of_probability_zero_is_never_sampled():
    policy = policy_of([[0.0, 1.0, 0.0]], [[9, 1, 9]], np.zeros((1, 3, 3)))
    assert np.all(value_estimates(policy, 4, groups=500) == 1)


# --- bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gradient_noise(FOUR, 1), "G is 1; wanted a whole number of at least 2"),
        (lambda: gradient_noise(FOUR, 2.5), "G is 2.5; wanted a whole number"),
        (lambda: BaselineOptions(eps=-1), "eps is -1; wanted a number of at least 0"),
        (lambda: BaselineOptions(ddof=2), "ddof is 2; wanted"),
        (lambda: softmax_policy([[0, np.inf]], [[1, 0]]), "logits at prompt 0, answer 1 is inf"),
        (lambda: softmax_policy([[0, 0]], [[1, None]]), "rewards at prompt 0, answer 1 is nan"),
        (lambda: softmax_policy([[np.nan] * 2], [[1, 0]]), "logits of prompt 0 are blank"),
        (lambda: softmax_policy([[0, 0]], [[1, 0, 0]]), "rewards has shape (1, 3)"),
        (lambda: softmax_policy([[0, 0], [0]], [[1, 0]]), "logits is [[0, 0], [0]]; wanted rows"),
        (lambda: softmax_policy([["a", "b"]], [[1, 0]]), "logits is [['a', 'b']]; wanted rows"),
        (lambda: rate_policy([0.5, 1.2]), "rates at prompt 1 is 1.2; wanted a number"),
        (lambda: rate_policy([]), "rates has shape (0,)"),
        (lambda: token_policy([0.5] * 7), "rates has 7 tokens"),
        (lambda: policy_of([[0.5, 0.4]], [[1, 0]], [[[0], [0]]]), "probabilities at prompt 0 is"),
        (lambda: sampled_noise(FOUR, 2, seed=-1), "seed is -1; wanted a whole number"),
        (lambda: sampled_noise(FOUR, 2, groups=1), "groups is 1; wanted a whole number"),
        (
            lambda: gradient_noise(softmax_policy([[0.0] * 12], [range(12)]), 64),
            "12 different rewards in groups of 64",
        ),
    ],
)
def test_bad_input_is_named_with_its_place(call, message):
    with pytest.raises(ScenarioError) as caught:
        call()
    assert str(caught.value).startswith(message)
