"""The arrays of one batch as the stages see them: checked, and 0 wherever nothing counts."""

from dataclasses import dataclass

import numpy as np

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
    """

    rewards: np.ndarray
    present: np.ndarray
    valid: np.ndarray
    logp_new: np.ndarray
    logp_old: np.ndarray
    logp_ref: np.ndarray
    advantages: np.ndarray | None = None

    @property
    def dtype(self):
        """float32 if all of its floating arrays are, else float64."""
        return self.logp_new.dtype

    @property
    def lengths(self):
        """Valid tokens of each completion, shape (P, G)."""
        return np.sum(self.valid, axis=-1)


def prepare(*, rewards, mask, present, logp_new, logp_old, logp_ref, advantages=None):
    """Select what counts. Selection comes before any arithmetic: 0 * inf would be NaN."""
    valid = mask & present[..., None]  # (P, G, L)
    optional = () if advantages is None else (advantages,)
    dtype = floating(rewards, logp_new, logp_old, logp_ref, *optional)

    def select(array):
        return np.where(valid, array, array.dtype.type(0)).astype(dtype, copy=False)

    return Batch(
        rewards=np.where(present, rewards, np.nan).astype(dtype, copy=False),
        present=present,
        valid=valid,
        logp_new=select(logp_new),
        logp_old=select(logp_old),
        logp_ref=select(logp_ref),
        advantages=None
        if advantages is None
        else np.where(present, advantages, 0).astype(dtype, copy=False),
    )
