"""Group size under a budget: known numbers, closed forms against simulation, limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import ScenarioError
from grpo_core.answer_policies import policy_of, rate_policy
from grpo_core.group_size import (
    budget_curve,
    sampled_batches,
    signal_chance,
    size_for_signal,
    whole_sizes,
)


def shared_logit(biases):
    """Two answers to each prompt, one logit for all of them plus a bias each."""
    p = 1 / (1 + np.exp(-np.asarray(biases, dtype=float)))
    scores = np.stack([1 - p, -p], axis=1)[..., None]
    return policy_of(np.column_stack([p, 1 - p]), np.tile([1, 0], (p.size, 1)), scores)


WORLD = shared_logit([-3, -1, 0, 1])
SIZES = [2, 4, 8, 16]


# --- chance of a signal ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "silent"),
    [
        (0.01, (0.9802, 0.9606, 0.9227, 0.8515, 0.5256)),
        (0.1, (0.82, 0.6562, 0.4305, 0.1853, 0.0012)),
        (0.25, (0.625, 0.3203, 0.1001, 0.0100, 0)),
        (0.5, (0.5, 0.125, 0.0078, 3e-5, 0)),
    ],
)
def test_known_chances_of_a_signal(p, silent):
    found = signal_chance([p, 1 - p], [2, 4, 8, 16, 64])
    assert_allclose(found[0], 1 - np.array(silent), atol=5e-5)
    assert_allclose(found[0], found[1], rtol=1e-12)


def test_rates_of_zero_and_one_never_give_a_signal_and_tiny_ones_keep_their_digits():
    assert_array_equal(signal_chance([0, 1], [2, 1024]), np.zeros((2, 2)))
    # 1 - (1-p)^2 - p^2 = 2 p q
    assert signal_chance([1e-18], [2])[0, 0] == pytest.approx(2e-18, rel=1e-14)


def test_the_size_for_a_signal_is_the_first_that_is_enough():
    # p = 0.5: 1 - 2^(1-G) >= 0.9 first at G = 5 (0.9375); at G = 4 it is 0.875.
    sizes = size_for_signal([0.5, 0.0, 1.0, 1e-6], 0.9)
    assert sizes.tolist() == [5, 0, 0, 0]


# --- the budget --------------------------------------------------------------------------


def test_known_noise_of_a_batch_of_64_samples():
    curve = budget_curve(WORLD, 64, sizes=SIZES)
    assert_allclose(curve.fresh, [0.001763, 0.001207, 0.001362, 0.002008], atol=5e-7)
    assert curve.ideal == pytest.approx(4.48, abs=5e-3)
    assert curve.best_fresh == 4
    assert_array_equal(curve.prompts, [32, 16, 8, 4])


def test_with_the_same_prompts_in_every_batch_larger_groups_only_help():
    curve = budget_curve(WORLD, 64)
    assert curve.best_same == curve.sizes[-1] == 64
    assert np.all(np.diff(curve.same) < 0)
    assert_allclose(curve.fresh - curve.same, curve.between)
    assert_allclose(curve.samples + curve.baseline, curve.same)


def test_two_beats_sixteen_exactly_if_the_baseline_costs_less_than_15_times_the_prompts():
    # G1 is better than G2 iff V < B (G1 - 1)(G2 - 1).
    for spread in np.linspace(0.2, 4, 20):
        curve = budget_curve(shared_logit([-spread, 0, spread]), 64, sizes=[2, 16])
        V = curve.baseline[0] * 2 * curve.prompts[0]
        B = curve.between[0] * curve.prompts[0]
        assert (curve.fresh[0] < curve.fresh[1]) == (V < 15 * B)


def test_prompts_that_all_pull_alike_have_no_best_size():
    curve = budget_curve(shared_logit([0.5, 0.5]), 32)
    assert curve.ideal == np.inf
    assert curve.best_fresh == 32


@pytest.mark.parametrize("G", SIZES)
@pytest.mark.parametrize("policy", [WORLD, rate_policy([0.05, 0.3, 0.8])], ids=["logit", "softmax"])
def test_simulated_batches_agree_within_their_own_error(policy, G):
    curve = budget_curve(policy, 64, sizes=[G])
    found = sampled_batches(policy, 64 // G, G, batches=2500, seed=11)
    assert abs(found.fresh - curve.fresh[0]) <= 4.5 * found.fresh_error
    assert abs(found.same - curve.same[0]) <= 4.5 * found.same_error
    assert np.all(np.abs(found.mean - curve.gradient) <= 4.5 * found.mean_error)


def test_certain_prompts_have_no_noise():
    policy = rate_policy([0.0, 1.0])
    curve = budget_curve(policy, 16)
    assert not curve.fresh.any()
    assert curve.best_fresh == 2
    assert sampled_batches(policy, 4, 4, batches=20).fresh == 0


def test_whole_sizes_divide_the_budget():
    assert whole_sizes(64).tolist() == [2, 4, 8, 16, 32, 64]
    assert whole_sizes(7).tolist() == [7]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: signal_chance([0.5, -0.1], [2]), "rates at prompt 1 is -0.1; wanted a number"),
        (lambda: signal_chance([0.5], [2, 1]), "sizes at entry 1 is 1.0; wanted a whole number"),
        (lambda: signal_chance([np.nan], [2]), "rates at prompt 0 is nan"),
        (lambda: budget_curve(WORLD, 1), "budget is 1; wanted a whole number of at least 2"),
        (lambda: size_for_signal([0.5], 1.5), "chance is 1.5; wanted a number"),
        (lambda: sampled_batches(WORLD, 0, 2), "prompts is 0; wanted a whole number"),
        (lambda: sampled_batches(WORLD, 4096, 1024, batches=2, seed=0.5), "seed is 0.5"),
        (lambda: sampled_batches(rate_policy([0.5], 8, 8), 4096, 1024), "a batch of 4096 x 1024"),
    ],
)
def test_bad_input_is_named_with_its_place(call, message):
    with pytest.raises(ScenarioError) as caught:
        call()
    assert str(caught.value).startswith(message)
