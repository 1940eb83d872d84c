"""The closed forms of `difficulty`, seen by sampling: seeded groups through the core's rules."""

from dataclasses import dataclass

import numpy as np

from .inputs import checked_number
from .prompt_rewards import Prompts, checked_group_size, draw
from .scales import chosen_scale
from .variants import Choice, Number

BLOCK = 250_000  # cells at a time
_BATCHES = Number(low=2, high=1_000_000, integer=True)
SEED = Number(low=0, high=999_999, integer=True)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Means over independent samples, with the standard error of each.

    ``reach`` is the largest size that one sample can have: what never came up in `count`
    samples may still shift the mean by a few times ``reach / count``. NaN: not sampled.
    """

    mean: np.ndarray
    error: np.ndarray
    count: int
    reach: np.ndarray

    def tolerance(self, errors=4.0):
        """How far the exact value may be away, at so many standard errors."""
        # Bernstein's bound: rare large samples are not normally distributed.
        return errors * self.error + errors**2 * self.reach / self.count + 1e-12

    def agrees(self, exact, errors=4.0):
        """Where the exact value is within the tolerance, or was not sampled."""
        return np.isnan(self.mean) | (np.abs(self.mean - exact) <= self.tolerance(errors))


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulated:
    """Sampled counterparts of the fields of `Difficulty` by the same names."""

    prompts: Prompts
    G: int
    scale: Choice
    expected_advantage: Estimate
    expected_size: Estimate
    mean_square: Estimate
    silent: Estimate
    prompt_weight: Estimate


def simulate_difficulty(prompts, G, scale="group", *, batches=4000, seed=0, **options):
    """Sample batches of P groups and average what `difficulty` gives exactly.

    Parameters
    ----------
    prompts : Prompts
        One batch holds one group of each.
    G : int
        At least 2.
    scale : str
        Key of a row of `SCALES`.
    batches : int
    seed : int
        From 0 to 999,999. The same seed gives the same numbers.
    options
        Of the row: ``ddof``, ``eps``.

    Returns
    -------
    Simulated
        ``expected_advantage`` has shape (P, V) and is NaN at values of probability 0; the
        others have shape (P,). ``prompt_weight`` is NaN where rewards cannot differ.

    Raises
    ------
    ScenarioError
        Unknown scale or option, a number out of range.
    """
    G = checked_group_size(G)
    batches = checked_number("batches", batches, _BATCHES)
    rng = np.random.default_rng(checked_number("seed", seed, SEED))
    row, options = chosen_scale(scale, options)
    P, V = prompts.values.shape
    step = max(BLOCK // (P * G * V), 1)
    sums = np.zeros((2, V + 4, P))
    for start in range(0, batches, step):
        found = _samples(prompts, G, min(step, batches - start), rng, row, options)
        sums += np.sum(found, axis=1), np.sum(np.square(found), axis=1)
    peak = row.peak(prompts.span, P, G)
    ones = np.ones(P)
    seen = np.where(prompts.probabilities > 0, prompts.probabilities, np.nan)
    variance = np.where(prompts.variance > 0, prompts.variance, np.nan)
    whole = estimate(sums[0], sums[1], batches, np.ones((V + 4, P)))

    def part(rows, reach, divisor=1.0):
        mean, error = whole.mean[rows].T / divisor, whole.error[rows].T / divisor
        return Estimate(mean, error, batches, reach / divisor)

    return Simulated(
        prompts=prompts,
        G=G,
        scale=Choice(row.key, options),
        expected_advantage=part(slice(0, V), peak, seen),
        expected_size=part(V, peak * ones),
        mean_square=part(V + 1, peak**2 * ones),
        silent=part(V + 2, ones),
        prompt_weight=part(V + 3, peak * prompts.span * ones, variance),
    )


def _samples(prompts, G, batches, rng, row, options):
    """Mean of A by own value, of |A|, of A**2, tied, mean of A r; (V + 4, B, P)."""
    at = draw(prompts, G, batches, rng)  # (B, P, G)
    rewards = prompts.values[np.arange(len(prompts))[:, None], at]
    advantages = row.function(rewards, **options)
    values = np.arange(prompts.values.shape[1])
    own = at[..., None] == values  # (B, P, G, V)
    by_value = np.mean(advantages[..., None] * own, axis=2)  # (B, P, V)
    tied = np.min(rewards, axis=2) == np.max(rewards, axis=2)
    deviation = rewards - prompts.mean[:, None]
    others = (
        np.mean(np.abs(advantages), axis=2),
        np.mean(np.square(advantages), axis=2),
        tied.astype(float),
        np.mean(advantages * deviation, axis=2),
    )
    return np.concatenate([np.moveaxis(by_value, 2, 0), np.stack(others)])


def estimate(total, squares, count, reach):
    """An `Estimate` from the sum of samples and of their squares."""
    mean = total / count
    variance = np.maximum(squares / count - np.square(mean), 0.0) * (count / (count - 1))
    return Estimate(mean, np.sqrt(variance / count), count, np.asarray(reach, dtype=float))
