"""The page Length, driven without a browser: lengths, stop logits, the hunch, the rules."""

import pytest

from grpo_core import same_scenario
from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.menu import MENU
from pages._ui.view import View
from tests.app.driver import data, messages, scenario, settled, start, table_key, type_cell, visit

EXAMPLES = load_examples()


def opened(key="long-against-short"):
    return visit(start(encode(EXAMPLES[key].scenario, View(), EXAMPLES)), MENU["Length"])


def said(app):
    return " ".join(block.proto.body for block in app.get("html"))


def lengths(app):
    return scenario(app).valid.sum(axis=2).tolist()


def points(app):
    return next(
        t for chart in data(app) for t in chart if t.get("name", "").endswith(", completions")
    )


def test_an_edited_length_moves_the_triangle_and_the_sentence():
    app = opened()
    assert "one of the longest (17) counts, by mean per completion (GRPO): 0.235" in said(app)
    before = points(app)
    type_cell(app, "rewards", 3, "tokens", "8")
    assert not messages(app)
    assert lengths(app) == [[4, 4, 17, 8]]
    assert points(app) != before


def test_a_second_edit_keeps_the_first_and_the_table():
    app = opened()
    key = table_key(app, "rewards")
    type_cell(app, "rewards", 3, "tokens", "8")
    assert table_key(app, "rewards") == key
    type_cell(app, "rewards", 0, "tokens", "20")
    type_cell(app, "rewards", 1, "rewards", "0.5")
    assert lengths(app) == [[20, 4, 17, 8]]
    assert scenario(app)["rewards"].tolist() == [[1, 0.5, 1, 0]]


def test_what_changes_elsewhere_makes_the_table_afresh():
    app = opened()
    type_cell(app, "rewards", 3, "tokens", "8")
    key = table_key(app, "rewards")
    here = app.session_state["store"]
    here.scenario = here.scenario.replace(rewards=[[0.0, 1.0, 1.0, 0.0]])
    settled(app.run())
    assert table_key(app, "rewards") != key
    assert lengths(app) == [[4, 4, 17, 8]]
    assert scenario(app)["rewards"].tolist() == [[0, 1, 1, 0]]


@pytest.mark.parametrize(
    ("text", "word"), [("2.5", "whole number"), ("", "blank"), ("-1", "whole")]
)
def test_what_is_no_length_says_so_and_the_last_picture_stays(text, word):
    app = opened()
    before = points(app)
    type_cell(app, "rewards", 2, "tokens", text)
    assert word in messages(app)[0]
    assert points(app) == before


def test_single_tokens_get_lengths_that_become_the_examples_own_when_kept():
    app = opened("one-zero-zero-one")
    assert same_scenario(scenario(app), EXAMPLES["one-zero-zero-one"].scenario)
    assert "These lengths are made up" in " ".join(box.value for box in app.caption)
    settled(app.button(key="length_keep").click().run())
    assert lengths(app) == [[4, 12, 8, 16]]


def test_an_edit_of_made_up_lengths_keeps_the_others():
    app = opened("one-zero-zero-one")
    type_cell(app, "rewards", 0, "tokens", "7")
    assert lengths(app) == [[7, 12, 8, 16]]


def test_stop_logits_become_part_of_the_example_and_move_the_pull():
    app = opened()
    before = said(app)
    type_cell(app, "stop_logits", 0, "stop_logits", "-3")
    assert scenario(app)["stop_logits"][0] == -3
    assert said(app) != before


def test_without_a_hunch_no_rule_pulls():
    app = opened()
    assert "With a hunch that is right 90% of the time" in said(app)
    settled(app.number_input(key="length_hunch").set_value(0.5).run())
    assert scenario(app)["hunch"] == 0.5
    assert "With a hunch" not in said(app)
    assert "no rule pulls at lengths" in said(app)


def test_a_hunch_is_in_the_link_and_one_below_a_half_is_refused():
    app = opened()
    settled(app.number_input(key="length_hunch").set_value(0.75).run())
    link = app.query_params["s"]
    fresh = visit(start(link[0] if isinstance(link, list) else link), MENU["Length"])
    assert "With a hunch that is right 75% of the time" in said(fresh)
    settled(app.number_input(key="length_hunch").set_value(0.4).run())
    assert "wanted a chance: a number from 0.5 to 1" in messages(app)[0]
    assert scenario(app)["hunch"] == 0.75


def test_what_looks_beyond_a_group_shows_the_simulation_alone():
    app = opened()
    here = app.session_state["store"]
    here.scenario = here.scenario.choose("whitening", "tokens")
    settled(app.run())
    assert "the points are simulated batches alone" in said(app)


def test_places_to_stop_can_be_added():
    app = opened()
    settled(app.number_input(key="length_places").set_value(20).run())
    assert scenario(app)["stop_logits"].size == 20
    assert "Answers of 1 to 21 tokens" in said(app)


def test_a_rule_can_be_chosen_by_its_button_and_takes_the_length_out():
    app = opened()
    settled(
        next(b for b in app.button if b.label == "Use constant length (Dr. GRPO)").click().run()
    )
    assert scenario(app).conventions["aggregation"].variant == "constant"
    assert "So under the chosen rule a token of the long wrong answer" not in said(app)


def test_the_four_combinations_can_be_seen_by_token_and_by_answer():
    app = opened()
    app.session_state["length_measure"] = "whole"
    before = data(app)
    settled(app.run())
    assert data(app) != before


def test_the_link_opens_the_same_lengths_elsewhere():
    app = opened()
    type_cell(app, "rewards", 3, "tokens", "8")
    link = app.query_params["s"]
    fresh = visit(start(link[0] if isinstance(link, list) else link), MENU["Length"])
    assert lengths(fresh) == [[4, 4, 17, 8]]
    assert points(fresh) == points(app)
