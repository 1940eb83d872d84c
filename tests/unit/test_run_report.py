"""The report of a run: whole in one file, closed to what stands in other files, small enough."""

import base64
import hashlib
import html
import json
import re

import numpy as np
import pandas as pd
import plotly.offline
import pytest

from pages._ui.palette import PALETTES
from pages._ui.run_charts import STEP_CHARTS, step_chart, steps_overview
from pages._ui.run_report import report
from pages._ui.run_tables import every_table
from tests.unit.made_runs import HOSTILE, awkward, made, shown
from tests.unit.tags import Tags

LIGHT = PALETTES["light"]
RUNS = awkward()
PLOTLY = plotly.offline.get_plotlyjs()


def made_report(run, **changes):
    """A report of a run with whatever is changed; Plotly's own script left out."""
    given = {
        "sentences": [("error", "It is hacked."), ("note", "It is long.")],
        "figures": [("The course", steps_overview(run, LIGHT))],
        "tables": every_table(run),
        "texts": ["A note."],
        "title": "A run",
        "made_with": "the app",
    }
    whole = report(run, **{**given, **changes})
    assert whole.count(PLOTLY) <= 1
    return whole.replace(PLOTLY, "PLOTLY")


def scripts(text):
    """(attributes, content) of every script as a browser parts them."""
    return re.findall(r"<script([^>]*)>(.*?)</script>", text, flags=re.S | re.I)


@pytest.mark.parametrize("name", list(RUNS))
def test_every_run_has_a_report_that_holds_its_figures_as_data(name):
    text = made_report(RUNS[name])
    text.encode()
    kinds = [attributes.strip() for attributes, _ in scripts(text)]
    assert kinds == ["", 'type="application/json" id="figure-0"', ""]
    drawn = json.loads(scripts(text)[1][1])
    assert set(drawn) >= {"data", "layout", "config"}
    assert drawn["layout"]["paper_bgcolor"] == "#ffffff"


def test_nothing_is_fetched():
    text = made_report(RUNS["plain"])
    assert not re.findall(r"""(?:src|href|srcset|action)\s*=|url\(|@import|<link|<base""", text)
    assert "http://" not in text
    assert "https://" not in text


def test_the_policy_lets_its_own_scripts_run_and_no_other():
    text = made_report(RUNS["plain"])
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    rules = dict(rule.strip().split(" ", 1) for rule in html.unescape(policy).split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in rules["script-src"]
    run = [PLOTLY if content == "PLOTLY" else content
           for attributes, content in scripts(text) if "json" not in attributes]  # fmt: skip
    for content in run:
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"sha256-{digest}" in rules["script-src"]
    assert text.index("Content-Security-Policy") < text.index("<script")


def test_no_text_becomes_markup_wherever_it_stands():
    run = RUNS["hostile names"]
    text = made_report(
        run,
        sentences=[("error", HOSTILE), (HOSTILE, HOSTILE), HOSTILE],
        figures=[(HOSTILE, step_chart("terms", run, LIGHT))],
        tables={HOSTILE: pd.DataFrame({HOSTILE: [HOSTILE, None], "n": [1.0, np.nan]})},
        texts=[HOSTILE, (HOSTILE, HOSTILE), "<!-- \n--> </body>"],
        title=HOSTILE,
        made_with=HOSTILE,
    )
    found = Tags(text).found
    assert {tag for tag, _ in found} <= {
        *("html", "head", "meta", "title", "style", "body", "main", "section", "h1", "h2", "h3"),
        *("p", "ul", "li", "span", "br", "figure", "div", "noscript", "table", "thead", "tbody"),
        *("tr", "th", "td", "script"),
    }
    assert len(scripts(text)) == text.count("<script") == text.count("</script>") == 3
    known = {"class", "style", "dir", "id", "type", "role", "aria-label", "data-figure", "lang",
             "charset", "name", "content", "http-equiv"}  # fmt: skip
    assert {name for _, attributes in found for name in attributes} <= known
    assert "\u202e" not in text


def test_a_long_table_is_cut_and_says_so():
    frame = pd.DataFrame({"x": np.arange(1234)})
    text = made_report(RUNS["plain"], tables={"long": frame})
    assert text.count("<tr>") == 201
    assert "first 200 of 1,234 rows" in text


def test_numbers_are_rounded_for_reading_and_blanks_are_dashes():
    frame = pd.DataFrame({"x": [1 / 3, np.nan], "y": [True, False], "s": ["a", None]})
    text = made_report(RUNS["plain"], tables={"t": frame})
    for cell in ("0.3333", "–", "yes", "no"):
        assert f">{cell}</td>" in text
    assert ">nan<" not in text


def test_sections_that_hold_nothing_are_left_out():
    text = made_report(RUNS["plain"], sentences=[], figures=[], tables={}, texts=[])
    assert "<h2>" not in text
    assert not scripts(text)


def test_a_figure_says_in_words_what_it_shows():
    chart = steps_overview(RUNS["plain"], LIGHT)
    (said,) = re.findall(r'aria-label="([^"]*)"', made_report(RUNS["plain"]))
    assert said == chart.layout.meta["alt"]


def test_a_report_of_much_stays_below_eight_megabytes_and_names_what_is_left_out():
    rng = np.random.default_rng(0)
    terms = rng.normal(size=(4000, 2, 12))
    run = shown(made(4000, 2, tuple(f"term {k}" for k in range(12)), terms=terms, advantages=None))
    figures = [("The course", steps_overview(run, LIGHT, run))]
    figures += [
        (row.title, chart)
        for key, row in STEP_CHARTS.items()
        if (chart := step_chart(key, run, LIGHT, run)) is not None
    ]
    given = {"sentences": [], "tables": every_table(run), "texts": ["x" * 10**6] * 3}
    text = report(run, figures=figures, title="t", made_with="m", **given)
    assert len(text.encode()) < 8_000_000
    assert text.count("<h3>") >= len(figures)


def test_the_same_run_gives_the_same_report():
    assert made_report(RUNS["plain"]) == made_report(RUNS["plain"])


def test_wide_and_long_tables_leave_the_report_small_and_say_what_is_cut():
    wide = pd.DataFrame({f"column {k}": np.linspace(0, 1, 5000) / 3 for k in range(500)})
    text = made_report(RUNS["plain"], tables={"wide": wide})
    assert len(text.encode()) < 8_000_000
    assert "The first 200 of 5,000 rows and 30 of 500 columns." in text
