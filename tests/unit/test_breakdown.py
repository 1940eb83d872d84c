"""The objective taken apart: parts that add up, aggregations side by side, the split gradient."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import STAGES, Conventions, build_scenario, evaluate
from grpo_core.breakdown import aggregations, contributions, gradient_split
from grpo_core.numerics import nested_total, total
from pages._ui.examples import load_examples
from tests.unit.test_export import mixed, rough_scenario

EXAMPLES = load_examples()
by_example = pytest.mark.parametrize("key", EXAMPLES)


def evaluation_of(key):
    return evaluate(EXAMPLES[key].scenario)


def one_token_each(**changes):
    """Advantages 1 and -1, ratios 2 and 1, d = ln 2 and 0: KL 1 - ln 2 and 0."""
    log2 = np.log(2.0)
    arrays = {
        "rewards": [[1.0, 0.0]],
        "logp_new": [[[-1.0], [-1.0]]],
        "logp_old": [[[-1.0 - log2], [-1.0]]],
        "logp_ref": [[[-1.0 + log2], [-1.0]]],
        "conventions": Conventions.of(advantage=("mean_std", {"eps": 0}), kl=("k3", {"beta": 0.1})),
    }
    return evaluate(build_scenario(**{**arrays, **changes}))


@by_example
def test_completions_add_up_to_prompts_and_prompts_to_the_objective_to_the_last_bit(key):
    evaluation = evaluation_of(key)
    both = contributions(evaluation).both
    assert both.whole == evaluation.objective == -evaluation.loss
    assert_array_equal(total(both.completions, axis=1), both.prompts)
    assert float(total(both.prompts)) == evaluation.objective


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 20), st.integers(1, 40))
def test_they_do_so_in_every_batch(seed, P, G, L):
    rng = np.random.default_rng(seed)
    arrays = {k: -rng.exponential(size=(P, G, L)) for k in ("logp_new", "logp_old", "logp_ref")}
    evaluation = evaluate(build_scenario(rewards=rng.normal(size=(P, G)), **arrays))
    both = contributions(evaluation).both
    assert float(np.sum(np.sum(both.completions, axis=1))) == evaluation.objective


def test_a_nested_sum_within_range_is_right_where_a_part_of_it_overflows():
    big = 1.5e308
    values = np.array([[[big, big], [-big, -big]], [[1.0, 2.0], [0.0, 0.0]]])
    assert nested_total(values) == float(total(values))
    assert np.isfinite(nested_total(values))


@by_example
def test_policy_and_kl_part_add_up_to_the_whole_up_to_rounding(key):
    parts = contributions(evaluation_of(key))
    scale = np.abs(parts.policy.completions) + np.abs(parts.kl.completions)
    error = parts.policy.completions + parts.kl.completions - parts.both.completions
    assert np.all(np.abs(error) <= 1e-14 * scale.max())
    assert_allclose(parts.gain + parts.drain, parts.both.whole, atol=1e-14 * (1 + parts.gain))


def test_parts_by_hand():
    # w = 1/2; surrogates min(2, 1.2) * 1 = 1.2 and -1; KL 2 - ln 2 - 1 and 0, times 0.1.
    parts = contributions(one_token_each())
    kl = -0.5 * 0.1 * (1 - np.log(2))
    assert_allclose(parts.policy.completions, [[0.6, -0.5]], rtol=1e-14)
    assert_allclose(parts.kl.completions, [[kl, 0.0]], rtol=1e-14)
    assert_allclose(parts.both.whole, 0.1 + kl, rtol=1e-14)
    assert_allclose([parts.gain, parts.drain], [0.6 + kl, -0.5], rtol=1e-14)


def test_every_aggregation_of_the_table_is_there_and_one_is_the_chosen():
    for variant in STAGES["aggregation"].variants:
        scenario = EXAMPLES["unequal-groups"].scenario.choose("aggregation", variant)
        rows = aggregations(evaluate(scenario))
        assert {row.choice.variant for row in rows} == set(STAGES["aggregation"].variants)
        assert [row.choice.variant for row in rows if row.chosen] == [variant]


@by_example
def test_an_aggregation_gives_what_choosing_it_gives(key):
    scenario = EXAMPLES[key].scenario
    for row in aggregations(evaluate(scenario)):
        own = evaluate(scenario.choose("aggregation", row.choice.variant, **row.choice.options))
        assert row.evaluation.objective == own.objective
        assert row.evaluation.mean_kl == own.mean_kl
        assert_array_equal(row.evaluation.gradient, own.gradient)


def test_an_options_other_word_is_a_row_of_its_own_only_where_it_changes_a_weight():
    full = build_scenario(rewards=[[1.0, 0.0]])
    empty = full.replace(mask=[[[True], [False]]])
    rows = {
        name: [row for row in aggregations(evaluate(s)) if row.choice.variant == "completion_mean"]
        for name, s in (("full", full), ("empty", empty))
    }
    assert len(rows["full"]) == 1
    assert [float(row.first_weight[0, 0]) for row in rows["empty"]] == [0.5, 1.0]
    assert len({row.label for row in rows["empty"]}) == 2


def test_chosen_options_are_kept_and_said():
    scenario = EXAMPLES["four-answers"].scenario.choose("aggregation", "constant", length=1000)
    (chosen,) = (row for row in aggregations(evaluate(scenario)) if row.chosen)
    assert chosen.choice.options["length"] == 1000
    assert "1,000" in chosen.label


def test_the_first_weight_is_that_of_the_first_valid_token():
    evaluation = evaluation_of("left-padding")
    for row in aggregations(evaluation):
        for g in range(evaluation.valid.shape[1]):
            t = int(np.flatnonzero(evaluation.valid[0, g])[0])
            assert row.first_weight[0, g] == row.evaluation.weight[0, g, t] > 0
    hidden = build_scenario(rewards=[[1.0, 0.0]], mask=[[[True], [False]]])
    assert aggregations(evaluate(hidden))[0].first_weight[0, 1] == 0


def test_the_gradient_split_by_hand():
    # Token 0: ratio 2 > 1.2 with A = 1, so clipped; KL gradient -w beta (1 - e^d) = 0.05.
    # Token 1: policy gradient -0.5, no KL gradient.
    split = gradient_split(one_token_each())
    assert_allclose([split.policy_norm, split.kl_norm], [0.5, 0.05], rtol=1e-14)
    assert (split.both, split.against, split.only_policy, split.only_kl) == (0, 0, 1, 1)
    assert split.cosine == 0


def test_parts_that_oppose_each_other_are_counted():
    # d = -ln 2: KL gradient -w beta (1 - 1/2) < 0 against a policy gradient above 0; token 1
    # has d = -ln 2 too and A < 0, so both parts are below 0.
    log2 = np.log(2.0)
    evaluation = one_token_each(
        logp_old=[[[-1.0], [-1.0]]], logp_ref=[[[-1.0 - log2], [-1.0 - log2]]]
    )
    split = gradient_split(evaluation)
    assert (split.both, split.against) == (2, 1)
    assert_allclose(split.cosine, 0, atol=1e-14)


@by_example
def test_the_norms_and_the_cosine_are_those_of_the_arrays(key):
    evaluation = evaluation_of(key)
    split = gradient_split(evaluation)
    assert split.norm == evaluation.metrics["gradient_norm"]
    if split.cosine is None:
        assert 0 in (split.policy_norm, split.kl_norm)
        return
    dot = float(np.sum(evaluation.policy_gradient * evaluation.kl_gradient))
    assert_allclose(split.cosine * split.policy_norm * split.kl_norm, dot, rtol=1e-9, atol=1e-18)
    assert -1 <= split.cosine <= 1


def test_the_parts_add_up_with_every_row_of_the_later_stages():
    for seed in range(12):
        evaluation = evaluate(rough_scenario(conventions=mixed(seed).replace("rewards", "outcome")))
        found = contributions(evaluation)
        whole = found.policy.completions + found.kl.completions
        assert_allclose(whole, found.both.completions, rtol=1e-9, atol=1e-12)


def test_the_first_weight_is_that_of_a_token_that_stays():
    scenario = build_scenario(
        rewards=[[1, 0]],
        token_advantages=[[[0, 1], [2, 1]]],
        conventions=Conventions.of(tied="zero", advantage="given_per_token"),
    )
    chosen = next(row for row in aggregations(evaluate(scenario)) if row.chosen)
    # 2 completions; one token stays in the first, two in the second
    assert chosen.first_weight.tolist() == [[0.5, 0.25]]
