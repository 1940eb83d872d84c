"""Every page, driven without a browser: examples, links, edits, bad input."""

import re

import numpy as np
import pytest

from grpo_core import ARRAYS, STAGES, evaluate, same_scenario
from grpo_core.process_views import judged_by_steps
from grpo_core.shaping_views import with_shaping
from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.menu import MENU
from pages._ui.numbers import number
from pages._ui.view import View
from tests.app.driver import (
    ROOT,
    figures,
    messages,
    open_table,
    scenario,
    settled,
    start,
    table_key,
    type_cell,
    visit,
)

EXAMPLES = load_examples()
PAGES = list(MENU.values())
ABOUT_EXAMPLE = [row for row in PAGES if row.example]
by_page = pytest.mark.parametrize("row", PAGES, ids=[row.key for row in PAGES])


def test_every_page_file_is_in_the_menu_and_the_other_way_round():
    files = {row.file for row in PAGES}
    there = {f"pages/{path.name}" for path in (ROOT / "pages").glob("*.py")} | {"app.py"}
    assert files == there


# Every example on the pages that draw all of a batch; on the others those with steps, terms,
# kinds of prompts or groups of unlike size, and the first.
DRAWN = [
    (row, key)
    for row in ABOUT_EXAMPLE
    for key, example in EXAMPLES.items()
    if row.group == "Compute"
    or example.scenario.terms
    or example.scenario.own_sizes
    or not example.scenario["present"].all()
    or key == next(iter(EXAMPLES))
]


@pytest.mark.parametrize(("row", "key"), DRAWN, ids=[f"{r.key}-{key}" for r, key in DRAWN])
def test_every_page_draws_every_example(row, key):
    app = visit(start(encode(EXAMPLES[key].scenario, View(), EXAMPLES)), row)
    assert same_scenario(scenario(app), EXAMPLES[key].scenario)
    assert figures(app)
    assert not messages(app)


# Pages that show the example judged in another way than it says, and how.
JUDGED = {"Process_rewards": judged_by_steps, "Shaping": with_shaping}


@pytest.mark.parametrize(
    "row", [row for row in ABOUT_EXAMPLE if row.group != "Choose"], ids=lambda row: row.key
)
def test_a_page_shows_the_loss_of_its_evaluation(row):
    app = visit(start(), row)
    shown = JUDGED.get(row.key, lambda scenario: scenario)(scenario(app))
    loss = number(evaluate(shown).loss)
    assert any(loss in block.proto.body for block in app.get("html"))


@pytest.mark.parametrize("row", [row for row in PAGES if row.at_top], ids=lambda row: row.key)
def test_two_edits_in_a_row_are_both_kept_and_survive_another_page(row):
    app = visit(start(), row)
    name = row.arrays[0]
    one_column = "rewards_0" in table_key(app, name)  # the completions of one prompt
    cells = [(0, name), (3, name)] if one_column else [(0, "0"), (0, "3")]
    typed = {"bool": (False, False)}.get(ARRAYS[name].kind, ("-0.75", "-0.125"))
    for (at, column), text in zip(cells, typed, strict=True):
        type_cell(app, name, at, column, text)
    other = next(page for page in PAGES if page is not row)
    visit(app, other)
    visit(app, row)
    first = scenario(app)[name].reshape(-1)  # of prompt 0, and there of completion 0
    assert first[[0, 3]].tolist() == [float(value) for value in typed]


# An example that holds what a page edits: on most, the recorded batch.
SUITED = {"Process_rewards": "recorded-steps", "Shaping": "terms-per-token"}


def suited(row):
    """The example to edit on a page."""
    return EXAMPLES[SUITED.get(row.key, "recorded-batch")].scenario


# One other id of a token makes no n-gram come twice.
STILL = {("Shaping", "token_ids")}
LIVE = [
    (row, name)
    for row in PAGES
    for name in row.arrays
    if name in suited(row) and (row.key, name) not in STILL
]


@pytest.mark.parametrize(("row", "name"), LIVE, ids=[f"{r.key}-{n}" for r, n in LIVE])
def test_editing_one_cell_of_any_offered_array_changes_a_figure(row, name):
    # Advantages can be edited where they are given; the recorded batch has all arrays.
    app = visit(start(encode(suited(row), View(), EXAMPLES)), row)
    if scenario(app).conventions["advantage"].variant == "given" and name == "rewards":
        # which say nothing under given advantages
        app.session_state["store"].scenario = scenario(app).choose("advantage", "mean_std")
        settled(app.run())
    if name not in row.arrays[: row.at_top]:
        app = open_table(app, row.key.lower(), ARRAYS[name].label)
    before = figures(app)
    typed = False if ARRAYS[name].kind == "bool" else "-0.0625"
    type_cell(app, name, 1, _first_column(app, name), typed)
    assert not messages(app)
    assert figures(app) != before


