"""Chunks: whether a block of rows of one prompt is several groups, told by logged advantages.

A prompt that stands next to itself in the data makes a block of twice the size. Where all blocks
are such, their sizes do not tell: but the advantages of a group sum to zero, and those of a part
of it do not.
"""

import numpy as np

from .zero_sums import CHANCE, NEARLY_ALL, by_chance, nearly_all, zero_sums

CLOSE = 0.003
DOUBT = (
    "The {usual} rows of a prompt may also be {parts} groups of {size}, one after the other: the "
    "logged advantages do not tell. They were kept together."
)
UNKNOWN = (
    "Without logged advantages, a prompt drawn twice in a row cannot be told from one group of "
    "{usual}: rows of a prompt were kept together."
)


def group_size(block, sizes, usual, advantages):
    """The size of the groups that blocks of a usual size are made of.

    Parameters
    ----------
    block : ndarray of int, (N,), rising
        The block of each row.
    sizes : ndarray of int
        Of each block.
    usual : int
        The size of most blocks.
    advantages : ndarray or None, (N,)
        As logged; NaN where none was.

    Returns
    -------
    (int, str)
        A divisor of `usual`, and a note where it could be another one, else ''.
    """
    smaller = [size for size in range(2, usual // 2 + 1) if usual % size == 0]
    if not smaller:
        return usual, ""
    if advantages is None or np.all(np.isnan(advantages)):
        return usual, UNKNOWN.format(usual=usual)
    rows = (sizes % usual == 0)[block]
    block, advantages = np.unique(block[rows], return_inverse=True)[1], advantages[rows]
    within = np.arange(len(block)) - np.searchsorted(block, block)
    doubt = ""
    for size in smaller:
        chunk = np.cumsum(within % size == 0) - 1
        if not nearly_all(advantages, chunk) or _made_together(advantages, block):
            continue
        if by_chance(advantages, chunk, block) < CHANCE:
            return size, ""
        doubt = doubt or DOUBT.format(usual=usual, parts=usual // size, size=size)
    return usual, doubt


def _made_together(advantages, block):
    """Whether each block was divided by its own standard deviation: its squares then say so."""
    told, _ = zero_sums(advantages, block)
    squares = np.bincount(block, weights=np.nan_to_num(advantages) ** 2)
    counts = np.bincount(block) - 1
    close = told & (np.abs(squares - counts) <= CLOSE * counts)
    return np.sum(close) >= NEARLY_ALL * np.sum(told)
