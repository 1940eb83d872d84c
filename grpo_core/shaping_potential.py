"""A task of two steps, shaped by a potential, and the ways of giving credit for it.

The first token either ends the answer or goes on; one that goes on has a second token, which
is either the better or the worse of two. Every expectation is over all groups that can come
up. Potential-based shaping adds ``Phi(next) - Phi(present)`` to the reward of each step [Ng,
Harada, Russell 1999, without discount].
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from .errors import ScenarioError
from .group_statistics import group_statistics, standardised
from .inputs import checked_number
from .shaping_parts import checked, deviations
from .shaping_worlds import SIZE, all_groups, chance_of_groups, open_chances
from .variants import Number, table

_REWARD = Number(low=-1e6, high=1e6)
_ROUNDING = 1e-12  # of what was added up; a smaller gradient is 0


@dataclass(frozen=True, kw_only=True)
class TwoSteps:
    """A prompt: the policy's chance to go on and then to be right, and the three rewards."""

    go_on: float = 0.4
    right: float = 0.5
    short_reward: float = 0.4
    wrong_reward: float = 0.2
    right_reward: float = 0.9

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("reward"):
                checked_number(field.name, value, _REWARD)
            else:
                open_chances(field.name, [value])

    @property
    def chances(self):
        """Of an answer that is short, long and wrong, long and right; (3,)."""
        long = self.go_on
        return np.array([1 - long, long * (1 - self.right), long * self.right])

    @property
    def scores(self):
        """Derivative of log-policy by the logits of going on and of being right; (3, 2)."""
        first, second = self.go_on, self.right
        return np.array([[-first, 0.0], [1 - first, -second], [1 - first, 1 - second]])

    @property
    def gradient(self):
        """Of the expected reward by both logits, without any shaping; (2,)."""
        totals = np.array([self.short_reward, self.wrong_reward, self.right_reward])
        return np.sum((self.chances * totals)[:, None] * self.scores, axis=0)

    def step_rewards(self, potential):
        """Shaped reward of each step, (3, 2); NaN where an answer has no second step."""
        down = potential.end - potential.start
        on, off = potential.middle - potential.start, potential.end - potential.middle
        return np.array(
            [
                [self.short_reward + down, np.nan],
                [on, self.wrong_reward + off],
                [on, self.right_reward + off],
            ]
        )


@dataclass(frozen=True, kw_only=True)
class Potential:
    """Phi before the first token, between both, and after the last."""

    start: float = 0.0
    middle: float = 0.0
    end: float = 0.0

    def __post_init__(self):
        for field in fields(self):
            checked_number(field.name, getattr(self, field.name), _REWARD)


@dataclass(frozen=True, kw_only=True)
class Credit:
    """One way to turn the step rewards of a group, (N, G, 2), into advantages of both tokens.

    ``divides`` says whether it divides by a standard deviation.
    """

    key: str
    label: str
    function: Callable
    divides: bool = False


def _to_go(rewards):
    """Sum of the rewards from each step on."""
    known = np.nan_to_num(rewards)
    return np.flip(np.cumsum(np.flip(known, axis=2), axis=2), axis=2)


def _leave_one_out(rewards, ddof, eps):
    """Reward of the whole answer less the mean of the others', at both tokens."""
    outcome = np.nansum(rewards, axis=2)
    G = outcome.shape[1]
    return (deviations(outcome, np.ones(outcome.shape, bool)) * G / (G - 1))[..., None]


def _returns_to_go(rewards, ddof, eps):
    return _to_go(rewards)


def _returns_less_mean(rewards, ddof, eps):
    """Less the mean reward of the group's answers."""
    return _to_go(rewards) - np.mean(np.nansum(rewards, axis=2), axis=1)[:, None, None]


def _outcome_over_std(rewards, ddof, eps):
    outcome = np.nansum(rewards, axis=2)
    statistics = group_statistics(outcome, np.ones(outcome.shape, bool), ddof)
    return standardised(statistics, eps)[..., None]


def _returns_over_std(rewards, ddof, eps):
    """By mean and std of the group's answers; 0 in a group whose answers are tied."""
    outcome = np.nansum(rewards, axis=2)
    std = group_statistics(outcome, np.ones(outcome.shape, bool), ddof).std[:, None, None]
    divisor = np.where(std > 0, std + eps, np.inf)
    return _returns_less_mean(rewards, ddof, eps) / divisor


