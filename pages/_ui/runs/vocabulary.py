"""What tokens read: given, from a vocabulary beside the files, or learnt from the texts.

A tokenizer is not at hand. Where a policy writes a character a token, the completions' own
texts say which character each id is.
"""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np

from .records import RunFileError
from .tokens_lines import BadLine, document_of

FILE = "vocabulary.json"
LIMIT = 32_000_000  # bytes of a vocabulary.json
LARGEST_ID = 4_000_000
LONGEST = 200  # characters of a token
# A token or two of a completion may be missing from its text: its end, an unknown character.
SURPLUS = 2
ALMOST_EVERY = 0.9
LEARNT_FROM = 512  # completions


def read_vocabulary(source):
    """The table of a ``vocabulary.json``: a list of texts, or a table from id to text.

    Returns
    -------
    dict from int to str

    Raises
    ------
    RunFileError
    """
    if source.size > LIMIT:
        raise RunFileError(f"{source.name} is too large: at most {LIMIT:,} bytes are read.")
    try:
        document = document_of(source.read())
    except BadLine as error:
        raise RunFileError(f"{source.name} {error}.") from None
    if isinstance(document, list):
        document = dict(enumerate(document))
    if not isinstance(document, dict):
        raise RunFileError(
            f"{source.name} holds no vocabulary; wanted a list of texts, or a table from id to "
            "text."
        )
    return dict(_entry(key, piece, source.name) for key, piece in document.items())


def _entry(key, piece, name):
    number = int(key) if str(key).isascii() and str(key).isdigit() and len(str(key)) < 8 else -1
    if not 0 <= number <= LARGEST_ID:
        raise RunFileError(f"{name} has the key {str(key)[:40]!r}; wanted the id of a token.")
    if not isinstance(piece, str) or len(piece) > LONGEST:
        raise RunFileError(
            f"{name} has no text of at most {LONGEST} characters for the token {number}."
        )
    return number, piece


def with_vocabulary(row, vocabulary):
    """A `TokenRow` whose unknown pieces are read in a vocabulary; known ones stay."""
    ids = row.arrays.get("token_ids")
    if ids is None or not vocabulary:
        return row
    named = [vocabulary.get(key, "") for key in _whole(ids)]
    pieces = row.pieces or ("",) * len(named)
    return replace(row, pieces=tuple(old or new for old, new in zip(pieces, named, strict=True)))


def learnt(ids, texts):
    """Which character each id reads, from completions with a character a token.

    Parameters
    ----------
    ids : sequence of ndarray, (T,)
        Of the tokens of each completion.
    texts : sequence of str

    Returns
    -------
    dict from int to str
        Empty where the tokens are no characters. Ids that no text shows are left out: they
        read ''.
    """
    rows = [(_whole(row), text) for row, text in zip(ids, texts, strict=True)]
    rows = [(row, text) for row, text in rows[:LEARNT_FROM] if text]
    close = [(row, text) for row, text in rows if 0 <= len(row) - len(text) <= SURPLUS]
    if not close or len(close) < ALMOST_EVERY * len(rows):
        return {}
    commonest = Counter(len(row) - len(text) for row, text in close).most_common(1)[0][0]
    found = _majority([pair for pair in close if len(pair[0]) - len(pair[1]) == commonest])
    # A token that is missing inside a text shifts the rest, and teaches what is wrong. What is
    # right gives some text exactly.
    sure = {key for row, text in close if _reads(row, found) == text for key in row}
    return {key: character for key, character in found.items() if key in sure}


def pieces_of(ids, text, vocabulary):
    """What each token of a completion reads; all '' unless together they give its text."""
    row = _whole(ids)
    if vocabulary and text and _reads(row, vocabulary) == text:
        return tuple(vocabulary.get(key, "") for key in row)
    return ("",) * len(row)


def _majority(rows):
    counts = defaultdict(Counter)
    for row, text in rows:
        for key, character in zip(row, text, strict=False):
            counts[key][character] += 1
        for key in row[len(text) :]:
            counts[key][""] += 1
    best = {key: seen.most_common(1)[0][0] for key, seen in counts.items()}
    return {key: character for key, character in best.items() if character}


def _reads(row, vocabulary):
    return "".join(vocabulary.get(key, "") for key in row)


def _whole(ids):
    return np.asarray(ids).astype(np.int64).tolist()
