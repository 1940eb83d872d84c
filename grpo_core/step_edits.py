"""Edits of a group's steps, the honest ones and the ones that game process rewards.

Every edit takes ``step_ends`` and ``step_rewards`` (P, G, S), NaN where there is no step, and
returns both anew, packed to the left; S grows by one where the completion has no room.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from .errors import ScenarioError, place
from .variants import table

# What each part of a split step is worth, in units of the whole step.
SPLITS = MappingProxyType({"copy": 1.0, "halves": 0.5})


def pack(step_ends, step_rewards):
    """Steps in the order of their ends, blanks to the right; equal ends keep their order.

    Returns
    -------
    step_ends, step_rewards : ndarray, shape (P, G, S)
    """
    ends, rewards = _floats(step_ends), _floats(step_rewards)
    order = np.argsort(ends, axis=-1, kind="stable")  # NaN sorts last
    return np.take_along_axis(ends, order, -1), np.take_along_axis(rewards, order, -1)


def split_step(step_ends, step_rewards, valid, where, *, how="copy"):
    """Make two steps of one.

    Parameters
    ----------
    step_ends, step_rewards : ndarray, shape (P, G, S)
    valid : ndarray of bool, shape (P, G, L)
    where : (int, int, int)
        Prompt, completion and step.
    how : {'copy', 'halves'}
        Each part earns the step's reward, or half of it.

    Returns
    -------
    step_ends, step_rewards : ndarray, shape (P, G, S) or (P, G, S + 1)
        The first part ends at the middle one of the step's own tokens, the second where the
        step ended. A step of one token gives two that end there.

    Raises
    ------
    ScenarioError
        No such step, or an unknown `how`.
    """
    ends, rewards, (p, g, s) = _packed(step_ends, step_rewards, where)
    part = rewards[p, g, s] * _row(SPLITS, how)
    rewards[p, g, s] = part
    middle = _middle(ends[p, g], np.asarray(valid)[p, g], s)
    return _inserted(ends, (p, g, s), middle), _inserted(rewards, (p, g, s), part)


def append_step(step_ends, step_rewards, valid, where, *, reward=1.0):
    """Add a step that ends at the completion's last token that counts.

    Parameters
    ----------
    step_ends, step_rewards : ndarray, shape (P, G, S)
    valid : ndarray of bool, shape (P, G, L)
    where : (int, int)
        Prompt and completion; a third entry is not read.
    reward : float, default 1.0

    Returns
    -------
    step_ends, step_rewards : ndarray, shape (P, G, S) or (P, G, S + 1)

    Raises
    ------
    ScenarioError
        No such completion, a completion without tokens, or a reward that is not finite.
    """
    p, g = completion_at(step_ends, where)
    tokens = np.flatnonzero(np.asarray(valid)[p, g])
    if not tokens.size:
        raise ScenarioError(
            f"{place((p, g))} has no token that counts, so no step can end in it; unmask one first",
            field="step_ends",
            where=(p, g),
        )
    ends, rewards = pack(step_ends, step_rewards)
    at = p, g, _count(ends[p, g])
    check_reward(reward, at)
    return _inserted(ends, at, tokens[-1]), _inserted(rewards, at, reward)


def swap_steps(step_ends, step_rewards, valid, where):
    """Exchange the rewards of a step and the next one; the ends stay where they are.

    Shapes and errors as in `split_step`; there must be a next step.
    """
    ends, rewards, (p, g, s) = _packed(step_ends, step_rewards, where, pair=True)
    rewards[p, g, [s, s + 1]] = rewards[p, g, [s + 1, s]]
    return ends, rewards


def merge_steps(step_ends, step_rewards, valid, where):
    """Make one step of a step and the next one, ending where the next one ended.

    Shapes and errors as in `split_step`; there must be a next step. Its reward is the mean of
    both, which undoes a copy. S stays, with one blank more.
    """
    ends, rewards, (p, g, s) = _packed(step_ends, step_rewards, where, pair=True)
    rewards[p, g, s + 1] = np.mean(rewards[p, g, s : s + 2])
    return _without(ends, (p, g, s)), _without(rewards, (p, g, s))


def drop_step(step_ends, step_rewards, valid, where):
    """Take a step away; its tokens fall to the next one. S stays, with one blank more.

    Shapes and errors as in `split_step`.
    """
    ends, rewards, at = _packed(step_ends, step_rewards, where)
    return _without(ends, at), _without(rewards, at)


def completion_at(steps, where):
    """(prompt, completion) as ints, or a `ScenarioError` that says which there are."""
    P, G = np.shape(steps)[:2]
    p, g = (int(index) for index in where[:2])
    if not (0 <= p < P and 0 <= g < G):
        raise ScenarioError(
            f"{place((p, g))} is not in the batch; wanted prompt 0 to {P - 1} and "
            f"completion 0 to {G - 1}",
            field="step_ends",
            where=(p, g),
        )
    return p, g


def step_at(steps, where):
    """(prompt, completion, step) as ints, or a `ScenarioError` that says which there are.

    `steps` (P, G, S) is NaN where there is no step: ends or rewards.
    """
    p, g = completion_at(steps, where)
    (there,) = np.nonzero(~np.isnan(_floats(steps)[p, g]))
    if len(where) < 3 or where[2] not in there:
        named = f"no step {where[2]}" if len(where) > 2 else "steps to choose from"
        known = ", ".join(map(str, there[:8])) + (", ..." if there.size > 8 else "")
        wanted = f"choose one of {known}" if there.size else "it has none; append one first"
        raise ScenarioError(
            f"{place((p, g))} has {named}; {wanted}", field="step_ends", where=(p, g)
        )
    return p, g, int(where[2])


def check_reward(reward, where):
    """Refuse a step reward that is not a finite number."""
    p, g, s = where
    if not (isinstance(reward, (int, float, np.number)) and np.isfinite(reward)):
        raise ScenarioError(
            f"step_rewards at {place((p, g))}, step {s} is {reward!r}; wanted a finite number",
            field="step_rewards",
            where=where,
        )


def _packed(step_ends, step_rewards, where, *, pair=False):
    """Fresh packed arrays and where the chosen step now is; a pair has a step after it."""
    p, g, s = step_at(step_ends, where)
    steps = _floats(step_ends)[p, g]
    at = _count(steps[:s])
    if pair and at + 1 == _count(steps):
        raise ScenarioError(
            f"{place((p, g))}, step {s} is the last one; choose a step that has one after it",
            field="step_ends",
            where=(p, g, s),
        )
    return *pack(step_ends, step_rewards), (p, g, at)


def _count(steps):
    return int(np.sum(~np.isnan(steps)))


def _floats(array):
    array = np.asarray(array)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _row(rows, how):
    if how not in rows:
        raise ScenarioError(f"how is {how!r}; wanted {' or '.join(map(repr, rows))}")
    return rows[how]


def _middle(ends, valid, s):
    """Middle one of the step's own valid tokens; its end if it shares that with the last."""
    start, end = (int(ends[s - 1]) + 1 if s else 0), int(ends[s])
    own = np.flatnonzero(valid[start : end + 1]) + start
    return own[(own.size - 1) // 2] if own.size else end


def _inserted(steps, where, value):
    p, g, s = where
    width = max(steps.shape[-1], _count(steps[p, g]) + 1)
    grown = np.full((*steps.shape[:2], width), np.nan, dtype=steps.dtype)
    grown[..., : steps.shape[-1]] = steps
    grown[p, g] = np.insert(steps[p, g], s, value)[:width]
    return grown


def _without(steps, where):
    p, g, s = where
    steps[p, g] = np.append(np.delete(steps[p, g], s), np.nan)
    return steps


@dataclass(frozen=True, kw_only=True)
class StepEdit:
    """One button: ``function(step_ends, step_rewards, valid, where)`` returns the new arrays.

    ``target`` is what `where` must point at: a ``completion``, a ``step``, or a ``pair``, a
    step with one after it. ``does`` is a sentence; ``pays`` says when the edit raises the first
    token's advantage, if other completions have steps. "The group's mean" is that of all its
    step rewards.
    """

    key: str
    label: str
    function: Callable
    target: str
    does: str
    pays: str


# An edit moves the std too, by which all of the group is divided: a small gain before the division
# can be a loss after it, and the reverse. What holds always is said of the sum before it.
EDITS = table(
    StepEdit(
        key="split_copy",
        label="Split, each part paid in full",
        function=partial(split_step, how="copy"),
        target="step",
        does="Makes two steps of one; both earn its reward.",
        pays="Before the division by the std: when the step's reward is above the group's mean.",
    ),
    StepEdit(
        key="split_halves",
        label="Split, each part paid half",
        function=partial(split_step, how="halves"),
        target="step",
        does="Makes two steps of one; each earns half of its reward.",
        pays="Before the division by the std: when the group's mean is below 0. Above 0 it costs.",
    ),
    StepEdit(
        key="append_pass",
        label="Append an easy step",
        function=partial(append_step, reward=1.0),
        target="completion",
        does="Adds a step with reward 1 that ends at the completion's last token.",
        pays="Before the division by the std: when the group's mean is below 1.",
    ),
    StepEdit(
        key="swap",
        label="Swap with the next step",
        function=swap_steps,
        target="pair",
        does="Exchanges the rewards of two neighbouring steps.",
        pays="Never at the first token. Over all tokens: when the better reward moves to the later "
        "step, for it then reaches more tokens.",
    ),
    StepEdit(
        key="merge",
        label="Merge with the next step",
        function=merge_steps,
        target="pair",
        does="Makes one step of two; it earns the mean of their rewards.",
        pays="Before the division by the std: when that mean is below the group's mean.",
    ),
    StepEdit(
        key="drop",
        label="Drop the step",
        function=drop_step,
        target="step",
        does="Takes the step away; its tokens become part of the next one.",
        pays="Before the division by the std: when the step's reward is below the group's mean.",
    ),
)
