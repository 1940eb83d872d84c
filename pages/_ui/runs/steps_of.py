"""The step of each record: from its column, else from the file's name."""

import re

import numpy as np

from .records import RolesNeeded

LARGEST = 2**53
NUMBER = re.compile(r"\d+")


def whole_steps(values, column, source):
    """Steps as whole numbers, (N,).

    Raises
    ------
    RolesNeeded
        A step that is missing, or no whole number: its row.
    """
    with np.errstate(invalid="ignore"):
        wrong = ~((values == np.floor(values)) & (np.abs(values) <= LARGEST))
    if np.any(wrong):
        row = int(np.argmax(wrong))
        came = "missing" if np.isnan(values[row]) else f"{values[row]:g}"
        raise RolesNeeded(
            f"{source.name}: the step in column {column!r}, row {row} is {came}; "
            "wanted a whole number. Choose another column for the step."
        )
    return values.astype(np.int64)


def step_of_name(source):
    """The step that a file's name ends in, or None: completions_00010.parquet is 10."""
    stem = source.base.rpartition(".")[0] or source.base
    found = NUMBER.findall(stem)
    step = int(found[-1][-18:]) if found else 0
    return step if found and step <= LARGEST else None


def steps_without_column(source, count):
    """(steps, notes) of a file that has no column for them."""
    step = step_of_name(source)
    if step is not None:
        return np.full(count, step, dtype=np.int64), ()
    note = f"{source.name} names no step, neither in a column nor in its name: step 0 is assumed."
    return np.zeros(count, dtype=np.int64), (note,)
