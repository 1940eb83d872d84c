"""How settings differ, in words, tables and pictures: from a batch that is small enough to see."""

from dataclasses import replace

import numpy as np
import pytest

from grpo_core import Term, build_scenario
from grpo_core.comparison import OWN
from grpo_core.presets import PRESETS, differences
from grpo_core.stages import STAGES
from pages._ui import conventions_words as words
from pages._ui.conventions_charts import setting_map
from pages._ui.conventions_rows import FIRST, FIRST_BASE, SETTINGS, rows
from pages._ui.conventions_tables import (
    HOW,
    logged_columns,
    logged_frame,
    logged_line,
    settings_frame,
)
from pages._ui.figure import alt_text
from pages._ui.palette import PALETTES
from tests.unit.drawable import check_drawable

BASE = "trl-1.16"
LIGHT = PALETTES["light"]


def batch(rewards=((1, 0, 0, 0),), **arrays):
    """Two tokens a completion, moved a little from the old policy and from the reference."""
    shape = (*np.shape(rewards), 2)
    old = np.full(shape, -1.0)
    new = old + np.linspace(0.1, -0.1, old.size).reshape(shape)
    return build_scenario(
        rewards=rewards, logp_new=new, logp_old=old, logp_ref=old - 0.05, **arrays
    )


def compared(scenario, keys=FIRST, base=BASE):
    return rows(scenario, keys, base)


def test_one_right_of_four_is_worth_what_each_trainer_says():
    found = rows(build_scenario(rewards=[[1, 0, 0, 0]]), SETTINGS, BASE)
    right = {
        "trl-1.16": (1.4997, -0.4999),
        "verl-0.9.1-grpo": (1.5, -0.5),
        "openrlhf-0.11-group_norm": (1.5, -0.5),
        "deepseekmath": (1.7321, -0.5774),  # the population std
        "dr-grpo": (0.75, -0.25),
        "nemo-rl-grpo": (1.0, -0.5773),
        "rloo": (1.0, -0.3333),
        "maxrl": (3.0, -1.0),
        OWN: (1.7321, -0.5774),
    }
    for key, (best, others) in right.items():
        expected = [[best, others, others, others]]
        np.testing.assert_allclose(found[key].advantages, expected, atol=1e-4, err_msg=key)


def test_they_stand_in_the_picture_with_their_decimals():
    scenario = build_scenario(rewards=[[1, 0, 0, 0]])
    figure = setting_map(compared(scenario), None, "advantages", 0, palette=LIGHT)
    written = next(trace for trace in figure.data if trace.name == "numbers")
    for text in ("1.4997", "1.5000", "1.7321", "0.7500", "1.0000", "−0.5773"):
        assert text in written.text
    assert "TRL 1.16 1.5, −0.4999" in alt_text(figure)


def test_the_base_differs_from_itself_in_nothing():
    row = compared(batch())[BASE]
    assert row.largest == 0
    assert row.where is None
    assert words.differs_line(row, batch(), BASE) == "TRL 1.16 is the base."
    assert "base of the comparison" in words.cause_line(row, batch(), BASE)


def test_a_single_changed_option_is_all_of_the_cause():
    scenario = batch().with_conventions(
        PRESETS[BASE].conventions.replace("surrogate", epsilon_high=0.05)
    )
    row = compared(scenario, [OWN])[OWN]
    assert words.differs_line(row, scenario, BASE) == (
        "As chosen here differs from TRL 1.16 in: Surrogate, epsilon high: 0.05 instead of 0.2."
    )
    line = words.cause_line(row, scenario, BASE)
    assert "All of it comes from one choice. Surrogate, epsilon high: 0.05 instead of 0.2." in line
    assert "prompt 0, completion 0" in line
    assert words.short_cause(row) == "epsilon high (100%)"


def test_choices_without_effect_on_the_batch_are_told_apart_from_none():
    scenario = batch()
    scenario = scenario.replace(logp_ref=scenario["logp_new"]).with_conventions(
        PRESETS[BASE].conventions.replace("kl", beta=0.1)
    )
    row = compared(scenario, [OWN])[OWN]
    line = words.cause_line(row, scenario, BASE)
    assert "same gradient as TRL 1.16 on this batch, though 1 choice differs" in line
    assert "0.1 instead of 0" in words.differs_line(row, scenario, BASE)


