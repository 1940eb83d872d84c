"""The KL page in Chromium: a click on a curve, an edit of the reference, the distributions."""

from pages._ui.menu import MENU
from tests.browser.grid import editor, read_cell, set_cell
from tests.browser.idle import rerun, wait_idle, wait_painted
from tests.browser.test_app import figure, sideways

KL = MENU["KL"]


def open_part(page):
    with rerun(page):
        page.get_by_role("tab", name="Estimates against the exact KL").click()
    wait_painted(page)


def test_a_click_on_a_token_of_the_curve_selects_it(open_page):
    page = open_page(KL.address)
    wait_painted(page)
    plot = page.locator(".js-plotly-plot").first
    points = plot.locator(".scatterlayer .trace .points path.point")
    # The token farthest to the right on the curve: completion 1, token 4 of the default example.
    boxes = [point.bounding_box() for point in points.all()]
    box = max((box for box in boxes if box), key=lambda box: (box["x"], -box["y"]))
    with rerun(page):
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.get_by_label("Completion", exact=True).input_value() == "1"
    assert page.get_by_label("Token", exact=True).input_value() == "4"


def test_picture_and_table_stand_above_the_fold_and_move_with_an_edit(open_page):
    page = open_page(KL.address, width=1280, height=900)
    wait_painted(page)
    for part in (page.locator(".js-plotly-plot").first, editor(page, "table_logp_ref").first):
        box = part.bounding_box()
        assert box["y"] + box["height"] <= 900
    before = figure(page, "mean KL")
    set_cell(page, editor(page, "table_logp_ref"), 0, "0", "-2.5")
    assert figure(page, "mean KL") != before


def test_the_distributions_of_a_link_open_on_a_fresh_page(open_page):
    page = open_page(KL.address)
    open_part(page)
    set_cell(page, editor(page, "table_dist_ref"), 0, "reference", "0.6")
    set_cell(page, editor(page, "table_dist_ref"), 1, "reference", "0.4")
    exact = page.locator(".plain", has_text="nats").inner_text()
    fresh = open_page(f"{KL.address}?{page.url.split('?', 1)[1]}")
    open_part(fresh)
    assert read_cell(fresh, editor(fresh, "table_dist_ref"), 1, "reference") == "0.4"
    assert fresh.locator(".plain", has_text="nats").inner_text() == exact


def test_the_distributions_fit_a_phone(open_page):
    page = open_page(KL.address, width=390, height=844)
    open_part(page)
    wait_idle(page)
    assert sideways(page) <= 0
