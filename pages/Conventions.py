"""Conventions: one batch under many settings, what makes them differ, and what people asked."""

import streamlit as st

from pages._ui import conventions_panels as blocks
from pages._ui import page, panels, trainer_panels
from pages._ui.conventions_charts import setting_map
from pages._ui.conventions_tables import settings_frame
from pages._ui.conventions_words import (
    advantages_line,
    beside_line,
    farthest_line,
    switched_line,
)
from pages._ui.foot import foot

with page.frame("Conventions") as shown:
    blocks.opened_question(shown)
    panels.group_head(shown, "conventions")
    table, picture = st.columns([5, 7], gap="large")
    with table:
        blocks.rewards(shown)
    base = blocks.chosen()["base"]
    rows = blocks.rows(shown.scenario)
    former = None if shown.former is None else blocks.rows(shown.former.scenario)
    with picture:
        figure = setting_map(rows, former, "advantages", shown.prompt, palette=shown.palette)
        panels.chart(figure, "conventions_advantages")
        panels.plain(advantages_line(rows, shown.prompt))
        panels.plain(beside_line(rows, shown.scenario, shown.prompt), "caption")
    panels.summary(shown)

    panels.heading(
        "Side by side",
        "The same rewards and log-probabilities, each time under the defaults of another trainer "
        "or paper. The largest difference is that of the gradient of any token to the base's.",
    )
    blocks.pickers()
    st.dataframe(settings_frame(rows, base), height="content")
    farthest = blocks.farthest_row(shown.scenario, rows)
    panels.plain(farthest_line(farthest, rows, shown.scenario, base))
    panels.plain(switched_line(blocks.small_enough(shown.scenario)), "caption")

    panels.heading(
        "One setting against the base",
        "In the picture: the gradient of each token, less that under the base. Below it: what a "
        "token of each completion weighs, under all settings side by side.",
    )
    said, picture = st.columns([5, 8], gap="large")
    one = blocks.one_of(shown.scenario, rows)
    with said:
        blocks.one_picker(one)
        blocks.one_setting(shown, one)
    with picture:
        blocks.gap_picture(shown, one)
        figure = setting_map(rows, former, "weights", shown.prompt, palette=shown.palette)
        panels.chart(figure, "conventions_weights")

    panels.heading(
        "What your dashboard would show",
        "This batch as one optimisation step in the log of a trainer, under the trainer's names.",
    )
    blocks.dashboard(shown, rows)

    trainer_panels.settings_block(shown)

    panels.heading(
        "What people asked",
        "Public questions on trainers. Each is a batch small enough to check by hand; its answer "
        "is computed.",
    )
    blocks.questions(shown)

    foot(shown)
