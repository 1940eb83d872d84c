"""Blocks of the length page: lengths to edit, the small policy that may stop, simulations."""

import hashlib

import streamlit as st

from grpo_core import ARRAYS, ScenarioError
from grpo_core.arrays import OWN_AXES
from grpo_core.estimators import seed_of

from . import controls, editors, panels, state
from .controls import show_error
from .following import answering, follow
from .length_pull import (
    batch_of,
    hunch_of,
    pull_view,
    right_share,
    simulated,
    with_places,
    with_stops,
)
from .length_tables import frame_to_lengths, lengths_frame, short_texts, with_some_lengths

_MADE = "length_table_made"


def lengths_editor(shown):
    """The table of rewards and lengths of the shown prompt."""
    prompt = shown.prompt

    def read(scenario, frame):
        changed = frame_to_lengths(with_some_lengths(scenario), frame, prompt)
        if changed is with_some_lengths(scenario):
            return scenario
        st.session_state[_MADE] = (_digest(changed), _made()[1])
        return changed

    def source():
        return editors.Source(
            name=f"lengths_{prompt}",
            label="Rewards and lengths",
            values=lengths_frame(shown.scenario, prompt),
            read=read,
        )

    editors.editor(
        f"table_rewards_{prompt}_{state.store().version}_{_generation(shown.scenario)}",
        source,
        beside=short_texts(shown.scenario, prompt),
        labels={"rewards": "reward"},
    )


def _made():
    return st.session_state.get(_MADE, ("", 0))


def _generation(scenario):
    """A number that changes where something else than this table changed what it shows.

    The table edits the mask, so the digest of the mask that other tables go by would make it
    afresh after each of its own edits.
    """
    digest, generation = _made()
    if digest != _digest(scenario):
        st.session_state[_MADE] = (_digest(scenario), generation + 1)
    return _made()[1]


def _digest(scenario):
    cells = b"".join(scenario[key].tobytes() for key in ("rewards", "mask", "present"))
    return hashlib.blake2b(cells, digest_size=8).hexdigest()


def lengths_button(shown):
    """Where all completions have one token: a button that takes the lengths that are shown."""
    with st.container(key="length_made_up"):
        if shown.scenario is state.store().scenario:
            return
        st.caption(
            "All completions of this example have one token. These lengths are made up. Edit one, "
            "or keep them."
        )
        st.button(
            "Keep these lengths",
            key="length_keep",
            on_click=lambda: state.load(with_some_lengths(state.store().scenario)),
        )


def stops_editor():
    """The table of stop logits, its size, and how good the hunch is."""
    editors.array_editor("stop_logits", of=with_stops, labels={"stop_logits": "logit of stopping"})
    own, key = OWN_AXES["T"], "length_places"
    follow(key, with_stops(state.store().scenario)["stop_logits"].size)

    def change():
        state.load(with_places(state.store().scenario, int(st.session_state[key])))

    with st.container(horizontal=True, key="row_length_stops"):
        st.number_input(
            "Places to stop", own.low, own.high, step=1, key=key,
            on_change=answering(key, state.guarded(change, key)),
        )  # fmt: skip
        controls.scalar_input("seed", "length", seed_of(state.store().scenario), "Seed")
    show_error(key)
    with st.container(key="row_length_hunch"):
        controls.scalar_input("hunch", "length", ARRAYS["hunch"].default)


def pulls(shown):
    """The exact pull and its simulation, or (None, None) with the reason on the page."""
    scenario = with_stops(shown.scenario)
    rate, accuracy = right_share(shown.evaluation, shown.prompt), hunch_of(scenario)
    conventions = repr(scenario.conventions)
    key = (scenario["stop_logits"].tobytes(), rate, accuracy, batch_of(scenario), conventions)
    try:
        return _kept(key, seed_of(scenario), scenario)
    except ScenarioError as error:
        panels.plain(str(error))
        return None, None


# cache_resource: what is kept is never changed.
@st.cache_resource(max_entries=64, show_spinner=False)
def _kept(key, seed, _scenario):
    view = pull_view(_scenario, rate=key[1], accuracy=key[2])
    return view, simulated(_scenario, view, seed)
