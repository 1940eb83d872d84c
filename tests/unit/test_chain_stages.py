"""The chain under every row of every stage: it recombines, and a stage at rest adds no line."""

import numpy as np
import pytest

from grpo_core import STAGES, Conventions, build_scenario, evaluate
from pages._ui.chain import chain
from pages._ui.computed import acts
from tests.unit.test_chain import CORE, assert_holds, positions, short
from tests.unit.test_export import (
    infinite_scenario,
    mixed,
    rough_scenario,
    values_of,
    with_optional,
)


def rows_of(stage):
    """Conventions with each row of a stage, and each of its options at several values."""
    for key, row in STAGES[stage].variants.items():
        yield Conventions.of(**{stage: key})
        for option in row.options:
            for value in values_of(option.domain):
                yield Conventions.of(**{stage: (key, {option.key: value})})


@pytest.mark.parametrize("stage", STAGES)
def test_every_row_recombines(stage):
    for conventions in rows_of(stage):
        evaluation = evaluate(rough_scenario(conventions=conventions))
        for where in positions(evaluation, most=6):
            assert_holds(evaluation, where)


# Beside infinities a KL weighted by its score is the difference of two, which no digits show.
ENDLESS = {"score": {"g_KL", "g"}}


@pytest.mark.parametrize("stage", ["ratio", "kl", "surrogate", "correction", "aggregation"])
def test_every_row_recombines_beside_infinities(stage):
    for conventions in rows_of(stage):
        evaluation = evaluate(with_optional(infinite_scenario(), conventions))
        replaced = ENDLESS.get(conventions["kl"].options["weight"], ())
        for where in positions(evaluation):
            assert_holds(evaluation, where, replaced=replaced)


@pytest.mark.parametrize("seed", range(30))
def test_rows_of_all_stages_recombine_together(seed):
    evaluation = evaluate(rough_scenario(conventions=mixed(seed)))
    for where in positions(evaluation, most=5):
        assert_holds(evaluation, where, tolerance=1e-6)


@pytest.mark.parametrize("seed", range(30, 36))
def test_rows_of_all_stages_agree_in_single_precision(seed):
    more = {"dtype": np.float32, "advantages": None}
    conventions = mixed(seed).replace("advantage", "mean_std")
    evaluation = evaluate(rough_scenario(conventions=conventions, **more))
    for where in positions(evaluation, most=5):
        assert_holds(evaluation, where, tolerance=1e-5, replaced=CORE)


def two(conventions=None, **more):
    """Two completions of two tokens, all ratios 1 and no KL: A is 1 and -1, s is A."""
    arrays = {
        "rewards": [[1, 0]],
        "logp_new": [[[-1.0, -1.0], [-1.0, -1.0]]],
        "conventions": Conventions.of(
            **{"advantage": ("mean_std", {"eps": 0.0}), **(conventions or {})}
        ),
    }
    return build_scenario(**{**arrays, **more})


AT_REST = {
    "whitening": "none",
    "truncated": "keep",
    "tied": "keep",
    "selection": "all",
    "correction": "none",
    "entropy": "none",
    "accumulation": ("factor", {"factor": 1.0}),
}


def test_a_stage_at_rest_adds_no_line():
    conventions = Conventions.of(**AT_REST)
    assert not any(acts(conventions, stage) for stage in AT_REST)
    names = [step.name for step in chain(evaluate(two(AT_REST)), (0, 0, 0))]
    assert names == [
        *("R", "mean", "Q", "std", "A", "log_ratio", "ratio", "s_free", "s_clip", "s"),
        *("d", "KL", "j", "w", "contribution", "g_s", "g_KL", "g"),
    ]


@pytest.mark.parametrize(
    ("stage", "row"),
    [
        ("whitening", ("none", {"limit": 1.0})),
        ("whitening", "tokens"),
        ("truncated", "drop"),
        ("tied", "zero"),
        ("selection", "entropy"),
        ("selection", "entropy_on_policy"),
        ("correction", "given"),
        ("entropy", "bonus"),
        ("accumulation", ("factor", {"factor": 0.5})),
    ],
)
def test_every_other_row_acts(stage, row):
    assert acts(Conventions.of(**{stage: row}), stage)


