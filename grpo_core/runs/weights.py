"""What advantages say of the weights of reward terms, and what totals and a log say.

Where all completions of a group share one divisor s, ``s A = D w`` with D the deviations of the
terms (one column a term). The part of D w that is not along A vanishes for the right w, whatever
s is: w is the direction of least ``sum |D w - A (A . D w) / (A . A)|^2``, the eigenvector of the
least eigenvalue of a K x K matrix. Divisor, ddof and eps drop out, so that the ratio of the
weights is found before any of them is known.
"""

from dataclasses import dataclass

import numpy as np

from ..numerics import total
from .by_step import BySteps
from .rules import RULES, judge, of_terms

_ALIKE = 1e-9  # an eigenvalue below this, of a sum of 1, is 0
_NOTHING = 1e-6  # of the part of the largest term; what is less is no weight but rounding
_TURNS, _HEAD_START = 5000, 5.0  # of the perceptron: turns, and the size that it starts with
_ROUNDS = 3  # of leaving out groups that do not fit
_OUTLIER = 20.0  # times the median of what does not fit
_MOST = 0.8  # of the groups has to fit for the others to be left out


@dataclass(frozen=True, eq=False, kw_only=True)
class Weights:
    """Weights of the K terms, and what is known of them.

    ``values`` (K,) are in units of the first weight unless ``absolute``. ``fixed`` (K,) is
    False for a term that never differs within a group: no advantage tells its weight, and 0
    stands for it. ``ambiguous`` says that terms move together, so that other weights would do
    as well.
    """

    values: np.ndarray
    fixed: np.ndarray
    absolute: bool
    ambiguous: bool = False


def weights_of_advantages(run, rule, eps=0.0, like=None):
    """Weights under which a rule comes nearest to the logged advantages.

    Where several would do, those nearest to ``like`` (K,), or to 1 each. In groups of two all
    would do that order the two alike: their advantages are one number and its opposite.

    Returns
    -------
    Weights or None
        None where no term differs within a group that has an advantage.
    """
    features = _features(run, rule, eps)
    logged = np.where(run.present & ~np.isnan(run.advantages), run.advantages, 0.0)
    size = np.sqrt(np.sum(np.square(features), axis=(0, 1)))
    fixed = size > 0
    if not fixed.any() or not logged.any():
        return None
    unit = features[..., fixed] / size[fixed]
    start = (np.ones(len(size)) if like is None else np.asarray(like)) * size
    find = _least_squares if rule.power else _direction
    found, ambiguous = find(run, rule, unit, logged, start[fixed])
    values = np.zeros(len(size))
    found = np.where(np.abs(found) > _NOTHING * np.max(np.abs(found)), found, 0.0)
    values[fixed] = found / size[fixed]
    if not rule.power:
        values = in_first(values)
    return Weights(values=values, fixed=fixed, absolute=bool(rule.power), ambiguous=ambiguous)


def in_first(values):
    """Weights in units of the size of the first that is not 0."""
    shown = np.nonzero(values)[0]
    return values / np.abs(values[shown[0]]) if shown.size else values


def _features(run, rule, eps):
    """What the advantages are a weighted sum of, but for the divisor; (Q, G, K)."""
    if rule.order == "normalize_then_sum":
        judged = np.moveaxis(of_terms(run, rule, eps), 0, -1)
        return judged - _step_means(run, judged) if rule.batch else judged
    like = rule if rule.power else RULES["mean_only"]
    each = [judge(run, like, row, eps) for row in np.eye(len(run.names))]
    return np.stack(each, axis=-1)


def _step_means(run, values):
    """Mean over the completions of each group's step, (Q, 1, K)."""
    by = BySteps(run)
    each = [by.mean(column, run.present) for column in np.moveaxis(values, -1, 0)]
    return np.nan_to_num(np.stack(each, axis=1))[by.step][:, None, :]


def _least_squares(run, rule, unit, logged, start):
    """Weights themselves, from ``A = X w``."""
    known = run.present & ~np.isnan(run.advantages)
    keep = known.any(axis=1)
    for _ in range(_ROUNDS):
        rows = (known & keep[:, None]).reshape(-1)
        matrix = unit.reshape(-1, unit.shape[-1])[rows]
        found, _, rank, _ = np.linalg.lstsq(matrix, logged.reshape(-1)[rows], rcond=_ALIKE)
        off = np.sum(np.square(unit @ found - logged), axis=1)
        keep = _fitting(off, keep)
    return found, rank < unit.shape[-1]


