"""The first look at a file: what it is by its first bytes, and what its head says."""

import codecs
import zipfile
from itertools import islice

from ..npz_member import BROKEN_ZIP
from . import pickles
from .archive import ZIP
from .csv_table import csv_head
from .first_values import RECORDS, merged
from .heads import Head
from .log import parsed
from .parquet import footer
from .parquet_footer import MAGIC
from .records import RunFileError
from .tokens_lines import BadLine, lines, record_of

FIRST = 65_536  # bytes that tell what a file is
TRIED = 100  # lines looked at for a first record
LINES = (".jsonl", ".ndjson", ".jsonlines")


def head_of(source):
    """What a file is, and what its head says.

    Parameters
    ----------
    source : Source

    Returns
    -------
    Head

    Raises
    ------
    RunFileError
        Empty, a pickle, damaged, or of no known kind.
    """
    with source.open() as file:
        first = file.read(FIRST)
    if not first:
        raise RunFileError(f"{source.name} is empty.")
    if pickles.is_pickle(source.name, first):
        raise RunFileError(pickles.refusal(source.name))
    for magic, look in ((MAGIC, _parquet), (ZIP, _arrays)):
        if first.startswith(magic):
            return look(source)
    text = _start_of_text(source, first)
    return _json(source, text) if text[:1] in ("{", "[") else csv_head(source, text)


def _parquet(source):
    detail = footer(source)
    return Head(source, "parquet", tuple(detail.schema.names), detail=detail)


def _arrays(source):
    try:
        with source.open() as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except RunFileError:
        raise
    except BROKEN_ZIP:
        raise RunFileError(f"{source.name} is damaged or was cut off. Copy it again.") from None
    if not all(name.endswith(".npy") for name in names):
        raise RunFileError(
            f"{source.name} is an archive inside what was opened. Unpack it, or open it by itself."
        )
    return Head(source, "npz", tuple(name.removesuffix(".npy") for name in names))


def _start_of_text(source, first):
    """The first characters, without what stands before the first visible one."""
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise RunFileError(f"{source.name} is UTF-16 text. Save it as UTF-8.")
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(first)
    except UnicodeDecodeError as error:
        raise RunFileError(
            f"{source.name} is of no known kind: byte {error.start} is no UTF-8 text. "
            "Open Parquet, JSON Lines, CSV or npz."
        ) from None
    if "\x00" in text:
        raise RunFileError(f"{source.name} is of no known kind. Open Parquet, JSON Lines or CSV.")
    if not text.strip():
        raise RunFileError(f"{source.name} holds nothing but blanks.")
    return text.lstrip()


def _json(source, text):
    if source.suffix in LINES or (text.startswith("{") and _has_lines(source)):
        record = merged([_first_record(source)])
        return Head(source, "lines", tuple(record), record)
    document = parsed(source)
    if isinstance(document, dict):
        document = merged([document])
        return Head(source, "json", tuple(document), document)
    if not (isinstance(document, list) and document and isinstance(document[0], dict)):
        raise RunFileError(f"{source.name} holds no records: wanted JSON tables with names.")
    record = merged([item for item in document[:RECORDS] if isinstance(item, dict)])
    return Head(source, "json", tuple(record), record, "list")


def _has_lines(source):
    """Whether each of the first two lines is a JSON table of its own."""
    try:
        found = [record_of(raw) for _, raw in islice(lines(source), 2)]
    except BadLine:
        return False
    return len(found) == 2


def _first_record(source):
    """The first line that is a record, of the first hundred."""
    first = ""
    for line, raw in islice(lines(source), TRIED):
        try:
            return record_of(raw)
        except BadLine as error:
            first = first or f"{source.name}: line {line.number} {error}"
    raise RunFileError(f"{first}. Wanted JSON Lines: a table of names and values a line.")
