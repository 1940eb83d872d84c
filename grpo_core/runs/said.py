"""What a row of the table of a run's findings is."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RunFinding:
    """One thing that a run can say.

    ``find`` maps an `Explained` to the figures of the sentence, or None where it does not hold;
    ``step`` or ``group`` among them is what to look at. ``severity`` as in
    `grpo_core.findings.row.SEVERITIES`, unless the figures bring their own; ``question`` is what
    a reader asks who meets it. ``about_rewards`` is False for what holds without rewards.
    """

    code: str
    severity: str
    question: str
    find: Callable
    sentence: Callable
    about_rewards: bool = True
