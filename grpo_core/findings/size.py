"""Findings about the size of groups: too small to hold right and wrong answers."""

import numpy as np

from ..group_size import signal_chance, size_for_signal
from ..words import count, groups, number, opening, percent
from . import facts
from .row import FindingRow

ENOUGH = 0.5  # groups that should hold both kinds; below this most of the batch teaches nothing
FAR = 2  # times as large; by less any batch of pairs would do, whose chance is never above 1/2


def group_too_small(evaluation):
    """Groups too small to hold both of two scores at the rate that the whole batch has.

    The chance is concave in the rate, so prompts that differ in difficulty make it smaller still.
    """
    if facts.by_steps(evaluation) or not facts.judged_as_one(evaluation):
        return None
    if not facts.uses_scores(evaluation):
        return None
    if facts.chosen(evaluation, "advantage") in facts.UNCOMPARED:
        return None
    found = _two_scores(evaluation)
    if found is None:
        return None
    high, rate, sizes = found
    chance = float(np.mean(signal_chance([rate], sizes)))
    size, needed = int(np.max(sizes)), int(size_for_signal([rate], ENOUGH)[0])
    if chance >= ENOUGH or 0 < needed < FAR * size:
        return None
    return {
        "places": facts.places(facts.tied(evaluation)),
        "score": high,
        "rate": rate,
        "size": size,
        "groups": len(evaluation.tied),
        "mixed": int(np.sum(~evaluation.tied)),
        "chance": chance,
        "needed": needed,
    }


def pass_at_more_than_the_group(evaluation):
    """Groups with fewer scored completions than the k of pass@k."""
    k = facts.option(evaluation, "advantage", "k")
    if k is None:
        return None
    sizes = np.sum(evaluation.scored, axis=1)
    if not (sizes < k).any():
        return None
    return {"places": facts.places(sizes < k), "k": k, "size": int(np.max(sizes[sizes < k]))}


def _say_pass_at_more_than_the_group(figures):
    where, k = figures["places"], figures["k"]
    most = "has" if len(where) == 1 else "have at most"
    size = count(figures["size"], "scored completion")
    return (
        f"{opening(groups(where))} {most} {size}, and pass@{k} is about {k} of them: no set of {k} "
        "can be drawn, so every advantage there is 0."
    )


def _two_scores(evaluation):
    """The higher of two scores, its rate, and the sizes of groups of two or more; else None."""
    scores, scored = evaluation.scores, evaluation.scored
    values = np.unique(scores[scored])
    sizes = np.sum(scored, axis=1)
    sizes = sizes[sizes > 1]
    if len(values) != 2 or not np.all(np.isfinite(values)) or not sizes.size:
        return None
    rate = float(np.mean(scores[scored] == values[1]))
    return float(values[1]), rate, np.minimum(sizes, 1024)


def _say_group_too_small(figures):
    needed = figures["needed"]
    remedy = f"It takes groups of {needed:,}" if needed else "No group of up to 1,024 is enough"
    return (
        f"{percent(figures['rate'])} of all scores are {number(figures['score'])}. At that rate "
        f"groups of {figures['size']} hold both kinds of scores in {percent(figures['chance'])} of "
        f"cases, and in fewer if prompts differ; here it was {figures['mixed']:,} of "
        f"{figures['groups']:,}. {remedy} for one half."
    )


ROWS = (
    FindingRow(
        code="group_too_small",
        severity="warning",
        page="Group_size",
        question="Are the groups large enough?",
        find=group_too_small,
        sentence=_say_group_too_small,
    ),
    FindingRow(
        code="pass_at_more_than_the_group",
        severity="warning",
        page="Group_size",
        question="Why is every advantage 0 under pass@k?",
        find=pass_at_more_than_the_group,
        sentence=_say_pass_at_more_than_the_group,
    ),
)
