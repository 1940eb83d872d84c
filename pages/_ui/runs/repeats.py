"""Repeats: a batch that was used several times stands in several files and counts once."""

from dataclasses import dataclass

import numpy as np

# Rows as different as this cannot agree in prompt, length and every number by chance; with fewer
# different rows the texts are compared, too.
TELLING = 32
# An overlap of rows that are nearly all alike may be chance: a policy that always says the same.
DIFFERENT = 3
STARTS = 64  # places tried for the beginning of an overlap
FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Repeats:
    """Which rows say again what an earlier one said.

    ``kept`` (N,): the row that holds each record, itself unless it is a repeat. ``batches``:
    how many whole batches are repeats; ``rows``: how many rows of others.
    """

    kept: np.ndarray
    batches: int
    rows: int


def repeats(rows):
    """Find the repeated batches of a run.

    Dumps of rollouts alone are written once for each batch: none of theirs is a repeat, also
    where an evaluation gives the same answers as the one before.

    Parameters
    ----------
    rows : rows.Rows

    Returns
    -------
    Repeats
    """
    marks = _marks(rows)
    if not (rows.block or any(records.tokens for records in rows.files)):
        return Repeats(np.arange(len(marks)), 0, 0)
    kept = np.arange(len(marks))
    seen = {}  # marks of a batch: its rows, the last step that used it
    batches, overlaps, last, steps = 0, 0, None, (None, None)
    for step, batch in _batches(rows):
        steps = steps if step == steps[1] else (steps[1], step)
        key = marks[batch].tobytes()
        same, used = seen.get(key, (None, None))
        if same is not None and used in steps and _alike(rows, marks, same, batch):
            kept[batch] = kept[same]
            batches += 1
        else:
            same = batch
            overlap = 0 if last is None else _overlap(rows, marks, last, batch)
            kept[batch[:overlap]] = kept[last[len(last) - overlap :]] if overlap else ()
            overlaps += overlap
        seen[key] = (same, step)
        last = batch
    return Repeats(kept, batches, overlaps)


def _marks(rows):
    """A number for each row, (N,) uint64, made of its prompt, its length and its numbers."""
    marks = rows.group.copy()
    lengths = [] if rows.lengths is None else [rows.lengths]
    for values in (*lengths, *rows.numbers.values()):
        marks = (marks ^ np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)) * FACTOR
        marks ^= marks >> np.uint64(29)
    return marks


def _batches(rows):
    """(step, rows) of each file's part of each step, in the order of steps."""
    order = np.lexsort((np.arange(len(rows.step)), rows.file, rows.step))
    step, file = rows.step[order], rows.file[order]
    ends = np.nonzero((step[1:] != step[:-1]) | (file[1:] != file[:-1]))[0] + 1
    for batch in np.split(order, ends):
        yield int(rows.step[batch[0]]), batch


def _alike(rows, marks, one, other):
    """Whether two batches with the same marks have the same texts."""
    if len(np.unique(marks[one])) >= TELLING:
        return True
    return rows.texts(one) == rows.texts(other)


def _overlap(rows, marks, before, batch):
    """How many rows at the start of a batch are those at the end of the one before."""
    starts = np.nonzero(marks[before] == marks[batch[0]])[0][:STARTS]
    for start in starts:
        size = len(before) - int(start)
        if size >= len(batch) or not np.array_equal(marks[before[start:]], marks[batch[:size]]):
            continue
        if len(np.unique(marks[batch[:size]])) < DIFFERENT:
            continue
        if rows.texts(before[start:]) == rows.texts(batch[:size]):
            return size
    return 0
