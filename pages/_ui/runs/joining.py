"""Joining: tokens recorded beside a run go to the completions that they belong to."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from grpo_core import ARRAYS

from .arrow_text import text_digest
from .formats import format_of
from .plain_text import whole
from .records import RunFileError
from .vocabulary import with_vocabulary

OFFSETS = (0, 1)  # recorders count steps from 0 or from 1
TRIED = 50  # steps that are read in search of a batch


@dataclass(frozen=True, eq=False)
class TokenGroup:
    """Per-token arrays of one use of a group.

    Attributes
    ----------
    step : int
        The training step of this use.
    arrays : mapping from key to ndarray, (G, L)
        Keys of `grpo_core.ARRAYS` with axes PGL, ``mask`` (bool) among them.
    pieces : tuple of G tuples of str
        What each token reads, '' where unknown; no longer than the completion.
    loss : float or None
        What the trainer reported for the batch that the group was recorded with.
    """

    step: int
    arrays: Mapping[str, np.ndarray]
    pieces: tuple[tuple[str, ...], ...]
    loss: float | None = None


@dataclass(frozen=True, eq=False)
class Uses:
    """Where the tokens of each completion are, M places of them, rising in ``owner``.

    ``owner`` (M,): the row of the run; ``file``, ``row`` (M,): which record of which of the
    ``files``; ``shift`` (M,): what is added to the step that the record names;
    ``vocabulary``: id of a token -> what it reads.
    """

    files: tuple
    owner: np.ndarray
    file: np.ndarray
    row: np.ndarray
    shift: np.ndarray
    vocabulary: Mapping[int, str] = field(default_factory=dict)

    def of(self, rows):
        """A `TokenGroup` for each step that used the rows, (G,); -1 where none is."""
        found = {}
        for place, owner in enumerate(rows):
            start, end = np.searchsorted(self.owner, [owner, owner + 1])
            for at in range(start, end) if owner >= 0 else ():
                tokens = self.files[self.file[at]].tokens(int(self.row[at]))
                if tokens is not None:
                    tokens = with_vocabulary(tokens, self.vocabulary)
                    found.setdefault(tokens.step + int(self.shift[at]), {})[place] = tokens
        return tuple(_group(step, found[step], len(rows)) for step in sorted(found))


def own_uses(rows, again):
    """Tokens that stand in the records themselves; a repeated batch is a second use."""
    with_tokens = np.array([records.tokens is not None for records in rows.files])
    have = np.nonzero(with_tokens[rows.file])[0]
    shift = np.zeros(len(have), dtype=np.int64)
    return _sorted(rows.files, again.kept[have], rows.file[have], rows.row[have], shift)


def joined(heads, rows, again):
    """Tokens that other files hold, found by the texts of prompts and completions.

    Parameters
    ----------
    heads : sequence of Head
        Of per-token files.
    rows : rows.Rows
    again : repeats.Repeats

    Returns
    -------
    (Uses, tuple of str)
        Notes name what matches nothing or cannot be read.
    """
    files, names, notes = _read(heads)
    table = _Table(rows)
    batches = [
        (file, int(step), np.nonzero(records.step == step)[0])
        for file, records in enumerate(files)
        for step in np.unique(records.step)
    ]
    wanted = [files[file].texts(places) for file, _, places in batches]
    direct = [
        [table.match(step + offset, pairs) for offset in OFFSETS]
        for (_, step, _), pairs in zip(batches, wanted, strict=True)
    ]
    best = int(np.argmax([sum(at[i] is not None for at in direct) for i in range(len(OFFSETS))]))
    parts, missed = [], []
    for (file, _, places), pairs, tried in zip(batches, wanted, direct, strict=True):
        found, shift = tried[best], OFFSETS[best]
        if found is None:
            found, shift = table.anywhere(pairs), 0
        if found is None:
            missed.append(names[file])
        else:
            size = len(places)
            parts.append((again.kept[found], np.full(size, file), places, np.full(size, shift)))
    notes += _missed(missed)
    if not parts:
        return NO_USES, tuple(notes)
    owner, file, row, shift = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _sorted(tuple(files), owner, file, row, shift), tuple(notes)


class _Table:
    """The completions of a run by step and text, read where a step is asked for."""

    def __init__(self, rows):
        self._rows = rows
        order = np.argsort(rows.step, kind="stable")
        steps, starts = np.unique(rows.step[order], return_index=True)
        self._at = dict(zip(steps.tolist(), np.split(order, starts[1:]), strict=True))
        self._places = {}

    def match(self, step, pairs):
        """The row of each (prompt, completion) at a step, or None unless all are there."""
        if step not in self._at or not any(prompt or text for prompt, text in pairs):
            return None
        if step not in self._places:
            self._places[step] = _places(self._rows.texts(self._at[step]), self._at[step])
        places, taken, found = self._places[step], Counter(), []
        for pair in pairs:
            here = places.get(_key(pair), ())
            if taken[_key(pair)] >= len(here):
                return None
            found.append(here[taken[_key(pair)]])
            taken[_key(pair)] += 1
        return np.array(found, dtype=np.int64)

    def anywhere(self, pairs):
        """As `match`, at the first step that has the first of the prompts and fits."""
        steps = np.unique(self._rows.step[self._rows.group == np.uint64(text_digest(pairs[0][0]))])
        tried = (self.match(int(step), pairs) for step in steps[:TRIED])
        return next((found for found in tried if found is not None), None)


def _places(texts, rows):
    """(prompt, completion) -> rows that say it, in order."""
    found = {}
    for pair, row in zip(texts, rows.tolist(), strict=True):
        found.setdefault(_key(pair), []).append(row)
    return found


def _key(pair):
    """Two texts as they compare: a recorder may keep the blanks around them or not."""
    return whole(pair[0]).strip(), whole(pair[1]).strip()


def _read(heads):
    files, names, notes = [], [], []
    for head in heads:
        row = format_of(head)
        roles = {column.name: column.role for column in row.columns(head)}
        try:
            files.append(row.read(head, roles))
            names.append(head.source.name)
        except RunFileError as error:
            notes.append(str(error))
    return files, names, notes


def _missed(names):
    if not names:
        return []
    more = f" and {len(names) - 1:,} more files" if len(names) > 1 else ""
    return [
        f"{names[0]}{more}: their tokens were left out, as no step of the run has the same "
        "prompts and completions."
    ]


def _sorted(files, owner, file, row, shift):
    order = np.argsort(owner, kind="stable")
    return Uses(files, *(column[order] for column in (owner, file, row, shift)))


def _group(step, tokens, size):
    """One use of a group, padded to its longest completion. ``tokens``: place -> `TokenRow`."""
    lengths = {place: len(row.arrays["mask"]) for place, row in tokens.items()}
    longest = max(lengths.values())
    keys = dict.fromkeys(key for row in tokens.values() for key in row.arrays)
    arrays = {}
    for key in keys:
        dtype = next(row.arrays[key].dtype for row in tokens.values() if key in row.arrays)
        padded = np.full((size, longest), ARRAYS[key].default if key != "mask" else False, dtype)
        for place, row in tokens.items():
            if key in row.arrays:
                padded[place, : lengths[place]] = row.arrays[key]
        arrays[key] = padded
    pieces = tuple(tokens[at].pieces if at in tokens else () for at in range(size))
    loss = next((row.loss for row in tokens.values() if row.loss is not None), None)
    return TokenGroup(step, arrays, pieces, loss)


_NONE = np.zeros(0, dtype=np.int64)
NO_USES = Uses((), _NONE, _NONE, _NONE, _NONE)
