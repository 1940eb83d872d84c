"""group_advantages and grpo_objective, exactly as promised."""

import inspect

import numpy as np
import pytest

from grpo_core import ScenarioError, build_scenario, evaluate, group_advantages, grpo_objective
from tests.reference.combinations import edge_scenario

INF, NAN = np.inf, np.nan


def batch(**more):
    arguments = {
        "logp": [[[-1.0, -2.0], [-1.5, -0.5]]],
        "old_logp": [[[-1.2, -2.0], [-1.0, -0.5]]],
        "ref_logp": [[[-1.0, -1.0], [-2.0, -0.5]]],
        "rewards": [[1.0, 0.0]],
        "mask": [[[1, 1], [1, 0]]],
    }
    return {**arguments, **more}


def test_signatures_are_those_promised():
    assert str(inspect.signature(group_advantages)) == "(rewards, eps=1e-08)"
    assert str(inspect.signature(grpo_objective)) == (
        "(logp, old_logp, ref_logp, rewards, mask, epsilon=0.2, beta=0.04, eps=1e-08)"
    )


def test_promised_example():
    # Advantages +-1. The first ratio e^1 stops at 1.2, the second is 1: (1.2 - 1)/2 = 0.1.
    result = grpo_objective(
        logp=[[[0.0], [0.0]]],
        old_logp=[[[-1.0], [0.0]]],
        ref_logp=[[[0.0], [0.0]]],
        rewards=[[1.0, 0.0]],
        mask=[[[1], [1]]],
        epsilon=0.2,
        beta=0.0,
    )
    assert set(result) == {"advantages", "objective", "loss", "mean_kl"}
    assert result["objective"] == pytest.approx(0.1, rel=1e-7)
    assert result["loss"] == -result["objective"]
    assert result["mean_kl"] == 0
    assert all(type(result[key]) is float for key in ("objective", "loss", "mean_kl"))
    assert result["advantages"].shape == (1, 2)


def test_on_policy_objective_is_zero():
    # Equal lengths: the advantages of a group cancel.
    same = [[[-1.0, -2.0], [-1.5, -0.5]]]
    result = grpo_objective(same, same, same, [[3.0, -7.0]], np.ones((1, 2, 2)))
    assert (result["objective"], result["loss"], result["mean_kl"]) == (0, 0, 0)


def test_agrees_with_evaluate_under_default_conventions():
    arguments = batch()
    evaluation = evaluate(
        build_scenario(
            rewards=arguments["rewards"],
            mask=arguments["mask"],
            logp_new=arguments["logp"],
            logp_old=arguments["old_logp"],
            logp_ref=arguments["ref_logp"],
        )
    )
    result = grpo_objective(**arguments)
    for key in ("objective", "loss", "mean_kl"):
        assert result[key] == getattr(evaluation, key)
    np.testing.assert_array_equal(result["advantages"], evaluation.advantages)


@pytest.mark.parametrize("garbage", [NAN, INF, -INF, 1e308, -1e308])
def test_padding_is_never_read(garbage):
    clean = grpo_objective(**batch())
    names = ("logp", "old_logp", "ref_logp")
    arrays = {key: np.array(batch()[key]) for key in names}
    for array in arrays.values():
        array[0, 1, 1] = garbage
    dirty = grpo_objective(**batch(**arrays))
    assert {k: np.asarray(v).tolist() for k, v in clean.items()} == {
        k: np.asarray(v).tolist() for k, v in dirty.items()
    }


def test_inputs_are_not_modified_and_not_returned():
    arrays = {key: np.array(value, float) for key, value in batch().items()}
    before = {key: value.copy() for key, value in arrays.items()}
    result = grpo_objective(**arrays)
    result["advantages"][:] = 9  # the caller's own to write to
    rewards = np.array([[1.0, 1.0]])
    group_advantages(rewards)[:] = 9
    assert rewards.tolist() == [[1, 1]]
    for key, value in arrays.items():
        np.testing.assert_array_equal(value, before[key])


