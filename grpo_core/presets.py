"""PRESETS: what trainers and papers compute by default, each at a version.

A preset names a choice for the stages in which it differs from `DEFAULT_CONVENTIONS`; all
others stand at their default. Where a default comes from is in ``source``; what a framework
does besides, and no stage here computes, is in ``beside``.
"""

from dataclasses import dataclass
from types import MappingProxyType

from . import preset_frameworks, preset_papers
from .preset_type import Preset, sample
from .stages import STAGES, Conventions
from .variants import table

PRESETS = table(*preset_frameworks.ROWS, *preset_papers.ROWS)


# What each library divides by and adds to it, for the rewards of one group.
ADVANTAGE_FORMULAS = MappingProxyType(
    {
        "TRL": Conventions.of(advantage=sample(1e-4)),
        "verl": Conventions.of(advantage=sample(1e-6)),
        "population": Conventions.of(advantage=("mean_std", {"ddof": 0, "eps": 1e-8})),
    }
)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One option, or one variant, in which two settings differ."""

    stage: str
    option: str  # '' where the variants differ
    left: object
    right: object


def differences(left, right):
    """In which stages and options two conventions differ.

    Options of unlike variants are not compared.

    Returns
    -------
    tuple of Difference
    """
    found = []
    for stage in STAGES:
        a, b = left[stage], right[stage]
        if a.variant != b.variant:
            found.append(Difference(stage=stage, option="", left=a.variant, right=b.variant))
            continue
        found += [
            Difference(stage=stage, option=key, left=value, right=b.options[key])
            for key, value in a.options.items()
            if value != b.options[key]
        ]
    return tuple(found)


__all__ = ["ADVANTAGE_FORMULAS", "PRESETS", "Difference", "Preset", "differences"]
