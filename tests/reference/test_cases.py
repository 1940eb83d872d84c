"""The recorded GRPO cases, each at its own tolerance."""

import json
from pathlib import Path

import numpy as np
import pytest

from grpo_core import (
    Choice,
    Conventions,
    group_advantages,
    grpo_objective,
    process_advantages,
)
from grpo_core.batch import prepare
from grpo_core.evaluation import evaluate_batch

SPECIAL = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def numbers(value):
    """Nested lists with "nan", "inf" and "-inf" spelled as text -> the same with floats."""
    if isinstance(value, list):
        return [numbers(item) for item in value]
    return SPECIAL.get(value, value) if isinstance(value, str) else value


def load(pattern):
    """All cases of the files that match, as pytest parameters by case id."""
    files = sorted(Path(__file__).parent.glob(pattern))
    cases = [case for file in files for case in json.loads(file.read_text())["cases"]]
    assert cases, f"no case files match {pattern}"
    return [pytest.param(case, id=case["id"]) for case in cases]


OBJECTIVES = load("grpo_objective*.json") + load("grpo_autograd.json")


def arguments(case):
    return {key: numbers(value) for key, value in case["inputs"].items()}


def settings(case):
    return {key: case["kwargs"][key] for key in ("epsilon", "beta", "eps")}


def evaluation_of(case, **more):
    """All intermediate arrays of a case.

    By way of the batch, not of a scenario: some cases hold log-probabilities above 0, for which
    the formulas are defined but which a scenario refuses.
    """
    given, options = arguments(case), settings(case)
    epsilon = options["epsilon"]
    conventions = Conventions(
        {
            "kl": Choice("k3", {"beta": options["beta"]}),
            "advantage": Choice("mean_std", {"eps": options["eps"]}),
            "surrogate": Choice("clip", {"epsilon_low": epsilon, "epsilon_high": epsilon}),
            **more,
        }
    )
    rewards = np.array(given["rewards"], dtype=float)
    batch = prepare(
        rewards=rewards,
        mask=np.array(given["mask"], dtype=bool),
        present=np.ones(rewards.shape, dtype=bool),
        logp_new=np.array(given["logp"], dtype=float),
        logp_old=np.array(given["old_logp"], dtype=float),
        logp_ref=np.array(given["ref_logp"], dtype=float),
    )
    return evaluate_batch(batch, conventions)


@pytest.mark.parametrize("case", load("grpo_advantages.json"))
def test_advantages_equal_the_exact_ones(case):
    computed = group_advantages(numbers(case["inputs"]["rewards"]), eps=case["kwargs"]["eps"])
    expected = np.array(numbers(case["outputs"]["advantages"]))
    np.testing.assert_allclose(computed, expected, **case["tolerance"], strict=True)


@pytest.mark.parametrize("case", OBJECTIVES)
def test_objective_loss_and_kl_equal_the_exact_ones(case):
    computed = grpo_objective(**arguments(case), **settings(case))
    expected = case["outputs"]
    for key in ("objective", "loss", "mean_kl"):
        np.testing.assert_allclose(computed[key], numbers(expected[key]), **case["tolerance"])
    np.testing.assert_allclose(
        computed["advantages"], np.array(numbers(expected["advantages"])), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("case", OBJECTIVES)
def test_gradient_equals_the_exact_one(case):
    evaluation = evaluation_of(case)
    expected = np.array(numbers(case["outputs"]["grad_objective_wrt_logp"]), dtype=float)
    np.testing.assert_allclose(evaluation.gradient, expected, **case["tolerance"], strict=True)
    np.testing.assert_allclose(
        evaluation.objective, numbers(case["outputs"]["objective"]), **case["tolerance"]
    )


EMPTY = "if_empty_completions_are_left_out_of_the_mean"


@pytest.mark.parametrize("case", [c for c in OBJECTIVES if EMPTY in c.values[0]["outputs"]])
def test_dropping_empty_completions_equals_the_exact_result(case):
    dropped = Choice("completion_mean", {"empty": "drop"})
    evaluation = evaluation_of(case, aggregation=dropped)
    for key, value in case["outputs"][EMPTY].items():
        np.testing.assert_allclose(getattr(evaluation, key), numbers(value), **case["tolerance"])


def test_a_directory_of_cases_is_complete():
    # A file that is lost, or cut short, would pass every test above.
    assert len(load("grpo_advantages.json")) == 50
    assert len(OBJECTIVES) == 66


@pytest.mark.parametrize("case", load("process_supervision.json"))
def test_process_advantages_equal_the_exact_ones(case):
    options = {key: case["kwargs"][key] for key in ("ddof", "eps")}
    computed = process_advantages(**arguments(case), **options)
    expected = np.array(numbers(case["outputs"]["advantages"]))
    np.testing.assert_allclose(computed, expected, **case["tolerance"], strict=True)
