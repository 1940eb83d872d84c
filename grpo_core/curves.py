"""The surrogate as a function of the ratio: its curve, and the regions that it falls into."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .batch import prepare
from .clip_cases import CASES, Case, cases_of, clip_band
from .numerics import times
from .ratio import Ratio

# Looked at from 1 outwards in both directions, so that a band of 1e-4 is seen as well as one of 1.
_OFFSETS = np.geomspace(1e-8, 1e4, 600)
_HALVINGS = 60  # brings an edge to the last digit


@dataclass(frozen=True, kw_only=True)
class Region:
    """Ratios from ``low`` to ``high`` in which a token has the same case."""

    low: float
    high: float
    case: Case


def surrogate_curve(conventions, ratios, advantage):
    """Run the chosen surrogate on made-up ratios.

    Parameters
    ----------
    conventions : Conventions
    ratios : array-like, shape (N,)
    advantage : float

    Returns
    -------
    value, d_ratio : ndarray, shape (N,)
        The surrogate and its derivative with respect to the ratio. A row that weights the
        log-probability is taken at an old log-probability of 0, where it is the log-ratio.
    """
    surrogate, ratio = _run(conventions, ratios, advantage)
    return surrogate.value[:, 0, 0], _slope(surrogate, ratio.ratio)[:, 0, 0]


def _slope(surrogate, ratio):
    """Derivative by the ratio, whichever way the row gives it."""
    if surrogate.backward is not None:
        by_logp = surrogate.backward(np.ones_like(surrogate.value))
    elif surrogate.d_logp is not None:
        by_logp = surrogate.d_logp
    else:
        return surrogate.d_ratio
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return surrogate.d_ratio + np.where(by_logp == 0, 0.0, by_logp / ratio)


@lru_cache(maxsize=256)
def surrogate_regions(conventions, advantage):
    """Where on the ratio axis a token of this advantage is clipped, and where it is not.

    Returns
    -------
    tuple of Region
        From ratio 0 to infinity without gaps. The edges are found from the surrogate itself,
        whichever it is, to the last digit.
    """
    ratios = np.concatenate([1 / (1 + _OFFSETS[::-1]), [1.0], 1 + _OFFSETS])
    case = _cases(conventions, ratios, advantage)
    (at,) = np.nonzero(np.diff(case))
    edges = _bisect(conventions, advantage, ratios[at], ratios[at + 1], case[at])
    ends = [0.0, *edges.tolist(), np.inf]
    rows = list(CASES.values())
    kinds = [rows[index] for index in case[[*at, len(case) - 1]].tolist()]
    return tuple(
        Region(low=low, high=high, case=kind)
        for low, high, kind in zip(ends[:-1], ends[1:], kinds, strict=True)
    )


def _bisect(conventions, advantage, below, above, case):
    """Where the case changes between two neighbours: the last ratio on the side of 1."""
    for _ in range(_HALVINGS):
        middle = below + (above - below) / 2
        same = _cases(conventions, middle, advantage) == case
        below, above = np.where(same, middle, below), np.where(same, above, middle)
    return np.where(below < 1, above, below)


def _cases(conventions, ratios, advantage):
    surrogate, ratio = _run(conventions, ratios, advantage)
    shape = ratio.ratio.shape
    band = clip_band(conventions)
    return cases_of(surrogate, ratio.ratio, np.full(shape, advantage), band)[:, 0, 0]


def _run(conventions, ratios, advantage):
    """Completions of one token each, so that a row over completions sees each ratio alone."""
    ratios = np.reshape(np.asarray(ratios, dtype=np.float64), (-1, 1, 1))
    with np.errstate(divide="ignore"):
        log_ratio = np.log(ratios)
    one = np.ones((len(ratios), 1))
    batch = prepare(
        rewards=one, mask=np.ones(ratios.shape, bool), present=one.astype(bool),
        logp_new=log_ratio, logp_old=np.zeros(ratios.shape), logp_ref=np.zeros(ratios.shape),
    )  # fmt: skip
    ratio = Ratio(log_ratio, ratios, lambda gradient: times(gradient, ratios))
    advantages = np.full(ratios.shape, float(advantage))
    return conventions.run("surrogate", batch, ratio, advantages), ratio
