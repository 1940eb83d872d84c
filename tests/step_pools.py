"""What one step more, or a step in halves, makes of a group's step rewards: closed forms.

The tests hold the edits and the credit of process rewards against them. ``step_rewards``
(P, G, S) are NaN where there is no step.
"""

from dataclasses import dataclass

import numpy as np

from grpo_core.group_statistics import group_statistics
from grpo_core.step_edits import check_reward, completion_at, step_at

_TIED = 1e-14  # of the squares that were added up; a variance below it is rounding


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool:
    """All step rewards of one group, and what they give to each completion's first token.

    ``count`` is their number N. ``deviations`` (G,) sum ``reward - mean`` over a completion's
    steps. ``first`` (G,) is ``deviations / (std + eps)``, the advantage of the first token: 0
    in a tied group, and adding up to 0 in every group.
    """

    count: int
    mean: float
    std: float
    deviations: np.ndarray
    first: np.ndarray


def pool_of(step_rewards, prompt, *, ddof=0, eps=1e-8):
    """The pool of one prompt's group as it is."""
    N, mean, std, deviations, _ = _moments(step_rewards, prompt)
    return _pool(N, mean, std, 1.0, deviations, ddof, eps)


def pool_with_step(step_rewards, where, reward, *, ddof=0, eps=1e-8):
    """The group's pool after one step more, in closed form.

    Parameters
    ----------
    step_rewards : ndarray, shape (P, G, S)
    where : (int, int)
        Prompt and completion i that gets the step.
    reward : float
        The new step's, x. A split into two copies adds the reward of the step that is split.

    Notes
    -----
    With d = x - mean, over N steps of which completion j has n_j: the mean moves to
    ``mean + d / (N + 1)`` and the variance to ``N / (N + 1) (var + d^2 / (N + 1))``. So i's
    deviations grow by ``d (N - n_i) / (N + 1)``, and j's fall by ``d n_j / (N + 1)``: before
    the division by the std, i gains and the others lose if and only if x is above the mean.
    """
    p, g = completion_at(step_rewards, where)
    check_reward(reward, (p, g, int(np.sum(~np.isnan(step_rewards[p, g])))))
    N, mean, std, deviations, n = _moments(step_rewards, p)
    d = float(reward) - mean
    after = deviations - d * n / (N + 1)
    after[g] += d * N / (N + 1)
    unit = max(std, abs(d)) or 1.0
    relative = N / (N + 1) * ((std / unit) ** 2 + (d / unit) ** 2 / (N + 1))
    return _pool(N + 1, mean + d / (N + 1), unit, relative, after, ddof, eps)


def pool_with_halves(step_rewards, where, *, ddof=0, eps=1e-8):
    """The group's pool after one step was split into two with half of its reward each.

    Parameters
    ----------
    step_rewards : ndarray, shape (P, G, S)
    where : (int, int, int)
        Prompt, completion i and step, with reward r.

    Notes
    -----
    The sum stays and N grows by one: the mean moves by ``-mean / (N + 1)``, i's deviations by
    ``-mean (N - n_i) / (N + 1)`` and j's by ``mean n_j / (N + 1)``. Before the division by the
    std, i loses if and only if the mean is above 0. The squares about the old mean change by
    ``2 (r/2 - mean)^2 - (r - mean)^2``.
    """
    p, g, s = step_at(step_rewards, where)
    N, mean, std, deviations, n = _moments(step_rewards, p)
    r = float(step_rewards[p, g, s])
    after = deviations + mean * n / (N + 1)
    after[g] -= mean * N / (N + 1)
    unit = max(std, abs(r), abs(mean)) or 1.0
    std, r, m = std / unit, r / unit, mean / unit
    squares = N * std**2 + 2 * (r / 2 - m) ** 2 - (r - m) ** 2
    relative = squares / (N + 1) - (m / (N + 1)) ** 2
    return _pool(N + 1, mean * N / (N + 1), unit, relative, after, ddof, eps)


def _moments(step_rewards, prompt):
    """Count, mean, population std, sum of deviations (G,) and steps (G,) of one group."""
    rewards = np.asarray(step_rewards, dtype=np.float64)[prompt]
    there = ~np.isnan(rewards)
    statistics = group_statistics(rewards.reshape(1, -1), there.reshape(1, -1), 0)
    centred = np.ldexp(statistics.centred, statistics.exponent).reshape(rewards.shape)
    n = np.sum(there, axis=-1)
    mean, std = float(statistics.mean[0]), float(statistics.std[0])
    return int(np.sum(n)), mean, std, np.sum(centred, axis=-1), n


def _pool(count, mean, unit, relative, deviations, ddof, eps):
    """Fill in a pool whose population variance is ``relative * unit**2``."""
    tied = relative <= _TIED or unit == 0 or count <= ddof
    std = 0.0 if tied else unit * float(np.sqrt(relative * count / (count - ddof)))
    deviations = np.zeros_like(deviations) if tied else deviations
    first = deviations if tied else deviations / (std + eps)
    return Pool(count=count, mean=mean, std=std, deviations=deviations, first=first)
