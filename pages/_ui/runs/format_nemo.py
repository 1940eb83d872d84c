"""NeMo-RL's ``train_data_step{N}.jsonl``: a sample a line, padded rows over prompt and response.

Position t of a row of log-probabilities belongs to token t. ``input_lengths`` says how many
positions are no padding; that this stands on the right or on the left shows in where
``token_loss_mask`` marks tokens. The writer slices its batch, so
that a number may stand in a list of one and a row in a list of lists. With dynamic sampling
``rewards`` is of everything that was sampled and ``filtered_rewards`` of what was trained on,
the only one in the order of the rows.
"""

import math

import numpy as np

from .heads import Column, Format
from .needed import NUMBERS
from .plain_text import kind_of
from .roles import with_examples
from .steps_of import step_of_name
from .tokens_lines import BadLine
from .tokens_scan import Layout, Sequence, Tokens, read_sequences, remark_on
from .tokens_values import alone, check_lengths, common_value, parts_digest, row_of, scalar

ROWS = ("token_ids", "token_loss_mask", "prev_logprobs", "generation_logprobs")
# column: (kind, role); what is not listed and is a number is a measure.
KNOWN = {
    "content": ("text", "completion"),
    "rewards": ("number", "term"),
    "filtered_rewards": ("number", "term"),
    "advantages": ("number", "advantage"),
    "input_lengths": ("number", "ignore"),
    "sample_loss_mask": ("number", "ignore"),
    "idx": ("number", "ignore"),
}
DROPPED = "sample_loss_mask is 0: left out of the loss, kept here"
ON_POLICY = (
    "NeMo-RL writes log-probabilities from before the update only: prev_logprobs stands for the "
    "old and the new policy, and every ratio is 1."
)
UNALIGNED = (
    "With dynamic sampling, rewards are of all samples and filtered_rewards of those trained on: "
    "only the latter stand beside their own tokens, so that rewards are ignored."
)


def fits(head):
    """Whether the first record has what NeMo-RL writes with every sample."""
    names = set(head.names)
    return {"rewards", "idx"} <= names and bool(names & {"content", "token_loss_mask"})


def is_validation(head):
    """As `fits`, for the file of a validation."""
    return fits(head) and head.source.base.startswith("val_")


def columns(head):
    """Columns of the first records; rows of tokens are no columns."""
    filtered = "filtered_rewards" in head.names
    found = []
    for name in head.names:
        kind, role = KNOWN.get(name) or (kind_of(head.first.get(name)), "ignore")
        if name not in KNOWN and kind == "number":
            role = "measure"
        if name == "rewards" and filtered:
            role = "ignore"
        if name not in ROWS:
            found.append(Column(name, kind, role, asked=role == "measure" or kind == "blank"))
    return with_examples(tuple(found), head.first)


def read(head, roles):
    """The records of one file; see `Format.read`."""
    named = step_of_name(head.source)
    names = tuple(name for name, role in roles.items() if role in NUMBERS and name not in ROWS)
    layout = Layout(
        wanted="sample of NeMo-RL",
        sequence=lambda record, step: sequence_of(record, step, names),
        tokens=tokens_of,
        texts=texts_of,
    )
    notes = (ON_POLICY,) if "prev_logprobs" in head.names else ()
    notes += (UNALIGNED,) if "filtered_rewards" in head.names else ()
    return read_sequences(head.source, layout, named or 0, notes)


def sequence_of(record, step, names):
    """The `Sequence` of one sample, with the numbers of some names."""
    rows, valid = _rows(record)
    advantage = _advantage(record, rows, valid)
    remarks = remark_on(tokens_of(record))
    if scalar(record, "sample_loss_mask") == 0:
        remarks = (DROPPED, *remarks)
    return Sequence(
        step=step,
        group=_group(record, rows, valid),
        numbers={
            name: advantage if name == "advantages" else scalar(record, name) for name in names
        },
        length=math.nan if valid is None else float(np.count_nonzero(valid)),
        remarks=remarks,
    )


