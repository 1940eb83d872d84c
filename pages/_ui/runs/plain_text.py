"""Texts in JSON: a string, a chat message or a list of them as one text, a tree of kinds as one."""

import json

from .arrow_text import BETWEEN, TEXT_FIELDS
from .tokens_values import alone


def text_of(value):
    """What a value reads: messages one below the other, other things as JSON, null as ''."""
    try:
        return _text(value)
    except RecursionError:
        return ""


def _text(value):
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        known = [value[name] for name in TEXT_FIELDS if name in value]
        return _text(known[0]) if known else json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return BETWEEN.join(_text(part) for part in value)
    return "" if value is None else json.dumps(value)


def whole(text):
    """The text with a sign in place of each half of a character, which JSON can hold."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def kind_of(value):
    """'number', 'text', 'blank' or 'other', as of a `heads.Column`."""
    if is_blank(value):
        return "blank"
    value = alone(value)
    if isinstance(value, (int, float)):  # bool is an int
        return "number"
    if isinstance(value, (str, dict)):
        return "text"
    messages = isinstance(value, list) and value and all(isinstance(part, dict) for part in value)
    return "text" if messages else "other"


def is_blank(value):
    """Whether a value says nothing of its column: null, or a list of nothing else."""
    return value is None or (isinstance(value, list) and all(part is None for part in value))
