"""Combining a task reward with shaping terms: before, each on its own, or after normalising.

A combination takes the components of the scores and a normaliser, the advantage row's way of
judging scores against their group, and gives advantages with every component's part in them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .components import Components
from .group_statistics import group_statistics
from .numerics import plus, times, total


@dataclass(frozen=True, eq=False)
class Normalised:
    """Scores judged against their group by one advantage row.

    ``mean`` and ``std`` (P,), ``advantages`` (P, G), and ``scale`` (P, 1) or (P, G): what a
    deviation is multiplied by, 0 in a group of equal scores. ``centre(values, scored)`` gives
    the deviations (P, G) of any values from the row's baseline; None for the group's mean.
    """

    mean: np.ndarray
    std: np.ndarray
    advantages: np.ndarray
    scale: np.ndarray
    centre: Callable | None = None


@dataclass(frozen=True, eq=False)
class Combined:
    """Advantages (P, G), the parts (C, P, G) that add up to them, and per token (P, G, L).

    Where a row is no linear function of the scores (pass@k), the parts of a sum are those of
    the score: its deviations times the row's scale.

    ``past`` (P, G, L) is what terms as returns to go take off for what was earned before a
    token; 0 without such terms.
    """

    mean: np.ndarray
    std: np.ndarray
    advantages: np.ndarray
    parts: np.ndarray
    past: np.ndarray


def normalised_sum(parts: Components, batch, normalise: Callable):
    """Weighted sum, then the group's mean and std: every term shares one scale.

    A term's part is ``w_k (r_k - its group mean) / (std of the sum + eps)``.
    """
    whole = normalise(_sum(parts.weighted), parts.scored)
    centre = whole.centre or centred_on_mean
    centred = np.stack([centre(each, parts.scored) for each in parts.weighted])
    slopes = times(whole.scale, parts.weights[:, None, None])
    return _combined(
        whole.mean, whole.std, whole.advantages, times(whole.scale, centred), slopes, parts, batch
    )


def sum_of_normalised(parts, batch, normalise, *, batch_scale, batch_eps):
    """Each component by its own mean and std, then the weighted sum [GDPO, arXiv 2601.05242]."""
    judged = [
        normalise(np.where(known & ~np.isnan(values), values, 0.0), known)
        for values, known in zip(_less_penalty(parts), parts.known, strict=True)
    ]
    weights = parts.weights[:, None, None]
    own = times(weights, np.stack([each.advantages for each in judged]))
    # A row with a worth for the only score of a group has one scale for each completion there.
    scales = [np.broadcast_to(each.scale, each.advantages.shape) for each in judged]
    slopes = times(weights, np.stack(scales))
    read = normalise(_sum(parts.weighted), parts.scored)  # mean and std, for reading
    middle, factor = BATCH_SCALES[batch_scale](_sum(own), parts.scored, batch, batch_eps)
    centres = np.stack([middle(each) for each in own])[:, None, None]
    own = np.where(parts.scored, times(factor, plus(own, -centres)), 0.0)
    return _combined(read.mean, read.std, _sum(own), own, times(factor, slopes), parts, batch)


def terms_added(parts, batch, normalise):
    """The task's advantage, plus the terms as they are: they keep their own scale and mean."""
    task = normalise(parts.weighted[0], parts.known[0])
    own = np.concatenate([task.advantages[None], parts.weighted[1:]])
    slopes = np.broadcast_to(parts.weights[:, None, None], own.shape)
    return _combined(task.mean, task.std, _sum(own), own, slopes, parts, batch)


def _combined(mean, std, advantages, parts, slopes, components, batch):
    past = np.zeros(batch.valid.shape)
    for k, earned in components.past.items():
        past = plus(past, times(slopes[k][..., None], earned))
    return Combined(mean, std, advantages, parts, np.where(batch.valid, past, 0.0))


def _sum(parts):
    with np.errstate(over="ignore"):
        return total(np.moveaxis(parts, 0, -1), axis=-1)


def _less_penalty(parts):
    """Unweighted values; the task's less the KL penalty in the reward, which has no weight."""
    values = parts.values.copy()
    task = np.where(np.isnan(values[0]), 0.0, values[0])
    values[0] = np.where(parts.known[0], plus(task, parts.penalty), np.nan)
    return values


def centred_on_mean(values, scored):
    """Deviations from the group's mean, (P, G); 0 where not scored."""
    statistics = group_statistics(values, scored, 0)
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(statistics.centred, statistics.exponent)


def _unscaled(values, scored, batch, eps):
    return lambda part: 0.0, 1.0


def _by_completion(values, scored, batch, eps):
    """(A - mean) / (std + eps) over all completions, sample std [TRL normalize_then_sum]."""
    return _batch_scale(values, scored.astype(np.float64), lambda std: std + eps)


def _by_token(values, scored, batch, eps):
    """(A - mean) / sqrt(var + eps^2) over all tokens: long answers weigh more [verl gdpo]."""
    weight = np.where(scored, batch.lengths, 0).astype(np.float64)
    return _batch_scale(values, weight, lambda std: np.hypot(std, eps))


def _batch_scale(values, weight, divisor):
    """Weighted mean, and one over the divisor that the weighted sample std gives; 0 in a tie."""
    size = np.sum(weight)

    def middle(part):
        return total(times(weight / size, part)) if size else 0.0

    statistics = group_statistics(values.reshape(1, -1), (weight > 0).reshape(1, -1), 0)
    if not statistics.spread[0, 0] > 0 or size <= 1:
        return middle, 0.0
    # In the unit of the statistics, where squares neither overflow nor vanish.
    times_each, centred = weight.reshape(-1), statistics.centred[0]
    with np.errstate(over="ignore", under="ignore"):
        centred = centred - np.sum(times_each * centred) / size
        spread = np.sqrt(np.sum(times_each * centred**2) / (size - 1))
        return middle, 1 / divisor(np.ldexp(spread, statistics.exponent[0, 0]))


BATCH_SCALES = {"none": _unscaled, "completion": _by_completion, "token": _by_token}


__all__ = [
    "BATCH_SCALES",
    "Combined",
    "Normalised",
    "centred_on_mean",
    "normalised_sum",
    "sum_of_normalised",
    "terms_added",
]
