"""Stage KL: estimators of the pull towards the reference policy, in three places."""

import numpy as np
import pytest

from grpo_core import STAGES, Conventions, build_scenario, evaluate

INF = np.inf
ESTIMATORS = list(STAGES["kl"].variants)


def evaluated(new, ref, estimator, old=None, rewards=None, **options):
    """One prompt; rewards all alike unless given, so that only the KL acts."""
    new = np.asarray(new)
    return evaluate(
        build_scenario(
            rewards=np.zeros(new.shape[:2], new.dtype) if rewards is None else rewards,
            logp_new=new,
            logp_old=new if old is None else old,
            logp_ref=np.asarray(ref, new.dtype),
            conventions=Conventions.of(kl=(estimator, options)),
        )
    )


@pytest.mark.parametrize(
    ("estimator", "value", "derivative"),
    [
        # d = logp_ref - logp_new = log 2
        ("k1", -np.log(2), 1.0),
        ("k2", np.log(2) ** 2 / 2, -np.log(2)),
        ("k3", 1 - np.log(2), -1.0),
        ("abs", np.log(2), -1.0),
    ],
)
def test_each_estimator_by_hand(estimator, value, derivative):
    evaluation = evaluated(np.log([[[0.25]]]), np.log([[[0.5]]]), estimator, beta=0.5)
    assert evaluation.kl.item() == pytest.approx(value, rel=1e-14)
    assert evaluation.kl_penalty.item() == pytest.approx(0.5 * value, rel=1e-14)
    assert evaluation.kl_gradient.item() == pytest.approx(-0.5 * derivative, rel=1e-14)
    assert evaluation.objective == pytest.approx(-0.5 * value, rel=1e-14)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_kl_where_the_policies_agree(estimator):
    values = [[[-1.0, -INF], [-1e308, -0.0]]]
    evaluation = evaluated(values, values, estimator)
    assert not evaluation.kl.any()
    assert not np.signbit(evaluation.kl).any()
    assert not np.signbit(evaluation.mean_kl)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_beta_of_zero_shows_the_kl_and_does_not_use_it(estimator):
    evaluation = evaluated([[[-1.0, -INF]]], [[[-2.0, 0.0]]], estimator, beta=0.0)
    assert evaluation.kl.all()
    assert not evaluation.kl_penalty.any()
    assert not evaluation.gradient.any()
    assert evaluation.objective == 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_kl_in_the_reward_reads_the_policy_that_sampled_and_has_no_gradient(estimator):
    old, ref = [[[-1.0], [-2.0]]], [[[-1.5], [-1.0]]]
    options = {"estimator": estimator, "beta": 0.3, "place": "reward"}
    evaluation = evaluated([[[-1.3], [-1.9]]], ref, old=old, **options)
    sampled = evaluated(old, ref, **options)
    np.testing.assert_array_equal(evaluation.reward_penalty, sampled.reward_penalty)
    np.testing.assert_array_equal(evaluation.scores, -evaluation.reward_penalty[..., 0])
    np.testing.assert_array_equal(evaluation.gradient, evaluation.policy_gradient)


@pytest.mark.parametrize(
    ("estimator", "nothing_in_ref", "nothing_in_new"),
    [("k1", INF, -INF), ("k2", INF, INF), ("k3", INF, INF), ("abs", INF, INF)],
)
def test_kl_at_log_probability_of_minus_infinity(estimator, nothing_in_ref, nothing_in_new):
    evaluation = evaluated([[[-1.0, -INF]]], [[[-INF, -1.0]]], estimator)
    assert evaluation.kl[0, 0].tolist() == [nothing_in_ref, nothing_in_new]
    for key in ("gradient", "objective", "mean_kl", "loss"):
        assert not np.isnan(getattr(evaluation, key)).any()


