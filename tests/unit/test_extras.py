"""Stages entropy and accumulation: a bonus beside the policy term, and a last factor."""

import numpy as np
import pytest

from grpo_core import Conventions, build_scenario, evaluate


def evaluated(**stages):
    return evaluate(
        build_scenario(
            rewards=[[1.0, 0.0]],
            logp_new=[[[-1.0, -1.0], [-2.0, np.nan]]],
            logp_old=[[[-1.3, -1.0], [-1.8, np.nan]]],
            logp_ref=[[[-1.5, -1.0], [-1.8, np.nan]]],
            entropy=[[[0.5, 1.5], [2.0, np.nan]]],
            mask=[[[1, 1], [1, 0]]],
            conventions=Conventions.of(**stages),
        )
    )


def test_the_bonus_is_averaged_like_the_policy_term():
    plain = evaluated()
    for aggregation, mean in (("completion_mean", (1.0 + 2.0) / 2), ("token_mean", 4.0 / 3)):
        base = evaluated(aggregation=aggregation)
        bonus = evaluated(aggregation=aggregation, entropy=("bonus", {"coefficient": 0.1}))
        assert bonus.objective - base.objective == pytest.approx(0.1 * mean)
        np.testing.assert_array_equal(bonus.gradient, base.gradient)
    assert not plain.entropy_bonus.any()
    assert evaluated(entropy=("bonus", {"coefficient": -0.1})).entropy_bonus[0, 0, 1] < 0


def test_the_factor_multiplies_loss_and_gradient():
    plain, quarter = evaluated(), evaluated(accumulation=("factor", {"factor": 0.25}))
    assert quarter.loss == pytest.approx(plain.loss / 4)
    np.testing.assert_allclose(quarter.gradient, plain.gradient / 4)
    np.testing.assert_array_equal(quarter.per_token, plain.per_token)
    nothing = evaluated(accumulation=("factor", {"factor": 0.0}))
    assert (nothing.loss, nothing.metrics["gradient_norm"]) == (0, 0)


def test_the_mean_of_micro_batches_is_a_sum_with_a_factor():
    # Two halves of a batch with a factor of 1/2 each are the whole, where every completion counts
    # alike.
    scenario = evaluated().scenario
    rewards = [[1.0, 0.0], [0.0, 3.0]]
    arrays = {
        key: np.repeat(scenario[key], 2, axis=0)
        for key in ("logp_new", "logp_old", "logp_ref", "mask", "entropy")
    }
    whole = evaluate(build_scenario(rewards=rewards, **arrays))
    halves = [
        evaluate(
            build_scenario(
                rewards=rewards[p : p + 1],
                **{key: array[p : p + 1] for key, array in arrays.items()},
                conventions=Conventions.of(accumulation=("factor", {"factor": 0.5})),
            )
        )
        for p in range(2)
    ]
    assert sum(half.loss for half in halves) == pytest.approx(whole.loss)
    np.testing.assert_allclose(np.concatenate([half.gradient for half in halves]), whole.gradient)
