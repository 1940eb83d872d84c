"""Blocks of the group size page: tables of answers, sizes, and simulations kept for a while."""

import hashlib

import streamlit as st

from grpo_core import ScenarioError
from grpo_core.arrays import OWN_AXES
from grpo_core.estimators import seed_of

from . import controls, editors, panels, state
from .controls import show_error
from .following import answering, follow
from .literal import literal
from .size_kinds import (
    budget_of,
    group_size_of,
    resized,
    sampled_baselines,
    sampled_sizes,
    size_view,
    small_policy,
    std_of,
    with_answers,
)

_WHERE = "group_size"


def view_of(evaluation):
    """What the page shows of a scenario; None where there is none, or its policy is refused."""
    if evaluation is None:
        return None
    try:
        return _view(evaluation.scenario)
    except ScenarioError:
        return None


def shown_view(shown):
    """The present view; where its numbers are refused the reason, and the first example's."""
    try:
        return _view(shown.scenario)
    except ScenarioError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return _view(state.default_scenario())


def _view(scenario):
    policy = small_policy(scenario)
    sizes = group_size_of(scenario), budget_of(scenario), seed_of(scenario)
    return _kept_view(_digest(policy), *sizes, std_of(scenario), policy)


def _digest(policy):
    cells = policy.probabilities.tobytes() + policy.rewards.tobytes()
    return hashlib.blake2b(cells, digest_size=16).hexdigest(), policy.rewards.shape


# cache_resource: what is kept is never changed, and holds functions, which are not pickled.
@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_view(digest, G, budget, seed, std, _policy):
    return size_view(_policy, G, budget, seed, **std)


def trials(view):
    """Simulated baselines and batches of a view: (dict or None, dict)."""
    std = view.options.ddof, view.options.eps
    return _kept_trials(_digest(view.policy), view.G, view.budget, view.seed, std, view)


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_trials(digest, G, budget, seed, std, _view):
    return sampled_baselines(_view), sampled_sizes(_view)


def numbers(shown):
    """Group size and budget."""
    with st.container(horizontal=True, key=f"row_{_WHERE}_numbers"):
        controls.scalar_input("group_size", _WHERE, group_size_of(shown.scenario), "Group size G")
        controls.scalar_input("budget", _WHERE, budget_of(shown.scenario), "Budget (samples)")


def answer_tables():
    """Both tables of answers, and how many kinds and answers they have."""
    editors.array_editor("answer_logits", of=with_answers)
    panels.heading("Reward of each answer", "Several right and several wrong ones are lifelike.")
    editors.array_editor("answer_rewards", of=with_answers)
    _sizes()


def _sizes():
    kinds, answers = with_answers(state.store().scenario)["answer_logits"].shape
    keys = [f"{_WHERE}_size_{axis}" for axis in "QA"]
    for key, now in zip(keys, (kinds, answers), strict=True):
        follow(key, now)

    def change():
        wanted = [int(st.session_state[key]) for key in keys]
        state.load(resized(state.store().scenario, *wanted))

    with st.container(horizontal=True, key=f"row_{_WHERE}_sizes_of_tables"):
        for key, label, axis in zip(keys, ("Kinds of prompts", "Answers"), "QA", strict=True):
            st.number_input(
                label, OWN_AXES[axis].low, OWN_AXES[axis].high, step=1, key=key,
                on_change=answering(key, state.guarded(change, f"{_WHERE}_tables")),
            )  # fmt: skip
    show_error(f"{_WHERE}_tables")


def noise_controls(view):
    """Seed, and whose noise is shown: of all kinds together (None), or of one."""
    with st.container(horizontal=True, key=f"row_{_WHERE}_noise"):
        kind = _kind_picker(view)
        controls.scalar_input("seed", _WHERE, view.seed, "Seed")
    return kind


def _kind_picker(view):
    options = [None, *range(len(view.policy.value))]
    key = f"{_WHERE}_kind"
    if st.session_state.get(key) not in options:
        st.session_state[key] = None
    return st.selectbox(
        "Noise of",
        options,
        key=key,
        format_func=lambda kind: "all kinds together" if kind is None else f"kind {kind}",
        on_change=state.touch,
    )


def option_buttons(shown):
    """Group size of the small policy: half of it, twice of it."""
    G = group_size_of(shown.scenario)

    def change(size):
        state.edit(state.store().scenario.replace(group_size=float(size)))

    with st.container(horizontal=True, key=f"row_{_WHERE}_options"):
        for label, size in ((f"Try G = {G // 2}", G // 2), (f"Try G = {2 * G}", 2 * G)):
            place = f"{_WHERE}_{'less' if size < G else 'more'}"
            st.button(
                label,
                key=place,
                disabled=size < 2,
                on_click=state.guarded(lambda size=size: change(size), f"{_WHERE}_options"),
            )
    show_error(f"{_WHERE}_options")
