"""Heads: what the first look at a file gives, and the row by which a format is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .records import Records, Source

# How a file is built, whoever wrote it: found from its first bytes, never from its name alone.
KINDS = ("parquet", "lines", "json", "csv", "npz")


@dataclass(frozen=True)
class Column:
    """One column of a run's files.

    ``kind`` is 'number', 'text', 'other' or, where no value was seen, 'blank'; ``role`` is one of
    `records.ROLES`, as guessed; ``asked`` says that only a person can know it; ``example`` is a
    value as text, shortened.
    """

    name: str
    kind: str
    role: str
    asked: bool = False
    example: str = ""


@dataclass(frozen=True, eq=False)
class Head:
    """What was seen of a file without reading it all.

    Attributes
    ----------
    source : Source
    kind : str
        One of `KINDS`.
    names : tuple of str
        Columns of the table, keys of the first record, or names of the arrays.
    first : mapping
        The first record ('lines', 'csv', a list in 'json') or the whole document ('json', when
        it is a table); empty for the others.
    detail : object
        What the reader of this kind keeps for later: Parquet's footer, the delimiter of a CSV;
        'list' where a JSON document is a list of records.
    """

    source: Source
    kind: str
    names: tuple[str, ...]
    first: Mapping[str, object] = field(default_factory=dict)
    detail: object = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Format:
    """How one trainer writes its records; `formats.FORMATS` is the table of them.

    Attributes
    ----------
    key, label : str
    kinds : tuple of str
        The `KINDS` that it can come as.
    fits : callable
        ``fits(head)``: whether a file of one of these kinds is of this format.
    columns : callable
        ``columns(head)`` gives a `Column` for each column, ``Records.numbers`` among them.
    read : callable
        ``read(head, roles)`` gives the `Records` of a file. ``roles`` has every name of
        ``columns``, as guessed or as the reader of the page chose.
    home : callable
        ``home(source)``: the folder that holds the whole run; two homes are two runs.
    attaches : bool
        True for per-token files, which are joined to completions that a table beside them holds.
    general : bool
        True for tables of any names, which give way to those of a trainer.
    own_groups : bool
        True where no column has to tell the groups: the reader finds them by tokens.
    stand_in : str
        The column that stands in for rewards which the files do not hold; '' where they do.
    """

    key: str
    label: str
    kinds: tuple[str, ...]
    fits: Callable[[Head], bool]
    columns: Callable[[Head], tuple[Column, ...]]
    read: Callable[[Head, Mapping[str, str]], Records]
    home: Callable[[Source], str] = lambda source: folder_of(source.name)
    attaches: bool = False
    general: bool = False
    own_groups: bool = False
    stand_in: str = ""


def folder_of(name):
    """The folder part of a name within what was opened, '' at the top."""
    return name.replace("\\", "/").rpartition("/")[0]
