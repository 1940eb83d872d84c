"""Blocks of the conventions page: what is compared with what, one setting, public questions."""

from dataclasses import replace

import streamlit as st

from grpo_core import same_scenario
from grpo_core.comparison import OWN, compare, label_of, setting
from grpo_core.presets import PRESETS

from . import conventions_rows, panels, state
from .conventions_rows import FIRST, FIRST_BASE, MOST, SETTINGS, SWITCHED, tokens_of
from .conventions_words import cause_line, differs_line, source_line
from .following import answering, follow
from .literal import literal
from .questions import TOPICS, of_topic

_CHOSEN, _ROWS = "conventions_chosen", "conventions_rows"
_REMEMBERED = 3  # scenarios whose rows are kept: the present, the former, the one before
_WIDGETS = {
    "keys": "conventions_keys",
    "base": "conventions_base",
    "one": "conventions_one",
    "topic": "conventions_topic",
}


def chosen():
    """What this visitor compares: keys, base, the one looked at, the topic of questions."""
    first = {"keys": list(FIRST), "base": FIRST_BASE, "one": "nemo-rl-grpo", "topic": TOPICS[0]}
    return st.session_state.setdefault(_CHOSEN, first)


def _follow(name):
    """A widget's key, which is given what is chosen."""
    key = _WIDGETS[name]
    follow(key, chosen()[name])
    return key


def _taken(name):
    """The callback that takes a widget's value."""
    key = _WIDGETS[name]

    def change():
        st.session_state[_CHOSEN] = {**chosen(), name: st.session_state[key]}

    return answering(key, change)


def pickers():
    """Which settings stand side by side, and which of them is the base."""
    many, one = st.columns([8, 4], gap="large")
    many.multiselect(
        f"Side by side (at most {MOST})",
        SETTINGS,
        format_func=label_of,
        max_selections=MOST,
        key=_follow("keys"),
        on_change=_taken("keys"),
    )
    one.selectbox(
        "Compared with",
        SETTINGS,
        format_func=label_of,
        key=_follow("base"),
        on_change=_taken("base"),
    )


def rows(scenario):
    """Rows of the chosen settings on a scenario; each is computed once while it is on the page.

    On a large batch the choices are not switched one by one for all, see `one_row`.
    """
    base = chosen()["base"]
    keys = chosen()["keys"] or [base]
    return _computed(scenario, keys, base, small_enough(scenario))


def small_enough(scenario):
    """Whether the choices of every setting are switched one by one."""
    return tokens_of(scenario) <= SWITCHED


def _computed(scenario, keys, base, causes):
    kept = st.session_state.setdefault(_ROWS, [])
    entry = next((e for e in kept if e[0] is scenario and e[1:3] == (base, causes)), None)
    if entry is None:
        entry = (scenario, base, causes, {})
        kept.append(entry)
        del kept[:-_REMEMBERED]
    missing = [key for key in keys if key not in entry[3]]
    entry[3].update(conventions_rows.rows(scenario, missing, base, causes=causes))
    return {key: entry[3][key] for key in keys}


def one_row(scenario, key=None):
    """The row of one setting, its cause looked for on a batch of any size."""
    key = key or chosen()["one"]
    return _computed(scenario, [key], chosen()["base"], True)[key]


def farthest_row(scenario, found):
    """The row with the largest difference to the base, None where none differs."""
    row = max(found.values(), key=lambda row: row.largest)
    return one_row(scenario, row.key) if row.where else None


def one_picker():
    """Which setting is held against the base, token by token."""
    st.selectbox(
        "Setting", SETTINGS, format_func=label_of, key=_follow("one"), on_change=_taken("one")
    )


def one_setting(shown):
    """What it differs in, where its defaults come from, and a button that takes it."""
    base, row = chosen()["base"], one_row(shown.scenario)
    panels.plain(cause_line(row, shown.scenario, base))
    panels.plain(differs_line(row, shown.scenario, base))
    panels.plain(source_line(row.key), "caption")
    taken = row.key == OWN or setting(shown.scenario, row.key) == shown.scenario.conventions
    st.button(
        "Take this setting into the example",
        key="conventions_take",
        disabled=taken,
        help="The example is then computed like this on every page. Back undoes it.",
        on_click=_take(row.key),
    )


def _take(key):
    def change():
        scenario = state.store().scenario
        state.load(scenario.with_conventions(PRESETS[key].conventions))

    return state.guarded(change, "conventions_take")


def gap_of(shown):
    """The comparison of the setting looked at with the base, with the gradient of each token."""
    key, base = chosen()["one"], chosen()["base"]
    return compare(shown.scenario, [key], base, causes=False)[key]


def questions(shown):
    """Public questions on one topic: what was asked, the answer, and a button that opens it."""
    st.segmented_control(
        "Topic", TOPICS, required=True, key=_follow("topic"), on_change=_taken("topic")
    )
    rows = of_topic(chosen()["topic"])
    for start in range(0, len(rows), 2):
        for column, row in zip(st.columns(2), rows[start : start + 2], strict=False):
            with column.container(key=f"question_{row.key}", gap="xsmall", border=True):
                _question(row, same_scenario(shown.scenario, row.scenario))


def _question(row, opened):
    st.markdown(f"**{literal(row.asks)}**")
    panels.plain(f"{row.framework} · {row.thread}", "caption")
    panels.plain(row.answer.text)
    st.button(
        "Open above" if opened else "Open as an example",
        key=f"open_{row.key}",
        disabled=opened,
        on_click=_open(row),
    )


def _open(row):
    def change():
        state.load(row.scenario, replace(state.store().view, selected=(0, 0, 0)))
        state.store().note = f"{row.asks} {row.answer.text}"

    return change
