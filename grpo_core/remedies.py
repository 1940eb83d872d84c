"""REMEDIES: what can be done about silent groups, each applied to the same batch of rewards."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .attribution import spread_shares
from .dynamic_sampling import next_mixed_groups
from .errors import ScenarioError
from .inputs import checked_number
from .prompt_rewards import Prompts, checked_rewards
from .scales import chosen_scale
from .simulation import SEED
from .variants import Number, table

_WEIGHT = Number(low=-1e6, high=1e6)


@dataclass(frozen=True, eq=False, kw_only=True)
class Situation:
    """What a remedy may use beside the rewards.

    Attributes
    ----------
    scale : str
        Row of `SCALES` that the batch itself is judged by, where a remedy leaves it alone.
    options : mapping
        ``ddof`` and ``eps`` of whatever std is divided by; defaults where left out.
    bonus : ndarray, (P, G), or None
        Value of a shaping term for each completion.
    bonus_weight : float
        What it is multiplied by before it is added to the reward.
    prompts : Prompts or None
        Where further groups come from.
    seed : int
    """

    scale: str = "group"
    options: dict = field(default_factory=dict)
    bonus: np.ndarray | None = None
    bonus_weight: float = 0.1
    prompts: Prompts | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Remedied:
    """A batch of N groups after a remedy; N is P unless nothing else is said.

    Attributes
    ----------
    rewards, advantages : ndarray, (N, G)
        Rewards as judged, bonus included.
    silent : ndarray of bool, (N,)
        Groups whose advantages are all 0.
    factor : ndarray, (N,)
        What each completion counts in the mean over completions, against the plain batch:
        0 for what was left out, more than 1 for what is left.
    fresh : ndarray of int, (N,)
        -1 for a group of the batch, else the position of the prompt it was drawn for.
    generated : float
        Groups generated for this batch; infinite if waiting for mixed groups has no end.
    bonus_share : ndarray, (N,)
        Share of the group's spread that comes from the bonus, ``cov(w bonus, total) /
        var(total)``: 1 where the bonus alone decides, negative where it works against the
        rest. 0 in a silent group.
    """

    rewards: np.ndarray
    advantages: np.ndarray
    silent: np.ndarray
    factor: np.ndarray
    fresh: np.ndarray
    generated: float
    bonus_share: np.ndarray

    @property
    def teaching(self):
        """Groups with an advantage other than 0, of those that count."""
        return int(np.sum(~self.silent & (self.factor > 0)))

    @property
    def push(self):
        """Sum of ``factor abs(A)`` of each group, (N,): how hard it pushes in the mean."""
        with np.errstate(over="ignore"):
            return self.factor * np.sum(np.abs(self.advantages), axis=1)

    @property
    def cost(self):
        """Groups generated for each that teaches; infinite if none does."""
        return self.generated / self.teaching if self.teaching else np.inf


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """One remedy. ``function`` takes rewards (P, G) and a `Situation` to `Remedied`.

    ``needs`` names fields of the situation that must not be None; ``does`` and ``price``
    are sentences for the reader.
    """

    key: str
    label: str
    function: Callable
    does: str
    price: str
    needs: tuple[str, ...] = ()
    trl: str
    verl: str


def remedied(rewards, remedy, situation=None):
    """A batch of rewards under a row of `REMEDIES`.

    Parameters
    ----------
    rewards : array-like, shape (P, G)
        NaN is a missing score.
    remedy : str
    situation : Situation, optional

    Returns
    -------
    Remedied

    Raises
    ------
    ScenarioError
        Unknown remedy, bad rewards, or a situation without what the remedy needs.
    """
    if remedy not in REMEDIES:
        raise ScenarioError(
            f"unknown remedy {remedy!r}; choose one of {', '.join(REMEDIES)}", field="remedy"
        )
    situation = situation or Situation()
    for name in REMEDIES[remedy].needs:
        if getattr(situation, name) is None:
            raise ScenarioError(f"{remedy} needs {name}; there is none", field=name)
    return REMEDIES[remedy].function(checked_rewards(rewards), situation)


def _result(rewards, advantages, **changed):
    size = len(rewards)
    given = {
        "factor": np.ones(size),
        "fresh": np.full(size, -1),
        "generated": float(size),
        "bonus_share": np.zeros(size),
    }
    silent = ~np.any(advantages != 0, axis=1)
    return Remedied(rewards=rewards, advantages=advantages, silent=silent, **{**given, **changed})


def _scaled(rewards, scale, situation):
    row, _ = chosen_scale(scale, {})
    known = {option.key for option in row.options}
    given = {key: value for key, value in situation.options.items() if key in known}
    row, options = chosen_scale(scale, given)
    return row.function(rewards[None], **options)[0]


def as_it_is(rewards, situation):
    """Nothing done: the batch by its own scale."""
    return _result(rewards, _scaled(rewards, situation.scale, situation))


def filtered(rewards, situation):
    """Tied groups left out of the mean; what is left counts for them, too."""
    plain = as_it_is(rewards, situation)
    kept = ~plain.silent
    factor = kept * (len(rewards) / max(int(np.sum(kept)), 1))
    return _result(rewards, plain.advantages, factor=factor)


def over_the_batch(rewards, situation):
    """Group mean, std of the batch: a tied group stays silent."""
    return _result(rewards, _scaled(rewards, "batch", situation))


def left_one_out(rewards, situation):
    """Mean of the others, no std: a tied group stays silent."""
    return _result(rewards, _scaled(rewards, "leave_one_out", situation))


def shaped(rewards, situation):
    """A small bonus added before the batch's own scale.

    In a group with tied rewards mean and std are both linear in the weight w, so with the std
    of the group ``A = (b - mean b) / (std b + eps/w)``: for every w well above eps the bonus
    alone is trained, at full size, whatever w. Undivided it is ``w (b - mean b)``. In a mixed
    group it is one part of the spread.
    """
    bonus = _checked_bonus(situation, rewards.shape)
    weight = checked_number("bonus_weight", situation.bonus_weight, _WEIGHT)
    scored = ~np.isnan(rewards)
    part = weight * bonus
    total = rewards + part
    _, share = spread_shares(np.stack([np.where(scored, rewards, 0.0), part]), scored)
    return _result(total, _scaled(total, situation.scale, situation), bonus_share=share)


def _checked_bonus(situation, shape):
    bonus = checked_rewards(situation.bonus)
    if bonus.shape != shape:
        raise ScenarioError(
            f"bonus has shape {bonus.shape}; expected {shape} like rewards", field="bonus"
        )
    return np.where(np.isnan(bonus), 0.0, bonus)


def refilled(rewards, situation):
    """Silent groups thrown away and replaced by the next mixed ones drawn from `prompts`."""
    places = np.flatnonzero(as_it_is(rewards, situation).silent)
    rng = np.random.default_rng(checked_number("seed", situation.seed, SEED))
    drawn, which, generated = next_mixed_groups(
        situation.prompts, rewards.shape[1], len(places), rng
    )
    full, fresh, factor = rewards.copy(), np.full(len(rewards), -1), np.ones(len(rewards))
    found, lacking = places[: len(drawn)], places[len(drawn) :]
    full[found], fresh[found], factor[lacking] = drawn, which, 0.0
    return _result(
        full,
        _scaled(full, situation.scale, situation),
        fresh=fresh,
        factor=factor,
        generated=len(rewards) + generated,
    )


REMEDIES = table(
    Remedy(
        key="nothing",
        label="Nothing",
        function=as_it_is,
        does="Tied groups have advantage 0 and still count in the mean.",
        price="The step is smaller by the share of tied groups, and varies with it.",
        trl="the default",
        verl="the default",
    ),
    Remedy(
        key="filter",
        label="Filter them out",
        function=filtered,
        does="Tied groups leave the mean, so the others count more. The direction is the same.",
        price="They were generated all the same, and the batch is smaller and noisier.",
        trl="not offered",
        verl="not offered without refilling",
    ),
    Remedy(
        key="refill",
        label="Dynamic sampling",
        function=refilled,
        does="Tied groups are replaced by mixed ones, so every group of the batch teaches.",
        price="More groups are generated, and very hard and very easy prompts become rare.",
        needs=("prompts",),
        trl="not offered",
        verl="algorithm.filter_groups.enable=True",
    ),
    Remedy(
        key="batch",
        label="Std of the batch",
        function=over_the_batch,
        does="Mixed groups with a small spread are not blown up. Tied groups stay silent.",
        price="The size of one prompt's advantages depends on the rest of the batch.",
        trl='scale_rewards="batch"',
        verl="not offered for grpo",
    ),
    Remedy(
        key="leave_one_out",
        label="Leave one out",
        function=left_one_out,
        does="No division at all. Tied groups stay silent.",
        price="Advantages have the unit of the reward, so the learning rate depends on it.",
        trl="RLOOTrainer",
        verl="adv_estimator=rloo",
    ),
    Remedy(
        key="shape",
        label="A small bonus",
        function=shaped,
        does="Ties are broken by the bonus: those groups now train the bonus and nothing "
        "else. Over the std of the group they do so at full size, however small its weight.",
        price="Where the task is tied the policy learns what the bonus pays for.",
        needs=("bonus",),
        trl="a further reward function with its reward_weights entry",
        verl="added in the reward function",
    ),
)
