"""Shaping: what a bonus does to advantages, how heavy it may be, how a hack shows."""

import streamlit as st

from grpo_core.shaping_views import (
    logged,
    ordered_inputs,
    shaping_inputs,
    tied_bonus,
    weight_curves,
    with_shaping,
)
from grpo_core.shaping_weights import safe_weight, share_weight
from grpo_core.shaping_world_views import bandit_view, potential_view
from pages._ui import page, panels, shaping_panels
from pages._ui.foot import foot
from pages._ui.shaping_bars import part_bars
from pages._ui.shaping_charts import weight_curves_chart
from pages._ui.shaping_panels import computed
from pages._ui.shaping_shares import share_bars
from pages._ui.shaping_tables import batch_frame, log_frame, prompt_weight_frame
from pages._ui.shaping_words import (
    driver_line,
    mixed_line,
    no_small_line,
    safe_line,
    share_line,
    tied_line,
)
from pages._ui.shaping_world_charts import bandit_chart, credit_chart
from pages._ui.shaping_world_words import bandit_line, log_line, potential_line, prompt_weight_line

with page.frame("Shaping") as opened:
    shown = opened.under(with_shaping)
    scenario, evaluation, prompt = shown.scenario, shown.evaluation, shown.prompt
    names, inputs = evaluation.attribution.names, shaping_inputs(evaluation)
    panels.group_head(shown, "shaping")
    table, picture = st.columns([6, 7], gap="large")
    with table:
        panels.heading("Task and terms", "A row a completion. Blank: the term does not apply.")
        shaping_panels.terms_editor(shown)
        shaping_panels.made_up(shown)
        shaping_panels.terms(shown)
    with picture:
        panels.heading("Advantages by part", "The line is the advantage, the sum of its parts.")
        panels.chart(part_bars(evaluation, prompt, **shown.looks), "parts", cells=True)
        varied = shaping_panels.term_picker(shown)
        term = scenario.terms[varied]
        curves = computed(weight_curves, evaluation, prompt, varied)
        if curves is not None:
            bonus = computed(tied_bonus, evaluation, prompt, varied)
            combine = scenario.conventions["rewards"].variant
            panels.plain(tied_line(bonus, term, combine, curves.takeover))
            panels.plain(mixed_line(evaluation, curves, prompt, varied))
            figure = weight_curves_chart(curves, evaluation, prompt, varied, palette=shown.palette)
            panels.chart(figure, "weight_curves")
    panels.summary(shown)

    panels.heading(
        "Which term drives the update",
        "A part's share of a group's spread: its covariance with the total, over the variance.",
    )
    log = computed(logged, evaluation)
    if log is not None:
        said, drawn = st.columns([5, 8], gap="large")
        with said:
            panels.plain(driver_line(log, names))
        with drawn:
            figure = share_bars(log, names, palette=shown.palette, selected=shown.selected)
            panels.chart(figure, "shares", cells=True)

    setting, logging = st.columns(2, gap="large")
    with setting:
        panels.heading("How to set the weight", "On this batch, the other terms held.")
        ordered = ordered_inputs(evaluation)
        safe = computed(safe_weight, *ordered.given, varied, **ordered.options)
        if safe is not None:
            panels.plain(safe_line(safe, term))
            shaping_panels.use_weight(safe.batch_largest, varied, "use_safe_weight")
        share = computed(share_weight, *inputs.given, varied, **inputs.options)
        if share is not None:
            panels.plain(share_line(share, term, safe))
            shaping_panels.use_weight(share.batch, varied, "use_share_weight")
            panels.plain(no_small_line(share, term))
    with logging:
        panels.heading("What to log", "Task and terms apart. Their sum alone hides a hack.")
        if log is not None:
            panels.plain(log_line(log, names))
            st.dataframe(log_frame(log, names), height="content")
            st.dataframe(batch_frame(log), height="content")

    panels.heading(
        "What it can do to the best policy",
        "Two answers: A and B are right at their own rates, and B always has the bonus. Exact, "
        "over all groups that can come up, from a policy that gives both equally often.",
    )
    said, drawn = st.columns([5, 8], gap="large")
    with said:
        shaping_panels.bandit_inputs(shown)
    options = {
        key: inputs.options[key] for key in ("scale", "ddof", "eps") if key in inputs.options
    }
    bandit = computed(bandit_view, scenario, term.weight, options)
    if bandit is not None:
        with said:
            panels.plain(bandit_line(bandit))
        with drawn:
            panels.chart(bandit_chart(bandit, palette=shown.palette), "bandit")

    panels.heading(
        "Potential-based shaping",
        "Token 0 ends the answer with reward 0.4, or goes on to 0.2 or 0.9. Each step gets Φ(next) "
        "less Φ(present) on top.",
    )
    said, drawn = st.columns([5, 8], gap="large")
    with said:
        shaping_panels.potential_inputs(shown)
    potential = computed(potential_view, scenario, options)
    if potential is not None:
        with said:
            panels.plain(potential_line(potential))
            panels.plain(prompt_weight_line(potential))
        with drawn:
            panels.chart(credit_chart(potential, palette=shown.palette), "credit")
            st.dataframe(prompt_weight_frame(potential), height="content")

    foot(shown)
