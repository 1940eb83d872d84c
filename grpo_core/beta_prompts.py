"""A whole data set of prompts whose success rates follow a Beta distribution.

Every formula here is a ratio of Beta functions: ``E[p**G] = B(a + G, b) / B(a, b)``, the
product of ``(a + i)/(a + b + i)`` for i below G.
"""

import math
from dataclasses import dataclass

import numpy as np

from .inputs import checked_number
from .prompt_rewards import checked_group_size, prompts_from_rates
from .variants import Number

_SHAPE = Number(low=0.0, high=1000.0, exclusive=True)


@dataclass(frozen=True, kw_only=True)
class BetaPrompts:
    """What groups of G find in prompts with rates from Beta(a, b), before and after selection.

    Attributes
    ----------
    a, b : float
    G : int
    silent : float
        Probability that a group of a random prompt ties. It falls as a power of G, not
        exponentially: however large the group, some prompts are too hard or too easy.
    mean : float
        Mean success rate of all prompts.
    kept_mean : float
        Mean success rate of the prompts whose groups are mixed.
    kept_observed : float
        Mean share of right answers in those groups.
    """

    a: float
    b: float
    G: int
    silent: float
    mean: float
    kept_mean: float
    kept_observed: float

    def density(self, rates):
        """Density of all prompts and of the kept ones at these rates; both (R,)."""
        rates = prompts_from_rates(rates).rates
        log_beta = math.lgamma(self.a) + math.lgamma(self.b) - math.lgamma(self.a + self.b)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            every = rates ** (self.a - 1) * (1 - rates) ** (self.b - 1) * np.exp(-log_beta)
            tied = rates**self.G + (1 - rates) ** self.G
        mixed = 1 - tied
        kept = np.where(mixed == 0, 0.0, every) * mixed / (1 - self.silent)
        return every, kept


def beta_prompts(a, b, G):
    """Silent share and survivors of dynamic sampling for Beta(a, b) prompts.

    Parameters
    ----------
    a, b : float
        Above 0. Beta(1, 1) is uniform; below 1 rates crowd at 0 or 1.
    G : int

    Returns
    -------
    BetaPrompts

    Raises
    ------
    ScenarioError
        a, b or G out of range.

    Notes
    -----
    ``silent = E[p**G] + E[q**G]``. Prompts are kept with density proportional to ``Beta(p) (1 -
    p**G - q**G)``, so their mean rate is ``(E[p] - E[p**(G + 1)] - E[p q**G]) / (1 -
    silent)``. Among the answers kept, ``(E[p] - E[p**G]) / (1 - silent)`` are right.
    """
    a, b, G = checked_number("a", a, _SHAPE), checked_number("b", b, _SHAPE), checked_group_size(G)
    mean = a / (a + b)
    right, wrong = _power_mean(a, b, G), _power_mean(b, a, G)
    mixed = 1 - right - wrong
    all_right_next = _power_mean(a, b, G + 1)
    right_after_wrong = wrong * a / (a + b + G)  # E[p q**G] = E[q**G] E[p | G wrong]
    return BetaPrompts(
        a=a,
        b=b,
        G=G,
        silent=right + wrong,
        mean=mean,
        kept_mean=(mean - all_right_next - right_after_wrong) / mixed,
        kept_observed=(mean - right) / mixed,
    )


def _power_mean(a, b, power):
    """E[p**power] under Beta(a, b)."""
    i = np.arange(power)
    return float(np.prod((a + i) / (a + b + i)))
