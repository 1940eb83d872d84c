"""Parquet: the columns that are needed, after what the footer promises was checked."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .arrow_text import as_texts, is_string, is_text, plain
from .bounds import check_bound
from .parquet_footer import Promise, damaged, promise
from .records import RolesNeeded, RunFileError

BROKEN = (pa.ArrowException, OSError, ValueError)
CONTAINERS = 100_000  # parts of a footer: columns, row groups
PLAIN_BYTES = 256_000_000  # texts that cannot become larger are read without a dictionary


@dataclass(frozen=True, eq=False)
class Footer:
    """What is kept of a Parquet file's footer: `Head.detail` of such files."""

    metadata: pq.FileMetaData
    schema: pa.Schema
    promise: Promise


def footer(source):
    """The footer of a Parquet file: its schema, its rows, the sizes of its columns.

    Returns
    -------
    Footer

    Raises
    ------
    RunFileError
        No Parquet, or more than `bounds.BOUNDS` allows.
    """
    promised = promise(source)
    check_bound("rows", sum(promised.rows), source.name)
    try:
        with source.open() as file:
            found = pq.ParquetFile(file, thrift_container_size_limit=CONTAINERS)
            metadata, schema = found.metadata, found.schema_arrow
    except BROKEN as error:
        raise _broken(source, error) from None
    check_bound("columns", len(schema.names), source.name)
    twice = {name for name in schema.names if schema.names.count(name) > 1}
    if twice:
        raise RunFileError(
            f"{source.name} has two columns called {min(twice)!r}. Rename one and open it again."
        )
    return Footer(metadata, schema, promised)


def kinds(schema):
    """(name, kind) of each column: 'number', 'text' or 'other'."""
    return tuple((field.name, _kind(field.type)) for field in schema)


def read_columns(source, names, detail, row_groups=None):
    """Columns of a Parquet file, each one Arrow array.

    Parameters
    ----------
    source : Source
    names : sequence of str
    detail : Footer
    row_groups : sequence of int, optional
        Those alone.

    Returns
    -------
    dict from name to pyarrow.Array

    Raises
    ------
    RunFileError
        Damaged, or larger once unpacked than what is read.
    """
    wanted = set(names)
    dictionaries = _bounded(source, wanted, detail.promise)
    try:
        with source.open() as file:
            opened = pq.ParquetFile(
                file, metadata=detail.metadata, read_dictionary=dictionaries, pre_buffer=False
            )
            columns = [name for name in detail.schema.names if name in wanted]
            if row_groups is None:
                table = opened.read(columns=columns, use_threads=False)
            else:
                table = opened.read_row_groups(row_groups, columns=columns, use_threads=False)
            rows = detail.promise.rows
            wanted_rows = sum(rows if row_groups is None else (rows[at] for at in row_groups))
            if table.num_rows != wanted_rows:
                raise damaged(source)
            return {name: _whole(table.column(name)) for name in columns}
    except BROKEN as error:
        raise _broken(source, error) from None


def first_rows(source, names, detail, count):
    """The columns of the first rows, as `read_columns` gives them; {} where there is no row."""
    dictionaries = _bounded(source, set(names), detail.promise)
    columns = [name for name in detail.schema.names if name in names]
    try:
        with source.open() as file:
            opened = pq.ParquetFile(file, metadata=detail.metadata, read_dictionary=dictionaries)
            batches = opened.iter_batches(batch_size=count, columns=columns, use_threads=False)
            return next((dict(zip(columns, batch.columns, strict=True)) for batch in batches), {})
    except BROKEN as error:
        raise _broken(source, error) from None


def first_row(source, detail):
    """name -> value of the first record, {} where there is none."""
    found = first_rows(source, detail.schema.names, detail, 1)
    try:
        return {name: column[0].as_py() for name, column in found.items()}
    except BROKEN as error:
        raise _broken(source, error) from None


def numbers(array, name, source):
    """A column as floats, (N,); NaN where blank. Lists of one element count as that element.

    Raises
    ------
    RunFileError
        A text that is no number: its row and what came.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        return numbers(array.cast(kind.value_type), name, source)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _single(array, name, source)
    if pa.types.is_null(kind):
        return np.full(len(array), np.nan)
    if is_string(kind):
        return np.array([_number(text, row, name, source) for row, text in _texts(array)])
    try:
        return np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    except (pa.ArrowException, ValueError):
        raise RolesNeeded(
            f"{source.name}: column {name!r} holds {kind}, which are no numbers. Choose another."
        ) from None


def texts_of_rows(source, names, detail, rows):
    """Texts of some rows, read again: a list for each name, in the order of `rows`."""
    rows = np.asarray(rows, dtype=np.int64)
    sizes = detail.promise.rows
    ends = np.cumsum(sizes)
    groups = np.unique(np.searchsorted(ends, rows, side="right"))
    read = read_columns(source, [name for name in names if name], detail, groups.tolist())
    starts = np.concatenate([[0], np.cumsum(np.take(sizes, groups))])[:-1]
    group = np.searchsorted(ends, rows, side="right")
    at = rows - (ends - sizes)[group] + starts[np.searchsorted(groups, group)]
    return [_listed(read[name], name, at, source) if name else None for name in names]


def text_column(array, name, source):
    """A column as `arrow_text.as_texts` gives it.

    Raises
    ------
    RunFileError
        It holds no texts, or more than is read.
    """
    try:
        texts = as_texts(array, source.name)
        texts.validate(full=True)
    except RunFileError:
        raise
    except BROKEN:
        raise RolesNeeded(
            f"{source.name}: column {name!r} holds {array.type}, which are no texts. "
            "Choose another."
        ) from None
    return texts


def _listed(array, name, at, source):
    texts = text_column(array, name, source).take(pa.array(at))
    return [text or "" for text in plain(texts, source.name).to_pylist()]


def _bounded(source, wanted, promised):
    """Check what the columns unpack to; paths of text columns to be kept as dictionaries."""
    columns = [column for column in promised.columns if column.path[0] in wanted]
    for column in columns:
        check_bound("values", column.values, f"{source.name}, column {column.path[0]!r},")
    check_bound("text bytes", sum(column.size for column in columns), source.name)
    return [
        ".".join(column.path)
        for column in columns
        if column.text and column.values * column.size > PLAIN_BYTES
    ]


def _broken(source, error):
    return error if isinstance(error, RunFileError) else damaged(source)


def _whole(column):
    """One array of a chunked column."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _kind(kind):
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return "number"
    if pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return "number"
    if pa.types.is_list(kind) and _kind(kind.value_type) == "number":
        return "other"
    return "text" if is_text(kind) else "other"


def _single(array, name, source):
    counts = np.diff(array.offsets.to_numpy())
    if np.any(counts > 1):
        row = int(np.argmax(counts > 1))
        raise RolesNeeded(
            f"{source.name}: column {name!r}, row {row} is a list of {counts[row]} values; "
            "wanted one number. Choose another column."
        )
    found = np.full(len(array), np.nan)
    found[counts == 1] = numbers(array.flatten(), name, source)
    return found


def _texts(array):
    return enumerate(array.to_pylist())


def _number(text, row, name, source):
    if text is None or not text.strip():
        return np.nan
    try:
        return float(text)
    except ValueError:
        raise RolesNeeded(
            f"{source.name}: column {name!r}, row {row} is {text[:40]!r}; wanted a number. "
            "Choose another column."
        ) from None
