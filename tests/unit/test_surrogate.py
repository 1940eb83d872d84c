"""Stage surrogate: which side the sign of the advantage lets the ratio go."""

import numpy as np
import pytest

from grpo_core import STAGES, Conventions, build_scenario, evaluate

INF = np.inf
BAND = {"epsilon_low": 0.2, "epsilon_high": 0.5}


def _band(variant):
    """`BAND` where a row has one."""
    known = {option.key for option in STAGES["surrogate"].variants[variant].options}
    return {key: value for key, value in BAND.items() if key in known}


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
                surrogate=(variant, {**_band(variant), **options}),
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


@pytest.mark.parametrize(
    ("ratio", "advantage", "clip", "dual", "delta"),
    [
        (0.5, 1, -0.5, -0.5, -0.5),
        (0.5, -1, 0.8, 0.8, 0.8),
        (1.5, 1, -1.2, -1.2, -1.2),
        (1.5, -1, 1.5, 1.5, 1.5),
        (5.0, -1, 5.0, 3.0, 2.0),
    ],
)
def test_losses_of_the_clipped_family(ratio, advantage, clip, dual, delta):
    # Both bounds .2, dual clip at 3, delta 2.
    band = {"epsilon_low": 0.2, "epsilon_high": 0.2}
    for row, more, loss in (
        ("clip", {}, clip),
        ("dual_clip", {"dual_clip": 3.0}, dual),
        ("two_sided", {"delta": 2.0}, delta),
    ):
        assert evaluated(ratio, advantage, row, **band, **more).loss == pytest.approx(loss)


def test_a_delta_below_the_band_ends_it_for_a_positive_advantage():
    # min(min(2, 1.1) A, 1.5 A) with A 2: 2.2, without gradient; A -2: -3, the second branch.
    up, down = (evaluated(2.0, A, "two_sided", delta=1.1) for A in (2.0, -2.0))
    assert (up.surrogate.item(), up.gradient.item()) == (2.2, 0)
    assert down.surrogate.item() == pytest.approx(-3.0)
    assert down.dual_clipped.item()


def test_the_share_of_clipped_tokens_knows_the_sign_of_the_advantage():
    # Ratios .5 .5 1.5 1.5 with A + - + -: only -.5 and +1.5 are stopped.
    log = np.log([0.5, 0.5, 1.5, 1.5])
    scenario = build_scenario(
        advantages=[[1, -1, 1, -1]],
        logp_new=(log - 1).reshape(1, 4, 1),
        logp_old=np.full((1, 4, 1), -1.0),
        conventions=Conventions.of(advantage="given"),
    )
    assert evaluate(scenario).metrics["clip"] == 0.5


def at_two_nats(variant, **options):
    """One token of logp -2, ratio 1 and advantage 1: loss, and gradient of the objective."""
    result = evaluate(
        build_scenario(
            advantages=[[1.0]],
            logp_new=[[[-2.0]]],
            conventions=Conventions.of(
                advantage="given", kl=("k3", {"beta": 0.0}), surrogate=(variant, options)
            ),
        )
    )
    return result.loss, result.gradient.item()


@pytest.mark.parametrize(
    ("options", "weight"),
    [
        # TRL takes epsilon_high as the bound itself; its default of .2 holds every weight there
        ({"bound": "absolute", "epsilon_high": 0.2}, 0.2),
        ({"bound": "absolute", "epsilon_high": 5.0}, 1.0),
        ({"bound": "offset", "epsilon_low": 0.2, "epsilon_high": 0.2}, 1.0),
        # The lower bound is an offset either way; above the upper one it says nothing.
        ({"bound": "absolute", "epsilon_low": 0.2, "epsilon_high": 5.0}, 1.0),
        ({"bound": "absolute", "epsilon_low": 0.2, "epsilon_high": 0.2}, 0.2),
    ],
)
def test_cispo_bounds_the_weight_of_the_log_probability(options, weight):
    assert at_two_nats("cispo", **options) == pytest.approx((2 * weight, weight))


@pytest.mark.parametrize(("ratio", "weight"), [(0.1, 0.8), (0.9, 0.9), (1.4, 1.4), (9.0, 1.5)])
def test_cispo_leaves_no_token_without_gradient(ratio, weight):
    for advantage in (2.0, -2.0):
        result = evaluated(ratio, advantage, "cispo")
        assert result.gradient.item() == pytest.approx(weight * advantage)
        assert result.metrics["clip"] == 0


