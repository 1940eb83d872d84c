"""Silent groups, all rewards equal: how often they come, what they cost, what stays in them."""

from dataclasses import dataclass

import numpy as np

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
