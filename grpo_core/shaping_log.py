"""What to log of a batch with shaping terms, so that a hacked one is seen."""

from dataclasses import dataclass

import numpy as np

from .attribution import spread_shares
from .group_statistics import group_statistics
from .inputs import checked_number
from .numerics import norm, total
from .shaping_parts import deviations, read, read_batch, rounding, summed
from .variants import Number


@dataclass(frozen=True, eq=False)
class ShapingLog:
    """What a training run should log to show a hacked term, on one batch.

    ``task_mean`` and ``term_means`` (K,) are unweighted means over the completions that
    have a value, NaN if none has. ``decided`` (P,) are the groups that are tied in the task
    but not in the total, ``decided_share`` how many of all groups they are.
    ``correlation`` (K,) is that of the task and each term within groups, pooled over them;
    NaN where one of the two never differs within a group. ``right_length`` and
    ``wrong_length`` are mean lengths of completions with a task reward above
    ``right_above`` and of the others; NaN if there are none or lengths are not known.
    ``shares`` (1 + K, P) is what the task and each term have of each group's spread, and
    ``mean_shares`` (1 + K,) their mean over the groups that have any.
    """

    task_mean: float
    term_means: np.ndarray
    decided: np.ndarray
    decided_share: float
    correlation: np.ndarray
    right_above: float
    right_length: float
    wrong_length: float
    shares: np.ndarray
    mean_shares: np.ndarray


def shaping_log(task, terms, weights, lengths=None, *, right_above=None, **options):
    """Quantities that reveal a hacked term, on one batch.

    Parameters
    ----------
    task, terms, weights, **options
        As in `shaping_weights.safe_weight`.
    lengths : array-like, shape (P, G), optional
        Tokens of each completion.
    right_above : float, optional
        Task reward above which an answer is right; half way between the smallest and the
        largest of the batch if left out.

    Returns
    -------
    ShapingLog

    Raises
    ------
    ScenarioError
        As in `shaping_weights.safe_weight`.
    """
    shaped = read_batch(task, terms, weights, **options)
    judged, applies = ~np.isnan(shaped.task), ~np.isnan(shaped.terms)
    shares, tied = _shares(shaped)
    decided = (group_statistics(shaped.task, judged, 0).spread[:, 0] == 0) & ~tied
    above, right, wrong = _right(shaped.task, right_above)
    if lengths is None:
        lengths = np.full(judged.shape, np.nan)
    lengths = read("lengths", lengths, "PG", missing=True, shape=shaped.task.shape)
    measured = ~np.isnan(lengths)
    return ShapingLog(
        task_mean=float(_mean(shaped.task, judged)),
        term_means=_mean(shaped.terms, applies),
        decided=decided,
        decided_share=float(np.mean(decided)),
        correlation=_correlation(shaped.task, shaped.terms, judged & applies),
        right_above=above,
        right_length=float(_mean(lengths, right & measured)),
        wrong_length=float(_mean(lengths, wrong & measured)),
        shares=shares,
        mean_shares=np.sum(shares, axis=1) / max(np.sum(~tied), 1),
    )


def _right(task, above):
    """The bound and who is right and who wrong; nobody is either where all are alike."""
    judged = ~np.isnan(task)
    if above is not None:
        above = checked_number("right_above", above, Number(low=-np.inf))
    elif not np.any(judged) or np.ptp(task[judged] / 2) == 0:
        return np.nan, np.zeros(task.shape, bool), np.zeros(task.shape, bool)
    else:
        above = float(np.min(task[judged]) / 2 + np.max(task[judged]) / 2)
    return above, judged & (task > above), judged & (task <= above)


def _mean(values, there):
    """Mean over the last two axes of what is there; NaN if nothing is."""
    count = np.sum(there, axis=(-2, -1))
    summed = total(total(np.where(there, values, 0.0), axis=-1), axis=-1)
    return np.divide(summed, count, out=np.full(np.shape(count), np.nan), where=count > 0)


def _shares(shaped):
    """What each part has of each group's spread (1 + K, P), and which groups have none (P,)."""
    whole = group_statistics(summed(shaped.parts), shaped.scored, 0)
    tied = whole.std <= np.max(rounding(shaped.parts, shaped.scored), axis=1)
    with np.errstate(over="ignore"):  # of parts that cancel to nothing
        return np.where(tied, 0.0, spread_shares(shaped.parts, shaped.scored)), tied


def _correlation(task, terms, both):
    """Pooled over groups: of deviations from the mean of those with both values; (K,)."""
    K, _, G = terms.shape
    there = both.reshape(-1, G)
    tasks = deviations(np.tile(task, (K, 1)), there).reshape(K, -1)
    values = deviations(terms.reshape(-1, G), there).reshape(K, -1)
    found = np.full(K, np.nan)
    for k in range(K):
        sizes = norm(tasks[k]), norm(values[k])
        if all(sizes):
            together = float(np.sum((tasks[k] / sizes[0]) * (values[k] / sizes[1])))
            found[k] = min(max(together, -1.0), 1.0)
    return found
