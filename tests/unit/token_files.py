"""Made-up per-token files, as bytes, and how a test reads them."""

import io
import json

import numpy as np

from pages._ui.runs.first_look import head_of
from pages._ui.runs.formats import format_of
from pages._ui.runs.opening import look, open_run, sources_of_uploads
from pages._ui.runs.records import RunFileError, Source


def source(name, data):
    """A file that lies nowhere but in memory."""
    return Source(name, len(data), lambda: data)


def on_disk(path):
    """A file of a folder, whose bytes are not read as a whole."""

    def read():
        raise AssertionError("the whole file was read")

    return Source(path.name, path.stat().st_size, read, str(path))


def columns_of(name, data):
    """(the format that is found, its columns by name)."""
    head = head_of(source(name, data))
    row = format_of(head)
    return row, {column.name: column for column in row.columns(head)}


def read(name, data, **roles):
    """The records of a file, with guessed roles but for some."""
    return read_source(source(name, data), **roles)


def read_source(of, **roles):
    head = head_of(of)
    row = format_of(head)
    assert row is not None, f"{of.name} is of no known format"
    return row.read(head, {column.name: column.role for column in row.columns(head)} | roles)


def opened(*files):
    """The run in uploaded files, (name, bytes) each."""
    return open_run(look(sources_of_uploads(files)))


def refusal(call, *given):
    """The one sentence or two with which something is refused."""
    try:
        call(*given)
    except RunFileError as error:
        message = str(error)
        assert message
        assert "\n" not in message
        return message
    raise AssertionError("it was not refused")


def json_lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def npz(**members):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **members)
    return buffer.getvalue()
