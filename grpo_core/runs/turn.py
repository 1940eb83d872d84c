"""When a reward is hacked: a term takes over the advantages while the task gets worse.

The turn is the step that parts the share of the term best into a lower level before and a
higher one after (least squares over all ways to cut the run in two). It counts as hacking if
the term's share rises by a good part to most of the spread, and if then the term rises and the
task falls: by a good part of its level, and by more than noise allows. Steps that follow each
other are alike (prompts of a like difficulty, a policy that wanders), so that their noise is
read with fewer steps than there are: n (1 - r) / (1 + r), r the correlation of neighbours.
"""

from dataclasses import dataclass

import numpy as np

from .series import Series

_FEW = 3  # scored steps on each side of a cut
_SIGMA = 4.0  # standard errors that a change has to exceed; the cut itself was chosen
_MOST = 0.5  # of the spread, after the turn
_RISE = 0.2  # of the spread, across it
_FALL = 0.25  # of the task's level before
_ALIKE = 0.95  # most correlation of neighbours that is reckoned with


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


def turns(shown: Series, names, task, weights=None):
    """Terms other than the task that took over while the task got worse, gravest first.

    Parameters
    ----------
    shown : Series
    names : sequence of str
    task : str
        Where the task is a measure and there is one term, there are no shares: the task's own
        level is cut in two.

    weights : ndarray, (K,), optional
        1 each if not given. A term whose weight is negative is paid for falling.

    Returns
    -------
    list of Turn
    """
    found, weights = [], np.ones(len(names)) if weights is None else weights
    for k, name in enumerate(names):
        if name == task or len(shown.steps) < 2 * _FEW:
            continue
        alone = len(names) == 1
        cut = level_cut(shown.task if alone else shown.shares[:, k])
        if cut is None:
            continue
        turn = _at(shown, k, cut)
        took_over = alone or (
            turn.share_after > _MOST and turn.share_after - turn.share_before > _RISE
        )
        fell = turn.task_before - turn.task_after > _FALL * abs(turn.task_before)
        rises = moved(weights[k] * shown.terms[:, k], cut, alike=False) > _SIGMA
        falls = moved(shown.task, cut) < -_SIGMA
        if took_over and fell and rises and falls:
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


def moved(values, cut, *, alike=True):
    """Change of the mean across a cut, in its standard errors.

    Neighbours count as alike unless told otherwise: a term that keeps rising after the turn is
    no noise.
    """
    sides = [side[np.isfinite(side)] for side in (values[:cut], values[cut:])]
    if min(map(len, sides)) < _FEW:
        return 0.0
    correlation = _of_neighbours(sides) if alike else 0.0
    fewer = (1 - correlation) / (1 + correlation)
    error = np.sqrt(sum(np.var(side, ddof=1) / max(len(side) * fewer, 1.0) for side in sides))
    change = float(np.mean(sides[1]) - np.mean(sides[0]))
    least = 1e-12 * max(np.max(np.abs(np.concatenate(sides))), 1e-300)
    return change / max(error, least)


def _of_neighbours(sides):
    """Correlation of following values around the mean of their side, from 0 to `_ALIKE`."""
    apart = [side - np.mean(side) for side in sides]
    square = sum(np.sum(np.square(side)) for side in apart)
    across = sum(np.sum(side[:-1] * side[1:]) for side in apart)
    return float(np.clip(across / square, 0.0, _ALIKE)) if square > 0 else 0.0


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
