"""The pull on length: policies that decide after every token whether to stop.

The expected update of their stop logits is exact, and so is what it does to the expected
length of right and of wrong answers. Seeded simulation stands in `grpo_core.stopping_trials`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from .errors import ScenarioError
from .inputs import checked_number
from .trials import BEYOND_GROUP, binomial, by_count, first_chosen, made_up
from .variants import Number

GROUP = Number(low=2, high=256, integer=True)
PROMPTS = Number(low=1, high=256, integer=True)
_ROUNDING = 1e-12
_CELLS = 16_000_000
# As `BEYOND_GROUP`: what may weigh tokens otherwise than the closed forms do, at ratio 1.
_OTHERWISE = (
    ("ratio", "sequence_product", None),
    ("tied", "drop", None),
    ("tied", "zero", None),
    ("surrogate", "two_sided", "delta"),
    ("surrogate", "cispo", "bound"),
    ("surrogate", "gmpo", "count_eps"),
    ("surrogate", "dppo_tv", "truncate"),
    ("surrogate", "dppo_kl", "truncate"),
    ("aggregation", "completion_mean", "count_eps"),
    ("aggregation", "completion_mean", "completions"),
    ("aggregation", "token_mean", "tokens"),
    ("aggregation", "constant", "completions"),
    ("accumulation", "factor", "factor"),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Pull:
    """What an update of the stop logits does, per unit of learning rate.

    Attributes
    ----------
    update : ndarray, (B,), or (B, M) if every position has a logit of its own
        Expected gradient of the objective by the stop logits; up is shorter.
    change : float
        Of the expected length of all answers, in tokens.
    change_right, change_wrong : float
        Of the expected length of right and of wrong answers; 0 where there are none.
    change_rate : float
        Of the chance of a right answer. Below 0 the update makes the policy worse.
    """

    update: np.ndarray
    change: float
    change_right: float
    change_wrong: float
    change_rate: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Slopes:
    """Expected lengths and success rate now, and their derivatives by the stop logits.

    ``length``, ``right_length``, ``wrong_length`` and ``rate`` are floats (lengths None where
    there are no such answers); ``by_*`` have the shape of `Pull.update`.
    """

    length: float
    right_length: float | None
    wrong_length: float | None
    rate: float
    by_length: np.ndarray
    by_right_length: np.ndarray
    by_wrong_length: np.ndarray
    by_rate: np.ndarray


def slopes(world, *, shared=True):
    """Expected lengths of a world and their exact derivatives, see `Slopes`."""
    chances, lengths = world.chances, world.lengths
    gradient = chances[..., None] * world.scores  # d chance / d logit, (B, M, M)

    def by_logit(values):
        return world.per_logit(np.sum(values[..., None] * gradient, axis=1), shared)

    def mean_length(among):
        mass = float(np.sum(chances * among))
        if mass == 0:
            return None, np.zeros_like(by_logit(among))
        mean = float(np.sum(chances * among * lengths)) / mass
        return mean, by_logit(among * (lengths - mean)) / mass

    everything = np.ones_like(chances)
    whole, right, wrong = (mean_length(a) for a in (everything, world.right, 1 - world.right))
    return Slopes(
        length=whole[0],
        right_length=right[0],
        wrong_length=wrong[0],
        rate=world.rate,
        by_length=whole[1],
        by_right_length=right[1],
        by_wrong_length=wrong[1],
        by_rate=by_logit(world.right),
    )


def expected_update(world, conventions, *, prompts=1, G=8, shared=True):
    """Expected gradient of the objective by the stop logits, exactly.

    Parameters
    ----------
    world : StopWorld
    conventions : Conventions
        As `made_up` leaves them. The batch was just sampled: ratio 1, no clipping, and the
        policy at its reference.
    prompts, G : int
        Size of the batch; the number of prompts matters only where tokens of all completions
        share a denominator.
    shared : bool
        One stop logit for all positions of a branch, or one for each.

    Returns
    -------
    ndarray, shape (B,), or (B, M) if not shared; or None
        None where there is no closed form here: of the aggregation, see `CLOSED_FORMS`, or
        where advantages look beyond their group, see `grpo_core.trials.BEYOND_GROUP`.

    Notes
    -----
    ``sum over outcomes of P(outcome) S E[A w | outcome]``, S the score of the stop decisions.
    Where a token's weight w depends on its own completion's length only, that is
    ``c Cov(right, S w)`` with ``c = E[A | right] - E[A | wrong]``: 0 if being right has nothing
    to do with the branch and the length. Derived here; that 1/length makes wrong answers
    longer is the claim of Dr. GRPO (arXiv 2503.20783), true if the policy can tell them.
    """
    prompts, G = checked_number("prompts", prompts, PROMPTS), checked_number("G", G, GROUP)
    conventions = made_up(conventions)
    form = CLOSED_FORMS.get(conventions["aggregation"].variant)
    if form is None or first_chosen(conventions, BEYOND_GROUP + _OTHERWISE):
        return None
    right, wrong = by_count(G, conventions)
    judged = np.stack([wrong[:-1], right[1:]])  # by the number of right answers among the others
    options = conventions["aggregation"].options
    credit = form(world, judged, prompts * G, options)  # (2, M): wrong, right
    earned = world.right * credit[1] + (1 - world.right) * credit[0]  # (B, M)
    gross = world.right * np.abs(credit[1]) + (1 - world.right) * np.abs(credit[0])
    update, size = (
        world.per_logit(np.einsum("bl,blj->bj", world.chances * part, by_position), shared)
        for part, by_position in ((earned, world.scores), (gross, np.abs(world.scores)))
    )
    return _above_rounding(update, size)


def _above_rounding(total, size):
    """A sum, 0 where rounding of parts that are together of this size could have made it."""
    return np.where(np.abs(total) > _ROUNDING * size, total, 0.0)


def pull(world, update):
    """What an update does to lengths and to the success rate, see `Pull`.

    Parameters
    ----------
    world : StopWorld
    update : ndarray, shape (B,) or (B, M)
        As `expected_update` gives it.
    """
    found = slopes(world, shared=update.ndim == 1)

    def along(slope):
        moved = slope * update
        return float(_above_rounding(np.sum(moved), np.sum(np.abs(moved))))

    return Pull(
        update=update,
        change=along(found.by_length),
        change_right=along(found.by_right_length),
        change_wrong=along(found.by_wrong_length),
        change_rate=along(found.by_rate),
    )


def _expected_advantage(world, judged):
    """E[A | wrong], E[A | right]; shape (2,)."""
    return judged @ binomial(judged.shape[1] - 1, world.rate)


def _by_completion(world, judged, completions, options):
    return _expected_advantage(world, judged)[:, None] / world.lengths


def _by_constant(world, judged, completions, options):
    width = options["length"] or world.lengths[-1]
    return np.repeat(_expected_advantage(world, judged)[:, None] / width, world.lengths[-1], axis=1)


def _by_all_tokens(world, judged, completions, options):
    """``n E[A / (l + lengths of the others)]`` by the own outcome and length l.

    Given j right answers among the G - 1 others of the group, their lengths and those of the
    other groups are independent, so the distribution of the sum is a convolution.
    """
    G, M = judged.shape[1], world.lengths[-1]
    rate, chances = world.rate, world.chances
    size = completions * M + 1
    if size * G > _CELLS:
        raise ScenarioError(
            f"{completions} answers of up to {M} tokens are too many to sum over exactly; wanted "
            "fewer prompts, a smaller group or shorter answers",
            field="prompts",
        )
    right, wrong = (
        np.sum(chances * among, axis=0) / mass if mass else np.zeros(M)
        for among, mass in ((world.right, rate), (1 - world.right, 1 - rate))
    )
    turned = [_transform(pmf, size) for pmf in (wrong, right, np.sum(chances, axis=0))]
    j = np.arange(G)[:, None]
    sums = turned[1] ** j * turned[0] ** (G - 1 - j) * turned[2] ** (completions - G)
    credit = np.fft.irfft((judged * binomial(G - 1, rate)) @ sums, size, axis=1)
    by_total = credit[:, : size - M]  # (2, total length of the others)
    inverse = 1.0 / np.arange(1, size)
    return completions * np.stack([np.correlate(inverse, row, "valid") for row in by_total])


def _transform(pmf, size):
    """Of the distribution of a length from 1 to M, laid out from 0."""
    return np.fft.rfft(np.concatenate([[0.0], pmf]), size)


CLOSED_FORMS: MappingProxyType[str, Callable] = MappingProxyType(
    {
        "completion_mean": _by_completion,
        "token_mean": _by_all_tokens,
        "constant": _by_constant,
    }
)
