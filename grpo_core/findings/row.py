"""What a row of the table of findings is, and how grave it may be."""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

# Gravest first: the order in which findings are shown.
SEVERITIES = MappingProxyType(
    {
        "error": "A number is infinite, or would be in a trainer.",
        "warning": "A signal is lost, or comes from something that is not meant.",
        "note": "Explains a number that surprises many.",
    }
)


@dataclass(frozen=True, kw_only=True)
class FindingRow:
    """One thing that numbers can say.

    ``find`` maps an evaluation to the figures of the sentence, or to None where it does not
    hold. Figures are plain Python numbers and words; ``places`` among them lists the cells
    that it holds for, the most telling first. ``sentence`` puts the figures into words.
    ``page`` is the address of the page that shows it best, ``question`` what a reader asks
    who meets it.
    """

    code: str
    severity: str
    page: str
    question: str
    find: Callable
    sentence: Callable
