"""Records of JSON, one for each completion: a line each, or the items of one list."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .arrow_text import text_digest
from .bounds import check_bound
from .first_values import Late
from .log import parsed
from .needed import NUMBERS, by_role, check_texts
from .plain_text import kind_of, text_of
from .records import Records, RunFileError
from .roles import guessed, with_examples
from .steps_of import step_of_name, steps_without_column
from .tokens_lines import BadLine, BadValue, Line, Skipped, line_again, lines, record_of
from .tokens_values import alone, scalar, step_of


@dataclass(frozen=True)
class Way:
    """Where trainers differ: what a group's id says, what a length is, whether groups are blocks.

    ``group(value)`` gives the part of an id that the group shares; ``length(record)`` tokens of
    the completion, None where only characters are known.
    """

    group: Callable = text_of
    length: Callable | None = None
    block: bool = False


def json_columns(head, other="measure", ask=True, known=None):
    """Columns of the first records: those of `known`, (kind, role) by name, and guesses."""
    known = known or {}
    kinds = [
        (name, known[name][0] if name in known else kind_of(head.first[name]))
        for name in head.names
    ]
    return with_examples(guessed(kinds, other=other, ask=ask, known=known), head.first)


def read_json(head, roles, way):
    """The records of a file; those that cannot be read are left out with a note.

    Parameters
    ----------
    head : Head
    roles : mapping from column to one of `records.ROLES`
    way : Way

    Raises
    ------
    RunFileError
        No record at all can be read.
    """
    one = by_role(roles)
    check_texts(one, head)
    wanted = [name for name, role in roles.items() if role in NUMBERS]
    named = step_of_name(head.source) or 0
    places, found, skipped, late = [], [], Skipped(head.source.name), Late(head, roles)
    for place, raw in _raw(head):
        try:
            record = _record(raw)
            late.see(record)
            found.append(_row(record, one, wanted, way, named))
        except BadLine as error:
            skipped.add(place, error)
            continue
        places.append(place)
        check_bound("rows", len(found), head.source.name)
    if not found:
        raise skipped.nothing_left("completion that can be read")
    steps, groups, lengths, numbers = zip(*found, strict=True)
    tokens = way.length or "length" in one
    numbers = np.array(numbers, dtype=np.float64).reshape(len(found), len(wanted))
    notes = () if "step" in one else steps_without_column(head.source, 0)[1]
    return Records(
        step=np.array(steps, dtype=np.int64),
        group=np.array(groups, dtype=np.uint64),
        block=way.block and "group" not in one,
        numbers={name: numbers[:, at] for at, name in enumerate(wanted)},
        lengths=np.array(lengths, dtype=np.float64),
        unit="tokens" if tokens else "characters",
        texts=functools.partial(_texts, head, places, one),
        notes=(*skipped.notes(), *late.notes(), *notes),
    )


def _row(record, one, wanted, way, named):
    """(step, group, length, numbers) of one record."""
    if "prompt" in one and one["prompt"] not in record:
        raise BadValue(f"has no {one['prompt']!r}")
    if "group" in one and record.get(one["group"]) is not None:
        group = text_digest(way.group(alone(record[one["group"]])))
    else:
        group = text_digest(text_of(record.get(one.get("prompt"))))
    step = (
        step_of(_with_number(record, one["step"]), one["step"], named) if "step" in one else named
    )
    return step, group, _length(record, one, way), [number_of(record, name) for name in wanted]


def number_of(record, name):
    """A number of a record, infinities kept: they are told of when the run is put together."""
    value = alone(record.get(name))
    return value if isinstance(value, float) else scalar(record, name)


def _with_number(record, name):
    """The record with a step that stands in quotes as a number."""
    value = alone(record.get(name))
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 16:
        return {name: int(value)}
    return record


def _length(record, one, way):
    if "length" in one:
        return scalar(record, one["length"])
    if way.length:
        return way.length(record)
    if one.get("completion") not in record:
        return math.nan
    return float(len(text_of(record[one["completion"]])))


def _raw(head):
    """(place, line or record) of each record."""
    if head.kind == "lines":
        yield from lines(head.source)
        return
    document = parsed(head.source)
    if not isinstance(document, list):
        raise RunFileError(f"{head.source.name} holds no list of records.")
    for number, record in enumerate(document, start=1):
        yield Line(number, number - 1, 0), record


def _record(raw):
    if isinstance(raw, bytes):
        return record_of(raw)
    if not isinstance(raw, dict):
        raise BadLine("is no table of names and values")
    return raw


def _texts(head, places, one, rows):
    if head.kind == "lines":
        read = (record_of(line_again(head.source, places[row])) for row in rows)
    else:
        document = parsed(head.source)
        read = (document[places[row].start] for row in rows)
    names = (one.get("prompt"), one.get("completion"))
    return [tuple(text_of(record.get(name)) for name in names) for record in read]