def _steps_less_mean(rewards, ddof, eps):
    """Each step less the mean of all steps of the group, summed from the token on."""
    pool = rewards.reshape(len(rewards), -1)
    return _to_go(deviations(pool, ~np.isnan(pool)).reshape(rewards.shape))


def _steps_over_std(rewards, ddof, eps):
    pool = rewards.reshape(len(rewards), -1)
    statistics = group_statistics(pool, ~np.isnan(pool), ddof)
    return _to_go(standardised(statistics, eps).reshape(rewards.shape))


CREDITS = table(
    Credit(key="leave_one_out", label="outcome, less that of the others", function=_leave_one_out),
    Credit(key="to_go", label="returns to go", function=_returns_to_go),
    Credit(
        key="to_go_mean", label="returns to go, less the group's mean", function=_returns_less_mean
    ),
    Credit(
        key="outcome_std",
        label="outcome, less mean, over std",
        function=_outcome_over_std,
        divides=True,
    ),
    Credit(
        key="to_go_std",
        label="returns to go, less mean, over std",
        function=_returns_over_std,
        divides=True,
    ),
    Credit(key="steps_mean", label="steps, less the mean of all steps", function=_steps_less_mean),
    Credit(
        key="steps_std",
        label="steps, by mean and std of all steps (DeepSeekMath)",
        function=_steps_over_std,
        divides=True,
    ),
)


def two_step_gradients(world, potential=None, *, size=2, ddof=0, eps=1e-8):
    """Expected gradient by the logits of both tokens under each way of giving credit.

    Parameters
    ----------
    world : TwoSteps
    potential : Potential, optional
        0 everywhere if left out.
    size : int
        Completions in a group, 2 to 8.
    ddof : {0, 1}
    eps : float
        Of the standard deviation, where there is one.

    Returns
    -------
    dict of str to ndarray, shape (2,)
        By the key of `CREDITS`: mean over the group of advantage times the derivative of the
        log-policy, at token 0 and at token 1. `TwoSteps.gradient` is the true one.

    Raises
    ------
    ScenarioError
        A size or an option out of range.

    Notes
    -----
    With returns to go a potential is a baseline of each state and changes nothing; with the
    outcome it is one constant of the prompt, ``Phi(end) - Phi(start)``, which the mean of
    the group takes off. Less the group's own mean every gradient is (G - 1) / G of the true
    one. A pooled mean of steps is multiplied by the number of later steps, and a standard
    deviation depends on what was drawn, so that neither leaves the gradient alone.
    """
    if not isinstance(world, TwoSteps):
        raise ScenarioError("world is no TwoSteps; wanted one", field="world")
    options = checked(ddof=ddof, eps=eps)
    size = checked_number("size", size, SIZE)
    kinds = all_groups(len(world.chances), size)[0]  # (N, G)
    chances = chance_of_groups(world.chances[None], size)[0]
    rewards = world.step_rewards(potential or Potential())[kinds]  # (N, G, 2)
    scores = world.scores[kinds]
    found = {}
    for key, credit in CREDITS.items():
        pull = np.mean(credit.function(rewards, **options) * scores, axis=1)  # (N, 2)
        gradient, size_of_it = chances @ pull, chances @ np.abs(pull)
        found[key] = np.where(np.abs(gradient) <= _ROUNDING * size_of_it, 0.0, gradient)
    return found


def prompt_weights(worlds, potential=None, *, size=2, ddof=0, eps=1e-8):
    """How heavily each prompt counts: expected gradient over true gradient.

    Parameters
    ----------
    worlds : sequence of TwoSteps
        One for each of M prompts.
    potential, size, ddof, eps
        As in `two_step_gradients`.

    Returns
    -------
    dict of str to ndarray, shape (M, 2)
        By the key of `CREDITS`, for the logits of both tokens. Alike for all prompts where
        credit is not divided by a standard deviation and the potential leaves it alone; NaN
        where the true gradient is 0.
    """
    each = [two_step_gradients(world, potential, size=size, ddof=ddof, eps=eps) for world in worlds]
    true = np.array([world.gradient for world in worlds])
    return {
        key: np.divide(
            np.array([gradients[key] for gradients in each]),
            true,
            out=np.full(true.shape, np.nan),
            where=np.abs(true) > _ROUNDING,
        )
        for key in CREDITS
    }
