"""From what a caller hands over to arrays of `ARRAYS`, or to a sentence that names the place."""

import reprlib
from collections.abc import Sequence

import numpy as np

from .array_rules import LARGEST_SEED, LOGP_ROUNDING, Rule
from .array_table import ARRAYS, OWN_AXES, ArraySpec, OwnAxis
from .errors import ScenarioError, place


def as_array(name, value, spec):
    """Turn nested lists into an array of a row's type and number of axes.

    Parameters
    ----------
    name : str
        What to call it in messages.
    value : array-like
        float32 arrays stay float32; None in a list is NaN.
    spec : ArraySpec

    Returns
    -------
    ndarray
        A copy; the caller's array is never shared.

    Raises
    ------
    ScenarioError
        Ragged rows, text, complex numbers, or another number of axes.
    """
    try:
        array = _numbers(np.array(value))
    except (TypeError, ValueError, OverflowError):
        _refuse_ragged(name, value, spec)
        raise _no_number(name, value, spec) from None
    if array.ndim != len(spec.axes):
        axes = ", ".join(spec.axes)
        raise ScenarioError(
            f"{name} has {array.ndim} axes, shape {array.shape}; expected {len(spec.axes)}"
            f" axes ({axes})",
            field=spec.key,
        )
    if spec.kind == "float":
        return array
    _refuse(name, array, (array != 0) & (array != 1), spec)
    return array.astype(bool)


def _numbers(array):
    """The array as float32 if it is that, else as float64; None becomes NaN."""
    if array.dtype == np.float32:
        return array
    # NumPy would read "1.5" in a list that also holds None, but nowhere else.
    cells = array.flat if array.dtype.kind == "O" else ()
    if array.dtype.kind not in "biufO" or any(isinstance(cell, (str, bytes)) for cell in cells):
        raise TypeError(array.dtype)
    with np.errstate(over="ignore"):
        return array.astype(np.float64)


def _no_number(name, value, spec):
    """The error for a value that is not made of numbers, naming its first such cell."""
    where, cell = _first_non_number(value, len(spec.axes)) or ((), value)
    spot = f" at {place(where, spec.axes)}" if where else ""
    return ScenarioError(
        f"{name}{spot} is {reprlib.repr(cell)}; wanted {spec.rule.words}",
        field=spec.key,
        where=where,
    )


def _first_non_number(value, depth, where=()):
    if _is_row(value) and len(where) < depth:
        found = (_first_non_number(row, depth, (*where, i)) for i, row in enumerate(value))
        return next((hit for hit in found if hit), None)
    is_number = not _is_row(value) and np.asarray(value).dtype.kind in "biuf"
    return None if value is None or is_number else (where, value)


def _refuse_ragged(name, value, spec, where=()):
    """Name the first row whose length differs from its sisters'; NumPy only says that one does."""
    if isinstance(value, np.ndarray) or not _is_row(value) or len(where) > len(spec.axes):
        return
    rows = [_is_row(row) for row in value]
    if not any(rows):
        return
    lengths = [len(row) if is_row else None for row, is_row in zip(value, rows, strict=True)]
    for index, length in enumerate(lengths):
        if length != lengths[0]:
            spot = place((*where, index), spec.axes) or f"row {index}"
            found = "a single value" if length is None else f"{length} values"
            wanted = "a single value" if lengths[0] is None else f"{lengths[0]}"
            raise ScenarioError(
                f"{name}: {spot} has {found}; expected {wanted} like the first row",
                field=spec.key,
                where=(*where, index),
            )
    for index, row in enumerate(value):
        _refuse_ragged(name, row, spec, (*where, index))


def _is_row(value):
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def check_shape(name, array, shape, like, spec):
    """Refuse an array whose shape is not the one its batch has."""
    if array.shape != shape:
        raise ScenarioError(
            f"{name} has shape {array.shape}; expected {shape} like {like}", field=spec.key
        )


def own_sizes(arrays):
    """Length of each axis of `OWN_AXES` that some array has; of the first one that has it."""
    sizes = {}
    for key, array in arrays.items():
        for axis, size in zip(ARRAYS[key].axes, array.shape, strict=True):
            if axis in OWN_AXES:
                sizes.setdefault(axis, size)
    return sizes


def check_own_axes(arrays):
    """Refuse axes of their own that are unlike or unusable, and distributions that are all 0."""
    first = {}
    for key, array in arrays.items():
        for axis, size in zip(ARRAYS[key].axes, array.shape, strict=True):
            if axis not in OWN_AXES:
                continue
            own, (leader, wanted) = OWN_AXES[axis], first.setdefault(axis, (key, size))
            if not own.low <= size <= own.high:
                raise ScenarioError(
                    f"{key} has {size} {own.noun}; wanted {own.low} to {own.high}", field=key
                )
            if size != wanted:
                raise ScenarioError(
                    f"{key} has {size} {own.noun}; expected {wanted} like {leader}", field=key
                )
        _refuse_nothing(key, array)


# Arrays of chances of which some has to be above 0, along their last axis.
DISTRIBUTIONS = ("dist_new", "dist_ref", "reward_chances")


def _refuse_nothing(key, array):
    """Refuse a distribution that is 0 everywhere."""
    empty = ~np.any(array, axis=-1) if key in DISTRIBUTIONS else np.zeros(())
    if np.any(empty):
        where = tuple(int(i) for i in np.argwhere(empty)[0])
        spot = f" at {place(where, ARRAYS[key].axes)}" if where else ""
        noun = OWN_AXES[ARRAYS[key].axes[-1]].noun
        raise ScenarioError(
            f"{key}{spot} is 0 at all {noun}; wanted at least one above 0", field=key, where=where
        )


def check_cells(name, array, spec, counts):
    """Refuse the first cell that counts and breaks its row's rule, naming its place."""
    _refuse(name, array, counts & ~spec.rule.holds(array), spec)


def _refuse(name, array, bad, spec):
    if np.any(bad):
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        spot = f" at {place(where, spec.axes)}" if where else ""
        raise ScenarioError(
            f"{name}{spot} is {array[where].item()!r}; wanted {spec.rule.words}",
            field=spec.key,
            where=where,
        )


__all__ = [
    "ARRAYS",
    "DISTRIBUTIONS",
    "LARGEST_SEED",
    "LOGP_ROUNDING",
    "OWN_AXES",
    "ArraySpec",
    "OwnAxis",
    "Rule",
    "as_array",
    "check_cells",
    "check_own_axes",
    "check_shape",
    "own_sizes",
]
