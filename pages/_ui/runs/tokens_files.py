"""Files of our own layout: the batches of an npz, of a JSON document or of JSON Lines."""

import collections
import weakref
import zipfile
from dataclasses import dataclass

from ..npz_member import BROKEN_ZIP, BadMember, read_member
from .bounds import check_bound
from .pickles import refusal
from .records import RunFileError, Source
from .tokens_batch import ALIASES, NAMES, TEXTS, batch_of
from .tokens_lines import (
    BadLine,
    Line,
    Skipped,
    document_of,
    line_again,
    lines,
    record_of,
)

SMALL = 16_000_000  # bytes of a batch of which several are held ready
FEW = 4  # of them


@dataclass(frozen=True, eq=False)
class ArrayFile:
    """One file of arrays and the batches in it.

    ``places`` are `Line` or positions in a document, ``bytes`` is what the largest batch takes.
    """

    source: Source
    kind: str
    places: tuple
    bytes: int


def first_pass(source, kind, keep):
    """Read every batch of a file once, and keep of each what `keep` makes of it.

    Returns
    -------
    tuple of (ArrayFile, list, notes)

    Raises
    ------
    RunFileError
    """
    places, kept, most, skipped = [], [], 0, Skipped(source.name)
    for place, batch in _each(source, kind, skipped):
        places.append(place)
        kept.append(keep(batch))
        most = max(most, sum(array.nbytes for array in batch.arrays.values()))
    if not kept:
        raise skipped.nothing_left("batch of arrays")
    return ArrayFile(source, kind, tuple(places), most), kept, skipped.notes()


def batch_again(file, k):
    """A batch of a file, read again; the last few are held ready, of large ones the last one.

    Completions of a group, and the uses of a batch, are asked for one after the other. What is
    held goes with its file: nothing of an upload outlives the session that it belongs to.
    """
    batches = _HELD.setdefault(file, {})
    found = batches.get(k)
    if found is None:
        found = batches[k] = _again(file, k)
        _RECENT.append((weakref.ref(file), k, file.bytes))
        _forget_old()
    return found


# Batches by their file, and in the order in which they were read.
_HELD = weakref.WeakKeyDictionary()
_RECENT = collections.deque()


def _forget_old():
    """Let go of the oldest batches, until those left are few and small; the newest stays."""
    while len(_RECENT) > 1 and (len(_RECENT) > FEW or sum(row[2] for row in _RECENT) > FEW * SMALL):
        of, k, _ = _RECENT.popleft()
        file = of()
        if file is not None:
            _HELD.get(file, {}).pop(k, None)


def _again(file, k):
    source, place = file.source, file.places[k]
    if isinstance(place, Line):
        return batch_of(record_of(line_again(source, place)), f"{source.name}, line {place.number}")
    if file.kind == "npz":
        return batch_of(npz_fields(source), source.name)
    items = documents(source)
    return batch_of(items[place], _position(source, place, items))


def _each(source, kind, skipped):
    """(place, batch) of every batch of a file; lines that are no JSON are left out."""
    if kind == "npz":
        yield 0, batch_of(npz_fields(source), source.name)
    elif kind == "json":
        items = documents(source)
        for k, item in enumerate(items):
            yield k, batch_of(item, _position(source, k, items))
    else:
        for line, raw in lines(source):
            try:
                record = record_of(raw)
            except BadLine as error:
                skipped.add(line, error)
                continue
            yield line, batch_of(record, f"{source.name}, line {line.number}")


def npz_fields(source, wanted=NAMES):
    """The arrays of an npz file that mean something here; objects are never loaded.

    Raises
    ------
    RunFileError
        Damaged, too large once unpacked, or with an array of objects.
    """
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            entries = _entries(archive, wanted)
            size = sum(entry.file_size for entry in entries.values())
            check_bound("upload bytes", size, source.name)
            return {key: _member(archive, entry, key, source) for key, entry in entries.items()}
    except RunFileError:
        raise
    except BROKEN_ZIP:
        raise RunFileError(f"{source.name} is not an npz file, or it is damaged.") from None


def _entries(archive, wanted):
    found = {}
    for entry in archive.infolist():
        name = entry.filename.removesuffix(".npy")
        if ALIASES.get(name, name) in wanted:
            found.setdefault(name, entry)
    return found


def _member(archive, entry, name, source):
    # Ids of groups may be texts or numbers.
    kinds = "fiubU" if name == "group" else "U" if name in TEXTS else "fiub"
    try:
        return read_member(archive, entry, kinds)
    except BadMember as error:
        if error.kind == "O":
            raise RunFileError(
                f"{source.name}: the array {name!r} holds objects. {refusal(source.name)}"
            ) from None
        wanted = "texts" if kinds == "U" else "numbers"
        raise RunFileError(
            f"{source.name}: the array {name!r} is damaged or does not hold {wanted}."
        ) from None


def documents(source):
    """The batches of one JSON document: it is one, or a list of them.

    Raises
    ------
    RunFileError
    """
    check_bound("json bytes", source.size, source.name)
    try:
        document = document_of(source.read())
    except BadLine as error:
        raise RunFileError(f"{source.name} {error}.") from None
    items = document if isinstance(document, list) else [document]
    for k, item in enumerate(items):
        if not isinstance(item, dict):
            raise RunFileError(
                f"{_position(source, k, items)} is no table of arrays; wanted names and nested "
                "lists."
            )
    if not items:
        raise RunFileError(f"{source.name} holds an empty list; wanted at least one batch.")
    return items


def _position(source, k, items):
    return source.name if len(items) == 1 else f"{source.name}, batch {k}"
