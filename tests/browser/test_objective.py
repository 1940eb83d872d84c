"""The page Objective in Chromium: the mask by keyboard, bars by mouse, aggregation by button."""

from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.view import View
from tests.browser.grid import editor, toggle_cell
from tests.browser.idle import rerun, wait_painted
from tests.browser.test_app import figure

EXAMPLES = load_examples()


def test_taking_a_token_out_of_the_mask_changes_the_loss_and_undo_brings_it_back(open_page):
    page = open_page("/Objective")
    before = figure(page, "loss")
    with rerun(page):
        toggle_cell(page, editor(page, "table_mask"), 0, "2")
    assert figure(page, "loss") != before
    with rerun(page):
        page.go_back()
    assert figure(page, "loss") == before


def test_choosing_an_aggregation_moves_the_loss_and_goes_into_the_link(open_page):
    page = open_page("/Objective", height=2400)
    with rerun(page):
        page.get_by_role("button", name="Use mean over all tokens (DAPO)").click()
    assert figure(page, "loss") == "0.125"
    fresh = open_page("/Objective?" + page.url.split("?", 1)[1])
    assert figure(fresh, "loss") == "0.125"


def test_clicking_a_row_of_the_waterfall_selects_its_completion(open_page):
    link = encode(EXAMPLES["recorded-batch"].scenario, View((1, 0, 3)), EXAMPLES)
    page = open_page(f"/Objective?s={link}", height=2400)
    wait_painted(page)
    plot = page.locator(".js-plotly-plot", has=page.locator(".barlayer")).first
    area = plot.locator(".nsewdrag").first.bounding_box()
    # Prompt 0, then completion 0 to 7 of prompt 1, in 15 rows and one and a quarter below.
    with rerun(page):
        page.mouse.click(area["x"] + area["width"] / 4, area["y"] + area["height"] * 4.5 / 16.25)
    assert page.get_by_label("Completion", exact=True).input_value() == "3"
    assert page.get_by_label("Token", exact=True).input_value() == "3"
