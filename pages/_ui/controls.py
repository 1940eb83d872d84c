"""Widgets that show the store and call back into it; none keeps a state of its own.

Before a widget is drawn its value is set from the store, so it follows links, undo and
clicks; when the reader changes it, the callback runs before anything is drawn.
"""

import streamlit as st

from grpo_core import ARRAYS, STAGES, resize
from grpo_core.arrays import LARGEST_SEED, OWN_AXES
from grpo_core.estimators import resize_distributions, seed_of, with_distributions
from grpo_core.variants import Number

from . import state, tables
from .following import answering, follow
from .limits import check_sizes
from .literal import literal
from .paste_notes import paste_notes, without_stale_texts
from .text_lines import with_lines
from .token_text import visible
from .trainer_names import named

_STEPS = {"P": "Prompts", "G": "Completions", "L": "Tokens"}
# Larger tables than this cannot be edited by hand; files and links may hold more.
_LARGEST = {"P": 64, "G": 64, "L": 512}


def show_error(place):
    """Draw the message of a place, if there is one."""
    message = state.store().errors.get(place)
    if message:
        st.error(literal(message), icon=":material/error:")


def variant_picker(stage, where):
    """Selectbox for the variant of a stage."""
    row, key = STAGES[stage], f"{where}_{stage}"
    follow(key, state.store().scenario.conventions[stage].variant)

    def change():
        state.edit(state.store().scenario.choose(stage, st.session_state[key]))

    chosen = state.store().scenario.conventions.variant(stage)
    st.selectbox(
        row.label,
        _offered(row, state.store().scenario),
        key=key,
        format_func=lambda variant: row.variants[variant].label,
        on_change=answering(key, lambda: state.attempt(change, key)),
        help=f"{chosen.choose_when} {named(chosen, stage, chosen.key, mark='`')} {chosen.source}.",
    )
    show_error(key)


def _offered(row, scenario):
    """Variants that the scenario has the arrays for."""
    return [
        key
        for key, variant in row.variants.items()
        if all(need in scenario for need in variant.needs)
    ]


def option_input(stage, option, where):
    """Number input or selectbox for one option of the chosen variant."""
    key = f"{where}_{stage}_{option.key}"
    follow(key, state.store().scenario.conventions[stage].options[option.key])

    def change():
        value = st.session_state[key]
        state.edit(state.store().scenario.choose(stage, **{option.key: value}))

    chosen = state.store().scenario.conventions[stage].variant
    help_text = f"{option.help} {named(option, stage, chosen, option.key, mark='`')}"
    if isinstance(option.domain, Number):
        st.number_input(
            option.label,
            key=key,
            step=1 if option.domain.integer else step_of(st.session_state[key]),
            format="%d" if option.domain.integer else "%g",
            on_change=answering(key, lambda: state.attempt(change, key)),
            help=help_text,
        )
    else:
        st.selectbox(
            option.label,
            list(option.domain.words),
            key=key,
            format_func=lambda value: option.domain.words[value],
            on_change=answering(key, lambda: state.attempt(change, key)),
            help=help_text,
        )
    show_error(key)


def step_of(value):
    """A step of the value's own size: 0.01 at 0.2, 1e-9 at 1e-8."""
    return 10.0 ** (int(f"{abs(value):e}".split("e")[1]) - 1) if value else 0.01


def stage_controls(stage, where):
    """The variant of a stage, where there are several, and the options that it has."""
    if len(STAGES[stage].variants) > 1:
        variant_picker(stage, where)
    options = state.store().scenario.conventions.variant(stage).options
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"row_{where}_{stage}"):
        for option in options:
            option_input(stage, option, where)


def single_option(stage, key, where):
    """One option of a stage by its key, where the chosen variant has it."""
    for option in state.store().scenario.conventions.variant(stage).options:
        if option.key == key:
            option_input(stage, option, where)


def prompt_picker(where):
    """Which prompt's group is shown; nothing to pick when there is one."""
    here = state.store()
    count = here.scenario.sizes["P"]
    if count == 1:
        return
    key = f"{where}_prompt"
    follow(key, here.view.prompt)

    def change():
        state.select(st.session_state[key], *here.view.selected[1:])

    def label(p):
        text = here.scenario.texts.prompt(p)
        return f"Prompt {p}: {visible(text)}" if text else f"Prompt {p}"

    st.selectbox(
        "Prompt", range(count), key=key, format_func=label, on_change=answering(key, change)
    )


def token_picker(where):
    """Prompt, completion and token by keyboard: the same choice as clicking a cell."""
    here = state.store()
    labels = ("Prompt", "Completion", "Token")
    sizes = here.scenario.sizes
    keys = [f"{where}_{label}" for label in labels]
    for key, at in zip(keys, here.view.selected, strict=True):
        follow(key, at)

    with st.container(horizontal=True, key=f"row_{where}_token"):
        for at, (label, key, axis) in enumerate(zip(labels, keys, "PGL", strict=True)):

            def change(at=at, key=key):
                selected = list(state.store().view.selected)
                selected[at] = st.session_state[key]
                state.select(*selected)

            st.number_input(
                label, 0, sizes[axis] - 1, step=1, key=key, on_change=answering(key, change)
            )


