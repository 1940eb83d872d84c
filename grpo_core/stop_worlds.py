"""Policies that decide after every token whether to stop, and when their answers are right."""

from dataclasses import dataclass

import numpy as np

from .errors import ScenarioError
from .inputs import checked_array, checked_number
from .variants import Number

RATE = Number(low=0.0, high=1.0)
STOP = Number(low=0.0, high=1.0, exclusive=True)
WIDTH = Number(low=2, high=512, integer=True)
_ACCURACY = Number(low=0.5, high=1.0)
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class StopWorld:
    """Answers of 1 to M tokens from B branches that the policy can tell apart.

    Within a branch, position j is the last with probability ``stops[b, j]`` if it is reached;
    the last position always is.

    Attributes
    ----------
    branches : ndarray, (B,)
        Probability of each.
    stops : ndarray, (B, M)
    right : ndarray, (B, M)
        Chance that an answer of 1 to M tokens is right.
    names : tuple of str
        Of the branches, for the reader.
    """

    branches: np.ndarray
    stops: np.ndarray
    right: np.ndarray
    names: tuple[str, ...]

    @property
    def lengths(self):
        """1 to M."""
        return np.arange(1, self.stops.shape[1] + 1)

    @property
    def chances(self):
        """Probability of each branch and length together, (B, M)."""
        reached = np.cumprod(1 - self.stops[:, :-1], axis=1)
        reached = np.concatenate([np.ones((len(reached), 1)), reached], axis=1)
        return self.branches[:, None] * reached * self.stops

    @property
    def rate(self):
        """Chance of a right answer; what is never or always right but for rounding is so."""
        rate = float(np.sum(self.chances * self.right))
        return float(round(rate)) if abs(rate - round(rate)) < _ROUNDING else rate

    @property
    def scores(self):
        """Derivative of log P(length | branch) by the stop logit of each position; (B, M, M)."""
        at, position = self.lengths[:, None] - 1, self.lengths - 1
        stop = self.stops[:, None, :]
        return np.where(position == at, 1 - stop, 0.0) - np.where(position < at, stop, 0.0)

    def per_logit(self, by_position, shared):
        """Sum a (..., B, M) array over the positions of a branch, if they share one logit."""
        return np.sum(by_position, axis=-1) if shared else by_position


def hunch_world(rate, stop, *, accuracy=1.0, width=64):
    """Right at a fixed rate; the policy has a hunch of it and a stop logit for each hunch.

    Parameters
    ----------
    rate : float
        Chance of a right answer, whatever its length.
    stop : float or array-like, shape (2,)
        Stop probability per token, where it feels wrong and where it feels right.
    accuracy : float
        How often the hunch is correct, from 0.5 (it knows nothing) to 1.
    width : int
        M, the longest answer.

    Returns
    -------
    StopWorld
        Branches 0 "feels wrong", 1 "feels right".
    """
    rate = checked_number("rate", rate, RATE)
    accuracy = checked_number("accuracy", accuracy, _ACCURACY)
    width = checked_number("width", width, WIDTH)
    stop = np.repeat(stop, 2) if np.ndim(stop) == 0 else stop
    stop = checked_array("stop", stop, "S", STOP)
    if stop.size != 2:
        raise ScenarioError(f"stop has {stop.size} numbers; wanted one or two", field="stop")
    right_first = np.array([rate * (1 - accuracy), rate * accuracy])
    branches = right_first + np.array([(1 - rate) * accuracy, (1 - rate) * (1 - accuracy)])
    right = np.where(branches > 0, right_first / np.where(branches > 0, branches, 1.0), rate)
    return StopWorld(
        branches=branches,
        stops=_ended(np.repeat(stop[:, None], width, axis=1)),
        right=np.repeat(right[:, None], width, axis=1),
        names=("feels wrong", "feels right"),
    )


def length_world(stop, right):
    """The policy has no hunch; how likely an answer is right depends on its length.

    Parameters
    ----------
    stop : float or array-like, shape (M,)
        Stop probability, the same after every token or one for each.
    right : array-like, shape (M,)
        Chance that an answer of 1, 2, ... M tokens is right.

    Returns
    -------
    StopWorld
        A single branch.
    """
    right = checked_array("right", right, "M", RATE)
    if right.size not in WIDTH:
        raise ScenarioError(f"right has {right.size} lengths; wanted 2 to 512", field="right")
    stop = np.repeat(stop, right.size) if np.ndim(stop) == 0 else stop
    stop = checked_array("stop", stop, "M", STOP)
    if stop.shape != right.shape:
        raise ScenarioError(
            f"stop has {stop.size} positions; expected {right.size} like right", field="stop"
        )
    return StopWorld(
        branches=np.ones(1), stops=_ended(stop[None]), right=right[None], names=("all answers",)
    )


def _ended(stops):
    ended = stops.copy()
    ended[:, -1] = 1.0
    return ended
