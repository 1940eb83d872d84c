"""How large an example may be, whichever way it comes in: link, file, paste or size input.

Within these sizes every page answers in seconds on a small server.
"""

from grpo_core import ScenarioError
from grpo_core.scenario import SIZES

LARGEST = {"P": 4_096, "G": 512, "L": 32_768}
CELLS = 200_000  # tokens of one example, padding included
SHOWN_CELLS = 50_000  # of arrays that a page shows as code; more code stalls a browser
TABLE_COLUMNS = 2_000  # of an editable table; each costs time whether it is seen or not
_NOUNS = {axis: name.split()[0] for axis, name in SIZES.items()}


class BeyondLimits(ScenarioError):
    """An example that is too large; the message is for the page."""


def check_sizes(sizes):
    """Refuse sizes beyond the limits, before anything of that size is made.

    Parameters
    ----------
    sizes : mapping from axis to int
        Any of P, G, L; other axes have limits of their own.

    Raises
    ------
    BeyondLimits
        One sentence with the numbers that came and those that are allowed.
    """
    sizes = {axis: size for axis, size in sizes.items() if axis in LARGEST}
    cells = 1
    for axis, size in sizes.items():
        cells *= size
        if size > LARGEST[axis]:
            raise BeyondLimits(
                f"The example is too large: it has {size:,} {SIZES[axis]}; at most "
                f"{LARGEST[axis]:,} are read.",
                field=axis,
            )
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
