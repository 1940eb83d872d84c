"""Values of one record: one-element lists for scalars, blanks for NaN, no text for a number."""

import hashlib
import math
import reprlib

import numpy as np

from grpo_core import ARRAYS

from .records import TokenRow
from .tokens_lines import BadLine, BadValue

LARGEST_STEP = 2**53
SHOWN = 40  # characters of a value in a message


def alone(value):
    """What a list of one element holds, else the value itself.

    NeMo-RL writes a batch of one, so that a scalar is ``[1.0]`` and a row ``[[...]]``.
    """
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def scalar(record, name):
    """A number of a record as float; NaN where it is missing, blank or not finite.

    Raises
    ------
    BadLine
        A text, a table or a list of several.
    """
    value = alone(record.get(name))
    if value is None or value == []:
        return math.nan
    if not isinstance(value, (int, float)):
        raise BadValue(f"has {shown(value)} for {name!r}; wanted a number")
    number = one_number(value)
    return number if math.isfinite(number) else math.nan


def one_number(value):
    """A number, alone or the only one of a list or an array, as float; NaN if there is none."""
    if isinstance(value, np.ndarray):
        value = value.reshape(-1).tolist()
    value = alone(value)
    if not isinstance(value, (int, float)):  # bool is an int
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def step_of(record, name, otherwise):
    """The training step that a record names, else `otherwise`.

    Raises
    ------
    BadLine
        A step that is no whole number from 0.
    """
    if alone(record.get(name)) is None:
        return otherwise
    step = scalar(record, name)
    if not (step >= 0 and step == math.floor(step) and step <= LARGEST_STEP):
        value = shown(alone(record[name]))
        raise BadValue(f"has {value} for {name!r}; wanted a whole number of at least 0")
    return int(step)


def row_of(record, name):
    """A row of numbers, (L,), NaN where blank; None where the record has none.

    Raises
    ------
    BadLine
        Texts, tables or lists inside.
    """
    value = record.get(name)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if value is None or value == []:
        return None
    if not isinstance(value, list):
        raise BadLine(f"has {shown(value)} for {name!r}; wanted a list of numbers")
    return numbers_of(value, name)


def numbers_of(values, name):
    """A list of numbers as float64, (L,), None as NaN.

    Raises
    ------
    BadLine
    """
    try:
        array = np.array(values)
        # NumPy would read "1.5" as a number beside None.
        if array.ndim != 1 or (array.dtype.kind not in "biufO"):
            raise ValueError
        if array.dtype.kind == "O" and not all(_is_number(value) for value in values):
            raise ValueError
        return array.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        wrong = next((i for i, value in enumerate(values) if not _is_number(value)), None)
        if wrong is None:
            raise BadLine(f"has a number that is too large in {name!r}") from None
        spot = f"{shown(values[wrong])} at position {wrong} of {name!r}"
        raise BadValue(f"has {spot}; wanted a number") from None


def _is_number(value):
    return value is None or isinstance(value, (int, float))


def check_lengths(rows):
    """Refuse rows of one record that differ in length.

    Raises
    ------
    BadLine
        Which two differ.
    """
    known = [(name, len(row)) for name, row in rows.items() if row is not None]
    for name, length in known:
        first, wanted = known[0]
        if length != wanted:
            raise BadLine(f"has {length:,} values in {name!r} and {wanted:,} in {first!r}")


def common_value(values):
    """The one value of all tokens, or their mean; NaN where there is none."""
    known = values[np.isfinite(values)]
    if not known.size:
        return math.nan
    return float(known[0]) if np.all(known == known[0]) else float(np.mean(known))


def unusable(arrays, valid):
    """The first array and position that break the rule of `ARRAYS`, or None.

    Parameters
    ----------
    arrays : mapping from key of `ARRAYS` to ndarray, (..., L)
    valid : ndarray of bool, (..., L)

    Returns
    -------
    tuple of (key, index) or None
    """
    for key, array in arrays.items():
        bad = valid & ~ARRAYS[key].rule.holds(array)
        if np.any(bad):
            return key, tuple(int(i) for i in np.argwhere(bad)[0])
    return None


def token_row(step, arrays, valid, pieces=(), loss=None):
    """The `TokenRow` of the positions that count, in order.

    Parameters
    ----------
    step : int
    arrays : mapping from key to ndarray, (L,)
    valid : ndarray of bool, (L,)
    pieces : sequence of str, one for each valid position, or empty
    loss : float or None
    """
    own = {key: _floating(array[valid]) for key, array in arrays.items()}
    count = int(np.count_nonzero(valid))
    own["mask"] = np.ones(count, dtype=bool)
    return TokenRow(step, own, tuple(pieces) or ("",) * count, loss)


def _floating(array):
    """As the core computes: float32 stays, everything else is float64."""
    return array if array.dtype == np.float32 else array.astype(np.float64)


def parts_digest(*parts):
    """A number that tells groups apart, from texts, bytes or whole numbers."""
    made = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        made.update(len(data).to_bytes(8, "little") + data)
    return int.from_bytes(made.digest(), "little")


def shown(value):
    """A value for a message, shortened."""
    text = reprlib.repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
