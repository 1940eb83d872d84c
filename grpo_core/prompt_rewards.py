"""What an answer to each prompt may score, and how likely: the worlds of the closed forms.

Samples of one prompt are independent. A prompt that is right with probability p scores 1 with
probability p, else 0; graded rewards have more values.
"""

import reprlib
from dataclasses import dataclass

import numpy as np

from .errors import ScenarioError, place
from .inputs import checked_number
from .variants import Number

GROUP_SIZE = Number(low=2, high=1024, integer=True)


@dataclass(frozen=True, eq=False)
class Prompts:
    """A reward distribution for each of P prompts, over V values.

    ``values`` (P, V) ascend along each row, ``probabilities`` (P, V) add up to 1. Built by
    `prompts_from_rates` and `prompts_from_table`.
    """

    values: np.ndarray
    probabilities: np.ndarray

    def __len__(self):
        return len(self.values)

    @property
    def rates(self):
        """Probability of the highest value, the success rate of 0/1 rewards; (P,)."""
        return self.probabilities[:, -1]

    @property
    def mean(self):
        """True mean reward of each prompt, (P,)."""
        return np.sum(self.probabilities * self.values, axis=1)

    @property
    def variance(self):
        """True variance of each prompt's reward, (P,)."""
        deviation = self.values - self.mean[:, None]
        return np.sum(self.probabilities * deviation * deviation, axis=1)

    @property
    def same_reward(self):
        """Probability that another answer scores exactly this value, (P, V)."""
        equal = self.values[:, :, None] == self.values[:, None, :]  # (P, V, V)
        return np.minimum(np.sum(equal * self.probabilities[:, None, :], axis=2), 1.0)

    @property
    def span(self):
        """Highest minus lowest value over all prompts."""
        return float(np.max(self.values) - np.min(self.values))

    @property
    def two_values(self):
        """Whether all prompts share the same two values, as 0/1 rewards do."""
        first = self.values[:1]
        return self.values.shape[1] == 2 and first[0, 0] < first[0, 1] and self._shared

    @property
    def _shared(self):
        return bool(np.all(self.values == self.values[:1]))


def prompts_from_rates(rates):
    """Prompts of 0/1 rewards with these success rates.

    Parameters
    ----------
    rates : array-like, shape (P,)

    Returns
    -------
    Prompts
        With V = 2.

    Raises
    ------
    ScenarioError
        No rate, or one that is not a number from 0 to 1; names the prompt.

    Examples
    --------
    >>> prompts_from_rates([0.25]).variance.tolist()
    [0.1875]
    """
    rates = _numbers("rates", rates, 1)
    _refuse("rates", rates, ~((rates >= 0) & (rates <= 1)), "a success rate from 0 to 1")
    values = np.broadcast_to([0.0, 1.0], (len(rates), 2))
    return Prompts(values, np.column_stack([1 - rates, rates]))


def prompts_from_table(values, probabilities):
    """Prompts of graded rewards.

    Parameters
    ----------
    values : array-like, shape (P, V) or (V,)
        Possible rewards, the same for all prompts if there is one axis. NaN: no such value.
    probabilities : array-like, shape (P, V)
        Divided by the sum of their row; NaN counts as 0.

    Returns
    -------
    Prompts

    Raises
    ------
    ScenarioError
        Infinite values, negative probabilities, a probability of no value, or a prompt
        without any; names prompt and value.
    """
    weights = _numbers("probabilities", probabilities, 2)
    values = _numbers("values", values, np.ndim(values) if np.ndim(values) == 1 else 2)
    if values.shape[-1] != weights.shape[1] or values.shape not in (
        weights.shape,
        weights.shape[1:],
    ):
        raise ScenarioError(
            f"values has shape {values.shape}; expected {weights.shape} like probabilities",
            field="values",
        )
    values = np.broadcast_to(values, weights.shape)
    weights = np.where(np.isnan(weights), 0.0, weights)
    _refuse("values", values, np.isinf(values), "a finite reward")
    _refuse("probabilities", weights, ~((weights >= 0) & (weights < np.inf)), "at least 0")
    _refuse("values", values, np.isnan(values) & (weights > 0), "a reward where there is a chance")
    sums = np.sum(weights, axis=1)
    if not np.all(sums > 0):
        (p,) = np.argwhere(~(sums > 0))[0]
        raise ScenarioError(
            f"probabilities of {place((p,))} are all 0; wanted at least one above 0",
            field="probabilities",
            where=(p,),
        )
    return _ordered(values, weights / sums[:, None])


