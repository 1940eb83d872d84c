"""The table of formats, from the most particular to the most general."""

from . import (
    format_areal,
    format_arrays,
    format_nemo,
    format_platform,
    format_prime,
    format_swift,
    format_table,
    format_trl,
    format_verl,
)

FORMATS = (
    format_prime.PRIME_TOKENS,
    format_nemo.NEMO_VALIDATION,
    format_nemo.NEMO,
    format_verl.VERL,
    format_areal.AREAL,
    format_swift.SWIFT,
    format_platform.PLATFORM,
    format_trl.TRL,
    format_arrays.ARRAYS_FORMAT,
    format_table.TABLE,
)


def format_of(head):
    """The first format that a file fits, or None."""
    for row in FORMATS:
        if head.kind in row.kinds and row.fits(head):
            return row
    return None
