"""Laws of the core, over drawn batches of every shape, convention and number type."""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from grpo_core import (
    ARRAYS,
    STAGES,
    Choice,
    Conventions,
    ScenarioError,
    build_scenario,
    evaluate,
    group_advantages,
    grpo_objective,
    resize,
    same_scenario,
)
from grpo_core.numerics import k3
from tests.property.scenarios import scenarios

INF, NAN = np.inf, np.nan
LARGEST = np.finfo(float).max

some = settings(max_examples=60)


def results(evaluation):
    """Every number and array of an evaluation by name, those of its attribution too."""
    fields = {f.name: getattr(evaluation, f.name) for f in dataclasses.fields(evaluation)}
    found = fields.pop("attribution")
    if found is not None:
        fields |= {key: getattr(found, key) for key in ("weighted", "parts", "shares")}
    return {
        key: value
        for key, value in fields.items()
        if key not in ("scenario", "metrics") and value is not None
    }


def assert_same_results(left, right):
    one, other = results(left), results(right)
    assert one.keys() == other.keys()
    for key, value in one.items():
        np.testing.assert_array_equal(value, other[key], err_msg=key)
    assert left.metrics == right.metrics


GROUPS = npst.arrays(
    float,
    st.tuples(st.integers(1, 4), st.integers(1, 8)),
    elements=st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, 0.1]) | st.just(NAN),
)
WHOLE = npst.arrays(float, (2, 5), elements=st.integers(-1000, 1000).map(float))


@given(GROUPS, st.sampled_from([0.0, 1e-8, 1e-4, 1.0]))
def test_advantages_of_a_group_sum_to_zero(rewards, eps):
    computed = group_advantages(rewards, eps=eps)
    assert np.abs(computed.sum(axis=1)).max() <= 1e-9
    assert (computed[np.isnan(rewards)] == 0).all()


@given(GROUPS, st.sampled_from([0.0, 1e-8, 1e-4]))
def test_squares_of_advantages_sum_to_at_most_the_number_scored(rewards, eps):
    squares = (group_advantages(rewards, eps=eps) ** 2).sum(axis=1)
    assert (squares <= np.sum(~np.isnan(rewards), axis=1) * (1 + 1e-9)).all()


@given(WHOLE, st.integers(-(10**6), 10**6))
def test_adding_a_constant_changes_no_advantage(rewards, shift):
    # Whole numbers, so that the sum is exact and the law can be.
    np.testing.assert_allclose(
        group_advantages(rewards + shift, eps=0), group_advantages(rewards, eps=0), atol=1e-9
    )


@given(WHOLE, st.integers(-300, 300), st.sampled_from([1, -1]))
def test_scaling_by_a_power_of_two_changes_no_bit_without_eps(rewards, power, sign):
    np.testing.assert_array_equal(
        group_advantages(sign * np.ldexp(rewards, power), eps=0),
        sign * group_advantages(rewards, eps=0),
    )


@given(WHOLE, st.floats(1e-3, 1e3))
def test_scaling_scales_the_advantages_where_only_the_mean_is_subtracted(rewards, factor):
    chosen = Conventions.of(advantage="mean_only")
    plain, scaled = (
        evaluate(build_scenario(rewards=r, conventions=chosen)).advantages
        for r in (rewards, factor * rewards)
    )
    np.testing.assert_allclose(scaled, factor * plain, atol=1e-9 * factor)


@given(
    st.floats(-LARGEST, LARGEST) | st.sampled_from([0.1, 1e8 + 0.1, 1e200, 5e-324, LARGEST]),
    st.integers(1, 9),
    st.sampled_from(list(STAGES["advantage"].variants["mean_std"].option("ddof").domain.words)),
    st.sampled_from([0.0, 1e-8]),
)
def test_identical_rewards_have_advantage_exactly_zero(reward, size, ddof, eps):
    chosen = Conventions.of(advantage=("mean_std", {"ddof": ddof, "eps": eps}))
    evaluation = evaluate(build_scenario(rewards=[[reward] * size], conventions=chosen))
    assert evaluation.advantages.tolist() == [[0.0] * size]
    assert evaluation.mean[0] == reward