def test_k2_has_no_early_overflow():
    # d = 1.5e154: d*d is beyond range, d*d/2 is not.
    evaluation = evaluated([[[-1.5e154]]], [[[0.0]]], "k2", beta=0.0)
    assert evaluation.kl.item() == pytest.approx(1.125e308, rel=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_k3_per_token_is_accurate_for_tiny_differences(dtype):
    # k3 of d and of -d differ by d**3/3 only; up to 1e-3 both are d**2/2 (1 + d/3 + d**2/12).
    d = np.geomspace(1e-9, 1e-3, 50).astype(dtype).reshape(1, 1, -1)
    exact = d.astype(float) ** 2 / 2 * (1 + d.astype(float) / 3 + d.astype(float) ** 2 / 12)
    evaluation = evaluated(-d, np.zeros_like(d), "k3")
    np.testing.assert_allclose(evaluation.kl, exact, rtol=1e-6 if dtype is np.float32 else 1e-10)
    assert evaluation.kl.dtype == dtype


@pytest.mark.parametrize(
    ("estimator", "options", "value", "derivative"),
    [
        ("k1", {}, "-1.000000", "1.000000"),
        ("abs", {}, "1.000000", "-1.000000"),
        ("k2", {}, "0.500000", "-1.000000"),
        ("k3", {}, "0.718282", "-1.718282"),
        # the name with a plus: the same value, the gradient of k2
        ("k3", {"gradient": "k2"}, "0.718282", "-1.000000"),
        ("k1", {"gradient": "k2"}, "-1.000000", "-1.000000"),
    ],
)
def test_estimators_at_one_nat(estimator, options, value, derivative):
    evaluation = evaluated([[[-2.0]]], [[[-1.0]]], estimator, beta=1.0, **options)
    assert f"{evaluation.kl.item():.6f}" == value
    assert f"{-evaluation.kl_gradient.item():.6f}" == derivative


def test_weighting_by_the_ratio():
    # d = -.2: e^-.2 + .2 - 1 = .0187308; ratio e^.5 times that .0308818, and rho (-d) = rho .2
    # for the gradient: rho (e^d - d - 1) + rho (1 - e^d) = -rho d.
    options = {"old": [[[-1.5]]], "beta": 1.0}
    plain = evaluated([[[-1.0]]], [[[-1.2]]], "k3", **options)
    weighted = evaluated([[[-1.0]]], [[[-1.2]]], "k3", weight="ratio", **options)
    assert f"{plain.kl.item():.7f}" == "0.0187308"
    assert f"{weighted.kl.item():.7f}" == "0.0308818"
    assert -weighted.kl_gradient.item() == pytest.approx(np.exp(0.5) * 0.2)
    assert weighted.objective == pytest.approx(-weighted.mean_kl)


def test_weighting_by_the_ratio_of_the_completion_reaches_all_its_tokens():
    # Geometric mean of two tokens; only the first is off the reference, with k2 of 1/2.
    scenario = evaluated(
        [[[-1.0, -1.0]]], [[[-2.0, -1.0]]], "k2", old=[[[-1.4, -1.0]]], beta=1.0, weight="ratio"
    ).scenario
    gradient = -evaluate(scenario.choose("ratio", "sequence")).kl_gradient[0, 0]
    s = np.exp(0.2)  # weight 1/2 a token: s/2 * k2, and s/2 * (logp - ref) = s/2 directly
    np.testing.assert_allclose(gradient, [s / 2 + s * 0.5 / 4, s * 0.5 / 4])


def test_the_score_weight_adds_the_value_to_the_gradient():
    plain, score = (
        evaluated([[[-2.0]]], [[[-1.0]]], "k3", beta=1.0, weight=weight)
        for weight in ("none", "score")
    )
    assert score.kl.item() == plain.kl.item()
    # 1 - e + (e - 2) = -1: as k2's
    assert -score.kl_gradient.item() == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("d", "plain", "held"), [(5.0, 142.413159, 10.0), (20.0, 485165174.409790, 10.0)]
)
def test_a_held_kl_has_no_gradient(d, plain, held):
    arguments = ([[[-d - 1]]], [[[-1.0]]], "k3")
    free = evaluated(*arguments, beta=1.0)
    assert free.kl.item() == pytest.approx(plain, rel=1e-8)
    clamped = evaluated(*arguments, beta=1.0, clamp_in=20.0, clamp_out=10.0)
    assert clamped.kl.item() == held
    assert clamped.kl_gradient.item() == 0


def test_a_held_difference_has_no_gradient():
    # k2 of 30 held at 20: 200; and below the clamp nothing changes.
    far = evaluated([[[-31.0]]], [[[-1.0]]], "k2", beta=1.0, clamp_in=20.0)
    assert (far.kl.item(), far.kl_gradient.item()) == (200, 0)
    near = evaluated([[[-11.0]]], [[[-1.0]]], "k2", beta=1.0, clamp_in=20.0)
    assert (near.kl.item(), near.kl_gradient.item()) == (50, 10)


def test_k3_overflows_in_single_precision_first():
    for dtype, finite in ((np.float32, False), (np.float64, True)):
        evaluation = evaluated(np.array([[[-90.0]]], dtype), [[[-1.0]]], "k3")
        assert np.isfinite(evaluation.kl.item()) is np.bool_(finite)


def test_an_impossible_reference_is_infinite_at_its_token_only():
    evaluation = evaluated([[[-1.0, -1.0]]], [[[-1.0, -INF]]], "k3")
    assert evaluation.kl.tolist() == [[[0, INF]]]


def test_a_tied_group_still_pulls_to_the_reference():
    # policy 0; .04 (e^.5 - .5 - 1) = .04 * .148721
    evaluation = evaluated([[[-1.5], [-1.5]]], [[[-1.0], [-1.0]]], "k3")
    assert not evaluation.surrogate.any()
    assert evaluation.loss == pytest.approx(0.005949, abs=5e-7)
    assert evaluation.gradient.all()


def test_kl_in_the_returns_falls_on_a_token_and_all_before_it():
    # k1 at the old policy: .5, masked, -.25 and 1, times beta .1; the rewards are tied.
    evaluation = evaluate(
        build_scenario(
            rewards=[[1.0, 1.0]],
            logp_new=[[[-1.0] * 4, [-1.0] * 4]],
            logp_ref=[[[-1.5, -9.0, -0.75, -2.0], [-1.0] * 4]],
            mask=[[[1, 0, 1, 1], [1, 1, 1, 1]]],
            conventions=Conventions.of(kl=("k1", {"beta": 0.1, "place": "returns"})),
        )
    )
    np.testing.assert_allclose(evaluation.token_advantages[0, 0], [-0.125, 0, -0.075, -0.1])
    assert not evaluation.token_advantages[0, 1].any()
    assert not evaluation.advantages.any()
    assert not evaluation.kl_penalty.any()
    assert not evaluation.kl_gradient.any()
