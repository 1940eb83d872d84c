"""Who gets the credit of process rewards: what more steps bring, and what other rules would give.

``step_rewards`` and ``step_ends`` (P, G, S) are checked already, and NaN where there is no step,
in absent completions too. ``step_advantages`` (P, G, S) are the normalised step rewards z, 0
where there is no step; ``valid`` (P, G, L).
"""

from dataclasses import dataclass

import numpy as np

from .numerics import difference, total

_SAME = 1e-9  # of the largest in the group; numbers this close are the same


def mass(step_advantages, step_ends, valid):
    """Sum of the token advantages of each completion, (P, G), from its steps.

    A step reaches every valid token up to its end, so it counts once for each of them: with
    one token per step, ``sum_m m z_m``. Late steps count more, and n equal steps z have a
    mass of ``z n (n + 1) / 2``. Unlike first tokens, masses do not add up to 0.
    """
    there = ~np.isnan(step_ends)
    at = np.where(there, step_ends, 0).astype(np.intp)
    reached = np.take_along_axis(np.cumsum(valid, axis=-1), at, axis=-1)  # (P, G, S)
    return np.sum(np.where(there, step_advantages * reached, 0.0), axis=-1)


def late_credit(step_advantages, step_ends, valid):
    """Completions, (P, G) bool, pushed one way at their first token, the other way in sum.

    A wrong answer padded with passed steps is one: negative at first, positive in sum.
    """
    first = np.sum(step_advantages, axis=-1)
    whole = mass(step_advantages, step_ends, valid)
    slack = _SAME * np.max(np.abs(step_advantages), axis=(1, 2), initial=0.0)[:, None]
    return (_signs(first, slack) * _signs(whole, slack * valid.shape[-1])) < 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Gains:
    """N pairs of completions of one group, the largest gain first.

    ``where`` (N, 3) holds prompt, the completion i that gains, and j that it outdoes; ``gain``
    (N,) is i's total advantage, that of its first token, less j's. ``steps``, ``means`` and
    ``totals`` (N, 2) are of i and j: number, mean and sum of normalised rewards.
    ``at_equal_count`` (N,) is i's total if it had as many steps as j, of its own mean: at most
    j's.
    """

    where: np.ndarray
    gain: np.ndarray
    steps: np.ndarray
    means: np.ndarray
    totals: np.ndarray
    at_equal_count: np.ndarray


def gains_by_count(step_advantages, step_ends, *, fewer=False):
    """Pairs in which the number of steps alone puts one completion before another.

    Parameters
    ----------
    step_advantages, step_ends : ndarray, shape (P, G, S)
    fewer : bool, default False
        Look for gains by fewer steps instead of by more.

    Returns
    -------
    Gains
        i's steps are no better on average than j's, i has more (fewer) of them, and i's total
        advantage is larger. By more steps this takes a mean above the pool's, by fewer one
        below it. Completions without steps are in no pair.
    """
    n = np.sum(~np.isnan(step_ends), axis=-1)  # (P, G)
    sums = np.sum(step_advantages, axis=-1)
    means = sums / np.maximum(n, 1)
    slack = _SAME * np.max(np.abs(step_advantages), axis=(1, 2), initial=0.0)[:, None, None]
    own, other = (slice(None), slice(None), None), (slice(None), None, slice(None))
    counts = n[own] < n[other] if fewer else n[own] > n[other]
    pairs = counts & (n > 0)[own] & (n > 0)[other]
    pairs &= (means[own] <= means[other] + slack) & (sums[own] > sums[other] + slack)
    gain = np.where(pairs, sums[own] - sums[other], 0.0)
    flat = np.argsort(-gain, axis=None, kind="stable")[: np.sum(pairs)]
    p, i, j = np.unravel_index(flat, gain.shape)
    return Gains(
        where=np.stack([p, i, j], axis=-1),
        gain=gain[p, i, j],
        steps=np.stack([n[p, i], n[p, j]], axis=-1),
        means=np.stack([means[p, i], means[p, j]], axis=-1),
        totals=np.stack([sums[p, i], sums[p, j]], axis=-1),
        at_equal_count=n[p, j] * means[p, i],
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class CreditChanges:
    """How token advantages differ from those that the outcome reward alone gives.

    ``difference`` (P, G, L) is process less outcome, 0 where nothing counts. Bool (P, G, L):
    ``flipped`` tokens have the opposite sign, ``gained`` ones credit where the outcome gives
    0, ``lost`` ones 0 where it gives credit. ``tokens`` counts valid ones. ``total`` sums the
    sizes of all differences, ``flipped_total`` those of flipped tokens. ``largest`` is the
    one of largest size, with its sign, and ``where`` its token, of equal ones the first; None
    if nothing changed.
    """

    difference: np.ndarray
    flipped: np.ndarray
    gained: np.ndarray
    lost: np.ndarray
    tokens: int
    total: float
    flipped_total: float
    largest: float
    where: tuple | None


def credit_changes(token_advantages, outcome_token_advantages, valid):
    """Compare the token advantages (P, G, L) of process rewards with the outcome's.

    Signs are read beyond rounding: an advantage within 1e-9 of its group's largest is 0.
    """
    new = np.where(valid, token_advantages, 0.0)
    old = np.where(valid, outcome_token_advantages, 0.0)
    change = difference(new, old)
    sign, before = _signs(new, _rounding(new)), _signs(old, _rounding(old))
    flipped = sign * before < 0
    size = np.abs(change)
    changed = bool(np.any(size))
    at = np.unravel_index(np.argmax(size), size.shape) if changed else None
    return CreditChanges(
        difference=change,
        flipped=flipped,
        gained=(before == 0) & (sign != 0),
        lost=(before != 0) & (sign == 0),
        tokens=int(np.sum(valid)),
        total=float(total(size)),
        flipped_total=float(total(np.where(flipped, size, 0.0))),
        largest=float(change[at]) if changed else 0.0,
        where=tuple(int(index) for index in at) if changed else None,
    )


def _signs(values, slack):
    return np.sign(np.where(np.abs(values) <= slack, 0.0, values))


def _rounding(values):
    """What counts as 0 in each group of (P, G, L); infinite advantages set no scale."""
    size = np.where(np.isfinite(values), np.abs(values), 0.0)
    return _SAME * np.max(size, axis=(1, 2), keepdims=True, initial=0.0)
