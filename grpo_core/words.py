"""Numbers and places in plain words, for the sentences of findings."""

import math

from .errors import place

NAMED = 60  # characters of a name in a sentence
MINUS = "\N{MINUS SIGN}"


def number(value, digits=4):
    """Round to significant digits, never dropping any before the decimal point.

    Examples
    --------
    >>> number(0.00014790312), number(23094.01), number(4.0522e39)
    ('0.0001479', '23094', '4.052e39')
    """
    value = float(value)
    if math.isnan(value):
        return "undefined"
    sign = MINUS if value < 0 else ""
    if math.isinf(value):
        return f"{sign}inf"
    if value == 0:
        return "0"
    return sign + _magnitude(abs(value), digits)


def _magnitude(value, digits):
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    exponent = int(power)  # after rounding, so that 9.9999 has one digit more
    if -5 < exponent < 6:
        return _trimmed(f"{value:.{max(digits - 1 - exponent, 0)}f}")
    return f"{_trimmed(mantissa)}e{exponent}".replace("-", MINUS)


def _trimmed(text):
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share):
    """A share between 0 and 1 with three digits; only the whole shows as 100%."""
    text = number(100 * share, 3)
    return ">99.9%" if text == "100" and share < 1 else f"{text}%"


def count(quantity, noun, plural=None):
    """``1 token``, ``3 tokens``, ``12,000 tokens``."""
    return f"{quantity:,} {noun if quantity == 1 else plural or noun + 's'}"


def listing(items):
    """``a``, ``a and b``, ``a, b and c``."""
    *head, last = items
    return f"{', '.join(head)} and {last}" if head else last


def groups(where, which=""):
    """``the group of prompt 1``, ``the tied groups of prompts 0, 1, 2, 3 and 5 more``."""
    named = [str(index[0]) for index in where[:4]]
    if len(where) > len(named):
        named.append(f"{len(where) - len(named):,} more")
    of = "group of prompt " if len(where) == 1 else "groups of prompts "
    return f"the {which}{of}{listing(named)}"


def cells(where, quantity=None):
    """Completions or tokens by name: two of them, and how many more there are."""
    named = "; ".join(place(index) for index in where[:2])
    rest = (len(where) if quantity is None else quantity) - len(where[:2])
    return f"{named} and {rest:,} more" if rest else named


def named(name):
    r"""A name that a file brought, in quotes; what would not be seen by its code, cut at a length.

    Examples
    --------
    >>> named("a\u202eb")
    '“a\\u202eb”'
    """
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in name[: NAMED + 1])
    return f"“{shown if len(shown) <= NAMED else shown[: NAMED - 1] + '…'}”"


def opening(text):
    """The text as a sentence begins: first letter in upper case."""
    return text[:1].upper() + text[1:]
