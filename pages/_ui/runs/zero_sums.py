"""Zero sums: whether numbers are advantages within groups, which sum to zero there.

Every trainer that writes its groups as blocks takes the mean of the group off the reward.
"""

import numpy as np

NEARLY_ALL = 0.95
TOLERANCE = 1e-3  # of the sizes summed: numbers may be rounded to four digits
TIED = 0.01  # of the largest number: what a tied group is left with in float32
CHANCE = 1e-4  # below it the sums are zero because they were made so
DRAWS = 64
PARENTS = 200  # blocks that are shuffled
FEW = 8  # times that all numbers are shuffled


def zero_sums(values, label):
    """Which groups hold numbers, and which of those sum to zero.

    Parameters
    ----------
    values : ndarray, (N,)
        NaN counts as 0.
    label : ndarray of int, (N,)
        The group of each, numbered from 0.

    Returns
    -------
    told, zero : ndarray of bool, (number of groups,)
        ``told`` is False for groups of one and groups that are all but zero.
    """
    values = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    sizes = np.bincount(label, weights=np.abs(values))
    largest = np.max(np.abs(values), initial=0.0)
    counts = np.bincount(label)
    told = (counts > 1) & (sizes > TIED * largest * np.sqrt(counts))
    return told, told & (np.abs(np.bincount(label, weights=values)) <= TOLERANCE * sizes)


def nearly_all(values, label):
    """Whether nearly all groups that tell sum to zero, and some do."""
    told, zero = zero_sums(values, label)
    return bool(zero.any()) and np.sum(zero) >= NEARLY_ALL * np.sum(told)


def by_chance(values, label, parent):
    """How likely it is that groups sum to zero in whatever order the numbers stood.

    Parameters
    ----------
    values, label
        As in `zero_sums`.
    parent : ndarray of int, (N,), rising
        Numbers are shuffled within each parent, which holds whole groups, the same for each.

    Returns
    -------
    float
        Of all parents whose groups sum to zero; at least ``(DRAWS + 1) ** -PARENTS``.
    """
    values = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    told, zero = zero_sums(values, label)
    first = np.unique(label, return_index=True)[1]
    of = parent[first]
    whole = np.bincount(of, weights=told & ~zero) == 0
    whole &= np.bincount(of, weights=told) > 0
    chosen = np.nonzero(whole)[0][:PARENTS]
    rows = np.isin(parent, chosen)
    values, label, parent = values[rows], label[rows], parent[rows]
    label = np.unique(label, return_inverse=True)[1]
    of = np.searchsorted(chosen, of[np.isin(of, chosen)])
    hits, random = np.ones(len(chosen)), np.random.default_rng(0)
    sizes = TOLERANCE * np.max(np.abs(values), initial=0.0)
    for _ in range(DRAWS):
        drawn = values[np.lexsort((random.random(len(values)), parent))]
        off = np.abs(np.bincount(label, weights=drawn)) > sizes
        hits += np.bincount(of, weights=off) == 0
    return float(np.prod(hits / (DRAWS + 1)))


def made_so(values, label):
    """Whether numbers sum to zero in nearly all groups, and would not in any other order."""
    if not nearly_all(values, label):
        return False
    count, random = int(np.sum(zero_sums(values, label)[1])), np.random.default_rng(0)
    hits = sum(int(np.sum(zero_sums(random.permutation(values), label)[1])) for _ in range(FEW))
    return ((1 + hits) / (1 + FEW * count)) ** count < CHANCE
