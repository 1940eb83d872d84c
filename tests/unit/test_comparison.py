"""compare: settings side by side, and the one choice that makes them differ."""

import numpy as np
import pytest

from grpo_core import Conventions, evaluate
from grpo_core.comparison import applied, compare
from grpo_core.presets import PRESETS, Preset, differences
from grpo_core.variants import table
from tests.reference.combinations import edge_scenario

BASE = Conventions.of(kl=("k3", {"beta": 0.04}))
CHANGES = [
    ("advantage", None, {"ddof": 1}),
    ("advantage", "mean_only", {}),
    ("kl", None, {"beta": 0.4}),
    ("kl", "k2", {}),
    ("ratio", "sequence", {}),
    ("surrogate", None, {"epsilon_high": 0.6}),
    ("surrogate", "sapo", {}),
    ("aggregation", "token_mean", {}),
    ("whitening", "tokens", {}),
    ("truncated", "drop", {}),
    ("correction", "sampler", {}),
    ("selection", "entropy", {}),
    ("accumulation", None, {"factor": 0.5}),
    ("rewards", "sum_then_normalize", {}),
]


@pytest.fixture
def settings(monkeypatch):
    """Presets made up for a test, by key."""

    def put(**named):
        rows = [
            Preset(
                key=key,
                label=key.title(),
                kind="paper",
                choices={stage: (c.variant, dict(c.options)) for stage, c in each.choices.items()},
                source="made up",
            )
            for key, each in named.items()
        ]
        known = table(*PRESETS.values(), *rows)
        monkeypatch.setattr("grpo_core.comparison.PRESETS", known)

    return put


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change[0]}-{change[1]}")
def test_the_cause_of_a_single_change_is_that_change(change, settings):
    stage, variant, options = change
    other = BASE.replace(stage, variant, **options)
    settings(base=BASE, other=other)
    found = compare(edge_scenario(), ["other"], "base")["other"]
    assert found.differences == differences(BASE, other)
    assert len(found.differences) == 1
    assert found.cause == found.differences[0]
    assert found.cause.stage == stage
    assert found.share == pytest.approx(1.0)
    assert found.largest > 0


def test_the_gap_is_that_of_the_gradients(settings):
    other = BASE.replace("advantage", "mean_only")
    settings(base=BASE, other=other)
    scenario = edge_scenario()
    found = compare(scenario, ["other"], "base")["other"]
    one, two = (evaluate(scenario.with_conventions(each)) for each in (other, BASE))
    np.testing.assert_allclose(found.gap, one.gradient - two.gradient, atol=1e-15)
    assert abs(found.gap[found.where]) == found.largest == np.abs(found.gap).max()
    assert found.evaluation.objective == one.objective
    assert found.label == "Other"


def test_the_largest_of_two_causes_is_named(settings):
    # Half the loss against an eps that is hardly seen.
    other = BASE.replace("accumulation", factor=0.5).replace("advantage", eps=1e-4)
    settings(base=BASE, other=other)
    found = compare(edge_scenario(), ["other"], "base")["other"]
    assert [d.option for d in found.differences] == ["eps", "factor"]
    assert found.cause.option == "factor"
    assert 0.99 < found.share < 1.0


def test_a_setting_beside_itself_has_no_cause():
    found = compare(edge_scenario(), ["trl-1.16"], "trl-1.16")["trl-1.16"]
    assert (found.differences, found.largest, found.where, found.cause) == ((), 0.0, None, None)
    assert found.share == 0.0


def test_settings_that_differ_in_what_this_batch_does_not_hold_have_no_cause():
    # Without a reference that differs the estimator of the KL is not seen.
    scenario = edge_scenario(BASE)
    same = scenario.replace(logp_ref=scenario["logp_new"])
    found = compare(same.choose("kl", "k2"), ["own"], "deepseekmath")["own"]
    assert len(found.differences) == 1
    assert (found.largest, found.where, found.cause) == (0.0, None, None)


def test_the_scenarios_own_choice_can_stand_on_either_side():
    scenario = edge_scenario(BASE.replace("advantage", "mean_only"))
    there = compare(scenario, ["own", "deepseekmath"], "deepseekmath")
    back = compare(scenario, ["deepseekmath"], "own")
    assert list(there) == ["own", "deepseekmath"]
    np.testing.assert_allclose(there["own"].gap, -back["deepseekmath"].gap, atol=1e-15)
    assert there["own"].largest == back["deepseekmath"].largest


def test_applied_takes_over_one_difference_with_all_its_options():
    other = BASE.replace("surrogate", "sapo", tau_up=2.0).replace("advantage", ddof=1, eps=1e-3)
    taken = {(d.stage, d.option): applied(BASE, d, other) for d in differences(BASE, other)}
    assert taken["surrogate", ""] == BASE.replace("surrogate", "sapo", tau_up=2.0)
    assert taken["advantage", "ddof"] == BASE.replace("advantage", ddof=1)
    assert taken["advantage", "eps"] == BASE.replace("advantage", eps=1e-3)


def test_every_preset_can_be_compared_and_its_share_is_one():
    found = compare(edge_scenario(), list(PRESETS), "trl-1.16")
    assert list(found) == list(PRESETS)
    for each in found.values():
        assert 0.0 <= each.share <= 1.0 + 1e-12
        assert (each.where is None) == (each.largest == 0.0)
        assert each.cause is None or each.cause in each.differences
