"""Widgets for the shaping terms of the example: names, weights, formulas."""

import streamlit as st

from grpo_core import TERMS
from grpo_core.shaping_views import with_shaping
from grpo_core.term_edits import add_term, change_term, remove_term
from grpo_core.variants import Number

from . import state
from .controls import show_error, step_of
from .following import answering, follow


def term_rows(scenario, where):
    """One row of widgets for each term of a scenario `with_shaping`, and a button that adds one."""
    for index, term in enumerate(scenario.terms):
        _term_row(term, index, where)
    place = f"{where}_add_term"
    st.button("Add a term", key=place, icon=":material/add:", on_click=_loading(add_term, place))
    show_error(place)


def _loading(edit, place):
    """A callback that loads the edited scenario, or leaves the reason at its place."""
    return state.guarded(lambda: state.load(edit(with_shaping(state.store().scenario))), place)


def _term_row(term, index, where):
    place = f"{where}_term_{index}"
    options = {option.key: option for option in term.variant.options}
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"row_{place}"):
        _field(st.text_input, "Term", term.name, (place, index, "name"), max_chars=40)
        _field(
            st.number_input, "Weight", term.weight, (place, index, "weight"),
            step=step_of(term.weight), format="%g",
        )  # fmt: skip
        _field(
            st.selectbox, "Formula", term.formula.variant, (place, index, "formula"),
            options=list(TERMS), format_func=lambda key: TERMS[key].label,
            help=f"{term.variant.choose_when} {term.variant.source}.",
        )  # fmt: skip
        for key, option in options.items():
            _option(option, term.formula.options[key], (place, index, key))
        st.button(
            "Remove", key=f"{place}_remove", icon=":material/delete:",
            on_click=_loading(lambda scenario: remove_term(scenario, index), place),
        )  # fmt: skip
    show_error(place)


def _option(option, value, at):
    if isinstance(option.domain, Number):
        _field(
            st.number_input, option.label, value, at, help=option.help,
            step=1 if option.domain.integer else step_of(value),
            format="%d" if option.domain.integer else "%g",
        )  # fmt: skip
    else:
        _field(
            st.selectbox, option.label, value, at, options=list(option.domain.words),
            format_func=option.domain.words.get, help=option.help,
        )  # fmt: skip


def _field(widget, label, value, at, **settings):
    """One widget of a term, showing its value and changing one field of the term.

    Name and formula are in the tables, which start afresh with them; a weight or an option of
    a formula is not.
    """
    place, index, name = at
    key = f"{place}_{name}"
    follow(key, value)
    take = state.load if name in ("name", "formula") else state.edit

    def change():
        edit = {name: st.session_state[key]}
        take(change_term(with_shaping(state.store().scenario), index, **edit))

    widget(label, key=key, on_change=answering(key, state.guarded(change, place)), **settings)
