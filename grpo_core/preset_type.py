"""A preset: what one framework or paper computes by default."""

from dataclasses import dataclass
from functools import cached_property

from .stages import Conventions


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One framework's or paper's setting."""

    key: str
    label: str
    kind: str  # 'framework' or 'paper'
    choices: dict
    source: str
    group_size: int | None = None
    beside: str = ""
    missing: str = ""  # what a missing reward makes of advantages: 'nan', or as in the choices

    @cached_property
    def conventions(self):
        """The whole setting."""
        return Conventions.of(**self.choices)


NO_KL = ("k3", {"beta": 0.0})


def sample(eps, **options):
    """Group mean over the sample standard deviation plus eps, as every trainer does."""
    return "mean_std", {"ddof": 1, "eps": eps, **options}


def clip(low, high=None):
    """The clipped surrogate; one bound for both sides unless a second is given."""
    return "clip", {"epsilon_low": low, "epsilon_high": low if high is None else high}
