"""Every rule tried on a run: its weights and its eps found, and how far it is off."""

from dataclasses import dataclass, replace

import numpy as np

from .precision import precision_of
from .rules import RULES, Rule, judge, parts_of
from .run import equal_sums, groups_of
from .weights import weights_of_advantages

KNOWN_EPS = (1e-9, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3)
_FEW, _GROUPS = 300, 2000  # groups that all rules are tried on, and the likely ones again
_LIKELY = 4
_BEST = 0.9  # share of the groups that a rule is ranked by: a few damaged ones do not count
_LARGEST_EPS = 0.05  # of what is divided by; more is no eps but another rule
_BETTER = 0.5  # times the error of every other eps: one that is told
_DIGITS = range(1, 7)
_STEPS = 12
_PASSES = 4  # of finding weights and eps in turn, where neither can be had alone
_SUM = "sum_then_normalize"


@dataclass(frozen=True, eq=False, kw_only=True)
class Tried:
    """One rule on a run.

    ``error`` is the mean, over the 90% of groups that fit best, of a group's largest error.
    ``eps_told`` says whether the advantages tell eps from 0 and from its other usual values,
    ``eps_doubt`` how far off it may be.
    """

    rule: Rule
    weights: np.ndarray
    absolute: bool
    fixed: np.ndarray
    ambiguous: bool
    eps: float
    eps_told: bool
    eps_doubt: float
    error: float


def tried_rules(run, weights=None, *, held=False):
    """All rules that can be tried on a run, the one that fits best first.

    Parameters
    ----------
    run : Run
        With logged advantages.
    weights : ndarray or None, (K,)
        Weights that something else tells; they decide between rules that fit alike.
    held : bool
        Whether every rule is tried with these weights alone.

    Returns
    -------
    tuple of Tried
        Empty where no term differs within a group that has an advantage.
    """
    first = _ranked(_some_steps(run, _FEW), RULES.values(), weights, held)
    # Enough groups to tell rules apart, not to read a weight of a term that seldom differs.
    likely = [each.rule for each in first[:_LIKELY]] or list(RULES.values())
    again = _ranked(_some_steps(run, _GROUPS), likely, weights, held)
    return (*again, *first[_LIKELY:])


def _ranked(run, rules, weights, held):
    # Of two scores one is left when the other is judged: there is no std to divide by.
    pairs = np.all(np.sum(np.any(run.known, axis=-1), axis=1) <= 2)
    rules = [rule for rule in rules if not (pairs and rule.shared == "none")]
    tried = [each for rule in rules if (each := _try(run, rule, weights, held)) is not None]
    return sorted(tried, key=lambda each: _rank(each, tried, weights))


def _some_steps(run, groups):
    """The run itself, or whole steps of it spread evenly, of about as many groups as needed."""
    share = groups / len(run.steps)
    if share >= 1:
        return run
    every = run.every_step
    at = np.unique(np.linspace(0, len(every) - 1, max(int(share * len(every)), 1)).astype(int))
    return groups_of(run, np.isin(run.steps, every[at]))


def _try(run, rule, like, held):
    """A rule with the weights and the eps that suit it best, or with those that are held."""
    tried = []
    for eps in _starts(rule):
        found = weights_of_advantages(run, rule, eps, like)
        if found is None:
            return None
        values, apart = like if held else found.values, rule.shared == "none" and not held
        told, doubt = False, 0.0
        for _ in range(_PASSES if apart else 1):
            values = _refined(run, rule, values, eps) if apart else values
            if rule.eps and rule.order == _SUM:
                eps, doubt = _eps(run, rule, values)
                told = eps > doubt
        loose = found.ambiguous and like is None  # eps is in a unit that nothing tells
        eps = eps if told or loose or not rule.eps or rule.order != _SUM else 0.0
        tried.append(
            Tried(
                rule=rule, weights=values, absolute=found.absolute, fixed=found.fixed,
                ambiguous=found.ambiguous, eps=eps, eps_told=told and not loose,
                eps_doubt=doubt,
                error=error_of(run, rule, values, eps),
            )
        )  # fmt: skip
    best, *others = sorted(tried, key=lambda each: each.error)
    told = all(best.error < _BETTER * other.error for other in others)
    return replace(best, eps_told=told) if others else best


