"""Objective: how do tokens become one loss? Contributions, weights, aggregation, gradient."""

import streamlit as st

from grpo_core.breakdown import aggregations, contributions, gradient_split
from pages._ui import charts, controls, editors, ledger, page, panels
from pages._ui.aggregation_views import aggregation_frame, first_weight_bars
from pages._ui.foot import foot
from pages._ui.objective_charts import waterfall
from pages._ui.quantities import GRADIENT_PARTS

with page.frame("Objective") as shown:
    panels.group_head(shown, "objective")
    table, picture = st.columns(2, gap="large")
    with table:
        panels.heading("Mask", "Which tokens count: a row a completion, a column a token.")
        editors.array_editor("mask", shown.prompt)
        panels.conventions(("aggregation",), "objective")
        controls.single_option("kl", "beta", "objective")
    with picture:
        panels.heading("Objective J", "Each bar starts where the one above ends; loss = −J.")
        figure = waterfall(shown.evaluation, shown.prompt, **shown.looks)
        panels.chart(figure, "waterfall", cells=True)
        panels.plain(ledger.objective_line(contributions(shown.evaluation), shown.evaluation))
    panels.summary(shown)

    panels.heading("Token by token", "Contribution = weight × (surrogate − KL penalty).")
    for column, quantity in zip(
        st.columns(2, gap="large"), ("contribution", "weight"), strict=True
    ):
        with column:
            figure = charts.token_heatmap(
                shown.evaluation, quantity, prompts=shown.prompt, **shown.looks
            )
            panels.chart(figure, f"objective_{quantity}", cells=True)

    panels.heading("The gradient", "What a change of each token's log-probability does to J.")
    picture, said = st.columns([7, 5], gap="large")
    with picture:
        part = controls.view_switch("Part", GRADIENT_PARTS, "objective_part")
        figure = charts.token_heatmap(
            shown.evaluation, part, prompts=shown.prompt, written=True, **shown.looks
        )
        panels.chart(figure, "objective_gradient", cells=True)
    with said:
        panels.plain(ledger.gradient_line(gradient_split(shown.evaluation)))

    panels.heading("The same tokens under every aggregation", "Only the weights differ.")
    compared = aggregations(shown.evaluation)
    numbers, picture = st.columns([7, 5], gap="large")
    with numbers:
        st.dataframe(aggregation_frame(compared), height="content")
        controls.choice_buttons("aggregation", compared, "objective")
    with picture:
        figure = first_weight_bars(
            compared, shown.prompt, palette=shown.palette, selected=shown.selected
        )
        panels.chart(figure, "first_weights", cells=True)

    foot(shown)
