"""How large an example may be, whichever way it comes in: link, file, paste or size input.

Within these sizes every page answers in seconds on a small server.
"""

import math

from grpo_core import ARRAYS, ScenarioError
from grpo_core.arrays import OWN_AXES
from grpo_core.scenario import SIZES

LARGEST = {"P": 4_096, "G": 512, "L": 32_768, "S": OWN_AXES["S"].high, "K": OWN_AXES["K"].high}
CELLS = 200_000  # of one array, such as tokens, padding included
SHOWN_CELLS = 50_000  # of arrays that a page shows as code; more code stalls a browser
TABLE_COLUMNS = 2_000  # of an editable table; each costs time whether it is seen or not
_NAMES = {**SIZES, **{axis: own.noun for axis, own in OWN_AXES.items()}}
_NOUNS = {**_NAMES, "G": "completions"}
_CUBES = [axes for axes in dict.fromkeys(spec.axes for spec in ARRAYS.values()) if len(axes) == 3]


class BeyondLimits(ScenarioError):
    """An example that is too large; the message is for the page."""


def check_sizes(sizes):
    """Refuse sizes beyond the limits, before anything of that size is made.

    Parameters
    ----------
    sizes : mapping from axis to int
        Any of P, G, L, S, K; other axes have limits of their own.

    Raises
    ------
    BeyondLimits
        One sentence with the numbers that came and those that are allowed.
    """
    for axis, most in LARGEST.items():
        if sizes.get(axis, 0) > most:
            raise BeyondLimits(
                f"The example is too large: it has {sizes[axis]:,} {_NAMES[axis]}; at most "
                f"{most:,} are read.",
                field=axis,
            )
    for axes in _CUBES:
        _check_cells({axis: sizes[axis] for axis in axes if axis in sizes})


def _check_cells(sizes):
    cells = math.prod(sizes.values())
    if cells > CELLS:
        product = " x ".join(f"{size:,} {_NOUNS[axis]}" for axis, size in sizes.items())
        raise BeyondLimits(
            f"The example is too large: {product} are {cells:,} cells; at most {CELLS:,} are read."
        )


def check_table(rows, columns):
    """Refuse a pasted table that would be too large once its rows are equally long."""
    if rows * columns > CELLS:
        raise BeyondLimits(
            f"The table is too large: {rows:,} rows x {columns:,} columns are "
            f"{rows * columns:,} cells; at most {CELLS:,} are read."
        )


def check_lists(value, axes):
    """As `check_sizes`, for nested lists whose first rows say how large they are."""
    sizes = {}
    for axis in axes:
        if not isinstance(value, list):
            break
        sizes[axis] = len(value)
        value = value[0] if value else None
    check_sizes(sizes)


def within(sizes):
    """Whether sizes are within the limits."""
    try:
        check_sizes(sizes)
    except BeyondLimits:
        return False
    return True
