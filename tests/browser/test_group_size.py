"""The page Group size in Chromium: edit an answer, the conclusion changes; links; phone width."""

from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.view import View
from tests.browser.grid import editor, read_cell, set_cell
from tests.browser.idle import rerun
from tests.browser.test_app import sideways

EXAMPLES = load_examples()


def sentence(page, word):
    return page.locator(".plain", has_text=word).first.inner_text()


def test_an_edited_answer_changes_the_conclusion_and_undo_brings_it_back(open_page):
    page = open_page("/Group_size")
    before = sentence(page, "misses the true value")
    with rerun(page):
        set_cell(page, editor(page, "table_answer_logits"), 0, "1", "4")
    edited = sentence(page, "misses the true value")
    assert edited != before
    with rerun(page):
        set_cell(page, editor(page, "table_answer_rewards"), 0, "0", "1")
    assert sentence(page, "misses the true value") != edited
    with rerun(page):
        page.go_back()
    assert sentence(page, "misses the true value") == edited
    assert read_cell(page, editor(page, "table_answer_logits"), 0, "1") == "4"


def test_the_link_gives_the_same_conclusions_elsewhere(open_page):
    page = open_page("/Group_size")
    with rerun(page):
        set_cell(page, editor(page, "table_answer_logits"), 0, "1", "4")
    fresh = open_page("/Group_size?" + page.url.split("?", 1)[1])
    for word in ("misses the true value", "price of having", "has the least noise"):
        assert sentence(fresh, word) == sentence(page, word)


def test_another_group_size_moves_the_price_of_having_no_value_network(open_page):
    page = open_page("/Group_size", height=2400)
    before = sentence(page, "price of having")
    with rerun(page):
        page.get_by_role("button", name="Try G = 16").click()
    assert sentence(page, "price of having") != before
    assert "G = 16" in sentence(page, "price of having")


def test_nothing_is_wider_than_a_phone(open_page):
    link = encode(EXAMPLES["budget-of-samples"].scenario, View(), EXAMPLES)
    assert not sideways(open_page(f"/Group_size?s={link}", width=390))
