"""The table that prime-rl uploads to its platform: a row for each sample of a problem."""

import functools

from .heads import Format
from .parquet import kinds
from .parquet_records import read_records
from .roles import guessed

KNOWN = {
    "problem_id": ("number", "group"),
    "sample_id": ("number", "ignore"),
    "num_input_tokens": ("number", "ignore"),
    "num_output_tokens": ("number", "length"),
    "reward": ("number", "term"),
}


def fits(head):
    """Whether the table has a problem and a reward."""
    return {"problem_id", "reward", "completion"} <= set(head.names)


def columns(head):
    """Columns with the roles that the platform's names have."""
    return guessed(kinds(head.detail.schema), other="measure", known=KNOWN)


PLATFORM = Format(
    key="platform",
    label="prime-rl platform samples",
    kinds=("parquet",),
    fits=fits,
    columns=columns,
    read=functools.partial(read_records, block=False),
)
