"""Rows: the records of all files of a run, one below the other."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .bounds import check_bound
from .plain_text import whole
from .records import RunFileError


@dataclass(frozen=True, eq=False)
class Rows:
    """All records of a run, N of them, in the order of its files.

    Attributes
    ----------
    files : tuple of Records
    names : tuple of str
        The name of each of the files.
    file, row : ndarray of int, (N,)
        Where each record is read again: which of the files, which of its records.
    step, group, numbers, lengths, unit, block
        As in `Records`.
    """

    files: tuple
    names: tuple[str, ...]
    file: np.ndarray
    row: np.ndarray
    step: np.ndarray
    group: np.ndarray
    numbers: Mapping[str, np.ndarray]
    lengths: np.ndarray | None
    unit: str
    block: bool

    def texts(self, rows):
        """(prompt, completion) of each of the rows, read again; ('', '') for a row of -1."""
        found = [("", "")] * len(rows)
        for file, places in self.by_file(rows):
            read = self.files[file].texts(self.row[np.asarray(rows)[places]])
            for place, pair in zip(places, read, strict=True):
                found[place] = (whole(pair[0]), whole(pair[1]))
        return tuple(found)

    def by_file(self, rows):
        """(file, places among `rows`) for each file that holds some of the rows."""
        rows = np.asarray(rows, dtype=np.int64)
        present = np.nonzero(rows >= 0)[0]
        of = self.file[rows[present]]
        return [(int(file), present[of == file]) for file in np.unique(of)]


def gathered(files, names, title):
    """The records of several files as one.

    Parameters
    ----------
    files : sequence of Records
    names : sequence of str
    title : str
        What the run is called, for messages.

    Returns
    -------
    Rows

    Raises
    ------
    RunFileError
        No record at all, or more than `bounds.BOUNDS` allows.
    """
    counts = [len(records.step) for records in files]
    total = sum(counts)
    if not total:
        raise RunFileError(f"{title} holds no completion. Open files that have rows.")
    columns = list(dict.fromkeys(name for records in files for name in records.numbers))
    check_bound("rows", total, title)
    check_bound("columns", len(columns), title)
    check_bound("numbers", total * len(columns), title)
    return Rows(
        files=tuple(files),
        names=tuple(names),
        file=np.repeat(np.arange(len(files)), counts),
        row=np.concatenate([np.arange(count) for count in counts]),
        step=np.concatenate([records.step for records in files]),
        group=np.concatenate([records.group for records in files]),
        numbers={name: _column(files, counts, name) for name in columns},
        lengths=_lengths(files, counts),
        unit=_unit(files),
        block=files[0].block,
    )


def _column(files, counts, name):
    return np.concatenate(
        [
            records.numbers.get(name, np.full(count, np.nan))
            for records, count in zip(files, counts, strict=True)
        ]
    )


def _unit(files):
    return "tokens" if all(records.unit == "tokens" for records in files) else "characters"


def _lengths(files, counts):
    """Lengths in one unit: tokens where all files count them, else characters."""
    unit = _unit(files)
    known = [records.lengths is not None and records.unit == unit for records in files]
    if not any(known):
        return None
    return np.concatenate(
        [
            records.lengths if has else np.full(count, np.nan)
            for records, count, has in zip(files, counts, known, strict=True)
        ]
    )
