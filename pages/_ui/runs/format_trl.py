"""TRL's ``completions_*.parquet``: a row for each completion, groups as blocks of rows.

Reward columns are named after the reward functions; further numbers come from ``log_extra``,
and nothing in the file tells the two apart, so that they are asked.
"""

import functools

from .heads import Format
from .parquet import kinds
from .parquet_records import read_records
from .roles import guessed


def fits(head):
    """Whether the table has a prompt, a completion and no id of a group."""
    return {"prompt", "completion"} <= set(head.names) and "problem_id" not in head.names


def columns(head):
    """Columns with guessed roles: an unknown number is a reward term."""
    return guessed(kinds(head.detail.schema))


TRL = Format(
    key="trl",
    label="TRL completions",
    kinds=("parquet",),
    fits=fits,
    columns=columns,
    read=functools.partial(read_records, block=True),
)
