"""Numbers as the pages show them: the core's rounding, with signs, dashes and arrows."""

import math

from grpo_core.words import MINUS, count, percent
from grpo_core.words import number as rounded

MISSING = "–"


def number(value, digits=4, *, signed=False):
    """Round to significant digits; a dash for None and NaN.

    Parameters
    ----------
    value : float or None
    digits : int
        Significant digits. Digits before the decimal point are never dropped.
    signed : bool
        Write a plus before positive numbers.

    Examples
    --------
    >>> number(-0.022713), number(0.5, signed=True), number(2.5e-7)
    ('−0.02271', '+0.5', '2.5e−7')
    """
    if value is None or math.isnan(value):
        return MISSING
    text = rounded(value, digits)
    return f"+{text}" if signed and value > 0 else text


def exact(value):
    """The shortest digits that give back the same number, with a real minus sign."""
    if value is None or math.isnan(value):
        return MISSING
    if value == 0:
        return "0"
    return str(value).removesuffix(".0").replace("-", MINUS)


def change(former, now, digits=4):
    """``former → now`` with as many digits as it takes to tell them apart; or just the number."""
    if former == now or (math.isnan(former) and math.isnan(now)):
        return number(now, digits)
    while digits < 17 and number(former, digits) == number(now, digits):
        digits += 1
    return f"{number(former, digits)} → {number(now, digits)}"


__all__ = ["MINUS", "MISSING", "change", "count", "exact", "number", "percent"]


def change_of_share(former, now):
    """``former → now`` as percentages; or just the one."""
    return percent(now) if former == now else f"{percent(former)} → {percent(now)}"
