"""Batches with other lengths."""

import numpy as np

from .arrays import ARRAYS, check_shape
from .inputs import checked_array, checked_number, refuse
from .scenario import resize
from .variants import Number

LENGTH = Number(low=0, high=100_000, integer=True)
_WIDTH = Number(low=1, high=100_000, integer=True)


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
