"""Ragged lists, such as the steps of each completion, as rectangular arrays."""

from itertools import chain

import numpy as np

from .errors import ScenarioError


def padded(name, nested, shape):
    """Lists per completion as one array, filled up with NaN on the right.

    Parameters
    ----------
    name : str
        What to call it in messages.
    nested : nested lists of numbers, [prompt][completion][entry]
        None is NaN.
    shape : (int, int)
        Prompts and completions that there must be.

    Returns
    -------
    values : ndarray of float64, shape (P, G, S)
        S is the length of the longest list.
    there : ndarray of bool, shape (P, G, S)
        Which cells hold an entry.

    Raises
    ------
    ScenarioError
        Other sizes, or something that is not a number.
    """
    try:
        sizes = list(map(len, nested))
        completions = list(chain.from_iterable(nested))
        lengths = np.array(list(map(len, completions)), dtype=np.intp)
        flat = np.array(list(chain.from_iterable(completions)), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ScenarioError(
            f"{name} is not a list of numbers for each completion of each prompt", field=name
        ) from None
    if (len(sizes), *set(sizes)) != shape or flat.ndim != 1:
        raise ScenarioError(
            f"{name} has {len(sizes)} prompts with {sorted(set(sizes))} completions; expected "
            f"{shape[0]} with {shape[1]} like mask, and numbers in each",
            field=name,
        )
    there = np.arange(max(lengths, default=0)) < lengths[:, None]  # (P G, S)
    values = np.full(there.shape, np.nan)
    values[there] = flat
    return values.reshape(*shape, -1), there.reshape(*shape, -1)