def test_how_a_kl_without_a_weight_is_estimated_is_no_choice():
    row = compared(batch(), ["trl-jul26"])["trl-jul26"]  # beta is 0 in both
    assert "since nothing is chosen otherwise" in words.cause_line(row, batch(), BASE)
    assert words.differs_line(row, batch(), BASE) == (
        "TRL, July 2026 chooses as TRL 1.16 does, but for options that nothing reads."
    )


def test_several_choices_are_named_in_the_order_of_what_they_explain():
    scenario = batch().with_conventions(
        PRESETS[BASE].conventions.replace("advantage", "mean_only").replace("kl", beta=0.4)
    )
    row = compared(scenario, [OWN])[OWN]
    shares = [share for _, share in row.causes]
    assert [one.stage for one, _ in row.causes] == ["advantage", "kl"]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    line = words.cause_line(row, scenario, BASE)
    assert "One choice explains most of it. Advantage: " in line
    assert "and with “KL, beta: 0.4 instead of 0” 100%." in line


def test_what_is_chosen_here_is_no_setting_that_something_is_under():
    found = compared(build_scenario(rewards=[[1, 0, 0, 0]]), [OWN, "dr-grpo"])
    assert words.advantages_line(found, 0) == (
        "The best of this group gets 1.7321 as chosen here and 0.75 under Dr. GRPO (paper): the "
        "same rewards, other conventions."
    )


def test_where_everything_agrees_it_is_said():
    tied = batch([[1, 1, 1, 1]])
    found = compared(tied, [BASE, "verl-0.9.1-grpo"])
    assert all(row.where is None for row in found.values())
    assert words.advantages_line(found, 0) == (
        "The best of this group gets 0 under every setting shown."
    )
    assert "All of these give the gradient" in words.farthest_line(None, found, tied, BASE)


def test_sources_say_where_defaults_come_from_and_what_is_left_out():
    assert "1.16.0" in words.source_line("trl-1.16")
    assert "Not in these numbers: Dropped groups" in words.source_line("verl-dapo")
    assert "of the example" in words.source_line(OWN)
    assert all(words.source_line(key).endswith(".") for key in SETTINGS)


def test_every_difference_between_any_two_presets_has_words():
    for left in PRESETS.values():
        for right in PRESETS.values():
            for one in differences(left.conventions, right.conventions):
                line = words.choice_words(one, left.conventions, right.conventions)
                assert " instead of " in line
                assert "None" not in line


def test_the_table_has_a_row_for_each_setting_and_the_present_numbers():
    frame = settings_frame(compared(batch()), BASE)
    assert list(frame.index)[:2] == ["as chosen here", "◆ TRL 1.16"]
    assert "→" not in " ".join(frame["loss"])
    assert frame.loc["◆ TRL 1.16", "largest difference"] == "0"
    assert frame.loc["NeMo-RL, grpo", "explained by one choice"].startswith("advantage (")


def test_every_mean_of_a_kl_says_which_and_over_what():
    assert words.AVERAGED.keys() == STAGES["aggregation"].variants.keys()
    weighted = STAGES["kl"].variants["k3"].option("weight").domain
    for key in weighted.words:
        conventions = PRESETS[BASE].conventions.replace("kl", weight=key)
        assert words.kl_words(conventions).startswith("k3")
    frame = settings_frame(compared(batch()), BASE)
    assert frame.loc["◆ TRL 1.16", "which KL"] == "k3 × ratio, over tokens"
    assert frame.loc["DeepSeekMath (paper)", "which KL"] == "k3, per completion"
    assert frame.loc["OpenRLHF 0.11, group_norm", "which KL"] == "k1, over tokens"


def test_below_a_half_no_choice_is_said_to_explain_most():
    # Four choices that act alike at the token: halved four times over.
    changed = PRESETS[BASE].conventions.replace("accumulation", factor=0.5)
    changed = changed.replace("advantage", "mean_only").replace("surrogate", epsilon_high=0.001)
    scenario = batch().with_conventions(changed.replace("aggregation", "constant", length=8))
    row = compared(scenario, [OWN])[OWN]
    share = row.causes[0][1]
    line = words.cause_line(row, scenario, BASE)
    told = "One choice explains most" if share >= 0.5 else "No single choice explains most"
    assert told in line or share > 1 - 1e-6
    assert words.short_cause(row).startswith("none alone; best: ") == (share < 0.5)


