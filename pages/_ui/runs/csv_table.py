"""CSV: columns of any names, separated by commas, semicolons or tabs, cells quoted or not."""

import csv
import functools
import io
import math

import numpy as np

from .arrow_text import text_digest
from .bounds import check_bound
from .heads import Head
from .needed import NUMBERS, by_role, check_texts
from .records import Records, RunFileError
from .steps_of import LARGEST, steps_without_column
from .tokens_lines import BadLine, BadValue, Line, Skipped
from .tokens_values import shown

SEPARATORS = ",;\t|"
SUFFIXES = (".csv", ".tsv", ".txt", "")
CELL = 64_000_000  # characters
SAMPLE = 50  # rows that show what a column holds
csv.field_size_limit(CELL)


def csv_head(source, text):
    """What the first rows of a CSV file say.

    Parameters
    ----------
    source : Source
    text : str
        The start of the file.

    Raises
    ------
    RunFileError
        No table, or two columns of one name.
    """
    start = text.splitlines()[0]
    separator = max(SEPARATORS, key=lambda sign: _cells_of(start, sign))
    if source.suffix not in SUFFIXES or separator not in start:
        raise RunFileError(
            f"{source.name} is of no known kind. Open Parquet, JSON Lines, CSV or npz."
        )
    rows, _ = _sample(source, separator)
    names = tuple(rows[0])
    check_bound("columns", len(names), source.name)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise RunFileError(
            f"{source.name} has two columns called {shown(twice[0])}. Rename one and open it again."
        )
    if len(rows) < 2:
        raise RunFileError(f"{source.name} has a line of names and no rows below it.")
    cells = {name: [row[at] for row in rows[1:] if at < len(row)] for at, name in enumerate(names)}
    first = {name: next(iter(values), "") for name, values in cells.items()}
    kinds = {
        name: "number" if _mostly_numbers(values, separator) else "text"
        for name, values in cells.items()
    }
    return Head(source, "csv", names, first, (separator, kinds))


def _cells_of(line, separator):
    """How many cells a separator makes of a line; a quoted one may hold it."""
    try:
        return len(next(csv.reader([line], delimiter=separator)))
    except csv.Error:
        return 0


def csv_kinds(head):
    """(name, kind) of each column, by its first rows."""
    return tuple(head.detail[1].items())


def read_csv(head, roles):
    """The records of a CSV file; rows that cannot be read are left out with a note.

    Raises
    ------
    RunFileError
        No row can be read, or the file is no UTF-8 text.
    """
    one = by_role(roles)
    check_texts(one, head)
    source, (separator, _) = head.source, head.detail
    wanted = [name for name, role in roles.items() if role in NUMBERS]
    places, found, skipped = [], [], Skipped(source.name)
    for number, (line, cells) in enumerate(_rows(source, separator)):
        if number == 0:
            continue
        try:
            found.append(_row(head.names, cells, one, wanted, separator))
        except BadLine as error:
            skipped.add(Line(line, 0, 0), error)
            continue
        places.append(number)
        check_bound("rows", len(found), source.name)
    if not found:
        raise skipped.nothing_left("completion that can be read")
    steps, groups, lengths, numbers = zip(*found, strict=True)
    numbers = np.array(numbers, dtype=np.float64).reshape(len(found), len(wanted))
    step, notes = np.array(steps, dtype=np.int64), ()
    if "step" not in one:
        step, notes = steps_without_column(source, len(found))
    return Records(
        step=step,
        group=np.array(groups, dtype=np.uint64),
        block="group" not in one,
        numbers={name: numbers[:, at] for at, name in enumerate(wanted)},
        lengths=np.array(lengths, dtype=np.float64),
        unit="tokens" if "length" in one else "characters",
        texts=functools.partial(_texts, head, np.array(places), one),
        notes=(*skipped.notes(), *notes),
    )


def _row(names, cells, one, wanted, separator):
    """(step, group, length, numbers) of one row."""
    if len(cells) != len(names):
        raise BadLine(f"has {len(cells):,} cells; wanted {len(names):,}, as many as names above")
    record = dict(zip(names, cells, strict=True))
    step = _number(record, one["step"], separator) if "step" in one else 0
    if not (step == np.floor(step) and abs(step) <= LARGEST):
        raise BadValue(f"has {shown(record[one['step']])} for the step; wanted a whole number")
    if "length" in one:
        length = _number(record, one["length"], separator)
    else:
        length = len(record[one["completion"]]) if "completion" in one else math.nan
    group = text_digest(record[one["group"] if "group" in one else one["prompt"]])
    return int(step), group, length, [_number(record, name, separator) for name in wanted]


def _number(record, name, separator):
    try:
        return _as_number(record[name], separator)
    except ValueError:
        raise BadValue(f"has {shown(record[name])} for {name!r}; wanted a number") from None


# What other programs write for numbers: a blank, and the words for true and false.
WORDS = {"": math.nan, "null": math.nan, "none": math.nan, "na": math.nan}
WORDS |= {"true": 1.0, "false": 0.0}


def _as_number(cell, separator):
    cell = cell.strip()
    if cell.lower() in WORDS:
        return WORDS[cell.lower()]
    # Where semicolons separate, a comma is the point of a number.
    return float(cell.replace(",", ".") if separator == ";" else cell)


def _mostly_numbers(cells, separator):
    """Whether a column is one of numbers, a slip here and there aside."""
    given = [cell for cell in cells if cell.strip()]
    return 2 * sum(_is_number(cell, separator) for cell in given) >= len(given)


def _is_number(cell, separator):
    try:
        _as_number(cell, separator)
    except ValueError:
        return False
    return True


def _rows(source, separator):
    """(number of its last line, cells) of each row that is not blank."""
    with source.open() as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=separator)
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
        except UnicodeDecodeError:
            raise RunFileError(
                f"{source.name}: below line {reader.line_num} it is not UTF-8 text. "
                "Save it as CSV UTF-8."
            ) from None
        except csv.Error as error:
            raise RunFileError(
                f"{source.name}: line {reader.line_num} cannot be read as CSV ({error})."
            ) from None


def _sample(source, separator):
    rows = _rows(source, separator)
    found = [cells for _, (_, cells) in zip(range(SAMPLE + 1), rows, strict=False)]
    rows.close()
    return found, separator


def _texts(head, places, one, rows):
    wanted = set(places[np.asarray(rows)].tolist())
    last = max(wanted, default=0)
    kept = {}
    for number, (_, cells) in enumerate(_rows(head.source, head.detail[0])):
        if number in wanted:
            kept[number] = dict(zip(head.names, cells, strict=True))
        if number >= last:
            break
    names = (one.get("prompt"), one.get("completion"))
    return [
        tuple(kept[number].get(name, "") for name in names)
        for number in places[np.asarray(rows)].tolist()
    ]
