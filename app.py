"""Overview: what does one reward change? The first look, and the whole step on one screen."""

import streamlit as st

from pages._ui import charts, page, panels, run_state
from pages._ui.foot import foot
from pages._ui.menu import MENU
from pages._ui.quantities import PIPELINE

if run_state.named_on_start():
    st.switch_page(MENU["Your_run"].file)

with page.frame("Overview") as shown:
    panels.group_head(shown, "overview")
    table, picture = st.columns([5, 7], gap="large")
    with table:
        panels.rewards_of_group(shown)
        panels.group_line(shown)
    with picture:
        panels.chart(
            charts.advantage_bars(shown.evaluation, shown.prompt, **shown.looks), "bars", cells=True
        )
    panels.summary(shown)
    panels.way_to(
        "Your_run", "What does your own reward really train? Open the logs of a run.", "to_your_run"
    )

    panels.heading(
        "The whole step, token by token",
        "The shown prompt, from advantage to gradient. × is clipped, padding is empty, dashed "
        "is changed by the last edit. Click a cell.",
    )
    with st.container(key="pipeline"):
        for column, quantity in zip(st.columns(len(PIPELINE)), PIPELINE, strict=True):
            with column:
                figure = charts.token_heatmap(
                    shown.evaluation,
                    quantity,
                    prompts=shown.prompt,
                    compact=True,
                    **shown.looks,
                )
                panels.chart(figure, f"pipeline_{quantity}", cells=True)

    foot(shown, lambda: panels.formulas(shown, "overview"))
