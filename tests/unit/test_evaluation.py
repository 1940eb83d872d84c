"""evaluate: stages joined up, every array kept, metrics as trainers log them."""

import dataclasses

import numpy as np
import pytest

from grpo_core import STAGES, Choice, Conventions, Scenario, build_scenario, evaluate
from grpo_core.terms import Term
from tests.reference.combinations import combinations, edge_scenario

INF, NAN = np.inf, np.nan
PER_TOKEN = (
    *("logp_new", "logp_old", "logp_ref", "token_advantages", "log_ratio", "ratio", "surrogate"),
    *("kl", "kl_penalty", "reward_penalty", "per_token", "weight", "contribution"),
    *("policy_gradient", "kl_gradient", "gradient", "factor", "entropy_bonus"),
)
FLAGS = ("valid", "held", "clipped_low", "clipped_high", "dual_clipped", "kept")


def arrays_of(evaluation):
    values = {f.name: getattr(evaluation, f.name) for f in dataclasses.fields(evaluation)}
    return {key: value for key, value in values.items() if isinstance(value, np.ndarray)}


def worked():
    """1 prompt, 2 completions, 2 tokens, the last one masked.

    Rewards 1 and 0: mean 0.5, std 0.5, so A = +1, -1 (eps 0). Ratios 2 and 1 | 0.5. With the band
    0.8..1.2 the first token stops at 1.2, the last at 0.8 * -1. k3 of d = log 2: 1 - log 2.
    """
    log2 = np.log(2)
    return build_scenario(
        rewards=[[1.0, 0.0]],
        logp_new=[[[-log2, -log2], [-2 * log2, NAN]]],
        logp_old=[[[-2 * log2, -log2], [-log2, NAN]]],
        logp_ref=[[[0.0, -log2], [-2 * log2, NAN]]],
        mask=[[[1, 1], [1, 0]]],
        conventions=Conventions.of(advantage=("mean_std", {"eps": 0}), kl=("k3", {"beta": 0.1})),
    )


def test_a_batch_worked_by_hand():
    evaluation, k = evaluate(worked()), 1 - np.log(2)
    expected = {
        "advantages": [[1, -1]],
        "ratio": [[[2, 1], [0.5, 0]]],
        "surrogate": [[[1.2, 1], [-0.8, 0]]],
        "clipped_high": [[[1, 0], [0, 0]]],
        "clipped_low": [[[0, 0], [1, 0]]],
        "kl": [[[k, 0], [0, 0]]],
        "per_token": [[[1.2 - 0.1 * k, 1], [-0.8, 0]]],
        "weight": [[[0.25, 0.25], [0.5, 0]]],
        "contribution": [[[0.3 - 0.025 * k, 0.25], [-0.4, 0]]],
        # token 0 is stopped, but its KL pulls: 0.25 * 0.1 * (e^log2 - 1); token 1: 0.25 * 1 * 1
        "gradient": [[[0.025, 0.25], [0, 0]]],
    }
    for key, value in expected.items():
        np.testing.assert_allclose(getattr(evaluation, key), value, atol=1e-15, err_msg=key)
    assert evaluation.objective == pytest.approx(0.15 - 0.025 * k, rel=1e-13)
    assert evaluation.mean_kl == pytest.approx(0.25 * k, rel=1e-13)


def test_metrics_by_hand():
    # 3 valid tokens: one clipped on each side. k3 of the log-ratios log 2, 0, -log 2:
    # 1 - log 2, 0, log 2 - 1/2, which add to 1/2.
    metrics = evaluate(worked()).metrics
    assert metrics == pytest.approx(
        {
            "clip_low": 1 / 3,
            "clip_high": 1 / 3,
            "dual_clip": 0,
            "clip": 2 / 3,
            "tied_groups": 0,
            "kl_to_old": 1 / 6,
            "ratio_min": 0.5,
            "ratio_max": 2,
            "gradient_norm": np.hypot(0.025, 0.25),
        },
        rel=1e-12,
    )
    assert all(type(value) is float for value in metrics.values())


def test_kl_to_old_looks_from_the_old_policy():
    # One token, ratio 1/2: k3(log 1/2) = 1/2 + log 2 - 1; the other way round it is 1 - log 2.
    log2 = np.log(2)
    scenario = build_scenario(rewards=[[1]], logp_new=[[[-2 * log2]]], logp_old=[[[-log2]]])
    assert evaluate(scenario).metrics["kl_to_old"] == pytest.approx(log2 - 0.5, rel=1e-14)


