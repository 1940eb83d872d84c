"""Your run in Chromium: upload, the hacked term, a group elsewhere, the report, bad files."""

import io
import re
import zipfile

import pytest

from pages._ui.menu import MENU
from tests.browser.grid import editor
from tests.browser.idle import rerun, wait_idle, wait_painted
from tests.browser.test_app import go_to
from tests.unit.judged_runs import RUNS

HACKED = "trl-addition-step-bonus"


def upload(page, *files):
    """Give files to the uploader, (name, bytes) each or paths, and wait for what follows."""
    page.get_by_role("button", name="Open files").click()
    given = [
        str(each) if not isinstance(each, tuple)
        else {"name": each[0], "mimeType": "application/octet-stream", "buffer": each[1]}
        for each in files
    ]  # fmt: skip
    with rerun(page):
        page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(given)
    page.keyboard.press("Escape")
    wait_idle(page)


def chosen(page):
    """The run that is shown."""
    return page.get_by_role("combobox", name="Run").first.input_value()


def press(page, name):
    with rerun(page):
        page.get_by_role("button", name=name).first.click()


def tab(page, name):
    with rerun(page):
        page.get_by_role("tab", name=name).click()
    wait_painted(page)


def test_a_zip_of_a_run_is_uploaded_explained_opened_elsewhere_and_reported(
    open_page, browser, tmp_path
):
    page = open_page("/Your_run", height=2400)
    upload(page, RUNS / f"{HACKED}.zip")
    assert chosen(page) == "Yours: trl-addition-step-bonus"
    # The hacked term and its turn, in the first sentence.
    first = page.locator(".finding").first.inner_text()
    assert "“step_count” is being hacked, and step 79 is the turn" in first
    # The report, opened without network.
    page.get_by_role("button", name="Report").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Report (one HTML file)").click()
    file = tmp_path / "report.html"
    download.value.save_as(file)
    page.keyboard.press("Escape")
    with_no_network(browser, file)
    # A group of the turn, on another page.
    press(page, "Open this group everywhere")
    page.get_by_role("heading", name="Who did better than their group?").wait_for()
    wait_painted(page)
    assert "s=" in page.url
    assert page.get_by_text("reward", exact=True).count() or page.get_by_text("rewards").count()


def with_no_network(browser, file):
    """The report by itself: nothing is asked for, its figures are drawn."""
    context = browser.new_context(offline=True)
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector(".js-plotly-plot .main-svg")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert "step_count” is being hacked" in page.inner_text("body")
    assert page.locator(".js-plotly-plot").count() > 5
    context.close()


def test_a_group_opened_from_a_run_comes_back_from_its_link(open_page, server):
    page = open_page("/Your_run", height=2400)
    press(page, "Show step 81, which has them")
    press(page, "Open this group everywhere")
    page.get_by_role("heading", name="Who did better than their group?").wait_for()
    wait_painted(page)
    loss = page.locator(".figure", has=page.get_by_text("loss", exact=True)).first.inner_text()
    fresh = open_page("/" + page.url.split("/", 3)[3], height=2400, server=server())
    wait_painted(fresh)
    assert (
        fresh.locator(".figure", has=fresh.get_by_text("loss", exact=True)).first.inner_text()
        == loss
    )


def test_what_is_looked_at_is_in_the_address_and_back_undoes_a_step(open_page, server):
    page = open_page("/Your_run", height=2400)
    assert "s=" not in page.url
    press(page, "Show step 81, which has them")
    corner = editor(page, "run_groups").get_by_test_id("data-grid-canvas").first.bounding_box()
    with rerun(page):
        page.mouse.click(corner["x"] + 16, corner["y"] + 35 * 4 + 17)
    heading = page.get_by_role("heading", name="Group 3 of step 81")
    heading.wait_for()
    fresh = open_page("/" + page.url.split("/", 3)[3], height=2400, server=server())
    fresh.get_by_role("heading", name="Group 3 of step 81").wait_for()
    with rerun(page):
        page.go_back()
    assert not heading.count()
    with rerun(page):
        page.go_back()
    page.get_by_role("heading", name="of step 79").wait_for()


def test_tokens_are_coloured_by_what_was_chosen(open_page):
    page = open_page("/Your_run", height=2400)
    press(page, "Show step 81, which has them")
    spans = page.locator(".completions span[title]")
    assert spans.count() > 50
    titles = []
    for name in ("advantage", "log-ratio", "KL", "contribution", "gradient"):
        if name != "advantage":
            with rerun(page):
                page.get_by_role("radio", name=name, exact=True).click()
        titles.append(spans.first.get_attribute("title"))
    with rerun(page):
        page.get_by_role("radio", name="82", exact=True).click()
    titles.append(spans.first.get_attribute("title"))
    assert len(set(titles)) >= 5, titles


def test_two_runs_stand_side_by_side(open_page):
    page = open_page("/Your_run", height=1600)
    page.get_by_role("combobox", name="Beside it").click()
    with rerun(page):
        page.get_by_role("option", name="Additions", exact=True).click()
    wait_painted(page)
    assert page.locator(".figures").first.get_by_text("Additions: 0.533 → 0.622").count()
    assert page.locator(".js-plotly-plot").first.get_by_text("Additions").count()
    assert page.get_by_text("Additions: Did it learn the task?").count()  # its verdict, too


