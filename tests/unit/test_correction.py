"""Stage correction: weights for the mismatch of the sampler and the trainer."""

import numpy as np
import pytest

from grpo_core import Conventions, build_scenario, evaluate

NAN = np.nan


def weights(steps, dtype=float, mask=None, **options):
    """Of one completion whose tokens' ``logp_old - logp_sampler`` are `steps`."""
    steps = np.asarray(steps, float)
    old = np.minimum(-1.0, np.nan_to_num(steps) - 1.0)
    return evaluate(
        build_scenario(
            rewards=np.zeros((1, 1), dtype),
            logp_new=np.full((1, 1, len(steps)), -1.0, dtype),
            logp_old=np.array([[old]], dtype),
            logp_sampler=np.array([[old - steps]], dtype),
            mask=None if mask is None else [[mask]],
            conventions=Conventions.of(correction=("sampler", options)),
        )
    ).factor[0, 0]


STEPS = np.log([0.5, 2.0, 6.0])  # product 6, geometric mean 6^(1/3) = 1.817


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # truncated importance sampling: held at the bounds
        ({"level": "token", "mode": "truncate", "high": 3.0}, [0.5, 2, 3]),
        ({"level": "token", "mode": "truncate", "low": 0.8, "high": 0.0}, [0.8, 2, 6]),
        # IcePop: 0 outside
        ({"level": "token", "mode": "mask", "high": 3.0}, [0.5, 2, 0]),
        ({"level": "token", "mode": "mask", "low": 0.6, "high": 5.0}, [0, 2, 0]),
        # one weight for the completion
        ({"level": "sequence", "mode": "truncate", "high": 3.0}, [3, 3, 3]),
        ({"level": "sequence", "mode": "mask", "high": 3.0}, [0, 0, 0]),
        ({"level": "sequence", "mode": "mask", "high": 0.0}, [6, 6, 6]),
        ({"level": "sequence_mean", "mode": "mask", "high": 3.0}, [6 ** (1 / 3)] * 3),
        # judged by the mean, each token with its own weight
        ({"level": "sequence_filter", "mode": "mask", "high": 3.0}, [0.5, 2, 6]),
        ({"level": "sequence_filter", "mode": "mask", "high": 1.5}, [0, 0, 0]),
        ({"level": "token", "mode": "truncate", "high": 0.0, "clamp": 1.0}, [0.5, 2, np.e]),
    ],
    ids=str,
)
def test_weights_by_hand(options, expected):
    np.testing.assert_allclose(weights(STEPS, **options), expected, rtol=1e-12)


def test_a_small_mismatch_adds_up_over_a_long_completion():
    # 100 tokens of .012: e^1.2 = 3.3201 is above 3, and all of it goes; the mean is e^.012.
    steps = np.full(100, 0.012)
    assert not weights(steps, level="sequence", mode="mask", high=3.0).any()
    free = weights(steps, level="sequence", mode="mask", high=0.0)
    assert f"{free[0]:.4f}" == "3.3201"
    assert f"{weights(steps, level='sequence_mean', high=3.0)[0]:.4f}" == "1.0121"


def test_a_sampler_that_renormalises_over_what_it_keeps_biases_every_weight():
    # It keeps a mass of .9, so that its log-probabilities are too high by log(1/.9).
    steps = np.full(20, np.log(0.9))
    assert weights(steps, level="token")[0] == pytest.approx(0.9)
    assert f"{weights(steps, level='sequence')[0]:.4f}" == "0.1216"


def test_the_weight_reads_the_old_policy_and_not_the_new_one():
    # old -1, new -.5, sampler -1.2: e^.2 and not e^.7
    assert f"{weights([0.2], level='token')[0]:.4f}" == "1.2214"


def test_an_unknown_log_probability_weighs_1():
    assert weights([NAN, np.log(2.0)], level="token").tolist() == pytest.approx([1, 2])
    assert weights([NAN, NAN], level="sequence").tolist() == [1, 1]


def test_masked_tokens_are_no_part_of_a_completions_weight():
    computed = weights([np.log(2.0), 5.0], level="sequence", mask=[1, 0])
    assert computed.tolist() == pytest.approx([2, 0])


def test_the_correction_multiplies_the_surrogate_and_its_gradient_only():
    def evaluated(**stages):
        return evaluate(
            build_scenario(
                advantages=[[1.0, -1.0]],
                logp_new=[[[-1.0], [-1.5]]],
                logp_ref=[[[-2.0], [-1.0]]],
                sampler_weights=[[[0.5], [3.0]]],
                conventions=Conventions.of(advantage="given", **stages),
            )
        )

    plain, given = evaluated(), evaluated(correction="given")
    factor = np.array([[[0.5], [3.0]]])
    np.testing.assert_allclose(given.surrogate, factor * plain.surrogate)
    np.testing.assert_allclose(given.policy_gradient, factor * plain.policy_gradient)
    np.testing.assert_array_equal(given.kl_penalty, plain.kl_penalty)
    np.testing.assert_array_equal(given.kl_gradient, plain.kl_gradient)


def given(values, level, mask):
    return evaluate(
        build_scenario(
            rewards=[[0.0]],
            sampler_weights=[[values]],
            mask=[[mask]],
            conventions=Conventions.of(correction=("given", {"level": level})),
        )
    ).factor[0, 0]


def test_given_weights_pass_or_become_a_geometric_mean():
    assert given([0.5, 2.0, 9.0], "token", [1, 1, 0]).tolist() == [0.5, 2, 0]
    computed = given([0.5, 8.0, 9.0], "sequence_mean", [1, 1, 0])
    np.testing.assert_allclose(computed, [2, 2, 0], rtol=1e-7)
    assert given([0.0, 0.0], "sequence_mean", [1, 1])[0] == pytest.approx(1e-10, rel=1e-6)


@pytest.mark.parametrize("level", ["token", "sequence", "sequence_mean", "sequence_filter"])
def test_number_type_is_kept_and_extremes_are_no_nan(level):
    for steps in ([200.0, -300.0], [-300.0, -300.0], [300.0, 300.0]):
        for mode in ("truncate", "mask"):
            computed = weights(steps, np.float32, level=level, mode=mode)
            assert computed.dtype == np.float32
            assert not np.isnan(computed).any()
