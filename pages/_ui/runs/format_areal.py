"""AReaL's ``rollout/{tail_version}/{task_id}.jsonl``: a completion a line, a task a group."""

import functools

from .heads import Format, folder_of
from .json_records import Way, json_columns, read_json
from .tokens_values import scalar

KNOWN = {
    "task_id": ("number", "group"),
    "tail_version": ("number", "step"),
    "head_version": ("number", "ignore"),
    "sample_idx": ("number", "ignore"),
    "seqlen": ("number", "ignore"),
    "prompt_len": ("number", "ignore"),
    "reward": ("number", "term"),
    "prompt": ("text", "prompt"),
    "completion": ("text", "completion"),
}


def fits(head):
    """Whether the first record has what AReaL writes with every completion."""
    return {"task_id", "seqlen", "prompt_len", "reward"} <= set(head.names)


def home(source):
    """The folder above those of the versions."""
    return folder_of(folder_of(source.name))


def tokens_of(record):
    """Tokens of the completion."""
    return scalar(record, "seqlen") - scalar(record, "prompt_len")


AREAL = Format(
    key="areal",
    label="AReaL rollouts",
    kinds=("lines",),
    fits=fits,
    columns=functools.partial(json_columns, known=KNOWN),
    read=functools.partial(read_json, way=Way(length=tokens_of)),
    home=home,
)
