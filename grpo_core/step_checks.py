"""What steps have to be like: an end and a reward each, in order, on tokens that count."""

import numpy as np

from .errors import ScenarioError, place


def check_steps(arrays):
    """Refuse steps of a scenario's arrays that do not fit their completion.

    Parameters
    ----------
    arrays : mapping
        With ``mask`` and ``present``; ``step_ends`` and ``step_rewards`` (P, G, S) or neither.

    Raises
    ------
    ScenarioError
        Only one of the two arrays, or any error of `check_rewards` and `check_ends`.
    """
    keys = ("step_ends", "step_rewards")
    held = [key for key in keys if key in arrays]
    if len(held) == 1:
        (missing,) = set(keys) - set(held)
        raise ScenarioError(f"{missing} is missing; {held[0]} needs it", field=missing)
    if not held:
        return
    present = arrays["present"][..., None]
    there = ~np.isnan(arrays["step_ends"]) & present
    rewarded = ~np.isnan(arrays["step_rewards"]) & present
    _refuse("step_ends", arrays["step_ends"], rewarded & ~there, "an end for every step reward")
    check_rewards(arrays["step_rewards"], there)
    check_ends(arrays["step_ends"], there, arrays["mask"] & present)


def check_rewards(rewards, there):
    """Refuse a step without a finite reward; both (P, G, S)."""
    _refuse(
        "step_rewards", rewards, there & ~np.isfinite(rewards), "a finite reward for every step"
    )


def check_ends(ends, there, valid):
    """Refuse step ends that are no token, are masked, or stand before an earlier step's.

    Parameters
    ----------
    ends : ndarray, shape (P, G, S)
    there : ndarray of bool, shape (P, G, S)
        Which cells are steps; there may be gaps.
    valid : ndarray of bool, shape (P, G, L)
    """
    L = valid.shape[-1]
    whole = np.where(there, ends, 0)
    outside = there & ~((whole >= 0) & (whole < L) & (whole == np.trunc(whole)))
    _refuse("step_ends", ends, outside, f"a token position from 0 to {L - 1}")
    at = whole.astype(np.intp)
    masked = there & ~np.take_along_axis(valid, at, axis=-1)
    _refuse("step_ends", ends, masked, "a token that counts; this one is masked")
    latest = np.maximum.accumulate(np.where(there, at, -1), axis=-1)
    _refuse("step_ends", ends, there & (at < latest), "steps in the order of their tokens")


def _refuse(name, values, bad, wanted):
    if np.any(bad):
        *where, step = np.argwhere(bad)[0].tolist()
        value = values[(*where, step)].item()
        shown = "missing" if np.isnan(value) else int(value) if value == value // 1 else value
        raise ScenarioError(
            f"{name} at {place(where)}, step {step} is {shown}; wanted {wanted}",
            field=name,
            where=(*where, step),
        )