def tokens_of(record):
    """The `Tokens` of one sample, or None where it has no mask or no log-probability."""
    rows, valid = _rows(record)
    sampled, before = rows["generation_logprobs"], rows["prev_logprobs"]
    before = sampled if before is None else before
    if valid is None or before is None:
        return None
    arrays = {"logp_new": before, "logp_old": before}
    optional = {
        "logp_sampler": sampled,
        "token_ids": rows["token_ids"],
        "token_advantages": rows["advantages"],
    }
    arrays |= {key: row for key, row in optional.items() if row is not None}
    return Tokens(arrays=arrays, valid=valid)


def texts_of(record):
    """Prompt and completion; in one text of both, nothing tells where the prompt ends."""
    content = record.get("content")
    while isinstance(content, list) and len(content) == 1 and isinstance(content[0], (str, list)):
        content = content[0]
    if not isinstance(content, list):
        return "", content if isinstance(content, str) else ""
    messages = [_message(message) for message in content]
    said = [i for i, (role, _) in enumerate(messages) if role == "assistant"]
    # Bare texts have no roles: the last one is the answer.
    start = said[0] if said else max(len(messages) - 1, 0)
    texts = [text for _, text in messages]
    return "\n".join(texts[:start]), "\n".join(texts[start:])


def _message(message):
    if isinstance(message, dict):
        text = message.get("content")
        return message.get("role"), text if isinstance(text, str) else ""
    return None, message if isinstance(message, str) else ""


def _rows(record):
    """Rows of tokens by name, and which positions were trained on (None if not known)."""
    rows = {name: row_of(record, name) for name in ROWS}
    per_token = isinstance(alone(record.get("advantages")), list)
    rows["advantages"] = row_of(record, "advantages") if per_token else None
    check_lengths(rows)
    mask = rows["token_loss_mask"]
    return rows, None if mask is None else np.nan_to_num(mask) != 0


def _own(record, rows, valid):
    """(first, end) of the positions that are no padding: rows are padded at either side.

    Raises
    ------
    BadLine
        What was trained on lies in the padding, whichever side that is.
    """
    length, room = scalar(record, "input_lengths"), len(valid)
    if math.isnan(length):
        return 0, room
    if not 0 <= length <= room:
        raise BadLine(f"has {length:g} for 'input_lengths' and {room:,} values in a row")
    length = int(length)
    start, trained = room - length, np.nonzero(valid)[0]
    first, last = (trained[0], trained[-1]) if trained.size else (start, length - 1)
    left, right = first >= start, last < length
    if not (left or right):
        raise BadLine(
            f"has {length:,} for 'input_lengths', but 'token_loss_mask' marks tokens from "
            f"{first:,} to {last:,} of {room:,}"
        )
    if left and right:
        left = _repeated(rows["token_ids"], start, length)
    return (start, room) if left else (0, length)


def _repeated(ids, start, length):
    """Whether padding, one token again and again, stands on the left and not on the right."""
    return ids is not None and bool(
        np.all(ids[:start] == ids[0]) and np.any(ids[length:] != ids[-1])
    )


def _advantage(record, rows, valid):
    row = rows["advantages"]
    if row is None:
        return scalar(record, "advantages")
    return common_value(row if valid is None else row[valid])


def _group(record, rows, valid):
    """The tokens before the first one that was trained on are the prompt, padding left out."""
    ids = rows["token_ids"]
    start, end = (0, 0) if valid is None else _own(record, rows, valid)
    if ids is None or valid is None:
        prompt, completion = texts_of(record)
        return parts_digest("text", prompt or completion)
    if not np.all(np.isfinite(ids)):
        raise BadLine("has a blank in 'token_ids'; wanted whole numbers")
    if np.any(valid):
        end = int(np.argmax(valid))
    return parts_digest("ids", ids[start:end].tobytes())


NEMO_VALIDATION = Format(
    key="nemo_validation",
    label="NeMo-RL, validation samples",
    kinds=("lines",),
    fits=is_validation,
    columns=columns,
    read=read,
    own_groups=True,
)
NEMO = Format(
    key="nemo",
    label="NeMo-RL, training samples",
    kinds=("lines",),
    fits=fits,
    columns=columns,
    read=read,
    own_groups=True,
)
