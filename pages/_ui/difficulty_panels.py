"""Blocks that edit kinds of prompts: the table, graded or not, taken from the batch."""

import streamlit as st

from grpo_core.arrays import OWN_AXES
from grpo_core.estimators import seed_of
from grpo_core.silent import tied_groups

from . import controls, editors, state
from .controls import show_error
from .following import answering, follow
from .numbers import count
from .rate_tables import (
    GROUP_SIZE,
    batch_rewards,
    frame_to_kinds,
    from_batch_note,
    is_graded,
    kinds_frame,
    kinds_from_batch,
    kinds_note,
    to_graded,
    to_right_or_wrong,
    value_labels,
    with_kinds,
    with_values,
)


def kinds_editor(where):
    """The table of kinds of prompts and how it is made: rates, graded rewards, from the batch."""
    scenario = state.store().scenario

    def source():
        return editors.Source(
            name="kinds",
            label="Kinds of prompts",
            values=kinds_frame(scenario),
            read=frame_to_kinds,
            dynamic=True,
        )

    with st.container(key="kinds_values"):
        if is_graded(scenario):
            _values(where)
    st.caption(kinds_note(scenario))
    name = "kinds_graded" if is_graded(scenario) else "kinds_rates"
    editors.editor(editors.table_key(name), source, labels=value_labels(scenario))
    _ways_in(where, scenario)


def _values(where):
    """What an answer can be worth: a table of values, and how many there are."""
    here, key, axis = state.store(), f"{where}_values", OWN_AXES["M"]
    follow(key, int(with_kinds(here.scenario)["reward_values"].size))

    def change():
        state.load(with_values(state.store().scenario, int(st.session_state[key])))

    st.number_input(
        "Different rewards", axis.low, axis.high, step=1, key=key,
        on_change=answering(key, state.guarded(change, key)),
    )  # fmt: skip
    show_error(key)
    editors.array_editor("reward_values", labels={"reward_values": "reward"}, of=with_kinds)


def _ways_in(where, scenario):
    """Buttons that make the table anew."""
    graded = is_graded(scenario)
    with st.container(horizontal=True, key=f"row_{where}_kinds"):
        st.button(
            "Right or wrong" if graded else "Graded rewards",
            key=f"{where}_graded",
            help="Rewards 0 and 1; each kind keeps its mean reward."
            if graded
            else "Rewards 0, 0.5 and 1 to begin with; each kind keeps its mean reward.",
            on_click=state.guarded(_turn, f"{where}_kinds"),
        )
        st.button(
            "Take the batch's groups",
            key=f"{where}_from_batch",
            help="A kind for each prompt of the example, with the rewards that its group had, and "
            "groups of that size.",
            on_click=state.guarded(_take_batch, f"{where}_kinds"),
        )
    tied = int(tied_groups(batch_rewards(scenario)).sum())
    if tied:
        many = "tied group would count" if tied == 1 else "tied groups would count"
        st.caption(
            f"From the batch, {count(tied, many, many)} as always tied, which need not be so."
        )
    show_error(f"{where}_kinds")


def _turn():
    scenario = state.store().scenario
    turn = to_right_or_wrong if is_graded(scenario) else to_graded
    state.load(turn(with_kinds(scenario)))


def _take_batch():
    here = state.store()
    before = here.scenario
    state.load(kinds_from_batch(before))
    here.note = from_batch_note(before)


def size_and_seed(where):
    """Group size of the closed forms, and the seed of what is sampled beside them."""
    with st.container(horizontal=True, key=f"row_{where}_size"):
        controls.scalar_input("group_size", where, GROUP_SIZE, label="Group size G")
        controls.scalar_input("seed", where, seed_of(state.store().scenario), label="Seed")
