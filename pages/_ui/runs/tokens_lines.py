"""JSON Lines with a record a line: read one line at a time, and any line again on demand."""

import json
from dataclasses import dataclass

from .bounds import BOUNDS
from .records import RolesNeeded, RunFileError


@dataclass(frozen=True)
class Line:
    """Where a line lies: its number from 1, its first byte, its bytes."""

    number: int
    start: int
    size: int


class BadLine(ValueError):
    """What is wrong with one line, as the end of a sentence."""


class BadValue(BadLine):
    """A value of one line that does not fit the role of its column."""


@dataclass
class Skipped:
    """Lines that were left out, told in one note or, if nothing else is left, as an error."""

    name: str
    count: int = 0
    first: str = ""
    values: int = 0  # how many of them are `BadValue`

    def add(self, line, problem):
        """Count a line that is left out."""
        self.count += 1
        self.values += isinstance(problem, BadValue)
        self.first = self.first or f"line {line.number} {problem}"

    def notes(self):
        """What was left out, as `Records.notes`."""
        if not self.count:
            return ()
        more = f"; {self.count - 1:,} more lines like it" if self.count > 1 else ""
        return (f"{self.name}: {self.first}{more}. What cannot be read was left out.",)

    def nothing_left(self, wanted):
        """The error for a file of which no line could be read."""
        why = f"{self.first}" if self.count else "it is empty"
        kind = RolesNeeded if self.values else RunFileError
        return kind(f"{self.name} holds no {wanted}: {why}.")


def lines(source):
    """The lines of a file that are not blank, as pairs of `Line` and bytes.

    Raises
    ------
    RunFileError
        A line longer than ``BOUNDS["line bytes"]``; no more than that is read of it.
    """
    most, start = BOUNDS["line bytes"][0], 0
    with source.open() as stream:
        number = 0
        while raw := stream.readline(most + 1):
            number += 1
            if len(raw) > most:
                raise RunFileError(
                    f"{source.name}, line {number}: longer than {most:,} bytes, the most that is "
                    "read. Write one record a line."
                )
            if raw.strip():
                yield Line(number, start, len(raw)), raw
            start += len(raw)


def line_again(source, line):
    """The bytes of one line, read again; of the whole file no more than that is kept."""
    with source.open() as stream:
        stream.seek(line.start)
        return stream.read(line.size)


def record_of(raw):
    """The table in one line of JSON; the bare words NaN and Infinity are numbers.

    Raises
    ------
    BadLine
    """
    record = document_of(raw)
    if not isinstance(record, dict):
        raise BadLine("is no table of names and values")
    return record


def document_of(raw):
    """Whatever a piece of JSON holds.

    Raises
    ------
    BadLine
        As the end of a sentence: 'is not JSON (column 7)'.
    """
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadLine(f"is not UTF-8 text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        if error.lineno > 1:
            spot = f"line {error.lineno}, column {error.colno}"
        else:
            spot = f"column {error.colno}"
        text = error.doc.strip()
        whole = text[:1] not in ("{", "[") or text[-1:] in ("}", "]")
        cut = "" if whole else ": it seems to be cut off"
        raise BadLine(f"is not JSON ({spot}){cut}") from None
    except RecursionError:
        raise BadLine("is nested too deeply") from None
    except ValueError:
        raise BadLine("holds a number with too many digits") from None
