"""How exactly advantages were written: float32, half precision, or a few decimals."""

from dataclasses import dataclass

import numpy as np

_SINGLE = 2.0**-23
_HALVES = {"float16": 2.0**-11, "bfloat16": 2.0**-8}  # largest error of rounding, relative
_DECIMALS, _DIGITS = range(2, 6), range(2, 6)


@dataclass(frozen=True)
class Precision:
    """The largest error of rounding: ``absolute`` plus ``relative`` times the size."""

    absolute: float
    relative: float

    def of(self, size):
        """Largest error of a value of a given size."""
        return self.absolute + self.relative * size


def precision_of(values):
    """The coarsest way of writing numbers that all of these values were written in.

    Parameters
    ----------
    values : ndarray
        Finite ones count.

    Returns
    -------
    Precision
    """
    values = values[np.isfinite(values)].astype(np.float64)
    near = _SINGLE * np.abs(values)
    for decimals in _DECIMALS:
        if np.all(np.abs(values - np.round(values, decimals)) <= near):
            return Precision(0.5 * 10.0**-decimals, 0.0)
    for digits in _DIGITS:
        if np.all(np.abs(values - _to_digits(values, digits)) <= near):
            return Precision(0.0, 0.5 * 10.0 ** (1 - digits))
    if _is_bfloat16(values):
        return Precision(0.0, _HALVES["bfloat16"])
    with np.errstate(over="ignore", under="ignore"):
        if np.all(np.abs(values - values.astype(np.float16)) <= near):
            return Precision(0.0, _HALVES["float16"])
    return Precision(0.0, _SINGLE)


def _to_digits(values, digits):
    """Each value to a number of significant digits."""
    sizes = np.abs(np.where(values == 0, 1.0, values))
    unit = 10.0 ** (np.floor(np.log10(sizes)) - digits + 1)
    return np.round(values / unit) * unit


def _is_bfloat16(values):
    with np.errstate(over="ignore", under="ignore"):
        single = values.astype(np.float32)
    low = single.view(np.uint32) & np.uint32(0xFFFF)
    return bool(np.all(low == 0) and np.all(np.abs(values - single) <= _SINGLE * np.abs(values)))
