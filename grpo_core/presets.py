"""Named settings of trainers."""

from collections.abc import Mapping
from types import MappingProxyType

from .stages import Conventions

# What each library divides by and adds to it. The sample formula is fixed in both trainers.
ADVANTAGE_FORMULAS: Mapping[str, Conventions] = MappingProxyType(
    {
        "TRL": Conventions.of(advantage=("mean_std", {"ddof": 1, "eps": 1e-4})),
        "verl": Conventions.of(advantage=("mean_std", {"ddof": 1, "eps": 1e-6})),
        "population": Conventions.of(advantage=("mean_std", {"ddof": 0, "eps": 1e-8})),
    }
)
