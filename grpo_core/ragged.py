"""Ragged lists, such as the steps of each completion, as rectangular arrays."""

import reprlib
import sys
from contextlib import suppress
from itertools import chain

import numpy as np

from .errors import ScenarioError, place

_LARGEST = sys.float_info.max


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
        entries = list(chain.from_iterable(completions))
    except TypeError:
        raise ScenarioError(
            f"{name} is not a list of numbers for each completion of each prompt", field=name
        ) from None
    flat = _numbers(name, entries, sizes, lengths)
    if (len(sizes), *set(sizes)) != shape:
        raise ScenarioError(
            f"{name} has {len(sizes)} prompts with {sorted(set(sizes))} completions; expected "
            f"{shape[0]} with {shape[1]} like mask, and numbers in each",
            field=name,
        )
    there = np.arange(max(lengths, default=0)) < lengths[:, None]  # (P G, S)
    values = np.full(there.shape, np.nan)
    values[there] = flat
    return values.reshape(*shape, -1), there.reshape(*shape, -1)


def _numbers(name, entries, sizes, lengths):
    """All entries as float64, or a ScenarioError that names the first which is no number."""
    known = {kind for kind in set(map(type, entries)) if _is_number(kind)}
    if len(known) == len(set(map(type, entries))):
        with suppress(OverflowError):
            return np.array(entries, dtype=np.float64)
    at = next(i for i, entry in enumerate(entries) if not _fits(entry))
    completion = int(np.searchsorted(np.cumsum(lengths), at, side="right"))
    prompt = int(np.searchsorted(np.cumsum(sizes), completion, side="right"))
    where = (prompt, completion - sum(sizes[:prompt]), at - int(np.sum(lengths[:completion])))
    raise ScenarioError(
        f"{name} at {place(where, 'PGS')} is {reprlib.repr(entries[at])}; wanted a number",
        field=name,
        where=where,
    )


def _is_number(kind):
    return issubclass(kind, (int, float, np.number, np.bool_, type(None))) and not issubclass(
        kind, np.complexfloating
    )


def _fits(entry):
    return _is_number(type(entry)) and not (isinstance(entry, int) and abs(entry) > _LARGEST)
