"""Widgets that follow the store: they are given its value, and their own changes call back.

What the reader does within a third of a second of a change is sent with the values that the
widgets had before it. A widget that was just given another value then seems to have been set
back by hand, and its callback would undo the change. Such an echo is told by two things: it
brings exactly the value that was replaced, and it comes at once.
"""

from time import monotonic

import streamlit as st

from . import state

ECHO_SECONDS = 1.5


def follow(key, value):
    """Give a widget the store's value, unless it has it: setting it anew redraws the widget."""
    if key in st.session_state:
        shown = st.session_state[key]
        if shown == value:
            return
        state.store().overridden[key] = (shown, monotonic())
    st.session_state[key] = value


def answering(key, change):
    """The callback of a following widget: runs ``change`` unless it is an echo."""

    def callback():
        state.touch()
        if key not in st.session_state:  # the page was left in the same moment
            return
        replaced, when = state.store().overridden.get(key, (None, -ECHO_SECONDS))
        echo = st.session_state[key] == replaced and monotonic() - when < ECHO_SECONDS
        if not echo:
            state.store().overridden.pop(key, None)
            change()

    return callback
