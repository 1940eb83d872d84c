"""Masks, and tables of columns of equal length.

Completions of one prompt begin alike, and then their log-probabilities agree to the last bit.
A table therefore holds each distinct row once, behind a map from cells to rows, where that is
shorter. The map is the step from each row to the next: 0 as long as new rows follow, and 0
again as long as an earlier stretch is repeated.
"""

import numpy as np

from grpo_core import ARRAYS

from .columns import plan_column, read_column, write_column
from .integers import Damaged, Writer, plan_integers, read_integers, write_integers

MOST_REFERENCES = 15  # what the head of a column has room for


def write_flags(writer, flags):
    """A mask: how many flags at the end of each row are off, or else the lengths of runs."""
    rows = flags.reshape(-1, flags.shape[-1])
    lengths = rows.sum(axis=1)
    if np.array_equal(rows, np.arange(rows.shape[1]) < lengths[:, None]):
        writer.byte(0)
        write_integers(writer, plan_integers(rows.shape[1] - lengths))
        return
    turns = np.flatnonzero(np.diff(flags.ravel().astype(np.int8)))
    writer.byte(2 | int(flags.flat[0]))
    writer.count(turns.size)
    write_integers(writer, plan_integers(np.diff(turns, prepend=-1) - 1))


def read_flags(reader, shape):
    how = reader.byte()
    if how == 0:
        lengths = shape[-1] - read_integers(reader, int(np.prod(shape[:-1])))
        if lengths.min() < 0 or lengths.max() > shape[-1]:
            raise Damaged("a row is too long")
        return np.arange(shape[-1]) < lengths.reshape(*shape[:-1], 1)
    size = int(np.prod(shape))
    many = reader.count()
    if how not in (2, 3) or many >= size:
        raise Damaged("unknown way of writing a mask")
    gaps = read_integers(reader, many)
    if many and (gaps.min() < 0 or gaps.max() >= size):
        raise Damaged("a run is too long")
    turns = np.cumsum(gaps + 1)
    if many and turns[-1] >= size:
        raise Damaged("a run is too long")
    flips = np.zeros(size, dtype=np.int64)
    flips[turns] = 1
    return ((np.cumsum(flips) + (how & 1)) % 2 == 1).reshape(shape)


def write_table(writer, columns, near, numbers):
    """Columns of equal length, each distinct row once if that is shorter."""
    size = numbers.size if numbers is not None else next(iter(columns.values())).size
    parts = []
    for rows, cells in _row_maps(columns, near, numbers, size):
        part = Writer()
        write_integers(part, plan_integers(np.diff(rows, prepend=-1) - 1))
        if numbers is not None:
            write_integers(part, plan_integers(numbers[cells]))
        references = [values[cells] for values in near.values()]
        for key, values in columns.items():
            column = plan_column(values[cells], references[:MOST_REFERENCES], ARRAYS[key].default)
            write_column(part, column)
            references.append(values[cells])
        parts.append(part)
    writer.append(min(parts, key=lambda part: part.cost) if len(parts) > 1 else parts[0])


def read_table(reader, size, dtypes, near, texts):
    rows = np.cumsum(read_integers(reader, size) + 1) - 1
    if size and not 0 <= rows.min() <= rows.max() < size:
        raise Damaged("a cell has no row")
    cells = np.zeros(int(rows.max(initial=-1)) + 1, dtype=np.int64)
    cells[rows[::-1]] = np.arange(size)[::-1]
    numbers = read_integers(reader, cells.size)[rows] if texts else None
    references = [values[cells] for values in near.values()]
    columns = {}
    for key, dtype in dtypes.items():
        values = read_column(
            reader, cells.size, dtype, references[:MOST_REFERENCES], ARRAYS[key].default
        )
        references.append(values)
        columns[key] = values[rows]
    return columns, numbers


def _row_maps(columns, near, numbers, size):
    """Maps from cells to rows, and the first cell of each row: one each, and merged."""
    keys = [array.view(f"u{array.dtype.itemsize}") for array in (*columns.values(), *near.values())]
    if numbers is not None:
        keys.append(numbers)
    mixed = np.zeros(size, dtype=np.uint64)
    for key in keys:
        mixed = (mixed ^ key.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    _, first, rows = np.unique(mixed, return_index=True, return_inverse=True)
    share = first.size / max(size, 1)
    alike = share < 0.95 and all(np.array_equal(key, key[first[rows]]) for key in keys)
    if alike:
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        yield rank[rows], first[order]
    if near or not alike or share > 0.7:
        yield np.arange(size), np.arange(size)
