"""The page Shaping, driven without a browser: terms edited, combined, weighed, and refused."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from grpo_core import STAGES, TERMS, build_scenario, evaluate, same_scenario
from grpo_core.shaping_parts import COMBINE
from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.menu import MENU
from pages._ui.view import View
from tests.app.driver import data, figures, messages, scenario, settled, start, type_cell, visit

EXAMPLES = load_examples()


def opened(given, selected=(0, 0, 0)):
    return visit(start(encode(given, View(selected), EXAMPLES)), MENU["Shaping"])


def example(key, selected=(0, 0, 0)):
    return opened(EXAMPLES[key].scenario, selected)


def said(app):
    return " ".join(block.proto.body for block in app.get("html"))


def trace(app, name):
    return next(t for chart in data(app) for t in chart if t.get("name") == name)


def press(app, label):
    return settled(next(b for b in app.button if b.label == label).click().run())


def test_an_example_without_terms_opens_on_a_made_up_bonus_and_stays_as_it_is():
    app = visit(start(), MENU["Shaping"])
    assert trace(app, "bonus")
    assert "“bonus”" in said(app)
    assert any("made up" in note.value for note in app.caption)
    assert same_scenario(scenario(app), EXAMPLES["four-answers"].scenario)


def test_the_made_up_bonus_can_be_kept():
    app = press(visit(start(), MENU["Shaping"]), "Keep this bonus")
    assert [term.name for term in scenario(app).terms] == ["bonus"]
    assert scenario(app).conventions["rewards"].variant == "sum_then_normalize"
    assert not any("made up" in note.value for note in app.caption)


def test_an_edit_of_the_made_up_bonus_stores_it():
    app = visit(start(), MENU["Shaping"])
    type_cell(app, "terms", 1, "0", "0.5")
    type_cell(app, "terms", 2, "task", "0.25")
    assert_array_equal(scenario(app)["term_values"][0, :, 0], [1, 0.5, 1, 0])
    assert scenario(app)["rewards"][0, 2] == 0.25
    assert not messages(app)


def test_a_weight_is_typed_and_moves_the_pictures():
    app = example("bonus-breaks-a-tie")
    assert "+0.9182" in said(app)
    before = figures(app)
    settled(app.number_input(key="shaping_term_0_weight").set_value(1e-4).run())
    assert scenario(app).terms[0].weight == 1e-4
    assert "+0.3258" in said(app)
    assert figures(app) != before


def test_two_edits_of_different_kinds_are_both_kept():
    app = example("length-and-judge")
    type_cell(app, "terms", 0, "1", "0.125")
    settled(app.number_input(key="shaping_term_1_weight").set_value(0.75).run())
    type_cell(app, "terms", 1, "task", "0.5")
    assert scenario(app)["term_values"][0, 0, 1] == 0.125
    assert scenario(app).terms[1].weight == 0.75
    assert scenario(app)["rewards"][0, 1] == 0.5


def test_a_blank_is_a_term_that_does_not_apply():
    app = example("bonus-breaks-a-tie")
    type_cell(app, "terms", 0, "0", "")
    assert np.isnan(scenario(app)["term_values"][0, 0, 0])
    assert not messages(app)


@pytest.mark.parametrize(("text", "words"), [("inf", "finite"), ("one", "not a number")])
def test_a_bad_cell_is_named_and_the_picture_stays(text, words):
    app = example("bonus-breaks-a-tie")
    before = figures(app)
    type_cell(app, "terms", 1, "0", text)
    assert len(messages(app)) == 1
    assert words in messages(app)[0]
    assert "1" in messages(app)[0]
    assert figures(app) == before


class TestTerms:
    def test_one_is_added_and_removed(self):
        app = press(example("bonus-breaks-a-tie"), "Add a term")
        assert [term.name for term in scenario(app).terms] == ["bonus", "term"]
        app = press(app, "Remove")
        assert [term.name for term in scenario(app).terms] == ["term"]

    @pytest.mark.parametrize("formula", TERMS)
    def test_every_formula_can_be_chosen(self, formula):
        app = example("bonus-breaks-a-tie")
        settled(app.selectbox(key="shaping_term_0_formula").set_value(formula).run())
        assert scenario(app).terms[0].formula.variant == formula
        assert not messages(app)
        labels = {box.key: box.label for box in (*app.number_input, *app.selectbox)}
        for option in TERMS[formula].options:
            assert labels[f"shaping_term_0_{option.key}"] == option.label

    def test_a_name_that_is_taken_is_refused_at_its_place(self):
        app = example("length-and-judge")
        settled(app.text_input(key="shaping_term_0_name").set_value("judge").run())
        assert "called 'judge'" in messages(app)[0]
        assert scenario(app).terms[0].name == "length"

    def test_a_name_is_never_read_as_markup(self):
        app = example("bonus-breaks-a-tie")
        settled(app.text_input(key="shaping_term_0_name").set_value("<b>$x$").run())
        assert "“&lt;b&gt;$x$”" in said(app)
        assert "<b>$x$" not in said(app)

    def test_the_weight_of_the_chosen_term_is_varied(self):
        app = example("length-and-judge")
        app.session_state["shaping_varied_2"] = 1
        settled(app.run())
        assert "completions gains most by “judge”" in said(app)


class TestCombining:
    @pytest.mark.parametrize("combine", COMBINE)
    def test_before_or_after(self, combine):
        app = example("bonus-breaks-a-tie")
        settled(app.selectbox(key="shaping_combine").set_value(combine).run())
        assert scenario(app).conventions["rewards"].variant == combine
        advantages = evaluate(scenario(app)).advantages[0]
        assert ("counts in full" in said(app)) == (advantages.max() < 0.5)

    def test_only_rows_that_take_terms_are_offered(self):
        app = visit(start(), MENU["Shaping"])
        rows = STAGES["rewards"].variants
        labels = [rows[key].label.removeprefix("with terms: ") for key in COMBINE]
        assert app.selectbox(key="shaping_combine").options == labels

    def test_terms_that_the_example_ignores_are_shown_and_said_so(self):
        ignored = EXAMPLES["bonus-breaks-a-tie"].scenario.choose("rewards", "outcome")
        app = opened(ignored)
        assert "+0.9182" in said(app)
        assert scenario(app).conventions["rewards"].variant == "outcome"
        app = press(app, "Judge it with its terms")
        assert scenario(app).conventions["rewards"].variant == "sum_then_normalize"


class TestWeights:
    def test_the_safe_weight_can_be_used(self):
        app = example("recorded-step-bonus")
        assert "is beyond it" in said(app)
        settled(app.button(key="use_safe_weight").click().run())
        assert scenario(app).terms[0].weight == pytest.approx(1 / 7)
        assert "The present weight, 0.1429, is within" in said(app)

    def test_the_weight_of_a_tenth_can_be_used(self):
        app = visit(start(), MENU["Shaping"])
        settled(app.button(key="use_share_weight").click().run())
        assert "The task drives the update: 90% of the spread, “bonus” 10%" in said(app)

    def test_where_there_is_none_the_button_is_off(self):
        assert example("bonus-breaks-a-tie").button(key="use_share_weight").disabled


class TestWorlds:
    def test_rates_and_potential_go_into_the_link(self):
        app = example("bonus-breaks-a-tie")
        settled(app.number_input(key="shaping_arm_rates_1").set_value(0.2).run())
        settled(app.number_input(key="shaping_potential_0").set_value(0.5).run())
        settled(app.number_input(key="shaping_group_size").set_value(4).run())
        assert_array_equal(scenario(app)["arm_rates"], [0.3, 0.2])
        assert_array_equal(scenario(app)["potential"], [0.5, 0.5, 0])
        link = app.query_params["s"]
        fresh = visit(start(link), MENU["Shaping"])
        assert data(fresh) == data(app)

    def test_a_large_group_is_said_to_be_cut(self):
        app = opened(EXAMPLES["bonus-breaks-a-tie"].scenario.replace(group_size=64))
        assert "Computed for a group of 8" in said(app)


def test_what_is_too_large_to_be_added_up_is_a_sentence():
    app = opened(build_scenario(rewards=[[1e308, -1e308]]))
    assert "too large to be added up" in said(app)
    assert figures(app)


def test_what_is_edited_stands_left_of_the_text_that_is_only_read():
    """On a phone the last columns are out of sight."""
    app = example("recorded-step-bonus")
    columns = list(app.data_editor[0].value.columns)
    assert columns[0] == "task"
    assert columns.index("0") < columns.index("text")
