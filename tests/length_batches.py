"""Batches made of lengths and rewards alone, for tests."""

import numpy as np

from grpo_core import build_scenario
from grpo_core.stages import DEFAULT_CONVENTIONS


def length_scenario(lengths, rewards, *, width=None, conventions=DEFAULT_CONVENTIONS):
    """A batch that is known by its lengths and rewards alone, just sampled (ratio 1).

    Parameters
    ----------
    lengths, rewards : array-like, shape (P, G)
        NaN or None lengths are completions that are not there.
    width : int, optional
        Token positions L, what a completion may have at most; default: the longest length.
    conventions : Conventions

    Returns
    -------
    Scenario
    """
    lengths = np.array(lengths, dtype=float)
    present = ~np.isnan(lengths)
    width = max(int(np.nanmax(lengths)), 1) if width is None else width
    mask = np.arange(width) < np.where(present, lengths, 0)[..., None]
    return build_scenario(
        rewards=np.array(rewards, dtype=float),
        mask=mask,
        present=present,
        logp_new=np.full(mask.shape, -1.0),
        conventions=conventions,
    )
