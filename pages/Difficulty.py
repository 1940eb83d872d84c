"""Difficulty: what dividing by a standard deviation does to easy and hard prompts."""

import streamlit as st

from pages._ui import difficulty_tables, difficulty_words, editors, page, panels
from pages._ui.difficulty_bars import prompt_bars
from pages._ui.difficulty_charts import advantage_chart, weight_chart
from pages._ui.difficulty_panels import kinds_editor, size_and_seed
from pages._ui.difficulty_worlds import scale_of, weighing
from pages._ui.foot import foot

with page.frame("Difficulty") as shown:
    now = weighing(shown.scenario)
    former, pinned = (
        None if state is None else weighing(state.scenario, sample=False)
        for state in (shown.former, shown.pinned)
    )
    table, picture = st.columns([5, 8], gap="large")
    with table:
        panels.heading("Kinds of prompts")
        size_and_seed("difficulty")
        kinds_editor("difficulty")
        panels.conventions(("advantage",), "difficulty")
    with picture:
        panels.plain(difficulty_words.weight_line(now))
        figure = weight_chart(now, palette=shown.palette, former=former, pinned=pinned)
        panels.chart(figure, "difficulty_weights")
        panels.plain(difficulty_words.story_line(now))
        panels.plain(difficulty_words.speed_line(now))
        panels.plain(difficulty_words.followed_line(shown.scenario, scale_of(shown.scenario)[1]))

    panels.heading(
        "What an answer can expect",
        "Mean advantage of an answer over all groups that can come up beside it, tied ones "
        "included. Their distance is the weight above.",
    )
    picture, said = st.columns([8, 5], gap="large")
    with picture:
        figure = advantage_chart(now, palette=shown.palette, former=former)
        panels.chart(figure, "difficulty_advantages")
    with said:
        panels.plain(difficulty_words.expected_line(now))
        panels.plain(difficulty_words.agreement_line(now))
    frame = difficulty_tables.comparison_frame(now)
    st.dataframe(frame, height="content" if len(frame) <= 12 else 420)

    panels.heading(
        "What to do about it",
        "The batch of this example, a row a prompt, a column a completion: its task rewards under "
        "every way of dividing, with the same eps.",
    )
    shares = difficulty_tables.batch_shares(shown.scenario)
    table, picture = st.columns([5, 8], gap="large")
    with table:
        editors.array_editor("rewards")
    with picture:
        panels.plain(difficulty_words.shares_line(shares))
        figure = prompt_bars(
            shares,
            palette=shown.palette,
            title="share of the push (%)",
            notes=difficulty_tables.mean_notes(shown.scenario),
        )
        panels.chart(figure, "difficulty_shares")
    st.dataframe(difficulty_tables.options_frame(shown.scenario), height="content")
    for line in difficulty_tables.option_lines():
        st.caption(line)
    panels.plain(difficulty_words.sizes_line(now))
    st.dataframe(difficulty_tables.sizes_frame(now), height="content")

    panels.summary(shown)
    foot(shown)
