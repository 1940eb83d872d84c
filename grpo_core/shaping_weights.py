"""How heavy a shaping term may be on a batch.

A NaN is a value that is missing: it adds nothing, and a completion without a task reward is
neither better nor worse than another. Weights are looked for on the side of 0 on which the
term's present weight stands.
"""

from dataclasses import dataclass

import numpy as np

from .errors import ScenarioError
from .group_statistics import group_statistics
from .inputs import checked_number
from .shaping_curves import takeover_weight
from .shaping_parts import COMBINE, read_batch
from .variants import Number

_PAIRS = 2**20  # pairs of completions compared at once
_OPPOSED = 1e-12  # of the parts' variances: a total of less is one that cancels
_ZOOMS, _POINTS = 12, 64


@dataclass(frozen=True, eq=False)
class SafeWeight:
    """Weights of a term at which no worse answer outranks a better one of its group.

    They reach from ``least`` to ``largest``, both (P,) by group and one for the batch as a
    whole. ``largest`` is infinite where no weight is too large, and 0 where any is.
    ``least`` is 0 unless the other terms put a worse answer first and this one has to make
    up for it. Both are NaN where no weight will do. ``where`` is the pair that comes first
    (prompt, better completion, worse completion), None if there is none.
    """

    least: np.ndarray
    largest: np.ndarray
    batch_least: float
    batch_largest: float
    where: tuple[int, int, int] | None


@dataclass(frozen=True, eq=False)
class ShareWeight:
    """Weights at which a term carries a given share of the spread.

    ``groups`` (P,) by group, NaN where it never does; ``batch`` for the mean share of all
    groups that are not silent, NaN likewise. ``tied`` (P,) are groups that differ by this
    term alone: it has all of their spread at any weight, so ``at_least`` of the mean share
    is its own however small the weight. ``takeover`` (P,) is the weight at which eps halves
    the advantages of such a group; NaN in other groups and where the term is not divided by
    the spread of a total.
    """

    share: float
    groups: np.ndarray
    batch: float
    tied: np.ndarray
    at_least: float
    takeover: np.ndarray


def safe_weight(task, terms, weights, term=0, **options):
    """The largest weight of one term at which no worse answer outranks a better one.

    Parameters
    ----------
    task : array-like, shape (P, G)
        A completion is better than another of its group if its task reward is larger.
    terms : array-like, shape (K, P, G), or (P, G) for a single one
    weights : array-like, shape (K,), or a number for a single one
        Those of the other terms are held.
    term : int
        Which term's weight to look for.
    **options
        ``task_weight`` (1.0), and ``combine``, ``scale``, ``ddof``, ``eps`` as in
        `advantage_against_weight`.

    Returns
    -------
    SafeWeight

    Raises
    ------
    ScenarioError
        Unlike shapes, infinite values, a weight that is missing, unknown options.

    Examples
    --------
    A right answer without the bonus is overtaken by a wrong one that has it beyond 1:

    >>> safe_weight([[1, 1, 0, 0]], [[0, 1, 1, 0]], 0.5).batch_largest
    1.0
    """
    shaped = read_batch(task, terms, weights, **options)
    rest, own, sign, rounding = shaped.apart(term)
    least, largest, rival = _limits(shaped.task, rest, own, rounding)  # (P, G), by better answer
    tightest = np.argmin(largest, axis=1)
    least, largest = np.max(least, axis=1), np.min(largest, axis=1)
    where, batch = None, (float(np.max(least)), float(np.min(largest)))
    if batch[1] < np.inf:
        prompt = int(np.argmin(largest))
        better = int(tightest[prompt])
        where = prompt, better, int(rival[prompt, better])
    signed = [
        sign * np.where((low <= high) & (high >= 0), bound, np.nan) + 0.0  # + 0.0: no -0.0
        for low, high in ((least, largest), batch)
        for bound in (low, high)
    ]
    return SafeWeight(signed[0], signed[1], float(signed[2]), float(signed[3]), where)


