"""Dynamic sampling: draw groups until enough are not silent. Its cost, and what it selects."""

from dataclasses import dataclass

import numpy as np

from .errors import ScenarioError
from .inputs import checked_number
from .prompt_rewards import checked_group_size, draw
from .silent import silent_probability
from .simulation import BLOCK, SEED, Estimate, estimate
from .variants import Number

_COUNT = Number(low=1, high=1_000_000, integer=True)
_RUNS = Number(low=2, high=100_000, integer=True)
_MOST_SAMPLES = 20_000_000
_FEW = 16_384  # rewards drawn at a time for one batch


@dataclass(frozen=True, eq=False, kw_only=True)
class DynamicSampling:
    """Drawing prompts and one group for each, until `wanted` groups are mixed.

    Attributes
    ----------
    G, wanted : int
    chance : float
        That a group drawn is mixed, s.
    draws, draws_std : float
        Groups generated in all: mean and standard deviation. Infinite if s is 0.
    batches : float or None
        Mean number of generated batches, if whole batches are generated.
    drawn_share, kept_share : ndarray, (P,)
        Of each prompt among the groups drawn, and among those kept. NaN if s is 0.
    drawn_mean, kept_mean : float
        Mean true reward of the prompts drawn and of those kept, one count per group.
    kept_observed : float
        Mean reward in the groups kept; not `kept_mean`, since a kept group was selected by
        its rewards.
    """

    G: int
    wanted: int
    chance: float
    draws: float
    draws_std: float
    batches: float | None
    drawn_share: np.ndarray
    kept_share: np.ndarray
    drawn_mean: float
    kept_mean: float
    kept_observed: float

    @property
    def samples(self):
        """Completions generated in all, on average."""
        return self.G * self.draws

    @property
    def factor(self):
        """By what it multiplies the expected gradient of a batch: 1/s, and the same direction.

        Silent groups contribute 0, so the mean over kept groups is the mean over all, over
        s. The price is 1/s groups for each kept: signal against noise for each sample
        *generated* is what it was. Not so under the std of the batch, which the selection
        changes.
        """
        return np.inf if self.chance == 0 else 1 / self.chance


def dynamic_sampling(prompts, G, wanted, *, batch=None):
    """Cost and selection of dynamic sampling [DAPO, arXiv 2503.14476, section 3.2].

    Parameters
    ----------
    prompts : Prompts
        Each group drawn belongs to one of them, all equally likely.
    G : int
    wanted : int
        Mixed groups to collect.
    batch : int, optional
        Groups are generated so many at a time, survivors kept.

    Returns
    -------
    DynamicSampling

    Raises
    ------
    ScenarioError
        A number out of range.

    Notes
    -----
    A draw is kept with probability ``s = mean(1 - silent)``, so the number of draws is
    negative binomial: mean ``wanted/s``, variance ``wanted (1 - s)/s**2``. Prompt x is kept
    in proportion to ``1 - silent_x``. Its mixed groups have the mean reward ``(mean -
    sum_v v P(v)**G) / (1 - silent_x)``, for 0/1 rewards ``(p - p**G)/(1 - p**G - q**G)``.
    """
    G = checked_group_size(G)
    wanted = checked_number("wanted", wanted, _COUNT)
    mixed = np.maximum(1 - silent_probability(prompts, G), 0.0)
    chance = float(np.mean(mixed))
    tied_value = prompts.probabilities * prompts.same_reward ** (G - 1) * prompts.values
    mean_if_mixed = prompts.mean - np.sum(tied_value, axis=1)  # times the chance of mixed
    kept = np.full(len(prompts), np.nan) if chance == 0 else mixed / np.sum(mixed)
    observed = np.nan if chance == 0 else float(np.mean(mean_if_mixed)) / chance
    batch = None if batch is None else checked_number("batch", batch, _COUNT)
    return DynamicSampling(
        G=G,
        wanted=wanted,
        chance=chance,
        draws=np.inf if chance == 0 else wanted / chance,
        draws_std=np.inf if chance == 0 else float(np.sqrt(wanted * (1 - chance))) / chance,
        batches=None if batch is None else mean_batches(wanted, chance, batch),
        drawn_share=np.full(len(prompts), 1 / len(prompts)),
        kept_share=kept,
        drawn_mean=float(np.mean(prompts.mean)),
        kept_mean=float(np.sum(kept * prompts.mean)),
        kept_observed=observed,
    )


