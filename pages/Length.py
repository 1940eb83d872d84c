"""Length: what a token of a long answer counts, and which way that pulls the length."""

import streamlit as st

from grpo_core.breakdown import aggregations
from grpo_core.recipes import under_recipes
from pages._ui import (
    controls,
    length_charts,
    length_corners,
    length_panels,
    length_words,
    page,
    panels,
)
from pages._ui.foot import foot
from pages._ui.length_pull_chart import pull_chart
from pages._ui.length_tables import options_frame, recipes_frame, with_some_lengths

with page.frame("Length") as opened:
    shown = opened.under(with_some_lengths)
    panels.group_head(shown, "length")
    table, picture = st.columns([6, 7], gap="large")
    with table:
        panels.heading("Rewards and lengths", "A row a completion. A longer one widens the batch.")
        length_panels.lengths_editor(shown)
        length_panels.lengths_button(shown)
        panels.conventions(("aggregation",), "length")
    with picture:
        panels.heading(
            "Weight of one token",
            "Curves: if the selected completion had another length. Triangles: the completions, "
            "filled under the chosen rule.",
        )
        figure = length_charts.weight_chart(
            shown.evaluation,
            shown.prompt,
            palette=shown.palette,
            former=shown.former,
            selected=shown.selected,
        )
        panels.chart(figure, "length_weights", cells=True)
        panels.plain(length_words.weight_line(shown.evaluation, shown.prompt))
    panels.summary(shown)

    panels.heading(
        "With and without std, with and without 1/length",
        "Shares of the whole update of this batch: what is left when the learning rate makes up "
        "for the size of the step.",
    )
    panels.plain(length_words.judged_line(shown.scenario))
    results = under_recipes(shown.scenario)
    corners, said = st.columns([8, 5], gap="large")
    with corners:
        measure = controls.view_switch("Share of", length_corners.MEASURES, "length_measure")
        figure = length_corners.corner_chart(
            results,
            shown.prompt,
            measure=measure,
            palette=shown.palette,
            former=None if shown.former is None else under_recipes(shown.former.scenario),
        )
        panels.chart(figure, "length_corners", cells=True)
    with said:
        panels.plain(length_words.corner_line(results, shown.prompt))
        panels.plain(length_words.batch_pull_line(results))
    st.dataframe(recipes_frame(results, shown.prompt), height="content")

    panels.heading(
        "The pull on length",
        "A small policy decides after each token whether to stop. It has a hunch of being wrong, "
        "and stop logits for each hunch. Closed form, and simulated batches with two standard "
        "errors.",
    )
    stops, picture = st.columns([4, 9], gap="large")
    with stops:
        length_panels.stops_editor()
    with picture:
        view, trials = length_panels.pulls(shown)
        if view is not None:
            panels.chart(pull_chart(view, trials, palette=shown.palette), "length_pull")
            panels.plain(length_words.hunch_line(view))
            panels.plain(length_words.world_line(view))
            st.dataframe(length_words.pull_frame(view, trials), height="content")

    panels.heading("What to do about it", "This batch under every rule that a trainer offers.")
    rows = aggregations(shown.evaluation)
    st.dataframe(options_frame(shown.evaluation, rows), height="content")
    for line in length_words.price_lines(shown.evaluation, rows):
        panels.plain(line)
    controls.choice_buttons("aggregation", rows, "length")

    foot(shown)
