"""Scalars of configuration files and command lines: what YAML and Hydra read from plain text."""

import re

# "none" is a word: a setting may have a value of this name.
_WORDS = {"null": None, "~": None, "": None, "true": True, "false": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,4})?", re.IGNORECASE)
_LONGEST = 40  # characters of a number


def scalar(text):
    """None, bool, int, float, a list of these in brackets, or the text itself.

    Examples
    --------
    >>> scalar("1e-3"), scalar("null"), scalar("[0.2, 0.28]"), scalar("'grpo'")
    (0.001, None, [0.2, 0.28], 'grpo')
    """
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        inside = text[1:-1].strip()
        return [scalar(part) for part in inside.split(",")] if inside else []
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if len(text) > _LONGEST:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
