"""Findings about lengths: completions without tokens, and what a token counts in long ones."""

import numpy as np

from ..errors import place
from ..words import cells, count, number
from . import facts
from .row import FindingRow

LENGTHS_APART = 1.5  # longest against shortest; below this it is not worth a sentence


def empty_completion(evaluation):
    """Completions that are present and have no token that counts."""
    empty = evaluation.scenario["present"] & (evaluation.lengths == 0)
    if not empty.any():
        return None
    return {
        "places": facts.places(empty),
        "scored": int(np.sum(empty & evaluation.scored)) * facts.uses_scores(evaluation),
        "convention": facts.option_words(evaluation, "aggregation", "empty"),
    }


def _say_empty_completion(figures):
    n = len(figures["places"])
    text = f"{count(n, 'completion')} without a token that counts: {cells(figures['places'])}."
    if figures["scored"]:
        text += " A reward there still moves its group's mean, and nothing learns from it."
    if figures["convention"]:
        text += f" In the average over completions it is {figures['convention']}."
    return text


def token_weight_by_length(evaluation):
    """What a token of the shortest completion counts against one of the longest."""
    token = np.max(evaluation.weight, axis=2)  # (P, G)
    filled = token > 0  # not where all tokens have left the loss
    if not filled.any():
        return None
    shortest = facts.largest(-evaluation.lengths, filled)
    longest = facts.largest(evaluation.lengths, filled)
    short, long = (int(evaluation.lengths[where]) for where in (shortest, longest))
    if long < LENGTHS_APART * short:
        return None
    return {
        "places": (shortest, longest),
        "lengths": (short, long),
        "factor": float(token[shortest] / token[longest]),
        "whole": float(token[longest] * long / (token[shortest] * short)),
    }


def _say_token_weight_by_length(figures):
    shortest, longest = figures["places"]
    short, long = figures["lengths"]
    same = abs(figures["factor"] - 1) < 1e-3
    times_ = "as much as" if same else f"{number(figures['factor'])} times as much as"
    text = (
        f"A token of the shortest completion ({place(shortest)}: {count(short, 'token')}) counts "
        f"{times_} one of the longest ({place(longest)}: {count(long, 'token')})."
    )
    if abs(figures["whole"] - 1) < 1e-3:
        return f"{text} As wholes both weigh the same."
    return f"{text} The longest as a whole weighs {number(figures['whole'])} times the shortest."


ROWS = (
    FindingRow(
        code="empty_completion",
        severity="warning",
        page="Objective",
        question="What does an empty answer do?",
        find=empty_completion,
        sentence=_say_empty_completion,
    ),
    FindingRow(
        code="token_weight_by_length",
        severity="note",
        page="Objective",
        question="Does length matter?",
        find=token_weight_by_length,
        sentence=_say_token_weight_by_length,
    ),
)