def test_float32_stays_float32_and_all_else_is_double():
    assert group_advantages(np.float32([[1, 0]])).dtype == np.float32
    for rewards in ([[1, 0]], np.array([[True, False]]), np.array([[1, 0]], np.int8)):
        assert group_advantages(rewards).dtype == np.float64
    single = {key: np.float32(value) for key, value in batch().items()}
    assert grpo_objective(**single)["advantages"].dtype == np.float32
    assert grpo_objective(**batch())["advantages"].dtype == np.float64


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        ([1, 0], "rewards has 1 axes"),
        ([[1, 0], [1]], "rewards: prompt 1 has 1 values; expected 2"),
        ([[1, INF]], "rewards at prompt 0, completion 1 is inf"),
        ([[1, "x"]], "rewards at prompt 0, completion 1 is 'x'"),
        ([[]], r"rewards has shape \(1, 0\); wanted no empty axis"),
        (None, "rewards has 0 axes"),
        (5, "rewards has 0 axes"),
    ],
)
def test_bad_rewards_are_refused_in_words(rewards, words):
    with pytest.raises(ValueError, match=words):
        group_advantages(rewards)


@pytest.mark.parametrize("bad", [-1e-9, NAN, INF, "x", None, [1, 2]])
@pytest.mark.parametrize("option", ["eps", "beta", "epsilon"])
def test_bad_options_are_refused_in_words(option, bad):
    with pytest.raises(ScenarioError, match=f"{option} is .*; wanted a finite number") as caught:
        grpo_objective(**batch(), **{option: bad})
    assert caught.value.field == option
    if option == "eps":
        with pytest.raises(ScenarioError, match="eps is "):
            group_advantages([[1, 0]], eps=bad)


def test_epsilon_above_one_is_refused():
    with pytest.raises(ScenarioError, match=r"epsilon is 1\.5; wanted at most 1"):
        grpo_objective(**batch(), epsilon=1.5)


@pytest.mark.parametrize(
    ("more", "words", "field"),
    [
        ({"old_logp": [[[-1], [-1]]]}, r"old_logp has shape \(1, 2, 1\); .* like logp", "logp_old"),
        ({"mask": [[[1, 1]]]}, r"mask has shape \(1, 1, 2\); expected \(1, 2, 2\)", "mask"),
        ({"mask": [[[1, 1], [1, 3]]]}, "mask at prompt 0, completion 1, token 1 is 3.0", "mask"),
        ({"rewards": [[1.0]]}, r"rewards has shape \(1, 1\); expected \(1, 2\)", "rewards"),
        (
            {"ref_logp": [[[-1, NAN], [-1, -1]]]},
            "ref_logp at prompt 0, completion 0, token 1 is nan",
            "logp_ref",
        ),
        ({"logp": [[[INF, -1], [-1, -1]]]}, "logp at prompt 0, completion 0, token 0", "logp_new"),
        ({"logp": [[[-1, "a"], [-1, -1]]]}, "logp at prompt 0, completion 0, token 1", "logp_new"),
        ({"logp": [[-1, -1]]}, "logp has 2 axes", "logp_new"),
        ({"logp": np.zeros((0, 2, 2))}, "wanted no empty axis", None),
    ],
)
def test_bad_arrays_are_refused_in_words(more, words, field):
    with pytest.raises(ScenarioError, match=words) as caught:
        grpo_objective(**batch(**more))
    if field:
        assert caught.value.field == field


def test_options_mean_what_their_rows_mean():
    edge = edge_scenario()
    valid = edge.valid
    clean = {key: np.where(valid, edge[key], 0) for key in ("logp_new", "logp_old", "logp_ref")}
    rewards = np.nan_to_num(edge["rewards"], nan=0.5, posinf=0.5)
    result = grpo_objective(*clean.values(), rewards, valid, epsilon=0.1, beta=0.5, eps=0.1)
    scenario = build_scenario(rewards=rewards, mask=valid, **clean)
    scenario = scenario.choose("surrogate", epsilon_low=0.1, epsilon_high=0.1)
    scenario = scenario.choose("kl", beta=0.5).choose("advantage", eps=0.1)
    assert result["objective"] == evaluate(scenario).objective
