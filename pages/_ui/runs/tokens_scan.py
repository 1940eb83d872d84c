"""Records of JSON Lines with a sequence of tokens a line: scanned once, tokens read on demand."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from .bounds import check_bound
from .records import Records
from .tokens_lines import BadLine, Skipped, line_again, lines, record_of
from .tokens_values import token_row, unusable


@dataclass(frozen=True, eq=False, kw_only=True)
class Tokens:
    """Per-token arrays of a record, (L,) each, and which positions are its own tokens."""

    arrays: Mapping[str, np.ndarray]
    valid: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class Sequence:
    """What is kept of a record: numbers only, no row of tokens.

    ``remarks`` are sentences about this record, counted over the file.
    """

    step: int
    group: int
    numbers: Mapping[str, float]
    length: float
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How the records of one trainer are taken apart.

    ``sequence(record, step)`` gives a `Sequence`, ``tokens(record)`` a `Tokens` or None and
    ``texts(record)`` a pair of prompt and completion; each may raise `BadLine`.
    """

    wanted: str
    sequence: Callable[[Mapping, int], Sequence]
    tokens: Callable[[Mapping], Tokens | None]
    texts: Callable[[Mapping], tuple[str, str]]


def read_sequences(source, layout, step, notes=()):
    """The `Records` of a file with a sequence a line; lines that cannot be read are left out.

    Parameters
    ----------
    source : Source
    layout : Layout
    step : int
        Of records that name none.
    notes : tuple of str
        What holds for every file of this layout.

    Raises
    ------
    RunFileError
        No line at all could be read, or a line is too long.
    """
    places, kept, skipped = [], [], Skipped(source.name)
    for line, raw in lines(source):
        try:
            record = record_of(raw)
            sequence = layout.sequence(record, step)
        except BadLine as error:
            skipped.add(line, error)
            continue
        places.append(line)
        kept.append(sequence)
        check_bound("rows", len(kept), source.name)
    if not kept:
        raise skipped.nothing_left(layout.wanted)
    names = dict.fromkeys(name for sequence in kept for name in sequence.numbers)
    return Records(
        step=np.array([sequence.step for sequence in kept], dtype=np.int64),
        group=np.array([sequence.group for sequence in kept], dtype=np.uint64),
        block=False,
        numbers={
            name: np.array([sequence.numbers.get(name, np.nan) for sequence in kept])
            for name in names
        },
        lengths=np.array([sequence.length for sequence in kept]),
        unit="tokens",
        texts=functools.partial(_texts, source, layout, places),
        tokens=functools.partial(_tokens, source, layout, places, kept),
        notes=(*skipped.notes(), *_remarks(source, places, kept), *notes),
    )


def _remarks(source, places, kept):
    """A note for each remark: how many records it holds for, and where the first one is."""
    found = {}
    for line, sequence in zip(places, kept, strict=True):
        for remark in sequence.remarks:
            found.setdefault(remark, []).append(line.number)
    return tuple(
        f"{source.name}: {remark} ({len(numbers):,} of {len(kept):,} records, the first on line "
        f"{numbers[0]})."
        for remark, numbers in found.items()
    )


def _texts(source, layout, places, rows):
    return [layout.texts(record_of(line_again(source, places[row]))) for row in rows]


def _tokens(source, layout, places, kept, row):
    found = layout.tokens(record_of(line_again(source, places[row])))
    if found is None or unusable(found.arrays, found.valid):
        return None
    return token_row(kept[row].step, found.arrays, found.valid)


def remark_on(tokens):
    """Why the tokens of a record are not shown, as `Sequence.remarks`."""
    broken = tokens and unusable(tokens.arrays, tokens.valid)
    if not broken:
        return ()
    return (f"a trained token has no usable {broken[0]}, so that the tokens are not shown",)
