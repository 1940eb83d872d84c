"""The app in Chromium, as a reader uses it: cold links, edits, undo, paste, clicks, themes."""

import pytest

from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.menu import MENU
from pages._ui.palette import PALETTES
from pages._ui.view import View
from tests.browser.grid import (
    OVERLAY,
    clear_cell,
    editor,
    paste_block,
    read_cell,
    select_cell,
    set_cell,
    toggle_cell,
)
from tests.browser.idle import rerun, wait_idle, wait_painted

EXAMPLES = load_examples()
DEFAULT = next(iter(EXAMPLES.values())).scenario
PAGES = list(MENU.values())
by_page = pytest.mark.parametrize("row", PAGES, ids=[row.key for row in PAGES])
# What the frame does alike for every page: tried on the first page of each group of the menu.
FIRST = list({row.group: row for row in reversed(PAGES) if row.example}.values())
by_group = pytest.mark.parametrize("row", FIRST, ids=[row.key for row in FIRST])
# Pages with a heatmap of tokens, in which a click selects one.
CLICKED = [row for row in PAGES if row.group == "Compute" or row.key == "Process_rewards"]


def figure(page, label):
    """Value of one of the figures in the summary row, e.g. the loss."""
    cell = page.locator(".figure", has=page.get_by_text(label, exact=True)).first
    return cell.locator(".value").inner_text()


def go_to(page, row):
    """Follow a link of the menu."""
    with rerun(page):
        page.get_by_test_id("stPageLink-NavLink").filter(has_text=row.label).first.click()


def open_tables(page, tab):
    """Open the tables at the foot of the page at one tab."""
    box = page.get_by_text("Tables: input arrays")
    if not page.get_by_role("tab", name=tab, exact=True).count():
        with rerun(page):
            box.click()
    if page.get_by_role("tab", name=tab, exact=True).get_attribute("aria-selected") != "true":
        with rerun(page):
            page.get_by_role("tab", name=tab, exact=True).click()


def sideways(page):
    """By how many pixels the page can be scrolled sideways."""
    return page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        " return m.scrollWidth - m.clientWidth; }"
    )


@by_group
def test_a_cold_deep_link_opens_its_page_with_the_menu_and_its_numbers(row, server, open_page):
    edited = DEFAULT.replace(rewards=[[0.25, 0.0, 0.8, 0.2]])
    link = encode(edited, View((0, 1, 3)), EXAMPLES)
    page = open_page(f"{row.address}?s={link}", server=server())
    assert page.get_by_role("heading", name=row.question).is_visible()
    assert page.get_by_test_id("stPageLink-NavLink").count() == len(PAGES)
    assert page.get_by_label("Completion", exact=True).input_value() == "1"
    assert page.get_by_label("Token", exact=True).input_value() == "3"
    assert "Page not found" not in page.content()


def test_two_edits_then_another_page_then_back_then_undo_and_redo(open_page):
    page = open_page("/")
    table = editor(page, "table_rewards")
    losses = [figure(page, "loss")]
    set_cell(page, table, 0, "reward", 0.5)
    losses.append(figure(page, "loss"))
    set_cell(page, table, 1, "reward", 0.75)
    losses.append(figure(page, "loss"))
    assert len(set(losses)) == 3
    go_to(page, MENU["Advantages"])
    assert figure(page, "loss") == losses[2]
    assert read_cell(page, editor(page, "table_rewards"), 0, "1") == "0.75"
    go_to(page, MENU["Overview"])
    table = editor(page, "table_rewards")
    assert read_cell(page, table, 0, "reward") == "0.5"
    set_cell(page, table, 3, "reward", 1)
    losses.append(figure(page, "loss"))
    for expected in (losses[2], losses[3]):
        with rerun(page):
            page.go_back() if expected == losses[2] else page.go_forward()
        assert figure(page, "loss") == expected
    assert read_cell(page, editor(page, "table_rewards"), 3, "reward") == "1"


def test_undo_by_the_browser_goes_back_to_the_first_state(open_page):
    page = open_page("/")
    first = figure(page, "loss")
    set_cell(page, editor(page, "table_rewards"), 0, "reward", 0.5)
    with rerun(page):
        page.go_back()
    assert figure(page, "loss") == first
    assert read_cell(page, editor(page, "table_rewards"), 0, "reward") == "1"


