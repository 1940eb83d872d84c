"""The table of task rewards and shaping terms: what is given can be edited, the rest is read."""

import numpy as np
import pandas as pd

from grpo_core import ARRAYS, ScenarioError
from grpo_core.errors import place

from .numbers import number
from .tables import array_to_frame, frame_to_array
from .token_text import visible

TASK = "task"
_TEXT = 12  # characters: what is edited beside it must have room


def terms_to_frame(scenario, prompt):
    """Task rewards and given terms of one prompt's completions, as a table to edit.

    Parameters
    ----------
    scenario : Scenario
    prompt : int

    Returns
    -------
    DataFrame
        A row a completion. The column 'task', and one for each term whose formula reads
        values, named by the term's position; blank where a term does not apply.
    """
    frame = array_to_frame(scenario, "rewards", prompt).rename(columns={"rewards": TASK})
    given = _given(scenario)
    if given:
        values = array_to_frame(scenario, "term_values", prompt)[given]
        frame = pd.concat([frame, values], axis=1)
    return frame


def frame_to_terms(scenario, frame, prompt):
    """The scenario with an edited table of `terms_to_frame` put in.

    Raises
    ------
    ScenarioError
        Names the term and the completion: text, infinities, a table of another shape.
    """
    rewards = frame[[TASK]].rename(columns={TASK: "rewards"})
    changed = frame_to_array(scenario, "rewards", rewards, prompt)
    given = [column for column in _given(scenario) if column in frame.columns]
    if not given:
        return changed
    _check_finite(scenario, frame[given], prompt)
    whole = array_to_frame(scenario, "term_values", prompt)
    return frame_to_array(changed, "term_values", whole.assign(**frame[given]), prompt)


def term_labels(scenario):
    """Header of each term's column: its name and its weight."""
    return {str(k): f"{term.name} × {number(term.weight)}" for k, term in _numbered(scenario)}


def terms_to_read(evaluation, prompt):
    """What stands beside the table to edit, for reading only.

    Returns
    -------
    DataFrame
        A row a completion: how its text begins, where texts are known, and a column for each
        term that follows from lengths or tokens.
    """
    scenario, attribution = evaluation.scenario, evaluation.attribution
    G, given = scenario.sizes["G"], _given(scenario)
    frame = pd.DataFrame(index=pd.Index([str(g) for g in range(G)], name="completion"))
    texts = [visible(scenario.texts.completion(prompt, g), _TEXT) for g in range(G)]
    if any(texts):
        frame["text"] = texts
    labels = term_labels(scenario)
    for k, _ in _numbered(scenario):
        if attribution is not None and str(k) not in given:
            frame[labels[str(k)]] = [
                "" if np.isnan(value) else number(value)
                for value in attribution.values[k + 1, prompt].tolist()
            ]
    return frame


def _numbered(scenario):
    return list(enumerate(scenario.terms))


def _given(scenario):
    """Columns of ``term_values`` that some formula reads."""
    return [str(k) for k, term in _numbered(scenario) if "term_values" in term.variant.needs]


def _check_finite(scenario, frame, prompt):
    bad = np.argwhere(np.isinf(frame.to_numpy(dtype=float)))
    if len(bad):
        g, column = (int(i) for i in bad[0])
        name = scenario.terms[int(frame.columns[column])].name
        raise ScenarioError(
            f"{name}, {place((prompt, g))}: wanted {ARRAYS['term_values'].rule.words}",
            field="term_values",
            where=(prompt, g),
        )
