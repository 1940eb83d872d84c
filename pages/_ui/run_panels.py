"""Blocks of the page *Your run*: what it says, the course over the steps, convention, columns."""

import html

import streamlit as st

from . import panels, run_charts, run_group_charts, run_tables, run_words, state
from . import run_state as runs
from .literal import literal
from .run_chart_rows import STEP_CHARTS
from .runs.pickles import EXPORTS
from .runs.records import ROLES
from .trainer_text import MAX_CHARACTERS

_ICONS = {"note": "○", "warning": "▲", "error": "■"}
_JUMP = ":material/arrow_forward:"
_FIRST = 5  # findings that are seen at once
_COLUMNS = 60  # that can be given another role
_OPTIONS = 5_000  # steps that a slider offers one by one


def says(run):
    """What the run says: the gravest first, the rest folded; each leads to its step or group."""
    found = runs.said(run)
    for index, one in enumerate(found[:_FIRST]):
        _finding(one, index)
    if found[_FIRST:]:
        with st.expander(f"{len(found) - _FIRST} more", key="run_more"):
            for index, one in enumerate(found[_FIRST:], _FIRST):
                _finding(one, index)


def _finding(one, index):
    with st.container(key=f"run_finding_{index}", gap=None):
        icon = f'<span class="mark {one.severity}">{_ICONS[one.severity]}</span>'
        said = f"<b>{html.escape(one.question)}</b> {html.escape(one.sentence)}"
        st.html(f'<div class="finding">{icon}<span>{said}</span></div>')
        if "group" in one.where:
            st.button(
                "Show the group", key=f"run_jump_{index}", type="tertiary", icon=_JUMP,
                on_click=runs.show_group, args=(one.where["group"],),
            )  # fmt: skip
        elif "step" in one.where:
            st.button(
                f"Show step {one.where['step']}", key=f"run_jump_{index}", type="tertiary",
                icon=_JUMP,
                on_click=runs.show_step, args=(one.where["step"],),
            )  # fmt: skip


def figures(found, other):
    """What matters, from the first quarter of the steps to the last, as one quiet row."""
    rows = run_words.ends_row(found, other)
    cells = "".join(
        f'<div class="figure"><span class="label">{html.escape(label)}</span>'
        f'<span class="value">{html.escape(value)}</span>'
        f'<span class="below">{html.escape(below) or "&nbsp;"}</span></div>'
        for label, value, below in rows
    )
    st.html(f'<div class="figures">{cells}</div>')


def settle_step(run, found):
    """Make sure that the step looked at is one of the run's."""
    if run.step not in found.series.steps:
        wanted = run_words.first_step(found) if run.step is None else run.step
        run.step = run_words.nearest_step(found, wanted)


def overview(run, found, other, palette):
    """The whole run in one picture; a click on it chooses the step."""
    key = f"run_overview_{run.key}"

    def change():
        points = (st.session_state.get(key) or {}).get("selection", {}).get("points", [])
        if points and points[0].get("customdata"):
            state.touch()
            runs.show_step(points[0]["customdata"][0])

    figure = run_charts.steps_overview(found, palette, other, run.step)
    panels.chart(figure, key, on_select=change)


def step_picker(run, found):
    """The step that is looked at."""
    steps = found.series.steps.tolist()
    key = f"run_step_{run.key}"
    st.session_state[key] = run.step

    def change():
        state.touch()
        run.step = run_words.nearest_step(found, st.session_state[key])
        run.group = None

    if len(steps) == 1:
        st.caption(f"One step: {steps[0]:,}.")
    elif len(steps) <= _OPTIONS:
        st.select_slider("Step", steps, key=key, on_change=change)
    else:
        st.number_input("Step", steps[0], steps[-1], key=key, on_change=change)


def course(found, other, step, palette):
    """All pictures over the steps, two in a row."""
    keys = list(STEP_CHARTS)
    for left, right in zip(keys[::2], [*keys[1::2], None][: len(keys[::2])], strict=True):
        for column, key in zip(st.columns(2, gap="large"), (left, right), strict=True):
            if key is not None:
                with column:
                    _step_chart(key, found, other, step, palette)


def _step_chart(key, found, other, step, palette):
    row = STEP_CHARTS[key]
    st.markdown(f"**{row.title}**")
    st.caption(row.note)
    figure = run_charts.step_chart(key, found, palette, other, step)
    if figure is None:
        panels.plain(run_charts.why_missing(key, found), "caption")
    else:
        panels.chart(figure, f"run_chart_{key}")


def convention(run, found, palette):
    """Logged against recomputed advantages, the rules tried, the groups that do not fit."""
    if found.run.advantages is None:
        st.caption(
            "The files hold no advantages. Weights can still be typed in below, and every sum "
            "above follows them."
        )
    else:
        left, right = st.columns(2, gap="large")
        with left:
            panels.heading(
                "Logged against recomputed", "One point a completion. On the line: right."
            )
            figure = run_group_charts.agreement_chart(found, palette)
            if figure is not None:
                panels.chart(figure, "run_agreement")
        with right:
            panels.heading(
                "In tied groups", "The right advantage is 0. What was logged instead, if anything."
            )
            figure = run_group_charts.residue_chart(found, palette)
            if figure is None:
                st.caption("No group is tied.")
            else:
                panels.chart(figure, "run_residue")
        panels.heading("Rules tried", "Each with the weights and the eps that suit it best.")
        st.dataframe(run_words.formatted(run_tables.tried_table(found.fit)), hide_index=True)
        if len(found.fit.misfits):
            panels.heading("Groups that do not fit", "The worst first.")
            st.dataframe(run_words.formatted(run_tables.misfit_table(found, 50)), hide_index=True)
    _weights(run, found)


