"""Our own layout: arrays per token in npz, JSON or JSON Lines, as `layout_text` describes it."""

import functools
import weakref
from dataclasses import dataclass

import numpy as np

from .bounds import check_bound
from .heads import Column, Format
from .records import Records
from .steps_of import step_of_name
from .tokens_batch import LEADERS, PER_TOKEN, TERMS, renamed, term_names
from .tokens_files import batch_again, documents, first_pass, npz_fields
from .tokens_flat import depth_of
from .tokens_values import token_row
from .vocabulary import learnt, pieces_of

# column: (kind, role), where the file has it.
COLUMNS = {
    "step": ("number", "step"),
    "group": ("text", "group"),
    "prompts": ("text", "prompt"),
    "completions": ("text", "completion"),
    "rewards": ("number", "term"),
    "advantages": ("number", "advantage"),
    "loss": ("number", "ignore"),
}
NUMBERED = "{} names no step: {}."


def fits(head):
    """Whether a file holds arrays under the names of this layout.

    Records of other trainers hold rewards, too, so that JSON has to have a value per token.
    """
    names = set(renamed(dict.fromkeys(head.names, 0)))
    if head.kind == "npz":
        return bool(names & set(LEADERS))
    nested = [name for name, value in renamed(head.first).items() if depth_of(value) > 1]
    return bool(names & set(PER_TOKEN)) and bool(nested or not head.first)


def columns(head):
    """Columns: one for each reward term, one for the total and the advantages."""
    fields = head.first
    if head.kind == "npz":
        fields = npz_fields(head.source, _FEW)
    elif not fields:
        fields = documents(head.source)[0]
    names = set(renamed(dict.fromkeys(head.names, 0)))
    terms = tuple(Column(name, "number", "term") for name in _terms(renamed(fields)))
    found = []
    for name, (kind, role) in COLUMNS.items():
        if name in names:
            total = name == "rewards" and terms
            found.append(Column(name, kind, "total" if total else role))
    return (*found, *terms)


_FEW = (TERMS, "term_names")


def _terms(fields):
    """Names of the reward terms of the first batch."""
    if TERMS not in fields:
        return ()
    value = fields[TERMS]
    if isinstance(value, np.ndarray):
        return term_names(fields, value.shape[-1] if value.ndim else 0)
    while isinstance(value, list) and value and isinstance(value[0], list):
        value = value[0]
    return term_names(fields, len(value) if isinstance(value, list) else 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Kept:
    """What is kept of a batch: nothing that is per token."""

    step: int | None
    group: np.ndarray
    numbers: dict
    lengths: np.ndarray
    tokens: bool
    remarks: tuple


def _keep(batch):
    count = len(batch.group)
    lengths = np.full(count, np.nan) if batch.mask is None else np.sum(batch.mask, axis=1)
    return _Kept(
        step=batch.step,
        group=batch.group,
        numbers=dict(batch.numbers),
        lengths=lengths.astype(np.float64),
        tokens=batch.mask is not None,
        remarks=batch.remarks,
    )


def read(head, roles):
    """The records of one file; see `Format.read`."""
    source = head.source
    file, kept, notes = first_pass(source, head.kind, _keep)
    counts = [len(batch.group) for batch in kept]
    check_bound("rows", sum(counts), source.name)
    steps, more = _steps(source, kept)
    names = dict.fromkeys(name for batch in kept for name in batch.numbers)
    starts = np.cumsum([0, *counts])
    remarks = dict.fromkeys(remark for batch in kept for remark in batch.remarks)
    return Records(
        step=np.repeat(steps, counts),
        group=np.concatenate([batch.group for batch in kept]),
        block=False,
        numbers={
            name: np.concatenate(
                [
                    batch.numbers.get(name, np.full(count, np.nan))
                    for batch, count in zip(kept, counts, strict=True)
                ]
            )
            for name in names
        },
        lengths=np.concatenate([batch.lengths for batch in kept]),
        unit="tokens",
        texts=functools.partial(_texts, file, starts),
        tokens=functools.partial(_tokens, file, starts, steps)
        if any(batch.tokens for batch in kept)
        else None,
        notes=(*notes, *more, *remarks),
    )


def _steps(source, kept):
    """The step of each batch: named, else the number in the file's name, else its position."""
    if all(batch.step is not None for batch in kept):
        return [batch.step for batch in kept], ()
    first = step_of_name(source)
    how = "the last number in the file's name is taken" if first is not None else "0 is taken"
    if len(kept) > 1:
        how = "batches without one are counted from there, and " + how
    steps = [(first or 0) + k if batch.step is None else batch.step for k, batch in enumerate(kept)]
    return steps, (NUMBERED.format(source.name, how),)


def _found(file, starts, row):
    """The batch that holds a record, which batch it is, and the record's row in it."""
    k = int(np.searchsorted(starts, row, side="right")) - 1
    return batch_again(file, k), k, row - int(starts[k])


def _texts(file, starts, rows):
    found = []
    for row in rows:
        batch, _, i = _found(file, starts, row)
        found.append((_text(batch.prompts, i), _text(batch.completions, i)))
    return found


def _text(texts, i):
    return "" if texts is None or texts[i] is None else str(texts[i])


def _tokens(file, starts, steps, row):
    batch, k, i = _found(file, starts, row)
    if batch.mask is None:
        return None
    valid = batch.mask[i]
    arrays = {key: array[i] for key, array in batch.arrays.items()}
    return token_row(steps[k], arrays, valid, _pieces(file, k, batch, i), batch.loss)


def _pieces(file, k, batch, i):
    """What the tokens of a completion read: given, or learnt from the batch."""
    if batch.pieces is not None:
        given = batch.pieces[i]
        given = given.tolist() if isinstance(given, np.ndarray) else given or []
        texts = [piece if isinstance(piece, str) else "" for piece in given]
        texts += [""] * (len(batch.mask[i]) - len(texts))
        return tuple(text for text, counts in zip(texts, batch.mask[i], strict=False) if counts)
    if batch.completions is None or "token_ids" not in batch.arrays:
        return ()
    ids = batch.arrays["token_ids"][i][batch.mask[i]]
    return pieces_of(ids, _text(batch.completions, i), _vocabulary(file, k))


# What the tokens of a file were found to read, by its batches; it goes with the file.
_LEARNT = weakref.WeakKeyDictionary()


def _vocabulary(file, k):
    of_file = _LEARNT.setdefault(file, {})
    if k not in of_file:
        of_file[k] = _learnt_of(file, k)
    return of_file[k]


def _learnt_of(file, k):
    batch = batch_again(file, k)
    ids = batch.arrays["token_ids"]
    rows = [row[valid] for row, valid in zip(ids, batch.mask, strict=True)]
    return learnt(rows, [_text(batch.completions, i) for i in range(len(rows))])


ARRAYS_FORMAT = Format(
    key="arrays",
    label="Arrays per token, our own layout",
    kinds=("npz", "json", "lines"),
    fits=fits,
    columns=columns,
    read=read,
    own_groups=True,
    attaches=True,
)