def test_a_shared_link_shows_identical_numbers_in_a_fresh_browser_on_a_fresh_server(
    server, open_page
):
    page = open_page("/", server=server())
    set_cell(page, editor(page, "table_rewards"), 2, "reward", "0.1")
    query = page.url.split("?", 1)[1]
    other = open_page(f"/?{query}", server=server())
    shown = [page.locator(".figure .value").all_inner_texts() for page in (page, other)]
    assert shown[0] == shown[1]
    assert read_cell(other, editor(other, "table_rewards"), 2, "reward") == "0.1"


def test_a_block_from_a_spreadsheet_is_pasted(open_page):
    page = open_page("/")
    table = editor(page, "table_rewards")
    paste_block(page, table, 0, "reward", [[0.1], [0.2], [0.3], ["-1e-3"]])
    assert [read_cell(page, table, at, "reward") for at in range(4)] == [
        "0.1", "0.2", "0.3", "-1e-3",
    ]  # fmt: skip
    assert page.get_by_test_id("stAlert").count() == 0


def test_a_decimal_comma_is_refused_and_never_becomes_fifteen(open_page):
    page = open_page("/")
    before = figure(page, "loss")
    paste_block(page, editor(page, "table_rewards"), 0, "reward", "1,5")
    assert "comma" in page.get_by_test_id("stAlert").inner_text()
    assert figure(page, "loss") == before


def test_a_bad_cell_is_named_and_the_last_good_picture_stays(open_page):
    page = open_page("/")
    table = editor(page, "table_rewards")
    before = figure(page, "loss")
    set_cell(page, table, 1, "reward", "many")
    message = page.get_by_test_id("stAlert").inner_text()
    assert "many" in message
    assert figure(page, "loss") == before
    assert read_cell(page, table, 1, "reward") == "many"
    set_cell(page, table, 1, "reward", 0.5)
    assert page.get_by_test_id("stAlert").count() == 0
    assert figure(page, "loss") != before


def test_a_cleared_reward_is_a_missing_score(open_page):
    page = open_page("/")
    clear_cell(page, editor(page, "table_rewards"), 1, "reward")
    assert page.get_by_test_id("stAlert").count() == 0
    said = " ".join(page.locator(".finding").all_inner_texts())
    assert "1 completion without a reward" in said


def test_a_hole_made_in_the_mask_takes_the_token_out(open_page):
    page = open_page("/")
    open_tables(page, "Mask")
    before = figure(page, "loss")
    toggle_cell(page, editor(page, "table_mask"), 0, "2")
    assert figure(page, "loss") != before
    open_tables(page, "Log-probabilities, new policy")
    assert read_cell(page, editor(page, "table_logp_new"), 0, "2") == ""
    open_tables(page, "Mask")
    toggle_cell(page, editor(page, "table_mask"), 0, "2")
    assert figure(page, "loss") == before


def test_resizing_adds_a_completion(open_page):
    page = open_page("/")
    open_tables(page, "Sizes")
    with rerun(page):
        page.get_by_label("Completions", exact=True).fill("5")
        page.keyboard.press("Enter")
    assert read_cell(page, editor(page, "table_rewards"), 4, "reward") == "0"


def test_a_pasted_nested_list_becomes_the_example(open_page):
    page = open_page("/")
    open_tables(page, "Paste and copy")
    page.get_by_label("A nested list, JSON").fill("[[1, 0, 0, 1, 0], [0, 0, 1, 1, 1]]")
    page.keyboard.press("ControlOrMeta+Enter")
    wait_idle(page)
    with rerun(page):
        page.get_by_role("button", name="Use these numbers").click()
    assert "The example has new sizes: 2 prompts" in page.get_by_test_id("stAlert").inner_text()
    go_to(page, MENU["Advantages"])
    assert read_cell(page, editor(page, "table_rewards"), 1, "4") == "1"


@pytest.mark.parametrize("row", CLICKED, ids=[row.key for row in CLICKED])
def test_clicking_a_cell_selects_its_token(row, open_page):
    page = open_page(row.address, height=2400)
    wait_painted(page)
    plot = page.locator(".js-plotly-plot", has=page.locator(".heatmaplayer .hm")).first
    area = plot.locator(".nsewdrag").first.bounding_box()
    # Completion 1 of 4, token 2 of 11: the middle of its cell.
    with rerun(page):
        page.mouse.click(area["x"] + area["width"] * 2.5 / 11, area["y"] + area["height"] * 1.5 / 4)
    assert page.get_by_label("Completion", exact=True).input_value() == "1"
    assert page.get_by_label("Token", exact=True).input_value() == "2"


