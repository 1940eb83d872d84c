"""The page Length in Chromium: edit a length, the conclusion changes; links; phone width."""

from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.view import View
from tests.browser.grid import editor, read_cell, set_cell
from tests.browser.idle import rerun
from tests.browser.test_app import sideways

EXAMPLES = load_examples()


def opened(open_page, key="long-wrong-answers", **size):
    return open_page(f"/Length?s={encode(EXAMPLES[key].scenario, View(), EXAMPLES)}", **size)


def sentence(page, word):
    return page.locator(".plain", has_text=word).first.inner_text()


def test_two_edited_lengths_in_a_row_change_the_conclusion_and_undo_brings_it_back(open_page):
    page = opened(open_page)
    before = sentence(page, "one of the longest")
    assert "(24)" in before
    table = editor(page, "table_rewards")
    with rerun(page):
        set_cell(page, table, 1, "tokens", "28")
    once = sentence(page, "one of the longest")
    assert "(28)" in once
    with rerun(page):
        set_cell(page, table, 0, "tokens", "2")
    assert "shortest answer (2) one of the longest (28)" in sentence(page, "one of the longest")
    with rerun(page):
        page.go_back()
    assert sentence(page, "one of the longest") == once
    assert read_cell(page, editor(page, "table_rewards"), 1, "tokens") == "28"


def test_the_link_gives_the_same_conclusions_elsewhere(open_page):
    page = opened(open_page)
    with rerun(page):
        set_cell(page, editor(page, "table_rewards"), 1, "tokens", "60")
    with rerun(page):
        set_cell(page, editor(page, "table_stop_logits"), 0, "logit of stopping", "-4")
    fresh = open_page("/Length?" + page.url.split("?", 1)[1])
    for word in ("one of the longest", "this very batch", "no rule pulls at lengths"):
        assert sentence(fresh, word) == sentence(page, word)


def test_a_hunch_of_one_half_pulls_at_nothing(open_page):
    page = opened(open_page, height=3000)
    assert "With a hunch" in sentence(page, "no rule pulls at lengths")
    hunch = page.locator(".st-key-row_length_hunch input")
    hunch.fill("0.5")
    with rerun(page):
        hunch.press("Enter")
    assert "With a hunch" not in sentence(page, "no rule pulls at lengths")


def test_nothing_is_wider_than_a_phone(open_page):
    assert not sideways(opened(open_page, width=390))
