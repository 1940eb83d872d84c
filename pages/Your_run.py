"""Your run: the files of a training run opened, its rewards checked and explained."""

import streamlit as st

from pages._ui import page, run_group_panels, run_open_panels, run_panels, state
from pages._ui import run_state as runs

with page.frame("Your_run") as shown:
    runs.follow_link()
    run = run_open_panels.pickers()
    if runs.runs().pending is not None:
        run_panels.asked(runs.runs().pending)
    if run is not None:
        found, other = runs.explained(run), run_open_panels.second(run)
        run_open_panels.about(run)
        run_panels.says(run)
        run_open_panels.beside(run)
        run_panels.figures(found, other)
        run_panels.settle_step(run, found)
        run_panels.overview(run, found, other, shown.palette)
        tabs = st.tabs(
            [
                "Groups",
                "Every picture over the steps",
                "Convention",
                "Columns and settings",
                "Record log-probabilities",
            ],
            key="run_tabs",
            on_change=state.touch,
        )
        groups, course, convention, columns, exports = tabs
        if groups.open:
            with groups:
                run_panels.step_picker(run, found)
                run_group_panels.groups(run, found, run.step)
                run_group_panels.group(run, found, shown.palette)
        if course.open:
            with course:
                run_panels.course(found, other, run.step, shown.palette)
        if convention.open:
            with convention:
                run_panels.convention(run, found, shown.palette)
        if columns.open:
            with columns:
                run_panels.columns(run, found)
        if exports.open:
            with exports:
                run_panels.exports()
        runs.note_link(run, found)
