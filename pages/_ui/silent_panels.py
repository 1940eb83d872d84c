"""What the reader does to the batch on the page about silent groups."""

import streamlit as st

from grpo_core.silent import tied_groups

from . import state
from .rate_tables import batch_rewards, tie_group


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
