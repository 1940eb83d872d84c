"""The curves of the KL page are the rows of the KL stage, and nothing else."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import STAGES, Conventions, build_scenario, evaluate
from grpo_core.kl_curves import in_each_place, kl_curve, kl_distance, mean_estimates
from pages._ui.examples import load_examples

INF = np.inf
ROWS = list(STAGES["kl"].variants)
EXAMPLES = {key: example.scenario for key, example in load_examples().items()}
D = np.linspace(-12, 12, 200)


@pytest.mark.parametrize("row", ROWS)
def test_at_200_points_the_curve_is_what_an_evaluation_of_such_tokens_says(row):
    evaluation = evaluate(
        build_scenario(
            rewards=[[0.0]],
            logp_new=[[np.full(200, -20.0)]],
            logp_ref=[[D - 20.0]],
            conventions=Conventions.of(kl=(row, {"beta": 1.0}), aggregation="token_mean"),
        )
    )
    value, derivative = kl_curve(row, kl_distance(evaluation)[0, 0])
    assert_array_equal(value, evaluation.kl[0, 0])
    assert_allclose(-derivative / 200, evaluation.kl_gradient[0, 0], rtol=1e-14)


@pytest.mark.parametrize("row", ROWS)
def test_the_slope_is_the_derivative_by_logp_new(row):
    # d = logp_ref - logp_new, so the derivative by d has the other sign.
    step = 1e-6
    up, down = kl_curve(row, D + step)[0], kl_curve(row, D - step)[0]
    assert_allclose(-(up - down) / (2 * step), kl_curve(row, D)[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("row", ROWS)
def test_a_curve_takes_any_d_and_keeps_its_shape_and_type(row):
    d = np.array([[-INF, 0.0], [1000.0, INF]], dtype=np.float32)
    value, derivative = kl_curve(row, d, {"beta": 0.5, "place": "reward", "unknown": 1})
    assert value.shape == derivative.shape == d.shape
    assert value.dtype == np.float32
    assert not np.isnan(value).any()
    assert not np.isnan(derivative).any()
    assert value[0, 1] == 0


def test_d_reads_the_policy_that_the_penalty_reads():
    scenario = build_scenario(
        rewards=[[1.0, 0.0]], logp_new=[[[-1.0]] * 2], logp_old=[[[-2.0]] * 2],
        logp_ref=[[[-4.0]] * 2],
    )  # fmt: skip
    assert kl_distance(evaluate(scenario)).ravel().tolist() == [-3.0, -3.0]
    moved = scenario.choose("kl", place="reward")
    assert kl_distance(evaluate(moved)).ravel().tolist() == [-2.0, -2.0]


@pytest.mark.parametrize("key", EXAMPLES)
def test_the_mean_by_the_chosen_row_is_the_mean_kl(key):
    evaluation = evaluate(EXAMPLES[key])
    chosen = evaluation.scenario.conventions["kl"].variant
    assert mean_estimates(evaluation)[chosen] == evaluation.mean_kl


@pytest.mark.parametrize("row", ROWS)
def test_the_mean_by_another_row_is_that_rows_mean_kl(row):
    scenario = EXAMPLES["four-answers"]
    means = mean_estimates(evaluate(scenario))
    assert means[row] == evaluate(scenario.choose("kl", row, beta=0.04)).mean_kl


def test_the_two_places_are_the_two_evaluations():
    evaluation = evaluate(EXAMPLES["kl-in-reward"])
    places = in_each_place(evaluation)
    assert places["reward"] is evaluation
    other = evaluate(evaluation.scenario.choose("kl", place="objective"))
    assert_array_equal(places["objective"].gradient, other.gradient)
    assert not places["reward"].kl_gradient.any()
    assert not places["objective"].reward_penalty.any()
