"""Which column of a table holds advantages, where no name says so: they sum to zero in groups."""

from dataclasses import replace

import numpy as np

from .needed import by_role
from .records import RunFileError, Source
from .zero_sums import made_so

ROWS = 2000  # that are looked at
BYTES = 4_000_000  # of a text that are looked at


def with_advantage(columns, head, read):
    """The columns, one of which is taken for the advantage if its numbers are.

    Parameters
    ----------
    columns : tuple of Column
        With guesses by name.
    head : Head
    read : callable
        ``read(head, roles)`` gives `Records` of the first rows.

    Returns
    -------
    tuple of Column
    """
    one = by_role({column.name: column.role for column in columns})
    terms = [column.name for column in columns if column.role == "term"]
    numbers = [column.name for column in columns if column.role in ("term", "measure")]
    if "advantage" in one or len(numbers) < 2 or not {"prompt", "group"} & set(one):
        return columns
    roles = {name: role for role, name in one.items() if role in ("step", "group", "prompt")}
    try:
        records = read(head, roles | dict.fromkeys(numbers, "measure"))
    except RunFileError:  # said when the file is read
        return columns
    pairs = np.stack([records.step.astype(np.uint64), records.group], axis=1)
    label = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    found = next((name for name in numbers if made_so(records.numbers[name], label)), None)
    if found is None or not set(terms) - {found}:
        return columns
    return tuple(
        replace(column, role="advantage") if column.name == found else column for column in columns
    )


def start_of(source):
    """The first lines of a text as a file of its own."""
    with source.open() as file:
        found, size = [], 0
        while len(found) <= ROWS and size < BYTES and (line := file.readline(BYTES)):
            found.append(line)
            size += len(line)
    data = b"".join(found)
    return Source(source.name, len(data), lambda: data)
