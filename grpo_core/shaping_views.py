"""What a page shows of shaped rewards: a term to start from, and one term's weight varied."""

from dataclasses import dataclass, replace

import numpy as np

from .shaping_curves import takeover_weight
from .shaping_log import shaping_log
from .shaping_parts import COMBINE, own_advantages, read_batch, weighted_sum
from .terms import Term

# Advantage rows that judge a score by its group, and whether they divide by its std.
_SCALES = {"mean_std": "std", "mean_only": "none"}
_FIRST = Term("bonus", 0.1)
_PER_DECADE = 12
_OF_PLAIN_VALUES = (
    "task_mean", "term_means", "correlation", "right_above", "right_length", "wrong_length"
)  # fmt: skip
_LEAST, _MOST = -8, 0  # powers of ten between which a weight is varied at least


@dataclass(frozen=True, eq=False)
class ShapingInputs:
    """Task (P, G), terms (K, P, G), weights (K,) and options, as the shaping functions take them.

    ``shaping_weights.safe_weight(task, terms, weights, k, **options)`` and their like.
    """

    task: np.ndarray
    terms: np.ndarray
    weights: np.ndarray
    options: dict

    @property
    def given(self):
        """All but the options, in the order in which they are taken."""
        return self.task, self.terms, self.weights


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightCurves:
    """Advantages of one group while the weight of one term is varied.

    ``weights`` (W,) are sizes of the weight, whose ``sign`` stays. ``tied`` and ``mixed`` map
    each way of combining to (W, G): were all task rewards equal and there no other term, and
    as the group is. ``high`` and ``low`` are the completions that gain most and least by the
    term: of several the worst and the best in the task. They are the same if all gain alike.
    ``takeover`` is the weight at which eps is as large as the spread that the term gives to
    the tied group; None without eps or std, or where nothing is summed before normalising.
    """

    weights: np.ndarray
    sign: float
    tied: dict
    mixed: dict
    high: int
    low: int
    takeover: float | None


@dataclass(frozen=True, kw_only=True)
class TiedBonus:
    """What a term makes of a group that is tied in the task, at its present weight.

    ``size`` completions are scored, ``having`` of them gain most by the term; ``binary`` if
    all others gain alike. ``high`` and ``low`` are the advantages of those that gain most and
    least; ``limits`` what they come to at any weight far above eps, None where the weight
    counts in full. ``summed`` is what ``high`` would be if summed before normalising.
    """

    size: int
    having: int
    binary: bool
    high: float
    low: float
    limits: tuple[float, float] | None
    summed: float


def with_shaping(scenario):
    """The scenario under a convention that combines terms; the same object if it is already.

    One without terms gets a bonus for every second completion. Advantages that do not come
    from the scores, such as given ones, are computed from them.
    """
    shaped = scenario
    if not shaped.terms:
        bonus = np.zeros((*shaped["present"].shape, 1), shaped["rewards"].dtype)
        bonus[:, ::2] = 1.0
        shaped = shaped.with_terms((_FIRST,), bonus)
    if shaped.conventions["rewards"].variant not in COMBINE:
        missing = shaped.conventions["rewards"].options.get("missing")
        kept = {} if missing is None else {"missing": missing}
        shaped = shaped.choose("rewards", next(iter(COMBINE)), **kept)
    if shaped.conventions["advantage"].variant not in _SCALES:
        options = shaped.conventions["advantage"].options
        kept = {key: options[key] for key in ("ddof", "eps") if key in options}
        shaped = shaped.choose("advantage", next(iter(_SCALES)), **kept)
    return shaped


