"""Text that came from a reader, a file or a link, for places that would read it as Markdown."""

import re

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def literal(text):
    """The text with every mark escaped, so that it is shown and never obeyed.

    Examples
    --------
    >>> literal("**1,5** is no number")
    '\\\\*\\\\*1\\\\,5\\\\*\\\\* is no number'
    """
    return _PUNCTUATION.sub(r"\\\1", " ".join(text.split()))
