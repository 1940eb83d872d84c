"""Mean and standard deviation of each group, exact at the edges."""

from dataclasses import dataclass

import numpy as np

# Power of two beyond every double: the unit of a group that holds an infinite score.
_BEYOND = 4096


@dataclass(frozen=True, eq=False)
class GroupStatistics:
    """Exact-at-the-edges statistics of each group, in units of ``2**exponent``.

    ``centre`` (P, 1), the mean, ``centred`` (P, G) and ``spread`` (P, 1) are scaled so that
    squares neither overflow nor vanish; ``exponent`` (P, 1) undoes it.
    """

    centre: np.ndarray
    centred: np.ndarray
    spread: np.ndarray
    exponent: np.ndarray

    @property
    def mean(self):
        """Mean in reward units, shape (P,)."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self.centre, self.exponent)[:, 0]

    @property
    def std(self):
        """Standard deviation in reward units, shape (P,)."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self.spread, self.exponent)[:, 0]


def group_statistics(scores, scored, ddof):
    """Mean, deviations and standard deviation of each group over its scored completions.

    Parameters
    ----------
    scores : ndarray, shape (P, G)
        Not NaN where scored. Beside an infinite score (a KL penalty in the reward can be
        infinite) finite ones count as 0, the limit that the formulas approach.
    scored : ndarray of bool, shape (P, G)
    ddof : {0, 1}
        0 divides by n (population), 1 by n - 1 (sample).

    Returns
    -------
    GroupStatistics
        A group of equal scores has deviations and spread of exactly 0, whatever the score:
        deviations are taken from the group's first score, which is exact for equal ones,
        where ``0.1 + 0.1 + 0.1`` over 3 is not 0.1. A group with ``n - ddof <= 0`` has
        spread 0.
    """
    scores = np.where(scored, scores, 0).astype(np.float64)
    count = np.maximum(np.sum(scored, axis=1, keepdims=True), 1)  # (P, 1)
    unit, exponent = _units(scores)
    first = np.take_along_axis(unit, np.argmax(scored, axis=1)[:, None], axis=1)
    shifted = np.where(scored, unit - first, 0.0)
    mean_shift = np.sum(shifted, axis=1, keepdims=True) / count
    centred = np.where(scored, shifted - mean_shift, 0.0)
    with np.errstate(over="ignore", under="ignore"):
        squares = np.sum(centred * centred, axis=1, keepdims=True)
        spread = np.sqrt(squares / np.maximum(count - ddof, 1))
    return GroupStatistics(first + mean_shift, centred, spread, exponent)


def _units(scores):
    """Scores as multiples, within [-1, 1], of a power of two: (P, G) and its exponent (P, 1)."""
    peak = np.max(np.abs(scores), axis=1, keepdims=True)
    endless = np.isinf(peak)
    exponent = np.where(endless, _BEYOND, np.frexp(np.where(endless, 0.0, peak))[1])
    with np.errstate(under="ignore"):
        return np.where(np.isinf(scores), np.sign(scores), np.ldexp(scores, -exponent)), exponent


def standardised(statistics, eps):
    """``(r - mean) / (std + eps)``, 0 where the std is 0, without leaving double range."""
    return over_spread(statistics.centred, statistics.spread, statistics.exponent, eps)


def over_spread(deviation, spread, exponent, eps, guarded=np.add):
    """``deviation / (spread + eps)``, both but eps in units of ``2**exponent``; 0 without spread.

    Both sides of the fraction are taken in the larger unit, the group's or that of eps.
    ``guarded`` says how spread and eps make the divisor.
    """
    unit = np.maximum(exponent, np.frexp(eps)[1]) if eps else exponent
    tied = spread == 0
    with np.errstate(under="ignore"):
        denominator = guarded(np.ldexp(spread, exponent - unit), np.ldexp(eps, -unit))
        numerator = np.ldexp(deviation, exponent - unit)
        return np.where(tied, 0.0, numerator / np.where(tied, 1.0, denominator))