def test_kl_in_the_returns_by_hand():
    # d = ref - old = -0.5, -0.25; k1: 0.5, 0.25; p = 0.25, 0.125. Token 0 pays both: 1 - 0.375.
    ref = [[[-1.5, -1.25], [-1.0, -1.0]]]
    scenario = two({"kl": ("k1", {"place": "returns", "beta": 0.5})}, logp_ref=ref)
    steps = short(scenario)
    assert steps["K"].text == "K = 0.25 + 0.125 = 0.375"
    assert steps["A"].text == "A = 1 - 0.375 = 0.625"
    assert "in the returns" in steps["g"].note
    assert short(scenario, (0, 0, 1))["A"].text == "A = 1 - 0.125 = 0.875"


def test_an_advantage_is_held_before_the_kl_in_the_returns_is_taken_off():
    # As above with A held within 0.5: 0.5 - 0.375.
    ref = [[[-1.5, -1.25], [-1.0, -1.0]]]
    kl = ("k1", {"place": "returns", "beta": 0.5})
    scenario = two({"kl": kl, "whitening": ("none", {"limit": 0.5})}, logp_ref=ref)
    steps = short(scenario)
    assert steps["A_held"].text.endswith("clip(1, -0.5, 0.5) = 0.5")
    assert steps["A"].text == "A = 0.5 - 0.375 = 0.125"


def test_whitening_by_hand():
    # A = 1, 1, -1, -1: mean 0, squares 4, variance 4 / 4 x 4 / 3 = 1.3333; 1 / sqrt(1.3333)
    steps = short(two({"whitening": ("tokens", {"eps": 0.0, "limit": 0.5})}))
    assert steps["mean_A"].text == "mean_A = (1 + 1 + (-1) + (-1)) / 4 = 0"
    assert steps["var_A"].text.startswith("var_A = 4 / 4 * 4 / (4 - 1) = 1.3333")
    assert float(steps["A_white"].value) == pytest.approx(0.75**0.5, abs=1e-4)
    assert steps["A"].text.endswith(", -0.5, 0.5) = 0.5")


def test_a_token_that_leaves_the_loss_has_its_reason_and_weight_0():
    steps = chain(evaluate(two({"truncated": "drop"}, truncated=[[1, 0]])), (0, 0, 0))
    named = {step.name: step for step in steps}
    assert [step.note for step in steps if step.label == "leaves the loss"] == [
        "The answer was cut at the length limit."
    ]
    assert [named[name].text for name in ("w", "contribution", "g")] == [
        "w = 0",
        "contribution = 0 * 1 = 0",
        "g = 0 + 0 = 0",
    ]
    # The other completion is alone in the denominators: 1 / (2 x 2), or 1 / (1 x 2).
    for empty, text in {"count": "w = 1 / (2 * 2) = 0.25", "drop": "w = 1 / (1 * 2) = 0.5"}.items():
        rows = {"truncated": "drop", "aggregation": ("completion_mean", {"empty": empty})}
        assert short(two(rows, truncated=[[1, 0]]), (0, 1, 0))["w"].text == text


def test_selection_and_correction_multiply_the_surrogate_and_the_gradient():
    # entropies 2, 1, 0, 0: the top half is the first completion; c = e^(-1 + 1.5) held at 1.5
    rows = {
        "selection": ("entropy", {"share": 0.5}),
        "correction": ("sampler", {"level": "token", "mode": "truncate", "high": 1.5}),
    }
    more = {"entropy": [[[2, 1], [0, 0]]], "logp_sampler": [[[-1.5, -1], [-1, -1]]]}
    steps = short(two(rows, **more))
    assert steps["s_own"].value == "1"
    assert steps["m"].text == "m = 1"
    assert steps["u_t"].text == "u_t = -1 - (-1.5) = 0.5"
    assert steps["c"].text == "c = min(exp(0.5), 1.5) = 1.5"
    assert steps["s"].text == "s = 1.5 * 1 * 1 = 1.5"
    assert steps["g_s"].text == "g_s = 0.25 * 1 * 1.5 * 1 * 1 = 0.375"
    other = short(two(rows, **more), (0, 1, 0))
    assert (other["m"].text, other["s"].value, other["g_s"].value) == ("m = 0", "0", "0")
    assert "the top 50%" in other["m"].note


