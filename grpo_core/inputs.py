"""What the closed forms are asked with: checked, and refused by name and place."""

import reprlib

import numpy as np

from .errors import ScenarioError

_AXES = {"P": "prompt", "G": "completion", "K": "answer", "M": "position", "S": "entry"}


def checked_number(name, value, domain):
    """A plain number of a `Number` domain, or a ScenarioError that says what is wanted."""
    value = domain.coerce(value)
    if value not in domain:
        raise ScenarioError(f"{name} is {reprlib.repr(value)}; wanted {domain}", field=name)
    return value


def checked_array(name, values, axes, domain, *, blank=False):
    """A float64 array all of whose cells lie in a `Number` domain.

    Parameters
    ----------
    name : str
        What to call it in messages.
    values : array-like
        None in a list is NaN.
    axes : str
        A letter for each axis, e.g. "PK".
    domain : Number
    blank : bool
        Whether NaN may stand in a cell.

    Raises
    ------
    ScenarioError
        Text, ragged rows, another number of axes, an empty axis, or a cell outside the
        domain; the message names the first such cell.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO" or any(isinstance(cell, str) for cell in array.flat):
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ScenarioError(
            f"{name} is {reprlib.repr(values)}; wanted rows of numbers, all of one length",
            field=name,
        ) from None
    if array.ndim != len(axes) or array.size == 0:
        spelled = " x ".join(f"{_AXES[axis]}s" for axis in axes).replace("ys", "ies")
        raise ScenarioError(
            f"{name} has shape {array.shape}; wanted numbers for {spelled}, at least one",
            field=name,
        )
    inside = (array > domain.low if domain.exclusive else array >= domain.low) & (
        array <= domain.high
    )  # False for NaN
    if domain.integer:
        inside &= np.trunc(array) == array
    refuse(name, array, ~inside & ~(blank & np.isnan(array)), axes, str(domain))
    return array


def refuse(name, array, bad, axes, words):
    """Raise for the first cell that is bad, naming its place, what is there and what is wanted."""
    if np.any(bad):
        where = tuple(int(index) for index in np.argwhere(bad)[0])
        spot = ", ".join(f"{_AXES[axis]} {i}" for axis, i in zip(axes, where, strict=False))
        raise ScenarioError(
            f"{name} at {spot} is {array[where].item()!r}; wanted {words}", field=name, where=where
        )
