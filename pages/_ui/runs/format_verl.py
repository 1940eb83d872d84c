"""verl's rollout dumps ``{step}.jsonl``, of both generations of its trainer.

``score`` is the whole reward, the summed one of the tokens with its overlong penalty included:
what else the reward function returned, ``overlong_reward`` and ``acc`` among it, is followed
beside it. The older trainer writes no group: it moves rows about, so that only equal prompts
tell. The newer one writes a ``uid`` of sample, rollout and output.
"""

import functools

from .heads import Format
from .json_records import Way, json_columns, read_json
from .plain_text import text_of

KNOWN = {
    "input": ("text", "prompt"),
    "output": ("text", "completion"),
    "gts": ("other", "ignore"),
    "score": ("number", "term"),
    "step": ("number", "step"),
    "uid": ("text", "group"),
    "request_id": ("text", "ignore"),
}


def fits(head):
    """Whether the first record has what verl writes with every response."""
    return {"input", "output", "score"} <= set(head.names)


def sample_of(uid):
    """The part of a ``uid`` that all rollouts of a prompt share."""
    text = text_of(uid)
    parts = text.rsplit("_", 2)
    return parts[0] if len(parts) == 3 else text


VERL = Format(
    key="verl",
    label="verl rollouts",
    kinds=("lines",),
    fits=fits,
    columns=functools.partial(json_columns, known=KNOWN),
    read=functools.partial(read_json, way=Way(group=sample_of)),
)
