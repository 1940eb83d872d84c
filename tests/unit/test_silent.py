"""Silent groups and dynamic sampling: known numbers, quadrature, limits, sampling beside it."""

from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose

from grpo_core import ScenarioError, build_scenario, evaluate
from grpo_core.difficulty import difficulty
from grpo_core.dynamic_sampling import (
    dynamic_sampling,
    mean_batches,
    next_mixed_groups,
    simulate_dynamic_sampling,
)
from grpo_core.prompt_rewards import draw, prompts_from_rates, prompts_from_table
from grpo_core.scales import scaled_advantages
from grpo_core.silent import (
    leftover,
    silent_curve,
    silent_probability,
    tied_groups,
    tied_subgroups,
)
from grpo_core.simulation import simulate_difficulty

NAN = np.nan
SIZES = (2, 4, 8, 16, 64)
MIXED = prompts_from_rates([0.02, 0.1, 0.3, 0.6, 0.97])

# --- how often ---------------------------------------------------------------------------

KNOWN = {
    0.01: (0.9802, 0.9606, 0.9227, 0.8515, 0.5256),
    0.1: (0.82, 0.6562, 0.4305, 0.1853, 0.0012),
    0.25: (0.625, 0.3203, 0.1001, 0.0100, 0),
    0.5: (0.5, 0.125, 0.0078, 3e-5, 0),
}


@pytest.mark.parametrize("rate", KNOWN)
def test_known_probabilities(rate):
    assert_allclose(silent_curve([rate, 1 - rate], SIZES), [KNOWN[rate]] * 2, atol=6e-5)


def test_the_curve_and_the_prompts_agree():
    curve = silent_curve(MIXED.rates, [6])[:, 0]
    assert_allclose(silent_probability(MIXED, 6), curve, rtol=1e-12)
    assert silent_curve([0.0, 1.0], [2, 64]).tolist() == [[1, 1], [1, 1]]


def test_graded_rewards_tie_less_often():
    # 0.5**3 + 0.3**3 + 0.2**3 = 0.125 + 0.027 + 0.008
    graded = prompts_from_table([0, 0.5, 1], [[0.5, 0.3, 0.2]])
    assert silent_probability(graded, 3)[0] == pytest.approx(0.16)
    # 1 against not 1: 0.8**3 + 0.2**3
    assert silent_probability(prompts_from_rates([0.2]), 3)[0] == pytest.approx(0.52)


def test_sampled_groups_tie_as_often_as_said():
    sampled = simulate_difficulty(MIXED, 8, batches=4000, seed=11).silent
    assert sampled.agrees(silent_probability(MIXED, 8)).all()
    assert np.all(sampled.error < 0.009)


@pytest.mark.parametrize("variant", ["mean_std", "mean_only"])
def test_tied_groups_are_those_of_an_evaluation(variant):
    rewards = [[1, 1, 1], [1, 0, 1], [0.1, NAN, 0.1], [5, NAN, NAN], [NAN, NAN, NAN]]
    evaluation = evaluate(build_scenario(rewards=rewards).choose("advantage", variant))
    assert tied_groups(rewards).tolist() == evaluation.tied.tolist()
    assert tied_groups(rewards).tolist() == [True, False, True, False, False]


# --- what is lost ------------------------------------------------------------------------


def test_subgroups_by_hand():
    # 1, 1, 0, 0: pairs tie with (1 + 1)/6. 1, 0, 0 (one missing): 1 of 3 pairs.
    rewards = [[1, 1, 0, 0], [1, 0, 0, NAN], [2, 2, 2, 2], [1, NAN, NAN, NAN]]
    assert_allclose(tied_subgroups(rewards, 2), [1 / 3, 1 / 3, 1, NAN])
    assert_allclose(tied_subgroups(rewards, 4), [0, NAN, 1, NAN])


def test_subgroups_estimate_without_bias_where_the_observed_rate_does_not():
    rates = np.full(20000, 0.2)
    prompts = prompts_from_rates(rates)
    rewards = draw(prompts, 8, 1, np.random.default_rng(0))[0].astype(float)
    true = silent_probability(prompts_from_rates([0.2]), 4)[0]
    found = tied_subgroups(rewards, 4)
    assert found.mean() == pytest.approx(true, abs=4 * found.std() / np.sqrt(len(rates)))
    plugged = silent_curve(rewards.mean(axis=1), [4])
    assert plugged.mean() > true + 0.05


