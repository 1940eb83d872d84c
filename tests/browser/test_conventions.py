"""Conventions in Chromium: four rewards typed, a question opened, the link elsewhere, a phone."""

from tests.browser.grid import editor, set_cell
from tests.browser.idle import rerun, wait_painted
from tests.browser.test_difficulty import address


def test_one_zero_zero_zero_typed_here_shows_what_each_trainer_makes_of_it(open_page, server):
    page = open_page(address("four-answers", "Conventions"), height=1600)
    for row, value in enumerate(("1", "0", "0", "0")):
        set_cell(page, editor(page, "table_rewards"), row, "reward", value)
    numbers = ("1.4997", "1.5000", "1.7321", "0.7500", "1.0000", "−0.5773")
    picture = page.locator(".js-plotly-plot").first
    for text in numbers:
        assert picture.get_by_text(text, exact=True).count(), text
    fresh = open_page("/" + page.url.split("/", 3)[3], height=1600, server=server())
    wait_painted(fresh)
    for text in numbers:
        assert fresh.locator(".js-plotly-plot").first.get_by_text(text, exact=True).count(), text


def test_a_question_opens_as_an_example_and_back_returns(open_page):
    page = open_page(address("four-answers", "Conventions"), height=2400)
    with rerun(page):
        page.locator(".st-key-open_million").get_by_role("button").click()
    assert page.get_by_text("The rule is not to divide where it is 0").count()
    assert page.locator(".st-key-open_million").get_by_role("button").is_disabled()
    with rerun(page):
        page.go_back()
    assert not page.locator(".st-key-open_million").get_by_role("button").is_disabled()


def test_at_phone_width_nothing_makes_the_page_scroll_sideways(open_page):
    page = open_page(address("recorded-batch", "Conventions"), width=390, height=1400)
    wait_painted(page)
    assert page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]');"
        " return m.scrollWidth - m.clientWidth; }"
    ) == 0  # fmt: skip


def scrolled(page):
    return page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")


def test_an_opened_question_brings_the_reader_to_its_batch(open_page):
    page = open_page(address("four-answers", "Conventions"), height=900)
    button = page.locator(".st-key-open_million").get_by_role("button")
    button.scroll_into_view_if_needed()
    assert scrolled(page) > 0
    with rerun(page):
        button.click()
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop === 0")
    assert page.locator(".st-key-opened_question").get_by_text("Why is an advantage").count()


def test_a_reload_keeps_the_question_and_what_is_compared(open_page):
    page = open_page(address("four-answers", "Conventions"), height=2400)
    with rerun(page):
        page.get_by_label("Remove TRL 1.16").click()
    with rerun(page):
        page.locator(".st-key-open_million").get_by_role("button").click()
    page.reload()
    wait_painted(page)
    assert page.locator(".st-key-opened_question").get_by_text("Why is an advantage").count()
    assert page.get_by_label("Remove verl 0.9.1, grpo").count()
    assert not page.get_by_label("Remove TRL 1.16").count()


def test_a_paste_of_200_kilobytes_is_answered_and_the_next_one_is_read(open_page):
    page = open_page(address("four-answers", "Conventions"), height=2400)
    field = page.get_by_role("textbox", name="Paste the settings of a run")
    with rerun(page):
        field.fill("GRPOConfig(beta=0.1)\n" + "x y z " * 33_000)
        field.press("Control+Enter")
    assert page.get_by_text("at most 60,000 are read").count()
    with rerun(page):
        field.fill("beta = 0.1")
        field.press("Control+Enter")
    assert page.get_by_text("1 setting read").count()
