"""Stage surrogate: which side the sign of the advantage lets the ratio go."""

import numpy as np
import pytest

from grpo_core import Conventions, build_scenario, evaluate

INF = np.inf
BAND = {"epsilon_low": 0.2, "epsilon_high": 0.5}


def evaluated(ratio, advantage, variant="clip", dtype=float, **options):
    """One token with the given log-ratio's exponential, advantage given."""
    log_ratio = np.log(ratio) if ratio else -INF
    old, new = (-log_ratio, 0.0) if log_ratio > 0 else (0.0, log_ratio)
    return evaluate(
        build_scenario(
            rewards=np.zeros((1, 1), dtype),
            advantages=np.array([[advantage]], dtype),
            logp_new=np.array([[[new]]], dtype),
            logp_old=np.array([[[old]]], dtype),
            conventions=Conventions.of(
                advantage="given",
                kl=("k3", {"beta": 0.0}),
                surrogate=(variant, {**BAND, **options}),
            ),
        )
    )


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "slope", "low", "high"),
    [
        # inside the band 0.8 .. 1.5: ratio * A
        (1.2, 2.0, 2.4, 2.4, False, False),
        (1.2, -2.0, -2.4, -2.4, False, False),
        # above: A > 0 stops at 1.5 A, A < 0 goes on paying
        (2.0, 2.0, 3.0, 0.0, False, True),
        (2.0, -2.0, -4.0, -4.0, False, False),
        # below: A < 0 stops at 0.8 A, A > 0 goes on paying
        (0.5, -2.0, -1.6, 0.0, True, False),
        (0.5, 2.0, 1.0, 1.0, False, False),
        # no advantage: nothing to clip
        (2.0, 0.0, 0.0, 0.0, False, False),
        (0.5, 0.0, 0.0, 0.0, False, False),
    ],
)
def test_clipping_knows_the_sign(ratio, advantage, value, slope, low, high):
    evaluation = evaluated(ratio, advantage)
    assert evaluation.surrogate.item() == pytest.approx(value, rel=1e-14)
    # d(ratio A)/dlogp = ratio A inside, 0 where it stopped; there is one token of weight 1.
    assert evaluation.gradient.item() == pytest.approx(slope, rel=1e-14)
    assert evaluation.clipped_low.item() is low
    assert evaluation.clipped_high.item() is high


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_on_the_edge_the_gradient_is_that_of_the_inside(dtype):
    # exp(0) = 1 is exactly on the edge of a band of no width.
    for advantage in (1.5, -1.5):
        evaluation = evaluated(1.0, advantage, dtype=dtype, epsilon_low=0.0, epsilon_high=0.0)
        assert evaluation.gradient.item() == advantage
        assert evaluation.metrics["clip"] == 0


def test_dual_clip_bounds_what_a_negative_advantage_can_cost():
    evaluation = evaluated(5.0, -2.0, "dual_clip", dual_clip=3.0)
    assert (evaluation.surrogate.item(), evaluation.gradient.item()) == (-6, 0)
    assert evaluation.dual_clipped.item()
    assert not evaluation.clipped_high.item()
    assert evaluation.metrics["dual_clip"] == evaluation.metrics["clip"] == 1


@pytest.mark.parametrize(("ratio", "advantage"), [(5, 2.0), (2.9, -2.0), (0.1, -2.0), (1, 0.0)])
def test_dual_clip_changes_nothing_else(ratio, advantage):
    plain, dual = evaluated(ratio, advantage), evaluated(ratio, advantage, "dual_clip")
    assert plain.surrogate.item() == dual.surrogate.item()
    assert plain.gradient.item() == dual.gradient.item()
    assert not dual.dual_clipped.item()


@pytest.mark.parametrize("variant", ["clip", "dual_clip"])
@pytest.mark.parametrize(
    ("ratio", "advantage", "value"),
    [
        (INF, 2.0, 3.0),  # stopped by the band, however large the ratio
        (INF, 0.0, 0.0),
        (0.0, -2.0, -1.6),
        (0.0, 2.0, 0.0),
        (1.2, 1e308, 1.2e308),
        (1.2, -1e308, -1.2e308),
    ],
)
def test_extreme_ratios_and_advantages(variant, ratio, advantage, value):
    evaluation = evaluated(ratio, advantage, variant)
    assert evaluation.surrogate.item() == pytest.approx(value, rel=1e-14)
    assert not np.isnan(evaluation.gradient).any()


def test_overflowing_ratio_with_negative_advantage_is_infinite_unless_bounded():
    assert evaluated(INF, -2.0).surrogate.item() == -INF
    assert evaluated(INF, -2.0, "dual_clip").surrogate.item() == -6
    # the bound itself can be beyond range: 3 * 1e308
    assert evaluated(INF, -1e308, "dual_clip").surrogate.item() == -INF
