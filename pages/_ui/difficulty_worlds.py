"""What the page on difficulty draws: the table's prompts under every way of dividing."""

from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from grpo_core.difficulty import Difficulty, can_enumerate, difficulty
from grpo_core.estimators import seed_of
from grpo_core.prompt_rewards import GROUP_SIZE, prompts_from_rates
from grpo_core.scales import SCALES, chosen_scale
from grpo_core.simulation import Simulated, simulate_difficulty
from grpo_core.variants import Choice

from .rate_tables import group_size, prompts_from_kinds, with_kinds

GRID = np.linspace(0.0, 1.0, 201)
_SAMPLES = 1_500_000  # cells: rewards drawn times different rewards, about 30 ms
_FEWEST_BATCHES, _MOST_BATCHES = 10, 4000
_BATCH_CELLS = 4_000_000  # of the closed form for the std of the batch
_ROWS = {"mean_std": "group", "mean_only": "none"}  # stage *advantage* -> SCALES drawn here


@dataclass(frozen=True, eq=False, kw_only=True)
class Way:
    """One way of dividing: its name, its weights along all rates, and at the table's prompts.

    ``curve`` is None for graded rewards or where it is too large; ``exact`` is None where
    there is no closed form, ``sampled`` where there is one.
    """

    name: str
    chosen: bool
    curve: Difficulty | None
    exact: Difficulty | None
    sampled: Simulated | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Weighing:
    """The table's prompts, a row for each way of dividing, and the chosen way by sampling.

    ``larger`` are pairs of a group size, the chosen one and its double and fourfold, and the
    largest weight against the smallest in groups of that size; without sampling there are none.
    ``weights`` and ``speed``, weight times variance, are those of the chosen way, (N,); NaN
    where answers cannot differ.
    """

    G: int
    graded: bool
    choice: Choice
    prompts: object
    ways: tuple
    sampled: Simulated | None
    weights: np.ndarray
    speed: np.ndarray
    larger: tuple

    @property
    def chosen(self):
        """The chosen way."""
        return next(way for way in self.ways if way.chosen)

    @property
    def where(self):
        """Place of each prompt on the axis: its mean reward, the success rate of 0/1 rewards."""
        return self.prompts.mean


def scale_of(scenario, rows=MappingProxyType(_ROWS)):
    """The row of `SCALES` that the example's own advantages are, and whether there is one.

    ``rows`` maps variants of the stage *advantage* to rows of `SCALES`. A least std is known to
    none of them.
    """
    choice = scenario.conventions["advantage"]
    key = rows.get(choice.variant)
    if key is None or choice.options.get("floor"):
        return Choice("group", chosen_scale("group", {})[1]), False
    known = {option.key for option in SCALES[key].options}
    given = {name: value for name, value in choice.options.items() if name in known}
    return Choice(key, chosen_scale(key, given)[1]), True


def weighing(scenario, *, sample=True):
    """All that is drawn of a scenario's kinds of prompts.

    Parameters
    ----------
    scenario : Scenario
        With kinds or without, see `with_kinds`.
    sample : bool
        Whether the chosen way is simulated beside its closed form.
    """
    scenario = with_kinds(scenario)
    arrays = tuple(scenario[key].astype(np.float64) for key in ("reward_chances", "reward_values"))
    choice, _ = scale_of(scenario)
    return _weighing(
        tuple((array.shape, array.tobytes()) for array in arrays),
        group_size(scenario),
        (choice.variant, tuple(choice.options.items())),
        int(seed_of(scenario)),
        sample,
    )


@np.errstate(all="ignore")  # rewards may be so large that squares overflow
@lru_cache(maxsize=32)  # the ghost and the pinned state are drawn again in every run
def _weighing(arrays, G, choice, seed, sample):
    chances, values = (np.frombuffer(data).reshape(shape) for shape, data in arrays)
    prompts, graded = prompts_from_kinds(chances, values), values.tolist() != [0.0, 1.0]
    choice = Choice(choice[0], dict(choice[1]))
    ways = tuple(
        _way(name, key, options, choice, prompts, G, graded, seed)
        for name, key, options in _ways(choice)
    )
    sampled = next(way.sampled for way in ways if way.chosen)
    if sample and sampled is None:
        sampled = _sampled(prompts, G, choice.variant, choice.options, seed)
    at = next(way for way in ways if way.chosen)
    weights = at.exact.prompt_weight if at.exact else at.sampled.prompt_weight.mean
    weights = np.where(prompts.variance > 0, weights, np.nan)
    return Weighing(
        G=G,
        graded=graded,
        choice=choice,
        prompts=prompts,
        ways=ways,
        sampled=sampled,
        weights=weights,
        speed=weights * prompts.variance,
        larger=_larger(prompts, G, choice) if sample else (),
    )


def _larger(prompts, G, choice):
    sizes = [size for size in (G, 2 * G, 4 * G) if size <= GROUP_SIZE.high]
    return tuple(
        (size, _contrast(difficulty(prompts, size, choice.variant, **choice.options)))
        for size in sizes
        if can_enumerate(prompts, size, choice.variant)
    )


def _contrast(found):
    weights = found.prompt_weight[found.prompts.variance > 0]
    return float(np.max(weights) / np.min(weights)) if weights.size and np.min(weights) else np.nan


def _ways(choice):
    """Names, rows of `SCALES` and options, the std with the example's own eps."""
    default = chosen_scale("group", {})[1]
    ddof, eps = (choice.options.get(key, default[key]) for key in ("ddof", "eps"))
    return (
        ("std of the group (ddof 0)", "group", {"ddof": 0, "eps": eps}),
        ("std of the group (ddof 1)", "group", {"ddof": 1, "eps": eps}),
        ("std of the batch", "batch", {"ddof": ddof, "eps": eps}),
        ("nothing", "none", {}),
    )


def _way(name, key, options, choice, prompts, G, graded, seed):
    chosen = key == choice.variant and options.get("ddof") == choice.options.get("ddof")
    affordable = SCALES[key].per_group or len(prompts) * G * G <= _BATCH_CELLS
    closed = affordable and can_enumerate(prompts, G, key)
    curve = None
    if not graded and affordable:
        beside = None if SCALES[key].per_group else prompts
        curve = difficulty(prompts_from_rates(GRID), G, key, beside=beside, **options)
    return Way(
        name=name,
        chosen=chosen,
        curve=curve,
        exact=difficulty(prompts, G, key, **options) if closed else None,
        sampled=None if closed else _sampled(prompts, G, key, options, seed),
    )


def _sampled(prompts, G, scale, options, seed):
    cells = G * prompts.values.size
    batches = int(np.clip(_SAMPLES // cells, _FEWEST_BATCHES, _MOST_BATCHES))
    return simulate_difficulty(prompts, G, scale, batches=batches, seed=seed, **options)
