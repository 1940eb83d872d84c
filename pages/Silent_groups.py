"""Silent groups: how often all rewards are equal, what that costs, and what can be done."""

import streamlit as st

from grpo_core.silent import leftover, tied_groups
from pages._ui import controls, editors, page, panels, silent_charts, silent_remedies, silent_words
from pages._ui.difficulty_bars import prompt_bars
from pages._ui.difficulty_panels import kinds_editor, size_and_seed
from pages._ui.difficulty_tables import mean_notes
from pages._ui.foot import foot
from pages._ui.rate_tables import batch_rewards
from pages._ui.silent_panels import bonus_controls, tie_button
from pages._ui.silent_worlds import BUDGET, drawing, silent

with page.frame("Silent_groups") as shown:
    left = leftover(shown.evaluation)
    table, picture = st.columns([5, 8], gap="large")
    with table:
        panels.heading("Rewards", "A row a prompt, a column a completion.")
        editors.array_editor("rewards")
        tie_button(shown)
        panels.conventions(("kl",), "silent_groups")
    with picture:
        panels.plain(silent_words.tied_line(shown.evaluation, left))
        task_tied = tied_groups(batch_rewards(shown.scenario))
        panels.plain(silent_words.broken_line(shown.evaluation, task_tied))
        figure = prompt_bars(
            {"policy gradient": left.policy_pull, "KL": left.kl_pull},
            palette=shown.palette,
            title="norm of the gradient by log π new",
            notes=mean_notes(shown.scenario),
        )
        panels.chart(figure, "silent_pulls")
    panels.summary(shown)

    panels.heading(
        "How often",
        "All answers of a group right, or all wrong: with probability $p^G + (1 - p)^G$ at the "
        "success rate $p$ in groups of $G$.",
    )
    now = silent(shown.scenario)
    former = None if shown.former is None else silent(shown.former.scenario)
    table, picture = st.columns([5, 8], gap="large")
    with table:
        size_and_seed("silent_groups")
        kinds_editor("silent_groups")
    with picture:
        panels.plain(silent_words.expected_line(now))
        figure = silent_charts.rate_chart(now, palette=shown.palette, former=former)
        panels.chart(figure, "silent_rates")
        figure = silent_charts.size_chart(now, palette=shown.palette, former=former)
        panels.chart(figure, "silent_sizes")
        panels.plain(silent_words.observed_line(now))

    panels.heading(
        "Dynamic sampling",
        "Prompts are drawn, each with one group, until enough groups are mixed.",
    )
    drawn = drawing(shown.scenario)
    said, picture = st.columns([6, 7], gap="large")
    with said:
        controls.scalar_input("budget", "silent_groups", BUDGET, label="Answers to train on")
        panels.plain(silent_words.draws_line(drawn))
        st.dataframe(silent_words.draws_frame(drawn), height="content")
        panels.plain(silent_words.means_line(drawn))
    with picture:
        figure = silent_charts.kept_chart(now, drawn, palette=shown.palette)
        panels.chart(figure, "silent_kept")
        panels.plain(silent_words.selection_line(now, drawn))

    panels.heading(
        "What to do about it",
        "Each remedy on the task rewards above. Push: the sum of the sizes of a group's "
        "advantages, as the mean over the batch counts them.",
    )
    made = silent_remedies.remedies(shown.evaluation)
    panels.plain(silent_remedies.remedies_line(made))
    panels.plain(silent_remedies.scale_line(made))
    figure = silent_remedies.remedy_map(made, palette=shown.palette)
    panels.chart(figure, "silent_remedies")
    panels.plain(silent_remedies.shape_line(made))
    bonus_controls(shown, made)
    st.dataframe(silent_remedies.remedies_frame(made), height="content")
    for line in silent_remedies.remedy_lines(made):
        st.caption(line)

    foot(shown)
