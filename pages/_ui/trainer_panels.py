"""Conventions as the settings of a trainer, to copy; and pasted settings as conventions."""

import html

import streamlit as st

from grpo_core import ScenarioError
from grpo_core.trainers import applied, to_openrlhf, to_trl, to_verl

from . import controls, panels, state
from .trainer_text import MAX_CHARACTERS, read_settings
from .trainer_words import cannot_lines, reading_line, reading_lines, verdict_line

_TRAINERS = {
    "TRL": (to_trl, "python"),
    "verl": (to_verl, "bash"),
    "OpenRLHF": (to_openrlhf, "bash"),
}
_PLACEHOLDER = "GRPOConfig(epsilon_high=0.28, beta=0.04)"


def settings_block(shown):
    """The present conventions in each trainer's words, and a field to paste such words into."""
    panels.heading(
        "The same in your trainer",
        "Lines to copy: what differs from the trainer's defaults, and what it cannot do.",
    )
    lines, paste = st.columns(2, gap="large")
    with lines:
        _settings(shown, f"{shown.where}_trainer")
    with paste:
        _paste(f"{shown.where}_setting")


def _settings(shown, key):
    """A tab for each trainer; that which is open is written."""
    tabs = st.tabs(list(_TRAINERS), key=key, on_change=state.touch)
    for tab, (write, language) in zip(tabs, _TRAINERS.values(), strict=True):
        if tab.open:
            with tab:
                _setting(write(shown.scenario.conventions, shown.scenario), language)


def _setting(setting, language):
    panels.plain(verdict_line(setting))
    st.code(setting.text, language=language, wrap_lines=True)
    matters, quiet = cannot_lines(setting)
    _listed("What it cannot do", matters)
    _listed("What makes no difference in this batch", quiet)
    _listed("To know", setting.notes)


def _listed(title, lines):
    """Lines of which parts came from a reader, as one list: shown as they are, never obeyed."""
    if lines:
        panels.plain(title, "caption")
        items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
        st.html(f'<ul class="lines">{items}</ul>')


def _paste(key):
    """A field for settings, what was read in it, and a button that takes it."""
    text = st.text_area(
        "Paste the settings of a run",
        key=key,
        height=140,
        placeholder=_PLACEHOLDER,
        on_change=state.touch,
        # No `max_chars`: a longer text would vanish without a word; it is taken, and answered.
        help="A GRPOConfig call, a YAML snippet, override lines or flags of TRL, verl or OpenRLHF, "
        f"at most {MAX_CHARACTERS:,} characters. It is read and never run.",
    )
    pasted = _read(text, key)
    controls.show_error(key)
    if pasted is None:
        return
    panels.plain(reading_line(pasted))
    if pasted.reading.taken:
        st.button(
            "Take these conventions",
            key=f"{key}_take",
            icon=":material/input:",
            on_click=state.guarded(lambda: _take(pasted), f"{key}_take"),
            help="Every stage gets the trainer's default, save what the text says. Rewards, "
            "log-probabilities and masks stay.",
        )
        controls.show_error(f"{key}_take")
    for title, lines in reading_lines(pasted):
        _listed(title, lines)


def _read(text, key):
    """What the text says, or None; why it cannot be read stands at the field."""
    errors = state.store().errors
    if not text.strip():
        errors.pop(key, None)
        return None
    try:
        pasted = read_settings(text)
    except ScenarioError as error:
        errors[key] = str(error)
        return None
    errors.pop(key, None)
    return pasted


def _take(pasted):
    scenario, notes = applied(state.store().scenario, pasted.reading)
    state.load(scenario)
    state.store().note = " ".join(notes)
