"""RULES: how a trainer may have made its logged advantages of the rewards, one row each.

A row names the choices of the stages *rewards* and *advantage* that it stands for, and judges a
whole run with the functions of those stages. A row about a batch judges each step on its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ..advantage_rows import (
    centred,
    leave_one_out,
    leave_one_out_std,
    over_batch_std,
    over_mean,
    over_std,
    uncompared,
)
from ..combination import BATCH_SCALES
from ..numerics import times, total
from ..variants import table


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One way from reward terms to advantages.

    ``normaliser(eps)`` judges scores (Q, G) against their group. ``order`` is the row of the
    stage *rewards*; with ``batch`` the result is normalised once more over a step's completions.
    ``by_step`` says that a step is judged as a whole, ``eps`` that there is one to be found.
    ``power`` tells what a common factor of all weights does: 0 nothing but to eps, so that
    advantages fix the ratio of the weights only; 1 the advantages grow with it.
    ``shared`` is what one divisor holds for, a ``'group'`` or a ``'step'``: there advantages are
    in proportion to a weighted sum. ``'none'`` where each completion has a divisor of its own.
    """

    key: str
    label: str
    normaliser: Callable
    variant: str
    options: Mapping = field(default_factory=dict)
    order: str = "sum_then_normalize"
    by_step: bool = False
    eps: bool = False
    batch: bool = False
    power: int = 0
    shared: str = "group"


def _std(ddof):
    return lambda eps: over_std(ddof, eps)


def _batch(ddof):
    return lambda eps: over_batch_std(ddof, eps)


_APART = "normalize_then_sum"

RULES = table(
    Rule(
        key="group_sample",
        label="summed, minus the group's mean, over its sample standard deviation",
        normaliser=_std(1),
        variant="mean_std",
        options={"ddof": 1},
        eps=True,
    ),
    Rule(
        key="group_population",
        label="summed, minus the group's mean, over its population standard deviation",
        normaliser=_std(0),
        variant="mean_std",
        options={"ddof": 0},
        eps=True,
    ),
    Rule(
        key="mean_only",
        label="summed, minus the group's mean, not divided",
        normaliser=lambda eps: centred(),
        variant="mean_only",
        power=1,
    ),
    Rule(
        key="batch_sample",
        label="summed, minus the group's mean, over the batch's sample standard deviation",
        normaliser=_batch(1),
        variant="batch_std",
        options={"ddof": 1},
        by_step=True,
        eps=True,
        shared="step",
    ),
    Rule(
        key="batch_population",
        label="summed, minus the group's mean, over the batch's population standard deviation",
        normaliser=_batch(0),
        variant="batch_std",
        options={"ddof": 0},
        by_step=True,
        eps=True,
        shared="step",
    ),
    Rule(
        key="leave_one_out",
        label="summed, minus the mean of the others",
        normaliser=lambda eps: leave_one_out(),
        variant="leave_one_out",
        power=1,
    ),
    Rule(
        key="leave_one_out_std",
        label="summed, minus the mean of the others, over their standard deviation",
        normaliser=leave_one_out_std,
        variant="leave_one_out_std",
        eps=True,
        shared="none",
    ),
    Rule(
        key="over_mean",
        label="summed, minus the group's mean, over that mean",
        normaliser=over_mean,
        variant="over_mean",
        eps=True,
    ),
    Rule(
        key="uncompared",
        label="the summed reward itself",
        normaliser=lambda eps: uncompared,
        variant="uncompared",
        power=1,
    ),
    Rule(
        key="apart_sample",
        label="each term over its own sample standard deviation, then summed",
        normaliser=_std(1),
        variant="mean_std",
        options={"ddof": 1},
        order=_APART,
        eps=True,
        power=1,
    ),
    Rule(
        key="apart_population",
        label="each term over its own population standard deviation, then summed",
        normaliser=_std(0),
        variant="mean_std",
        options={"ddof": 0},
        order=_APART,
        eps=True,
        power=1,
    ),
    Rule(
        key="apart_batch",
        label="each term over its own sample standard deviation, summed, then normalised over "
        "the batch",
        normaliser=_std(1),
        variant="mean_std",
        options={"ddof": 1},
        order=_APART,
        by_step=True,
        eps=True,
        batch=True,
        shared="step",
    ),
)


def of_terms(run, rule, eps):
    """Each term judged on its own, (K, Q, G): 0 where a term gave no score."""
    known = run.known
    normalise = rule.normaliser(eps)
    values = np.where(known, run.terms, 0.0)
    return np.stack(
        [normalise(values[..., k], known[..., k]).advantages for k in range(len(run.names))]
    )


def parts_of(run, rule, weights, eps):
    """What each term adds to what a group is compared by, (Q, G, K); 0 where it gave no score.

    Weighted rewards, or where terms are judged apart their weighted advantages.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if rule is not None and rule.order == _APART:
        return times(weights, np.moveaxis(of_terms(run, rule, eps), 0, -1))
    return times(weights, np.where(run.known, run.terms, 0.0))


def judge(run, rule, weights, eps):
    """Advantages (Q, G) of a run under a rule; 0 where nothing scored a completion.

    Parameters
    ----------
    run : Run
    rule : Rule
    weights : ndarray, (K,)
    eps : float
        Added to what is divided by, and to the std of the batch.
    """
    known = run.known
    scored = np.any(known, axis=-1)
    if rule.order == _APART:
        judged = of_terms(run, rule, eps)
        summed = total(times(np.asarray(weights)[:, None, None], judged), axis=0)
        if not rule.batch:
            return np.where(scored, summed, 0.0)
        return _by_step(run, lambda at: _over_batch(summed[at], scored[at], eps))
    scores = total(np.where(known, run.terms, 0.0) * weights, axis=-1)
    normalise = rule.normaliser(eps)
    if not rule.by_step:
        return normalise(scores, scored).advantages
    return _by_step(run, lambda at: normalise(scores[at], scored[at]).advantages)


def _over_batch(values, scored, eps):
    middle, factor = BATCH_SCALES["completion"](values, scored, None, eps)
    return np.where(scored, times(factor, values - middle(np.where(scored, values, 0.0))), 0.0)


def _by_step(run, of_groups):
    """One step after another: what is divided by belongs to the step."""
    edges = np.nonzero(np.diff(run.steps))[0] + 1
    starts = np.concatenate([[0], edges, [len(run.steps)]])
    return np.concatenate([of_groups(slice(a, b)) for a, b in pairwise(starts)])
