"""RULES of arrays: what a valid cell may hold, in words and as a test."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Log-softmax in float32 can end up above 0 by rounding alone; more than this is an error.
LOGP_ROUNDING = 1e-4
LARGEST_SEED = 999_999


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a valid cell may hold, in words and as a test over an array."""

    words: str
    holds: Callable


def _whole(values, most):
    """Whole numbers from 0 to `most`; False for NaN and infinities."""
    inside = np.isfinite(values) & np.greater_equal(values, 0) & np.less_equal(values, most)
    return inside & np.equal(np.trunc(values), values)


REWARD = Rule(
    words="a finite number, or blank for a missing score",
    holds=lambda values: np.isfinite(values) | np.isnan(values),
)
LOGP = Rule(
    words="a log-probability: a number of at most 0, or -inf",
    holds=lambda values: np.less_equal(values, LOGP_ROUNDING),  # False for NaN
)
FINITE = Rule(words="a finite number", holds=np.isfinite)
PROBABILITY = Rule(
    words="a probability or a weight: a finite number of at least 0",
    holds=lambda values: np.isfinite(values) & np.greater_equal(values, 0),
)
SAMPLED = Rule(
    words="a log-probability: a number of at most 0, -inf, or blank",
    holds=lambda values: np.isnan(values) | np.less_equal(values, LOGP_ROUNDING),
)
WEIGHT = Rule(
    words="a finite number of at least 0",
    holds=lambda values: np.isfinite(values) & np.greater_equal(values, 0),
)
ZERO_ONE = Rule(words="0 or 1", holds=lambda values: np.equal(values, 0) | np.equal(values, 1))
SEED = Rule(
    words=f"a whole number from 0 to {LARGEST_SEED:,}",
    holds=lambda values: _whole(values, LARGEST_SEED),
)
TERM = Rule(
    words="a finite number, or blank where the term does not apply",
    holds=lambda values: np.isfinite(values) | np.isnan(values),
)
STEP_REWARD = Rule(
    words="a finite number, or blank where there is no step",
    holds=lambda values: np.isfinite(values) | np.isnan(values),
)
POSITION = Rule(
    words="a token position: a whole number of at least 0, or blank for no step",
    holds=lambda values: np.isnan(values) | _whole(values, np.inf),
)
# The largest up to which float32 holds every whole number.
TOKEN_ID = Rule(
    words="the id of a token: a whole number of at least 0",
    holds=lambda values: _whole(values, 2**24),
)
CHANCE = Rule(
    words="a chance: a number from 0 to 1",
    holds=lambda values: np.greater_equal(values, 0) & np.less_equal(values, 1),
)
HUNCH = Rule(
    words="a chance: a number from 0.5 to 1",
    holds=lambda values: np.greater_equal(values, 0.5) & np.less_equal(values, 1),
)
GROUP = Rule(
    words="a whole number from 2 to 512",
    holds=lambda values: _whole(values, 512) & np.greater_equal(values, 2),
)
BUDGET = Rule(
    words="a whole number from 4 to 65,536",
    holds=lambda values: _whole(values, 65_536) & np.greater_equal(values, 4),
)
FLAG = Rule(words="true or false", holds=lambda values: np.ones(np.shape(values), bool))
