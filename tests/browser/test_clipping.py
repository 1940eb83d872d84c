"""Clipping in Chromium: a token of a picture is clicked, the drift is moved and kept."""

from tests.browser.grid import editor, read_cell, set_cell
from tests.browser.idle import rerun, wait_painted
from tests.browser.test_app import figure


def test_clicking_a_token_on_the_curve_selects_it(open_page):
    page = open_page("/Clipping")
    wait_painted(page)
    plot = page.locator(".js-plotly-plot").nth(1)
    # The ratio farthest to the right with A < 0: completion 1, token 8 (log-ratio 0.31).
    places = plot.locator(".scatterlayer .points path").evaluate_all(
        "all => all.map(p => p.getBoundingClientRect())"
        ".map(r => [r.x + r.width / 2, r.y + r.height / 2])"
    )
    x, y = max(places)
    with rerun(page):
        page.mouse.click(x, y)
    assert page.get_by_label("Completion", exact=True).input_value() == "1"
    assert page.get_by_label("Token", exact=True).input_value() == "8"


def test_the_drift_wakes_clipping_and_can_be_kept(open_page):
    page = open_page("/Clipping")
    before = figure(page, "clipped tokens")
    slider = page.get_by_role("slider").first
    slider.focus()
    with rerun(page):
        page.keyboard.press("End")
    moved = figure(page, "clipped tokens")
    assert moved != before
    with rerun(page):
        page.get_by_role("button", name="Keep this drift").click()
    assert figure(page, "clipped tokens") == moved
    assert page.get_by_role("slider").first.input_value() == "1"


def test_picture_and_table_stand_above_the_fold_and_an_edit_moves_them(open_page):
    page = open_page("/Clipping", width=1280, height=900)
    wait_painted(page)
    table = editor(page, "table_logp_new")
    box = table.bounding_box()
    assert box["y"] + box["height"] <= 900
    for index in (0, 1):
        picture = page.locator(".js-plotly-plot").nth(index).bounding_box()
        assert picture["y"] + picture["height"] <= box["y"]
    before = figure(page, "loss")
    set_cell(page, table, 0, "3", "-0.5")
    assert figure(page, "loss") != before
    assert read_cell(page, table, 0, "3") == "-0.5"
