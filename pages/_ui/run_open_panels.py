"""The head of the page *Your run*: which run, one's own files, a second run, the report."""

import streamlit as st

from . import panels, run_report_panels, state
from . import run_state as runs
from .literal import literal
from .numbers import count
from .run_bundled import BUNDLED
from .runs import layout_text
from .runs.formats import FORMATS
from .token_text import readable

_UPLOAD_MB = 20  # .streamlit/config.toml has the same
_NONE = ""  # the key of no second run


def pickers():
    """The row of choices; gives the open run, or None where none could be read."""
    labels, here = runs.labels(), runs.runs()
    if here.shown not in labels:
        here.shown = next(iter(labels))
    one, two, own, out = st.columns([4, 4, 2, 2], vertical_alignment="bottom")
    with one:
        _picker("Run", labels, "shown")
    with two:
        rest = {key: label for key, label in labels.items() if key != here.shown}
        _picker("Beside it", {_NONE: "no second run", **rest}, "beside")
    with own, st.popover("Open files", icon=":material/folder_open:", width="stretch"):
        _uploader()
    run = runs.held(here.shown)
    with out, st.popover("Report", icon=":material/download:", width="stretch"):
        if run is not None:
            run_report_panels.downloads(run, second(run))
    if here.error:
        st.error(literal(here.error), icon=":material/error:")
    return run


def second(run):
    """The run to compare with, explained; None without one."""
    here = runs.runs()
    if here.beside in (_NONE, run.key) or here.beside not in runs.labels():
        return None
    other = runs.held(here.beside)
    return None if other is None else runs.explained(other)


def _picker(label, labels, which):
    """A selectbox that shows one of the two choices; the store holds it."""
    here = runs.runs()
    key = f"run_{which}_{here.uploads}"
    present = getattr(here, which)
    st.session_state[key] = present if present in labels else next(iter(labels))

    def change():
        state.touch()
        setattr(here, which, st.session_state[key])
        here.error = ""
        if here.beside == here.shown:
            here.beside = _NONE

    st.selectbox(label, list(labels), key=key, format_func=labels.get, on_change=change)


def _uploader():
    here = runs.runs()
    key = f"run_files_{here.uploads}"

    def change():
        state.touch()
        files = st.session_state.get(key)
        if files:
            runs.take_uploads([(file.name, file.getvalue()) for file in files])

    st.file_uploader(
        "Files of one run, or a zip of its folder",
        accept_multiple_files=True,
        key=key,
        max_upload_size=_UPLOAD_MB,
        on_change=change,
        help="They are read in this session's memory and kept nowhere. Pickles are refused.",
    )
    st.caption(
        "On your own machine nothing has to be uploaded, and files may be larger: "
        "`streamlit run app.py -- --run PATH` opens a folder."
    )
    with st.expander("What can be read"):
        st.markdown("\n".join(f"- {row.label}" for row in FORMATS))
        st.caption(
            "A trainer's log beside them (trainer_state.json, log_history.json) is read too."
        )
    with st.expander("Your own arrays"):
        st.markdown(layout_text.MARKDOWN)


def beside(run):
    """What the second run says first, one line; nothing without one."""
    here = runs.runs()
    other = here.held.get(here.beside)
    if other is None or other.key == run.key:
        return
    said = runs.said(other)
    if said:
        panels.plain(f"{other.label}: {said[0].question} {said[0].sentence}", "caption")


def about(run):
    """What is open: format, sizes, and of a run that ships where it comes from."""
    row = BUNDLED.get(run.key)
    if row is not None:
        st.caption(row.about)
    panels.plain(_sizes(run), "caption")
    if run.key == runs.PATH:
        st.button(
            "Read it again", on_click=runs.read_again, icon=":material/refresh:",
            type="tertiary", key="run_again",
        )  # fmt: skip


def _kept(run):
    """That an upload is kept nowhere."""
    return " Reloading the page forgets it." if run.key.startswith("upload") else ""


def _guesses(run):
    """Which columns are taken for rewards by their names alone; '' where all are known."""
    guessed = [
        column.name
        for column in run.opened.columns
        if column.asked and run.roles.get(column.name, column.role) in ("term", "total")
    ]
    if not guessed:
        return ""
    named = ", ".join(f"“{readable(name, 40)}”" for name in guessed[:6])
    more = f" and {len(guessed) - 6:,} more" if len(guessed) > 6 else ""
    return f" Taken for rewards: {named}{more}; change that under Columns and settings."


def _sizes(run):
    found = run.opened.run
    completions, groups = int(found.sizes.sum()), len(found.steps)
    steps = found.every_step
    return (
        f"{run.opened.format.label}: {count(completions, 'completion')} in "
        f"{count(groups, 'group')}, "
        f"{count(len(steps), 'scored step')} "
        f"from {steps[0]:,} to {steps[-1]:,}.{_guesses(run)}{_kept(run)}"
    )
