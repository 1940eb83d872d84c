"""The curve of the surrogate is the surrogate: at 200 ratios, for every variant and sign."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from grpo_core import STAGES, Conventions, build_scenario, evaluate
from grpo_core.clip_cases import CASES, cases_of, clip_band, weights_log_probability
from grpo_core.curves import surrogate_curve, surrogate_regions

RATIOS = np.geomspace(0.02, 50, 200)
VARIANTS = list(STAGES["surrogate"].variants)
each = pytest.mark.parametrize("variant", VARIANTS)
both_signs = pytest.mark.parametrize("advantage", [1.0, -1.0, 2.5, -0.3])


# Rows whose value is a function of the ratio; the others read the log-probability itself.
BY_RATIO = ["clip", "dual_clip", "two_sided", "sapo", "gmpo"]
# Rows that weight the log-probability with a constant of the update: no slope of a curve.
HELD = ["cispo", "vespo", "dppo_tv", "dppo_kl"]
# Not proportional to the advantage: its pull to the old policy does not know it.
UNLIKE = ["dro"]


def of(variant, **options):
    return Conventions.of(surrogate=(variant, options), kl=("k3", {"beta": 0.0}))


def batch(variant, advantage, ratios, log_old):
    """An evaluation of completions of one token each, with these ratios up to rounding."""
    old = np.full((1, len(ratios), 1), log_old)
    return evaluate(
        build_scenario(
            rewards=np.zeros((1, len(ratios))),
            advantages=np.full((1, len(ratios)), advantage),
            logp_old=old,
            logp_new=old + np.log(ratios)[None, :, None],
            conventions=of(variant).replace("advantage", "given"),
        )
    )


def assert_is_the_curve_of(evaluation, variant, advantage):
    ratios = evaluation.ratio[0, :, 0]
    value, d_ratio = surrogate_curve(of(variant), ratios, advantage)
    assert_allclose(value, evaluation.surrogate[0, :, 0], rtol=1e-13, atol=1e-300)
    # dJ/dlogp = weight * d_ratio * ratio
    weight = evaluation.weight[0, :, 0]
    wanted = weight * d_ratio * ratios
    assert_allclose(evaluation.policy_gradient[0, :, 0], wanted, rtol=1e-12, atol=1e-300)


@each
@both_signs
def test_the_curve_is_what_a_batch_of_these_ratios_gets(variant, advantage):
    # The old policy was sure of each token, so that the log-probability is the log-ratio.
    evaluation = batch(variant, advantage, RATIOS[RATIOS <= 1], log_old=0.0)
    assert_is_the_curve_of(evaluation, variant, advantage)


@pytest.mark.parametrize("variant", BY_RATIO)
@both_signs
def test_of_a_row_by_the_ratio_it_is_so_whatever_the_old_policy_thought(variant, advantage):
    evaluation = batch(variant, advantage, RATIOS, log_old=-10.0)
    assert_is_the_curve_of(evaluation, variant, advantage)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_row_weights_the_log_probability_or_is_by_the_ratio(variant):
    assert weights_log_probability(of(variant)) == (variant not in BY_RATIO)


@pytest.mark.parametrize("variant", [key for key in VARIANTS if key not in UNLIKE])
@both_signs
def test_the_surrogate_is_proportional_to_the_size_of_the_advantage(variant, advantage):
    # Which is why all tokens of a sign lie on one curve.
    one, slope = surrogate_curve(of(variant), RATIOS, np.sign(advantage))
    value, d_ratio = surrogate_curve(of(variant), RATIOS, advantage)
    assert_allclose(value, abs(advantage) * one, rtol=1e-15)
    assert_allclose(d_ratio, abs(advantage) * slope, rtol=1e-15)


@pytest.mark.parametrize("variant", [key for key in VARIANTS if key not in HELD])
@both_signs
def test_the_derivative_is_the_slope_of_the_curve(variant, advantage):
    step = 1e-7
    corners = [region.low for region in surrogate_regions(of(variant), advantage)]
    smooth = np.min(np.abs(RATIOS[:, None] - corners), axis=1) > 2 * step
    above, _ = surrogate_curve(of(variant), RATIOS + step, advantage)
    below, _ = surrogate_curve(of(variant), RATIOS - step, advantage)
    _, slope = surrogate_curve(of(variant), RATIOS, advantage)
    assert_allclose(((above - below) / (2 * step))[smooth], slope[smooth], atol=1e-6, rtol=1e-6)


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


# Bounds of every row that has some, by its own names.
BOUNDS = {
    variant: [option.key for option in row.options if option.key in
              ("epsilon_low", "epsilon_high", "log_low", "log_high")]
    for variant, row in STAGES["surrogate"].variants.items()
}  # fmt: skip


@pytest.mark.parametrize("low", [0.0, 3e-4, 0.2, 1.0])
@pytest.mark.parametrize("high", [0.0, 4e-4, 0.28, 4.0, 1e6])
@pytest.mark.parametrize("advantage", [1.0, -1.0])
@pytest.mark.parametrize("variant", [key for key in VARIANTS if BOUNDS[key]])
def test_regions_leave_no_gap_and_say_what_a_token_in_them_meets(variant, low, high, advantage):
    chosen = dict(zip(BOUNDS[variant], (low, min(high, 1e3)), strict=True))
    conventions = of(variant, **chosen)
    regions = surrogate_regions(conventions, advantage)
    assert (regions[0].low, regions[-1].high) == (0.0, np.inf)
    assert all(left.high == right.low for left, right in pairwise(regions))
    for region in regions:
        middle = (region.low + min(region.high, 1e4)) / 2
        _, (slope,) = surrogate_curve(conventions, [middle], advantage)
        assert region.case.stopped == (slope == 0)


@pytest.mark.parametrize("variant", [key for key in VARIANTS if not BOUNDS[key]])
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_a_row_without_bounds_has_one_region_and_stops_nothing(variant, advantage):
    (region,) = surrogate_regions(of(variant), advantage)
    assert (region.low, region.high, region.case.key) == (0.0, np.inf, "inside")


def test_bands_that_are_no_offsets_by_hand():
    # GMPO's bounds are logarithms; TRL's CISPO bound is the weight itself; DPPO bounds no ratio.
    gmpo = clip_band(of("gmpo", log_low=0.5, log_high=0.25))
    assert gmpo == pytest.approx((0.606531, 1.284025), abs=1e-6)
    assert clip_band(of("cispo", epsilon_high=5.0, bound="absolute")) == (0.0, 5.0)
    assert clip_band(of("cispo", epsilon_low=1.0, epsilon_high=0.28)) == (0.0, 1.28)
    assert clip_band(of("dppo_tv")) is None
    assert clip_band(of("sapo")) is None


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
