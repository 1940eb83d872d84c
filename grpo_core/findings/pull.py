"""Findings about where a batch pushes the length of answers."""

import numpy as np

from ..numerics import total
from ..recipes import batch_pull
from ..words import number
from . import facts
from .lengths import LENGTHS_APART
from .row import FindingRow

SMALL = 0.01  # of the mean length, per unit of learning rate; below this it is not worth a word
BEYOND_CHANCE = 1.645  # standard deviations, which one batch in ten exceeds by chance


def length_pull(evaluation):
    """Where this batch pushes the length, if stopping is a choice by one logit.

    Said where answers that are pushed down are made longer, which is what 1/length is blamed
    for, or where the pull of all together is more than signs drawn by chance would make.
    """
    lengths = evaluation.lengths[evaluation.lengths > 0]
    if not lengths.size or np.max(lengths) < LENGTHS_APART * np.min(lengths):
        return None
    if not facts.uniform(evaluation).all():  # an answer pushed both ways is neither of the two
        return None
    pull = batch_pull(evaluation)
    mean, chance = float(np.mean(lengths)), _by_chance(pull)
    least = SMALL * mean
    if not np.all(np.isfinite([pull.right, pull.wrong, pull.whole, chance])):
        return None
    if pull.wrong < least and abs(pull.whole) < max(least, BEYOND_CHANCE * chance):
        return None
    pushed = (evaluation.lengths > 0) & (evaluation.advantages < 0)
    longest = np.where(pushed, evaluation.lengths, 0)
    return {
        "places": (facts.largest(longest, pushed),) if pushed.any() else (),
        "mean": mean,
        "right": pull.right,
        "wrong": pull.wrong,
        "whole": pull.whole,
        "chance": chance,
    }


def _by_chance(pull):
    """Size of the whole pull if each completion pulled either way at random.

    The root mean square of a sum of terms with random signs is that of the sum of squares.
    """
    slope = (1 - pull.stop) / pull.stop
    return slope * float(np.sqrt(total(np.square(pull.logit, dtype=np.float64))))


def _say_length_pull(figures):
    wrong, right, whole = (figures[key] for key in ("wrong", "right", "whole"))
    return (
        f"If stopping is a choice by one logit, this batch makes answers {_way(whole)} (mean "
        f"{number(figures['mean'])} tokens, {_change(whole)} per unit of learning rate, and "
        f"±{number(figures['chance'], 3)} is chance). If the policy can tell right answers "
        "(advantage above 0) from wrong ones, it "
        f"makes wrong ones {_way(wrong)} ({_change(wrong)}) and right ones {_way(right)} "
        f"({_change(right)})."
    )


def _way(change):
    return "longer" if change > 0 else "shorter" if change < 0 else "neither longer nor shorter"


def _change(change):
    return f"{'+' if change > 0 else ''}{number(change, 3)}"


ROWS = (
    FindingRow(
        code="length_pull",
        severity="note",
        page="Length",
        question="Does this make answers longer?",
        find=length_pull,
        sentence=_say_length_pull,
    ),
)
