"""Process rewards: which step earned the credit, and what more steps are worth."""

import streamlit as st

from grpo_core.process_views import against_outcome, judged_by_steps
from pages._ui import charts, page, panels, process_panels
from pages._ui.foot import foot
from pages._ui.process_tables import rules_frame
from pages._ui.process_words import (
    credit_line,
    gaming_line,
    left_out_line,
    pooling_line,
    rules_list,
    steps_line,
)
from pages._ui.step_chart import step_strip

with page.frame("Process_rewards") as opened:
    shown = opened.under(judged_by_steps)
    compared = against_outcome(shown.evaluation)
    panels.group_head(shown, "process")
    table, picture = st.columns([5, 8], gap="large")
    with table:
        panels.heading("Steps", "A row a step; its end is the position of its last token.")
        process_panels.steps_editor(shown)
        process_panels.judge_button(shown)
        process_panels.paste_box()
    with picture:
        panels.chart(step_strip(shown.evaluation, shown.prompt, **shown.looks), "steps", cells=True)
        panels.plain(steps_line(shown.scenario, shown.prompt))
        figure = charts.token_heatmap(
            shown.evaluation,
            "token_advantages",
            prompts=shown.prompt,
            palette=shown.palette,
            former=shown.former,
            selected=shown.selected,
            **process_panels.below(shown, compared),
        )
        panels.chart(figure, "process_advantages", cells=True)
    panels.summary(shown)

    panels.heading(
        "Who gets the credit",
        "A token gets the sum of the normalised rewards of the steps that end at or after it.",
    )
    said, apart = st.columns([6, 7], gap="large")
    with said:
        panels.plain(credit_line(compared))
        process_panels.conventions(shown)
    with apart:
        figure = charts.token_heatmap(
            compared.difference,
            "difference",
            prompts=shown.prompt,
            palette=shown.palette,
            selected=shown.selected,
        )
        panels.chart(figure, "process_difference", cells=True)

    panels.heading(
        "How it is gamed",
        "The sum pays for every step that is better than the mean, so more of them pay. "
        "Below: what the steps give to each completion's first token, and to all of its tokens "
        "together. " + left_out_line(shown.scenario),
    )
    panels.plain(gaming_line(shown.evaluation, shown.prompt))
    process_panels.credit(shown)
    process_panels.tricks(shown)

    panels.heading(
        "Other rules on the same steps",
        "Sum of the advantages of each completion's tokens, a column a completion. "
        + pooling_line(shown.scenario),
    )
    st.dataframe(rules_frame(shown.evaluation, shown.prompt), height="content")
    st.caption(rules_list())

    foot(shown)