@pytest.mark.parametrize("share", [0.206, 0.4999, 0.5, 0.93])
def test_most_is_half_and_more(share):
    row = compared(batch(), ["dr-grpo"])["dr-grpo"]
    row = replace(row, causes=((row.causes[0][0], share),))
    line = words.cause_line(row, batch(), BASE)
    assert ("One choice explains most of it" in line) == (share >= 0.5)
    assert ("No single choice explains most of it. The best is: " in line) == (share < 0.5)
    assert f"Alone it explains {words.percent(share)} of this difference." in line


def test_a_missing_reward_is_no_number_where_the_trainer_handles_none():
    scenario = batch([[1, np.nan, 0, 0], [1, 0, 0, 1]])
    found = compared(scenario)
    frame = settings_frame(found, BASE)
    row = frame.loc["verl 0.9.1, grpo"]
    assert (row["loss"], row["gradient norm"], row["largest difference"]) == ("NaN", "NaN", "–")
    assert row["explained by one choice"] == words.SPOILT_SHORT
    assert frame.loc["◆ TRL 1.16", "loss"] != "NaN"
    for prompt, spoilt in ((0, True), (1, False)):
        figure = setting_map(found, None, "advantages", prompt, palette=LIGHT)
        written = next(trace for trace in figure.data if trace.name == "numbers").text
        assert ("→ NaN" in written) == spoilt
        check_drawable(figure)
        check_drawable(setting_map(found, None, "weights", prompt, palette=LIGHT))
    assert f"{words.SPOILT}: verl 0.9.1 grpo, OpenRLHF" in words.beside_line(found, scenario, 0)
    assert words.cause_line(found["verl-0.9.1-grpo"], scenario, BASE).endswith(f"{words.SPOILT}.")


def test_beside_a_base_that_gives_nan_nothing_is_compared():
    scenario, base = batch([[1, np.nan, 0, 0]]), "verl-0.9.1-grpo"
    found = compared(scenario, base=base)
    assert set(settings_frame(found, base)["largest difference"]) == {"–"}
    assert "so nothing can be compared" in words.farthest_line(None, found, scenario, base)
    assert "since verl 0.9.1, grpo gives NaN" in words.cause_line(found[BASE], scenario, base)


def test_rows_that_hold_the_kl_in_their_advantages_are_named():
    line = words.beside_line(compared(batch(), [*FIRST, "rloo"]), batch(), 0)
    assert "With the KL in them, taken off the advantages: OpenRLHF 0.11 group_norm." in line
    assert "With the KL in them, taken off the rewards: RLOO (paper)." in line


def test_a_kl_of_0_is_in_no_advantage():
    scenario = build_scenario(rewards=[[1, 0, 0, 0]])
    assert words.beside_line(compared(scenario, [*FIRST, "rloo"]), scenario, 0) == ""


def test_terms_are_part_of_the_rewards_of_every_row():
    scenario = batch([[1, 1, 1, 1]]).with_terms((Term("bonus"),), [[[1.0], [0.0], [0.0], [0.0]]])
    found = compared(scenario.choose("rewards", "sum_then_normalize"))
    for key in (BASE, "verl-0.9.1-grpo", "deepseekmath", "dr-grpo"):
        assert found[key].advantages[0, 0] > 0
    assert "weighted sum" in words.beside_line(found, scenario, 0)


def test_rounding_is_no_result():
    # Advantages of 0.3, 0.1 and 0.2 less their mean of 0.2: the last is rounding, as is their sum.
    scenario = build_scenario(rewards=[[0.3, 0.1, 0.2]])
    found = compared(scenario, ["dr-grpo", BASE])
    for row in found.values():
        assert row.loss == 0 or abs(row.loss) > 1e-9
    figure = setting_map(found, None, "advantages", 0, palette=LIGHT)
    written = next(trace for trace in figure.data if trace.name == "numbers").text
    assert not [text for text in written if "e−1" in text]


def test_rounding_is_no_result_in_a_log_either():
    scenario = build_scenario(rewards=[[0.3, 0.1, 0.2]])
    for trainer, names in (
        ("TRL", ["loss"]),
        ("verl", ["actor/pg_loss", "critic/advantages/mean"]),
    ):
        frame = logged_frame(trainer, compared(scenario, logged_columns(trainer, FIRST)))
        for name in names:
            assert set(frame.loc[name].iloc[:-1]) == {"0"}, name