def _ordered(values, probabilities):
    """Rows sorted by value; what is no value repeats one that is, with probability 0."""
    known = np.take_along_axis(values, np.argmax(probabilities > 0, axis=1)[:, None], axis=1)
    values = np.where(np.isnan(values), known, values)
    order = np.argsort(values, axis=1, kind="stable")
    return Prompts(
        np.take_along_axis(values, order, axis=1),
        np.take_along_axis(probabilities, order, axis=1),
    )


def checked_rewards(rewards):
    """Rewards (P, G) as float64, NaN where missing; infinite ones and other shapes refused."""
    rewards = _numbers("rewards", rewards, 2)
    _refuse("rewards", rewards, np.isinf(rewards), "a finite reward, or nothing", "completion")
    return rewards


def checked_group_size(size):
    """The group size as an int of at least 2."""
    return checked_number("G", size, GROUP_SIZE)


def _numbers(name, given, axes):
    try:
        array = np.array(given)
        if array.dtype.kind not in "biufO" or any(isinstance(cell, str) for cell in array.flat):
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ScenarioError(
            f"{name} is {reprlib.repr(given)}; wanted rows of numbers, all of one length",
            field=name,
        ) from None
    if axes == 1:
        array = np.atleast_1d(array)
    if array.ndim != axes or array.size == 0:
        raise ScenarioError(
            f"{name} has shape {array.shape}; wanted {axes} axes, none of them empty", field=name
        )
    return array


def _refuse(name, values, bad, wanted, column="value"):
    if np.any(bad):
        where = tuple(np.argwhere(bad)[0].tolist())
        beside = f", {column} {where[1]}" if len(where) > 1 else ""
        raise ScenarioError(
            f"{name} at {place(where[:1])}{beside} is {values[where].item()!r}; wanted {wanted}",
            field=name,
            where=where,
        )


def compositions(total, parts):
    """All ways of dividing `total` answers among `parts` values, one a row; (C, parts).

    C is the binomial coefficient of ``total + parts - 1`` over ``parts - 1``.
    """
    left = np.array([total])
    counts = np.zeros((1, 0), dtype=np.int64)
    for _ in range(parts - 1):
        ways = left + 1
        first = np.repeat(np.cumsum(ways) - ways, ways)
        taken = np.arange(first.size) - first
        counts = np.column_stack([np.repeat(counts, ways, axis=0), taken])
        left = np.repeat(left, ways) - taken
    return np.column_stack([counts, left])


def multinomial(counts, probabilities):
    """Probability of each composition (C, V) for each prompt (P, V); (P, C)."""
    size = int(np.sum(counts[0]))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size + 1)))])
    ways = log_factorial[size] - np.sum(log_factorial[counts], axis=1)  # (C,)
    never = probabilities == 0
    log_p = np.log(np.where(never, 1.0, probabilities))
    impossible = never.astype(float) @ (counts > 0).T > 0  # (P, C)
    with np.errstate(under="ignore"):
        chance = np.where(impossible, 0.0, np.exp(ways + log_p @ counts.T))
        return chance / np.sum(chance, axis=1, keepdims=True)


def draw(prompts, size, batches, rng):
    """Sample batches of groups: positions on the value axis, (batches, P, size)."""
    edges = np.cumsum(prompts.probabilities, axis=1)[:, :-1]
    later = np.cumsum(prompts.probabilities[:, :0:-1], axis=1)[:, ::-1]
    edges = np.where(later == 0, np.inf, edges)  # rounding must not reach a value of chance 0
    uniform = rng.random((batches, len(prompts), size))
    return np.sum(uniform[..., None] >= edges[:, None, :], axis=-1)
