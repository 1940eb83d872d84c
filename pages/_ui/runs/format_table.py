"""Tables of any names: a row or record for each completion, and what each column is, is asked."""

from dataclasses import replace

from .advantage_guess import BYTES, ROWS, start_of, with_advantage
from .csv_table import csv_kinds, read_csv
from .heads import Format
from .json_records import Way, read_json
from .needed import by_role
from .parquet import kinds
from .parquet_records import read_records
from .plain_text import kind_of
from .records import RunFileError
from .roles import guessed, with_examples

WAY = Way(block=True)


def _json_kinds(head):
    return tuple((name, kind_of(head.first[name])) for name in head.names)


# kind: (names and kinds of its columns, reader)
READERS = {
    "csv": (csv_kinds, read_csv),
    "parquet": (
        lambda head: kinds(head.detail.schema),
        lambda head, roles: read_records(head, roles, block=True),
    ),
    "lines": (_json_kinds, lambda head, roles: read_json(head, roles, WAY)),
    "json": (_json_kinds, lambda head, roles: read_json(head, roles, WAY)),
}


def fits(head):
    """A CSV or Parquet table is taken as it is; JSON has to look like completions."""
    if head.kind in ("csv", "parquet"):
        return True
    if head.kind == "json" and head.detail != "list":
        return False
    roles = {column.role for column in guessed(_json_kinds(head))}
    return {"prompt", "completion"} <= roles


def may_be(head):
    """Whether JSON that nothing else fits holds texts and numbers, whatever their names."""
    if head.kind != "lines" and head.detail != "list":
        return False
    return {"text", "number"} <= {kind for _, kind in _json_kinds(head)}


def columns(head):
    """Columns with guesses, every one of them asked."""
    found = guessed(READERS[head.kind][0](head), other="measure")
    if "term" not in by_role({column.name: column.role for column in found}):
        found = guessed(READERS[head.kind][0](head), other="term")
    found = with_advantage(found, head, _read_first)
    return with_examples(tuple(replace(column, asked=True) for column in found), head.first)


def _read_first(head, roles):
    """The records of the first rows of a table."""
    if head.kind == "parquet":
        return read_records(head, roles, block=True, most=ROWS)
    if head.kind == "json" and head.source.size > BYTES:
        raise RunFileError(f"{head.source.name} is one document, too large to be looked at twice.")
    source = head.source if head.kind == "json" else start_of(head.source)
    return read(replace(head, source=source), roles)


def read(head, roles):
    """The records of one table."""
    return READERS[head.kind][1](head, roles)


TABLE = Format(
    key="table",
    label="table of completions",
    kinds=tuple(READERS),
    fits=fits,
    columns=columns,
    read=read,
    general=True,
)
