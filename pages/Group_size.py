"""Group size: what a group's mean is worth as a baseline, and how large a group to draw."""

import streamlit as st

from pages._ui import (
    controls,
    page,
    panels,
    size_batch,
    size_charts,
    size_curves,
    size_noise,
    size_panels,
    size_words,
)
from pages._ui.foot import foot
from pages._ui.size_tables import batches_frame, kinds_frame, noise_frame

with page.frame("Group_size") as shown:
    table, picture = st.columns([5, 8], gap="large")
    with table:
        size_panels.numbers(shown)
        panels.heading(
            "A small policy",
            "A row a kind of prompt, a column an answer: the logit of each. The answers' logits "
            "are the parameters, shared by all kinds.",
        )
        size_panels.answer_tables()
    with picture:
        view, former = size_panels.shown_view(shown), size_panels.view_of(shown.former)
        panels.heading(
            "True value, group mean, one constant",
            "Nobody knows a prompt's true value; the mean of its group is a guess at it.",
        )
        figure = size_charts.value_chart(view, palette=shown.palette, former=former)
        panels.chart(figure, "size_values")
        panels.plain(size_words.value_line(view))
        st.dataframe(kinds_frame(view, former), height="content")

    panels.heading(
        "Noise of the gradient under each baseline",
        "Bar: closed form. Point: simulated groups, two standard errors. Hatched: nobody knows it "
        "while training. Several parameters: their variances added up.",
    )
    baselines, batches = size_panels.trials(view)
    bars, said = st.columns([7, 6], gap="large")
    if view.noise is None:
        with said:
            panels.plain(view.refusal)
    else:
        with bars:
            kind = size_panels.noise_controls(view)
            measure = controls.view_switch("Measure", size_noise.MEASURES, "size_measure")
            figure = size_noise.noise_bars(
                view, baselines, measure=measure, palette=shown.palette, kind=kind, former=former
            )
            panels.chart(figure, "size_noise")
        with said:
            panels.plain(size_words.price_line(view, kind))
            panels.plain(size_words.factor_line(view))
            panels.plain(size_words.pair_line(view))
            panels.plain(size_words.best_line(view))
            panels.plain(size_words.std_line(view))
        st.dataframe(noise_frame(view, baselines, kind), height="content")

    left, right = st.columns(2, gap="large")
    with left:
        panels.heading("Chance of a signal", "A group whose rewards are all equal teaches nothing.")
        figure = size_curves.signal_curves(view, palette=shown.palette, former=former)
        panels.chart(figure, "size_signal")
        panels.plain(size_words.signal_line(view))
    with right:
        panels.heading(
            "A fixed budget: larger groups or more prompts?",
            "Leave-one-out advantages, closed form and simulated batches.",
        )
        figure = size_curves.budget_chart(view, batches, palette=shown.palette, former=former)
        panels.chart(figure, "size_budget")
        panels.plain(size_words.budget_line(view))
    st.dataframe(batches_frame(view, batches), height="content")

    panels.heading(
        "What to do about it",
        "The batch on the screen, its groups and their scores, and other ways to spend samples.",
    )
    panels.group_head(shown, "group_size")
    scores, options = st.columns([5, 8], gap="large")
    with scores:
        figure = size_batch.group_means(
            shown.evaluation, palette=shown.palette, former=shown.former, prompt=shown.prompt
        )
        panels.chart(figure, "size_batch")
    with options:
        panels.plain(size_batch.batch_line(shown.evaluation))
        panels.plain(size_batch.prompt_line(shown.evaluation, shown.prompt))
        for line in size_words.price_lines(view):
            panels.plain(line)
        size_panels.option_buttons(shown)
    st.dataframe(size_batch.splits_frame(shown.evaluation), height="content")
    panels.summary(shown)

    foot(shown)
