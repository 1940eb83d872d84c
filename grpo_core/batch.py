"""The arrays of one batch as the stages see them: checked, and 0 wherever nothing counts."""

from dataclasses import dataclass

import numpy as np

from .arrays import ARRAYS
from .numerics import floating


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """Arrays of one update, P prompts x G completions x L token positions.

    Every per-token array is 0 where ``valid`` is False, so that no later multiplication
    meets the NaN or infinity that may stand in padding.

    Attributes
    ----------
    rewards : ndarray, shape (P, G)
        NaN is a missing score.
    present : ndarray of bool, shape (P, G)
        False for the filler of groups of unequal size.
    valid : ndarray of bool, shape (P, G, L)
        Token positions that count.
    logp_new, logp_old, logp_ref : ndarray, shape (P, G, L)
        Natural log-probabilities of the sampled tokens.
    advantages : ndarray, shape (P, G), or None
        Advantages given from outside.
    step_ends, step_rewards : ndarray, shape (P, G, S), or None
        NaN where there is no step.
    term_values : ndarray, shape (P, G, K), or None
        Columns that shaping terms read.
    token_rewards, token_ids, token_advantages : ndarray, shape (P, G, L), or None
    logp_sampler, sampler_weights, entropy : ndarray, shape (P, G, L), or None
    truncated : ndarray, shape (P, G), or None
    terms : tuple of TermValues
    """

    rewards: np.ndarray
    present: np.ndarray
    valid: np.ndarray
    logp_new: np.ndarray
    logp_old: np.ndarray
    logp_ref: np.ndarray
    advantages: np.ndarray | None = None
    step_ends: np.ndarray | None = None
    step_rewards: np.ndarray | None = None
    term_values: np.ndarray | None = None
    token_rewards: np.ndarray | None = None
    token_ids: np.ndarray | None = None
    token_advantages: np.ndarray | None = None
    logp_sampler: np.ndarray | None = None
    sampler_weights: np.ndarray | None = None
    entropy: np.ndarray | None = None
    truncated: np.ndarray | None = None
    terms: tuple = ()

    @property
    def dtype(self):
        """float32 if all of its floating arrays are, else float64."""
        return self.logp_new.dtype

    @property
    def lengths(self):
        """Valid tokens of each completion, shape (P, G)."""
        return np.sum(self.valid, axis=-1)


def prepare(*, rewards, mask, present, logp_new, logp_old, logp_ref, **optional):
    """Select what counts. Selection comes before any arithmetic: 0 * inf would be NaN."""
    valid = mask & present[..., None]  # (P, G, L)
    given = {key: array for key, array in optional.items() if array is not None}
    own = () if "advantages" not in given else (given["advantages"],)
    dtype = floating(rewards, logp_new, logp_old, logp_ref, *own)

    def select(array, counts=valid, nothing=0.0):
        return np.where(counts, array, array.dtype.type(nothing)).astype(dtype, copy=False)

    counting = {"PG": present, "PGL": valid}

    return Batch(
        rewards=np.where(present, rewards, np.nan).astype(dtype, copy=False),
        present=present,
        valid=valid,
        logp_new=select(logp_new),
        logp_old=select(logp_old),
        logp_ref=select(logp_ref),
        **{
            key: select(
                array, counting.get(ARRAYS[key].axes, present[..., None]), ARRAYS[key].default
            )
            for key, array in given.items()
        },
    )
