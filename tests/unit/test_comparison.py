"""compare: settings side by side, and the one choice that makes them differ."""

from itertools import product

import numpy as np
import pytest

from grpo_core import Conventions, Term, build_scenario, evaluate
from grpo_core.comparison import compare
from grpo_core.comparison_choices import apart, applied, spoilt_by_missing
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
    ("rewards", "normalize_then_sum", {}),
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
        monkeypatch.setattr("grpo_core.comparison_choices.PRESETS", known)

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
        assert (each.where is None) == (each.largest == 0.0 or each.spoilt.any())
        assert np.isnan(each.largest) == each.spoilt.any()
        assert each.cause is None or each.cause in each.differences


def test_an_option_that_two_variants_share_is_compared_apart_from_the_variant(settings):
    # The ratio 1.35 of A > 0 is inside 1 + 0.4 and outside 1 + 0.2: the band alone matters.
    clip = BASE.replace("surrogate", "clip", epsilon_high=0.4)
    dual = BASE.replace("surrogate", "dual_clip", epsilon_high=0.2, dual_clip=3.0)
    assert [(d.stage, d.option) for d in apart(clip, dual)] == [
        ("surrogate", ""),
        ("surrogate", "epsilon_high"),
    ]
    settings(base=clip, other=dual)
    old = np.full((1, 2, 1), -2.0)
    scenario = build_scenario(
        rewards=[[1, 0]], logp_old=old, logp_new=old + np.log([[[1.35], [1.0]]])
    )
    found = compare(scenario, ["other"], "base")["other"]
    assert found.cause.option == "epsilon_high"
    assert found.share == pytest.approx(1.0)


def test_applying_every_part_of_a_difference_in_any_order_gives_the_other_side():
    for left, right in product(list(PRESETS.values())[::4], list(PRESETS.values())[::3]):
        parts = apart(left.conventions, right.conventions)
        for order in (parts, parts[::-1]):
            reached = left.conventions
            for one in order:
                reached = applied(reached, one, right.conventions)
            assert apart(reached, right.conventions) == ()


def test_without_a_weight_on_either_side_a_kl_makes_no_difference():
    weighted, plain = (PRESETS[key].conventions for key in ("trl-1.16", "trl-jul26"))
    assert [one.option for one in differences(weighted, plain)] == ["weight"]
    assert apart(weighted, plain) == ()
    assert apart(weighted, plain.replace("kl", "k1", beta=0.0, place="reward")) == ()
    # With a weight on one side the estimator is that side's, and differs.
    heavy = plain.replace("kl", beta=0.04)
    assert [one.option for one in apart(weighted, heavy)] == ["beta", "weight"]


def test_what_is_left_out_of_the_differences_trains_nothing():
    scenario = edge_scenario()
    for left, right in product(list(PRESETS.values())[::2], list(PRESETS.values())[1::3]):
        reached = left.conventions
        for one in apart(reached, right.conventions):
            reached = applied(reached, one, right.conventions)
        if reached != right.conventions:
            found, wanted = (
                evaluate(scenario.with_conventions(each)) for each in (reached, right.conventions)
            )
            np.testing.assert_array_equal(found.gradient, wanted.gradient)
            assert found.loss == wanted.loss or np.isnan(wanted.loss)


def test_the_share_is_that_of_the_largest_difference_itself(settings):
    # One token each: gradient A/2. Base A = 1, -1; the other: mean_only (0.5, -0.5) and half the
    # loss, so 0.125 of 0.5 is left, a difference of 0.375. Halving either alone leaves 0.125.
    base = BASE.replace("kl", beta=0.0)
    other = base.replace("advantage", "mean_only").replace("accumulation", factor=0.5)
    settings(base=base, other=other)
    found = compare(build_scenario(rewards=[[1, 0]]), ["other"], "base")["other"]
    assert found.largest == pytest.approx(0.375, rel=1e-6)
    assert [share for _, share in found.causes] == pytest.approx([2 / 3, 1.0], rel=1e-6)