def _first_column(app, name):
    key = table_key(app, name)
    frame = next(table.value for table in app.data_editor if table.key == key)
    return next(column for column in frame.columns if column not in ("completion text", "A"))


BAD = [
    ("rewards", "one", "not a number"),
    ("rewards", "1,5", "comma"),
    ("rewards", "inf", "finite"),
    ("rewards", "1e999", "finite"),
    ("rewards", "٣", "not a number"),
    ("rewards", "1_0", "not a number"),
    ("logp_new", "0.5", "at most 0"),
    ("logp_new", "", "blank"),
    ("logp_new", "nan", "blank"),
    ("logp_ref", "inf", "at most 0"),
]


@pytest.mark.parametrize(("name", "text", "word"), BAD, ids=[f"{n}-{t}" for n, t, _ in BAD])
def test_a_bad_cell_names_itself_and_the_last_good_picture_stays(name, text, word):
    app = start()
    if name != "rewards":
        app = open_table(app, "overview", ARRAYS[name].label)
    before, good = figures(app), scenario(app)
    column = _first_column(app, name)
    type_cell(app, name, 1, column, text)
    assert len(messages(app)) == 1
    assert word in messages(app)[0]
    assert re.search(r"(row|completion) 1\b", messages(app)[0])
    assert figures(app) == before
    assert scenario(app) is good
    type_cell(app, name, 1, column, "-0.5")
    assert not messages(app)
    assert figures(app) != before


def test_a_blank_reward_is_a_missing_score():
    app = start()
    type_cell(app, "rewards", 1, "rewards", None)
    assert np.isnan(scenario(app)["rewards"][0, 1])
    assert not messages(app)


def test_minus_infinity_can_be_typed_as_a_log_probability():
    app = open_table(start(), "overview", ARRAYS["logp_new"].label)
    type_cell(app, "logp_new", 0, "2", "-inf")
    assert scenario(app)["logp_new"][0, 0, 2] == -np.inf
    assert not messages(app)


def test_the_rounded_text_of_a_cell_typed_again_changes_nothing():
    app = start(encode(EXAMPLES["recorded-batch"].scenario, View(), EXAMPLES))
    app = open_table(app, "overview", ARRAYS["logp_new"].label)
    before = scenario(app)
    key = table_key(app, "logp_new")
    frame = next(table.value for table in app.data_editor if table.key == key)
    type_cell(app, "logp_new", 0, "0", frame.iloc[0, 0])
    assert scenario(app) is before


HOSTILE = ["", "1-", "1-AAAA", "x" * 20_000, "0-abc", "9-abc", "../../etc/passwd", "1-<script>"]


@by_page
@pytest.mark.parametrize("link", HOSTILE[1:])
def test_a_damaged_link_opens_the_default_example_with_one_sentence(row, link):
    app = visit(start(link), row)
    assert same_scenario(scenario(app), next(iter(EXAMPLES.values())).scenario)


@pytest.mark.parametrize("link", HOSTILE[1:])
def test_a_damaged_link_is_named(link):
    assert len(messages(start(link))) == 1


def test_every_variant_can_be_chosen_and_drawn():
    app = start()
    app.session_state["overview_conventions"] = True
    settled(app.run())
    for stage, row in STAGES.items():
        for variant in row.variants.values():
            if variant.needs or len(row.variants) == 1:
                continue
            settled(app.selectbox(key=f"overview_all_{stage}").select(variant.key).run())
            assert scenario(app).conventions[stage].variant == variant.key
            assert not messages(app)


def test_an_option_out_of_range_says_so_and_changes_nothing():
    app = visit(start(), MENU["Advantages"])
    before = scenario(app)
    settled(app.number_input(key="advantages_advantage_eps").set_value(-1.0).run())
    assert scenario(app) is before
    assert "at least 0" in messages(app)[0]


def test_resizing_keeps_what_fits():
    app = start()
    app.session_state["overview_arrays"] = True
    app.session_state["overview_tabs"] = "Sizes"
    settled(app.run())
    settled(app.number_input(key="overview_size_G").set_value(6).run())
    assert scenario(app).sizes["G"] == 6
    assert scenario(app)["rewards"][0, :4].tolist() == (
        next(iter(EXAMPLES.values())).scenario["rewards"][0].tolist()
    )


def test_a_pasted_line_shows_three_formulas():
    app = start()
    settled(app.text_input(key="overview_line").set_value("1, 0, 0, 0").run())
    shown = next(table.value for table in app.dataframe if "TRL" in table.value.columns)
    assert shown["TRL"].tolist() == ["1.4997", "−0.4999", "−0.4999", "−0.4999"]
    assert shown["verl"].tolist() == ["1.5", "−0.5", "−0.5", "−0.5"]
    assert shown["population"].tolist() == ["1.7321", "−0.57735", "−0.57735", "−0.57735"]


