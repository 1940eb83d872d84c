"""Advantages: who did better than their group? From rewards to one number for every token."""

import streamlit as st

from pages._ui import charts, editors, page, panels
from pages._ui.foot import foot

with page.frame("Advantages") as shown:
    table, picture = st.columns([5, 7], gap="large")
    with table:
        panels.heading("Rewards", "One row a prompt, one column a completion. Blank: not scored.")
        editors.array_editor("rewards")
        panels.conventions(("advantage", "rewards"), "advantages")
    with picture:
        figure = charts.token_heatmap(
            shown.evaluation, "token_advantages", written=True, **shown.looks
        )
        panels.chart(figure, "token_advantages", cells=True)
        panels.group_head(shown, "advantages")
        panels.chart(
            charts.advantage_bars(shown.evaluation, shown.prompt, **shown.looks), "bars", cells=True
        )

    panels.heading("One group", "Each completion against the mean and the spread of its group.")
    strip, written = st.columns([7, 5], gap="large")
    with strip:
        figure = charts.group_strip(shown.evaluation, shown.prompt, **shown.looks)
        panels.chart(figure, "strip", cells=True)
    with written:
        panels.group_line(shown)
        panels.group_table(shown)
    panels.summary(shown)

    foot(shown)
