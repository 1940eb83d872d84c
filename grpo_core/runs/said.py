"""What a row of the table of a run's findings is."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RunFinding:
    """One thing that a run can say.

    ``find`` maps an `Explained` to the figures of the sentence, or None where it does not hold;
    ``step`` or ``group`` among them is what to look at. ``severity`` as in
    `grpo_core.findings.row.SEVERITIES`; ``question`` is what a reader asks who meets it.
    """

    code: str
    severity: str
    question: str
    find: Callable
    sentence: Callable