# --- what stays --------------------------------------------------------------------------


def test_a_tied_group_keeps_the_pull_of_the_kl_and_its_cost():
    scenario = build_scenario(
        rewards=[[1, 1], [1, 0]],
        logp_new=np.full((2, 2, 3), -0.5),
        logp_ref=np.full((2, 2, 3), -3.0),
        mask=[[[1, 1, 1], [1, 1, 1]], [[1, 0, 0], [1, 0, 0]]],
    )
    found = leftover(evaluate(scenario.choose("kl", beta=0.1)))
    assert found.tied.tolist() == [True, False]
    assert (found.groups, found.tokens) == (0.5, 0.75)
    assert found.policy_pull[0] == 0
    assert found.policy_pull[1] > 0
    # beta (1 - exp(-2.5)) per token = 0.0917915; weight 1/(4 completions x 3 tokens), six tokens.
    assert found.kl_pull[0] == pytest.approx(0.0917915 / 12 * np.sqrt(6), rel=1e-6)
    none = leftover(evaluate(scenario.choose("kl", beta=0.0)))
    assert none.kl_pull.tolist() == [0, 0]


# --- dynamic sampling --------------------------------------------------------------------


def with_chance(s):
    """One prompt whose groups of two are mixed with chance s = 2 p q."""
    return prompts_from_rates([(1 - np.sqrt(1 - 2 * s)) / 2])


def test_known_cost_for_a_data_set_of_hard_prompts():
    # Beta(1, 3) in 20,000 equal parts: its quantile function is 1 - (1 - u)**(1/3).
    parts = (np.arange(20000) + 0.5) / 20000
    found = dynamic_sampling(prompts_from_rates(1 - (1 - parts) ** (1 / 3)), 16, 64, batch=32)
    assert found.draws == pytest.approx(76.09, abs=0.02)
    assert found.draws_std == pytest.approx(3.79, abs=5e-3)
    assert found.batches == pytest.approx(3.000, abs=5e-4)
    assert found.kept_mean == pytest.approx(0.2868, abs=1e-4)


def test_cost_by_hand():
    # s = 1/2: two mixed groups need 4 draws, variance 2 (1/2)/(1/4) = 4.
    found = dynamic_sampling(prompts_from_rates([0.5]), 2, 2)
    assert (found.draws, found.draws_std, found.samples, found.factor) == (4, 2, 8, 2)
    assert found.batches is None


def test_whole_batches_by_hand():
    # One wanted: draws are geometric, so batches of 10 are geometric with 1 - (1 - s)**10.
    found = dynamic_sampling(with_chance(0.05), 2, 1, batch=10)
    assert found.batches == pytest.approx(1 / (1 - 0.95**10), rel=1e-12)
    # Every draw kept: 7 wanted in batches of 3 are 3 batches.
    sure = prompts_from_table(np.arange(1000.0), np.ones((1, 1000)))
    assert dynamic_sampling(sure, 1000, 7, batch=3).batches == pytest.approx(3, abs=1e-9)


# From nearly always mixed, where the last draws are rare and come one by one, to hardly ever.
CHANCES = (1 - 2**-9, 0.9, 0.3, 0.02, 1e-7)


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("batch", [1, 2, 7, 10_000, 1_000_000])
def test_batches_until_one_group_is_mixed_are_geometric(chance, batch):
    exact = -1 / np.expm1(batch * np.log1p(-chance))
    assert mean_batches(1, chance, batch) == pytest.approx(exact, rel=1e-12)


def batches_one_after_another(wanted, chance, batch):
    """Mean number of batches, from what is still wanted after the first of them."""
    few = range(min(wanted, batch + 1))
    mixed = [comb(batch, n) * chance**n * (1 - chance) ** (batch - n) for n in few]
    means = [0.0]
    for still in range(1, wanted + 1):
        later = sum(p * means[still - n] for n, p in enumerate(mixed[1:still], 1))
        means.append((1 + later) / -np.expm1(batch * np.log1p(-chance)))
    return means[-1]


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize(("wanted", "batch"), [(2, 1), (5, 3), (20, 16), (64, 64), (3, 500)])
def test_whole_batches_are_counted_one_after_another(wanted, chance, batch):
    exact = batches_one_after_another(wanted, chance, batch)
    assert mean_batches(wanted, chance, batch) == pytest.approx(exact, rel=1e-9)


