"""The tools at the head of every page: example, link, pin, save and open."""

from dataclasses import replace

import streamlit as st

from grpo_core import ScenarioError

from . import export, files, state
from .link import LIMIT
from .literal import literal
from .questions import asked_with
from .view import View

_UPLOAD_MB = 5


def tools():
    """Example picker, pinning, and everything that leaves the page."""
    _example_picker()
    with st.popover("Pin", icon=":material/push_pin:"):
        _pin()
    with st.popover("Share", icon=":material/share:"):
        link, save, opened = st.tabs(["Link", "Export", "Open"])
        with link:
            _link()
        with save:
            _export()
        with opened:
            _open_file()


def lesson():
    """What the example on the screen teaches, or that the numbers are the reader's own now."""
    here, key = state.store(), _present_example()
    if key is not None:
        here.begun_from = f"the example “{state.examples()[key].title}”"
        st.caption(state.examples()[key].teaches)
        return
    question = asked_with(here.scenario)
    if question is not None:
        here.begun_from = f"the question “{question.asks}”"
        answer = f"The small batch of a public question, answered on Conventions: “{question.asks}”"
        st.caption(literal(answer))
    elif here.begun_from is not None:
        st.caption(literal(f"Your own numbers, begun from {here.begun_from}."))
    else:
        st.caption("Your own numbers.")


def _present_example():
    """Key of the shipped example that is on the screen, unchanged; None for one's own numbers."""
    here = state.store().scenario
    return next((key for key, row in state.examples().items() if row.scenario is here), None)


def _example_picker():
    shipped = state.examples()
    here = state.store()
    # Another widget for each example. A click sent in the moment of an edit still carries the
    # picker of the unedited example, which says what it always said: no reason to load it again.
    present = _present_example()
    widget = f"example_{present}"
    if widget not in st.session_state:
        st.session_state[widget] = present

    def change():
        state.touch()
        key = st.session_state.get(widget)  # gone if the page was left in the same moment
        if key not in (None, present):
            state.load(shipped[key].scenario, replace(here.view, selected=View().selected))

    st.selectbox(
        "Example",
        list(shipped),
        key=widget,
        format_func=lambda key: shipped[key].title,
        placeholder="Your own numbers",
        on_change=change,
        label_visibility="collapsed",
        width=220,
    )


def _link():
    here = state.store()
    if here.too_large:
        st.write(
            f"This example is too large for a link of {LIMIT:,} characters. Save it as a file "
            "(Export: 'Example as JSON') and send that."
        )
        return
    st.write("The whole example is in this address. Copy it, and anyone sees the same numbers.")
    st.code(state.address(), language=None, wrap_lines=True, height=160)
    st.caption(f"{len(state.address()):,} characters. The address bar holds the same.")


def _pin():
    here = state.store()
    st.write("Pin the present state as A. Every picture then shows A beside what you do next.")
    st.button(
        "Pin this state as A",
        key="pin",
        on_click=lambda: state.pin(here.scenario),
    )
    if here.view.pinned is not None:
        pinned = here.view.pinned
        if pinned.sizes != here.scenario.sizes:
            st.caption("A has other sizes than the present state, so it is not drawn beside it.")
        st.button("Go back to A", key="unpin_back", on_click=lambda: state.load(pinned))
        st.button("Unpin", key="unpin", on_click=lambda: state.pin(None))


def _export():
    scenario = state.store().scenario
    evaluation = state.evaluation_of(scenario)
    rows = (
        ("NumPy script", "grpo_example.py", "text/x-python", lambda: export.script(scenario)),
        (
            "Notebook",
            "grpo_example.ipynb",
            "application/x-ipynb+json",
            lambda: export.notebook(scenario, "GRPO example"),
        ),
        (
            "Arrays (npz)",
            "grpo_example.npz",
            "application/octet-stream",
            lambda: files.scenario_to_npz(scenario, evaluation),
        ),
        (
            "Example as JSON",
            "grpo_example.json",
            "application/json",
            lambda: files.scenario_to_json(scenario),
        ),
        (
            "Tables (CSV, zipped)",
            "grpo_tables.zip",
            "application/zip",
            lambda: export.tables_zip(evaluation),
        ),
    )
    for label, name, mime, build in rows:
        st.download_button(
            label, build, name, mime, key=f"export_{name}", on_click="ignore", width="stretch"
        )


def _open_file():
    key = f"open_file_{state.store().version}"

    def change():
        upload = st.session_state.get(key)
        if upload is None:
            return
        try:
            if upload.name.lower().endswith(".npz"):
                scenario = files.scenario_from_npz(upload.getvalue())
            else:
                scenario = files.scenario_from_json(upload.getvalue().decode("utf-8"))
        except UnicodeDecodeError:
            state.store().message = "This file is not text. Open a JSON or npz file saved here."
        except ScenarioError as error:
            state.store().message = f"The file was not opened: {error}"
        else:
            state.load(scenario, View())

    st.file_uploader(
        "Open a saved example (JSON or npz)",
        type=["json", "npz"],
        key=key,
        max_upload_size=_UPLOAD_MB,
        on_change=change,
    )
