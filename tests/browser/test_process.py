"""Process rewards in Chromium: steps added, edited, deleted in the grid, a trick, Back, a link."""

import re

import pytest

from pages._ui.examples import load_examples
from pages._ui.link import decode, encode
from pages._ui.view import View
from tests.browser.grid import editor, read_cell, set_cell
from tests.browser.idle import rerun, wait_idle, wait_painted
from tests.unit.stepped import stepped

EXAMPLES = load_examples()
STRIP, ADVANTAGES = "steps", "process_advantages"
ROW = 33  # pixels of a row of the grid, less than any of them


def two():
    """Steps 1 0 1 and 0 0, a token each, in answers of three tokens; the first one is right."""
    return stepped([[1, 0, 1], [0, 0]], lengths=[3, 3], outcome=[1, 0])


@pytest.fixture
def opened(open_page):
    link = encode(two(), View((0, 1, 0)), EXAMPLES)
    page = open_page(f"/Process_rewards?s={link}", height=1400)
    wait_painted(page)
    return page


def drawn(page, key):
    """Cells of a heatmap, NaN as None."""
    wait_painted(page)
    chart = page.locator(f".st-key-{key} .js-plotly-plot")
    return chart.evaluate(
        "plot => plot._fullData.filter(t => t.type === 'heatmap').map(t => t.z.map(row => "
        "Array.from(row, v => Number.isNaN(v) ? null : Math.round(1000 * v) / 1000)))"
    )


def held(page):
    """Steps that the address holds: (end, reward) for each completion."""
    given = decode(re.search(r"[?&]s=([^&]+)", page.url).group(1), EXAMPLES)[0]
    pairs = zip(given["step_ends"][0].tolist(), given["step_rewards"][0].tolist(), strict=True)
    return [[(e, r) for e, r in zip(*pair, strict=True) if e == e] for pair in pairs]


def steps_table(page):
    return editor(page, "table_steps")


def add_row(page, table):
    """Click the empty row below the last one."""
    box = table.get_by_test_id("data-grid-canvas").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - ROW / 2)
    wait_idle(page)


def delete_row(page, table, row):
    """Tick a row at its left edge and press Delete."""
    box = table.get_by_test_id("data-grid-canvas").first.bounding_box()
    page.mouse.click(box["x"] + 12, box["y"] + ROW * (row + 1.5))
    with rerun(page):
        page.keyboard.press("Delete")


def errors(page):
    return page.get_by_test_id("stAlertContentError").all_inner_texts()


def asked(page):
    """What is still to be typed into a row, which is no error."""
    return page.get_by_test_id("stAlertContentInfo").all_inner_texts()


def test_a_new_row_is_complete_after_three_cells_and_until_then_a_sentence_says_what_lacks(opened):
    page = opened
    before = drawn(page, STRIP), drawn(page, ADVANTAGES)
    table = steps_table(page)
    add_row(page, table)
    assert errors(page) == []
    for column, text, wanted in (
        ("completion", "1", "row 5, completion 1, step 2: end is blank; wanted a token position"),
        ("end", "2", "row 5, completion 1, step 2: reward is blank; wanted a finite"),
    ):
        set_cell(page, table, 5, column, text)
        assert any(wanted in sentence for sentence in asked(page))
        assert errors(page) == []
        assert (drawn(page, STRIP), drawn(page, ADVANTAGES)) == before
    set_cell(page, table, 5, "reward", "1")
    assert errors(page) == []
    assert not any("row 5" in sentence for sentence in asked(page))
    assert held(page) == [[(0, 1), (1, 0), (2, 1)], [(0, 0), (1, 0), (2, 1)]]
    # Pool 1 0 1 0 0 1: mean and std 1/2.
    assert drawn(page, STRIP) == [[[1, 0, 1], [0, 0, 1]]]
    assert drawn(page, ADVANTAGES)[0] == [[1, 0, 1], [-1, 0, 1]]


def test_a_deleted_row_takes_its_step_away_and_back_brings_it_again(opened):
    page = opened
    before = drawn(page, ADVANTAGES)
    delete_row(page, steps_table(page), 1)
    assert held(page) == [[(0, 1), (2, 1)], [(0, 0), (1, 0)]]
    # Pool 1 1 0 0: token 1 belongs to the step that ends at 2.
    assert drawn(page, ADVANTAGES)[0] == [[2, 1, 1], [-2, -1, 0]]
    with rerun(page):
        page.go_back()
    assert drawn(page, ADVANTAGES) == before
    assert read_cell(page, steps_table(page), 1, "end") == "1"


def test_edit_add_and_delete_in_one_table_are_all_kept(opened):
    page = opened
    table = steps_table(page)
    set_cell(page, table, 0, "reward", "0.5")
    delete_row(page, table, 3)
    add_row(page, table)
    for column, text in (("completion", "1"), ("end", "0"), ("reward", "0.25")):
        set_cell(page, table, 4, column, text)
    assert errors(page) == []
    assert held(page) == [[(0, 0.5), (1, 0), (2, 1)], [(0, 0.25), (1, 0)]]


def test_a_click_on_a_token_chooses_the_step_and_an_easy_step_shows_its_effect(opened):
    page = opened
    area = page.locator(f".st-key-{STRIP} .nsewdrag").bounding_box()
    with rerun(page):  # completion 0, token 1
        page.mouse.click(area["x"] + area["width"] / 2, area["y"] + area["height"] / 4)
    assert page.get_by_text("Tried on completion 0, step 1.").count() == 1
    before = drawn(page, ADVANTAGES)
    # Pool 1 0 1 1 0 0: from 1.633 and 3.266 to first 3 x 1 - 1 = 2, together 1 - 2 + 3 + 3 = 5.
    promised = page.get_by_text("the best trick is “Append an easy step”").inner_text()
    assert "goes 3.266 → 5, its first token's goes 1.633 → 2" in promised
    with rerun(page):
        page.get_by_role("button", name="Append an easy step").click()
    assert held(page)[0] == [(0, 1), (1, 0), (2, 1), (2, 1)]
    assert drawn(page, ADVANTAGES)[0] == [[2, 1, 2], [-2, -1, 0]]
    effect = page.locator("[class*=st-key-process_credit] [role=gridcell]").all_text_contents()
    assert effect[:5] == ["0", "3 → 4", "0.6667 → 0.75", "1.633 → 2", "3.266 → 5"]
    with rerun(page):
        page.go_back()
    assert drawn(page, ADVANTAGES) == before


def test_the_link_opened_on_a_fresh_server_gives_the_same(opened, open_page, server):
    page = opened
    set_cell(page, steps_table(page), 1, "reward", "0.1")
    with rerun(page):
        page.get_by_role("button", name="Split, each part paid in full").click()
    address = page.url.split("/", 3)[3]
    fresh = open_page(f"/{address}", height=1400, server=server())
    for key in (STRIP, ADVANTAGES):
        assert drawn(fresh, key) == drawn(page, key)
    assert held(fresh) == held(page)
    assert read_cell(fresh, steps_table(fresh), 1, "reward") == "0.1"


@pytest.mark.parametrize("key", ["more-steps-more-credit", "recorded-steps", "four-answers"])
def test_at_phone_width_nothing_makes_the_page_scroll_sideways(key, open_page):
    link = encode(EXAMPLES[key].scenario, View(), EXAMPLES)
    page = open_page(f"/Process_rewards?s={link}", width=390, height=1400)
    wait_painted(page)
    assert page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        " return m.scrollWidth - m.clientWidth; }"
    ) == 0  # fmt: skip
