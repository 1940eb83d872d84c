"""The curve of the surrogate is the surrogate: at 200 ratios, for every variant and sign."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import STAGES, Conventions, build_scenario, evaluate
from grpo_core.clip_cases import CASES, cases_of, clip_band
from grpo_core.curves import surrogate_curve, surrogate_regions

RATIOS = np.geomspace(0.02, 50, 200)
VARIANTS = list(STAGES["surrogate"].variants)
each = pytest.mark.parametrize("variant", VARIANTS)
both_signs = pytest.mark.parametrize("advantage", [1.0, -1.0, 2.5, -0.3])


def of(variant, **options):
    return Conventions.of(surrogate=(variant, options), kl=("k3", {"beta": 0.0}))


def batch(variant, advantage, ratios):
    """An evaluation whose tokens have these ratios, up to rounding."""
    old = np.full((1, 1, len(ratios)), -10.0)
    return evaluate(
        build_scenario(
            rewards=[[0.0]],
            advantages=[[advantage]],
            logp_old=old,
            logp_new=old + np.log(ratios),
            conventions=of(variant).replace("advantage", "given"),
        )
    )


@each
@both_signs
def test_the_curve_is_what_a_batch_of_these_ratios_gets(variant, advantage):
    evaluation = batch(variant, advantage, RATIOS)
    ratios = evaluation.ratio[0, 0]
    value, d_ratio = surrogate_curve(of(variant), ratios, advantage)
    assert_array_equal(value, evaluation.surrogate[0, 0])
    # dJ/dlogp = weight * d_ratio * ratio
    weight = evaluation.weight[0, 0]
    assert_allclose(evaluation.policy_gradient[0, 0], weight * d_ratio * ratios, rtol=1e-14)


@each
@both_signs
def test_the_surrogate_is_proportional_to_the_size_of_the_advantage(variant, advantage):
    # Which is why all tokens of a sign lie on one curve.
    one, slope = surrogate_curve(of(variant), RATIOS, np.sign(advantage))
    value, d_ratio = surrogate_curve(of(variant), RATIOS, advantage)
    assert_allclose(value, abs(advantage) * one, rtol=1e-15)
    assert_allclose(d_ratio, abs(advantage) * slope, rtol=1e-15)


@each
@both_signs
def test_the_derivative_is_the_slope_of_the_curve(variant, advantage):
    step = 1e-7
    corners = [region.low for region in surrogate_regions(of(variant), advantage)]
    smooth = np.min(np.abs(RATIOS[:, None] - corners), axis=1) > 2 * step
    above, _ = surrogate_curve(of(variant), RATIOS + step, advantage)
    below, _ = surrogate_curve(of(variant), RATIOS - step, advantage)
    _, slope = surrogate_curve(of(variant), RATIOS, advantage)
    assert_allclose(((above - below) / (2 * step))[smooth], slope[smooth], atol=1e-6)


def test_regions_of_the_clip_by_hand():
    conventions = of("dual_clip", epsilon_low=0.2, epsilon_high=0.28, dual_clip=3.0)
    up = [(r.case.key, r.low, r.high) for r in surrogate_regions(conventions, 1.0)]
    down = [(r.case.key, r.low, r.high) for r in surrogate_regions(conventions, -1.0)]
    inf = np.inf
    assert up == [
        ("outside", 0.0, 0.8),
        ("inside", 0.8, 1.28),
        ("clipped_high", 1.28, inf),
    ]
    assert down == [
        ("clipped_low", 0.0, 0.8),
        ("inside", 0.8, 1.28),
        ("outside", 1.28, 3.0),
        ("dual_clipped", 3.0, inf),
    ]


@pytest.mark.parametrize("low", [0.0, 3e-4, 0.2, 1.0])
@pytest.mark.parametrize("high", [0.0, 4e-4, 0.28, 4.0, 1e6])
@pytest.mark.parametrize("advantage", [1.0, -1.0])
@each
def test_regions_leave_no_gap_and_say_what_a_token_in_them_meets(variant, low, high, advantage):
    conventions = of(variant, epsilon_low=low, epsilon_high=high)
    regions = surrogate_regions(conventions, advantage)
    assert (regions[0].low, regions[-1].high) == (0.0, np.inf)
    assert all(left.high == right.low for left, right in pairwise(regions))
    for region in regions:
        middle = (region.low + min(region.high, 1e4)) / 2
        _, (slope,) = surrogate_curve(conventions, [middle], advantage)
        assert region.case.stopped == (slope == 0)


def test_cases_are_told_in_the_number_type_of_the_batch():
    # 1.2 in float32 is a little above 1.2 in float64: on the edge nothing is clipped.
    conventions = of("clip")
    for dtype in (np.float32, np.float64):
        band = clip_band(conventions, dtype)
        ratio = np.array([[[band[1]]]])
        flags = type("Flags", (), {f"{n}": np.zeros((1, 1, 1), bool) for n in
                                   ("clipped_low", "clipped_high", "dual_clipped")})  # fmt: skip
        assert list(CASES)[cases_of(flags, ratio, np.ones((1, 1, 1)), band)[0, 0, 0]] == "inside"


def test_a_ratio_of_zero_and_an_infinite_one_have_a_value_without_warning():
    value, slope = surrogate_curve(of("clip"), [0.0, np.inf], -1.0)
    assert value.tolist() == [-0.8, -np.inf]
    assert slope.tolist() == [0.0, -1.0]
