"""The page Conventions, driven without a browser: settings compared, taken, questions opened."""

import json

import numpy as np
import pytest

from grpo_core import build_scenario, same_scenario
from grpo_core.presets import PRESETS
from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.menu import MENU
from pages._ui.questions import QUESTIONS, TOPICS
from pages._ui.view import View
from tests.app.driver import data, figures, messages, scenario, settled, start, type_cell, visit

EXAMPLES = load_examples()
ROW = MENU["Conventions"]


def opened(given=None):
    link = "" if given is None else encode(given, View(), EXAMPLES)
    return visit(start(link), ROW)


def said(app):
    return " ".join(block.proto.body for block in app.get("html"))


def table(app):
    return next(t.value for t in app.dataframe if "explained by one choice" in t.value.columns)


def pick(app, key, value):
    widgets = [*app.multiselect, *app.selectbox]
    return settled(next(w for w in widgets if w.key == key).set_value(value).run())


def answers(app, row):
    """Whether question and answer stand at the head of the page."""
    return any(f"{row.asks} {row.answer.text}" == box.value.replace("\\", "") for box in app.info)


def lesson(app):
    return " ".join(box.value.replace("\\", "") for box in app.caption)


def test_one_right_of_four_is_worth_what_each_trainer_says():
    app = opened(build_scenario(rewards=[[1, 0, 0, 0]]))
    written = next(t for t in data(app)[0] if t["name"] == "numbers")["text"]
    for text in ("1.4997", "1.5000", "1.7321", "0.7500", "1.0000", "−0.5773"):
        assert text in written


def test_the_table_compares_every_chosen_setting_with_the_base():
    app = opened()
    assert len(table(app)) == 8
    assert table(app).loc["◆ TRL 1.16", "largest difference"] == "0"
    assert "Farthest from the base is" in said(app)
    assert "Alone it explains" in said(app)


def test_a_typed_reward_moves_the_numbers_and_outlines_what_changed():
    app = opened()
    before = figures(app)[0]
    loss = table(app).loc["◆ TRL 1.16", "loss"]
    type_cell(app, "rewards", 0, "rewards", "0.1")
    assert figures(app)[0] != before
    assert table(app).loc["◆ TRL 1.16", "loss"] != loss
    assert json.loads(figures(app)[0])["layout"]["shapes"]


def test_settings_and_base_are_chosen_and_survive_another_page():
    app = opened()
    pick(app, "conventions_keys", ["trl-1.16", "rloo"])
    pick(app, "conventions_base", "rloo")
    pick(app, "conventions_one", "maxrl")
    visit(app, MENU["KL"])
    visit(app, ROW)
    assert list(table(app).index) == ["TRL 1.16", "◆ RLOO (paper)"]
    assert "MaxRL (paper) differs from RLOO (paper) in:" in said(app)


def test_with_nothing_chosen_the_base_stands_alone():
    app = opened()
    pick(app, "conventions_keys", [])
    assert list(table(app).index) == ["◆ TRL 1.16"]
    assert "All of these give the gradient of TRL 1.16" in said(app)


def test_a_setting_can_be_taken_into_the_example():
    app = opened()
    pick(app, "conventions_one", "nemo-rl-grpo")
    settled(app.button(key="conventions_take").click().run())
    assert scenario(app).conventions == PRESETS["nemo-rl-grpo"].conventions
    assert app.button(key="conventions_take").disabled
    np.testing.assert_array_equal(scenario(app)["rewards"], opened().session_state[
        "store"].scenario["rewards"])  # fmt: skip


@pytest.mark.parametrize("topic", TOPICS)
def test_every_question_stands_with_its_answer_and_opens(topic):
    app = opened()
    app.session_state["conventions_topic_chosen"] = topic
    settled(app.run())
    rows = [row for row in QUESTIONS.values() if row.topic == topic]
    for row in rows:
        assert any(b.key == f"open_{row.key}" for b in app.button)
    for row in rows:
        settled(app.button(key=f"open_{row.key}").click().run())
        assert same_scenario(scenario(app), row.scenario)
        assert app.button(key=f"open_{row.key}").disabled
        assert not messages(app)
        assert answers(app, row)
        assert "The small batch of a public question" in lesson(app)


