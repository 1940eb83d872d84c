"""Blocks that pages are made of, drawn with Streamlit from what the frame shows."""

import html

import streamlit as st

from grpo_core import ARRAYS, STAGES, ScenarioError
from grpo_core.presets import ADVANTAGE_FORMULAS

from . import charts, controls, editors, export, state, tables
from .chain import as_text, chain
from .limits import SHOWN_CELLS
from .menu import MENU
from .numbers import change, change_of_share, count, number
from .token_text import visible

# Pixels at the size that KaTeX has by itself; the chain is set a fifth smaller.
_CHAIN_WIDTH = 470
_ICONS = {"note": "○", "warning": "▲", "error": "■"}


def chart(figure, key, *, cells=False):
    """Draw a figure. With ``cells``, a click on one selects its token on every page."""
    st.plotly_chart(
        figure,
        key=key,
        theme=None,
        config=charts.CONFIG,
        on_select=controls.clicked(key, cells),
        selection_mode="points",
        alt=figure.layout.meta["alt"],
    )


def heading(text, note=""):
    """A section's title with a line on how to read it. Both are ours, never a reader's text."""
    st.subheader(text, anchor=False)
    if note:
        st.caption(note)


def plain(text, css_class="plain"):
    """Text that may come from a file or a link: shown as it is, never read as markup."""
    st.html(f'<div class="{css_class}">{html.escape(text)}</div>')


