"""Silent groups in Chromium: a tie made and broken, rates edited, the link elsewhere."""

import pytest

from tests.browser.grid import editor, set_cell
from tests.browser.idle import rerun, wait_painted
from tests.browser.test_app import figure
from tests.browser.test_difficulty import address


def test_a_tie_made_by_a_button_is_undone_by_back(open_page):
    page = open_page(address("hard-and-easy-prompts", "Silent_groups"), height=1400)
    assert page.get_by_text("No group of this batch is tied").count() == 1
    with rerun(page):
        page.get_by_role("button", name="Make prompt 0's rewards equal").click()
    assert page.locator(".plain", has_text="The group of prompt 0 is tied").count() == 1
    assert figure(page, "tied groups") == "20%"
    with rerun(page):
        page.go_back()
    assert page.get_by_text("No group of this batch is tied").count() == 1


def test_a_rate_and_a_reward_typed_here_are_the_same_on_a_fresh_server(open_page, server):
    page = open_page(address("mostly-silent", "Silent_groups"), height=2400)
    set_cell(page, editor(page, "table_kinds_rates"), 0, "success rate", "0.5")
    assert page.get_by_text("silent in 59.7% of cases").count()
    set_cell(page, editor(page, "table_rewards"), 0, "1", "1")
    assert page.get_by_text("5 of 8 groups are tied").count()
    fresh = open_page("/" + page.url.split("/", 3)[3], height=2400, server=server())
    for words in ("silent in 59.7% of cases", "5 of 8 groups are tied"):
        assert fresh.get_by_text(words).count()


@pytest.mark.parametrize("key", ["mostly-silent", "graded-difficulty", "recorded-batch"])
def test_at_phone_width_nothing_makes_the_page_scroll_sideways(key, open_page):
    page = open_page(address(key, "Silent_groups"), width=390, height=1400)
    wait_painted(page)
    assert page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        " return m.scrollWidth - m.clientWidth; }"
    ) == 0  # fmt: skip
