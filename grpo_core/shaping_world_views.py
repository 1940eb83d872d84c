"""What a page shows of the two small worlds: the bandit with a bonus, the task with a potential."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .shaping_potential import CREDITS, Potential, TwoSteps, prompt_weights, two_step_gradients
from .shaping_worlds import Bandit, bandit_update, follow_update, update_flip

ARM_RATES = (0.3, 0.1)
POTENTIAL = (0.0, 0.5, 0.0)
_LARGEST = 8  # groups are enumerated up to this size
_START = 0.5
_STEPS, _RATE = 200, 1.0
_SAME = 1e-9  # of the larger of two gradients
_WEIGHTS = np.geomspace(1e-8, 1.0, 161)
_WEIGHTS.setflags(write=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class BanditView:
    """The bandit at one weight of B's bonus, and against all of them.

    ``reward_gap`` (W,) is the expected reward of A less that of B, ``update`` (W,) GRPO's
    expected gradient by A's logit, from a policy that gives both equally often.
    ``decided`` is the chance of a group that the bonus alone decides, and ``path`` (steps + 1,)
    the policy's chance of A when the expected update is followed at ``weight``. ``divided`` is
    whether advantages are over a std.
    """

    bandit: Bandit
    divided: bool
    weight: float
    weights: np.ndarray
    reward_gap: np.ndarray
    update: np.ndarray
    reward_gap_now: float
    update_now: float
    optimum_flip: float
    update_flip: float
    decided: float
    path: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class PotentialView:
    """Gradients of the two-step task with a potential and without, and weights of prompts.

    ``now`` and ``plain`` map each key of `CREDITS` to the gradient by the logits of both
    tokens, (2,). ``close`` and ``wide`` are the weights of two prompts on the first token,
    whose rewards differ but for a factor of ten. ``kept`` and ``moved`` are the ways of
    giving credit whose gradient the potential leaves alone and those that it changes.
    """

    size: int
    true: float
    now: dict
    plain: dict
    wide: dict
    close: dict
    kept: tuple[str, ...]
    moved: tuple[str, ...]


def world_size(scenario):
    """Completions in a group of the small worlds: as asked for or as the batch has, 2 to 8."""
    asked = scenario["group_size"] if "group_size" in scenario else scenario.sizes["G"]
    return int(min(max(float(asked), 2), _LARGEST))


def bandit_view(scenario, weight, options):
    """The `BanditView` of a scenario's success rates at one weight of the bonus.

    Parameters
    ----------
    scenario : Scenario
    weight : float
        Its size counts.
    options : mapping
        ``scale``, ``ddof`` and ``eps``, as far as there are any.
    """
    a, b = scenario["arm_rates"].tolist() if "arm_rates" in scenario else ARM_RATES
    bandit = Bandit(success_a=float(a), success_b=float(b), size=world_size(scenario))
    return _bandit_view(bandit, abs(float(weight)), tuple(sorted(options.items())))


@lru_cache(maxsize=64)
def _bandit_view(bandit, weight, options):
    options, a, b = dict(options), bandit.success_a, bandit.success_b
    update = bandit_update(bandit, np.append(_WEIGHTS, weight), _START, **options).update[:, 0]
    return BanditView(
        bandit=bandit,
        divided=options.get("scale", "std") == "std",
        weight=weight,
        weights=_WEIGHTS,
        reward_gap=a - b - _WEIGHTS,
        update=update[:-1],
        reward_gap_now=a - b - weight,
        update_now=float(update[-1]),
        optimum_flip=bandit.optimum_flip,
        update_flip=update_flip(bandit, _START, **options),
        decided=float(bandit_update(bandit, [weight], _START, **options).decided[0]),
        path=follow_update(bandit, weight, _START, steps=_STEPS, learning_rate=_RATE, **options),
    )


def potential_of(scenario):
    """Potential of start, middle and end, as the scenario has it or to start from."""
    return scenario["potential"].tolist() if "potential" in scenario else list(POTENTIAL)


def potential_view(scenario, options):
    """The `PotentialView` of a scenario's potential; options as far as ``ddof`` and ``eps``."""
    start, middle, end = potential_of(scenario)
    potential = Potential(start=float(start), middle=float(middle), end=float(end))
    kept = {key: options[key] for key in ("ddof", "eps") if key in options}
    size, world = world_size(scenario), TwoSteps()
    now = two_step_gradients(world, potential, size=size, **kept)
    plain = two_step_gradients(world, size=size, **kept)
    weights = prompt_weights((world, _closer(world)), size=size, **kept)
    same = [key for key in CREDITS if _alike(now[key], plain[key])]
    return PotentialView(
        size=size,
        true=float(world.gradient[0]),
        now=now,
        plain=plain,
        wide={key: float(weights[key][0, 0]) for key in CREDITS},
        close={key: float(weights[key][1, 0]) for key in CREDITS},
        kept=tuple(same),
        moved=tuple(key for key in CREDITS if key not in same),
    )


def _closer(world):
    """The same prompt with rewards that lie ten times closer together."""
    return TwoSteps(
        go_on=world.go_on,
        right=world.right,
        short_reward=world.short_reward / 10,
        wrong_reward=world.wrong_reward / 10,
        right_reward=world.right_reward / 10,
    )


def _alike(one, other):
    return bool(np.allclose(one, other, rtol=_SAME, atol=1e-12))
