"""Blocks of the conventions page: what is compared with what, one setting, public questions."""

from dataclasses import replace

import numpy as np
import streamlit as st

from grpo_core import same_scenario
from grpo_core.comparison import OWN, compare, label_of, setting

from . import charts, conventions_rows, panels, shaping_panels, state
from .conventions_rows import FIRST, FIRST_BASE, LOGS, MOST, SETTINGS, SWITCHED, tokens_of
from .conventions_tables import HOW, logged_columns, logged_frame, logged_line
from .conventions_words import cause_line, differs_line, gap_title, lost_line, source_line
from .following import answering, follow
from .literal import literal
from .questions import TOPICS, asked_with, of_topic

_PAGE = "Conventions"
_ROWS, _TOPIC, _TO_TOP = "conventions_rows", "conventions_topic_chosen", "conventions_to_top"
# An opened question stands at the head of the page, and the reader was at its end.
_SCROLL = "<script>document.querySelector('[data-testid=\"stMain\"]')?.scrollTo(0, 0)</script>"
_REMEMBERED = 3  # scenarios whose rows are kept: the present, the former, the one before
_WIDGETS = {
    "keys": "conventions_keys",
    "base": "conventions_base",
    "one": "conventions_one",
    "topic": "conventions_topic",
}


def chosen():
    """What this visitor compares, by name, where it was chosen and is known here.

    ``keys`` and ``base``; ``one``, the setting looked at, None for the farthest from the base;
    ``topic`` of the questions.
    """
    view = state.store().view.chosen(_PAGE)
    keys = view.get("keys", FIRST)
    base, one = view.get("base"), view.get("one")
    return {
        "keys": [key for key in keys if key in SETTINGS][:MOST],
        "base": base if base in SETTINGS else FIRST_BASE,
        "one": one if one in SETTINGS else None,
        "topic": _topic(),
    }


def _topic():
    """The topic looked at; until one is chosen that of the question which stands above."""
    opened = asked_with(state.store().scenario)
    own = TOPICS[0] if opened is None else opened.topic
    return st.session_state.get(_TOPIC, own)


def _choose(name, value):
    """Keep a choice; what the page shows by itself is none."""
    choices = {**state.store().view.chosen(_PAGE), name: value}
    if name == "keys" and choices.get("one") not in value:
        choices.pop("one", None)  # a setting that has left the comparison is not looked at
    plain = {"keys": FIRST, "base": FIRST_BASE, "one": None}
    state.choose(_PAGE, {key: each for key, each in choices.items() if each != plain[key]})


def _follow(name, value):
    """A widget's key, which is given what is chosen."""
    key = _WIDGETS[name]
    follow(key, value)
    return key


def _taken(name):
    """The callback that takes a widget's value."""
    key = _WIDGETS[name]

    def change():
        value = st.session_state[key]
        _choose(name, tuple(value) if isinstance(value, list) else value)

    return answering(key, change)


def rewards(shown):
    """The shown group's rewards to edit, and its terms where the batch has some."""
    if shown.scenario.terms:
        panels.heading("Rewards", "The task's score of each completion, and its terms.")
        shaping_panels.terms_editor(shown)
    else:
        panels.heading("Rewards", "One score per completion.")
        panels.rewards_of_group(shown)


def pickers():
    """Which settings stand side by side, and which of them is the base."""
    many, one = st.columns([8, 4], gap="large")
    many.multiselect(
        f"Side by side (at most {MOST})",
        SETTINGS,
        format_func=label_of,
        max_selections=MOST,
        key=_follow("keys", chosen()["keys"]),
        on_change=_taken("keys"),
    )
    one.selectbox(
        "Compared with",
        SETTINGS,
        format_func=label_of,
        key=_follow("base", chosen()["base"]),
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


def farthest_row(scenario, found):
    """The row with the largest difference to the base, None where none differs."""
    apart = [row for row in found.values() if row.where]
    if not apart:
        return None
    farthest = max(apart, key=lambda row: row.largest)
    return _computed(scenario, [farthest.key], chosen()["base"], True)[farthest.key]


def one_of(scenario, found):
    """The row of the setting looked at: the chosen one, or the farthest of those shown."""
    key = chosen()["one"]
    if key is None:
        row = farthest_row(scenario, found)
        return row or next(iter(found.values()))
    return _computed(scenario, [key], chosen()["base"], True)[key]


def one_picker(row):
    """Which setting is held against the base, token by token."""
    st.selectbox(
        "Setting",
        SETTINGS,
        format_func=label_of,
        key=_follow("one", row.key),
        on_change=_taken("one"),
        help="The farthest from the base, until you choose another one.",
    )


def one_setting(shown, row):
    """What it differs in, where its defaults come from, and a button that takes it."""
    base = chosen()["base"]
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
        state.load(scenario.with_conventions(setting(scenario, key)))

    return state.guarded(change, "conventions_take")


def gap_picture(shown, row):
    """The gradient of each token under a setting, less that under the base."""
    base = chosen()["base"]
    gap = compare(shown.scenario, [row.key], base, causes=False)[row.key]
    if np.all(np.isnan(gap.gap[shown.prompt])):
        panels.plain(f"No picture: {lost_line(row, base)}")
        return
    figure = charts.token_heatmap(
        replace(gap.evaluation, token_advantages=gap.gap),
        "difference",
        prompts=shown.prompt,
        palette=shown.palette,
        selected=shown.selected,
        titled=gap_title(row, base),
    )
    panels.chart(figure, "conventions_gap", cells=True)


def dashboard(shown, found):
    """What the logs of TRL and of verl hold for this batch, under their own names."""
    tabs = st.tabs(list(LOGS), key="conventions_logs", on_change=state.touch)
    for tab, trainer in zip(tabs, LOGS, strict=True):
        if tab.open:
            with tab:
                keys = logged_columns(trainer, found)
                base, causes = chosen()["base"], small_enough(shown.scenario)
                rows_of = _computed(shown.scenario, keys, base, causes)
                frame = logged_frame(trainer, rows_of)
                st.dataframe(
                    frame,
                    height="content",
                    column_config={HOW: st.column_config.TextColumn(width=420)},
                )
                panels.plain(logged_line(trainer, rows_of), "caption")


def opened_question(shown):
    """Question and answer, where the batch is that of a public question."""
    row = asked_with(shown.scenario)
    with st.container(key="opened_question"):
        if row is not None:
            st.info(literal(f"{row.asks} {row.answer.text}"), icon=":material/info:")
        if st.session_state.pop(_TO_TOP, False):
            st.html(_SCROLL, unsafe_allow_javascript=True)


def questions(shown):
    """Public questions on one topic: what was asked, the answer, and a button that opens it."""
    st.segmented_control(
        "Topic", TOPICS, required=True, key=_follow("topic", chosen()["topic"]),
        on_change=answering(_WIDGETS["topic"], _look_at_topic),
    )  # fmt: skip
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


def _look_at_topic():
    st.session_state[_TOPIC] = st.session_state[_WIDGETS["topic"]]


def _open(row):
    def change():
        state.load(row.scenario, replace(state.store().view, selected=(0, 0, 0)))
        st.session_state[_TO_TOP] = True

    return change
