"""What a Parquet file promises to hold, read before PyArrow unpacks anything.

PyArrow's own view of a column's sizes is not asked: on a damaged one it ends the process.
"""

from dataclasses import dataclass

from .bounds import check_bound
from .compact import Damaged, Reader
from .records import RunFileError

MAGIC = b"PAR1"
TEXTS = 6  # the physical type of texts: byte arrays
PAGES = 200_000  # pages of one file that are looked at

# Fields of the format's Thrift definition: those of a column, of a file, of a page's head.
_COLUMN = {1: None, 3: None, 5: None, 6: None, 7: None, 9: None, 11: None}
_FILE = {3: None, 4: {1: {3: _COLUMN}, 3: None}}
_PAGE = {2: None, 3: None, 5: {1: None}, 8: {1: None}}


@dataclass(frozen=True)
class Sizes:
    """A column once unpacked: its path, its values over all row groups, its bytes."""

    path: tuple[str, ...]
    values: int
    size: int
    text: bool


@dataclass(frozen=True)
class Promise:
    """Rows of each row group, and the sizes of each column."""

    rows: tuple[int, ...]
    columns: tuple[Sizes, ...]


def promise(source):
    """What a file says that it holds.

    Parameters
    ----------
    source : Source

    Returns
    -------
    Promise

    Raises
    ------
    RunFileError
        No Parquet, damaged, a footer that is too long, or too many columns.
    """
    with source.open() as file:
        data = _footer(file, source)
        try:
            found = Reader(data).structure(_FILE)
            groups = [_group(group) for group in found.get(4, [])]
            rows = tuple(count for count, _ in groups)
            if found.get(3) != sum(rows):
                raise Damaged
            chunks = [chunk for _, columns in groups for chunk in columns]
            check_bound("columns", len({chunk[3][0] for chunk in chunks}), source.name)
            if source.path is None:
                # Somebody sent it: what a page claims may be more than what the footer claims.
                pages, left = source.read(), PAGES
                for at, chunk in enumerate(chunks):
                    chunks[at], left = _walked(pages, chunk, left)
            return Promise(rows, _together(chunks))
        except (Damaged, LookupError, TypeError, AttributeError, UnicodeDecodeError):
            raise damaged(source) from None


def damaged(source):
    """The error for a file that is no whole Parquet."""
    return RunFileError(f"{source.name} is damaged: it cannot be read as Parquet. Copy it again.")


def _footer(file, source):
    if source.size < 12:
        raise damaged(source)
    file.seek(source.size - 8)
    tail = file.read(8)
    if tail[4:] != MAGIC:
        raise RunFileError(
            f"{source.name} is no complete Parquet file: its end is missing. "
            "It may still be written or was cut off; copy it again."
        )
    length = int.from_bytes(tail[:4], "little")
    check_bound("footer bytes", length, source.name)
    if length > source.size - 12:
        raise damaged(source)
    file.seek(source.size - 8 - length)
    return file.read(length)


def _group(group):
    """(rows, chunks as tables of fields) of a row group."""
    if group[3] < 0:
        raise Damaged
    chunks = [column[3] for column in group.get(1, [])]
    for chunk in chunks:
        if min(chunk[5], chunk[6], chunk[7], chunk[9], chunk.get(11, 0)) < 0:
            raise Damaged
    return group[3], chunks


def _walked(data, chunk, left):
    """The chunk with the values and bytes that the heads of its pages claim, if more."""
    # An empty column has a dictionary alone, and 0 for the place of its other pages.
    start = min((place for place in (chunk[9], chunk.get(11, 0)) if place > 0), default=0)
    at, end, values, size = start, start + chunk[7], 0, 0
    if end > len(data):
        raise Damaged
    while at < end:
        left -= 1
        if left < 0:
            raise Damaged
        reader = Reader(data, at, parts=1000)
        page = reader.structure(_PAGE)
        if min(page[2], page[3]) < 0:
            raise Damaged
        size += page[2]
        values += page.get(5, page.get(8, {1: 0}))[1]
        at = reader.at + page[3]
    return chunk | {5: max(chunk[5], values), 6: max(chunk[6], size)}, left


def _together(chunks):
    """`Sizes` of each column, over all row groups."""
    found = {}
    for chunk in chunks:
        path = tuple(part.decode() for part in chunk[3])
        if not path:
            raise Damaged
        values, size, kind = found.get(path, (0, 0, chunk[1]))
        found[path] = values + chunk[5], size + chunk[6], kind
    return tuple(
        Sizes(path, values, size, kind == TEXTS) for path, (values, size, kind) in found.items()
    )
