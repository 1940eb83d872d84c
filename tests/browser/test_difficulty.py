"""Difficulty in Chromium: a rate typed, graded rewards, Back, and the link on a fresh server."""

import pytest

from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.view import View
from tests.browser.grid import editor, read_cell, set_cell
from tests.browser.idle import rerun, wait_painted

EXAMPLES = load_examples()


def address(key, page="Difficulty"):
    return f"/{page}?s={encode(EXAMPLES[key].scenario, View(), EXAMPLES)}"


def conclusion(page):
    return page.get_by_text("times as much").first.inner_text()


def test_a_typed_rate_changes_the_conclusion_and_back_brings_it_again(open_page):
    page = open_page(address("hard-and-easy-prompts"), height=1400)
    before = conclusion(page)
    assert "1.33 times" in before
    set_cell(page, editor(page, "table_kinds_rates"), 0, "success rate", "0.001")
    assert "rate 0.001 count 1.42 times" in conclusion(page)
    with rerun(page):
        page.go_back()
    assert conclusion(page) == before


def test_graded_rewards_typed_here_are_the_same_on_a_fresh_server(open_page, server):
    page = open_page(address("hard-and-easy-prompts"), height=1400)
    with rerun(page):
        page.get_by_role("button", name="Graded rewards").click()
    set_cell(page, editor(page, "table_reward_values"), 1, "reward", "0.2")
    set_cell(page, editor(page, "table_kinds_graded"), 0, "0.2", "0.4")
    said = conclusion(page)
    fresh = open_page("/" + page.url.split("/", 3)[3], height=1400, server=server())
    assert conclusion(fresh) == said
    assert read_cell(fresh, editor(fresh, "table_kinds_graded"), 0, "0.2") == "0.4"


@pytest.mark.parametrize("key", ["hard-and-easy-prompts", "graded-difficulty", "recorded-batch"])
def test_at_phone_width_nothing_makes_the_page_scroll_sideways(key, open_page):
    page = open_page(address(key), width=390, height=1400)
    wait_painted(page)
    assert page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        " return m.scrollWidth - m.clientWidth; }"
    ) == 0  # fmt: skip
