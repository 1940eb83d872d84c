"""explain: a run with all that is found out about it, and the table of what that says."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ..findings.row import SEVERITIES
from . import say_convention, say_course, say_groups
from .fit import Fit, fit
from .run import Run, RunLog
from .said import RunFinding
from .series import Series, guess_task, series
from .turn import Turn, turns


@dataclass(frozen=True, eq=False, kw_only=True)
class Explained:
    """A run and what was found out about it.

    Attributes
    ----------
    name : str
    run : Run
    log : RunLog or None
    fit : Fit
    task : str
        The term or measure that counts as the task.
    series : Series
    turns : tuple of Turn
    stand_ins : bool
        The rewards are none, but stand in for those that the files do not hold.
    """

    name: str
    run: Run
    log: RunLog | None
    fit: Fit
    task: str
    series: Series
    turns: tuple[Turn, ...]
    stand_ins: bool = False


# Within a severity the earlier row is shown first.
RUN_FINDINGS: Mapping[str, RunFinding] = MappingProxyType(
    {row.code: row for module in (say_course, say_groups, say_convention) for row in module.ROWS}
)


@dataclass(frozen=True)
class Said:
    """One thing that a run says.

    ``where`` names what to look at: ``{'step': s}``, ``{'group': q}``, or nothing.
    """

    code: str
    severity: str
    question: str
    sentence: str
    where: Mapping


def explain(run, log=None, *, name="", weights=None, task=None, stand_ins=False):
    """Find the convention of a run and sum up its steps.

    Parameters
    ----------
    run : Run
    log : RunLog, optional
    name : str
    weights : array-like, (K,), optional
        Weights of the terms, where they are known from elsewhere.
    task : str, optional
        The term or measure that is the task; guessed by its name otherwise.
    stand_ins : bool
        Whether the rewards are not in the files and something else stands for them: then nothing
        is said that is about rewards.

    Returns
    -------
    Explained
    """
    task = task or guess_task(run)
    found = fit(run, log, weights=weights)
    shown = series(run, found.weights, task, found.parts)
    return Explained(
        name=name, run=run, log=log, fit=found, task=task, series=shown,
        turns=tuple(turns(shown, run.names, task, found.weights)), stand_ins=stand_ins,
    )  # fmt: skip


def say(explained):
    """What a run says, gravest first; a tuple of `Said`."""
    said = []
    with np.errstate(all="ignore"):
        for row in RUN_FINDINGS.values():
            if explained.stand_ins and row.about_rewards:
                continue
            figures = row.find(explained)
            if figures is not None:
                severity = figures.get("severity", row.severity)
                where = {key: figures[key] for key in ("step", "group") if key in figures}
                said.append(Said(row.code, severity, row.question, row.sentence(figures), where))
    order = list(SEVERITIES)
    return tuple(sorted(said, key=lambda one: order.index(one.severity)))
