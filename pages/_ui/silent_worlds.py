"""What the page on silent groups draws: how often they come, and what the batch shows of it."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from grpo_core import ARRAYS, ScenarioError
from grpo_core.dynamic_sampling import (
    DynamicSampling,
    SampledDraws,
    dynamic_sampling,
    simulate_dynamic_sampling,
)
from grpo_core.estimators import seed_of
from grpo_core.prompt_rewards import Prompts
from grpo_core.silent import (
    silent_curve,
    silent_probability,
    tied_groups,
    tied_subgroups,
)

from .difficulty_worlds import GRID
from .rate_tables import batch_rewards, group_size, is_graded, prompts_from_kinds, with_kinds

BUDGET = ARRAYS["budget"].default
_RUNS, _SAMPLES = 400, 1_000_000  # answers drawn, about 30 ms
_CELLS = 300_000  # pairs of scores of a batch, beyond which ties are counted at its own size only
_LARGEST = 64  # group size drawn, unless a larger one is chosen


@dataclass(frozen=True, eq=False, kw_only=True)
class Silent:
    """Chances of a tie of the table's prompts, and the ties of the batch on the screen.

    Attributes
    ----------
    prompts : Prompts
    G : int
    graded : bool
    probability : ndarray, (N,)
        At the chosen group size.
    curve : ndarray, (R,), or None
        At the rates of `GRID`; None for graded rewards.
    sizes : ndarray of int, (S,)
    by_size : ndarray, (N, S)
    batch_size : int
        Largest number of scores in a group of the batch.
    batch_sizes, batch_ties : ndarray
        Group sizes up to that one, and the mean chance that so many scores of a group of the
        batch, taken at random, are equal.
    batch_groups, batch_tied : int
        Groups of the batch with two scores or more, and how many of them are tied.
    batch_expected : float
        Mean chance of the table's prompts to tie in groups as large as the batch's.
    """

    prompts: Prompts
    G: int
    graded: bool
    probability: np.ndarray
    curve: np.ndarray | None
    sizes: np.ndarray
    by_size: np.ndarray
    batch_size: int
    batch_sizes: np.ndarray
    batch_ties: np.ndarray
    batch_groups: int
    batch_tied: int
    batch_expected: float

    @property
    def share(self):
        """Share of groups that is silent if all kinds of prompts are equally frequent."""
        return float(np.mean(self.probability))

    @property
    def surprise(self):
        """Observed ties less expected, in standard deviations of drawing prompts and answers."""
        n, s = self.batch_groups, self.batch_expected
        if not n:
            return 0.0
        gap = self.batch_tied / n - s
        if abs(gap) < 1e-12:
            return 0.0
        spread = np.sqrt(s * (1 - s) / n)
        return float(gap / spread) if spread > 0 else float(np.copysign(np.inf, gap))


@np.errstate(all="ignore")
def silent(scenario):
    """All about ties of a scenario's kinds of prompts and of its batch."""
    scenario = with_kinds(scenario)
    prompts = prompts_from_kinds(scenario["reward_chances"], scenario["reward_values"])
    G, graded, rewards = group_size(scenario), is_graded(scenario), batch_rewards(scenario)
    scores = np.sum(~np.isnan(rewards), axis=1)
    most = int(np.max(scores))
    sizes = _sizes(max(_LARGEST, G, most))
    batch_sizes, batch_ties = _observed(rewards, sizes, most)
    return Silent(
        prompts=prompts,
        G=G,
        graded=graded,
        probability=silent_probability(prompts, G),
        curve=None if graded else silent_curve(GRID, [G])[:, 0],
        sizes=sizes,
        by_size=np.stack([silent_probability(prompts, int(size)) for size in sizes], axis=1),
        batch_size=most,
        batch_sizes=batch_sizes,
        batch_ties=batch_ties,
        batch_groups=int(np.sum(scores >= 2)),
        batch_tied=int(np.sum(tied_groups(rewards))),
        batch_expected=_expected(prompts, scores[scores >= 2]),
    )  # fmt: skip


def _sizes(most):
    """Every size up to 16, then about eight in each doubling."""
    later = np.round(2.0 ** np.arange(4, np.log2(most) + 0.125, 0.125)).astype(int)
    return np.unique(np.concatenate([np.arange(2, 17), later[later <= most], [most]]))


def _observed(rewards, sizes, most):
    """Sizes at which ties of the batch are counted, and how many ties there are at each."""
    if most < 2:
        return sizes[:0], np.array([])
    if rewards.size * most > _CELLS:
        scored = np.sum(~np.isnan(rewards), axis=1) >= 2
        return np.array([most]), np.array([float(np.mean(tied_groups(rewards)[scored]))])
    smaller = np.union1d(sizes[sizes <= most], [most])
    return smaller, np.array([_mean_ties(rewards, int(size)) for size in smaller])


def _expected(prompts, scores):
    """Mean chance of a tie of groups with so many scores, each of any of the prompts."""
    sizes, groups = np.unique(scores, return_counts=True)
    if not sizes.size:
        return np.nan
    each = [float(np.mean(silent_probability(prompts, int(size)))) for size in sizes]
    return float(np.average(each, weights=groups))


def _mean_ties(rewards, size):
    ties = tied_subgroups(rewards, size)
    return float(np.mean(ties[~np.isnan(ties)]))


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawing:
    """Dynamic sampling until enough groups are mixed: closed form, and sampling beside it.

    ``sampled`` is None where mixed groups are too rare to wait for.
    """

    exact: DynamicSampling
    sampled: SampledDraws | None


def drawing(scenario):
    """Dynamic sampling of a scenario's kinds of prompts, as many groups as fit the budget."""
    scenario = with_kinds(scenario)
    arrays = tuple(scenario[key].astype(np.float64) for key in ("reward_chances", "reward_values"))
    G = group_size(scenario)
    wanted = max(int(scenario.arrays.get("budget", BUDGET)) // G, 1)
    kept = tuple((array.shape, array.tobytes()) for array in arrays)
    return _drawing(kept, G, wanted, int(seed_of(scenario)))


@np.errstate(all="ignore")  # rewards may be so large that sums overflow
@lru_cache(maxsize=32)  # an edit of the batch leaves it as it is
def _drawing(arrays, G, wanted, seed):
    prompts = prompts_from_kinds(*(np.frombuffer(data).reshape(shape) for shape, data in arrays))
    exact = dynamic_sampling(prompts, G, wanted, batch=wanted)
    sampled = None
    if exact.samples * 2 <= _SAMPLES:
        runs = int(min(_RUNS, _SAMPLES // exact.samples))
        try:
            sampled = simulate_dynamic_sampling(
                prompts, G, wanted, batch=wanted, runs=runs, seed=seed
            )
        except ScenarioError:  # too rare: the closed form alone is shown
            sampled = None
    return Drawing(exact=exact, sampled=sampled)
