"""Batches made of lengths, and batches with other lengths."""

import numpy as np

from .arrays import ARRAYS, check_shape
from .inputs import checked_array, checked_number, refuse
from .scenario import build_scenario, resize
from .stages import DEFAULT_CONVENTIONS
from .variants import Number

LENGTH = Number(low=0, high=100_000, integer=True)
_REWARD = Number(low=-1e6, high=1e6)
_WIDTH = Number(low=1, high=100_000, integer=True)


def length_scenario(lengths, rewards, *, width=None, conventions=DEFAULT_CONVENTIONS):
    """A batch that is known by its lengths and rewards alone, just sampled (ratio 1).

    Parameters
    ----------
    lengths, rewards : array-like, shape (P, G)
        NaN lengths are completions that are not there.
    width : int, optional
        Token positions L, what a completion may have at most; default: the longest length.
    conventions : Conventions

    Returns
    -------
    Scenario
    """
    lengths = checked_array("lengths", lengths, "PG", LENGTH, blank=True)
    rewards = checked_array("rewards", rewards, "PG", _REWARD, blank=True)
    present = ~np.isnan(lengths)
    lengths = np.where(present, lengths, 0)
    longest = max(int(np.max(lengths)), 1)
    width = longest if width is None else checked_number("width", width, _WIDTH)
    refuse("lengths", lengths, lengths > width, "PG", f"at most the width {width}")
    mask = np.arange(width) < lengths[..., None]
    return build_scenario(
        rewards=rewards,
        mask=mask,
        present=present,
        logp_new=np.full(mask.shape, -1.0),
        conventions=conventions,
    )


def with_lengths(scenario, lengths, *, width=None):
    """The scenario with completions of other lengths.

    Parameters
    ----------
    scenario : Scenario
    lengths : array-like of int, shape (P, G)
        A completion that has so many tokens already keeps its mask; another counts its first
        ones. NaN leaves a completion as it is.
    width : int, optional
        Token positions; default: as they are, or the longest length if that is more.

    Returns
    -------
    Scenario
    """
    lengths = checked_array("lengths", lengths, "PG", LENGTH, blank=True)
    present = np.sum(scenario["mask"], axis=2)
    check_shape("lengths", lengths, present.shape, "rewards", ARRAYS["rewards"])
    wanted = np.where(np.isnan(lengths), present, lengths).astype(int)
    least = max(scenario.sizes["L"], int(np.max(wanted)))
    width = least if width is None else checked_number("width", width, _WIDTH)
    refuse("lengths", wanted, wanted > width, "PG", f"at most the width {width}")
    cut = scenario["mask"][..., :width]
    own = np.pad(cut, ((0, 0), (0, 0), (0, width - cut.shape[2])))
    kept = np.sum(own, axis=2) == wanted
    mask = np.where(kept[..., None], own, np.arange(width) < wanted[..., None])
    return resize(scenario, L=width).replace(mask=mask)