def test_huge_numbers_are_written_as_they_are():
    found = compared(build_scenario(rewards=[[1e308, 0, 0, 0]]), ["dr-grpo"])
    figure = setting_map(found, None, "advantages", 0, palette=LIGHT)
    written = next(trace for trace in figure.data if trace.name == "numbers").text
    assert list(written) == ["7.5e307", *["−2.5e307"] * 3]


def test_the_picture_of_a_difference_is_titled_with_both_names():
    row = compared(batch(), ["gspo"])["gspo"]
    title, unit = words.gap_title(row, BASE)
    assert title == "Gradient: GSPO (paper) less TRL 1.16"
    assert unit == "of each token, per nat of log π"


@pytest.mark.parametrize("trainer", ["TRL", "verl"])
def test_the_log_of_a_trainer_stands_under_its_own_names(trainer):
    scenario = batch([[1, 0, 0, 0], [1, 1, 1, 1]])
    keys = logged_columns(trainer, FIRST)
    found = compared(scenario, keys)
    frame = logged_frame(trainer, found)
    name, value = {
        "TRL": ("frac_reward_zero_std", "0.5"),
        "verl": ("critic/score/mean", "0.625"),
    }[trainer]
    assert list(frame.columns) == [*(row.label for row in found.values()), HOW]
    assert set(frame.loc[name].iloc[:-1]) == {value}
    assert all(text.endswith(".") for text in frame[HOW])
    line = logged_line(trainer, found)
    assert "entropy" in line  # the batch holds none
    assert name not in line


def test_a_log_of_rewards_is_nan_where_verl_handles_no_missing_one():
    scenario = batch([[1, np.nan, 0, 0]])
    found = compared(scenario, logged_columns("verl", FIRST))
    frame = logged_frame("verl", found)
    assert set(frame.loc["critic/score/mean"].iloc[:-1]) == {"NaN"}
    assert "NaN" not in set(frame.loc["response_length/mean"])
    assert "verl does not handle a missing reward" in logged_line("verl", found)
    trl = logged_frame("TRL", compared(scenario, logged_columns("TRL", FIRST)))
    assert "NaN" not in set(trl.to_numpy().ravel())


def test_weights_are_those_of_a_token_and_0_where_it_left_the_loss():
    scenario = batch([[1, 0, 0, 0], [1, 1, 1, 1]])
    found = compared(scenario, ["trl-1.16", "dapo", "dr-grpo"])
    np.testing.assert_allclose(found["trl-1.16"].weights, 1 / 16)  # of all tokens
    np.testing.assert_allclose(found["dapo"].weights, [[1 / 8] * 4, [0] * 4])  # tied: dropped
    np.testing.assert_allclose(found["dr-grpo"].weights, 1 / (8 * 3000))


def test_changed_cells_are_outlined():
    now, former = compared(batch()), compared(batch([[1, 0, 0, 1]]))
    figure = setting_map(now, former, "advantages", 0, palette=LIGHT)
    assert len(figure.layout.shapes) == 4 * len(FIRST)
    assert not setting_map(now, now, "advantages", 0, palette=LIGHT).layout.shapes


AWKWARD = {
    "one completion": batch([[0.7]]),
    "no score": batch([[np.nan, np.nan]]),
    "absent": batch([[1, 0], [1, 1]], present=[[1, 1], [0, 0]]),
    "huge": build_scenario(rewards=[[1e308, -1e308, 0]]),
    "float32": build_scenario(rewards=np.array([[1, 0, 0.5]], dtype=np.float32)),
    "masked": batch([[1, 0]], mask=np.zeros((1, 2, 2))),
    "many": build_scenario(rewards=[np.arange(80.0)]),
    "infinite": build_scenario(
        rewards=[[1, 0]], logp_new=[[[-1.0], [-1.0]]], logp_ref=[[[-np.inf], [-1.0]]]
    ),
}


@pytest.mark.parametrize("scenario", AWKWARD.values(), ids=AWKWARD)
def test_awkward_batches_are_compared_and_drawn(scenario):
    found = rows(scenario, SETTINGS, FIRST_BASE, causes=False)
    settings_frame(found, FIRST_BASE)
    for row in compared(scenario).values():
        assert "undefined" not in words.cause_line(row, scenario, FIRST_BASE)
    for prompt in range(scenario.sizes["P"]):
        words.advantages_line(found, prompt)
        for quantity in ("advantages", "weights"):
            check_drawable(setting_map(found, None, quantity, prompt, palette=LIGHT))