def _limits(task, rest, own, rounding):
    """From and up to which weight each answer stays above all worse ones, and the first rival.

    Answer i is ahead of j by ``lead`` at weight 0, and j gains ``gain`` on it per unit of
    weight, so that j passes at ``lead / gain``.
    """
    P, G = task.shape
    least, largest = np.zeros(P * G), np.full(P * G, np.inf)
    rival = np.zeros(P * G, dtype=np.intp)
    step = max(1, _PAIRS // G)
    for start in range(0, P * G, step):
        rows = np.arange(start, min(start + step, P * G))
        p = rows // G
        with np.errstate(over="ignore", under="ignore"):
            lead = rest.ravel()[rows, None] - rest[p]  # (rows, G)
            gain = own[p] - own.ravel()[rows, None]
            unsure = rounding.ravel()[rows, None] + rounding[p]
            lead = np.where(np.abs(lead) <= unsure, 0.0, lead)
            passes = np.divide(lead, gain, out=np.zeros(lead.shape), where=gain != 0)
        better = task.ravel()[rows, None] > task[p]
        stuck = (gain == 0) & (lead < 0)
        upper = np.where(gain > 0, passes, np.where(stuck, -np.inf, np.inf))
        upper = np.where(better, upper, np.inf)
        least[rows] = np.max(np.where(better & (gain < 0), passes, 0.0), axis=1, initial=0.0)
        largest[rows], rival[rows] = np.min(upper, axis=1), np.argmin(upper, axis=1)
    return least.reshape(P, G), largest.reshape(P, G), rival.reshape(P, G)


def share_weight(task, terms, weights, term=0, *, share=0.1, **options):
    """The weight at which one term carries a given share of the spread.

    Parameters
    ----------
    task, terms, weights, term, **options
        As in `safe_weight`.
    share : float, default 0.1
        Between 0 and 1, both excluded.

    Returns
    -------
    ShareWeight

    Raises
    ------
    ScenarioError
        As in `safe_weight`; a share that is not between 0 and 1.

    Notes
    -----
    The share is ``cov(w f, total) / var(total)`` within a group, with total = rest + w f. It
    is q where ``w^2 var(f) (1 - q) + w cov(f, rest) (1 - 2 q) - q var(rest) = 0``, which has
    one root on either side of 0. A term exactly opposed to the rest takes its share from
    below 0 to above 1 without passing q.

    Examples
    --------
    Task and bonus have the same spread and no covariance: w^2 / (1 + w^2) = 0.2 at 0.5.

    >>> share_weight([[1, 1, 0, 0]], [[0, 1, 1, 0]], 1.0, share=0.2).groups.round(12).tolist()
    [0.5]
    """
    if checked_number("share", share, Number(low=0, high=1)) in (0, 1):
        raise ScenarioError(
            f"share is {share!r}; wanted a number between 0 and 1, such as 0.1", field="share"
        )
    shaped = read_batch(task, terms, weights, **options)
    rest, own, sign, rounding = shaped.apart(term)
    spread = _Spread.of(rest, own, shaped.scored, np.max(rounding, axis=1))
    tied = (spread.rest == 0) & (spread.own > 0)
    pushing = np.sum((spread.rest > 0) | (spread.own > 0))
    used = shaped.options
    takeover = np.full(len(rest), np.nan)
    if COMBINE[used["combine"]].total and used["scale"] == "std" and used["eps"] > 0:
        alone = np.where(shaped.scored, own, np.nan)
        half = takeover_weight(alone, ddof=used["ddof"], eps=used["eps"])
        takeover = np.where(tied, half, np.nan)
    return ShareWeight(
        share=float(share),
        groups=sign * spread.reached(share),
        batch=sign * _mean_reached(spread, tied, share),
        tied=tied,
        at_least=float(np.sum(tied) / pushing) if pushing else 0.0,
        takeover=sign * takeover,
    )


@dataclass(frozen=True, eq=False)
class _Spread:
    """Variances of the rest and of the term (P,), their covariance, in a unit of each.

    A weight times ``2**shift`` is one between those units, in which squares stay in range.
    """

    rest: np.ndarray
    own: np.ndarray
    both: np.ndarray
    shift: np.ndarray

    @classmethod
    def of(cls, rest, own, scored, rounding):
        a, b = group_statistics(rest, scored, 0), group_statistics(own, scored, 0)
        with np.errstate(under="ignore"):
            both = np.mean(a.centred * b.centred, axis=1)
            rest, own = np.mean(a.centred**2, axis=1), np.mean(b.centred**2, axis=1)
        rest = np.where(a.std <= rounding, 0.0, rest)
        return cls(rest, own, both, (b.exponent - a.exponent)[:, 0])

    def among(self, groups):
        return _Spread(self.rest[groups], self.own[groups], self.both[groups], self.shift[groups])

    def reached(self, share):
        """The positive weight with that share (P,), NaN where there is none."""
        slope = self.both * (1 - 2 * share)
        product = share * (1 - share) * self.rest * self.own
        root = np.sqrt(slope**2 + 4 * product)
        # Of the two ways to write the positive root, the one that does not subtract.
        above = np.where(slope > 0, 2 * share * self.rest, root - slope)
        below = np.where(slope > 0, root + slope, 2 * self.own * (1 - share))
        there = (self.rest > 0) & (self.own > 0)
        w = np.divide(above, below, out=np.full(below.shape, np.nan), where=there)
        spread = self.rest + w * (2 * self.both + w * self.own)
        opposed = spread <= _OPPOSED * (self.rest + w * w * self.own)
        with np.errstate(over="ignore", under="ignore"):
            found = np.ldexp(w, -self.shift)
        return np.where(opposed | (found == 0) | np.isinf(found), np.nan, found)

    def shares(self, weights):
        """What the term has of the spread of each group at each weight, (W, P)."""
        with np.errstate(over="ignore", under="ignore"):
            w = np.ldexp(weights[:, None], self.shift)
        # Both parts by the larger of 1 and w: neither square leaves the range of doubles.
        one, w = 1 / np.maximum(w, 1.0), np.minimum(w, 1.0)
        carried = w * (one * self.both + w * self.own)
        spread = one * (one * self.rest + 2 * w * self.both) + w * w * self.own
        return np.divide(carried, spread, out=np.zeros(spread.shape), where=spread > 0)


def _mean_reached(spread, tied, share):
    """The first weight at which the mean share is that large; NaN if none is.

    A tied group's share is 1, one without the term's is 0, so the others have to reach a
    share of their own in the mean. Each of them passes that once, which gives the range.
    """
    live = (spread.rest > 0) & (spread.own > 0)
    n = np.sum((spread.rest > 0) | (spread.own > 0))
    if not np.any(live):
        return np.nan
    wanted = (share * n - np.sum(tied)) / np.sum(live)
    if not 0 < wanted < 1:
        return np.nan
    among = spread.among(live)
    each = among.reached(wanted)
    if np.any(np.isnan(each)):  # a term opposed to the rest: its share leaps, at -both/own
        with np.errstate(over="ignore", under="ignore"):
            leap = np.ldexp(-among.both / among.own, -among.shift)
        each = np.where(np.isnan(each), leap, each)
    low, high = float(np.min(each)), float(np.max(each))
    if not 0 < low <= high < np.inf:
        return np.nan
    for _ in range(_ZOOMS):
        weights = np.geomspace(low, high, _POINTS)
        hit = np.mean(among.shares(weights), axis=1) >= wanted
        first = int(np.argmax(hit)) if np.any(hit) else _POINTS - 1
        low, high = weights[max(first - 1, 0)], weights[first]
    met = np.mean(among.shares(np.array([high])))
    return float(high) if abs(met - wanted) < 1e-6 else np.nan