def test_a_pasted_line_that_cannot_be_read_says_where_and_keeps_the_last_picture():
    app = start()
    settled(app.text_input(key="overview_line").set_value("1, 0").run())
    before = figures(app)
    settled(app.text_input(key="overview_line").set_value("1, zero").run())
    assert "zero" in messages(app)[0]
    assert figures(app) == before


def test_selecting_a_token_moves_the_chain_and_goes_into_the_link():
    app = start()
    settled(app.number_input(key="overview_Token").set_value(3).run())
    assert app.session_state["store"].view.selected == (0, 0, 3)
    assert app.query_params["s"]
    fresh = start(app.query_params["s"][0] if isinstance(app.query_params["s"], list)
                  else app.query_params["s"])  # fmt: skip
    assert fresh.session_state["store"].view.selected == (0, 0, 3)


def test_the_recorded_batch_shows_the_trainers_loss_and_names_the_tied_group():
    app = start(encode(EXAMPLES["recorded-batch"].scenario, View(), EXAMPLES))
    said = " ".join(block.proto.body for block in app.get("html"))
    logged = float(scenario(app)["logged_loss"])
    assert abs(evaluate(scenario(app)).loss - logged) < 1e-6
    assert number(logged) in said
    visit(app, MENU["Advantages"])
    settled(app.selectbox(key="advantages_advantage").select("mean_std").run())
    settled(app.selectbox(key="advantages_advantage_ddof").select(1).run())
    settled(app.number_input(key="advantages_advantage_eps").set_value(1e-4).run())
    said = " ".join(block.proto.body for block in app.get("html"))
    assert "the tied group of prompt 0" in said
    assert "float32" in said


def _address(app, link):
    """Put a link into the address, or take it out, as the browser would."""
    app.query_params.clear()
    if link:
        app.query_params["s"] = link


def test_a_widget_that_is_sent_with_an_address_from_before_an_edit_does_not_undo_it():
    app = start()
    type_cell(app, "rewards", 0, "rewards", "0.55")
    edited = scenario(app)
    _address(app, "")  # the edit's own link has not reached the browser yet
    settled(app.number_input(key="overview_Token").set_value(2).run())
    assert scenario(app) is edited
    assert app.session_state["store"].view.selected == (0, 0, 2)


def test_a_second_edit_that_is_sent_with_an_address_from_before_the_first_keeps_both():
    app = start()
    type_cell(app, "rewards", 0, "rewards", "0.55")
    _address(app, "")
    type_cell(app, "rewards", 1, "rewards", "0.75")
    assert scenario(app)["rewards"][0, :2].tolist() == [0.55, 0.75]


def test_the_browsers_back_undoes_though_the_address_is_an_old_one():
    app = start()
    first = scenario(app)
    type_cell(app, "rewards", 0, "rewards", "0.55")
    _address(app, "")
    settled(app.run())
    assert same_scenario(scenario(app), first)


def test_an_echo_of_the_example_picker_does_not_undo_an_edit():
    """The picker goes blank when its example is edited; a click at once still carries the title."""
    app = start()
    title = next(iter(EXAMPLES))
    type_cell(app, "rewards", 0, "rewards", "0.55")
    edited = scenario(app)
    app.session_state[f"example_{title}"] = title
    settled(app.number_input(key="overview_Token").set_value(2).run())
    assert scenario(app) is edited
    assert app.selectbox(key="example_None").value is None


def test_the_example_picker_opens_the_same_example_again_after_an_edit():
    app = start()
    title = next(iter(EXAMPLES))
    type_cell(app, "rewards", 0, "rewards", "0.55")
    settled(app.selectbox(key="example_None").select(title).run())
    assert same_scenario(scenario(app), EXAMPLES[title].scenario)
    assert app.selectbox(key=f"example_{title}").value == title


def test_an_echo_of_a_token_picker_does_not_undo_a_click_on_a_picture():
    """A click selects; what is sent in the same moment still carries the token before it."""
    app = start()
    settled(app.number_input(key="overview_Token").set_value(4).run())
    app.session_state["store"].view = View((0, 1, 2))  # as the click's callback does
    settled(app.run())
    assert app.number_input(key="overview_Token").value == 2
    settled(app.number_input(key="overview_Token").set_value(4).run())
    assert app.session_state["store"].view.selected == (0, 1, 2)


def test_texts_can_be_written_and_are_refused_with_their_place():
    app = open_table(start(), "overview", "Texts")
    ask, say = app.text_input(key="overview_ask_0_0"), app.text_area(key="overview_say_0_0")
    assert ask.value == "34+82="
    ask.set_value("50+66=")
    say.set_value("1 1 6")
    settled(app.button(key="overview_texts_apply").click().run())
    assert scenario(app).texts.prompt(0) == "50+66="
    assert scenario(app).texts.completion(0, 0) == "116"
    app.text_area(key="overview_say_0_0").set_value("1\n" * 9)
    settled(app.button(key="overview_texts_apply").click().run())
    assert "9 lines for 4 completions" in messages(app)[0]
    assert scenario(app).texts.completion(0, 0) == "116"
