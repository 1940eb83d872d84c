"""Blocks of the page Clipping: its controls, the drift, and the tables with their advantages."""

import streamlit as st

from grpo_core import ARRAYS
from grpo_core.drift import keep_drift, seeded_direction, unmoved, with_drift

from . import controls, editors, group_tables, state
from .following import answering, follow
from .numbers import count, number

_LOWEST, _HIGHEST, _STEP = -1.0, 3.0, 0.05
_FARTHEST = 1e6  # where the slider stands for a drift from a link that no slider could show
_TOKENS = {"all": "all prompts", "one": "this prompt"}
_TABLES = ("logp_new", "logp_old")


def control_row(where):
    """Drift, surrogate with its options, and ratio, in one row."""
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"{where}_controls"):
        _drift_slider(where)
        controls.variant_picker("surrogate", where)
        for option in state.store().scenario.conventions.variant("surrogate").options:
            controls.option_input("surrogate", option, where)
        controls.variant_picker("ratio", where)


def _drift_slider(where):
    here, key = state.store(), f"{where}_drift"
    drift = min(max(here.scenario.drift, -_FARTHEST), _FARTHEST)
    follow(key, drift)

    def change():
        state.edit(with_drift(state.store().scenario, st.session_state[key]))

    st.slider(
        "Drift of the policy",
        min(_LOWEST, drift),
        max(_HIGHEST, drift),
        step=_STEP,
        format="%.2f",
        key=key,
        on_change=answering(key, change),
        help="The pictures use logp_old + drift × (logp_new − logp_old): at 0 the policy is "
        "still the old one, at 1 it is the one in the table, beyond it has gone on the same way.",
    )


def drift_line(where):
    """What the drift does to the numbers of the tables, and what can be done about it."""
    scenario = state.store().scenario
    still = int(unmoved(scenario).sum())
    if scenario.drift == 1.0 and not still:
        return
    with st.container(horizontal=True, vertical_alignment="center", key=f"{where}_drift_line"):
        if scenario.drift != 1.0:
            st.caption(
                f"The tables hold the policy at drift 1; the pictures show it at "
                f"{number(scenario.drift)}.",
                width="content",
            )
            st.button(
                "Keep this drift",
                key=f"{where}_keep",
                type="tertiary",
                icon=":material/save_alt:",
                on_click=lambda: state.load(keep_drift(state.store().scenario)),
                help="Writes what the pictures show into the table and sets the drift to 1.",
            )
        if still:
            _direction(where, still)


def _direction(where, still):
    """A button that moves the tokens that no drift moves, differently each time."""
    count_key = f"{where}_seed"
    st.caption(
        f"{count(still, 'token')} {'has' if still == 1 else 'have'} the same probability under "
        "both policies: no drift moves "
        f"{'it' if still == 1 else 'them'}.",
        width="content",
    )

    def move():
        seed = st.session_state.get(count_key, 0)
        state.load(seeded_direction(state.store().scenario, seed))
        st.session_state[count_key] = seed + 1

    st.button(
        "Give it a direction" if still == 1 else "Give them a direction",
        key=f"{where}_direction",
        type="tertiary",
        icon=":material/moving:",
        on_click=move,
        help="Adds a small random step to logp_new of these tokens, never above 0.",
    )


def prompt_row(shown, where):
    """Which prompt is shown, and whether the pictures hold all tokens or its own; None is all."""
    if shown.scenario.sizes["P"] == 1:
        return None
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"row_{where}_prompt"):
        controls.prompt_picker(where)
        choice = controls.view_switch("Tokens in the pictures", _TOKENS, f"{where}_tokens")
    return shown.prompt if choice == "one" else None


def logp_tables(shown, where):
    """Log-probabilities of the shown prompt to edit, the advantage beside each completion."""
    tabs = st.tabs(
        [ARRAYS[name].label for name in _TABLES], key=f"{where}_logp", on_change=state.touch
    )
    beside = group_tables.advantages_beside(shown.evaluation, shown.prompt)
    for tab, name in zip(tabs, _TABLES, strict=True):
        if tab.open:
            with tab:
                editors.array_editor(name, shown.prompt, beside=beside)
