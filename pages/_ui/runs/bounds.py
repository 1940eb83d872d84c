"""Bounds: how much of a file is read at most, checked before it is unpacked."""

from .records import RunFileError

MEGA = 1_000_000

# key: (most, what is counted, the remedy). Sizes are bytes after unpacking.
BOUNDS = {
    "upload bytes": (300 * MEGA, "bytes once unpacked", "Upload fewer steps"),
    "path bytes": (2000 * MEGA, "bytes once unpacked", "Open a folder with fewer steps"),
    "members": (10_000, "files", "Open fewer steps"),
    "rows": (2 * MEGA, "completions", "Open fewer steps"),
    "columns": (300, "columns", "Leave out columns that are no rewards"),
    "numbers": (40 * MEGA, "numbers", "Open fewer steps, or ignore columns"),
    "grid": (20 * MEGA, "cells, all groups padded to the largest", "Open fewer steps"),
    "line bytes": (64 * MEGA, "bytes in one line", "Write one record a line"),
    "json bytes": (64 * MEGA, "bytes of JSON in one document", "Write JSON Lines instead"),
    "text bytes": (1000 * MEGA, "bytes of text once unpacked", "Open fewer steps"),
    "footer bytes": (8 * MEGA, "bytes of Parquet footer", "Write fewer columns"),
    "values": (40 * MEGA, "values in one column", "Open fewer steps"),
}


def check_bound(key, count, name):
    """Refuse a file that holds more than is read.

    Parameters
    ----------
    key : str
        One of `BOUNDS`.
    count : int
    name : str
        The file or folder, for the message.

    Raises
    ------
    RunFileError
    """
    most, what, remedy = BOUNDS[key]
    if count > most:
        raise RunFileError(f"{name} holds {count:,} {what}; at most {most:,} are read. {remedy}.")
