"""Process supervision: rewards of steps become an advantage for every token."""

import numpy as np

from .arrays import ARRAYS, as_array
from .errors import ScenarioError, place
from .group_statistics import group_statistics, standardised
from .inputs import checked_number
from .ragged import padded
from .step_checks import check_ends, check_rewards
from .variants import Number


def process_advantages(step_rewards, step_ends, mask, *, ddof=0, eps=1e-8, over="group"):
    """Advantages per token from rewards per step, as GRPO does under process supervision.

    Parameters
    ----------
    step_rewards : nested lists, [prompt][completion][step]
        One finite reward per step; a completion may have no step, one or many. For a single
        group: [completion][step].
    step_ends : nested lists of int, like `step_rewards`
        Position on the token axis of each step's last token, in order; several steps may end
        at one token.
    mask : array-like of 0/1, shape (P, G, L), or (G, L) for a single group
        1 where a token counts.
    ddof : {0, 1}, default 0
        Divide by n (population) or n - 1 (sample) in the standard deviation.
    eps : float, default 1e-8
        Added to the standard deviation; reward units.
    over : {'group', 'completion'}, default 'group'
        Mean and standard deviation over all steps of the group, or over each completion's.

    Returns
    -------
    ndarray of float64, shape of `mask`
        0 at masked tokens and after the last step of a completion.

    Raises
    ------
    ScenarioError
        Names the completion and the step: counts that differ, a reward that is missing or
        not finite, an end that is no token, is masked, or stands before its predecessor's.

    Notes
    -----
    All step rewards of a group are pooled, ``z = (r - mean) / (std + eps)``, and the token at
    ``t`` receives the sum of ``z`` over the steps with ``end >= t`` [DeepSeekMath, arXiv
    2402.03300, section 4.1.3, which gives neither ddof nor eps]. A pool of equal rewards, of
    one or of none gives exactly 0. TRL, verl and OpenRLHF do not implement it for GRPO:
    verl's `grpo` estimator sums token rewards to one score first.

    Examples
    --------
    >>> steps, ends = [[1, 0, 1], [0, 0]], [[0, 1, 2], [0, 2]]
    >>> process_advantages(steps, ends, [[1, 1, 1], [1, 1, 1]]).round(4).tolist()
    [[1.633, 0.4082, 1.2247], [-1.633, -0.8165, -0.8165]]
    """
    eps = _check_options(ddof, eps, over)
    single = np.ndim(mask) == 2
    if single:
        step_rewards, step_ends, mask = [step_rewards], [step_ends], [mask]
    valid = as_array("mask", mask, ARRAYS["mask"])
    rewards, there = padded("step_rewards", step_rewards, valid.shape[:2])
    ends, also_there = padded("step_ends", step_ends, valid.shape[:2])
    _check_counts(there, also_there)
    check_rewards(rewards, there)
    check_ends(ends, there, valid)
    rewards, ends = np.where(there, rewards, np.nan), np.where(there, ends, np.nan)
    _, advantages = step_advantages(rewards, ends, valid, ddof=ddof, eps=eps, over=over)
    return advantages[0] if single else advantages


# How many rows the step rewards of a batch are pooled in: one a group, or one a completion.
_POOLS = {
    "group": lambda rewards: (len(rewards), -1),
    "completion": lambda rewards: (-1, rewards.shape[-1]),
}


def step_advantages(rewards, ends, valid, *, ddof, eps, over):
    """Normalised step rewards, and their sums from each token on.

    Parameters
    ----------
    rewards, ends : ndarray, shape (P, G, S)
        NaN where there is no step; the other steps are checked, see `check_steps`.
    valid : ndarray of bool, shape (P, G, L)
    ddof, eps, over
        As for `process_advantages`.

    Returns
    -------
    steps : ndarray of float64, shape (P, G, S)
        0 where there is no step.
    to_go : ndarray of float64, shape (P, G, L)
    """
    there = ~np.isnan(ends)
    steps = np.zeros(rewards.shape)
    if steps.size:
        pools = _POOLS[over](rewards)
        statistics = group_statistics(rewards.reshape(pools), there.reshape(pools), ddof)
        steps = standardised(statistics, eps).reshape(rewards.shape)
    return steps, _to_tokens(steps, ends, there, valid)


def _to_tokens(steps, ends, there, valid):
    """Sum over the steps that end at or after each token; (P, G, L)."""
    ending = np.zeros(valid.shape)
    p, g, s = np.nonzero(there)
    np.add.at(ending, (p, g, ends[p, g, s].astype(np.intp)), steps[p, g, s])
    to_go = np.flip(np.cumsum(np.flip(ending, axis=-1), axis=-1), axis=-1)
    return np.where(valid, to_go, 0.0)


def _check_options(ddof, eps, over):
    """Refuse what is no option; gives eps as a plain number."""
    if ddof not in (0, 1):
        raise ScenarioError(f"ddof is {ddof!r}; wanted 0 or 1", field="ddof")
    if over not in _POOLS:
        known = " or ".join(map(repr, _POOLS))
        raise ScenarioError(f"over is {over!r}; wanted {known}", field="over")
    return checked_number("eps", eps, Number(low=0.0))


def _check_counts(rewards_there, ends_there):
    rewards, ends = np.sum(rewards_there, axis=-1), np.sum(ends_there, axis=-1)
    if np.any(rewards != ends):
        where = tuple(np.argwhere(rewards != ends)[0])
        raise ScenarioError(
            f"{place(where)} has {rewards[where]} step rewards and {ends[where]} step ends; "
            "wanted one end for each reward",
            field="step_ends",
            where=where,
        )
