"""Texts in Arrow: prompts and completions of any type as plain strings, their lengths, digests.

Nothing here makes a Python string of a completion, save of the few that are looked at.
"""

from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .bounds import check_bound

# Where a struct keeps its text: a chat message, or a part of a message.
TEXT_FIELDS = ("content", "text")
BETWEEN = "\n"  # messages, or parts of one


def as_texts(array, name):
    """A column of texts or of lists of chat messages as strings.

    Parameters
    ----------
    array : pyarrow.Array
        Strings, dictionaries of them, structs with a text, or lists of any of these.
    name : str
        For the message when the texts are larger than what is read.

    Returns
    -------
    pyarrow.Array
        ``large_string``, or a dictionary with ``large_string`` values; null where empty.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(array.indices, as_texts(array.dictionary, name))
    if pa.types.is_struct(kind):
        known = [field for field in TEXT_FIELDS if kind.get_field_index(field) >= 0]
        return as_texts(pc.struct_field(array, known[0]), name) if known else _blank(len(array))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _joined(array, name)
    if pa.types.is_null(kind):
        return _blank(len(array))
    return array.cast(pa.large_string())


def is_text(kind):
    """Whether `as_texts` makes more of an Arrow type than the digits of a number."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    if pa.types.is_struct(kind):
        return any(
            kind.get_field_index(name) >= 0 and is_text(kind.field(name).type)
            for name in TEXT_FIELDS
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return is_text(kind.value_type)
    return is_string(kind)


def is_string(kind):
    """Whether an Arrow type is one of the three of strings."""
    strings = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_one(kind) for is_one in strings)


def lengths(texts):
    """Unicode characters of each text, (N,); NaN where there is none."""
    if pa.types.is_dictionary(texts.type):
        known = lengths(texts.dictionary)
        return _taken(known, texts.indices, np.nan)
    return np.asarray(pc.utf8_length(texts).cast(pa.float64()).to_numpy(zero_copy_only=False))


def text_digests(texts):
    """A number for each text, (N,) uint64: the same for the same text, in every file."""
    if not pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_encode(null_encoding="encode")
    known = np.array(
        [text_digest(text) for text in texts.dictionary.to_pylist()] or [0], dtype=np.uint64
    )
    return _taken(known, texts.indices, text_digest(None))


def text_digest(text):
    """The number of one text; null and '' are the same."""
    data = (text or "").encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def plain(texts, name):
    """The texts without a dictionary, after their size was checked."""
    if not pa.types.is_dictionary(texts.type):
        return texts
    sizes = pc.binary_length(texts.dictionary).to_numpy(zero_copy_only=False)
    check_bound("text bytes", int(np.nansum(_taken(sizes.astype(float), texts.indices, 0.0))), name)
    return texts.cast(texts.type.value_type)


def _joined(array, name):
    """The texts of each list, one below the other."""
    values = plain(as_texts(array.values, name), name).fill_null("")
    lists = pa.ListArray.from_arrays(array.offsets.cast(pa.int32()), values)
    joined = pc.binary_join(lists, pa.scalar(BETWEEN, pa.large_string()))
    return pc.if_else(array.is_valid(), joined, None)


def _blank(count):
    return pa.nulls(count, pa.large_string())


def _taken(values, indices, missing):
    at = indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.where(at >= 0, values[at], missing).astype(values.dtype)
