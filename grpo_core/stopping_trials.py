"""The worlds of `grpo_core.stopping` run through `evaluate`: all groups, or sampled batches."""

from dataclasses import dataclass
from math import comb

import numpy as np

from .batch import prepare
from .errors import ScenarioError
from .evaluation import evaluate_batch
from .inputs import checked_number
from .prompt_rewards import compositions, multinomial
from .stop_worlds import StopWorld
from .stopping import GROUP, PROMPTS, Pull, slopes
from .trials import made_up
from .variants import Number

_BATCHES = Number(low=2, high=100_000, integer=True)
_SEED = Number(low=0, high=999_999, integer=True)
_MOST_GROUPS = 5000
_MOST_TOKENS = 100_000_000


@dataclass(frozen=True, eq=False)
class _Outcomes:
    """Everything that one sample can be, O outcomes: a branch, a length, right or wrong."""

    branch: np.ndarray  # (O,)
    right: np.ndarray  # (O,)
    chance: np.ndarray  # (O,)
    mask: np.ndarray  # (O, M)
    old: np.ndarray  # (O, M) log-probability of each decision
    new: np.ndarray
    slope: np.ndarray  # (O, M) its derivative by the position's stop logit


def _outcomes(world, new=None):
    B, M = world.stops.shape
    right, branch, at = (a.ravel() for a in np.meshgrid([0, 1], range(B), range(M), indexing="ij"))
    luck = np.where(right == 1, world.right[branch, at], 1 - world.right[branch, at])
    chance = world.chances[branch, at] * luck
    some = chance > 0
    branch, right, at, chance = branch[some], right[some], at[some], chance[some]
    position, at = np.arange(M), at[:, None]
    stop = world.stops[branch]
    slope = np.where(position == at, 1 - stop, 0.0) - np.where(position < at, stop, 0.0)
    return _Outcomes(
        branch,
        right.astype(np.float64),
        chance,
        position <= at,
        _decisions(stop, at),
        _decisions((world if new is None else new).stops[branch], at),
        slope,
    )


def _decisions(stop, at):
    """log(1 - stop) of going on, log(stop) at the end, 0 behind it."""
    position = np.arange(stop.shape[1])
    chosen = np.where(position < at, 1 - stop, np.where(position == at, stop, 1.0))
    return np.log(np.where(chosen > 0, chosen, 1.0))


def expected_objective(world, conventions, *, G=2, new=None):
    """Exact expected objective of one group, and its gradient by the stop logits.

    Every group that can be sampled is run through `evaluate`.

    Parameters
    ----------
    world : StopWorld
        Small: M times B times 2 outcomes, in groups of G, at most 5,000 different groups.
    conventions : Conventions
        As `made_up` leaves them.
    G : int
    new : StopWorld, optional
        The policy that is evaluated on the samples of `world`; by default the same one.

    Returns
    -------
    objective : float
    gradient : ndarray, shape (B, M)
        By the stop logit of each position, of the new policy at the old one's samples. It is
        the derivative of `objective` where `new` is `world`.

    Raises
    ------
    ScenarioError
        Too many groups, or a new policy of another shape.
    """
    G = checked_number("G", G, GROUP)
    if new is not None and new.stops.shape != world.stops.shape:
        raise ScenarioError(
            f"new has stops of shape {new.stops.shape}; expected {world.stops.shape}", field="new"
        )
    outcomes, conventions = _outcomes(world, new), made_up(conventions)
    kinds = len(outcomes.chance)
    ways = comb(kinds + G - 1, G)
    if ways > _MOST_GROUPS:
        raise ScenarioError(
            f"{kinds} outcomes in groups of {G} make {ways} groups; wanted at most {_MOST_GROUPS}, "
            "so a smaller group or fewer positions",
            field="G",
        )
    counts = compositions(G, kinds)
    chance = multinomial(counts, outcomes.chance[None] / np.sum(outcomes.chance))[0]
    groups = np.repeat(np.tile(np.arange(kinds), ways), counts.ravel()).reshape(ways, G)
    objective, gradient = 0.0, np.zeros(world.stops.shape)
    for likely, group in zip(chance, groups, strict=True):
        found = evaluate_batch(_batch(outcomes, group[None]), conventions)
        objective += likely * found.objective
        np.add.at(
            gradient, outcomes.branch[group], likely * found.gradient[0] * outcomes.slope[group]
        )
    return float(objective), gradient


def _batch(outcomes, groups):
    """The sampled groups (P, G) of outcome indices as a batch."""
    old = outcomes.old[groups]
    return prepare(
        rewards=outcomes.right[groups],
        mask=outcomes.mask[groups],
        present=np.ones(groups.shape, dtype=bool),
        logp_new=outcomes.new[groups],
        logp_old=old,
        logp_ref=old,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledPull:
    """Means over sampled batches, and the standard error of each, field by field."""

    batches: int
    mean: Pull
    error: Pull


def sampled_pull(world, conventions, *, prompts=4, G=8, batches=500, seed=0, shared=True):
    """The pull by simulation: sampled batches through `evaluate`.

    Parameters
    ----------
    world : StopWorld
    conventions : Conventions
        As `made_up` leaves them.
    prompts, G : int
        Of each batch.
    batches, seed : int
    shared : bool
        As in `expected_update`.

    Returns
    -------
    SampledPull
    """
    prompts, G = checked_number("prompts", prompts, PROMPTS), checked_number("G", G, GROUP)
    batches = checked_number("batches", batches, _BATCHES)
    seed = checked_number("seed", seed, _SEED)
    tokens = prompts * G * world.stops.shape[1] * batches
    if tokens > _MOST_TOKENS:
        raise ScenarioError(
            f"{batches} batches of {prompts} x {G} x {world.stops.shape[1]} tokens are too many; "
            f"wanted at most {batches * _MOST_TOKENS // tokens} batches",
            field="batches",
        )
    outcomes, conventions = _outcomes(world), made_up(conventions)
    rng = np.random.default_rng(seed)
    edges = np.cumsum(outcomes.chance / np.sum(outcomes.chance))[:-1]
    updates = np.zeros((batches, *world.stops.shape))
    for update in updates:
        groups = np.searchsorted(edges, rng.random((prompts, G)), side="right")
        found = evaluate_batch(_batch(outcomes, groups), conventions)
        by_position = found.policy_gradient * outcomes.slope[groups]
        np.add.at(update, outcomes.branch[groups], by_position)
    return _sampled(world, world.per_logit(updates, shared), shared)


def _sampled(world: StopWorld, updates, shared):
    found = slopes(world, shared=shared)
    n, axes = len(updates), tuple(range(1, updates.ndim))
    samples = {
        "update": updates,
        "change": np.sum(updates * found.by_length, axis=axes),
        "change_right": np.sum(updates * found.by_right_length, axis=axes),
        "change_wrong": np.sum(updates * found.by_wrong_length, axis=axes),
        "change_rate": np.sum(updates * found.by_rate, axis=axes),
    }
    errors = {key: np.std(v, axis=0, ddof=1) / np.sqrt(n) for key, v in samples.items()}
    means = {key: np.mean(v, axis=0) for key, v in samples.items()}
    return SampledPull(batches=n, mean=_plain(means), error=_plain(errors))


def _plain(fields):
    return Pull(**{key: v if v.ndim else float(v) for key, v in fields.items()})
