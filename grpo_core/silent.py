"""Silent groups, all rewards equal: how often they come, what they cost, what stays in them."""

from dataclasses import dataclass

import numpy as np

from .errors import ScenarioError
from .numerics import total
from .prompt_rewards import checked_group_size, checked_rewards, prompts_from_rates


def silent_probability(prompts, G):
    """Probability that all G answers to a prompt score alike, (P,).

    ``sum_v P(v)**G``; ``p**G + (1 - p)**G`` for 0/1 rewards. It is 1 at p = 0 and p = 1, and
    smallest at p = 1/2.
    """
    G = checked_group_size(G)
    return np.sum(prompts.probabilities * prompts.same_reward ** (G - 1), axis=1)


def silent_curve(rates, sizes):
    """`silent_probability` of 0/1 rewards for R rates and S group sizes, (R, S)."""
    right = prompts_from_rates(rates).rates[:, None]
    sizes = np.array([checked_group_size(size) for size in np.atleast_1d(sizes).tolist()])
    with np.errstate(under="ignore"):
        return right**sizes + (1 - right) ** sizes


def tied_groups(rewards):
    """Groups of two or more scores that are all equal, (P,); NaN is no score."""
    rewards = checked_rewards(rewards)
    scored = ~np.isnan(rewards)
    low = np.min(np.where(scored, rewards, np.inf), axis=1)
    high = np.max(np.where(scored, rewards, -np.inf), axis=1)
    return (np.sum(scored, axis=1) > 1) & (low == high)


def tied_subgroups(rewards, size):
    """Chance that `size` of a group's scores, taken at random, are all equal; (P,).

    With n scores of which n_v are v: ``sum_v C(n_v, size) / C(n, size)``. An unbiased estimate
    of the silent probability at that smaller group size, where putting the observed rate into
    ``p**G + q**G`` is not: a group that tied by chance would count as one that always ties. At
    ``size = n`` it is 0 or 1. NaN where there are fewer scores than `size`.
    """
    rewards, size = checked_rewards(rewards), checked_group_size(size)
    scored = ~np.isnan(rewards)
    n = np.sum(scored, axis=1)
    # How many others score like this one, counted once per completion: n_v - 1.
    alike = np.sum((rewards[:, :, None] == rewards[:, None, :]), axis=2) - 1  # (P, G)
    steps = np.arange(size - 1)
    wanted = np.maximum(alike[..., None] - steps, 0)
    given = np.maximum(n[:, None] - 1 - steps, 1)
    chance = np.prod(wanted / given[:, None, :], axis=2)
    mean = np.sum(np.where(scored, chance, 0.0), axis=1) / np.maximum(n, 1)
    return np.where(n >= size, mean, np.nan)


@dataclass(frozen=True, eq=False, kw_only=True)
class Silence:
    """Silent groups in batches of one group for each of P prompts.

    Attributes
    ----------
    G : int
    probability : ndarray, (P,)
    expected : float
        Share of the batch's groups that is silent, on average.
    std : float
        Of that share from batch to batch.
    observed : float or None
        Share of tied groups in the rewards given.
    """

    G: int
    probability: np.ndarray
    expected: float
    std: float
    observed: float | None

    @property
    def effective_groups(self):
        """Groups that teach, on average."""
        return len(self.probability) * (1 - self.expected)

    @property
    def cost(self):
        """Groups generated for each that teaches; infinite if none ever does."""
        return np.inf if self.expected == 1 else 1 / (1 - self.expected)

    @property
    def samples_lost(self):
        """Completions of silent groups in a batch, on average."""
        return len(self.probability) * self.G * self.expected

    @property
    def surprise(self):
        """Observed share less expected, in standard deviations; None without rewards.

        0 if the share cannot vary and is as expected, infinite if it is not.
        """
        if self.observed is None:
            return None
        gap = self.observed - self.expected
        if abs(gap) < 1e-12:
            return 0.0
        return gap / self.std if self.std else np.copysign(np.inf, gap)


def silence(prompts, G, rewards=None):
    """Expected share of silent groups, and the observed one beside it.

    Parameters
    ----------
    prompts : Prompts
    G : int
    rewards : array-like, shape (P, G), optional
        One batch of these prompts.

    Returns
    -------
    Silence

    Raises
    ------
    ScenarioError
        G out of range, or rewards of another number of prompts.

    Notes
    -----
    Whether groups tie is independent between prompts: the number of ties is a sum of P
    different coin flips with mean ``sum s`` and variance ``sum s (1 - s)``.
    """
    probability = silent_probability(prompts, G)
    observed = None
    if rewards is not None:
        tied = tied_groups(rewards)
        if len(tied) != len(prompts):
            raise ScenarioError(
                f"rewards has {len(tied)} prompts; expected {len(prompts)} like the rates",
                field="rewards",
            )
        observed = float(np.mean(tied))
    return Silence(
        G=checked_group_size(G),
        probability=probability,
        expected=float(np.mean(probability)),
        std=float(np.sqrt(np.sum(probability * (1 - probability))) / len(prompts)),
        observed=observed,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Leftover:
    """What the tied groups of an evaluated batch cost, and what they still do.

    Attributes
    ----------
    tied : ndarray of bool, (P,)
    groups, tokens : float
        Share of the groups, and of the generated tokens, that is in tied ones.
    policy_pull, kl_pull : ndarray, (P,)
        Euclidean norm of each group's d objective / d logp_new, from the surrogate and from
        the KL. In a tied group the first is 0; the second is not where beta > 0 and the
        policy has left the reference.
    """

    tied: np.ndarray
    groups: float
    tokens: float
    policy_pull: np.ndarray
    kl_pull: np.ndarray


def leftover(evaluation):
    """Cost of the tied groups and what stays in them.

    A tied group has advantage 0, so no policy gradient, whatever the baseline's scale. Its
    tokens still count where the objective is divided by a number of tokens or completions, and
    the KL in the objective pulls as in any other group: the k3 term by ``beta (exp(logp_ref -
    logp_new) - 1)`` per token and weight. A KL in the reward breaks the tie instead.

    Parameters
    ----------
    evaluation : Evaluation

    Returns
    -------
    Leftover
    """
    lengths = np.sum(evaluation.lengths, axis=1)
    every = max(int(np.sum(lengths)), 1)
    return Leftover(
        tied=evaluation.tied,
        groups=float(np.mean(evaluation.tied)),
        tokens=float(np.sum(lengths, where=evaluation.tied)) / every,
        policy_pull=_norm(evaluation.policy_gradient),
        kl_pull=_norm(evaluation.kl_gradient),
    )


def _norm(gradient):
    with np.errstate(over="ignore", under="ignore"):
        return np.sqrt(total(np.square(gradient, dtype=np.float64), axis=(1, 2)))
