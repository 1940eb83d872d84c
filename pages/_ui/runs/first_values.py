"""What each column of JSON holds: by its first value that is not blank, not by its first record."""

from dataclasses import replace

from .needed import listed
from .plain_text import is_blank, whole
from .records import RunFileError
from .tokens_lines import BadLine, lines, record_of

RECORDS = 50  # that are looked at for what the first one leaves blank
BYTES = 4_000_000  # of them


def merged(records):
    """Name -> first value that is not blank, of all names in records; blank if none is."""
    found = {}
    for record in records:
        for name, value in record.items():
            # No file can hold a half of a character, which JSON knows.
            if whole(name) == name and is_blank(found.get(name)):
                found[name] = value
    return found


def together(heads):
    """The first of several heads, completed by its next records and by the other heads.

    Heads of other kinds than JSON Lines and lists of records know all of their columns.

    Parameters
    ----------
    heads : sequence of Head
        Of one format.

    Returns
    -------
    Head
        With the names of all, and of each a value that is not blank if one was seen.
    """
    others = [head.first for head in heads[1:]]
    first = merged([heads[0].first, *_next_records(heads[0]), *others])
    return replace(heads[0], names=tuple(first), first=first)


class Late:
    """Names that only records below those looked at have, for a note.

    Parameters
    ----------
    head : Head
    known : collection of str
        The columns that were found.
    """

    def __init__(self, head, known):
        self._name, self._known, self._found = head.source.name, frozenset(known), {}

    def see(self, record):
        """Keep the names of a record that are no columns, a few of them."""
        if not self._known.issuperset(record) and len(self._found) < RECORDS:
            for name in record:
                if name not in self._known and whole(name) == name:
                    self._found[name] = None

    def notes(self):
        """A sentence as of `Records.notes`, if there were any."""
        if not self._found:
            return ()
        what = "a column that" if len(self._found) == 1 else "columns that"
        return (
            f"{self._name}: left out {what} no earlier record has: {listed(tuple(self._found))}.",
        )


def _next_records(head):
    if head.kind != "lines":
        return
    left = BYTES
    try:
        for (line, raw), _ in zip(lines(head.source), range(RECORDS), strict=False):
            left -= line.size
            if left < 0:
                return
            try:
                yield record_of(raw)
            except BadLine:  # told of when it is read
                continue
    except RunFileError:
        return
