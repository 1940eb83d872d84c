"""prime-rl's token exports, ``token_exports/step_{N}/rank_{k}.jsonl``: a sequence a line.

Columns are aligned over prompt and response; null stands where a value was not finite. The
file has advantages but no rewards.
"""

import math
import re

import numpy as np

from .heads import Column, Format, folder_of
from .roles import with_examples
from .tokens_lines import BadLine
from .tokens_scan import Layout, Sequence, Tokens, read_sequences, remark_on
from .tokens_values import check_lengths, common_value, parts_digest, row_of, step_of

ROWS = (
    "token_ids",
    "loss_mask",
    "advantages",
    "inference_logprobs",
    "trainer_logprobs",
    "entropy",
)
# The advantage stands for the reward, which a run has to have, and for nothing else: compared
# with itself it would say nothing.
TERM = "advantage (logged)"
COLUMNS = (
    Column("step", "number", "step"),
    Column(TERM, "number", "term"),
)
NO_REWARDS = (
    "Token exports of prime-rl hold no rewards: the logged advantages stand in their place, so "
    "that rewards are known up to a shift and a scale only."
)
ON_POLICY = (
    "trainer_logprobs stands for the old and the new policy, and every ratio is 1; the sampler's "
    "own are inference_logprobs."
)
_STEP = re.compile(r"(?:^|/)step_(\d{1,15})(?:/|$)")


def fits(head):
    """Whether the first record has the mask and the trainer's log-probabilities."""
    return {"loss_mask", "trainer_logprobs"} <= set(head.names)


def columns(head):
    """The few columns that are numbers of a sequence."""
    return with_examples(COLUMNS, head.first)


def home(source):
    """The folder above those of the steps."""
    folder = folder_of(source.name)
    return folder_of(folder) if _STEP.search(folder) else folder


def read(head, roles):
    """The records of one file; see `Format.read`."""
    found = _STEP.findall(head.source.name.replace("\\", "/"))
    step = int(found[-1]) if found else 0
    return read_sequences(head.source, LAYOUT, step, (NO_REWARDS, ON_POLICY))


def sequence_of(record, step):
    """The `Sequence` of one exported sequence."""
    rows, valid = _rows(record)
    advantages = rows["advantages"]
    advantage = math.nan if advantages is None else common_value(advantages[valid])
    end = int(np.argmax(valid)) if np.any(valid) else len(valid)
    return Sequence(
        step=step_of(record, "step", step),
        group=parts_digest("ids", rows["token_ids"][:end].tobytes()),
        numbers={TERM: advantage},
        length=float(np.count_nonzero(valid)),
        remarks=remark_on(_tokens(rows, valid)),
    )


def tokens_of(record):
    """The `Tokens` of one exported sequence."""
    return _tokens(*_rows(record))


def _tokens(rows, valid):
    trained = rows["trainer_logprobs"]
    if trained is None:
        return None
    arrays = {"logp_new": trained, "logp_old": trained, "token_ids": rows["token_ids"]}
    if rows["inference_logprobs"] is not None:
        arrays["logp_sampler"] = rows["inference_logprobs"]
    extra = {"entropy": rows["entropy"], "token_advantages": rows["advantages"]}
    arrays |= {
        key: row
        for key, row in extra.items()
        if row is not None and np.all(np.isfinite(row[valid]))
    }
    return Tokens(arrays=arrays, valid=valid)


def _rows(record):
    rows = {name: row_of(record, name) for name in ROWS}
    check_lengths(rows)
    for name in ("token_ids", "loss_mask"):
        if rows[name] is None or not np.all(np.isfinite(rows[name])):
            raise BadLine(f"has no {name!r}, or a blank in it")
    return rows, rows["loss_mask"] != 0


LAYOUT = Layout(
    wanted="exported sequence of prime-rl",
    sequence=sequence_of,
    tokens=tokens_of,
    texts=lambda record: ("", ""),
)
PRIME_TOKENS = Format(
    key="prime_tokens",
    label="prime-rl, token export",
    kinds=("lines",),
    fits=fits,
    columns=columns,
    read=read,
    own_groups=True,
    home=home,
    stand_in=TERM,
)