@by_page
def test_the_dark_theme_draws_dark_pictures(row, open_page):
    page = open_page(row.address, dark=True)
    wait_painted(page)
    background = page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    assert background == "rgb(15, 19, 24)"
    drawn = page.locator(".js-plotly-plot path").evaluate_all(
        "all => all.map(p => getComputedStyle(p)).flatMap(style => [style.fill, style.stroke])"
    )
    light, dark = (colours(PALETTES[theme]) for theme in ("light", "dark"))
    assert (dark - light) & set(drawn)
    assert not {"rgb(31, 95, 168)", "rgb(200, 97, 42)"} & set(drawn)


def colours(palette):
    """The named colours of a palette as a browser computes them."""
    named = (palette.positive, palette.negative, *palette.categories)
    return {f"rgb({', '.join(str(int(c[i : i + 2], 16)) for i in (1, 3, 5))})" for c in named}


@by_page
def test_a_phone_shows_the_page_without_sideways_scrolling(row, open_page):
    page = open_page(row.address, width=390, height=844)
    wait_painted(page)
    assert sideways(page) <= 0
    assert page.get_by_role("heading", name=row.question).is_visible()


@by_group
def test_an_embedded_page_has_no_menu(row, open_page):
    page = open_page(f"{row.address}?embed=true")
    wait_painted(page)
    assert page.get_by_test_id("stPageLink-NavLink").count() == 0
    assert page.get_by_test_id("stSidebar").count() == 0
    assert page.locator(".figure").first.is_visible()


@by_group
def test_a_damaged_link_says_so_and_shows_the_default(row, open_page):
    page = open_page(f"{row.address}?s=1-damaged")
    assert page.get_by_test_id("stAlert").count() == 1
    assert figure(page, "loss") == figure(open_page(row.address), "loss")


def test_a_pinned_state_stays_beside_the_present_one(open_page):
    page = open_page("/")
    page.get_by_role("button", name="Pin").first.click()
    with rerun(page):
        page.get_by_role("button", name="Pin this state as A").click()
    page.get_by_role("heading", name="What does one reward change?").click()  # closes the popover
    wait_idle(page)
    before = figure(page, "loss")
    set_cell(page, editor(page, "table_rewards"), 0, "reward", 0.5)
    cell = page.locator(".figure").first
    assert f"A: {before}" in cell.inner_text()
    fresh = open_page("/?" + page.url.split("?", 1)[1])
    assert f"A: {before}" in fresh.locator(".figure").first.inner_text()


def test_the_exported_files_can_be_downloaded_and_opened_again(open_page, tmp_path):
    page = open_page("/")
    set_cell(page, editor(page, "table_rewards"), 0, "reward", 0.5)
    loss = figure(page, "loss")
    page.get_by_role("button", name="Share").click()
    page.get_by_role("tab", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Example as JSON").click()
    saved = tmp_path / "example.json"
    download.value.save_as(saved)
    other = open_page("/")
    other.get_by_role("button", name="Share").click()
    other.get_by_role("tab", name="Open").click()
    with rerun(other):
        other.locator("input[type=file]").set_input_files(saved)
    assert figure(other, "loss") == loss


@pytest.mark.parametrize("gap", [0, 120, 170, 250, 350, 500])
def test_an_edit_is_kept_however_soon_the_next_click_follows(gap, open_page):
    page = open_page("/")
    select_cell(page, editor(page, "table_rewards"), 0, "reward")
    page.keyboard.press("Enter")
    field = page.locator(OVERLAY).first
    field.wait_for(state="visible")
    field.fill("0.55")
    page.keyboard.press("Enter")
    page.wait_for_timeout(gap)
    # By script: Playwright's own click would wait for the page to stand still.
    page.evaluate(
        "() => { const step = () => [...document.querySelectorAll("
        "'[class*=\"st-key-overview_Token\"] button')].pop().click();"
        " step(); setTimeout(step, 60); }"
    )
    wait_idle(page, quiet=800)
    assert read_cell(page, editor(page, "table_rewards"), 0, "reward") == "0.55"
    assert page.get_by_label("Token", exact=True).input_value() == "2"
    fresh = open_page("/?" + page.url.split("?", 1)[1])
    assert read_cell(fresh, editor(fresh, "table_rewards"), 0, "reward") == "0.55"
