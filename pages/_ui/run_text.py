"""Texts of a run as HTML: made safe, every character visible, tokens coloured by a number."""

import functools
import html
import math

import numpy as np

from .figure import largest as largest_of
from .numbers import count, exact, number
from .token_text import visible

# Colours are no more than this many on each side of zero, so that equal ones share their text.
_SHADES = 32
_CONTRAST = 4.5  # what WCAG 2.2 asks of text
_BODY = (
    "white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.75;font-size:14px;"
    "font-family:'Source Code Pro',monospace;margin:0"
)
_LINES = {1: "border-bottom:1px solid", -1: "border-bottom:2px dotted"}  # in the text's colour


def coloured_text(pieces, values, palette, *, title="", limit=4000, largest=None):
    """Tokens with a background by their value, as HTML for ``st.html``.

    Parameters
    ----------
    pieces : sequence of str, (T,)
        What each token reads; whatever a model wrote.
    values : array-like, (T,)
        NaN where a token has none.
    palette : Palette
    title : str
        What the text is; said in front of the scale. Without one there is no scale.
    limit : int
        Characters that are shown.
    largest : float or None
        The magnitude at which colours end, to share a scale between texts; that of the values
        if None. What is beyond has the colour of the end.

    Returns
    -------
    str
        Blue with a solid line below is positive, orange with a dotted one negative. Every text
        is escaped; the exact number is the tooltip of its token.
    """
    values = np.asarray(values, dtype=np.float64).reshape(-1)[: len(pieces)].tolist()
    top = largest_of(np.array(values)) if largest is None else abs(float(largest))
    spans, left, at = [], limit, 0
    while at < len(values) and left > 0:
        spans.append(_span(pieces[at][:left], values[at], top, palette))
        left -= max(len(pieces[at]), 1)
        at += 1
    cut = max(-left, 0)
    rest = [count(cut, "more character")] if cut else []
    rest += [count(len(pieces) - at, "more token")] if at < len(pieces) else []
    more = _more(" and ".join(rest), palette) if rest else ""
    scale = _scale(title, top, any(map(math.isfinite, values)), palette) if title else ""
    return f'<div>{scale}<p dir="auto" style="{_BODY}">{"".join(spans)}{more}</p></div>'


def colour_scale(title, largest, palette):
    """The line that says what colours mean, for texts that share one scale; HTML."""
    return _scale(title, abs(float(largest)), True, palette)


def plain_text(text, limit=4000):
    """A text as HTML for ``st.html``: escaped, every character visible, cut at a length."""
    rest = len(text) - limit
    more = f'<span style="opacity:.7"> … {count(rest, "more character")}</span>' if rest > 0 else ""
    return f'<p dir="auto" style="{_BODY}">{safe(text[:limit])}{more}</p>'


def safe(text):
    """A text that HTML shows and never reads, with signs for what would not be seen.

    Line ends keep their break behind the sign; blanks stay blanks.
    """
    shown = visible(text, 8 * len(text) + 8).replace("␣", " ")  # a code takes up to 8 characters
    return html.escape(shown).replace("↵", "↵<br>")


def _span(piece, value, top, palette):
    style, said = "", "no value"
    if not math.isnan(value):
        said = exact(value)
        style = _style(value, top, palette)
    shown = safe(piece) or "·"
    return f'<span title="{html.escape(said)}" style="margin-right:1px;{style}">{shown}</span>'


def _style(value, top, palette):
    return _style_of_level(_level(value, top), palette) if value != 0 else ""


@functools.lru_cache(maxsize=4 * _SHADES)
def _style_of_level(level, palette):
    back = _mixed(level, palette)
    return f"background:{back};color:{ink(back, palette)};{_LINES[1 if level > 0 else -1]}"


def shade(value, top, palette):
    """Background of a value on the diverging scale that meets zero in its middle, ``#rrggbb``."""
    return _mixed(_level(value, top), palette)


def _level(value, top):
    """How strong the colour of a value is, up to ``_SHADES``; negative for negative ones."""
    reach = min(abs(value) / top, 1.0) if top > 0 and math.isfinite(value) else 1.0
    return math.copysign(max(math.ceil(reach * _SHADES), 1), value)


def _mixed(level, palette):
    """The colour of a level, between two neighbours of the palette's scale."""
    middle = len(palette.diverging) // 2
    side = palette.diverging[middle:] if level > 0 else palette.diverging[:middle][::-1]
    at = abs(level) / _SHADES * (len(side) - 1)
    low = min(int(at), len(side) - 2)
    pairs = zip(_channels(side[low]), _channels(side[low + 1]), strict=True)
    mixed = [round(a + (b - a) * (at - low)) for a, b in pairs]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def ink(back, palette):
    """Colour of text on a background: the theme's where it stands out, else black or white."""
    fitting = (palette.text, palette.background)
    known = [color for color in fitting if contrast(color, back) >= _CONTRAST]
    return known[0] if known else max(("#000000", "#ffffff"), key=lambda c: contrast(c, back))


def contrast(one, other):
    """Contrast ratio of two colours ``#rrggbb``, from 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _channels(color):
    return [int(color[start : start + 2], 16) for start in (1, 3, 5)]


def _luminance(color):
    shares = [channel / 255 for channel in _channels(color)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _scale(title, top, some, palette):
    """One line that says what the colours mean, and their range."""
    said = f"{safe(title)}: " if title else ""
    quiet = f"color:{palette.faint};font-size:12px;margin:0 0 2px"
    if not some or top == 0:
        return f'<p style="{quiet}">{said}{"every value is 0" if some else "no values"}</p>'
    ends = [
        f'<span style="padding:0 4px;{_style(sign * top, top, palette)}">'
        f"{number(sign * top, 3, signed=True)}</span>"
        for sign in (-1, 1)
    ]
    return (
        f'<p style="{quiet}">{said}{ends[0]} orange, dotted line · 0 no colour · '
        f"blue, solid line {ends[1]}</p>"
    )


def _more(said, palette):
    return f'<span style="color:{palette.faint}"> … {said}</span>'
