"""One step's groups, and one group: its rewards, its texts token by token, and its way out."""

import html
from dataclasses import replace

import streamlit as st

from grpo_core import ScenarioError

from . import panels, run_group_charts, run_tokens, run_words, state
from . import run_state as runs
from .literal import literal
from .menu import MENU
from .run_text import colour_scale, coloured_text, plain_text
from .token_text import readable
from .view import View

_ROWS = 8  # of the table of groups before it scrolls


def groups(run, found, step):
    """The groups of a step to choose from, as a table."""
    at = [int(q) for q in found.run.at(step)]
    if run.group not in at:
        run.group = run_words.first_group(found, step)
    frame = run_words.formatted(run_words.groups_of_step(found, step))
    frame.insert(1, "prompt", [readable(prompt, 60) for prompt in runs.prompts_of(run, step)])
    key = f"run_groups_{run.key}_{step}_{run.jumps}"

    def change():
        state.touch()
        rows = st.session_state[key]["selection"]["rows"]
        if rows:
            run.group = at[rows[0]]

    st.dataframe(
        frame,
        key=key,
        hide_index=True,
        on_select=change,
        selection_mode="single-row-required",
        selection_default={"selection": {"rows": [at.index(run.group)]}},
        height="content" if len(at) <= _ROWS else 318,
    )


def group(run, found, palette):
    """The chosen group: rewards and advantages as bars, then every completion with its text."""
    q = run.group
    texts = run.opened.texts(q)
    prompt = next((prompt for prompt, _ in texts if prompt), "")
    number = found.run.at(int(found.run.steps[q])).tolist().index(q)
    panels.heading(f"Group {number} of step {int(found.run.steps[q]):,}")
    panels.plain(f"Prompt: {readable(prompt, 400)}")
    panels.plain(run_words.group_words(found, q), "caption")
    left, right = st.columns([5, 7], gap="large")
    with left:
        figure = run_group_charts.group_chart(found, q, palette)
        panels.chart(figure, "run_group")
        _open(run, found, q)
    with right:
        _completions(run, found, q, texts, palette)


def _completions(run, found, q, texts, palette):
    steps = run_tokens.uses(run.opened, q)
    view, quantity = None, "advantage"
    if steps:
        view, quantity = _token_choice(run, found, q, steps)
    else:
        _without_tokens(run, found)
    blocks = [_scale_line(found, q, view, quantity, palette)]
    blocks += [
        _completion(found, q, g, texts[g][1], view, quantity, palette)
        for g in run_words.order_of(found, q)
    ]
    st.html(f'<div class="completions">{"".join(blocks)}</div>')


def _without_tokens(run, found):
    """That there is nothing per token here, and where there is."""
    st.caption(
        "No per-token arrays of this group were recorded, so each completion has one colour: its "
        "advantage. Ratio, KL, contribution and gradient need log-probabilities; the lines that "
        "record them stand in the last tab."
    )
    near = run_tokens.nearest_with_tokens(found, run.opened, run.step)
    if near is not None:
        st.button(
            f"Show step {near}, which has them", key="run_near_tokens", type="tertiary",
            icon=":material/arrow_forward:",
            on_click=runs.show_step, args=(near,),
        )  # fmt: skip


def _completion(found, q, g, text, view, quantity, palette):
    """One completion: what it was judged to be worth, its text, what its rewards were."""
    head = f"Completion {g} · {run_words.advantages_line(found, q, g)}"
    return (
        f'<div class="completion"><div class="head">{html.escape(head)}</div>'
        f"{_text(found, q, g, text, view, quantity, palette)}"
        f'<div class="caption">{html.escape(run_words.completion_line(found, q, g))}</div></div>'
    )


def _token_choice(run, found, q, steps):
    """Which quantity and which use of the batch; gives the evaluated tokens."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        quantity = _quantity()
        use = steps[-1]
        if len(steps) > 1:
            use = st.segmented_control(
                "Used at step", steps, default=steps[0], required=True,
                key=f"run_use_{run.key}_{q}", on_change=state.touch,
            )  # fmt: skip
    conventions, source = runs.conventions(run)
    view = run_tokens.token_view(found, run.opened, q, conventions, use)
    row = run_tokens.QUANTITIES[quantity]
    part = "" if view.whole else " Weights are those of this group alone."
    panels.plain(f"Colour: {row.label}, {row.note}. Under {source}.{part}", "caption")
    return view, quantity


def _quantity():
    """What tokens are coloured by; it outlives a visit to another page."""
    key, here = "run_quantity", runs.runs()
    st.session_state[key] = here.quantity

    def change():
        state.touch()
        here.quantity = st.session_state[key] or here.quantity

    return st.segmented_control(
        "Colour by",
        list(run_tokens.QUANTITIES),
        required=True,
        format_func=lambda each: run_tokens.QUANTITIES[each].label,
        key=key,
        on_change=change,
    )


def _scale_line(found, q, view, quantity, palette):
    """What the colours of all completions mean; nothing where none has a colour."""
    if view is not None:
        row = run_tokens.QUANTITIES[quantity]
        return colour_scale(row.label, run_tokens.largest_of(view, quantity), palette)
    largest = run_words.largest_advantage(found, q)
    return colour_scale("advantage", largest, palette) if largest else ""


def _text(found, q, g, text, view, quantity, palette):
    """A completion's text, coloured as far as numbers for it exist."""
    if view is not None:
        values = run_tokens.values_of_completion(view, quantity, g)
        pieces = view.pieces[g] if g < len(view.pieces) else ()
        if not any(pieces):
            pieces = tuple(f"[{t}]" for t in range(len(values)))
        return coloured_text(pieces, values, palette, largest=run_tokens.largest_of(view, quantity))
    value = run_words.advantage_of(found, q, g)
    if value is None:
        return plain_text(text, 4000)
    return coloured_text((text,), (value,), palette, largest=run_words.largest_advantage(found, q))


def _open(run, found, q):
    """Buttons that open this group, or its whole step, as the example of all other pages."""
    _, source = runs.conventions(run)
    step = [int(each) for each in found.run.at(int(found.run.steps[q]))]
    with st.container(horizontal=True):
        one = st.button(
            "Open this group everywhere", type="primary", icon=":material/open_in_new:",
            key="run_open_group", on_click=_load, args=(run, found, [q]),
        )  # fmt: skip
        every = len(step) > 1 and st.button(
            "Open the whole step", key="run_open_step", on_click=_load, args=(run, found, step)
        )
    by_step = found.fit.rule is not None and found.fit.rule.by_step
    alone = (
        " This run judges a step as a whole: by itself the group gets other advantages than in "
        "the run. The whole step gets the same."
        if by_step and len(step) > 1
        else ""
    )
    st.caption(
        "As the example of every page, under the convention found here; what advantages do not "
        f"tell is taken from {literal(source)}.{alone}"
    )
    if runs.runs().error:
        return
    if one or every:
        state.write_link()
        target = MENU["Advantages"]
        st.switch_page(target.file, query_params=state.link_parameters())


def _load(run, found, groups):
    here = runs.runs()
    here.error = ""
    conventions, _ = runs.conventions(run)
    try:
        scenario = run_tokens.scenario_of(found, run.opened, groups, conventions)
    except ScenarioError as error:
        here.error = f"The group was not opened: {error}"
        return
    state.load(scenario, replace(state.store().view, selected=View().selected))
