"""Stage *advantage*: each completion judged against its own group."""

from dataclasses import dataclass

import numpy as np

from .advantage_rows import (
    centred,
    length_weighted,
    over_std,
    uncompared,
)
from .numerics import cast, plus, times, total
from .process import step_advantages
from .returns import returns_to_go


@dataclass(frozen=True, eq=False)
class Advantages:
    """Mean and std of each group (P,), advantages (P, G) and per token (P, G, L).

    ``parts`` (C, P, G) are what each component of a combined score has in the advantages,
    None where there are no components or the advantages do not come from the scores.
    ``steps`` (P, G, S) are normalised step rewards, None without process supervision.
    """

    mean: np.ndarray
    std: np.ndarray
    advantages: np.ndarray
    token_advantages: np.ndarray
    parts: np.ndarray | None = None
    steps: np.ndarray | None = None


def per_token(advantages, valid):
    """Give every valid token its completion's advantage; shape (P, G, L)."""
    return np.where(valid, advantages[..., None], advantages.dtype.type(0))


def _result(batch, mean, std, advantages):
    advantages = cast(advantages, batch.dtype)
    return Advantages(mean, std, advantages, per_token(advantages, batch.valid))


def judged(batch, scores, normalise):
    """Scores, or the components that they are combined from, under one normaliser."""
    if scores.combine is None:
        whole = normalise(scores.scores, scores.scored)
        return _result(batch, whole.mean, whole.std, whole.advantages)
    whole = scores.combine(batch, normalise)
    advantages = cast(whole.advantages, batch.dtype)
    past = cast(whole.past, batch.dtype)
    token_advantages = plus(per_token(advantages, batch.valid), -past)
    return Advantages(whole.mean, whole.std, advantages, token_advantages, whole.parts)


def mean_std(batch, scores, *, ddof, eps, floor=0.0, alone="zero"):
    """``(r - mean) / (std + eps)`` within each group [DeepSeekMath, section 4.1.2]."""
    return judged(batch, scores, over_std(ddof, eps, floor, alone))


def mean_only(batch, scores, *, alone="zero"):
    """``r - mean`` within each group [Dr. GRPO, arXiv 2503.20783]."""
    return judged(batch, scores, centred(alone))


def opo(batch, scores, *, alone):
    """``r - mean weighted by length`` [OPO, arXiv 2505.23585]."""
    return judged(batch, scores, length_weighted(batch.lengths, alone))


def returns(batch, scores, *, gamma):
    """The reward at its last token and rewards per token, each summed from a token on.

    No baseline: REINFORCE++ whitens the result over the batch [arXiv 2501.03262].
    """
    read = uncompared(scores.scores, scores.scored)
    last = batch.valid & (np.cumsum(batch.valid, axis=-1) == batch.lengths[..., None])
    earned = np.where(last, scores.scores[..., None], 0.0)
    if batch.token_rewards is not None and scores.combine is None:
        earned = plus(earned, batch.token_rewards)
    to_go = cast(returns_to_go(earned, batch.valid, gamma), batch.dtype)
    first = np.argmax(batch.valid, axis=-1)[..., None]
    whole = np.where(batch.valid.any(axis=-1), np.take_along_axis(to_go, first, axis=-1)[..., 0], 0)
    return Advantages(read.mean, read.std, cast(whole, batch.dtype), to_go)


def given(batch, scores):
    """Advantages as they came; mean and std (population) of the scores are for reading."""
    read = centred()(scores.scores, scores.scored)
    return _result(batch, read.mean, read.std, batch.advantages)


def given_per_token(batch, scores):
    """Advantages of single tokens as they came; a completion's is their mean."""
    read = centred()(scores.scores, scores.scored)
    count = np.maximum(batch.lengths, 1)
    mean = cast(total(batch.token_advantages, axis=-1) / count, batch.dtype)
    return Advantages(read.mean, read.std, mean, batch.token_advantages)


def process(batch, scores, *, ddof, eps, over, outcome_weight):
    """Normalised step rewards summed from each token on [DeepSeekMath, section 4.1.3].

    The outcome's advantage, by the same formula, is added with ``outcome_weight``. The
    completion's advantage is the sum over all of its steps, which its first token carries.
    """
    outcome = judged(batch, scores, over_std(ddof, eps))
    steps, to_go = step_advantages(
        batch.step_rewards, batch.step_ends, batch.valid, ddof=ddof, eps=eps, over=over
    )
    weight = batch.dtype.type(outcome_weight)
    summed = cast(np.sum(steps, axis=-1), batch.dtype)
    return Advantages(
        outcome.mean,
        outcome.std,
        plus(summed, times(weight, outcome.advantages)),
        plus(cast(to_go, batch.dtype), times(weight, outcome.token_advantages)),
        steps=steps,
    )
