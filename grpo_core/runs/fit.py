"""Which convention made the logged advantages: every rule tried, the one that fits best kept.

What advantages cannot tell is said as well: a rule that divides by a standard deviation fixes
only the ratio of the weights, and eps in units of the first. The scale comes from elsewhere,
the logged total reward or the totals of the file.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import ScenarioError
from .precision import precision_of
from .rules import Rule, judge, parts_of
from .run import equal_sums
from .trial import KNOWN_EPS, Tried, error_of, fits_alike, off_by, shortest, tried_rules
from .weights import in_first, scale_of_log, weights_of_log, weights_of_totals

_SUM = "sum_then_normalize"
_NEAR = 0.05  # a known eps this near is the one
TOLERANCE = 1e-3  # of a group that fits; float32 alone makes some 1e-6, another ddof 0.03


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """How a run's advantages come from its rewards.

    Attributes
    ----------
    rule : Rule or None
        None where nothing was logged to compare with, or no rule fits half of the groups.
    weights : ndarray, (K,)
        In units of the first weight unless ``scale`` says where their scale comes from.
    scale : {'advantages', 'log', 'totals', 'given', 'one', 'unknown', 'assumed'}
        'one': there is one term, taken as it is. 'assumed': nothing tells, 1 each.
    fixed : ndarray of bool, (K,)
        Terms whose weight is told by anything.
    ambiguous : bool
        Other weights would do as well: terms move together.
    eps : float
        In the unit of the weights.
    eps_found : bool
        Whether the advantages tell it from 0.
    error : float
        Largest error in the groups that are not tied and fit.
    predicted : ndarray or None, (Q, G)
    off : ndarray, (Q,)
        Largest error of each group; NaN where no advantage was logged.
    parts : ndarray, (Q, G, K)
        What each term adds to what a group is compared by: weighted rewards, or weighted
        advantages where the rule judges terms apart.
    tied : ndarray of bool, (Q,)
        All sums of parts equal, two or more of them.
    misfits : ndarray of int
        Groups that are not tied and do not fit, the worst first.
    residue : float
        Largest advantage logged in a tied group, where 0 would be right.
    tried : tuple of Tried
        All rules, best first.
    alike : tuple of Tried
        Other rules that fit these advantages as well, and are not the same for one term.
    """

    rule: Rule | None
    weights: np.ndarray
    scale: str
    fixed: np.ndarray
    ambiguous: bool
    eps: float
    eps_found: bool
    error: float
    predicted: np.ndarray | None
    off: np.ndarray
    parts: np.ndarray
    tied: np.ndarray
    misfits: np.ndarray
    residue: float
    tried: tuple[Tried, ...]
    alike: tuple[Tried, ...] = ()


def fit(run, log=None, *, weights=None):
    """Find the convention of a run, as far as its files tell.

    Parameters
    ----------
    run : Run
    log : RunLog, optional
    weights : array-like, (K,), optional
        Weights that are known from elsewhere, such as the settings of the run. They are taken
        as they are, whether advantages agree or not.

    Returns
    -------
    Fit
    """
    elsewhere = _elsewhere(run, log) if weights is None else (_given(run, weights), "given")
    if run.advantages is None or not np.any(np.isfinite(run.advantages[run.present])):
        return _unlogged(run, elsewhere)
    tried = tried_rules(run, elsewhere[0], held=weights is not None)
    return _with_rule(run, log, tried, elsewhere) if tried else _unlogged(run, elsewhere)


def _given(run, weights):
    values = np.array(weights, dtype=np.float64)
    if values.shape != (len(run.names),) or not np.all(np.isfinite(values)):
        raise ScenarioError(f"weights: wanted a finite number for each of {run.names}")
    return values


def _elsewhere(run, log):
    """Weights that totals or a log tell, and which of the two; (None, '') if neither."""
    for where, found in (("totals", weights_of_totals(run)), ("log", weights_of_log(run, log))):
        if found is not None:
            return found, where
    return None, ""


def _unlogged(run, elsewhere):
    """Without advantages: the weights from elsewhere, or 1 each."""
    K = len(run.names)
    weights, scale = elsewhere
    if weights is None:
        weights, scale = np.ones(K), "one" if K == 1 else "assumed"
    else:
        weights = shortest(weights, lambda some: np.max(np.abs(some - weights)) <= 1e-4)
    parts = parts_of(run, None, weights, 0.0)
    return Fit(
        rule=None, weights=weights, scale=scale, fixed=np.full(K, scale != "assumed"),
        ambiguous=False, eps=0.0, eps_found=False, error=np.nan, predicted=None,
        off=np.full(len(run.steps), np.nan), tied=equal_sums(run.scored, parts), parts=parts,
        misfits=np.zeros(0, dtype=int), residue=0.0, tried=(),
    )  # fmt: skip


def _with_rule(run, log, tried, elsewhere):
    best = tried[0]
    weights, scale = _scaled(best, run, log, elsewhere)
    known, _ = elsewhere
    fixed = best.fixed.copy()
    if known is not None and scale in ("log", "totals", "given") and not fixed.all():
        weights, fixed = np.where(fixed, weights, known), np.ones_like(fixed)
    unit = _unit(best, weights)
    eps = _known_eps(best.eps * unit, best.eps_doubt * unit)
    if scale != "given":
        weights = shortest(weights, lambda some: _as_good(run, best, some, eps, weights))
    predicted = judge(run, best.rule, weights, eps)
    off = off_by(run, predicted)
    parts = parts_of(run, best.rule, weights, eps)
    tied = equal_sums(run.scored, parts)
    judged = ~np.isnan(off) & ~tied
    largest = np.nan_to_num(run.largest_advantages)
    rounding = precision_of(run.advantages[run.present]).of(largest)
    bad = judged & (off > np.maximum(TOLERANCE * np.maximum(1.0, largest), 1.5 * rounding))
    fits = judged & ~bad
    rule = best.rule if 2 * fits.sum() >= judged.sum() and judged.any() else None
    if rule is None:  # what no rule explains is compared by its rewards
        parts = parts_of(run, None, weights, 0.0)
        tied = equal_sums(run.scored, parts)
    return Fit(
        rule=rule, weights=weights, scale=scale, fixed=fixed, ambiguous=best.ambiguous, eps=eps,
        eps_found=best.eps_told,
        error=_error_of(off, fits if rule else judged, bool(rule)),
        predicted=predicted, off=off, parts=parts, tied=tied,
        misfits=np.nonzero(bad)[0][np.argsort(-off[bad], kind="stable")],
        residue=float(np.max(np.where(tied, largest, 0.0), initial=0.0)), tried=tried,
        alike=_alike(run, tried),
    )  # fmt: skip


def _error_of(off, counts, largest):
    """The largest error of groups that fit, or that of the middle one; NaN without any."""
    if not counts.any():
        return np.nan
    return float(np.max(off[counts]) if largest else np.median(off[counts]))


def _alike(run, tried):
    """Rules beside the best that these advantages cannot be told from."""
    best, *others = tried
    one = len(run.names) == 1
    return tuple(
        each
        for each in others
        # Judged apart or together, a single term is judged the same.
        if fits_alike(each, best.error) and not (one and each.rule.order != _SUM)
    )


def _scaled(best, run, log, elsewhere):
    """Weights at their scale as far as it is told, and what tells it."""
    if elsewhere[1] == "given":
        return elsewhere
    if best.absolute:
        return best.weights, "advantages"
    known, where = elsewhere
    if known is not None and np.any(known[best.fixed]):
        like = in_first(np.where(best.fixed, known, 0.0))
        if np.max(np.abs(like - best.weights)) <= 1e-3:
            at = np.argmax(np.abs(best.weights))
            return best.weights * np.abs(known[at] / best.weights[at]), where
    factor = scale_of_log(run, log, best.weights)
    if factor is not None and factor > 0:
        return best.weights * factor, "log"
    return best.weights, "one" if len(best.weights) == 1 else "unknown"


def _unit(best, weights):
    """What eps is multiplied by with the weights; a term that is judged apart has its own unit."""
    if best.rule.order == "normalize_then_sum":
        return 1.0
    at = np.argmax(np.abs(best.weights))
    return float(np.abs(weights[at] / best.weights[at])) if best.weights[at] else 1.0


def _known_eps(eps, doubt):
    """A value that trainers use, if one is near enough to be meant."""
    off = {known: abs(eps - known) for known in KNOWN_EPS}
    nearest = min(off, key=off.get)
    return nearest if eps and off[nearest] <= max(_NEAR * nearest, doubt) else eps


def _as_good(run, best, some, eps, weights):
    """Whether rounded weights fit about as well as the exact ones."""
    if np.any((some == 0) != (weights == 0)):
        return False
    exact = error_of(run, best.rule, weights, eps)
    return error_of(run, best.rule, some, eps) <= 1.5 * exact + 1e-6