def test_share_of_tied_groups():
    metrics = evaluate(build_scenario(rewards=[[1, 1], [1, 0], [NAN, 1], [0, 0]])).metrics
    assert metrics["tied_groups"] == 0.5


def test_on_policy_objective_is_zero_and_its_gradient_is_not():
    evaluation = evaluate(build_scenario(rewards=[[1.0, 0.0, 0.0, 1.0]]))
    assert (evaluation.objective, evaluation.loss) == (0, 0)
    assert not np.signbit([evaluation.objective, evaluation.loss]).any()
    assert evaluation.gradient.all()


def test_gradient_norm_is_finite_where_squares_are_not():
    for size in (1e-200, 1e200):
        scenario = build_scenario(
            rewards=[[size, 0]], conventions=Conventions.of(advantage="mean_only")
        )
        # A = +-size/2, weight 1/2: two gradients of size/4
        norm = evaluate(scenario).metrics["gradient_norm"]
        assert norm == pytest.approx(size / 4 * 2**0.5, rel=1e-14)


def test_batch_without_any_valid_token():
    evaluation = evaluate(build_scenario(rewards=[[1, 0]], mask=[[[0], [0]]]))
    assert (evaluation.objective, evaluation.loss, evaluation.mean_kl) == (0, 0, 0)
    assert evaluation.metrics["ratio_min"] == evaluation.metrics["ratio_max"] == 1
    assert not any(evaluation.metrics[key] for key in ("clip", "kl_to_old", "gradient_norm"))


EVERY_KL = combinations(with_options=("kl", "correction"))
EVERY_SCORE = combinations(with_options=("rewards", "advantage", "whitening"))
SURROGATES = list(STAGES["surrogate"].variants)
# Rows of the advantage stage that do not judge components, and those that judge no sum of them.
WITHOUT_PARTS = {"given", "given_per_token", "process", "returns"}
NO_SUM = {"best_over_second", "pass_at_k"}


def with_surrogate(found, key):
    return [conventions for conventions in found if conventions["surrogate"].variant == key]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_shapes_types_padding_and_sum_under_every_combination(surrogate, dtype):
    for conventions in with_surrogate(EVERY_KL, surrogate):
        scenario = edge_scenario(conventions, dtype)
        before = {key: array.copy() for key, array in scenario.arrays.items()}
        evaluation = evaluate(scenario)
        assert_arrays_fit(evaluation, np.dtype(dtype))
        assert_steps_and_attribution_fit(evaluation)
        assert evaluation.objective == pytest.approx(
            evaluation.contribution.sum(dtype=float), rel=1e-12, abs=1e-15
        )
        for key, array in before.items():
            np.testing.assert_array_equal(scenario[key], array, strict=True)
        results = list(arrays_of(evaluation).values())
        given = list(scenario.arrays.values())
        for i, array in enumerate(results):
            others = results[i + 1 :] + given
            assert not any(np.shares_memory(array, other) for other in others), conventions.choices


def assert_arrays_fit(evaluation, dtype):
    """Shapes and number types; finite, and 0 where nothing counts."""
    scenario = evaluation.scenario
    words = str(scenario.conventions.choices)
    for key in (*PER_TOKEN, *FLAGS):
        array = getattr(evaluation, key)
        wanted = np.dtype(bool) if key in FLAGS else dtype
        assert (array.shape, array.dtype) == (scenario["mask"].shape, wanted), (key, words)
        assert np.isfinite(array).all(), (key, words)
        assert not array[~scenario.valid].any(), (key, words)
    for key in ("scores", "advantages"):
        assert getattr(evaluation, key).dtype == dtype, (key, words)
    for key in ("weight", "contribution"):
        assert not getattr(evaluation, key)[~evaluation.kept].any(), (key, words)
    assert not (evaluation.kept & ~evaluation.valid).any(), words


