"""The page Shaping in Chromium: a term typed, weighed by button, and taken along in the link."""

from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.view import View
from tests.browser.grid import editor, set_cell
from tests.browser.idle import rerun, wait_painted
from tests.browser.test_app import sideways

EXAMPLES = load_examples()


def address(key):
    return f"/Shaping?s={encode(EXAMPLES[key].scenario, View(), EXAMPLES)}"


def sentence(page, words):
    return page.locator(".plain", has_text=words).first.inner_text()


def test_an_edit_of_the_made_up_bonus_changes_the_conclusion_and_goes_into_the_link(open_page):
    page = open_page("/Shaping")
    assert "2 of 4 completions gain" in sentence(page, "Were all task rewards equal")
    table = editor(page, "table_terms")
    set_cell(page, table, 1, "bonus × 0.1", "1")
    assert "3 of 4 completions gain" in sentence(page, "Were all task rewards equal")
    set_cell(page, editor(page, "table_terms"), 3, "bonus × 0.1", "2")
    said = sentence(page, "Were all task rewards equal")
    assert "1 of 4 completions gains by" in said
    fresh = open_page("/Shaping?" + page.url.split("?", 1)[1])
    assert sentence(fresh, "Were all task rewards equal") == said


def test_a_weight_set_by_button_is_undone_by_back(open_page):
    page = open_page(address("recorded-step-bonus"), height=3000)
    assert "is beyond it" in sentence(page, "no worse answer outranks")
    with rerun(page):
        page.get_by_role("button", name="Use this weight").first.click()
    assert "is within" in sentence(page, "no worse answer outranks")
    assert page.get_by_label("Weight", exact=True).first.input_value().startswith("0.142")
    with rerun(page):
        page.go_back()
    assert "is beyond it" in sentence(page, "no worse answer outranks")


def test_a_new_name_and_weight_stand_in_the_tables_header(open_page):
    page = open_page(address("bonus-breaks-a-tie"), height=1600)
    with rerun(page):
        page.get_by_label("Term", exact=True).fill("format")
        page.keyboard.press("Enter")
    with rerun(page):
        page.get_by_label("Weight", exact=True).fill("0.5")
        page.keyboard.press("Enter")
    set_cell(page, editor(page, "table_terms"), 0, "format × 0.5", "0")
    assert "3 of 8 completions gain by “format”" in sentence(page, "Were all task rewards equal")


def test_a_bar_selects_its_completion(open_page):
    page = open_page(address("bonus-breaks-a-tie"), height=2400)
    wait_painted(page)
    plot = page.locator(".js-plotly-plot").first
    area = plot.locator(".nsewdrag").first.bounding_box()
    with rerun(page):  # row 2 of 8: its bar goes from the middle to the right
        page.mouse.click(area["x"] + 0.6 * area["width"], area["y"] + area["height"] * 2.5 / 8)
    assert page.get_by_label("Completion", exact=True).input_value() == "2"


def test_a_phone_shows_it_without_scrolling_sideways(open_page):
    page = open_page(address("length-and-judge"), width=390, dark=True)
    wait_painted(page)
    assert sideways(page) == 0