def _direction(run, rule, unit, logged, start):
    """Weights up to a factor, from the parts of D w that are not along A."""
    block = np.arange(len(run.steps))
    if rule.shared == "step":
        block = run.step_index
    keep = np.sum(np.square(logged), axis=1) > 0
    for _ in range(_ROUNDS):
        along = np.bincount(block, keep * np.sum(np.square(logged), axis=1))
        products = np.einsum("qg,qgk->qk", logged, unit) * keep[:, None]
        sums = np.zeros((len(along), unit.shape[-1]))
        np.add.at(sums, block, products)
        sums = np.divide(sums, along[:, None], out=np.zeros_like(sums), where=along[:, None] > 0)
        rest = (unit - logged[..., None] * sums[block][:, None, :]) * keep[:, None, None]
        matrix = np.einsum("qgk,qgl->kl", rest, rest)
        size = np.sum(np.square(unit) * keep[:, None, None])
        values, vectors = np.linalg.eigh(matrix / max(size, np.finfo(float).tiny))
        found = vectors[:, 0]
        off = np.sum(np.square(np.einsum("qgk,k->qg", rest, found)), axis=1)
        keep = _fitting(off, keep)
    ambiguous = len(values) > 1 and bool(values[1] <= _ALIKE)
    if ambiguous:  # every direction of a plane will do: the one nearest to what is known
        plane = vectors[:, values <= _ALIKE]
        found = _ordering(unit, logged, keep, plane, plane @ (plane.T @ start))
    sign = np.sign(np.sum(logged * (unit @ found))) or 1.0
    return sign * found, ambiguous


def _ordering(unit, logged, keep, plane, found):
    """The direction in a plane nearest to a given one that orders completions as logged.

    A perceptron on the groups: what lies along the advantages of a group has to be above 0.
    """
    along = np.einsum("qg,qgk->qk", logged, unit)[keep] @ plane
    size = np.linalg.norm(along, axis=1)
    along = along[size > 0] / size[size > 0, None]
    at = plane.T @ found
    at = at * _HEAD_START / max(np.linalg.norm(at), np.finfo(float).tiny)
    for _ in range(_TURNS):
        heights = along @ at
        worst = int(np.argmin(heights)) if len(heights) else 0
        if not len(heights) or heights[worst] > 0:
            break
        at = at + along[worst]
    return plane @ at


def _fitting(off, keep):
    """Without the few groups that are far worse than the middle; with all if they are many."""
    middle = np.median(off[keep]) if keep.any() else 0.0
    fits = keep & (off <= max(_OUTLIER * middle, 1e-10))
    return fits if fits.sum() >= _MOST * keep.sum() else keep


def weights_of_totals(run):
    """Weights that make the file's own totals of its terms, or None where none do.

    They must explain every total to within 1e-5 of the largest.
    """
    if run.totals is None:
        return None
    known = run.present & ~np.isnan(run.totals)
    return _solved(np.where(np.isnan(run.terms), 0.0, run.terms)[known], run.totals[known])


def weights_of_log(run, log):
    """Weights that make the logged mean reward of the means of the terms, or None.

    TRL logs ``reward`` and ``rewards/<term>/mean``; terms that are not logged are averaged here.
    A total alone says nothing where the means never move.
    """
    if log is None or "reward" not in log:
        return None
    steps = run.every_step
    logged = log.at("reward", steps)
    means = term_means(run, log)
    known = np.isfinite(logged) & np.all(np.isfinite(means), axis=1)
    return _solved(means[known], logged[known])


def scale_of_log(run, log, direction):
    """The factor that brings weights in units of the first to the logged ``reward``, or None."""
    if log is None or "reward" not in log:
        return None
    logged = log.at("reward", run.every_step)
    own = total(term_means(run, log) * direction, axis=1)
    known = np.isfinite(logged) & np.isfinite(own)
    found = _solved(own[known][:, None], logged[known])
    return None if found is None else float(found[0])


def term_means(run, log=None):
    """Mean of each term by step, (S, K): as logged where it is, else of the file's own scores."""
    by, columns = BySteps(run), []
    for k, name in enumerate(run.names):
        own = by.mean(run.terms[..., k], run.known[..., k])
        logged = own if log is None else log.at(f"rewards/{name}/mean", run.every_step)
        columns.append(np.where(np.isfinite(logged), logged, own))
    return np.stack(columns, axis=1)


def _solved(matrix, wanted):
    """Least-squares solution if it is unique and explains everything, else None."""
    if len(wanted) < matrix.shape[1]:
        return None
    found, _, rank, _ = np.linalg.lstsq(matrix, wanted, rcond=1e-6)
    off = np.max(np.abs(matrix @ found - wanted), initial=0.0)
    enough = off <= 1e-5 * max(np.max(np.abs(wanted), initial=0.0), 1e-3)
    return found if rank == matrix.shape[1] and enough else None
