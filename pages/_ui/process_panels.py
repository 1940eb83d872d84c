"""Blocks of the process page that the reader works with: steps to edit, steps to game."""

import streamlit as st

from grpo_core import ScenarioError
from grpo_core.gaming import standing, try_edits
from grpo_core.process_views import judged_by_steps, token_steps

from . import editors, panels, state
from .controls import show_error
from .limits import check_sizes
from .literal import literal
from .process_tables import credit_frame, trials_frame
from .process_words import chosen_line, trick_line
from .step_tables import frame_to_steps, paste_steps, steps_to_frame


def steps_editor(shown):
    """The table of steps: completion, end, reward; rows can be added and removed."""
    prompt = shown.prompt

    def read(scenario, frame):
        stepped = judged_by_steps(scenario)
        changed = frame_to_steps(stepped, frame, prompt)
        return scenario if changed is stepped else changed

    def source():
        return editors.Source(
            name=f"steps_{prompt}",
            label="Steps",
            values=steps_to_frame(shown.scenario, prompt),
            read=read,
            dynamic=True,
        )

    editors.editor(editors.table_key("steps", prompt), source, labels=_LABELS)


_LABELS = {"completion": "completion", "end": "end", "reward": "reward"}


def paste_box():
    """Two lists per completion, ends and rewards, in the place of the shown prompt's steps."""
    box = st.expander("Paste steps as lists", key="steps_paste", on_change=state.touch)
    if not box.open:
        return
    with box:
        keys = ("steps_paste_ends", "steps_paste_rewards")
        for key, label, example in zip(
            keys, ("Step ends", "Step rewards"), ("[[2, 5], [], [7]]", "[[1, 0], [], [1]]"),
            strict=True,
        ):  # fmt: skip
            st.text_area(
                f"{label}: a list for each completion", key=key, placeholder=example, height=90,
                on_change=state.touch,
            )  # fmt: skip

        def apply():
            texts = [st.session_state[key] for key in keys]
            pasted = paste_steps(state.store().scenario, *texts, state.store().view.prompt)
            state.load(judged_by_steps(pasted))

        take = state.guarded(apply, keys[0])
        st.button("Use these steps", key="steps_paste_apply", on_click=take)
        show_error(keys[0])


def judge_button(shown):
    """Where the example is judged otherwise: a button that judges it by its steps."""
    here = state.store().scenario
    with st.container(key="judge"):
        if shown.scenario is here:
            return
        made = "step_ends" not in here
        if made:
            said = (
                "This example has no steps of its own. These are made up: each completion in "
                "up to three parts, all worth 1, save the last, which is worth the "
                "completion's reward. Edit one, or keep them."
            )
        else:
            label = here.conventions.variant("advantage").label
            said = f"This example is judged by “{label}”. The page shows what its steps give."
        st.caption(said)
        st.button(
            "Keep these steps" if made else "Judge it by its steps",
            key="judge_by_steps",
            on_click=lambda: state.load(judged_by_steps(state.store().scenario)),
        )


def conventions(shown):
    """The options of process supervision, once the example is judged by its steps."""
    with st.container(key="process_options"):
        if shown.scenario is state.store().scenario:
            panels.conventions(("advantage",), "process")


def below(shown, compared):
    """What the heatmap of advantages is drawn over: A where one is pinned, else the outcome."""
    if shown.pinned is not None:
        return {"pinned": shown.pinned}
    return {
        "pinned": compared.outcome,
        "names": ("by the steps", "by the outcome reward alone"),
    }


def credit(shown):
    """What the steps give to each completion, with what it was before the last edit."""
    frame = credit_frame(shown.evaluation, shown.former, shown.prompt)
    with st.container(key="process_credit"):
        st.dataframe(frame, height="content" if len(frame) <= 16 else 595)


def tricks(shown):
    """Every trick on the selected token's step: what it would bring, and a button that does it."""
    p, g, t = shown.selected
    s = int(token_steps(shown.scenario)[p, g, t])
    where, before = (p, g, s), standing(shown.scenario, (p, g))
    trials = try_edits(shown.scenario, where)
    panels.plain(trick_line(trials, before, where))
    panels.plain(chosen_line(shown.scenario, shown.selected, s), "caption")
    st.dataframe(trials_frame(trials, before), height="content")
    with st.container(horizontal=True, key="row_tricks"):
        for trial in trials:
            st.button(
                trial.edit.label,
                key=f"trick_{trial.edit.key}",
                disabled=trial.scenario is None,
                help=literal(" ".join((trial.edit.does, trial.refusal or trial.edit.pays))),
                on_click=_trick(trial.edit.key),
            )
    show_error("tricks")


def _trick(key):
    def change():
        here = state.store()
        scenario = judged_by_steps(here.scenario)
        p, g, t = here.view.selected
        where = (p, g, int(token_steps(scenario)[p, g, t]))
        trial = next(trial for trial in try_edits(scenario, where) if trial.edit.key == key)
        if trial.scenario is None:
            raise ScenarioError(trial.refusal)
        check_sizes({**trial.scenario.sizes, **trial.scenario.own_sizes})
        state.load(trial.scenario)

    return state.guarded(change, "tricks")