@some
@given(scenarios(), st.data())
def test_permuting_prompts_and_completions_permutes_the_results(scenario, data):
    P, G = scenario.sizes["P"], scenario.sizes["G"]
    p = np.array(data.draw(st.permutations(range(P))))
    g = np.array(data.draw(st.permutations(range(G))))
    moved = evaluate(
        scenario.replace(**{key: array[p][:, g] for key, array in scenario.arrays.items()})
    )
    single = scenario["rewards"].dtype == np.float32
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if single else {"rtol": 1e-9, "atol": 1e-10}
    # A group whose spread is rounding alone may come out otherwise in another order.
    plain = evaluate(scenario)
    assume(((plain.std == 0) | (plain.std > 1e-3)).all())
    for key in ("advantages", "token_advantages", "contribution", "gradient", "kl", "weight"):
        expected = getattr(plain, key)[p][:, g]
        np.testing.assert_allclose(getattr(moved, key), expected, **tolerance, err_msg=key)
    np.testing.assert_allclose(moved.objective, plain.objective, **tolerance)


def per_cell(key):
    """Axes of an array beyond prompt and completion."""
    return len(ARRAYS[key].axes) - 2


@some
@given(scenarios(), st.sampled_from([NAN, INF, -INF, 1e308, -1e308]))
def test_what_does_not_count_changes_nothing(scenario, garbage):
    valid, present = scenario.valid, scenario["present"]
    dirty = {}
    for key in sorted(set(scenario.arrays) - {"mask", "present"}):
        own = present.reshape(present.shape + (1,) * per_cell(key))
        counts = valid if ARRAYS[key].axes == "PGL" else own
        with np.errstate(over="ignore"):
            filler = scenario[key].dtype.type(garbage)
        dirty[key] = np.where(counts, scenario[key], filler)
    assert_same_results(evaluate(scenario), evaluate(scenario.replace(**dirty)))
    assert same_scenario(scenario, scenario.replace(**dirty))


@some
@given(scenarios())
def test_padding_a_batch_changes_nothing_that_counts(scenario):
    # More positions and absent completions; the conventions that read the width are left out.
    assume(scenario.conventions["aggregation"].variant not in ("constant", "length_only"))
    P, G, L = (scenario.sizes[axis] for axis in "PGL")
    wide = resize(scenario, G=G + 2, L=L + 3)
    mask, present = wide["mask"].copy(), wide["present"].copy()
    mask[..., L:] = False
    present[:, G:] = False
    padded, plain = evaluate(wide.replace(mask=mask, present=present)), evaluate(scenario)
    for key in ("advantages", "gradient", "contribution"):
        kept = getattr(padded, key)[:P, :G]
        kept = kept[..., :L] if kept.ndim == 3 else kept
        np.testing.assert_allclose(kept, getattr(plain, key), rtol=1e-6, atol=1e-7, err_msg=key)
    assert padded.objective == pytest.approx(plain.objective, rel=1e-6, abs=1e-7)


@given(npst.arrays(float, 20, elements=st.floats(allow_nan=False)))
def test_k3_is_never_negative_and_zero_at_zero_only(d):
    values = k3(d)
    assert (values >= 0).all()
    assert (values[d == 0] == 0).all()
    assert (values[np.abs(d) > 1e-150] > 0).all()


@given(npst.arrays(np.float32, 20, elements=st.floats(allow_nan=False, width=32)))
def test_k3_is_never_negative_in_single_precision(d):
    assert (k3(d) >= 0).all()


@some
@given(scenarios(surrogate=Choice("clip", {"epsilon_low": 0.2, "epsilon_high": 0.3})))
def test_clipping_never_raises_the_objective_of_a_token(scenario):
    evaluation = evaluate(scenario)
    unclipped = evaluation.factor * evaluation.ratio * evaluation.token_advantages
    assert (evaluation.surrogate <= unclipped + 1e-5 * np.abs(unclipped)).all()


@some
@given(scenarios())
def test_clipped_tokens_have_no_policy_gradient_of_their_own(scenario):
    assume(scenario.conventions["ratio"].variant == "token")
    evaluation = evaluate(scenario)
    stopped = evaluation.clipped_low | evaluation.clipped_high | evaluation.dual_clipped
    assert not evaluation.policy_gradient[stopped].any()
    assert not (evaluation.clipped_low & (evaluation.token_advantages >= 0)).any()
    assert not (evaluation.clipped_high & (evaluation.token_advantages <= 0)).any()


