"""Stage KL: three estimators of the pull towards the reference policy, in two places."""

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
    [("k1", INF, -INF), ("k2", INF, INF), ("k3", INF, INF)],
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