def _starts(rule):
    """Values of eps to begin from; where terms are judged apart, each known one is tried."""
    apart = rule.order != _SUM
    return (0.0, *KNOWN_EPS) if apart and rule.eps else (0.0,)


def _eps(run, rule, weights):
    """Eps by ``1 / A``, which is linear in it, and how far off it may be.

    The median over the completions that tell. It is told if it is above the spread of these
    values, and above what the rounding of the advantages makes of a divisor of that size; an
    eps that is no small part of the divisor would be another rule.
    """
    without, one = (judge(run, rule, weights, eps) for eps in (0.0, 1.0))
    logged = np.where(run.present, np.nan_to_num(run.advantages), 0.0)
    tells = (np.abs(logged) > 0.05) & (without != 0) & (one != 0) & (without != one)
    if not tells.any():
        return 0.0, 0.0
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        inverse = 1 / one[tells] - 1 / without[tells]  # of the deviation
        found = (1 / logged[tells] - 1 / without[tells]) / inverse
        divisor = np.abs(1 / (inverse * without[tells]))
    middle, size = float(np.median(found)), float(np.median(divisor))
    rounding = precision_of(logged[tells]).of(1.0)
    doubt = max(3 * float(np.median(np.abs(found - middle))), rounding * size)
    middle = middle if 0 < middle < _LARGEST_EPS * size else 0.0
    return middle, doubt


def error_of(run, rule, weights, eps):
    """Mean of the largest error of a group, over the best of those that are not tied."""
    off = off_by(run, judge(run, rule, weights, eps))
    counts = ~np.isnan(off) & ~equal_sums(run.scored, parts_of(run, rule, weights, eps))
    if not counts.any():
        return np.inf
    ordered = np.sort(off[counts])
    return float(np.mean(ordered[: max(int(_BEST * len(ordered)), 1)]))


def off_by(run, predicted):
    """Largest error of each group, (Q,); NaN where no advantage was logged."""
    known = run.present & np.isfinite(run.advantages)
    off = np.where(known, np.abs(predicted - np.where(known, run.advantages, 0.0)), -1.0)
    return np.where(known.any(axis=1), np.max(off, axis=1), np.nan)


def _refined(run, rule, weights, eps):
    """Weights nearer to the minimum, by Gauss-Newton steps; what is far off does not count."""
    known = run.present & np.isfinite(run.advantages)
    wanted = np.where(known, run.advantages, 0.0)[known]

    def left(values):
        return wanted - judge(run, rule, values, eps)[known]

    free = np.nonzero(weights)[0][1:]
    best = weights
    for _ in range(_STEPS if free.size else 0):
        now = left(best)
        near = np.abs(now) <= 10 * np.median(np.abs(now)) + 1e-9
        steps = 1e-5 * np.maximum(np.abs(best[free]), 1e-3)
        sides = [
            left(best + step * np.eye(len(best))[k]) for k, step in zip(free, steps, strict=True)
        ]
        slopes = np.stack([now - side for side in sides], axis=1) / steps
        moved = best.copy()
        moved[free] += np.linalg.lstsq(slopes[near], now[near], rcond=None)[0]
        if not np.median(np.abs(left(moved))) < np.median(np.abs(now)):
            break
        best = moved
    return best


def fits_alike(each, best):
    """Whether a rule fits about as well as the best one."""
    return each.error <= 2 * best + 1e-6


def _rank(each, tried, weights):
    """Fits alike go by what the totals say, then by how round the weights are."""
    least = min(one.error for one in tried)
    if not fits_alike(each, least):
        return (1, each.error)
    disagrees = 0.0
    if each.absolute and weights is not None:
        disagrees = round(float(np.max(np.abs(each.weights - weights)[each.fixed])), 3)
    digits = _digits(each.weights) if each.absolute else 0
    return (0, disagrees, digits, each.ambiguous)


def _digits(weights):
    """How many digits it takes to write the weights to 5e-4, which advantages always tell."""
    scale = np.max(np.abs(weights))
    return next(
        (n for n in _DIGITS if np.max(np.abs(rounded(weights, n) - weights)) <= 5e-4 * scale),
        len(_DIGITS) + 1,
    )


def rounded(values, digits):
    """Each value to a number of significant digits."""
    return np.array([float(f"{value:.{digits}g}") for value in values])


def shortest(values, good):
    """The values in the fewest digits that are still good."""
    for digits in _DIGITS:
        if good(some := rounded(values, digits)):
            return some
    return values
