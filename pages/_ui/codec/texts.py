"""Token texts as a list of words and a number for each cell.

Texts that fill the shape (P, G, L) and stand at valid positions only are numbered there;
others that fill the shape are numbered at every position; any other form is kept as it is.
"""

import numpy as np

from grpo_core import Texts

from .integers import Damaged, TooLarge

TEXT_LIMIT = 400_000  # characters of all texts of one scenario


def describe_texts(texts, valid):
    """Header entries and word numbers: at valid positions, or at all, or None.

    Returns
    -------
    header : dict
    numbers : ndarray or None
        Of the valid positions if there is no ``all`` in the header, else of every position.

    Raises
    ------
    TooLarge
        More text than `restore_texts` takes.
    """
    if _characters(texts) > TEXT_LIMIT:
        raise TooLarge("the texts are too long")
    header = {"prompts": list(texts.prompts)}
    if not texts.tokens:
        return header, None
    if not _fills(texts.tokens, valid.shape):
        return {**header, "tokens": texts.tokens}, None
    cells = [text for group in texts.tokens for tokens in group for text in tokens]
    keep = valid.ravel()
    outside = np.flatnonzero(~keep).tolist()
    if any(cells[i] for i in outside):
        header["all"] = True
    else:
        cells = [cells[i] for i in np.flatnonzero(keep).tolist()]
    words = {}
    numbers = np.array([words.setdefault(text, len(words)) for text in cells], dtype=np.int64)
    return {**header, "words": list(words)}, numbers


def _fills(tokens, shape):
    P, G, L = shape
    return len(tokens) == P and all(
        len(group) == G and all(len(texts) == L for texts in group) for group in tokens
    )


def restore_texts(header, numbers, valid):
    """The reverse of `describe_texts`."""
    prompts = _strings(header["prompts"])
    if "tokens" in header:
        tokens = tuple(tuple(_strings(texts) for texts in group) for group in header["tokens"])
        _check_length(sum(len(text) for group in tokens for texts in group for text in texts))
        return Texts(prompts, tokens)
    if numbers is None:
        return Texts(prompts)
    words = (*_strings(header["words"]), "")
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(words) - 1:
        raise Damaged("a token has no text")
    _check_length(int(np.array([len(word) for word in words])[numbers].sum()))
    cells = np.full(valid.shape, len(words) - 1)
    cells[np.ones_like(valid) if "all" in header else valid] = numbers
    return Texts(
        prompts,
        tuple(tuple(tuple(words[i] for i in texts) for texts in group) for group in cells.tolist()),
    )


def _characters(texts):
    rows = [texts.prompts, *(tokens for group in texts.tokens for tokens in group)]
    return sum(len("".join(row)) for row in rows)


def _strings(texts):
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Damaged("a text is not a text")
    joined = "".join(texts)
    joined.encode()  # refuses half a surrogate pair, which no browser is sent
    _check_length(len(joined))
    return tuple(texts)


def _check_length(characters):
    if characters > TEXT_LIMIT:
        raise Damaged("the texts are too long")
