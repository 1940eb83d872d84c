"""The table of findings, and the one function that reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from . import (
    clipping,
    conventions,
    difficulty,
    groups,
    kl,
    lengths,
    limits,
    losses,
    pull,
    recorded,
    shaping,
    size,
    splits,
    steps,
    terms,
    trainers,
)
from .row import SEVERITIES, FindingRow

# Within a severity the earlier row is shown first.
FINDINGS: Mapping[str, FindingRow] = MappingProxyType(
    {
        row.code: row
        for module in (
            limits,
            recorded,
            losses,
            groups,
            size,
            difficulty,
            shaping,
            terms,
            steps,
            conventions,
            clipping,
            kl,
            lengths,
            trainers,
            splits,
            pull,
        )
        for row in module.ROWS
    }
)


@dataclass(frozen=True)
class Finding:
    """One thing that the numbers say, with the figures that it is said with.

    Attributes
    ----------
    code : str
        Key of `FINDINGS`.
    severity : {'error', 'warning', 'note'}
    where : tuple of int
        (prompt,), (prompt, completion) or (prompt, completion, token); () for the batch.
    figures : mapping
        ``places`` lists all cells or groups that it holds for, `where` first.
    """

    code: str
    severity: str
    where: tuple
    figures: Mapping = field(hash=False)

    @property
    def text(self):
        """The finding in plain words with its numbers; neither Markdown nor HTML."""
        return FINDINGS[self.code].sentence(self.figures)

    @property
    def page(self):
        """Address of the page that shows it best."""
        return FINDINGS[self.code].page

    @property
    def question(self):
        """What a reader who meets it tends to ask."""
        return FINDINGS[self.code].question


def find(evaluation):
    """Everything the table has to say about an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
        Of a scenario, as `evaluate` returns it.

    Returns
    -------
    tuple of Finding
        Errors first, then warnings, then notes; at most one finding per code.
    """
    found = []
    with np.errstate(all="ignore"):  # rules compare with infinities on purpose
        for row in FINDINGS.values():
            figures = row.find(evaluation)
            if figures is not None:
                where = figures["places"][0] if figures["places"] else ()
                found.append(Finding(row.code, row.severity, where, MappingProxyType(figures)))
    order = list(SEVERITIES)
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))
