"""Drift: keeping it changes no number, and a seeded direction moves what nothing moved."""

from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from grpo_core import Evaluation, build_scenario, evaluate, same_scenario
from grpo_core.drift import keep_drift, seeded_direction, unmoved, with_drift
from pages._ui.examples import load_examples

EXAMPLES = {key: example.scenario for key, example in load_examples().items()}


@pytest.mark.parametrize("drift", [-1.0, 0.0, 0.5, 1.7, 3.0])
@pytest.mark.parametrize("key", EXAMPLES)
def test_keeping_the_drift_changes_no_number(key, drift):
    drifted = with_drift(EXAMPLES[key], drift)
    before, after = evaluate(drifted), evaluate(keep_drift(drifted))
    for name in (field.name for field in fields(Evaluation)):
        if name not in ("scenario", "held", "attribution"):
            assert_array_equal(getattr(after, name), getattr(before, name), err_msg=name)
    if before.attribution is not None:
        assert_array_equal(after.attribution.parts, before.attribution.parts)
    assert keep_drift(drifted).drift == 1.0
    assert not after.held.any()


def test_keeping_a_drift_of_one_is_the_scenario_itself():
    scenario = EXAMPLES["four-answers"]
    assert keep_drift(scenario) is scenario


def test_what_stands_in_padding_survives_keeping():
    scenario = build_scenario(
        rewards=[[1, 0]],
        logp_new=[[[-1.0, np.nan], [-1.0, -0.25]]],
        logp_old=[[[-2.0, -3.0], [-1.5, -3.0]]],
        mask=[[[1, 0], [1, 0]]],
        drift=0.5,
    )
    kept = keep_drift(scenario)["logp_new"][0]
    assert_array_equal(kept, [[-1.5, np.nan], [-1.25, -0.25]])


def test_the_drift_written_in_by_hand():
    # -2 + 1.5 (1) = -0.5; -0.5 + 1.5 (0.4) = 0.1, which is held at 0
    scenario = build_scenario(
        rewards=[[1.0]], logp_new=[[[-1.0, -0.1]]], logp_old=[[[-2.0, -0.5]]], drift=1.5
    )
    assert keep_drift(scenario)["logp_new"].tolist() == [[[-0.5, 0.0]]]
    assert evaluate(scenario).held.tolist() == [[[False, True]]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(5))
def test_a_seeded_direction_moves_the_unmoved_tokens_and_no_others(seed, dtype):
    rng = np.random.default_rng(1)
    old = -rng.exponential(size=(2, 3, 40)).astype(dtype)
    old[0, 0, :5] = 0
    new = np.where(rng.random(old.shape) < 0.5, old, old - dtype(0.25))
    mask = rng.random(old.shape) < 0.8
    scenario = build_scenario(
        rewards=np.zeros((2, 3), dtype), logp_new=new, logp_old=old, mask=mask
    )
    moved = seeded_direction(scenario, seed)
    still = unmoved(scenario)
    assert moved["logp_new"].dtype == dtype
    assert_array_equal(still, mask & (new == old))
    assert_array_equal(moved["logp_new"][~still], new[~still])
    assert np.all(moved["logp_new"][still] != old[still])
    assert np.all(moved["logp_new"] <= 0)
    assert not unmoved(moved).any()
    step = (moved["logp_new"] - old)[still]
    assert 0.05 < np.std(step) < 0.15
    assert same_scenario(moved, seeded_direction(scenario, seed))
    assert not same_scenario(moved, seeded_direction(scenario, seed + 1))


def test_minus_infinity_has_no_direction():
    scenario = build_scenario(rewards=[[1.0]], logp_new=[[[-np.inf]]], logp_old=[[[-np.inf]]])
    assert not unmoved(scenario).any()
    assert seeded_direction(scenario)["logp_new"].tolist() == [[[-np.inf]]]


def test_the_drift_wakes_clipping_on_an_on_policy_batch():
    scenario = EXAMPLES["on-policy"]
    assert evaluate(with_drift(scenario, 3.0)).metrics["clip"] == 0
    assert evaluate(with_drift(seeded_direction(scenario), 3.0)).metrics["clip"] > 0
