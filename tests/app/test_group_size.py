"""The page Group size, driven without a browser: answers, group size, budget, the batch below."""

import pytest

from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.menu import MENU
from pages._ui.view import View
from tests.app.driver import data, messages, scenario, settled, start, type_cell, visit

EXAMPLES = load_examples()


def opened(key="four-answers"):
    return visit(start(encode(EXAMPLES[key].scenario, View(), EXAMPLES)), MENU["Group_size"])


def said(app):
    return " ".join(block.proto.body for block in app.get("html"))


def bars(app):
    return next(t for chart in data(app) for t in chart if t.get("name") == "closed form")


def test_an_example_without_answers_shows_a_policy_and_stays_as_it_is():
    app = opened()
    assert "answer_logits" not in scenario(app)
    assert "A mean of 8 answers misses the true value by" in said(app)


def test_an_edited_logit_moves_the_pictures_and_becomes_part_of_the_example():
    app = opened()
    before, words = bars(app), said(app)
    type_cell(app, "answer_logits", 0, "1", "3")
    assert not messages(app)
    assert scenario(app)["answer_logits"][0, 1] == 3
    assert scenario(app)["answer_rewards"].shape == scenario(app)["answer_logits"].shape
    assert bars(app) != before
    assert said(app) != words


def test_both_tables_keep_their_edits():
    app = opened()
    type_cell(app, "answer_logits", 0, "1", "3")
    type_cell(app, "answer_rewards", 1, "2", "0.5")
    type_cell(app, "answer_logits", 1, "0", "-1")
    found = scenario(app)
    assert found["answer_logits"][[0, 1], [1, 0]].tolist() == [3, -1]
    assert found["answer_rewards"][1, 2] == 0.5


def test_the_group_size_changes_the_sentence_and_pairs_are_the_known_ones():
    app = opened("one-other-answer")
    assert "0.344 against 0.252" in said(app)
    settled(app.number_input(key="group_size_group_size").set_value(8).run())
    assert scenario(app)["group_size"] == 8
    assert "A mean of 8 answers" in said(app)


def test_the_budget_names_the_best_size():
    app = opened("budget-of-samples")
    assert "G = 5 has the least noise" in said(app)
    settled(app.number_input(key="group_size_budget").set_value(64).run())
    assert "64 samples, fresh prompts in every batch" in said(app)


def test_kinds_and_answers_can_be_added():
    app = opened()
    settled(app.number_input(key="group_size_size_Q").set_value(6).run())
    settled(app.number_input(key="group_size_size_A").set_value(5).run())
    assert not messages(app)
    assert scenario(app)["answer_logits"].shape == (6, 5)


def test_one_kind_and_its_signal_can_be_chosen():
    app = opened()
    before = bars(app)
    settled(app.selectbox(key="group_size_kind").select(2).run())
    one = bars(app)
    assert one != before
    app.session_state["size_measure"] = "signal"
    settled(app.run())
    assert bars(app) != one


def test_the_seed_moves_the_simulation_and_not_the_closed_form():
    app = opened()
    points = [t for chart in data(app) for t in chart if "simulated" in t.get("name", "")]
    before = bars(app)
    settled(app.number_input(key="group_size_seed").set_value(5).run())
    again = [t for chart in data(app) for t in chart if "simulated" in t.get("name", "")]
    assert again != points
    assert bars(app)["x"] == before["x"]


def test_another_size_can_be_tried_by_button():
    app = opened()
    settled(next(b for b in app.button if b.label == "Try G = 4").click().run())
    assert scenario(app)["group_size"] == 4


@pytest.mark.parametrize(
    ("table", "text", "word"),
    [("answer_logits", "", "blank"), ("answer_rewards", "x", "not a number")],
)
def test_what_is_no_number_says_so_and_the_last_picture_stays(table, text, word):
    app = opened()
    before = bars(app)
    type_cell(app, table, 1, "1", text)
    assert word in messages(app)[0]
    assert bars(app) == before


def test_rewards_beyond_what_can_be_computed_are_refused_in_words():
    app = opened()
    type_cell(app, "answer_rewards", 1, "1", "1e300")
    assert any("wanted a number" in message for message in messages(app))
    type_cell(app, "answer_rewards", 1, "1", "1")
    assert not messages(app)


def test_the_link_opens_the_same_answers_elsewhere():
    app = opened()
    type_cell(app, "answer_logits", 0, "1", "3")
    words = said(app)
    link = app.query_params["s"]
    fresh = visit(start(link[0] if isinstance(link, list) else link), MENU["Group_size"])
    assert scenario(fresh)["answer_logits"].tolist() == scenario(app)["answer_logits"].tolist()
    assert words.split("A mean of")[1][:300] == said(fresh).split("A mean of")[1][:300]
