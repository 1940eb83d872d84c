"""How settings differ, in words, tables and pictures: from a batch that is small enough to see."""

import numpy as np
import pytest

from grpo_core import build_scenario
from grpo_core.comparison import OWN
from grpo_core.presets import PRESETS, differences
from pages._ui import conventions_words as words
from pages._ui.conventions_charts import setting_map
from pages._ui.conventions_rows import FIRST, FIRST_BASE, SETTINGS, rows
from pages._ui.conventions_tables import settings_frame
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
    row = compared(batch(), ["trl-jul26"])["trl-jul26"]  # beta is 0 in both
    assert "same gradient as TRL 1.16 on this batch, though 1 choice differs" in words.cause_line(
        row, batch(), BASE
    )
    assert "KL weighted: not weighted instead of by the ratio" in words.differs_line(
        row, batch(), BASE
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
    assert "With “KL, beta: 0.4 instead of 0” 100% is explained." in words.cause_line(
        row, scenario, BASE
    )


def test_where_everything_agrees_it_is_said():
    tied = batch([[1, 1, 1, 1]])
    found = compared(tied, [BASE, "verl-0.9.1-grpo"])
    assert all(row.where is None for row in found.values())
    assert words.advantages_line(found, 0) == (
        "The best of this group gets 0 under every setting shown."
    )
    assert "All of these give the gradient" in words.farthest_line(None, tied, BASE)


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


def test_the_table_has_a_row_for_each_setting_and_what_was_before():
    scenario = batch()
    now = compared(scenario)
    former = compared(batch([[0, 1, 0, 0]]))
    frame = settings_frame(now, BASE, former)
    assert list(frame.index)[:2] == ["as chosen here", "◆ TRL 1.16"]
    assert "→" in frame.loc["◆ TRL 1.16", "loss"]
    assert frame.loc["◆ TRL 1.16", "largest difference"] == "0"
    assert frame.loc["NeMo-RL, grpo", "comes mostly from"].startswith("advantage (")


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