@pytest.mark.parametrize("low", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("high", [0.2, 4.0])
@pytest.mark.parametrize("ratio", [0.1, 0.9, 1.4, 9.0])
def test_a_bound_of_cispo_is_the_same_as_an_offset_from_1(low, high, ratio):
    offset = evaluated(ratio, 2.0, "cispo", epsilon_low=low, epsilon_high=high, bound="offset")
    bound = {"epsilon_high": 1 + high, "bound": "absolute"}
    absolute = evaluated(ratio, 2.0, "cispo", epsilon_low=low, **bound)
    assert absolute.gradient.item() == offset.gradient.item()


def test_reinforce_is_the_log_probability_times_the_advantage():
    assert at_two_nats("reinforce") == (2.0, 1.0)


def test_sapo_on_policy_is_worth_2_over_tau_and_moves_like_the_ratio():
    up, down = evaluated(1.0, 3.0, "sapo"), evaluated(1.0, -3.0, "sapo")
    assert up.surrogate.item() == pytest.approx(2 / 1.0 * 3)
    assert down.surrogate.item() == pytest.approx(-2 / 1.05 * 3)
    assert (up.gradient.item(), down.gradient.item()) == pytest.approx((3, -3))


def test_sapo_gradient_fades_on_both_sides():
    # 4 s (1 - s) ratio with s = sigmoid(ratio - 1); at ratio 3: s = .880797, times 3.
    s = 1 / (1 + np.exp(-2.0))
    assert evaluated(3.0, 1.0, "sapo").gradient.item() == pytest.approx(12 * s * (1 - s))
    assert evaluated(1e9, 1.0, "sapo").gradient.item() == 0
    assert evaluated(1e9, -1.0, "sapo").surrogate.item() == pytest.approx(-4 / 1.05)


@pytest.mark.parametrize(
    ("ratio", "up", "down"),
    [(0.5, "1.1204", "0.3398"), (1, "1.0000", "1.0000"), (2, "0.1991", "1.0827")],
)
def test_vespo_weights(ratio, up, down):
    # w^2 e^(3 (1 - w)) for A >= 0, w^3 e^(2 (1 - w)) below
    assert f"{evaluated(ratio, 1.0, 'vespo').gradient.item():.4f}" == up
    assert f"{-evaluated(ratio, -1.0, 'vespo').gradient.item():.4f}" == down


def test_vespo_weights_a_completion_as_a_whole():
    # log-ratios .5 and -.2: w = e^.3 at both tokens, whatever the ratio stage says
    result = evaluate(
        build_scenario(
            advantages=[[1.0]],
            logp_new=[[[-1.0, -1.2]]],
            logp_old=[[[-1.5, -1.0]]],
            conventions=Conventions.of(
                advantage="given", surrogate="vespo", aggregation="token_sum",
                kl=("k3", {"beta": 0.0}),
            ),
        )
    )  # fmt: skip
    w = np.exp(0.3)
    np.testing.assert_allclose(result.gradient, [[[w**2 * np.exp(3 - 3 * w)] * 2]])


def test_dro_pulls_softly_to_the_old_policy():
    # A 1, step log 2 with beta .5: value log p - .25 log(2)^2, slope 1 - .5 log 2
    result = evaluated(2.0, 1.0, "dro", dro_beta=0.5)
    assert result.surrogate.item() == pytest.approx(0.0 - 0.25 * np.log(2) ** 2)
    assert result.gradient.item() == pytest.approx(1 - 0.5 * np.log(2))


def dppo(new, old, advantage, row, **options):
    """Value and gradient of one token with these two probabilities."""
    result = evaluate(
        build_scenario(
            advantages=[[advantage]],
            logp_new=[[[np.log(new)]]],
            logp_old=[[[np.log(old)]]],
            conventions=Conventions.of(
                advantage="given", kl=("k3", {"beta": 0.0}), surrogate=(row, options)
            ),
        )
    )
    return result.surrogate.item(), result.gradient.item()


def test_dppo_lets_a_rare_token_go_that_hardly_moves_probability():
    # .01 to .03 is a ratio of 3, and a step of .02 only
    assert dppo(0.03, 0.01, 1.0, "dppo_tv", form="ratio") == pytest.approx((3, 3))
    assert dppo(0.5, 0.2, 1.0, "dppo_tv", form="ratio") == (0, 0)
    assert dppo(0.5, 0.2, -1.0, "dppo_tv", form="ratio") == pytest.approx((-2.5, -2.5))
    assert dppo(0.2, 0.5, -1.0, "dppo_tv", form="ratio") == (0, 0)


def test_dppo_may_weigh_the_log_probability_by_the_truncated_ratio():
    # ratio 3 held at 2
    value = dppo(0.03, 0.01, 1.0, "dppo_tv", truncate=2.0)
    assert value == pytest.approx((2 * np.log(0.03), 2))


def test_dppo_kl_measures_two_coins():
    # KL of coins .2 and .5: .2 log .4 + .8 log 1.6 = .19274
    far = 0.2 * np.log(0.4) + 0.8 * np.log(1.6)
    for bound, stopped in ((far - 1e-6, True), (far + 1e-6, False)):
        options = {"form": "ratio", "epsilon_high": bound}
        assert (dppo(0.5, 0.2, 1.0, "dppo_kl", **options)[1] == 0) is stopped


def test_dppo_kl_of_sure_tokens_is_a_number_in_single_precision():
    result = evaluated(0.5, -1.0, "dppo_kl", dtype=np.float32)
    assert np.isfinite(result.surrogate).all()


def test_gmpo_holds_single_tokens_in_log_space():
    # A 1: log-ratios 1 (held at .4) and -.2: exp(mean(.4, -.2)) = e^.1 at both tokens; only the
    # second one moves it, by half of each of two tokens' values.
    result = evaluate(
        build_scenario(
            advantages=[[1.0]],
            logp_new=[[[-1.0, -1.2]]],
            logp_old=[[[-2.0, -1.0]]],
            conventions=Conventions.of(
                advantage="given", surrogate="gmpo", kl=("k3", {"beta": 0.0})
            ),
        )
    )
    np.testing.assert_allclose(result.surrogate, [[[np.exp(0.1)] * 2]])
    np.testing.assert_allclose(result.gradient, [[[0, np.exp(0.1) / 2]]])
    assert result.clipped_high.tolist() == [[[True, False]]]


@pytest.mark.parametrize("row", list(STAGES["surrogate"].variants))
def test_no_advantage_no_policy_gradient(row):
    result = evaluated(1.3, 0.0, row)
    if row != "dro":  # whose pull to the old policy needs none
        assert result.gradient.item() == 0
        assert result.surrogate.item() == 0