def mean_batches(wanted, chance, batch):
    """Mean number of whole batches that are generated: exact, with no tail cut off.

    Parameters
    ----------
    wanted : int
        Mixed groups to collect.
    chance : float
        That a group is mixed.
    batch : int
        Groups in each batch.

    Returns
    -------
    float
        ``E[ceil(draws / batch)]``, the draws negative binomial; infinite if the chance is 0.

    Notes
    -----
    What fills the last batch up, ``-draws mod batch``, is periodic in the draws: a sum of
    ``batch`` waves, of which each has the mean ``phi(z)/(z - 1)`` at a root of unity z,
    ``phi(z) = (s z/(1 - (1 - s) z))**wanted``. The constant wave is ``(batch - 1)/2``, an even
    filling; the others die out where the draws spread over many batches.
    """
    if chance == 0:
        return np.inf
    if chance == 1:
        return float(np.ceil(wanted / batch))
    angle = 2 * np.pi * np.arange(1, batch) / batch
    sine, rest = np.sin(angle / 2), 1 - chance
    size = np.log1p(rest * (2 * sine / chance) ** 2) / 2
    turn = angle + np.arctan2(rest * np.sin(angle), chance + 2 * rest * sine**2)
    waves = np.sin(wanted * turn) * np.cos(angle / 2) / sine - np.cos(wanted * turn)
    with np.errstate(under="ignore"):
        uneven = np.sum(np.exp(-wanted * size) * waves) / 2
    mean = (wanted / chance + (batch - 1) / 2 + float(uneven)) / batch
    return max(mean, float(np.ceil(wanted / batch)))


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledDraws:
    """Sampled counterparts of the fields of `DynamicSampling` by the same names."""

    draws: Estimate
    batches: Estimate | None
    kept_share: Estimate
    kept_observed: Estimate


def simulate_dynamic_sampling(prompts, G, wanted, *, batch=None, runs=400, seed=0):
    """Run dynamic sampling many times over.

    Parameters
    ----------
    prompts, G, wanted, batch
        As in `dynamic_sampling`.
    runs : int
        At least 2; fewer are made where groups are almost always silent.
    seed : int

    Returns
    -------
    SampledDraws
        Estimates over the runs.

    Raises
    ------
    ScenarioError
        A number out of range, or mixed groups too rare to wait for.
    """
    exact = dynamic_sampling(prompts, G, wanted, batch=batch)
    runs = checked_number("runs", runs, _RUNS)
    rng = np.random.default_rng(checked_number("seed", seed, SEED))
    affordable = _MOST_SAMPLES / max(exact.samples, 1.0)
    if not affordable >= 2:
        raise ScenarioError(
            "mixed groups are too rare to sample: hardly any rate lies between 0 and 1. Take "
            "more answers per prompt, or rates nearer to 1/2",
            field="rates",
        )
    runs = min(runs, int(affordable))
    which, at, means = _kept_groups(prompts, exact.G, runs * exact.wanted, rng)
    ends = at.reshape(runs, -1)[:, -1] + 1
    draws = np.diff(ends, prepend=0).astype(float)
    each = which.reshape(runs, -1, 1) == np.arange(len(prompts))
    ones = np.ones(len(prompts))
    size = None if batch is None else np.ceil(draws / batch)
    return SampledDraws(
        draws=_over_runs(draws, np.max(draws)),
        batches=None if size is None else _over_runs(size, np.max(size)),
        kept_share=_over_runs(np.mean(each, axis=1), ones),
        kept_observed=_over_runs(np.mean(means.reshape(runs, -1), axis=1), prompts.span),
    )


def _kept_groups(prompts, G, needed, rng):
    """Prompt, place in the stream of draws, and mean reward of the first mixed groups."""
    step = max(BLOCK // G, 1)
    found, count, start = [], 0, 0
    while count < needed:
        which = rng.integers(len(prompts), size=step)
        rewards = _groups_of(prompts, which, G, rng)
        mixed = _mixed(rewards)
        found.append((which[mixed], start + np.flatnonzero(mixed), np.mean(rewards, axis=1)[mixed]))
        count, start = count + int(np.sum(mixed)), start + step
    return tuple(np.concatenate(parts)[:needed] for parts in zip(*found, strict=True))


def next_mixed_groups(prompts, G, wanted, rng):
    """The next mixed groups of randomly drawn prompts.

    Returns
    -------
    rewards : ndarray, (wanted, G)
    which : ndarray of int, (wanted,)
        The prompt of each.
    drawn : float
        Groups generated to find them. Where they are too rare to wait for nothing is drawn:
        no groups, at infinite cost.
    """
    none = np.zeros((0, G)), np.zeros(0, dtype=np.intp)
    if not wanted:
        return *none, 0.0
    chance = 0.0 if G < 2 else float(np.mean(1 - silent_probability(prompts, G)))
    if chance * _MOST_SAMPLES < wanted * G:
        return *none, np.inf
    groups, owners, drawn, count = [], [], 0, 0
    while count < wanted:
        which = rng.integers(len(prompts), size=max(_FEW // G, 1))
        found = _groups_of(prompts, which, G, rng)
        at = np.flatnonzero(_mixed(found))[: wanted - count]
        groups.append(found[at])
        owners.append(which[at])
        count += len(at)
        drawn += int(at[-1]) + 1 if count == wanted else len(which)
    return np.concatenate(groups), np.concatenate(owners), float(drawn)


def _mixed(rewards):
    return np.min(rewards, axis=1) < np.max(rewards, axis=1)


def _groups_of(prompts, which, G, rng):
    """One sampled group for each prompt named, (N, G)."""
    chosen = type(prompts)(prompts.values[which], prompts.probabilities[which])
    at = draw(chosen, G, 1, rng)[0]
    return np.take_along_axis(chosen.values, at, axis=1)


def _over_runs(values, reach):
    return estimate(np.sum(values, axis=0), np.sum(np.square(values), axis=0), len(values), reach)
