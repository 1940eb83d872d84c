"""Survey: what a first look at the files says: which format, which columns, what lies beside."""

import re
from dataclasses import dataclass, replace

from . import log, vocabulary
from .archive import in_order
from .bounds import check_bound
from .first_look import head_of
from .first_values import together
from .format_table import TABLE, may_be
from .formats import format_of
from .heads import Column, Format, Head, folder_of
from .needed import is_lacking
from .parquet import first_row
from .records import RunFileError, Source
from .roles import left_out_columns, total_alone_is_a_term, with_examples

NOTES = 6  # files that could not be read are named one by one up to here


@dataclass(frozen=True, eq=False, kw_only=True)
class Survey:
    """What was found before anything was read.

    Attributes
    ----------
    name : str
        The folder or the file that was opened.
    format : heads.Format
        Of the records; has ``key`` and ``label``.
    sources : tuple of Source
        The files that hold the records.
    columns : tuple of heads.Column
        With guessed roles.
    log_source : Source or None
        The trainer's log beside them.
    vocabulary_source : Source or None
        A file that says what the ids of tokens read.
    heads, attached : tuple of heads.Head
        What was seen of the records, and of per-token files to be joined to them.
    notes : tuple of str
    """

    name: str
    format: Format
    sources: tuple[Source, ...]
    columns: tuple[Column, ...]
    log_source: Source | None
    vocabulary_source: Source | None
    heads: tuple[Head, ...]
    attached: tuple[Head, ...]
    notes: tuple[str, ...]


def look(sources):
    """Look at files without reading them whole.

    Parameters
    ----------
    sources : sequence of Source

    Returns
    -------
    Survey
        All of its columns asked where their names say too little to open the run.

    Raises
    ------
    RunFileError
        Nothing that can be read as records of a run.
    """
    vocabularies = [source for source in sources if source.base == vocabulary.FILE]
    heads, problems = _heads([source for source in sources if source not in vocabularies])
    logs = [head.source for head in heads if log.is_log(head)]
    by_format, unknown = _by_format([head for head in heads if head.source not in logs])
    problems += [f"{head.source.name} is of no known format and was left out." for head in unknown]
    if not by_format:
        raise RunFileError(_nothing(problems, logs))
    name = _name(sources)
    main = max(by_format, key=lambda key: _weight(*by_format[key], name))
    row, chosen = by_format.pop(main)
    attached = () if row.attaches else _attached(by_format)
    columns = _columns(row, chosen)
    notes = [*_left_out(by_format), *left_out_columns(columns), *first_few(problems)]
    survey = Survey(
        name=name,
        format=row,
        sources=tuple(head.source for head in chosen),
        columns=columns,
        log_source=_nearest(logs, chosen[0].source.name),
        vocabulary_source=_nearest(vocabularies, chosen[0].source.name),
        heads=tuple(chosen),
        attached=attached,
        notes=tuple(notes),
    )
    roles = {column.name: column.role for column in columns}
    return asking_all(survey) if is_lacking(roles, not row.own_groups) else survey


def asking_all(survey):
    """The survey with every column asked: where `records.RolesNeeded` was said, any may be it."""
    return replace(survey, columns=tuple(replace(column, asked=True) for column in survey.columns))


def _by_format(heads):
    """((key, home) -> (format, heads), heads of none): of any names only if none is known."""
    found, unknown = {}, []
    rows = [format_of(head) for head in heads]
    if not any(rows):
        rows = [TABLE if may_be(head) else None for head in heads]
    for head, row in zip(heads, rows, strict=True):
        if row is None:
            unknown.append(head)
        else:
            found.setdefault((row.key, row.home(head.source)), (row, []))[1].append(head)
    return found, unknown


def _heads(sources):
    """(heads, sentences about what cannot be read)."""
    heads, problems = [], []
    for source in sources:
        try:
            heads.append(head_of(source))
        except RunFileError as error:
            problems.append(str(error))
    return heads, problems


def _nothing(problems, logs):
    if problems:
        return problems[0] if len(problems) == 1 else f"{problems[0]} {_others(len(problems) - 1)}"
    if not logs:
        return "Nothing that was opened holds completions. Open the folder of a run."
    return (
        f"{logs[0].name} is a log without completions. Open it together with the files of the "
        "completions, in TRL those of the folder completions."
    )


def _others(count):
    return f"{count:,} more files could not be read either."


def _weight(row, heads, name):
    """What makes one of several runs the one that is read, the largest first.

    A trainer's files before tables of any names, completions before their tokens, training
    before evaluation, more files, more bytes.
    """
    training = not EVALUATION.search(heads[0].source.name.removeprefix(f"{name}/"))
    size = sum(head.source.size for head in heads)
    return (not row.general, not row.attaches, training, len(heads), size)


EVALUATION = re.compile(r"(^|[/_.-])(val|valid|validation|eval|evaluation|test)([/_.-]|$)", re.I)


def _attached(by_format):
    """The per-token files, all of one format; taken out of what was found."""
    tokens = [key for key, (row, _) in by_format.items() if row.attaches]
    found = [head for key in tokens for head in by_format.pop(key)[1]]
    return tuple(found)


def _left_out(by_format):
    """Sentences about records that are not read beside the main ones."""
    return [
        f"{_counted(heads)} ({row.label}) {'was' if len(heads) == 1 else 'were'} left out: one "
        "run is read at a time. Open that folder by itself."
        for row, heads in by_format.values()
    ]


def _counted(heads):
    first = heads[0].source.name
    return first if len(heads) == 1 else f"{first} and {len(heads) - 1:,} like it"


def first_few(problems):
    """The first sentences, and how many more there are."""
    if len(problems) <= NOTES:
        return problems
    return [*problems[: NOTES - 1], _others(len(problems) - NOTES + 1)]


def _columns(row, heads):
    """The columns of all files, each once, as the first file has it that knows it."""
    if not row.attaches and all(head.kind == "lines" or head.detail == "list" for head in heads):
        heads = [together(heads)]
    found, seen = {}, set()
    for head in heads:
        if head.names not in seen:
            seen.add(head.names)
            for column in row.columns(head):
                found.setdefault(column.name, column)
    check_bound("columns", len(found), heads[0].source.name)
    columns = total_alone_is_a_term(tuple(found.values()))
    return with_examples(columns, _first_row(heads[0])) if heads[0].kind == "parquet" else columns


def _first_row(head):
    try:
        return first_row(head.source, head.detail)
    except RunFileError:  # said when the file is read
        return {}


def _nearest(sources, name):
    """The file that lies closest to the records; of checkpoints the last one."""
    if not sources:
        return None
    return max(sources, key=lambda source: (_shared(source.name, name), in_order(source.name)))


def _shared(one, other):
    """How many folders two names have in common."""
    pairs = zip(folder_of(one).split("/"), folder_of(other).split("/"), strict=False)
    count = 0
    for mine, yours in pairs:
        if mine != yours:
            break
        count += 1
    return count


def _name(sources):
    """The folder that all files lie in, else the first file."""
    first = sources[0].name.replace("\\", "/")
    top = first.split("/")[0]
    together = all(source.name.replace("\\", "/").split("/")[0] == top for source in sources)
    return top if together else first
