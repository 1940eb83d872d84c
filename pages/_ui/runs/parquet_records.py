"""Records of a Parquet table with a row for each completion."""

import functools

from . import arrow_text
from .needed import NUMBERS, by_role, check_texts
from .parquet import first_rows, numbers, read_columns, text_column, texts_of_rows
from .records import Records
from .steps_of import steps_without_column, whole_steps

TEXTS = ("prompt", "completion")


def read_records(head, roles, block, most=None):
    """The records of one Parquet file; only the columns whose role asks for it are read.

    Parameters
    ----------
    head : Head
    roles : mapping from column to one of `records.ROLES`
    block : bool
        As in `Records`.
    most : int, optional
        Rows that are read, the first ones, or fewer; all by default.

    Raises
    ------
    RunFileError
    """
    source = head.source
    roles = {name: role for name, role in roles.items() if name in head.names}
    one = by_role(roles)
    check_texts(one, head)
    needed = [name for name, role in roles.items() if role in NUMBERS or name in one.values()]
    count = sum(head.detail.promise.rows)
    if most is None or not count:
        columns = read_columns(source, needed, head.detail)
    else:
        columns = first_rows(source, needed, head.detail, most)
        count = min((len(column) for column in columns.values()), default=0)
    read = functools.partial(_numbers, columns, source=source)
    prompts, completions = (_texts(columns, one.get(role), source) for role in TEXTS)
    step, notes = steps_without_column(source, count)
    if "step" in one:
        step, notes = whole_steps(read(one["step"]), one["step"], source), ()
    lengths = None if completions is None else arrow_text.lengths(completions)
    return Records(
        step=step,
        group=_groups(columns, one, prompts, source),
        block=block and "group" not in one,
        numbers={name: read(name) for name, role in roles.items() if role in NUMBERS},
        lengths=read(one["length"]) if "length" in one else lengths,
        unit="tokens" if "length" in one else "characters",
        texts=functools.partial(_texts_again, head, one),
        notes=notes,
    )


def _numbers(columns, name, source):
    return numbers(columns[name], name, source)


def _texts(columns, name, source):
    return None if name is None else text_column(columns[name], name, source)


def _groups(columns, one, prompts, source):
    """A number for each record: its group's id where there is one, else its prompt."""
    if "group" in one:
        return arrow_text.text_digests(text_column(columns[one["group"]], one["group"], source))
    return arrow_text.text_digests(prompts)


def _texts_again(head, one, rows):
    names = [one.get(role) for role in TEXTS]
    found = texts_of_rows(head.source, names, head.detail, rows)
    blank = [""] * len(rows)
    return list(zip(*(texts or blank for texts in found), strict=True))
