"""CREDIT_RULES: other ways from step rewards to token advantages, to compare with the sum.

``step_rewards`` and ``step_ends`` (P, G, S) are checked already, and NaN where there is no step,
in absent completions too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from .group_statistics import group_statistics, standardised
from .process import step_advantages
from .step_edits import pack
from .variants import table


def _stepwise(to_go, step_rewards, step_ends, valid, *, ddof=0, eps=1e-8):
    """Pool and normalise, then give each token what `to_go` makes of the steps from it on."""
    ends, rewards = pack(step_ends, step_rewards)
    there = ~np.isnan(ends)
    z, _ = step_advantages(rewards, ends, valid, ddof=ddof, eps=eps, over="group")
    per_step = np.where(there, to_go(z, there), 0.0)
    ending = np.zeros(valid.shape, dtype=np.intp)
    p, g, s = np.nonzero(there)
    np.add.at(ending, (p, g, ends[p, g, s].astype(np.intp)), 1)
    over = np.cumsum(ending, axis=-1) - ending  # steps before the token: the next one's index
    per_step = np.concatenate([per_step, np.zeros((*there.shape[:2], 1))], axis=-1)
    return np.where(valid, np.take_along_axis(per_step, over, axis=-1), 0.0)


def _backwards(accumulate, values):
    return np.flip(accumulate(np.flip(values, axis=-1), axis=-1), axis=-1)


def _sum_to_go(z, there):
    return _backwards(np.cumsum, z)


def _mean_to_go(z, there):
    return _sum_to_go(z, there) / np.maximum(_backwards(np.cumsum, there), 1)


def _minimum_to_go(z, there):
    return _backwards(np.minimum.accumulate, np.where(there, z, np.inf))


def _completion_mean(step_rewards, step_ends, valid, *, ddof=0, eps=1e-8):
    """Mean step reward of each completion, then normalised like an outcome reward."""
    n = np.sum(~np.isnan(step_ends), axis=-1)
    means = np.nansum(step_rewards / np.maximum(n, 1)[..., None], axis=-1)
    advantages = standardised(group_statistics(means, n > 0, ddof), eps)
    return np.where(valid, advantages[..., None], 0.0)


@dataclass(frozen=True, kw_only=True)
class CreditRule:
    """One way from step rewards to token advantages (P, G, L), for comparison.

    ``function(step_rewards, step_ends, valid, *, ddof=0, eps=1e-8)``; ``formula`` is LaTeX
    over the steps m that end at or after token t; ``effect`` says what it does to gaming.
    """

    key: str
    label: str
    function: Callable
    formula: str
    source: str
    effect: str


CREDIT_RULES = table(
    CreditRule(
        key="sum",
        label="sum of the steps to go",
        function=partial(_stepwise, _sum_to_go),
        formula=r"A_t = \sum_m z_m",
        source="DeepSeekMath (arXiv 2402.03300) section 4.1.3",
        effect="Grows with the number of steps that are better than the group's mean.",
    ),
    CreditRule(
        key="mean",
        label="mean of the steps to go",
        function=partial(_stepwise, _mean_to_go),
        formula=r"A_t = \operatorname{mean}_m z_m",
        source="the sum, divided by the number of its terms",
        effect="Does not grow with the number of steps; easy steps still lift the mean.",
    ),
    CreditRule(
        key="minimum",
        label="smallest of the steps to go",
        function=partial(_stepwise, _minimum_to_go),
        formula=r"A_t = \min_m z_m",
        source="the minimum form of PURE, here of normalised rewards",
        effect="An easy step cannot lift what stands before it; its own tokens still get its own.",
    ),
    CreditRule(
        key="completion_mean",
        label="mean of each completion, then normalised",
        function=_completion_mean,
        formula=r"A = \frac{\bar r_i - \operatorname{mean}(\bar r)}"
        r"{\operatorname{std}(\bar r) + \mathrm{eps}}",
        source="an outcome reward made of the steps",
        effect="All tokens get the same; easy steps raise the mean, up to the largest reward.",
    ),
)