def shaping_inputs(evaluation, combine=None):
    """The `ShapingInputs` of an evaluation of a scenario `with_shaping`.

    Parameters
    ----------
    evaluation : Evaluation
    combine : str, optional
        A key of `COMBINE`; the scenario's own if left out.
    """
    conventions, shaped = evaluation.scenario.conventions, evaluation.attribution
    advantage, values = conventions["advantage"], _values(evaluation)
    combine = combine or conventions["rewards"].variant
    task, weight = values[0], float(shaped.weights[0])
    if not COMBINE[combine].terms:  # the task is weighted, and loses its KL, before it is judged
        unknown = np.isnan(task)
        if COMBINE[combine].total:  # a sum loses its KL also where no task is in it
            unknown &= shaped.weighted[0] == 0
        task, weight = np.where(unknown, np.nan, shaped.weighted[0]), 1.0
    options = {"combine": combine, "scale": _SCALES[advantage.variant], "task_weight": weight}
    options |= {key: advantage.options[key] for key in ("ddof", "eps") if key in advantage.options}
    return ShapingInputs(task, values[1:], shaped.weights[1:], options)


def _values(evaluation):
    """Values of task and terms (C, P, G); NaN is what is left out."""
    values = evaluation.attribution.values
    if evaluation.scenario.conventions["rewards"].options["missing"] != "as_zero":
        return values
    return np.where(evaluation.scenario["present"] & np.isnan(values), 0.0, values)


def ordered_inputs(evaluation):
    """`ShapingInputs` whose task is the task reward itself, by which answers are better or worse.

    A KL penalty in the reward is one more term, the last; where the task is judged apart from
    the terms it stays in the task.
    """
    inputs, shaped = shaping_inputs(evaluation), evaluation.attribution
    if not COMBINE[inputs.options["combine"]].total:
        return inputs
    values, weight = _values(evaluation)[0], shaped.weights[0]
    options = inputs.options | {"task_weight": float(weight)}
    known = ~np.isnan(shaped.values).all(axis=0)
    less = np.where(known, shaped.weighted[0] - weight * np.nan_to_num(values), np.nan)
    if not np.any(np.nan_to_num(less)):
        return ShapingInputs(values, inputs.terms, inputs.weights, options)
    terms, weights = np.concatenate([inputs.terms, less[None]]), np.append(inputs.weights, 1.0)
    return ShapingInputs(values, terms, weights, options)


def logged(evaluation):
    """The `ShapingLog` of an evaluation: shares as it combines, all else of plain values.

    A weight of the task or a KL penalty in the reward changes no mean and no correlation.
    """
    inputs, values = shaping_inputs(evaluation), evaluation.attribution.values
    log = shaping_log(*inputs.given, evaluation.lengths, **inputs.options)
    plain = shaping_log(values[0], values[1:], inputs.weights, evaluation.lengths)
    kept = {key: getattr(plain, key) for key in _OF_PLAIN_VALUES}
    return replace(log, **kept)


def weight_curves(evaluation, prompt, term):
    """Advantages of one group against the weight of one term, under each way of combining.

    Parameters
    ----------
    evaluation : Evaluation
        Of a scenario `with_shaping`.
    prompt, term : int

    Returns
    -------
    WeightCurves

    Raises
    ------
    ScenarioError
        Rewards that are infinite or too large to be added up.
    """
    weight = float(evaluation.attribution.weights[1 + term])
    sizes, tied, mixed = _sizes(abs(weight)), {}, {}
    for key in COMBINE:
        task, own, others, weights, options = _group(evaluation, prompt, term, key)
        terms, weights = np.concatenate([own[None], others]), np.concatenate([[weight], weights])
        mixed[key] = _advantages(task, terms, weights, sizes, options)
        level = np.where(np.isnan(task) & np.isnan(terms).all(axis=0), np.nan, 0.0)
        tied[key] = _advantages(level, own[None], weights[:1], sizes, options)
    sign = -1.0 if weight < 0 else 1.0
    values = evaluation.attribution.values[:, prompt]
    high, low = _followed(values[0], sign * values[1 + term])
    return WeightCurves(
        weights=sizes, sign=sign, tied=tied, mixed=mixed, high=high, low=low,
        takeover=_takeover(evaluation, prompt, term),
    )  # fmt: skip


