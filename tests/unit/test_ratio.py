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


def test_product_ratio_is_how_likely_the_whole_completion_has_become():
    # log-ratios .3 and -.1: e^.2 at both tokens, and each moves it by the whole of both.
    evaluation = evaluated(
        [[[-1.0, -1.0], [-1.0, -1.0]]], [[[-1.3, -0.9], [-1.0, -1.0]]], "sequence_product"
    )
    np.testing.assert_allclose(evaluation.ratio[0, 0], np.exp([0.2, 0.2]), rtol=1e-14)
    expected = evaluation.advantages[0, 0] * np.exp(0.2) / 2  # clipped at 1.2 it would be 0
    assert evaluation.clipped_high[0, 0].all()
    wide = evaluate(evaluation.scenario.choose("surrogate", epsilon_high=1.0))
    np.testing.assert_allclose(wide.gradient[0, 0], [expected, expected], rtol=1e-13)


def test_token_gradient_of_a_completion_ratio():
    # Values e^.1 as under `sequence`; tokens answer for themselves: A s / (N T) each.
    new, old = [[[-1.0, -1.0], [-1.0, -1.0]]], [[[-1.3, -0.9], [-1.0, -1.0]]]
    whole, token = (evaluated(new, old, key) for key in ("sequence", "sequence_token"))
    np.testing.assert_array_equal(whole.ratio, token.ratio)
    expected = token.advantages[0, 0] * np.exp(0.1) / 4
    np.testing.assert_allclose(token.gradient[0, 0], [expected, expected], rtol=1e-13)
    # With advantages that differ within the completion the two part.
    given = {
        "token_advantages": [[[1.0, 0.0], [0.0, 0.0]]],
    }
    parted = [
        evaluate(result.scenario.replace(**given).choose("advantage", "given_per_token")).gradient
        for result in (whole, token)
    ]
    np.testing.assert_allclose(parted[0][0, 0], np.exp(0.1) / 8 * np.ones(2))
    np.testing.assert_allclose(parted[1][0, 0], [np.exp(0.1) / 4, 0])


def clamped(key, clamp, new, old):
    scenario = evaluated(new, old, key).scenario.choose("ratio", clamp=clamp)
    return evaluate(scenario.choose("surrogate", epsilon_low=1.0, epsilon_high=1e6))


def test_a_held_log_ratio_has_no_gradient():
    new, old = [[[-1.0, -1.0], [-1.0, -4.0]]], [[[-4.0, -1.1], [-1.0, -1.0]]]
    evaluation = clamped("token", 2.0, new, old)
    np.testing.assert_allclose(
        evaluation.log_ratio, [[[2.0, 0.1], [0.0, -2.0]]], rtol=1e-12, atol=1e-15
    )
    assert evaluation.gradient[0, 0, 0] == 0
    assert evaluation.gradient[0, 0, 1] != 0


@pytest.mark.parametrize("key", ["sequence", "sequence_token", "sequence_product"])
def test_a_completions_log_ratio_is_held_from_above_only(key):
    new, old = [[[-1.0], [-9.0]]], [[[-9.0], [-1.0]]]
    evaluation = clamped(key, 2.0, new, old)
    assert evaluation.log_ratio.tolist() == [[[2.0], [-8.0]]]
    assert evaluation.gradient[0, 0, 0] == 0


def test_a_masked_token_of_overflowing_ratio_spoils_nothing():
    # log-ratios 0 and 200, the second one masked; A +-1
    new, old = [[[-1.0, 0.0], [-1.0, 0.0]]], [[[-1.0, -200.0], [-1.0, 0.0]]]
    evaluation = evaluated(new, old, mask=[[[1, 0], [1, 1]]], dtype=np.float32)
    assert np.isfinite(evaluation.gradient).all()
    assert evaluation.gradient[0, 0].tolist() == [0.5, 0]
