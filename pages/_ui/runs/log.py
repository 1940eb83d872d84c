"""The trainer's own log: Hugging Face's ``log_history``, alone or in ``trainer_state.json``."""

import json

import numpy as np

from grpo_core.runs.run import RunLog

from .bounds import check_bound
from .records import RunFileError
from .steps_of import LARGEST

HISTORY = "log_history"
NAMES = ("trainer_state.json", "log_history.json")
LAST = "train_runtime"  # only the closing record of a run has it
NAMES_AT_MOST = 2000
CELLS_AT_MOST = 20_000_000


def is_log(head):
    """Whether a JSON file is a log, or a state of the trainer that holds one."""
    if head.source.base in NAMES:
        return True
    if HISTORY in head.first:
        return isinstance(head.first[HISTORY], list)
    return head.kind == "json" and "step" in head.names and "epoch" in head.names


def read_log(source):
    """The log of a run.

    Returns
    -------
    grpo_core.runs.run.RunLog

    Raises
    ------
    RunFileError
    """
    document = parsed(source)
    records = document.get(HISTORY) if isinstance(document, dict) else document
    if not isinstance(records, list):
        raise RunFileError(f"{source.name} holds no list of logged records ({HISTORY!r}).")
    kept = [record for record in records if _is_step(record) and LAST not in record]
    if not kept:
        raise RunFileError(f"{source.name} holds no record with a step.")
    names = {name: None for record in kept for name in record if name != "step"}
    if len(names) > NAMES_AT_MOST or len(names) * len(kept) > CELLS_AT_MOST:
        raise RunFileError(f"{source.name} logs {len(names):,} values a step, too many to read.")
    table = np.array([[_number(record.get(name)) for name in names] for record in kept])
    table = table.reshape(len(kept), len(names))
    known = np.any(~np.isnan(table), axis=0)
    values = {name: table[:, at] for at, name in enumerate(names) if known[at]}
    return RunLog(np.array([int(_number(record["step"])) for record in kept]), values)


def parsed(source):
    """The document that a JSON file holds.

    Raises
    ------
    RunFileError
        No JSON: its line and column.
    """
    check_bound("json bytes", source.size, source.name)
    try:
        return json.loads(source.read().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise RunFileError(f"{source.name} is not UTF-8 text. Save it as UTF-8.") from None
    except json.JSONDecodeError as error:
        raise RunFileError(
            f"{source.name} is not JSON: line {error.lineno}, column {error.colno}. "
            "It may still be written or was cut off; copy it again."
        ) from None
    except RecursionError:
        raise RunFileError(f"{source.name} is nested too deeply.") from None
    except ValueError:
        raise RunFileError(f"{source.name} holds a number with too many digits.") from None


def _is_step(record):
    if not isinstance(record, dict):
        return False
    step = _number(record.get("step"))
    return step == np.floor(step) and abs(step) <= LARGEST


def _number(value):
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    try:
        return float(value) if isinstance(value, (int, float)) else np.nan
    except OverflowError:
        return np.nan
