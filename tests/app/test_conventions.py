"""The page Conventions, driven without a browser: settings compared, taken, questions opened."""

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
    return next(t.value for t in app.dataframe if "comes mostly from" in t.value.columns)


def pick(app, key, value):
    widgets = [*app.multiselect, *app.selectbox]
    return settled(next(w for w in widgets if w.key == key).set_value(value).run())


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
    assert "The one choice that explains most" in said(app)


def test_a_typed_reward_moves_the_numbers_and_keeps_the_former():
    app = opened()
    before = figures(app)[0]
    type_cell(app, "rewards", 0, "rewards", "0.1")
    assert figures(app)[0] != before
    assert "→" in table(app).loc["◆ TRL 1.16", "loss"]


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
    settled(app.button(key="conventions_take").click().run())
    assert scenario(app).conventions == PRESETS["nemo-rl-grpo"].conventions
    assert app.button(key="conventions_take").disabled
    np.testing.assert_array_equal(scenario(app)["rewards"], opened().session_state[
        "store"].scenario["rewards"])  # fmt: skip


@pytest.mark.parametrize("topic", TOPICS)
def test_every_question_stands_with_its_answer_and_opens(topic):
    app = opened()
    app.session_state["conventions_chosen"] = {
        **app.session_state["conventions_chosen"], "topic": topic
    }  # fmt: skip
    settled(app.run())
    rows = [row for row in QUESTIONS.values() if row.topic == topic]
    for row in rows:
        assert any(b.key == f"open_{row.key}" for b in app.button)
    for row in rows:
        settled(app.button(key=f"open_{row.key}").click().run())
        assert same_scenario(scenario(app), row.scenario)
        assert app.button(key=f"open_{row.key}").disabled
        assert not messages(app)
        assert any(row.answer.text in box.value.replace("\\", "") for box in app.info)


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
    assert "The one choice that explains most" in said(app)
