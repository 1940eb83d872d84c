"""Text that came with a scenario, made safe and readable: what a token really contains."""

import unicodedata

_SHOWN = {"\n": "↵", "\r": "␍", "\t": "⇥", " ": "␣"}
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})
_JOINER = "\u200d"  # holds emoji together


def visible(text, limit=40):
    """Spaces and line ends as signs, other invisible characters by their code, cut at a length.

    Examples
    --------
    >>> visible(" the\\n")
    '␣the↵'
    >>> visible("a\\u202eb")
    'a\\\\u202eb'
    """
    shown = "".join(_shown(character) for character in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _shown(character):
    if character in _SHOWN:
        return _SHOWN[character]
    if unicodedata.category(character) in _HIDDEN and character != _JOINER:
        return f"\\u{ord(character):04x}"
    return character


def readable(text, limit=40):
    """`visible` text whose single blanks stay blanks, for whole sentences.

    Examples
    --------
    >>> readable("a b\\n")
    'a b↵'
    """
    return visible(text, limit).replace(_SHOWN[" "], " ")


def escaped(text, limit=40):
    """`visible` text for Plotly, which reads tags, entities and dollar formulas in any label."""
    return visible(text, limit).translate(_MARKUP)
