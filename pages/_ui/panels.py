"""Blocks that pages are made of, drawn with Streamlit from what the frame shows."""

import html

import streamlit as st

from grpo_core import STAGES, ScenarioError
from grpo_core.presets import ADVANTAGE_FORMULAS

from . import charts, controls, editors, state, tables
from .menu import MENU
from .numbers import change, change_of_share, number
from .settled import loss_of, mean_kl_of
from .token_text import visible
from .trainer_names import named


def chart(figure, key, *, cells=False, on_select=None):
    """Draw a figure. With ``cells``, a click on one selects its token on every page.

    ``on_select`` is a callback for clicks that mean something else.
    """
    st.plotly_chart(
        figure,
        key=key,
        theme=None,
        config=charts.CONFIG,
        on_select=on_select or controls.clicked(key, cells),
        selection_mode="points",
        alt=figure.layout.meta["alt"],
    )


def heading(text, note=""):
    """A section's title with a line on how to read it. Both are ours, never a reader's text."""
    st.subheader(text, anchor=False)
    if note:
        st.caption(note)


def way_to(page, label, key):
    """A quiet button that leads to another page and takes the example along as it is now."""
    icon = MENU[page].icon
    if st.button(label, key=key, type="tertiary", icon=icon, on_click=state.touch):
        state.write_link()
        st.switch_page(MENU[page].file, query_params=state.link_parameters())


def plain(text, css_class="plain"):
    """Text that may come from a file or a link: shown as it is, never read as markup."""
    st.html(f'<div class="{css_class}">{html.escape(text)}</div>')


# What the summary row shows: label, number, and how a change of it is written.
_SUMMARY = (
    ("loss", loss_of, change),
    ("mean KL", mean_kl_of, change),
    ("clipped tokens", lambda e: e.metrics["clip"], change_of_share),
    ("tied groups", lambda e: e.metrics["tied_groups"], change_of_share),
    ("gradient norm", lambda e: e.metrics["gradient_norm"], change),
)


def summary(shown):
    """Loss, KL, clipping and gradient as one quiet row, with what they were before."""
    cells = "".join(_summary_cell(*row, shown) for row in _SUMMARY)
    st.html(f'<div class="figures">{cells}</div>')


def _summary_cell(label, read, write, shown):
    now = read(shown.evaluation)
    lines = []
    if shown.former is not None and read(shown.former) != now:
        lines.append(write(read(shown.former), now))
    if shown.pinned is not None:
        pinned = read(shown.pinned)
        lines.append(f"A: {write(pinned, pinned)}")
    below = html.escape(" · ".join(lines)) or "&nbsp;"
    return (
        f'<div class="figure"><span class="label">{html.escape(label)}</span>'
        f'<span class="value">{html.escape(write(now, now))}</span>'
        f'<span class="below">{below}</span></div>'
    )


def group_head(shown, where):
    """Which group is shown: its prompt, and a picker where there are several."""
    controls.prompt_picker(where)
    text = shown.scenario.texts.prompt(shown.prompt)
    if text:
        plain(f"Completions of the prompt “{visible(text, 120)}”", "caption")


def rewards_of_group(shown):
    """The shown group's rewards to edit, its completions' texts beside them."""
    texts = tables.rewards_frame(shown.scenario, shown.prompt).drop(columns="rewards")
    editors.array_editor("rewards", shown.prompt, beside=texts, labels={"rewards": "reward"})


def group_line(shown):
    """Mean and spread of the shown group, and the formula that uses them."""
    mean, std = shown.evaluation.mean[shown.prompt], shown.evaluation.std[shown.prompt]
    variant = shown.scenario.conventions.variant("advantage")
    st.markdown(
        f":small[mean **{number(mean)}** · standard deviation **{number(std)}** · "
        f"${variant.formula}$]"
    )


def group_table(shown):
    """Mean, standard deviation and ties of every group, for reading."""
    frame = tables.group_table(shown.evaluation)
    numbers = {"mean": frame["mean"].map(number), "std": frame["std"].map(number)}
    st.dataframe(frame.assign(**numbers), height="content" if len(frame) <= 8 else 320)


def formulas(shown, where):
    """One group's rewards under the formulas of TRL, verl and NumPy's default, side by side."""
    heading(
        "The same rewards in TRL, verl and NumPy",
        "Trainers divide by the sample standard deviation, NumPy's default is the population "
        "one. In exact arithmetic, for the group above or for a line that you paste.",
    )
    key = f"{where}_line"
    text = st.text_input(
        "Rewards, such as 1, 0, 0, 1", key=key, placeholder="1, 0, 0, 1", on_change=state.touch
    )
    rewards = _pasted_line(text, key) or _group_rewards(shown)
    compared = tables.compare_formulas(rewards, ADVANTAGE_FORMULAS)
    frame = tables.comparison_frame(rewards, compared)
    st.dataframe(frame.map(lambda value: number(value, 5)), height="content")
    if text.strip() and key not in state.store().errors:
        st.button(
            "Use this line in the example",
            key=f"{where}_use_line",
            on_click=lambda: controls.use_rewards(text, key),
        )
    figure = charts.formula_bars(
        compared, palette=shown.palette, title="advantage (standard deviations)"
    )
    chart(figure, f"{where}_formula_bars")


def _group_rewards(shown):
    return tables.array_to_frame(shown.scenario, "rewards", shown.prompt)["rewards"].tolist()


def _pasted_line(text, key):
    """Rewards of the pasted line, or None; the last one that could be read stays on the screen."""
    here = state.store()
    if not text.strip():
        here.errors.pop(key, None)
        here.pasted_line = None
        return None
    try:
        rewards = tables.parse_rewards(text).tolist()
    except ScenarioError as error:
        here.errors[key] = str(error)
    else:
        here.errors.pop(key, None)
        here.pasted_line = rewards
    controls.show_error(key)
    return here.pasted_line


def conventions(stages, where):
    """The choices of some stages, each with what trainers call it."""
    for stage in stages:
        controls.stage_controls(stage, where)
        if len(STAGES[stage].variants) > 1:
            row = state.store().scenario.conventions.variant(stage)
            st.caption(f"{row.choose_when} {named(row, stage, row.key)}")