def _weights(run, found):
    """Weights of the terms, to type in where the run is known to have others."""
    panels.heading(
        "Weights of the rewards",
        "As found. Type others in, if the settings of the run say so: all sums follow.",
    )
    names = found.run.names
    present = [float(weight) for weight in found.fit.weights]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for k, name in enumerate(names):
            key = f"run_weight_{run.key}_{k}"
            st.session_state[key] = present[k]
            st.number_input(
                literal(name), key=key, format="%g", step=0.1, width=160,
                on_change=_take_weights, args=(run, len(names)),
            )  # fmt: skip
        if run.weights is not None:
            st.button(
                "As found again", key="run_weights_back", on_click=_forget_weights, args=(run,)
            )


def _take_weights(run, K):
    state.touch()
    given = [st.session_state[f"run_weight_{run.key}_{k}"] for k in range(K)]
    if all(weight is not None for weight in given):
        run.weights = tuple(float(weight) for weight in given)


def _forget_weights(run):
    state.touch()
    run.weights = None


def columns(run, found):
    """Which column is what, which is the task, what the run was set to, and what was left out."""
    left, right = st.columns(2, gap="large")
    with left:
        _roles(run)
    with right:
        _task(run, found)
        _settings(run)
    if run.opened.notes:
        panels.heading("Noticed while reading")
        items = "".join(f"<li>{html.escape(note)}</li>" for note in run.opened.notes)
        st.html(f'<ul class="lines">{items}</ul>')


# What the roles are called on the page.
_ROLE_WORDS = {
    "step": "step",
    "group": "what tells groups apart",
    "prompt": "prompt",
    "completion": "completion",
    "term": "reward, with a weight",
    "total": "total reward",
    "advantage": "advantage",
    "length": "length",
    "measure": "another number",
    "ignore": "not used",
}


def _roles(run):
    panels.heading("Columns", "What each is taken for. Where a name does not tell, it is a guess.")
    chosen = _role_form(run.key, run.opened.columns, run.roles, "Read again with these")
    if chosen is not None:
        runs.take_roles(run, chosen)
        st.rerun()
    if run.error:
        st.error(literal(run.error), icon=":material/error:")


def asked(pending):
    """What the columns of files are that do not tell it themselves, to choose before reading."""
    st.warning(literal(pending.asked), icon=":material/help:")
    panels.heading(pending.label, "Say what the columns are; the guesses are preselected.")
    chosen = _role_form(pending.key, pending.survey.columns, {}, "Read the files with these")
    if chosen is not None:
        runs.answer(chosen)
        st.rerun()


def _role_form(key, columns, roles, label):
    """Selectboxes for the roles of columns; gives the choices once the button is pressed."""
    chosen = {}
    ordered = sorted(columns, key=lambda column: not column.asked)
    for column in ordered[:_COLUMNS]:
        now = roles.get(column.name, column.role)
        mark = " (a guess)" if column.asked else ""
        chosen[column.name] = st.selectbox(
            literal(column.name) + mark,
            ROLES,
            index=ROLES.index(now),
            format_func=_ROLE_WORDS.get,
            key=f"run_role_{key}_{column.name}",
            on_change=state.touch,
        )
    if ordered[_COLUMNS:]:
        st.caption(f"{len(ordered) - _COLUMNS:,} more columns are read as they were guessed.")
    pressed = st.button(label, key=f"run_roles_{key}", on_click=state.touch)
    return chosen if pressed else None


def _task(run, found):
    panels.heading("The task", "What the reward is meant to raise; shares and ties are against it.")
    names = [*found.run.names, *found.run.measures]
    key = f"run_task_{run.key}"
    st.session_state[key] = found.task

    def change():
        state.touch()
        run.task = st.session_state[key]

    st.selectbox(
        "Task", names, key=key, on_change=change, label_visibility="collapsed",
        format_func=lambda name: name,
    )  # fmt: skip


def _settings(run):
    panels.heading(
        "Settings of the run",
        "Clip range, KL and averaging stand in no log. Paste the run's settings, and groups open "
        "under them; without, under the trainer's defaults.",
    )
    key = f"run_settings_{run.key}"
    if key not in st.session_state:
        st.session_state[key] = run.settings

    def change():
        state.touch()
        run.settings = st.session_state[key]

    st.text_area(
        "Settings", key=key, height=110, max_chars=MAX_CHARACTERS, on_change=change,
        label_visibility="collapsed",
        placeholder="GRPOConfig(beta=0.04, epsilon=0.2) or YAML, override lines, flags",
    )  # fmt: skip
    _, source = runs.conventions(run)
    panels.plain(f"Groups open under {source}.", "caption")
    if run.settings_error:
        st.error(literal(run.settings_error), icon=":material/error:")


def exports():
    """Lines that write what trainers do not, to run on one's own machine."""
    panels.heading(
        "Per-token log-probabilities",
        "Ratios, KL, clipping and gradients need them, and most trainers write none. Each of "
        "these runs on your own machine and writes a file that opens here. Pickles are never "
        "opened here, because a pickle can run anything.",
    )
    for row in EXPORTS:
        with st.expander(row.label, key=f"run_export_{row.key}"):
            st.caption(row.when)
            st.code(row.code, language="python")