def test_the_share_at_the_named_token_is_reached_by_the_choice_named(settings):
    scenario = edge_scenario()
    for key in ("dapo", "gspo", "cispo", "maxrl", "gmpo"):
        found = compare(scenario, [key], "deepseekmath")[key]
        base, other = (PRESETS[each].conventions for each in ("deepseekmath", key))
        changed = scenario.with_conventions(applied(base, found.cause, other))
        reached = evaluate(changed).gradient[found.where]
        start = evaluate(scenario.with_conventions(base)).gradient[found.where]
        left = abs((start + found.gap[found.where] - reached) / found.gap[found.where])
        assert found.share == pytest.approx(1 - left)


def test_one_reward_is_the_weighted_sum_where_the_batch_has_terms():
    bonus = (Term("bonus", 0.5),)
    values = [[[0.0], [1.0], [0.0], [1.0]]]
    scenario = build_scenario(
        rewards=[[1, 0, 0, 0]], terms=bonus, term_values=values,
        conventions=Conventions.of(rewards=("sum_then_normalize", {"task_weight": 2.0})),
    )  # fmt: skip
    plain = build_scenario(rewards=[[2, 0.5, 0, 0.5]])  # 2 r + 0.5 bonus
    keys = ("trl-1.16", "verl-0.9.1-grpo", "deepseekmath", "dr-grpo")
    with_terms, summed = (compare(each, keys, "trl-1.16") for each in (scenario, plain))
    for key in keys:
        np.testing.assert_allclose(
            with_terms[key].evaluation.advantages, summed[key].evaluation.advantages
        )


def test_without_terms_a_sum_of_rewards_is_no_difference():
    found = compare(build_scenario(rewards=[[1, 0]]), ["verl-0.9.1-grpo"], "trl-1.16")
    stages = {one.stage for one in found["verl-0.9.1-grpo"].differences}
    assert "surrogate" in stages
    assert "rewards" not in stages


def test_terms_that_the_scenario_leaves_out_are_left_out_by_sums_too():
    scenario = build_scenario(
        rewards=[[1, 0]], terms=(Term("bonus"),), term_values=[[[0.0], [9.0]]]
    )
    found = compare(scenario, ["trl-1.16", "verl-0.9.1-grpo"], "own")
    for each in found.values():
        assert each.evaluation.advantages[0, 0] > 0
        assert "rewards" not in {one.stage for one in each.differences}


MISSING = [[1, np.nan, 0, 0], [1, 0, 0, 1]]


@pytest.mark.parametrize(
    ("key", "right"),
    [
        ("verl-0.9.1-grpo", [[True] * 4, [False] * 4]),  # a plain mean over the group
        ("openrlhf-0.11-group_norm", [[True] * 4, [False] * 4]),
        ("areal-default", [[False, True, False, False], [False] * 4]),  # no group is looked at
        ("trl-1.16", [[False] * 4] * 2),
        ("swift-grpo", [[False] * 4] * 2),
        ("dr-grpo", [[False] * 4] * 2),  # a paper has no code that would fail
    ],
)
def test_a_missing_reward_spoils_the_group_in_trainers_that_do_not_handle_it(key, right):
    scenario = build_scenario(rewards=MISSING)
    np.testing.assert_array_equal(spoilt_by_missing(scenario, key), right)
    assert not spoilt_by_missing(build_scenario(rewards=[[1, 0]]), key).any()


def test_a_spoilt_setting_gives_no_number_to_compare_on_either_side():
    scenario = build_scenario(rewards=MISSING)
    for base, key in (("trl-1.16", "verl-0.9.1-grpo"), ("verl-0.9.1-grpo", "trl-1.16")):
        found = compare(scenario, [key], base)[key]
        assert np.isnan(found.largest)
        assert (found.where, found.causes) == (None, ())
        assert np.isnan(found.gap[0]).all()