def test_both_selections_give_both_reasons():
    more = {"entropy": [[[2, 1], [0, 0]]], "logp_sampler": [[[-1.5, -1], [-1, -1]]]}
    steps = short(two({"selection": ("entropy_on_policy", {"share": 0.5})}, **more), (0, 1, 0))
    assert steps["m"].text == "m = 0"
    assert "the top 50%" in steps["m"].note
    assert "against a threshold of 0.5" in steps["m"].note


def test_a_correction_beyond_its_bounds_drops_the_token_and_says_so():
    rows = {"correction": ("sampler", {"level": "token", "mode": "mask", "high": 1.5})}
    steps = short(two(rows, logp_sampler=[[[-1.5, np.nan], [-1, -1]]]))
    assert steps["c"].text == "c = 0"
    assert "dropped" in steps["c"].note
    unknown = short(two(rows, logp_sampler=[[[-1.5, np.nan], [-1, -1]]]), (0, 0, 1))
    assert unknown["c"].text == "c = exp(0) = 1"
    assert "unknown" in unknown["u_t"].note


def test_entropy_and_the_last_factor_by_hand():
    rows = {"entropy": ("bonus", {"coefficient": 0.5}), "accumulation": ("factor", {"factor": 0.5})}
    steps = short(two(rows, entropy=[[[2, 0], [0, 0]]]))
    assert steps["b"].text == "b = 0.5 * 2 = 1"
    assert steps["j"].text == "j = 1 - 0.04 * 0 + 1 = 2"
    assert steps["w_own"].text == "w_own = 1 / (2 * 2) = 0.25"
    assert steps["w"].text == "w = 0.5 * 0.25 = 0.125"


def test_a_weighted_log_probability_goes_past_the_ratio():
    # TRL's CISPO: the bound 0.2 itself. v = 0.2, s = 0.2 x 1 x -1, gradient 0.25 x 0.2 x 1.
    row = ("cispo", {"epsilon_high": 0.2, "bound": "absolute"})
    steps = short(two({"surrogate": row}))
    assert steps["v"].text == "v = min(1, 0.2) = 0.2"
    assert steps["s"].text == "s = 0.2 * 1 * (-1) = -0.2"
    assert steps["g_s"].text == "g_s = 0.25 * 0.2 * 1 = 0.05"
    assert "keeps its gradient" in steps["v"].note
    plain = short(two({"surrogate": "reinforce"}))
    assert plain["g_s"].text == "g_s = 0.25 * 1 = 0.25"


def test_sapo_is_two_over_tau_at_ratio_one():
    # gate 1/2: 4 / 1.05 x 0.5 x -1 = -1.9048 = -2 / 1.05, and a slope of 4 x 0.5 x 0.5 x -1
    steps = short(two({"surrogate": "sapo"}), (0, 1, 0))
    assert steps["q"].value == "0.5"
    assert float(steps["s"].value) == pytest.approx(-2 / 1.05, abs=1e-3)
    assert steps["slope"].text == "slope = 4 * 0.5 * (1 - 0.5) * (-1) = -1"


def test_gmpo_holds_each_log_ratio_and_shares_the_gradient():
    # log-ratios 1 and 0.2: the first is held at 0.4; mean 0.3. Both terms are e^0.3 = 1.3499.
    moved = {"logp_old": [[[-2.0, -1.2], [-1.0, -1.0]]]}
    first, second = (short(two({"surrogate": "gmpo"}, **moved), (0, 0, t)) for t in (0, 1))
    assert first["l_held"].value == "0.4"
    assert second["S_l"].text == "S_l = 0.4 + 0.2 = 0.6"
    assert float(second["s"].value) == pytest.approx(np.exp(0.3), abs=1e-4)
    assert (first["g_s"].value, "held" in first["g_s"].note) == ("0", True)
    # (0.25 + 0.25) x 1.3499 / 2
    assert float(second["g_s"].value) == pytest.approx(0.25 * np.exp(0.3), abs=1e-4)


