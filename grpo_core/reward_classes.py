"""Exact moments of the gradient where advantages are divided by the group's own spread.

An advantage then depends on all answers of the group, but only through their rewards. So the
sum runs over how many samples fall on each different reward, not over all answers.
"""

import math

import numpy as np

from .errors import ScenarioError
from .prompt_rewards import compositions, multinomial

_MOST = 3_000_000  # prompts x ways of filling the group x different rewards


def standardised_moments(policy, G, ddof, eps):
    """Mean (P, D) and variance (P,) of ``(1/G) sum A_i S_i``, A over the group's std.

    Notes
    -----
    Given the counts n of each reward c, ``T_c``, the sum of scores of the answers with that
    reward, has mean ``n_c m_c`` and ``E|T_c|^2 = n_c v_c + n_c (n_c - 1) |m_c|^2``, where m is
    the mean score and v the mean squared score given the reward. Hence
    ``G^2 Var = E |sum x_c m_c - E|^2 + sum n_c A_c^2 (v_c - |m_c|^2)`` with ``x = n A``. Tied
    groups have advantage 0. Derived here.

    Raises
    ------
    ScenarioError
        Too many different rewards for a group of this size.
    """
    values, mass, mean_score, square = _classes(policy)
    _check_ways(values.shape[1], G, len(values))
    counts = compositions(G, values.shape[1])  # (C, m)
    chance = multinomial(counts, mass)  # (P, C)
    advantages = _advantages(values, counts, ddof, eps)  # (P, C, m)
    pushed = counts * advantages
    expected = np.einsum("pc,pcm->pm", chance, pushed)
    gram = np.einsum("pmd,pnd->pmn", mean_score, mean_score)
    inside = np.maximum(square - np.einsum("pmm->pm", gram), 0.0)
    off = pushed - expected[:, None, :]
    between = np.einsum("pc,pcm,pmn,pcn->p", chance, off, gram, off, optimize=True)
    within = np.einsum("pc,pcm,pm->p", chance, pushed * advantages, inside, optimize=True)
    mean = np.einsum("pm,pmd->pd", expected, mean_score) / G
    return mean, np.maximum(between + within, 0.0) / G**2


def _classes(policy):
    """Different rewards (P, m) with their mass, mean score (P, m, D) and mean squared score.

    Prompts with fewer of them are filled up with rewards of mass 0.
    """
    order = np.argsort(policy.rewards, axis=1)
    rewards = np.take_along_axis(policy.rewards, order, axis=1)
    p = np.take_along_axis(policy.probabilities, order, axis=1)
    scores = np.take_along_axis(policy.scores, order[..., None], axis=1)
    rank = np.cumsum(np.diff(rewards, axis=1, prepend=rewards[:, :1]) > 0, axis=1)
    member = rank[..., None] == np.arange(np.max(rank) + 1)  # (P, K, m)
    weight = p[..., None] * member
    mass = np.sum(weight, axis=1)
    divisor = np.where(mass > 0, mass, 1.0)
    mean_score = np.einsum("pkm,pkd->pmd", weight, scores) / divisor[..., None]
    square = np.einsum("pkm,pk->pm", weight, np.sum(scores**2, axis=2)) / divisor
    filled = np.any(member, axis=1)
    values = np.max(np.where(member, rewards[..., None], -np.inf), axis=1)
    return np.where(filled, values, rewards[:, :1]), mass, mean_score, square


def _check_ways(parts, G, prompts):
    if math.comb(G + parts - 1, parts - 1) * parts * prompts > _MOST:
        raise ScenarioError(
            f"{parts} different rewards in groups of {G} can fall in too many ways to sum over; "
            "wanted fewer different rewards or prompts, or a smaller group",
            field="rewards",
        )


def _advantages(values, counts, ddof, eps):
    """``(value - mean) / (std + eps)`` of each reward in each group, 0 if tied; (P, C, m)."""
    G = np.sum(counts[0])
    unit = np.max(np.abs(values - values[:, :1]), axis=1)
    unit = np.where(unit > 0, unit, 1.0)[:, None, None]  # (P, 1, 1), so that no square vanishes
    shifted = (values - values[:, :1])[:, None, :] / unit
    off = shifted - np.sum(counts * shifted, axis=2, keepdims=True) / G
    std = np.sqrt(np.sum(counts * off**2, axis=2, keepdims=True) / (G - ddof))
    tied = (np.sum(counts > 0, axis=1) == 1)[None, :, None] | (std == 0)
    return np.where(tied, 0.0, off / np.where(tied, 1.0, std + eps / unit))
