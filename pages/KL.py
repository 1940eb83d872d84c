"""KL: how far from the reference? Estimates, gradients, and what the penalty costs where."""

import streamlit as st

from grpo_core import estimators
from grpo_core.kl_curves import in_each_place, place_words
from pages._ui import (
    charts,
    controls,
    editors,
    estimator_charts,
    kl_charts,
    kl_tables,
    page,
    panels,
    state,
)
from pages._ui.foot import foot
from pages._ui.quantities import advantage_title

with page.frame("KL") as shown:
    panels.group_head(shown, "kl")
    table, picture = st.columns([5, 7], gap="large")
    with table:
        panels.heading("log π new", "The policy in training: a row a completion, a column a token.")
        editors.array_editor("logp_new", shown.prompt)
        panels.heading("log π ref", "The same tokens under the reference.")
        editors.array_editor("logp_ref", shown.prompt)
        panels.conventions(("kl",), "kl")
    with picture:
        tail = controls.switch(
            "Log scale for the tail",
            "kl_tail",
            kl_charts.needs_tail(shown.evaluation),
            "Draws y as sign(y) log10(1 + |y|): nearly straight near 0, powers of ten far out.",
        )
        figure = kl_charts.kl_curves(shown.evaluation, tail=tail, **shown.looks)
        panels.chart(figure, "kl_curves", cells=True)
        panels.plain(kl_tables.mean_line(shown.evaluation))

    panels.heading("Where the KL is, and where it pulls", "Click a cell to see its numbers.")
    for column, quantity in zip(st.columns(2, gap="large"), ("kl", "kl_gradient"), strict=True):
        with column:
            figure = charts.token_heatmap(
                shown.evaluation, quantity, prompts=shown.prompt, **shown.looks
            )
            panels.chart(figure, f"kl_map_{quantity}", cells=True)

    places, sampled = st.tabs(
        ["In the objective or in the reward", "Estimates against the exact KL"],
        key="kl_parts",
        on_change=state.touch,
    )
    words = place_words(shown.scenario)
    if places.open and not words:
        with places:
            panels.plain("This estimator's penalty enters in one place only.")
    elif places.open:
        with places:
            both = in_each_place(shown.evaluation)
            panels.heading("The same penalty in two places", kl_tables.place_line(both))
            bars, numbers = st.columns([5, 7], gap="large")
            with bars:
                figure = charts.formula_bars(
                    {words[place]: row.advantages[shown.prompt] for place, row in both.items()},
                    palette=shown.palette,
                    title=advantage_title(shown.evaluation),
                )
                panels.chart(figure, "kl_place_bars")
            with numbers:
                st.dataframe(kl_tables.place_frame(both, words), height="content")
                st.dataframe(kl_tables.penalty_frame(both, shown.prompt), height="content")
            figure = charts.token_heatmap(
                both["objective"],
                "gradient",
                prompts=shown.prompt,
                pinned=both["reward"],
                names=(words["objective"], words["reward"]),
                palette=shown.palette,
                selected=shown.selected,
            )
            panels.chart(figure, "kl_place_gradient", cells=True)
    if sampled.open:
        with sampled:
            comparison = estimators.compare(shown.scenario)
            samples = estimators.sample(comparison, estimators.seed_of(shown.scenario))
            table, picture = st.columns([5, 7], gap="large")
            with table:
                panels.heading("Two distributions", "Tokens are sampled from the policy.")
                controls.pair_picker(estimators.PAIRS, "kl")
                policy, reference = st.columns(2)
                with policy:
                    editors.array_editor("dist_new", labels={"dist_new": "policy"})
                with reference:
                    editors.array_editor("dist_ref", labels={"dist_ref": "reference"})
                controls.sampling_inputs("kl")
                for line in kl_tables.exact_lines(comparison):
                    panels.plain(line)
            with picture:
                panels.heading(
                    "The mean of n samples",
                    "Line: one run. Band: the middle 90% of 200 runs. Rule: the exact KL; dashed: "
                    "what the estimate tends to instead.",
                )
                figure = estimator_charts.sample_means(comparison, samples, palette=shown.palette)
                panels.chart(figure, "kl_sample_means")
                st.dataframe(kl_tables.estimator_frame(comparison, samples), height="content")
            panels.heading(
                "As a loss: whose gradient?",
                "Bars: expected gradient by each logit of the policy, the sampling held fixed. "
                "Marks: the gradients of the two KLs.",
            )
            figure = estimator_charts.expected_gradients(comparison, palette=shown.palette)
            panels.chart(figure, "kl_expected_gradients")
            panels.plain(kl_tables.gradient_line(comparison))

    panels.summary(shown)
    foot(shown)