def tied_bonus(evaluation, prompt, term):
    """The `TiedBonus` of one term on one prompt's completions; None if all gain alike."""
    _, own, _, _, options = _group(evaluation, prompt, term)
    weight = float(evaluation.attribution.weights[1 + term])
    there = ~np.isnan(evaluation.attribution.values[:, prompt]).all(axis=0)
    gains = np.where(there, np.nan_to_num(own) * (-1.0 if weight < 0 else 1.0), np.nan)
    if not there.any() or np.nanmin(gains) == np.nanmax(gains):
        return None
    high, low = int(np.nanargmax(gains)), int(np.nanargmin(gains))
    level = np.where(there, 0.0, np.nan)
    at = np.array([abs(weight)])

    def advantages(weight, at, **changes):
        return _advantages(level, own[None], np.array([weight]), at, options | changes)[0]

    now, summed = advantages(weight, at), advantages(weight, at, combine=next(iter(COMBINE)))
    far = None
    if COMBINE[options["combine"]].total and options["scale"] == "std":
        far = advantages(weight, np.ones(1), eps=0.0)
    return TiedBonus(
        size=int(np.sum(there)),
        having=int(np.sum(gains == gains[high])),
        binary=len(np.unique(gains[there])) == 2,
        high=float(now[high]),
        low=float(now[low]),
        limits=None if far is None else (float(far[high]), float(far[low])),
        summed=float(summed[high]),
    )


def _group(evaluation, prompt, term, combine=None):
    """Task (G,), the term (G,), the others (K - 1, G) with their weights, and options."""
    inputs = shaping_inputs(evaluation, combine)
    terms = inputs.terms[:, prompt]
    others, weights = np.delete(terms, term, axis=0), np.delete(inputs.weights, term)
    return inputs.task[prompt], terms[term], others, weights, inputs.options


def _advantages(task, terms, weights, sizes, options):
    """Advantages (W, G) with the first term's weight at each of some sizes."""
    shaped = read_batch(task[None], terms[:, None], weights, **options)
    rest, own, _, _ = shaped.apart(0)
    combined = weighted_sum(rest, own, sizes[:, None])
    if not COMBINE[options["combine"]].total:
        return np.where(shaped.scored, combined, 0.0)
    used = shaped.options
    scored = np.broadcast_to(shaped.scored, combined.shape)
    return own_advantages(combined, scored, used["scale"], used["ddof"], used["eps"])


def _takeover(evaluation, prompt, term):
    _, own, _, _, options = _group(evaluation, prompt, term)
    if not COMBINE[options["combine"]].total or options["scale"] != "std":
        return None
    there = ~np.isnan(evaluation.attribution.values[:, prompt]).all(axis=0)
    filled = np.where(there, np.nan_to_num(own), np.nan)[None]
    found = float(takeover_weight(filled, ddof=options["ddof"], eps=options["eps"])[0])
    return found if 0 < found < np.inf else None


def _followed(task, gains):
    """Who gains most, of several the worst in the task; and who least, of several the best."""
    known = ~np.isnan(gains)
    if not known.any():
        return 0, 0
    task = np.nan_to_num(task)
    most = known & (gains == np.max(gains[known]))
    least = known & (gains == np.min(gains[known]))
    high = int(np.argmin(np.where(most, task, np.inf)))
    if np.array_equal(most, least):
        return high, high
    return high, int(np.argmax(np.where(least, task, -np.inf)))


def _sizes(weight):
    """Sizes of the weight, evenly in their logarithm, and the present one among them."""
    power = np.log10(weight) if weight > 0 else _MOST
    least, most = min(_LEAST, int(np.floor(power))), max(_MOST, int(np.ceil(power)))
    sizes = np.logspace(least, most, _PER_DECADE * (most - least) + 1)
    return np.unique(np.append(sizes, weight)) if weight > 0 else sizes
