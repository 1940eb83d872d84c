"""Cells of the editable tables, as text: what a number reads like, and what a text means.

Number columns of the grid clamp, drop "-inf" and "1e-3", and turn a pasted "1,5" into 15
without a word. Text cells let nothing happen unseen: what was typed arrives as typed and
is read here.
"""

import math

import pandas as pd

from grpo_core import ScenarioError


class Unfinished(ScenarioError):
    """Cells that are only missing so far, as in a row that is being added cell by cell."""


_SHOWN_DIGITS = 5
_WORDS = {"": math.nan, "none": math.nan, "nan": math.nan, "-inf": -math.inf, "inf": math.inf}


def cell_text(value):
    """A number as its cell shows it: in full if short, else rounded; blank for NaN."""
    value = float(value)
    if math.isnan(value):
        return ""
    return f"{value:.{_SHOWN_DIGITS}g}"


def read_cell(text):
    """The number that a cell's text means; blank is NaN.

    Raises
    ------
    ScenarioError
        Anything else than one number, with the remedy.
    """
    text = "" if text is None else str(text).strip().replace("−", "-")
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if "," in text:
        raise ScenarioError(
            f"{_short(text)} has a comma; write a decimal point, as in 1.5, and no thousands mark"
        )
    try:
        # int() and float() take underscores and other scripts' digits; a table should not.
        if not text.isascii() or "_" in text:
            raise ValueError(text)
        return float(text)
    except ValueError:
        raise ScenarioError(
            f"{_short(text)} is not a number; write one, such as 0.5 or -1e-3"
        ) from None


def _short(text):
    return f"'{text[:24]}…'" if len(text) > 24 else f"'{text}'"


def text_frame(frame):
    """A frame with its number columns as text, also where it has no rows; flags stay flags."""
    columns = {
        name: column if column.dtype == bool else column.map(cell_text).astype(object)
        for name, column in frame.items()
    }
    return pd.DataFrame(columns, index=frame.index, columns=frame.columns)