@some
@given(scenarios())
def test_contributions_sum_to_the_objective(scenario):
    evaluation = evaluate(scenario)
    expected = np.sum(evaluation.weight.astype(float) * evaluation.per_token)
    assert evaluation.objective == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert evaluation.objective == pytest.approx(
        evaluation.contribution.sum(dtype=float), rel=1e-9, abs=1e-12
    )
    assert evaluation.loss == -evaluation.objective
    np.testing.assert_allclose(
        evaluation.gradient,
        evaluation.policy_gradient + evaluation.kl_gradient,
        rtol=1e-6,
        atol=1e-9,
    )


MEANS = [
    Choice("completion_mean", {"empty": "drop"}),
    Choice("token_mean"),
    *(Choice("prompt_mean", {"inner": inner}) for inner in ("tokens", "completions")),
]


@some
@given(st.data())
def test_weights_of_a_mean_sum_to_one(data):
    every = {"truncated": Choice("keep"), "tied": Choice("keep"), "accumulation": Choice("factor")}
    scenario = data.draw(scenarios(aggregation=data.draw(st.sampled_from(MEANS)), **every))
    weight = evaluate(scenario).weight
    assert weight.sum(dtype=float) == pytest.approx(float(scenario.valid.any()), rel=1e-6)
    assert (weight >= 0).all()


@some
@given(scenarios(tied=Choice("drop"), truncated=Choice("keep")))
def test_the_groups_that_are_dropped_are_the_tied_ones(scenario):
    computed = evaluate(scenario)
    assert np.array_equal(computed.kept, computed.valid & ~computed.tied[:, None, None])


@some
@given(scenarios())
def test_number_type_is_kept_and_inputs_are_neither_changed_nor_shared(scenario):
    before = {key: array.tobytes() for key, array in scenario.arrays.items()}
    evaluation = evaluate(scenario)
    for key in ("advantages", "ratio", "kl", "contribution", "gradient", "weight", "logp_new"):
        assert getattr(evaluation, key).dtype == scenario["rewards"].dtype, key
    arrays = [value for value in results(evaluation).values() if isinstance(value, np.ndarray)]
    for key, array in scenario.arrays.items():
        assert array.tobytes() == before[key]
        assert not any(np.shares_memory(array, result) for result in arrays)


@some
@given(scenarios(extreme=True))
def test_results_are_never_nan(scenario):
    evaluation = evaluate(scenario)
    for key, value in results(evaluation).items():
        assert not np.isnan(value).any(), key
    assert not np.isnan(list(evaluation.metrics.values())).any()


@given(
    st.data(),
    st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from([0.0, 0.2, 1.0]),
    st.sampled_from([0.0, 0.04, 1e6]),
)
def test_objective_is_never_nan_also_for_values_above_zero(data, shape, epsilon, beta):
    anything = npst.arrays(float, shape, elements=st.floats(-LARGEST, LARGEST) | st.just(-INF))
    rewards = npst.arrays(float, shape[:2], elements=st.floats(-1e308, 1e308))
    result = grpo_objective(
        data.draw(anything),
        data.draw(anything),
        data.draw(anything),
        data.draw(rewards),
        data.draw(npst.arrays(bool, shape)),
        epsilon=epsilon,
        beta=beta,
    )
    assert not np.isnan([result[key] for key in ("objective", "loss", "mean_kl")]).any()
    assert np.isfinite(result["advantages"]).all()


@some
@given(scenarios())
def test_drift_of_zero_is_on_policy(scenario):
    # A delta below 1 stops tokens that have not moved at all.
    assume(scenario.conventions["surrogate"].options.get("delta", 1.0) >= 1)
    evaluation = evaluate(dataclasses.replace(scenario, drift=0.0))
    assert (evaluation.ratio[scenario.valid] == 1).all()
    assert evaluation.metrics["kl_to_old"] == 0
    assert evaluation.metrics["clip"] == 0


@given(st.text(max_size=20) | st.lists(st.text(max_size=3) | st.lists(st.text()), max_size=3))
def test_text_is_refused_in_words(value):
    with pytest.raises(ScenarioError, match=r"^rewards"):
        group_advantages(value)


@some
@given(scenarios(), st.integers(1, 5), st.integers(1, 5), st.integers(1, 5))
def test_growing_and_cutting_back_changes_nothing(scenario, p, g, n):
    sizes = scenario.sizes
    grown = resize(scenario, P=sizes["P"] + p, G=sizes["G"] + g, L=sizes["L"] + n)
    assert same_scenario(resize(grown, **sizes), scenario)