def test_where_a_clamp_holds_there_is_no_gradient():
    ref = {"logp_ref": [[[-3.0, -1.25], [-1.0, -1.0]]]}
    held = short(two({"kl": ("k2", {"clamp_in": 1.0})}, **ref))
    assert held["d"].text == "d = clip(-2, -1, 1) = -1"
    assert (held["g_KL"].text, "clamp" in held["g_KL"].note) == ("g_KL = 0", True)
    outer = short(two({"kl": ("k2", {"clamp_out": 1.5})}, **ref))
    assert outer["KL"].text == "KL = clip(2, -1.5, 1.5) = 1.5"
    assert outer["g_KL"].text == "g_KL = 0"
    free = short(two({"kl": ("k2", {"clamp_in": 1.0, "clamp_out": 1.5})}, **ref), (0, 0, 1))
    assert free["g_KL"].written
    ratio = two({"ratio": ("token", {"clamp": 0.5})}, logp_old=[[[-2.0, -1.0], [-1.0, -1.0]]])
    steps = short(ratio)
    assert steps["log_ratio"].text == "log_ratio = clip(1, -0.5, 0.5) = 0.5"
    assert steps["g_s"].text == "g_s = 0"


def test_a_kl_weighted_by_the_ratio_has_two_ways_back():
    # ratio e^0.5 = 1.6487, d = -0.5: k2 0.125, weighted 0.2061; beta 1, w 0.25.
    # itself: 0.25 x 1.6487 x d = -0.2061; by the ratio: -0.25 x 0.125 x 1.6487 = -0.0515
    moved = {
        "logp_old": [[[-1.5, -1.0], [-1.0, -1.0]]],
        "logp_ref": [[[-1.5, -1.0], [-1.0, -1.0]]],
    }
    steps = short(two({"kl": ("k2", {"beta": 1.0, "weight": "ratio"})}, **moved))
    found = [float(steps[name].value) for name in ("KL", "g_d", "g_r", "g_KL")]
    assert found == pytest.approx([0.2061, -0.2061, -0.0515, -0.2576], abs=1e-4)


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        (("leave_one_out", {}), "A = 1 - 0 = 1"),
        (("uncompared", {}), "A = 1"),
        (("over_mean", {"eps": 0.0}), "A = (1 - 0.25) / (0.25 + 0) = 3"),
        (("leave_one_out_std", {}), "A = 1 - 0 = 1"),
        (("best_over_second", {"divide": "nothing"}), "A = 1 - 0 = 1"),
        # 4 completions, 1 right, k = 2: 3 / 6 of the pairs are all wrong; 0.5 / sqrt(0.25)
        (("pass_at_k", {"k": 2, "eps": 0.0}), "A = 0.5 / (0.5 + 0) = 1"),
        (("length_weighted", {}), "A = 1 - 0.25 = 0.75"),
        # 4 scores, 1 of them not 0
        (("nonzero_scaled", {}), "A = 4 * (1 - 0.25) = 3"),
    ],
)
def test_baselines_of_one_right_answer_in_four(row, wanted):
    scenario = build_scenario(rewards=[[1, 0, 0, 0]], conventions=Conventions.of(advantage=row))
    assert short(scenario)["A"].text == wanted


def test_a_group_of_one_is_worth_what_the_option_says():
    for worth, text in {"reward": "A = 3", "reward_over_1": "A = 3 / (1 + 1) = 1.5"}.items():
        row = ("mean_std", {"alone": worth, "eps": 1.0})
        scenario = build_scenario(rewards=[[3.0]], conventions=Conventions.of(advantage=row))
        step = short(scenario)["A"]
        assert step.text == text
        assert "compared with nothing" in step.note


def test_returns_discount_what_comes_later():
    # gamma 0.5, two steps to the end: 0.25 x 2 = 0.5, and 0.5 x 1 for the reward in the middle
    scenario = build_scenario(
        rewards=[[2.0]],
        mask=[[[1, 1, 1]]],
        token_rewards=[[[0, 1, 0]]],
        conventions=Conventions.of(advantage=("returns", {"gamma": 0.5})),
    )
    assert short(scenario)["A"].text == "A = 0.5 * 1 + 0.25 * 2 = 1"
    assert short(scenario, (0, 0, 2))["A"].text == "A = 2"