# What the summary row shows: label, number, and how a change of it is written.
_SUMMARY = (
    ("loss", lambda e: e.loss, change),
    ("mean KL", lambda e: e.mean_kl, change),
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


def findings(page):
    """What the numbers say, most important first; each leads to its token and page."""
    heading("What the numbers say")
    found = state.findings()
    if not found:
        plain("Nothing unusual in these numbers.")
    for index, finding in enumerate(found):
        target = MENU.get(finding.page, MENU[page])
        elsewhere = target.key != page
        with st.container(key=f"finding_{index}", gap=None):
            icon = f'<span class="mark {finding.severity}">{_ICONS[finding.severity]}</span>'
            st.html(f'<div class="finding">{icon}<span>{html.escape(finding.text)}</span></div>')
            label = f"See it on {target.label}" if elsewhere else "Show the token"
            if not (finding.where or elsewhere):
                continue
            where = (*finding.where, *state.store().view.selected[len(finding.where) :])
            jumps = st.button(
                label, key=f"jump_{index}", type="tertiary", on_click=state.select, args=where
            )
            if jumps and elsewhere:
                state.write_link()
                st.switch_page(target.file, query_params=state.link_parameters())


def token_chain(shown, where):
    """The selected token's whole computation, written out with its numbers."""
    p, g, t = shown.selected
    heading("One token, step by step", "Click a cell in any picture, or choose it here.")
    controls.token_picker(where)
    text = shown.scenario.texts.token(p, g, t)
    if text:
        plain(f"Token {t} of completion {g} reads “{visible(text)}”.")
    steps = chain(shown.evaluation, shown.selected, width=_CHAIN_WIDTH)
    with st.container(key=f"{where}_chain"):
        st.markdown("\n".join(["| | |", "|---|---|", *(_step(step) for step in steps)]))
    box = st.expander("The same as text, to copy", key=f"{where}_chain_text", on_change=state.touch)
    if box.open:
        box.code(as_text(steps), language=None, wrap_lines=True)


def _step(step):
    """One step as rows of a Markdown table; all of its words are ours."""
    formula = f"| {step.label} | ${step.latex}$ |" if step.latex else f"| {step.label} | |"
    return f"{formula}\n| | :small[{step.note}] |" if step.note else formula


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
            st.caption(f"{row.choose_when} TRL: {row.trl}. verl: {row.verl}.")


def all_conventions(where):
    """Every stage's choice, in an expander that draws nothing while closed."""
    box = st.expander("Conventions", key=f"{where}_conventions", on_change=state.touch)
    if box.open:
        with box:
            conventions(STAGES, where)


def arrays(shown, page):
    """Tables of a page's further arrays, sizes, paste and reset, in a lazy expander."""
    keys, where = MENU[page].arrays[MENU[page].at_top :], page.lower()
    box = st.expander(
        "Tables: input arrays, sizes, paste and copy, reset",
        key=f"{where}_arrays",
        on_change=state.touch,
    )
    if not box.open:
        return
    with box:
        offered = [key for key in keys if key in shown.scenario]
        tabs = st.tabs(
            [ARRAYS[key].label for key in offered] + ["Sizes", "Paste and copy", "Reset"],
            key=f"{where}_tabs",
            on_change=state.touch,
        )
        for tab, key in zip(tabs, offered, strict=False):
            if tab.open:
                with tab:
                    controls.prompt_picker(f"{where}_{key}")
                    st.caption(f"`{key}`: {ARRAYS[key].help}")
                    editors.array_editor(key, shown.prompt)
        for tab, draw in zip(tabs[len(offered) :], (_sizes, _paste, _reset), strict=True):
            if tab.open:
                with tab:
                    draw(where, shown)


def _sizes(where, _shown):
    st.caption("What is added holds a default; what is cut off is gone (Back undoes it).")
    controls.size_inputs(where)


def _paste(where, shown):
    keys = controls.array_choices(shown.scenario)
    key = st.selectbox(
        "Array",
        keys,
        key=f"{where}_paste_key",
        format_func=lambda key: ARRAYS[key].label,
        on_change=state.touch,
    )
    box = f"{where}_paste_text"
    st.text_area(
        "A nested list, JSON, NumPy code, or cells copied from a spreadsheet",
        key=box,
        placeholder="[[1, 0, 0, 1]]",
        height=140,
        on_change=state.touch,
    )

    def apply():
        controls.paste(key, st.session_state[box], box)

    with st.container(horizontal=True):
        st.button("Use these numbers", key=f"{where}_paste_apply", on_click=apply)
        for target, label in (("logp_old", "Old := new policy"), ("logp_ref", "Reference := new")):
            st.button(
                label,
                key=f"{where}_copy_{target}",
                on_click=controls.copy_array,
                args=("logp_new", (target,)),
            )
    controls.show_error(box)
    st.caption("The array as it is, to copy:")
    cells = shown.scenario[key].size if key in shown.scenario else 0
    name = f"{key}.py"
    _code(cells, lambda: tables.array_as_code(shown.scenario, key), name, where, height=160)


def _code(cells, build, name, where, *, height):
    """Code to copy, or a file where there is so much that a browser would stall."""
    if cells <= SHOWN_CELLS:
        st.code(build(), language="python", height=height, wrap_lines=False)
        return
    st.caption(f"{count(cells, 'cell')} are too many to show as code here. Save them instead.")
    st.download_button(
        "Save the code", build, name, "text/x-python", key=f"{where}_{name}", on_click="ignore"
    )


def _reset(where, _shown):
    st.caption("Replaces everything by the first example. Back undoes it.")
    st.button(
        "Start over",
        key=f"{where}_reset",
        on_click=lambda: state.load(state.default_scenario()),
    )


def code_and_sources(shown, where):
    """The NumPy code that gives the page's numbers, and where the formulas come from."""
    box = st.expander("Code and sources", key=f"{where}_code", on_change=state.touch)
    if not box.open:
        return
    with box:
        code, sources = st.tabs(["NumPy code", "Formulas and sources"])
        with code:
            scenario = shown.scenario
            cells, name = scenario["mask"].size, "grpo_example.py"
            _code(cells, lambda: export.script(scenario), name, where, height=420)
        with sources:
            for stage in STAGES.values():
                row = shown.scenario.conventions.variant(stage.key)
                st.markdown(f"**{stage.label}: {row.label}**")
                st.latex(rf"\rule{{0pt}}{{2.2em}} {row.formula}")
                st.caption(f"{row.source}. TRL: {row.trl}. verl: {row.verl}.")
