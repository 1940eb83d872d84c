"""Widgets that show the store and call back into it; none keeps a state of its own.

Before a widget is drawn its value is set from the store, so it follows links, undo and
clicks; when the reader changes it, the callback runs before anything is drawn.
"""

import streamlit as st

from grpo_core import ARRAYS, STAGES, ScenarioError, resize
from grpo_core.variants import Number

from . import state, tables
from .literal import literal

_STEPS = {"P": "Prompts", "G": "Completions", "L": "Tokens"}
# Larger tables than this cannot be edited by hand; files and links may hold more.
_LARGEST = {"P": 64, "G": 64, "L": 512}


def _guarded(change, message_at):
    """Run a change; a refusal becomes the message of one place, the state stays."""
    here = state.store()
    try:
        change()
    except ScenarioError as error:
        here.errors[message_at] = str(error)
    else:
        here.errors.pop(message_at, None)


def show_error(place):
    """Draw the message of a place, if there is one."""
    message = state.store().errors.get(place)
    if message:
        st.error(literal(message), icon=":material/error:")


def variant_picker(stage, where):
    """Selectbox for the variant of a stage."""
    row, key = STAGES[stage], f"{where}_{stage}"
    st.session_state[key] = state.store().scenario.conventions[stage].variant

    def change():
        state.edit(state.store().scenario.choose(stage, st.session_state[key]))

    chosen = state.store().scenario.conventions.variant(stage)
    st.selectbox(
        row.label,
        _offered(row, state.store().scenario),
        key=key,
        format_func=lambda variant: row.variants[variant].label,
        on_change=lambda: _guarded(change, key),
        help=f"{chosen.choose_when} TRL: `{chosen.trl}`. verl: `{chosen.verl}`. {chosen.source}.",
    )
    show_error(key)


def _offered(row, scenario):
    """Variants that the scenario has the arrays for."""
    return [
        key
        for key, variant in row.variants.items()
        if all(need in scenario for need in variant.needs)
    ]


def option_input(stage, option, where):
    """Number input or selectbox for one option of the chosen variant."""
    key = f"{where}_{stage}_{option.key}"
    st.session_state[key] = state.store().scenario.conventions[stage].options[option.key]

    def change():
        value = st.session_state[key]
        state.edit(state.store().scenario.choose(stage, **{option.key: value}))

    help_text = f"{option.help} TRL: `{option.trl}`. verl: `{option.verl}`."
    if isinstance(option.domain, Number):
        st.number_input(
            option.label,
            key=key,
            step=1 if option.domain.integer else _step(st.session_state[key]),
            format="%d" if option.domain.integer else "%g",
            on_change=lambda: _guarded(change, key),
            help=help_text,
        )
    else:
        st.selectbox(
            option.label,
            list(option.domain.words),
            key=key,
            format_func=lambda value: option.domain.words[value],
            on_change=lambda: _guarded(change, key),
            help=help_text,
        )
    show_error(key)


def _step(value):
    """A step of the value's own size: 0.01 at 0.2, 1e-9 at 1e-8."""
    return 10.0 ** (int(f"{abs(value):e}".split("e")[1]) - 1) if value else 0.01


def stage_controls(stage, where):
    """The variant of a stage, where there are several, and the options that it has."""
    if len(STAGES[stage].variants) > 1:
        variant_picker(stage, where)
    options = state.store().scenario.conventions.variant(stage).options
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"row_{where}_{stage}"):
        for option in options:
            option_input(stage, option, where)


def prompt_picker(where):
    """Which prompt's group is shown; nothing to pick when there is one."""
    here = state.store()
    count = here.scenario.sizes["P"]
    if count == 1:
        return
    key = f"{where}_prompt"
    st.session_state[key] = here.view.prompt

    def change():
        state.select(st.session_state[key], *here.view.selected[1:])

    def label(p):
        text = here.scenario.texts.prompt(p)
        return f"Prompt {p}: {text[:40]}" if text else f"Prompt {p}"

    st.selectbox("Prompt", range(count), key=key, format_func=label, on_change=change)


def token_picker(where):
    """Prompt, completion and token by keyboard: the same choice as clicking a cell."""
    here = state.store()
    labels = ("Prompt", "Completion", "Token")
    sizes = here.scenario.sizes
    keys = [f"{where}_{label}" for label in labels]
    for key, at in zip(keys, here.view.selected, strict=True):
        st.session_state[key] = at

    def change():
        state.select(*(st.session_state[key] for key in keys))

    with st.container(horizontal=True, key=f"row_{where}_token"):
        for label, key, axis in zip(labels, keys, "PGL", strict=True):
            st.number_input(label, 0, sizes[axis] - 1, step=1, key=key, on_change=change)


def size_inputs(where):
    """Number of prompts, completions and token positions."""
    here = state.store()
    with st.container(horizontal=True, key=f"row_{where}_sizes"):
        for axis, label in _STEPS.items():
            key = f"{where}_size_{axis}"
            st.session_state[key] = here.scenario.sizes[axis]

            def change(axis=axis, key=key):
                state.load(resize(here.scenario, **{axis: int(st.session_state[key])}))

            most = max(_LARGEST[axis], here.scenario.sizes[axis])
            st.number_input(label, 1, most, step=1, key=key, on_change=change)


def paste(key, text, message_at):
    """Put pasted text into an array: into the shown prompt if the text holds only that."""
    here = state.store()
    _guarded(
        lambda: state.load(tables.paste_array(here.scenario, key, text, here.view.prompt)),
        message_at,
    )


def use_rewards(text, message_at):
    """Make a pasted line of rewards the shown group's."""
    paste("rewards", text, message_at)


def clicked(key, cells):
    """Callback of a chart: the clicked cell becomes the selected token."""

    def change():
        points = (st.session_state.get(key) or {}).get("selection", {}).get("points", [])
        for point in points:
            index = point.get("customdata")
            if index is not None and len(index) >= 3:
                state.select(*index[:3])
                return

    return change if cells else "ignore"


def array_choices(scenario):
    """Arrays that a scenario holds and a table can edit."""
    return [key for key, spec in ARRAYS.items() if key in scenario and spec.axes]