def test_whole_batches_where_mixed_groups_are_very_rare():
    found = dynamic_sampling(prompts_from_rates([1e-9]), 2, 3, batch=100)
    assert found.batches == pytest.approx(found.draws / 100 + 0.495, rel=1e-12)


def test_selection_by_hand():
    # G = 2, rates 1/2 and 1/10: mixed with 1/2 and 18/100.
    found = dynamic_sampling(prompts_from_rates([0.5, 0.1, 1.0]), 2, 4)
    assert_allclose(found.kept_share, [50 / 68, 18 / 68, 0])
    assert found.kept_mean == pytest.approx((25 + 1.8) / 68)
    assert found.drawn_mean == pytest.approx(1.6 / 3)
    # Every mixed pair has one right answer.
    assert found.kept_observed == pytest.approx(0.5)


@pytest.mark.parametrize("G", [2, 4, 16])
def test_sampled_runs_agree_with_the_closed_form(G):
    found = dynamic_sampling(MIXED, G, 16, batch=6)
    sampled = simulate_dynamic_sampling(MIXED, G, 16, batch=6, runs=2000, seed=3)
    for name in ("draws", "batches", "kept_share", "kept_observed"):
        assert getattr(sampled, name).agrees(getattr(found, name)).all(), name
    assert sampled.draws.error == pytest.approx(found.draws_std / np.sqrt(2000), rel=0.1)


@pytest.mark.parametrize("scale", ["group", "none", "leave_one_out"])
def test_the_expected_direction_does_not_change(scale):
    # Mean of A times reward per prompt, kept groups against all: the same up to one factor.
    G, kept = 4, 40000
    rewards, which, _ = next_mixed_groups(MIXED, G, kept, np.random.default_rng(8))
    gain = np.mean(scaled_advantages(rewards, scale) * rewards, axis=1)
    mine = which[:, None] == np.arange(len(MIXED))
    found = np.mean(gain[:, None] * mine, axis=0)
    error = np.std(gain[:, None] * mine, axis=0) / np.sqrt(kept)
    unfiltered = difficulty(MIXED, G, scale).speed / len(MIXED)
    factor = dynamic_sampling(MIXED, G, kept).factor
    assert np.all(np.abs(found - factor * unfiltered) <= 4 * error)


def test_where_no_group_can_be_mixed_there_is_no_end_to_it():
    never = prompts_from_rates([0.0, 1.0])
    found = dynamic_sampling(never, 4, 2, batch=2)
    assert (found.chance, found.draws, found.batches) == (0, np.inf, np.inf)
    assert (found.factor, found.samples) == (np.inf, np.inf)
    assert np.isnan(found.kept_share).all()
    with pytest.raises(ScenarioError, match="too rare to sample"):
        simulate_dynamic_sampling(never, 4, 2)
    groups, which, drawn = next_mixed_groups(never, 4, 2, np.random.default_rng(0))
    assert (len(groups), len(which), drawn) == (0, 0, np.inf)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: silent_curve([2.0], [4]), "rates at prompt 0 is 2.0; wanted a success rate"),
        (lambda: silent_curve([0.5], [4, 1]), "G is 1; wanted a whole number of at least 2"),
        (lambda: tied_groups([1, 0]), "rewards has shape (2,); wanted 2 axes"),
        (lambda: tied_subgroups([[1, np.inf]], 2), "rewards at prompt 0, completion 1 is inf"),
        (lambda: dynamic_sampling(MIXED, 4, 0), "wanted is 0; wanted a whole number"),
        (lambda: dynamic_sampling(MIXED, 4, 2, batch=0), "batch is 0; wanted a whole number"),
        (lambda: simulate_dynamic_sampling(MIXED, 4, 2, runs=1), "runs is 1; wanted"),
    ],
)
def test_bad_input_is_named(build, message):
    with pytest.raises(ScenarioError) as caught:
        build()
    assert str(caught.value).startswith(message)
