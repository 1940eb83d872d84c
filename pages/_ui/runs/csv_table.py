"""CSV: columns of any names, separated by commas, semicolons or tabs, cells quoted or not."""

import csv

from .heads import Head
from .records import RunFileError

SEPARATORS = ",;\t|"
TYPES = (".csv", ".tsv", ".txt", "")
CELL = 64_000_000  # characters
csv.field_size_limit(CELL)


def csv_head(source, text):
    """What the first lines of a CSV file say; `text` is the start of the file."""
    separator = max(SEPARATORS, key=text.partition("\n")[0].count)
    if source.suffix not in TYPES or text.partition("\n")[0].count(separator) == 0:
        raise RunFileError(
            f"{source.name} is of no known kind. Open Parquet, JSON Lines, CSV or npz."
        )
    return Head(source, "csv", ())
