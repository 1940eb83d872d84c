"""Pickles are never opened: how they are told, and how their owner turns them into a file."""

import re
from dataclasses import dataclass

from . import tokens_exports as code

SUFFIXES = (".pt", ".pth", ".pkl", ".pickle", ".bin")
# Protocols 2 to 5 begin with their number; older ones are text and have only the suffix.
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_OBJECT_ARRAY = re.compile(rb"\x93NUMPY.{4,6}\{'descr': '\|O'", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Export:
    """Lines of Python that write a file in the layout of `layout_text`.

    ``names`` is a pattern of the names of files that the lines are for, ``when`` says what
    they need.
    """

    key: str
    label: str
    when: str
    code: str
    names: str = r"(?!)"  # no file


EXPORTS = (
    Export(
        key="trl",
        label="TRL: record while it trains",
        when="TRL writes completions but no log-probabilities. Use this trainer in place of "
        "GRPOTrainer; the files match the completions_*.parquet beside them.",
        code=code.TRL,
    ),
    Export(
        key="verl",
        label="verl: record while it trains",
        when="verl's JSON Lines hold rewards and texts only. These lines add the tokens.",
        code=code.VERL,
    ),
    Export(
        key="slime_train",
        label="slime: a train dump",
        when="You trained with --save-debug-train-data. Log-probabilities and advantages are "
        "those of the trainer.",
        code=code.SLIME_TRAIN,
        names=r"train.*\.pt$",
    ),
    Export(
        key="slime_rollout",
        label="slime: a rollout dump",
        when="You trained with --save-debug-rollout-data. Log-probabilities are those of the "
        "engine that sampled.",
        code=code.SLIME_ROLLOUT,
        names=r"\.pth?$",
    ),
    Export(
        key="skyrl",
        label="SkyRL: a dumped batch",
        when="You trained with dump_data_batch. Open your own file only: it is a pickle.",
        code=code.SKYRL,
        names=r"training_input\.pkl$",
    ),
    Export(
        key="object_npz",
        label="NumPy: an npz file with objects",
        when="Rows of unequal length were saved as one array. Open your own file only: it is a "
        "pickle.",
        code=code.OBJECT_NPZ,
        names=r"\.np[yz]$",
    ),
)


def is_pickle(name, head):
    """Whether a file is a pickle, by its name or by how it begins.

    Parameters
    ----------
    name : str
    head : bytes
        Its first 400 bytes or more. An npz file is judged when its arrays are read, since
        those that are no objects can be read.
    """
    if name.lower().endswith(SUFFIXES) or _PICKLE.match(head):
        return True
    if head.startswith(b"PK\x03\x04"):  # what torch.save writes
        length = int.from_bytes(head[26:28], "little")
        return head[30 : 30 + length].endswith(b"data.pkl")
    return bool(_OBJECT_ARRAY.match(head))


def refusal(name):
    """Why a pickle is not opened, and what to do instead, in one sentence."""
    base = name.replace("\\", "/").rsplit("/", 1)[-1].lower()
    fitting = next((row for row in EXPORTS if re.search(row.names, base)), None)
    lines = f"the lines “{fitting.label}”" if fitting else "a few lines of Python"
    return (
        f"{name} is a pickle: opening it can run any code that is in it, so it is never opened "
        f"here. On your own machine, turn it into npz or JSON with {lines}."
    )
