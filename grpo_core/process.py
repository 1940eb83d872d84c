"""Process supervision: rewards of steps become an advantage for every token."""

import numpy as np

from .advantages import group_statistics, standardised
from .arrays import ARRAYS, as_array
from .errors import ScenarioError, place
from .ragged import padded


def process_advantages(step_rewards, step_ends, mask, *, ddof=0, eps=1e-8):
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
    _check_options(ddof, eps)
    single = np.ndim(mask) == 2
    if single:
        step_rewards, step_ends, mask = [step_rewards], [step_ends], [mask]
    valid = as_array("mask", mask, ARRAYS["mask"])
    rewards, there = padded("step_rewards", step_rewards, valid.shape[:2])
    ends, also_there = padded("step_ends", step_ends, valid.shape[:2])
    _check_counts(there, also_there)
    _check_rewards(rewards, there)
    _check_ends(ends, there, valid)
    normalised = _over_the_pool(rewards, there, ddof, eps)
    advantages = _to_tokens(normalised, ends, there, valid)
    return advantages[0] if single else advantages


def _over_the_pool(rewards, there, ddof, eps):
    """Step rewards by their group's pooled mean and std; 0 where there is no step; (P, G, S)."""
    P = len(rewards)
    pool, pooled = rewards.reshape(P, -1), there.reshape(P, -1)
    if not pool.shape[1]:
        return np.zeros_like(rewards)
    return standardised(group_statistics(pool, pooled, ddof), eps).reshape(rewards.shape)


def _to_tokens(steps, ends, there, valid):
    """Sum over the steps that end at or after each token; (P, G, L)."""
    ending = np.zeros(valid.shape)
    p, g, s = np.nonzero(there)
    np.add.at(ending, (p, g, ends[p, g, s].astype(np.intp)), steps[p, g, s])
    to_go = np.flip(np.cumsum(np.flip(ending, axis=-1), axis=-1), axis=-1)
    return np.where(valid, to_go, 0.0)


def _check_options(ddof, eps):
    if ddof not in (0, 1):
        raise ScenarioError(f"ddof is {ddof!r}; wanted 0 or 1", field="ddof")
    if not (isinstance(eps, (int, float)) and 0 <= eps < np.inf):
        raise ScenarioError(f"eps is {eps!r}; wanted a finite number of at least 0", field="eps")


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


def _check_rewards(rewards, there):
    _refuse(
        "step_rewards", rewards, there & ~np.isfinite(rewards), "a finite reward for every step"
    )


def _check_ends(ends, there, valid):
    L = valid.shape[-1]
    whole = np.where(there, ends, 0)
    outside = there & ~((whole >= 0) & (whole < L) & (whole == np.trunc(whole)))
    _refuse("step_ends", ends, outside, f"a token position from 0 to {L - 1}")
    at = whole.astype(np.intp)
    masked = there & ~np.take_along_axis(valid, at, axis=-1)
    _refuse("step_ends", ends, masked, "a token that counts; this one is masked")
    back = np.zeros_like(there)
    back[..., 1:] = there[..., 1:] & (at[..., 1:] < at[..., :-1])
    _refuse("step_ends", ends, back, "steps in the order of their tokens")


def _refuse(name, values, bad, wanted):
    if np.any(bad):
        *where, step = np.argwhere(bad)[0].tolist()
        value = values[(*where, step)].item()
        shown = int(value) if value == value // 1 else value
        raise ScenarioError(
            f"{name} at {place(where)}, step {step} is {shown}; wanted {wanted}",
            field=name,
            where=where,
        )
