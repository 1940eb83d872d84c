"""The page Silent groups, driven without a browser: ties made, counted, sampled and mended."""

import pytest

from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.menu import MENU
from pages._ui.view import View
from tests.app.driver import figures, messages, scenario, settled, start, type_cell, visit

EXAMPLES = load_examples()


def opened(key="mostly-silent", selected=(0, 0, 0)):
    given = EXAMPLES[key].scenario
    return visit(start(encode(given, View(selected), EXAMPLES)), MENU["Silent_groups"])


def said(app):
    return " ".join(block.proto.body for block in app.get("html"))


def press(app, label):
    return settled(next(b for b in app.button if b.label == label).click().run())


def remedies(app):
    return next(t.value for t in app.dataframe if "groups generated" in t.value.columns)


def test_the_page_counts_the_tied_groups_of_the_batch():
    app = opened()
    assert "75% of the groups" in said(app)
    assert "In the batch 6 of 8 groups are tied, 75%" in said(app)
    assert set(remedies(app).loc["Nothing", ["groups that teach"]]) == {"2 of 8"}


def test_breaking_a_tie_in_the_table_gives_its_group_a_gradient():
    app = opened()
    before = figures(app)
    type_cell(app, "rewards", 0, "1", "1")
    assert not messages(app)
    assert "In the batch 5 of 8 groups are tied" in said(app)
    assert figures(app)[0] != before[0]
    assert remedies(app).loc["Nothing", "groups that teach"] == "3 of 8"


def test_a_button_ties_the_shown_group():
    app = opened(selected=(4, 0, 0))
    press(app, "Make prompt 4's rewards equal")
    assert set(scenario(app)["rewards"][4].tolist()) == {1.0}
    assert "In the batch 7 of 8 groups are tied" in said(app)
    assert next(b for b in app.button if b.label.startswith("Make prompt 4")).disabled


def test_without_beta_nothing_stays_in_a_tied_group():
    app = opened()
    assert "What stays is the KL term" in said(app)
    settled(app.number_input(key="silent_groups_kl_beta").set_value(0.0).run())
    assert "With beta = 0 nothing stays" in said(app)


def test_a_typed_rate_moves_the_expected_share_and_the_draws():
    app = opened()
    assert "Groups of 4 of these prompts are silent in 67.7% of cases" in said(app)
    type_cell(app, "kinds_rates", 0, "success rate", "0.5")
    # 0.9224 becomes 0.125 in one of ten kinds; 16 / (1 - 0.5971)
    assert "silent in 59.7% of cases" in said(app)
    assert "To keep 16 mixed groups of 4, 39.71 are generated" in said(app)


def test_larger_groups_tie_less_and_the_budget_buys_fewer_of_them():
    app = opened()
    settled(app.number_input(key="silent_groups_group_size").set_value(16).run())
    settled(app.number_input(key="silent_groups_budget").set_value(128).run())
    assert scenario(app)["budget"] == 128
    assert "To keep 8 mixed groups of 16" in said(app)


def test_every_remedy_is_on_the_same_batch():
    app = opened()
    frame = remedies(app)
    assert frame.loc["Filter them out", "groups that teach"] == "2 of 2"
    assert frame.loc["Dynamic sampling", "groups that teach"] == "8 of 8"
    assert frame.loc["Std of the batch", "groups that teach"] == "2 of 8"
    assert frame.loc["Leave one out", "groups that teach"] == "2 of 8"
    assert "the policy learns what it pays for and nothing of the task" in said(app)


@pytest.mark.parametrize("key", ["bonus-breaks-a-tie", "kl-in-reward", "recorded-batch"])
def test_ties_that_something_else_broke_are_told_apart(key):
    app = opened(key)
    assert not messages(app)
    assert len(figures(app)) == 5


def test_the_weight_of_the_bonus_is_edited_beside_it():
    app = opened()
    assert "weight 0.1) ends the silence" in said(app)
    settled(app.number_input(key="silent_groups_bonus_weight").set_value(0.5).run())
    assert scenario(app)["bonus_weight"] == 0.5
    assert "weight 0.5) ends the silence" in said(app)
