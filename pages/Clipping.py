"""Clipping: which tokens still get a gradient? The surrogate against the ratio, token by token."""

import streamlit as st

from pages._ui import charts, clipping_panels, page, panels
from pages._ui.foot import foot

with page.frame("Clipping") as shown:
    clipping_panels.control_row("clipping")
    drawn = clipping_panels.prompt_row(shown, "clipping")
    for column, sign in zip(st.columns(2, gap="medium"), (1, -1), strict=True):
        with column:
            figure = charts.surrogate_chart(shown.evaluation, sign, prompts=drawn, **shown.looks)
            panels.chart(figure, f"surrogate_{sign}", cells=True)
    clipping_panels.drift_line("clipping")
    clipping_panels.logp_tables(shown, "clipping")
    panels.summary(shown)

    bars, heatmaps = st.columns([5, 7], gap="large")
    with bars:
        panels.heading(
            "What becomes of the tokens",
            "Clipped tokens are not the lost gradient: a token pulls with its ratio. Shares of "
            "the gradient are those without clipping.",
        )
        figure = charts.case_bars(shown.evaluation, prompts=drawn, **shown.looks)
        panels.chart(figure, "cases", cells=True)
    with heatmaps:
        panels.heading("Token by token", "Completions down, tokens across. Click a cell.")
        for quantity in ("log_ratio", "gradient"):
            figure = charts.token_heatmap(
                shown.evaluation, quantity, prompts=shown.prompt, **shown.looks
            )
            panels.chart(figure, quantity, cells=True)

    foot(shown)
