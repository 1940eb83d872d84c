"""When a reward is hacked: a term takes over the advantages while the task gets worse.

The turn is the step that parts the share of the term best into a lower level before and a
higher one after (least squares over all ways to cut the run in two). It counts as hacking if
the term makes most of the spread after it, and then the term rises and the task falls by more
than their noise allows.
"""

from dataclasses import dataclass

import numpy as np

from .series import Series

_FEW = 3  # scored steps on each side of a cut
_SIGMA = 3.0  # standard errors that a change has to exceed
_MOST = 0.5  # of the spread


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A term that took over.

    Attributes
    ----------
    term : int
        Its index.
    step : int
        First step of the later part.
    share_before, share_after, term_before, term_after, task_before, task_after : float
        Means over the steps before and from the turn on.
    reward_before, reward_after : float
    """

    term: int
    step: int
    share_before: float
    share_after: float
    term_before: float
    term_after: float
    task_before: float
    task_after: float
    reward_before: float
    reward_after: float


def turns(shown: Series, names, task):
    """Terms other than the task that took over while the task got worse, gravest first.

    Parameters
    ----------
    shown : Series
    names : sequence of str
    task : str
        Where the task is a measure and there is one term, that term's value stands for its
        share.

    Returns
    -------
    list of Turn
    """
    found = []
    for k, name in enumerate(names):
        if name == task or len(shown.steps) < 2 * _FEW:
            continue
        level = shown.shares[:, k] if len(names) > 1 else -shown.task
        cut = level_cut(level)
        if cut is None:
            continue
        turn = _at(shown, k, cut)
        takes_over = len(names) == 1 or (
            turn.share_after > _MOST and turn.share_before < turn.share_after
        )
        rises = _moved(shown.terms[:, k], cut) > _SIGMA
        falls = _moved(shown.task, cut) < -_SIGMA
        if takes_over and rises and falls:
            found.append(turn)
    return sorted(found, key=lambda turn: turn.task_after - turn.task_before)


def level_cut(values):
    """Index of the first value of the later part of the best cut in two levels; None if none.

    Steps without a value do not count.
    """
    known = np.nonzero(np.isfinite(values))[0]
    n = len(known)
    if n < 2 * _FEW:
        return None
    shown = values[known]
    sums, number = np.cumsum(shown), np.arange(1, n + 1)
    cuts = np.arange(_FEW, n - _FEW + 1)
    before = sums[cuts - 1] / number[cuts - 1]
    after = (sums[-1] - sums[cuts - 1]) / (n - cuts)
    between = cuts * (n - cuts) / n * np.square(after - before)  # what the cut explains
    return int(known[cuts[np.argmax(between)]]) if np.max(between) > 0 else None


def _moved(values, cut):
    """Change of the mean across a cut, in its standard errors."""
    left, right = values[:cut], values[cut:]
    left, right = left[np.isfinite(left)], right[np.isfinite(right)]
    if min(len(left), len(right)) < _FEW:
        return 0.0
    error = np.sqrt(np.var(left, ddof=1) / len(left) + np.var(right, ddof=1) / len(right))
    change = float(np.mean(right) - np.mean(left))
    return change / max(error, 1e-12 * max(np.max(np.abs(values[np.isfinite(values)])), 1e-300))


def _at(shown, k, cut):
    def sides(values):
        return [
            float(np.mean(side[np.isfinite(side)])) if np.isfinite(side).any() else float("nan")
            for side in (values[:cut], values[cut:])
        ]

    share, term = sides(shown.shares[:, k]), sides(shown.terms[:, k])
    task, reward = sides(shown.task), sides(shown.reward)
    return Turn(
        term=k, step=int(shown.steps[cut]),
        share_before=share[0], share_after=share[1], term_before=term[0], term_after=term[1],
        task_before=task[0], task_after=task[1], reward_before=reward[0], reward_after=reward[1],
    )  # fmt: skip
