"""Stage ratio: per token and per completion, and how a derivative flows back."""

import numpy as np
import pytest

from grpo_core import Conventions, build_scenario, evaluate

INF, NAN = np.inf, np.nan


def evaluated(new, old, ratio="token", rewards=((1.0, 0.0),), dtype=float, **more):
    return evaluate(
        build_scenario(
            rewards=np.array(rewards, dtype),
            logp_new=np.array(new, dtype),
            logp_old=np.array(old, dtype),
            conventions=Conventions.of(ratio=ratio, kl=("k3", {"beta": 0.0})),
            **more,
        )
    )


def test_token_ratio_is_the_quotient_of_probabilities():
    # probabilities 0.3 against 0.2, and 0.1 against 0.4
    evaluation = evaluated(np.log([[[0.3], [0.1]]]), np.log([[[0.2], [0.4]]]))
    np.testing.assert_allclose(evaluation.ratio, [[[1.5], [0.25]]], rtol=1e-14)


def test_sequence_ratio_is_the_geometric_mean_over_valid_tokens():
    # log-ratios 0.4, -0.1 (and a masked one): mean 0.15, for both tokens alike.
    evaluation = evaluated(
        [[[-1.0, -1.1, NAN], [-1.0, -1.0, -1.0]]],
        [[[-1.4, -1.0, INF], [-1.0, -1.0, -1.0]]],
        "sequence",
        mask=[[[1, 1, 0], [1, 1, 1]]],
    )
    np.testing.assert_allclose(evaluation.log_ratio[0, 0], [0.15, 0.15, 0], atol=1e-15)
    np.testing.assert_allclose(evaluation.ratio[0, 0], np.exp([0.15, 0.15, -INF]), rtol=1e-14)


def test_sequence_ratio_of_one_token_is_its_token_ratio():
    new, old = [[[-1.0], [-2.0]]], [[[-1.3], [-1.9]]]
    a, b = evaluated(new, old), evaluated(new, old, "sequence")
    np.testing.assert_array_equal(a.ratio, b.ratio)
    np.testing.assert_array_equal(a.gradient, b.gradient)


def test_sequence_gradient_couples_the_tokens():
    # Only the mean of the log-ratios matters, so each of the T tokens gets the same gradient:
    # 1/(N T) * A s per token, summed over T tokens, times 1/T. N = 2, T = 2, A = 1, s = e^0.1.
    evaluation = evaluated(
        [[[-1.0, -1.0], [-1.0, -1.0]]], [[[-1.3, -0.9], [-1.0, -1.0]]], "sequence"
    )
    expected = evaluation.advantages[0, 0] * np.exp(0.1) / 4
    np.testing.assert_allclose(evaluation.gradient[0, 0], [expected, expected], rtol=1e-13)


def test_on_policy_ratio_is_exactly_one():
    for ratio in ("token", "sequence"):
        values = [[[-0.1, -INF, -1e308], [-3.0, -0.7, -0.0]]]
        assert (evaluated(values, values, ratio).ratio == 1).all()


def test_ratio_at_infinite_log_probabilities():
    evaluation = evaluated([[[-INF, -1.0], [-1.0, -INF]]], [[[-1.0, -INF], [-1.0, -INF]]])
    assert evaluation.ratio[0, 0].tolist() == [0, INF]
    assert evaluation.ratio[0, 1].tolist() == [1, 1]


def test_sequence_ratio_is_finite_where_only_a_part_of_the_sum_is_not():
    # log-ratios +-1e308 twice each: their sum is 0, though half of it is beyond range.
    evaluation = evaluated(
        [[[0.0, 0.0, -1e308, -1e308], [-1.0] * 4]],
        [[[-1e308, -1e308, 0.0, 0.0], [-1.0] * 4]],
        "sequence",
    )
    assert evaluation.ratio[0, 0].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("ratio", ["token", "sequence"])
def test_float32_overflow_is_infinite_without_a_warning(ratio):
    evaluation = evaluated([[[0.0], [0.0]]], [[[-89.0], [-88.5]]], ratio, [[1.0, -3e8]], np.float32)
    assert evaluation.ratio.dtype == evaluation.gradient.dtype == np.float32
    assert evaluation.ratio[0, 0, 0] == INF
    assert np.isfinite(evaluation.ratio[0, 1, 0])
