"""The table of formats, from the most particular to the most general."""

from . import format_trl

FORMATS = (format_trl.TRL,)


def format_of(head):
    """The first format that a file fits, or None."""
    for row in FORMATS:
        if head.kind in row.kinds and row.fits(head):
            return row
    return None