def test_the_command_line_names_a_folder_that_opens_first(open_page, server, tmp_path):
    with zipfile.ZipFile(RUNS / "trl-addition.zip") as archive:
        archive.extractall(tmp_path)
    cold = server("--run", str(tmp_path / "trl-addition"))
    page = open_page("/", height=1600, server=cold)  # leads to the run by itself, once
    page.get_by_role("heading", name=MENU["Your_run"].question).wait_for()
    wait_painted(page)
    assert page.get_by_text("12,800 completions in 1,600 groups").count()
    assert page.get_by_text("122 of 1,600 groups").count()
    press(page, "Read it again")
    assert page.get_by_text("12,800 completions in 1,600 groups").count()
    go_to(page, MENU["Overview"])
    assert page.get_by_role("heading", name=MENU["Overview"].question).count()


def test_a_folder_that_is_not_there_is_said_and_other_runs_open(open_page, server, tmp_path):
    page = open_page("/Your_run", server=server("--run", str(tmp_path / "nothing")))
    assert page.get_by_test_id("stAlert").count() == 1
    page.get_by_role("combobox", name="Run").click()
    with rerun(page):
        page.get_by_role("option", name="Additions", exact=True).click()
    assert page.locator(".finding").count()
    assert page.get_by_test_id("stAlert").count() == 0


def zeros_in_a_zip():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("completions_00001.parquet", bytes(400_000_000))
    return buffer.getvalue()


BAD = {
    "a picture": lambda: ("cat.png", b"\x89PNG\r\n\x1a\n" + bytes(50)),
    "a pickle": lambda: ("rollout_3.pt", b"\x80\x04\x95\x00\x00"),
    "an empty file": lambda: ("completions_00001.parquet", b""),
    "half a Parquet file": lambda: ("completions_00001.parquet", b"PAR1" + bytes(90)),
    "a table of one column": lambda: ("rewards.csv", b"reward\n1\n0\n"),
    "a broken line": lambda: ("3.jsonl", b"{not json\n"),
    "400 MB of zeros": lambda: ("run.zip", zeros_in_a_zip()),
}


def test_files_that_are_no_run_are_refused_in_a_sentence_and_the_run_before_stays(open_page):
    page = open_page("/Your_run")
    for what, file in BAD.items():
        upload(page, file())
        (said,) = page.get_by_test_id("stAlert").all_inner_texts()
        assert re.search(r"[.)]$", said.strip().splitlines()[-1]), (what, said)
        assert "step_count” is being hacked" in page.locator(".finding").first.inner_text(), what


def test_markup_in_texts_and_names_is_shown_and_never_obeyed(open_page):
    hostile = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script> **b** $x$'
    rows = ["prompt,completion,reward <b>,note"]
    quoted = hostile.replace('"', '""')
    rows += [f'"{quoted}","{quoted} {k}",{k % 2},"[a](javascript:alert(1))"' for k in range(4)]
    page = open_page("/Your_run", height=2400)
    upload(page, ("run.csv", "\n".join(rows).encode()))
    wait_painted(page)
    assert page.evaluate("window.hacked") is None
    assert page.locator(".completions").get_by_text("<img src=x onerror=").count()
    assert page.locator(".completions img, .completions script").count() == 0
    for name in ("Every picture over the steps", "Columns and settings"):
        tab(page, name)
    assert page.evaluate("window.hacked") is None


def test_what_a_column_is_can_be_changed_and_weights_typed_in(open_page):
    rows = ["question,answer,score_a,score_b"]
    rows += [f"q{k // 4},a{k},{k % 2},{k % 4}" for k in range(16)]
    page = open_page("/Your_run", height=2400)
    upload(page, ("scores.csv", "\n".join(rows).encode()))
    wait_painted(page)
    tab(page, "Columns and settings")
    assert page.get_by_text("score_b (a guess)").count()
    tab(page, "Convention")
    field = page.locator("[class*='st-key-run_weight_']").nth(1).locator("input")
    field.fill("0.25")
    with rerun(page):
        field.press("Enter")
    assert page.get_by_role("button", name="As found again").count()
    assert field.input_value() == "0.25"


def test_columns_whose_names_say_nothing_are_asked_for_and_read_as_answered(open_page):
    rows = ["a,b,c"] + [f"q{k // 4},answer {k},{k % 2}" for k in range(16)]
    page = open_page("/Your_run", height=1600)
    upload(page, ("table.csv", "\n".join(rows).encode()))
    assert page.get_by_text("Say what the columns are").count()
    for column, role in (("a", "prompt"), ("b", "completion"), ("c", "reward, with a weight")):
        page.locator(f"[class*='st-key-run_role_upload-1_{column}']").locator("input").click()
        page.get_by_role("option", name=role, exact=True).click()
    press(page, "Read the files with these")
    assert chosen(page) == "Yours: table.csv"
    assert page.get_by_text("16 completions in 4 groups").count()
    assert not page.get_by_text("Say what the columns are").count()


def test_leaving_the_page_and_coming_back_keeps_the_uploaded_run(open_page):
    page = open_page("/Your_run", height=1600)
    upload(page, RUNS / "trl-addition.zip")
    assert chosen(page) == "Yours: trl-addition"
    go_to(page, MENU["KL"])
    assert page.get_by_role("heading", name=MENU["KL"].question).count()
    page.get_by_text(MENU["Your_run"].group, exact=True).click()  # folded away from this page
    go_to(page, MENU["Your_run"])
    wait_painted(page)
    assert chosen(page) == "Yours: trl-addition"


@pytest.mark.parametrize("width", [390, 1280])
def test_no_tab_makes_the_page_scroll_sideways(width, open_page):
    page = open_page("/Your_run", width=width, height=900)
    for name in ("Groups", "Every picture", "Convention", "Columns", "Record"):
        if name != "Groups":
            tab(page, re.compile(name))
        assert page.evaluate(
            "() => { const m = document.querySelector('[data-testid=stMain]');"
            " return m.scrollWidth - m.clientWidth; }"
        ) <= 0, name  # fmt: skip