def size_inputs(where):
    """Number of prompts, completions and token positions."""
    here, message_at = state.store(), f"{where}_sizes"
    with st.container(horizontal=True, key=f"row_{where}_sizes"):
        for axis, label in _STEPS.items():
            key = f"{where}_size_{axis}"
            follow(key, here.scenario.sizes[axis])

            def change(axis=axis, key=key):
                wanted = {**here.scenario.sizes, axis: int(st.session_state[key])}
                check_sizes(wanted)
                state.load(resize(here.scenario, **wanted))

            most = max(_LARGEST[axis], here.scenario.sizes[axis])
            st.number_input(
                label, 1, most, step=1, key=key,
                on_change=answering(key, lambda change=change: state.attempt(change, message_at)),
            )  # fmt: skip
    show_error(message_at)


def paste(key, text, message_at):
    """Put pasted text into an array: into the shown prompt if the text holds only that."""
    here = state.store()

    def change():
        before = here.scenario
        pasted = tables.paste_array(before, key, text, here.view.prompt)
        after = without_stale_texts(before, pasted)
        state.load(after)
        here.note = " ".join(paste_notes(before, after, key))

    state.attempt(change, message_at)


def use_texts(prompt, prompt_key, lines_key):
    """Give the shown prompt and its tokens the texts that were typed."""
    typed = st.session_state[prompt_key], st.session_state[lines_key]
    state.attempt(lambda: state.edit(with_lines(state.store().scenario, prompt, *typed)), lines_key)


def copy_array(source, targets):
    """Give other arrays the values of one, such as the old policy those of the new."""
    here = state.store()
    state.load(here.scenario.replace(**dict.fromkeys(targets, here.scenario[source])))


def use_rewards(text, message_at):
    """Make a pasted line of rewards the shown group's."""
    paste("rewards", text, message_at)


def view_switch(label, words, key):
    """Which of a few views a picture shows; not part of the example, so not in its link."""
    return st.segmented_control(
        label, list(words), key=key, default=next(iter(words)), required=True,
        format_func=words.get, persist_state="session", on_change=state.touch,
    )  # fmt: skip


def choice_buttons(stage, rows, where):
    """A button for each row's ``choice`` of a stage; that of the chosen one is off."""

    def change(choice):
        scenario = state.store().scenario
        state.edit(scenario.choose(stage, choice.variant, **choice.options))

    with st.container(horizontal=True, key=f"row_{where}_{stage}_choices"):
        for index, row in enumerate(rows):
            st.button(
                f"Use {row.label}",
                key=f"{where}_{stage}_choice_{index}",
                disabled=row.chosen,
                on_click=change,
                args=(row.choice,),
            )


def switch(label, key, default, explanation):
    """An on-off switch of a picture; each whole new example starts it at its default."""
    key = f"{key}_{state.store().version}"
    if key not in st.session_state:
        st.session_state[key] = default
    return st.toggle(label, key=key, help=explanation, on_change=state.touch)


def pair_picker(pairs, where):
    """Start the two distributions from one of a few named pairs."""
    key = f"{where}_pair"

    follow(key, None)

    def change():
        if st.session_state[key] is not None:
            dist_new, dist_ref = pairs[st.session_state[key]]
            state.load(state.store().scenario.replace(dist_new=dist_new, dist_ref=dist_ref))

    st.selectbox(
        "Start from", list(pairs), key=key, on_change=answering(key, change),
        placeholder="Your own numbers",
    )  # fmt: skip


def sampling_inputs(where):
    """How many tokens the two distributions have, and the seed of the samples."""
    here = state.store()
    size_key, seed_key = f"{where}_size_V", f"{where}_seed"
    vocabulary = OWN_AXES["V"]
    follow(size_key, with_distributions(here.scenario)["dist_new"].size)
    follow(seed_key, seed_of(here.scenario))

    def resize_vocabulary():
        state.load(resize_distributions(here.scenario, int(st.session_state[size_key])))

    def change_seed():
        state.edit(here.scenario.replace(seed=st.session_state[seed_key]))

    with st.container(horizontal=True, key=f"row_{where}_sampling"):
        st.number_input(
            "Tokens", vocabulary.low, vocabulary.high, step=1, key=size_key,
            on_change=answering(size_key, lambda: state.attempt(resize_vocabulary, size_key)),
        )  # fmt: skip
        st.number_input(
            "Seed",
            0,
            LARGEST_SEED,
            step=1,
            key=seed_key,
            on_change=answering(seed_key, change_seed),
        )
    show_error(size_key)


def scalar_input(name, where, default, label=None):
    """Number input of an array that is a single number; ``default`` is shown where it is absent.

    Returns
    -------
    float
        The number that holds now.
    """
    here, spec, key = state.store(), ARRAYS[name], f"{where}_{name}"
    now = float(here.scenario.arrays.get(name, default))
    whole = spec.rule.words.startswith("a whole number")
    follow(key, int(now) if whole else now)

    def change():
        state.edit(state.store().scenario.replace(**{name: st.session_state[key]}))

    st.number_input(
        label or spec.label,
        key=key,
        step=1 if whole else step_of(now),
        format="%d" if whole else "%g",
        on_change=answering(key, lambda: state.attempt(change, key)),
        help=spec.help,
    )
    show_error(key)
    return now


def clicked(key, cells):
    """Callback of a chart: the clicked cell becomes the selected token."""

    def change():
        points = (st.session_state.get(key) or {}).get("selection", {}).get("points", [])
        for point in points:
            index = point.get("customdata")
            if index is not None and len(index) >= 3:
                state.select(*index[:3])
                return

    return change if cells else "ignore"


def array_choices(scenario):
    """Arrays that a scenario holds and a table can edit; distributions have a default."""
    return [
        key for key, spec in ARRAYS.items() if spec.axes == "V" or (key in scenario and spec.axes)
    ]