def test_a_large_batch_says_that_not_all_choices_are_switched():
    shape = (2, 64, 512)
    rng = np.random.default_rng(0)
    old = -rng.exponential(size=shape).astype(np.float32)
    big = build_scenario(
        rewards=rng.integers(0, 2, shape[:2]).astype(np.float32),
        logp_old=old,
        logp_new=np.minimum(old + rng.normal(0, 0.1, shape).astype(np.float32), 0),
    )
    app = opened()
    app.session_state["store"].scenario = big
    settled(app.run())
    assert "This batch is large" in said(app)
    assert "Alone it explains" in said(app)


def again(app, row=ROW):
    """The page in a fresh session that opens the link of this one."""
    return visit(start(app.session_state["store"].link), row)


def test_the_link_holds_what_is_compared():
    app = opened()
    pick(app, "conventions_keys", ["trl-1.16", "rloo", "dapo"])
    pick(app, "conventions_base", "rloo")
    pick(app, "conventions_one", "maxrl")
    there = again(app)
    assert list(table(there).index) == ["TRL 1.16", "◆ RLOO (paper)", "DAPO (paper)"]
    assert "MaxRL (paper) differs from RLOO (paper) in:" in said(there)


def test_what_the_page_shows_by_itself_is_not_in_the_link():
    app = opened()
    before = app.session_state["store"].link
    pick(app, "conventions_base", "rloo")
    assert app.session_state["store"].link != before
    pick(app, "conventions_base", "trl-1.16")
    assert app.session_state["store"].link == before


def test_choices_that_are_not_known_here_are_passed_over():
    shown = EXAMPLES["four-answers"].scenario
    choices = {"Conventions": {"keys": ("trl-1.16", "gone"), "base": "gone", "one": "gone"}}
    app = visit(start(encode(shown, View(choices=choices), EXAMPLES)), ROW)
    assert list(table(app).index) == ["◆ TRL 1.16"]


def test_an_opened_question_keeps_its_answer_in_the_link_and_loses_it_with_an_edit():
    row = QUESTIONS["million"]
    app = opened()
    settled(app.button(key="open_million").click().run())
    there = again(app)
    assert answers(there, row)
    type_cell(there, "rewards", 0, "rewards", "0.5")
    assert not answers(there, row)
    assert "begun from the question “Why is an advantage one million?”" in lesson(there)


def test_the_setting_looked_at_is_the_farthest_until_another_is_chosen():
    app = opened(build_scenario(rewards=[[1, 0, 0, 0]]))
    looked_at = next(w for w in app.selectbox if w.key == "conventions_one")
    assert f"Farthest from the base is {PRESETS[looked_at.value].label}" in said(app)
    pick(app, "conventions_one", "gspo")
    assert "GSPO (paper) differs from TRL 1.16" in said(app)
    pick(app, "conventions_keys", ["trl-1.16", "dr-grpo"])  # GSPO has left the comparison
    assert next(w for w in app.selectbox if w.key == "conventions_one").value == "dr-grpo"


def test_the_picture_of_the_difference_has_a_title_with_both_names():
    app = opened()
    pick(app, "conventions_one", "gspo")
    titles = [
        note["text"]
        for spec in figures(app)
        for note in json.loads(spec)["layout"].get("annotations", [])
    ]
    assert "Gradient: GSPO (paper) less TRL 1.16" in titles


def test_terms_stand_in_the_table_of_rewards_and_can_be_typed():
    app = opened(QUESTIONS["missing-in-gdpo"].scenario)
    type_cell(app, "terms", 1, "0", "3")
    assert scenario(app)["term_values"][0, 1, 0] == 3


def test_a_missing_reward_is_nan_in_the_rows_of_trainers_that_handle_none():
    app = opened(QUESTIONS["unscored"].scenario)
    assert table(app).loc["verl 0.9.1, grpo", "loss"] == "NaN"
    assert "NaN in the trainer: it does not handle a missing reward: verl" in said(app)
    pick(app, "conventions_one", "verl-0.9.1-grpo")
    assert "No picture: verl 0.9.1, grpo: NaN in the trainer" in said(app)


def test_the_logs_of_trl_and_verl_stand_under_their_own_names():
    app = opened(QUESTIONS["std-of-the-batch"].scenario)

    def log():
        return next(t.value for t in app.dataframe if "how it is averaged" in t.value.columns)

    assert set(log().loc["reward_std"].iloc[:-1]) == {"0.5774"}
    app.session_state["conventions_logs"] = "verl"
    settled(app.run())
    assert set(log().loc["critic/score/mean"].iloc[:-1]) == {"0.5"}
