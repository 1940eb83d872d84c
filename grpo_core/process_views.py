"""What a page shows of process rewards: steps laid over tokens, and the outcome beside them."""

from dataclasses import dataclass, replace

import numpy as np

from .evaluation import Evaluation, evaluate
from .numerics import difference
from .step_credit import CreditChanges, credit_changes

_FIRST_STEPS = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared:
    """Process rewards and the outcome reward alone, over the same tokens.

    ``outcome`` is evaluated with the same standard deviation and eps, ``difference`` is the
    present evaluation with process less outcome in place of its token advantages.
    """

    process: Evaluation
    outcome: Evaluation
    difference: Evaluation
    changes: CreditChanges


def judged_by_steps(scenario):
    """The scenario under process supervision; the same object if it is already.

    One without steps gets some to start from: up to three equal parts of each completion's
    tokens, the last worth the completion's reward (0 if missing), the others worth 1.
    """
    stepped = scenario if "step_ends" in scenario else scenario.replace(**_first_steps(scenario))
    if stepped.conventions["advantage"].variant == "process":
        return stepped
    present = stepped.conventions["advantage"].options
    kept = {key: present[key] for key in ("ddof", "eps") if key in present}
    return stepped.choose("advantage", "process", **kept)


def _first_steps(scenario):
    valid = scenario.valid
    lengths = np.sum(valid, axis=-1, keepdims=True)  # (P, G, 1)
    count = np.minimum(lengths, _FIRST_STEPS)
    step = np.arange(max(int(count.max()), 1))  # no column that nobody needs
    there = step < count
    # The token of each completion with which its share of the tokens is complete.
    rank = np.ceil((step + 1) * lengths / np.maximum(count, 1)) - 1
    order = np.argsort(~valid, axis=-1, kind="stable")  # positions of valid tokens first
    at = np.take_along_axis(order, np.where(there, rank, 0).astype(np.intp), axis=-1)
    outcome = np.nan_to_num(scenario["rewards"], nan=0.0)[..., None]
    rewards = np.where(step == count - 1, outcome, 1.0)
    return {
        "step_ends": np.where(there, at, np.nan),
        "step_rewards": np.where(there, rewards, np.nan),
    }


def has_steps(scenario):
    """True if a scenario holds at least one step."""
    return "step_ends" in scenario and bool(np.any(~np.isnan(scenario["step_ends"])))


def token_steps(scenario):
    """Index of the step that each token belongs to, (P, G, L); -1 where there is none.

    A token belongs to the first step that ends at or after it.
    """
    valid = scenario.valid
    if not has_steps(scenario):
        return np.full(valid.shape, -1)
    ends = np.where(scenario["present"][..., None], scenario["step_ends"], np.nan)
    positions = np.arange(valid.shape[-1])
    reaches = ends[..., None] >= positions  # (P, G, S, L); False for NaN
    first = np.argmax(reaches, axis=2)
    return np.where(valid & np.any(reaches, axis=2), first, -1)


def token_step_rewards(scenario):
    """Reward of the step that each token belongs to, (P, G, L); NaN where there is none."""
    steps = token_steps(scenario)
    if not has_steps(scenario):
        return np.full(steps.shape, np.nan)
    rewards = np.take_along_axis(scenario["step_rewards"], np.maximum(steps, 0), axis=-1)
    return np.where(steps >= 0, rewards, np.nan)


def against_outcome(evaluation):
    """Process rewards beside the outcome reward alone; see `Compared`."""
    options = evaluation.scenario.conventions["advantage"].options
    kept = {key: options[key] for key in ("ddof", "eps") if key in options}
    outcome = evaluate(evaluation.scenario.choose("advantage", "mean_std", **kept))
    changed = difference(evaluation.token_advantages, outcome.token_advantages)
    return Compared(
        process=evaluation,
        outcome=outcome,
        difference=replace(evaluation, token_advantages=changed),
        changes=credit_changes(
            evaluation.token_advantages, outcome.token_advantages, evaluation.valid
        ),
    )
