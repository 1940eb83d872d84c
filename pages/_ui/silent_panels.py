"""What the reader does to the batch on the page about silent groups."""

import streamlit as st

from grpo_core.silent import tied_groups

from . import controls, panels, state
from .rate_tables import batch_rewards, tie_group
from .silent_bonus import bonus_note, bonus_weight


def tie_button(shown):
    """A button that makes the shown group's rewards equal; off where they are."""
    prompt = shown.prompt
    tied = bool(tied_groups(batch_rewards(shown.scenario))[prompt])
    st.button(
        f"Make prompt {prompt}'s rewards equal",
        key="silent_tie",
        disabled=tied,
        on_click=lambda: state.load(tie_group(state.store().scenario, prompt)),
    )


def bonus_controls(shown, made):
    """The weight of the bonus, or where it is to be changed."""
    if made.bonus.own:
        panels.plain(bonus_note(made.bonus), "caption")
        return
    with st.columns([4, 9], gap="large")[0]:
        controls.scalar_input("bonus_weight", "silent_groups", bonus_weight(shown.scenario))
