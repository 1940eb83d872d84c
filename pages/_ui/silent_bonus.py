"""The bonus that may break ties on the page about silent groups: its values and its weight."""

from dataclasses import dataclass

import numpy as np

from grpo_core import ARRAYS
from grpo_core.silent import tied_groups

from .numbers import number
from .rate_tables import batch_rewards


@dataclass(frozen=True, eq=False, kw_only=True)
class Bonus:
    """Values (P, G) that may break ties, their name and weight; ``own`` if a term's."""

    values: np.ndarray
    name: str
    weight: float
    own: bool = False


def bonus_of(evaluation):
    """The `Bonus` that may break ties.

    The example's own first term, or brevity, 1 less the length as a share of the longest
    completion's, or confidence: whichever comes first and differs within a tied group. The
    latter two have the weight that the example holds for them.
    """
    lengths = evaluation.lengths
    brevity = 1 - lengths / max(int(np.max(lengths)), 1)
    logp = np.sum(np.where(evaluation.valid, evaluation.logp_new, 0.0), axis=2)
    confidence = np.where(lengths > 0, np.exp(logp / np.maximum(lengths, 1)), 0.0)
    weight = bonus_weight(evaluation.scenario)
    offered = [
        Bonus(values=values, name=name, weight=weight)
        for values, name in (
            (brevity, "brevity, 1 − length/longest"),
            (confidence, "confidence, the geometric mean of its tokens' probabilities"),
        )
    ]
    shaped = evaluation.attribution
    if shaped is not None and len(shaped.values) > 1:
        name, own = f"the term '{shaped.names[1]}'", float(shaped.weights[1])
        offered.insert(0, Bonus(values=shaped.values[1], name=name, weight=own, own=True))
    rewards = batch_rewards(evaluation.scenario)
    tied, scored = tied_groups(rewards), ~np.isnan(rewards)
    for bonus in offered:
        low = np.min(np.where(scored, bonus.values, np.inf), axis=1)
        if np.any(tied & (np.max(np.where(scored, bonus.values, -np.inf), axis=1) > low)):
            return bonus
    return offered[0]


def bonus_weight(scenario):
    """Weight of a bonus that is no term of the example."""
    return float(scenario.arrays.get("bonus_weight", ARRAYS["bonus_weight"].default))


def bonus_note(bonus):
    """Where the weight of the bonus is to be changed, if not beside the picture."""
    if not bonus.own:
        return ""
    return f"Its weight is that of {bonus.name}, {number(bonus.weight)}; change it under Shaping."