def assert_steps_and_attribution_fit(evaluation):
    """Both are there exactly where the conventions have them, and of the right shape."""
    scenario, conventions = evaluation.scenario, evaluation.scenario.conventions
    assert (evaluation.step_advantages is not None) == (
        conventions["advantage"].variant == "process"
    )
    if evaluation.step_advantages is not None:
        assert evaluation.step_advantages.shape == scenario["step_ends"].shape
    there = (
        conventions["rewards"].variant != "outcome"
        and conventions["advantage"].variant not in WITHOUT_PARTS
    )
    assert (evaluation.attribution is not None) == there
    if there:
        C, (P, G, _) = 1 + len(scenario.terms), scenario["mask"].shape
        found = evaluation.attribution
        assert found.names == ("task", *(term.name for term in scenario.terms))
        for key, shape in {"weights": (C,), "values": (C, P, G), "weighted": (C, P, G)}.items():
            assert getattr(found, key).shape == shape, key
        assert (found.parts.shape, found.shares.shape) == ((C, P, G), (C, P))
        summed = conventions["rewards"].variant == "sum_then_normalize"
        if not (summed and conventions["advantage"].variant in NO_SUM):
            single = evaluation.advantages.dtype == np.float32
            np.testing.assert_allclose(
                found.parts.sum(axis=0),
                evaluation.advantages,
                atol=1e-5 if single else 1e-12,
                err_msg=str(conventions.choices),
            )


def ends_of_the_range(dtype):
    """3 prompts x 9 completions x 27 tokens at the ends of a number type, and terms of them."""
    big = float(np.finfo(dtype).max)
    tiny = float(np.finfo(dtype).smallest_subnormal)
    ends = [0.0, -0.0, -tiny, -1.0, -100.0, -800.0, -big / 2, -big, -INF]
    new, old, ref = (grid.reshape(3, 9, 27) for grid in np.meshgrid(ends, ends, ends))
    # No two of these have the same number of values, so that each meets every other.
    given = {
        "rewards": np.resize([big, -big, 0.0, tiny, 1.0, NAN, -big / 2], (3, 9)),
        "advantages": np.resize([big, -1.0, 0.0, -tiny, tiny, 1.0, -big], (3, 9)),
        "term_values": np.resize([-big, tiny, big, NAN, 1.0], (3, 9, 3)),
        "token_advantages": np.resize([big, -1.0, 0.0, -big, tiny], (3, 9, 27)),
        "logp_sampler": np.resize([-INF, -big, NAN, -tiny, 0.0, -1.0, -800.0], (3, 9, 27)),
        "sampler_weights": np.resize([0.0, big, 1.0, tiny], (3, 9, 27)),
        "entropy": np.resize([big, 0.0, tiny, 1.0, big, 2.0], (3, 9, 27)),
        "truncated": np.resize([0.0, 1.0, 0.0, 0.0], (3, 9)),
        "token_rewards": np.resize([0.0, big, -tiny, -big, big, 1.0, -0.0, -1.0], (3, 9, 27)),
        "step_ends": np.resize([0.0, 4.0, 4.0, 26.0], (3, 9, 4)),
        "step_rewards": np.resize([big, 1.0, -big, tiny, 0.0], (3, 9, 4)),
        "logp_new": new,
        "logp_old": old,
        "logp_ref": ref,
    }
    return {key: np.asarray(value, dtype) for key, value in given.items()}


EXTREME_TERMS = (
    Term("heavy", 1e6),
    Term("light", -1e-3, Choice("format_bonus")),
    Term("tokens", 1.0, Choice("per_token")),
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_never_nan_at_the_ends_of_the_number_range(surrogate, dtype):
    arrays = ends_of_the_range(dtype)
    scenario = build_scenario(terms=EXTREME_TERMS, **arrays)
    for conventions in with_surrogate([*EVERY_SCORE, *EVERY_KL[::4]], surrogate):
        for beta in (0.0, 1e6):
            chosen = scenario.with_conventions(conventions.replace("kl", beta=beta))
            # A caller may have told NumPy to raise; over- and underflow must not reach them either.
            with np.errstate(all="raise"):
                evaluation = evaluate(chosen)
            assert_no_nan(evaluation)


def assert_no_nan(evaluation):
    words = str(evaluation.scenario.conventions.choices)
    for key, array in arrays_of(evaluation).items():
        assert not np.isnan(array).any(), (key, words)
    if evaluation.attribution is not None:
        for key in ("weighted", "parts", "shares"):
            assert not np.isnan(getattr(evaluation.attribution, key)).any(), (key, words)
    numbers = [evaluation.objective, evaluation.loss, evaluation.mean_kl]
    assert not np.isnan([*numbers, *evaluation.metrics.values()]).any(), words


def test_evaluation_names_its_scenario():
    scenario = worked()
    assert evaluate(scenario).scenario is scenario
    assert isinstance(scenario, Scenario)
