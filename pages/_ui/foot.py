"""What every page ends with: one token's chain, the findings, all tables, conventions, code."""

import html

import streamlit as st

from grpo_core import ARRAYS, STAGES

from . import controls, editors, export, state, tables
from .chain import as_text, chain
from .limits import SHOWN_CELLS
from .menu import MENU
from .numbers import count
from .panels import conventions, heading, plain
from .text_lines import lines_of
from .token_text import visible
from .trainer_names import named

# Pixels at the size that KaTeX has by itself; the chain is set a fifth smaller.
_CHAIN_WIDTH = 470
_ICONS = {"note": "○", "warning": "▲", "error": "■"}


def foot(shown, beside=None):
    """Chain and findings side by side, then everything that can be opened.

    Parameters
    ----------
    shown : Shown
    beside : callable or None
        Draws a block of the page's own below the findings.
    """
    steps, said = st.columns([7, 5], gap="large")
    with steps:
        _token_chain(shown)
    with said:
        _findings(shown)
        if beside is not None:
            beside()
    _arrays(shown)
    _all_conventions(shown)
    _code_and_sources(shown)


def _findings(shown):
    """What the numbers say, most important first; each leads to its token and page."""
    heading("What the numbers say")
    found = state.findings(shown.evaluation)
    if not found:
        plain("Nothing unusual in these numbers.")
    for index, finding in enumerate(found):
        target = MENU.get(finding.page, MENU[shown.page])
        elsewhere = target.key != shown.page
        with st.container(key=f"finding_{index}", gap=None):
            icon = f'<span class="mark {finding.severity}">{_ICONS[finding.severity]}</span>'
            said = f"<b>{html.escape(finding.question)}</b> {html.escape(finding.text)}"
            st.html(f'<div class="finding">{icon}<span>{said}</span></div>')
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


def _token_chain(shown):
    """The selected token's whole computation, written out with its numbers."""
    p, g, t = shown.selected
    heading("One token, step by step", "Click a cell in any picture, or choose it here.")
    controls.token_picker(shown.where)
    text = shown.scenario.texts.token(p, g, t)
    if text:
        plain(f"Token {t} of completion {g} reads “{visible(text)}”.")
    steps = chain(shown.evaluation, shown.selected, width=_CHAIN_WIDTH)
    with st.container(key=f"{shown.where}_chain"):
        st.markdown("\n".join(["| | |", "|---|---|", *(_step(step) for step in steps)]))
    box = st.expander(
        "The same as text, to copy", key=f"{shown.where}_chain_text", on_change=state.touch
    )
    if box.open:
        box.code(as_text(steps), language=None, wrap_lines=True)


def _step(step):
    """One step as rows of a Markdown table; all of its words are ours."""
    formula = f"| {step.label} | ${step.latex}$ |" if step.latex else f"| {step.label} | |"
    return f"{formula}\n| | :small[{step.note}] |" if step.note else formula


def _all_conventions(shown):
    """Every stage's choice, in an expander that draws nothing while closed."""
    box = st.expander("Conventions", key=f"{shown.where}_conventions", on_change=state.touch)
    if box.open:
        with box:
            conventions(STAGES, f"{shown.where}_all")


def _arrays(shown):
    """Tables of a page's further arrays, sizes, paste and reset, in a lazy expander."""
    row, where = MENU[shown.page], shown.where
    keys = row.arrays[row.at_top :]
    box = st.expander(
        "Tables: input arrays, texts, sizes, paste and copy, reset",
        key=f"{where}_arrays",
        on_change=state.touch,
    )
    if not box.open:
        return
    with box:
        offered = [key for key in keys if key in shown.scenario]
        tabs = st.tabs(
            [ARRAYS[key].label for key in offered] + ["Texts", "Sizes", "Paste and copy", "Reset"],
            key=f"{where}_tabs",
            on_change=state.touch,
        )
        for tab, key in zip(tabs, offered, strict=False):
            if tab.open:
                with tab:
                    controls.prompt_picker(f"{where}_{key}")
                    st.caption(f"`{key}`: {ARRAYS[key].help}")
                    editors.array_editor(key, shown.prompt)
        for tab, draw in zip(tabs[len(offered) :], (_texts, _sizes, _paste, _reset), strict=True):
            if tab.open:
                with tab:
                    draw(where, shown)


def _texts(where, shown):
    controls.prompt_picker(f"{where}_texts")
    keys = [f"{where}_{part}_{state.store().version}_{shown.prompt}" for part in ("ask", "say")]
    held = (shown.scenario.texts.prompt(shown.prompt), lines_of(shown.scenario, shown.prompt))
    for key, value in zip(keys, held, strict=True):
        if key not in st.session_state:
            st.session_state[key] = value
    st.text_input("Prompt", key=keys[0], on_change=state.touch)
    st.text_area(
        "Completions: one a line, tokens separated by blanks (␣ is a blank inside a token)",
        key=keys[1],
        height=160,
        on_change=state.touch,
    )
    st.button(
        "Use these texts",
        key=f"{where}_texts_apply",
        on_click=controls.use_texts,
        args=(shown.prompt, *keys),
    )
    controls.show_error(keys[1])


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


def _code_and_sources(shown):
    """The NumPy code that gives the page's numbers, and where the formulas come from."""
    box = st.expander("Code and sources", key=f"{shown.where}_code", on_change=state.touch)
    if not box.open:
        return
    with box:
        code, sources = st.tabs(["NumPy code", "Formulas and sources"])
        with code:
            scenario = shown.scenario
            cells, name = scenario["mask"].size, "grpo_example.py"
            _code(cells, lambda: export.script(scenario), name, shown.where, height=420)
        with sources:
            for stage in STAGES.values():
                row = shown.scenario.conventions.variant(stage.key)
                st.markdown(f"**{stage.label}: {row.label}**")
                st.latex(rf"\rule{{0pt}}{{2.2em}} {row.formula}")
                st.caption(f"{row.source}. {named(row, stage.key, row.key)}")
