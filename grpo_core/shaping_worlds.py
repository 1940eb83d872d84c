"""A bandit of two answers, one of which always has a bonus, and which of them is learned.

Small enough to sum over: every expectation is over all groups that can come up.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import factorial

import numpy as np

from .errors import ScenarioError
from .inputs import checked_array, checked_number
from .shaping_parts import checked, own_advantages, read_line
from .variants import Number

PROBABILITY = Number(low=0.0, high=1.0)
SIZE = Number(low=2, high=8, integer=True)
_STEPS = Number(low=1, high=1000, integer=True)
# The four things that can come up: answer A right, A wrong, B right, B wrong.
_OF_A = np.array([True, True, False, False])
_RIGHT = np.array([True, False, True, False])
_ROUNDING = 1e-13
_HALVINGS = 60  # brings a weight to the last digit


@dataclass(frozen=True, kw_only=True)
class Bandit:
    """Answer A is right with chance ``success_a``, answer B with ``success_b``.

    B always has the bonus. The policy is one logit, that of A against B; ``size``
    completions make a group.
    """

    success_a: float
    success_b: float
    size: int = 8

    def __post_init__(self):
        for name in ("success_a", "success_b"):
            checked_number(name, getattr(self, name), PROBABILITY)
        checked_number("size", self.size, SIZE)

    @property
    def optimum_flip(self):
        """The weight beyond which B has the larger expected reward; 0 if it has it anyway."""
        return max(self.success_a - self.success_b, 0.0)


@dataclass(frozen=True, eq=False)
class BanditUpdate:
    """What GRPO expects of a bandit, for W weights and Q policies.

    ``gap`` (W, Q) is ``E[advantage | A] - E[advantage | B]``, ``update`` (W, Q) the expected
    gradient of the objective by the logit of A, which is ``p (1 - p) gap``. ``decided`` (Q,)
    is the chance of a group with both answers in it whose task rewards are tied, so that
    the bonus alone decides it.
    """

    gap: np.ndarray
    update: np.ndarray
    decided: np.ndarray


def bandit_update(bandit, weights, policy_a=0.5, *, scale="std", ddof=0, eps=1e-8):
    """Expected update of GRPO, exactly, by enumeration of all groups.

    Parameters
    ----------
    bandit : Bandit
    weights : array-like, shape (W,)
        Weights of the bonus.
    policy_a : float or array-like, shape (Q,)
        Chance that the policy gives answer A, above 0 and below 1.
    scale : {'std', 'none'}
        Whether the advantage divides by the group's standard deviation.
    ddof : {0, 1}
    eps : float

    Returns
    -------
    BanditUpdate

    Raises
    ------
    ScenarioError
        A chance that is none, a weight that is not finite, unknown options.

    Examples
    --------
    Without the standard deviation the gap is (G - 1) / G of that of the expected rewards:

    >>> bandit = Bandit(success_a=0.6, success_b=0.5, size=4)
    >>> bandit_update(bandit, [0.0, 0.2], scale="none").gap.round(12).tolist()
    [[0.075], [-0.075]]
    """
    options = checked(scale=scale, ddof=ddof, eps=eps)
    policy = open_chances("policy_a", np.atleast_1d(policy_a))
    chances = _chances(bandit, policy)  # (Q, N)
    update = _advantage_of_a(bandit, read_line("weights", weights), options) @ chances.T
    kinds = all_groups(len(_OF_A), bandit.size)[0]  # (N, G)
    right, of_a = _RIGHT[kinds], _OF_A[kinds]
    tied = np.all(right == right[:, :1], axis=1) & np.any(of_a != of_a[:, :1], axis=1)
    return BanditUpdate(update / (policy * (1 - policy)), update, chances @ tied)


def update_flip(bandit, policy_a=0.5, *, scale="std", ddof=0, eps=1e-8):
    """The first weight at which GRPO's expected update no longer favours A.

    Returns
    -------
    float
        0 if it favours A at none. Where every weight that is not lost in eps turns it, this
        is one of the size of eps.

    Notes
    -----
    Without the standard deviation this is the weight at which the optimum changes. With it,
    groups that only the bonus tells apart push at full size however small it is. For eps 0
    and two completions A is favoured up to a weight of 1 if ``a (1 - b) > 1/2``, else never.

    Examples
    --------
    >>> bandit = Bandit(success_a=0.3, success_b=0.1)
    >>> round(update_flip(bandit, ddof=1, eps=0.0), 4), round(bandit.optimum_flip, 4)
    (0.0729, 0.2)
    """
    options = checked(scale=scale, ddof=ddof, eps=eps)
    chances = _chances(bandit, open_chances("policy_a", [policy_a]))[0]

    def favours_a(weights):
        return _advantage_of_a(bandit, weights, options) @ chances > _ROUNDING

    low = min(1e-9, 1e-3 * options["eps"]) if options["eps"] else 1e-9
    # Beyond 1 a wrong answer with the bonus is worth more than a right one without it.
    weights = np.append(np.geomspace(low, 1.0, 181), 2.0)
    first = int(np.argmin(favours_a(weights)))
    if first == 0:
        return 0.0
    below, above = weights[first - 1], weights[first]
    for _ in range(_HALVINGS):
        middle = below + (above - below) / 2
        below, above = (middle, above) if favours_a(np.array([middle]))[0] else (below, middle)
    return float(above)


def follow_update(
    bandit, weight, start=0.5, *, steps=100, learning_rate=1.0, scale="std", ddof=0, eps=1e-8
):
    """Where the expected update leads: the chance of answer A before and after each step.

    Returns
    -------
    ndarray, shape (steps + 1,)
    """
    options = checked(scale=scale, ddof=ddof, eps=eps)
    steps = checked_number("steps", steps, _STEPS)
    rate = checked_number("learning_rate", learning_rate, Number(low=0.0, high=1e3))
    chance = float(open_chances("start", [start])[0])
    advantage = _advantage_of_a(bandit, read_line("weight", [weight]), options)[0]
    path, logit = [chance], np.log(chance) - np.log1p(-chance)
    for _ in range(steps):
        logit += rate * float(advantage @ _chances(bandit, np.array(path[-1:]))[0])
        path.append(float(1 / (1 + np.exp(-np.clip(logit, -700, 700)))))
    return np.array(path)


def _advantage_of_a(bandit, weights, options):
    """Sum of the advantages of A's completions over G, in each group that can be; (W, N).

    Its expectation is the gradient by the logit of A, p (1 - p) gap: within a group
    advantages add up to 0, so that what A's get B's lose.
    """
    kinds = all_groups(len(_OF_A), bandit.size)[0]  # (N, G)
    values = _RIGHT + np.where(_OF_A, 0.0, weights[:, None])  # (W, 4)
    rewards = values[:, kinds].reshape(-1, bandit.size)  # (W N, G)
    advantages = own_advantages(rewards, np.ones(rewards.shape, bool), **options)
    of_a = np.where(_OF_A[kinds], advantages.reshape(len(weights), *kinds.shape), 0.0)
    return np.sum(of_a, axis=2) / bandit.size


def _chances(bandit, policy):
    """Chance of each group under each policy, (Q, N)."""
    a, b = bandit.success_a, bandit.success_b
    one = np.stack([policy * a, policy * (1 - a), (1 - policy) * b, (1 - policy) * (1 - b)])
    return chance_of_groups(one.T, bandit.size)


def chance_of_groups(one, size):
    """Chance of each group, (Q, N), from those of each kind of completion, (Q, kinds)."""
    kinds, ways = all_groups(one.shape[1], size)
    return ways * np.prod(one[:, kinds], axis=2)


@lru_cache(maxsize=32)
def all_groups(kinds, size):
    """All groups up to their order, (N, G), and in how many orders each can come, (N,)."""
    groups = np.array(list(combinations_with_replacement(range(kinds), size)))
    counts = np.sum(groups[:, :, None] == np.arange(kinds), axis=1)  # (N, kinds)
    factorials = np.array([factorial(n) for n in range(size + 1)], dtype=np.float64)
    return groups, factorials[size] / np.prod(factorials[counts], axis=1)


def open_chances(name, values):
    """Chances above 0 and below 1, shape (Q,)."""
    values = checked_array(name, values, "S", PROBABILITY)
    if np.any((values == 0) | (values == 1)):
        at = int(np.flatnonzero((values == 0) | (values == 1))[0])
        raise ScenarioError(
            f"{name} at entry {at} is {values[at]:g}; wanted a chance above 0 and below 1",
            field=name,
            where=(at,),
        )
    return values
