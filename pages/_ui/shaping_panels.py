"""Blocks of the shaping page that the reader works with: terms, weights, small worlds."""

import streamlit as st

from grpo_core import STAGES, ScenarioError
from grpo_core.shaping_parts import COMBINE
from grpo_core.shaping_views import with_shaping
from grpo_core.shaping_world_views import ARM_RATES, potential_of, world_size
from grpo_core.term_edits import change_term

from . import controls, editors, panels, state
from .following import answering, follow
from .shaping_world_words import size_line
from .term_controls import term_rows
from .term_tables import TASK, frame_to_terms, term_labels, terms_to_frame, terms_to_read
from .trainer_names import named

_WHERE = "shaping"


def terms_editor(shown):
    """The shown prompt's task rewards and term values to edit, what is computed beside."""
    prompt = shown.prompt

    def source():
        return editors.Source(
            name=f"terms_{prompt}",
            label="Task rewards and terms",
            values=terms_to_frame(shown.scenario, prompt),
            read=lambda scenario, frame: frame_to_terms(with_shaping(scenario), frame, prompt),
        )

    beside = terms_to_read(shown.evaluation, prompt)
    editors.editor(
        editors.table_key("terms", prompt), source, beside=beside if len(beside.columns) else None,
        after=True,  # what is edited stays in sight on a phone
        labels={TASK: "task", **term_labels(shown.scenario)},
    )  # fmt: skip


def made_up(shown):
    """What the page shows beyond the example, and a button that keeps it."""
    here = state.store().scenario
    with st.container(key="made_up"):
        if shown.scenario is here:
            return
        if not here.terms:
            said = (
                "This example has no terms. The bonus for every second answer is made up. Edit "
                "it, or keep it."
            )
        else:
            choices = (here.conventions.variant(stage).label for stage in ("rewards", "advantage"))
            said = f"This example is set to “{'” and “'.join(choices)}”. The page shows its terms."
        st.caption(said)
        st.button(
            "Keep this bonus" if not here.terms else "Judge it with its terms",
            key="keep_terms",
            on_click=lambda: state.load(with_shaping(state.store().scenario)),
        )


def terms(shown):
    """The rows of terms, and how they are combined with the task."""
    term_rows(shown.scenario, _WHERE)
    _combination(shown)
    if shown.scenario is not state.store().scenario:
        return
    with st.expander("Options of combining, standard deviation and eps", key="shaping_options",
                     on_change=state.touch) as box:  # fmt: skip
        if box.open:
            for stage in ("rewards", "advantage"):
                _options(stage)


def _options(stage):
    options = state.store().scenario.conventions.variant(stage).options
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"row_{_WHERE}_{stage}"):
        for option in options:
            controls.option_input(stage, option, _WHERE)


def _combination(shown):
    """Before or after normalising: the rows of the rewards stage that take terms."""
    rows, key = STAGES["rewards"].variants, f"{_WHERE}_combine"
    chosen = shown.scenario.conventions["rewards"].variant
    follow(key, chosen)

    def change():
        scenario = with_shaping(state.store().scenario)
        state.edit(scenario.choose("rewards", st.session_state[key]))

    st.selectbox(
        "Before or after normalising", list(COMBINE), key=key,
        format_func=lambda variant: rows[variant].label.removeprefix("with terms: "),
        on_change=answering(key, state.guarded(change, key)),
    )  # fmt: skip
    row = rows[chosen]
    st.caption(f"{row.choose_when} {named(row, 'rewards', chosen)}")
    controls.show_error(key)


def term_picker(shown):
    """Which term's weight is varied; nothing to pick where there is one. Gives its index."""
    names = [term.name for term in shown.scenario.terms]
    with st.container(key="term_picker"):
        if len(names) == 1:
            return 0
        return controls.view_switch(
            "Vary the weight of", dict(enumerate(names)), f"{_WHERE}_varied_{len(names)}"
        )


def computed(compute, *inputs, **options):
    """What a function of the core gives, or None with its refusal said in its place."""
    try:
        return compute(*inputs, **options)
    except ScenarioError as error:
        panels.plain(f"This cannot be drawn: {error}.")
        return None


def use_weight(weight, term, key):
    """A button that gives a term this weight; off where there is none to give."""

    def change():
        scenario = with_shaping(state.store().scenario)
        state.edit(change_term(scenario, term, weight=weight))

    able = weight is not None and 0 < abs(weight) < 1e6
    st.button(
        "Use this weight", key=key, disabled=not able, on_click=state.guarded(change, key),
        help="Gives the term this weight.",
    )  # fmt: skip
    controls.show_error(key)


def bandit_inputs(shown):
    """How often either answer is right, and how many answers make a group."""
    rates = shown.scenario["arm_rates"].tolist() if "arm_rates" in shown.scenario else ARM_RATES
    with st.container(horizontal=True, vertical_alignment="bottom", key="row_arm_rates"):
        _numbers("arm_rates", rates, ("A is right", "B is right"), low=0.0, high=1.0)
        size = controls.scalar_input("group_size", _WHERE, world_size(shown.scenario))
    controls.show_error("arm_rates")
    panels.plain(size_line(size, world_size(shown.scenario)), "caption")


def potential_inputs(shown):
    """Potential of the start, the middle and the end."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="row_potential"):
        labels = ("Φ(start)", "Φ(middle)", "Φ(end)")
        _numbers("potential", potential_of(shown.scenario), labels, low=-1e6, high=1e6)
    controls.show_error("potential")


def _numbers(name, values, labels, *, low, high):
    """A number input for each cell of a small array of the example."""
    for index, (value, label) in enumerate(zip(values, labels, strict=True)):
        key = f"{_WHERE}_{name}_{index}"
        follow(key, float(value))

        def change(index=index, key=key):
            edited = [*values[:index], st.session_state[key], *values[index + 1 :]]
            state.edit(state.store().scenario.replace(**{name: edited}))

        st.number_input(
            label, low, high, step=0.05, format="%g", key=key,
            on_change=answering(key, state.guarded(change, name)),
        )  # fmt: skip
