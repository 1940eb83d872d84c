"""What leaves the page *Your run*: the report as one file, and every table as CSV."""

import streamlit as st

from . import run_charts, run_group_charts, run_report, run_tables
from . import run_state as runs
from .palette import PALETTES
from .run_chart_rows import STEP_CHARTS


def downloads(run, other):
    """The two buttons."""
    found = runs.explained(run)
    st.download_button(
        "Report (one HTML file)",
        lambda: report_of(run, other),
        "grpo_run_report.html",
        "text/html",
        key="run_report",
        on_click="ignore",
        width="stretch",
    )
    st.caption("Figures stay interactive, and nothing is fetched: it opens without network.")
    st.download_button(
        "Tables (CSV, zipped)",
        lambda: run_tables.tables_csv(found),
        "grpo_run_tables.zip",
        "application/zip",
        key="run_tables",
        on_click="ignore",
        width="stretch",
    )


def report_of(run, other):
    """What is on the page as one self-contained HTML text."""
    found, palette = runs.explained(run), PALETTES["light"]
    overview = run_charts.steps_overview(found, palette, other)
    pictures = [("The course of the run", overview)]
    pictures += [
        (row.title, figure)
        for key, row in STEP_CHARTS.items()
        if (figure := run_charts.step_chart(key, found, palette, other, run.step)) is not None
    ]
    for title, figure in (
        ("Logged against recomputed advantages", run_group_charts.agreement_chart(found, palette)),
        ("Advantages of tied groups", run_group_charts.residue_chart(found, palette)),
    ):
        if figure is not None:
            pictures.append((title, figure))
    return run_report.report(
        found,
        sentences=[(one.severity, f"{one.question} {one.sentence}") for one in runs.said(run)],
        figures=pictures,
        tables=run_tables.every_table(found),
        texts=[*run.opened.notes],
        title=f"GRPO run: {run.opened.name}",
        made_with="GRPO Explorer",
    )
