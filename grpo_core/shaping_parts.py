"""The parts of a shaped reward: the task and its terms, in the units in which they add up."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from .advantage_variants import ADVANTAGES
from .arrays import ArraySpec, Rule, as_array, check_cells, check_shape
from .errors import ScenarioError, place
from .group_statistics import group_statistics, standardised
from .inputs import checked_array, checked_number
from .variants import Number, OneOf, table

_ROUNDING = 1e-14  # of what was added up; a smaller difference is none
WEIGHT = Number(low=-1e6, high=1e6)


@dataclass(frozen=True, kw_only=True)
class Combine:
    """One way of combining a task reward and its terms: what an advantage is taken of.

    ``task`` and ``terms`` are each made one on their own before they are added, or the
    ``total`` is made one after it. With ``weighted`` the task meets its weight before.
    """

    key: str
    label: str
    task: bool = False
    terms: bool = False
    total: bool = False
    weighted: bool = False


COMBINE = table(
    Combine(key="sum_then_normalize", label="weighted sum, then normalised", total=True),
    Combine(key="normalize_then_sum", label="each normalised, then summed", task=True, terms=True),
    Combine(
        key="add_after", label="task normalised, terms added after it", task=True, weighted=True
    ),
)
_DOMAINS = {
    "combine": OneOf({row.key: row.label for row in COMBINE.values()}),
    "scale": OneOf({"std": "minus mean, over std", "none": "minus mean"}),
    "ddof": ADVANTAGES["mean_std"].option("ddof").domain,
    "eps": ADVANTAGES["mean_std"].option("eps").domain,
}
_FINITE = Rule(words="a finite number", holds=np.isfinite)
_OR_BLANK = Rule(
    words="a finite number, or blank where there is none",
    holds=lambda values: np.isfinite(values) | np.isnan(values),
)


@dataclass(frozen=True, eq=False)
class ShapedBatch:
    """Task rewards (P, G) and terms (K, P, G) as given, and what they are in a sum.

    ``own`` (K, P, G) are the terms in the units in which they are added up, and ``parts``
    (1 + K, P, G) the same with their weights, the task first; neither has a NaN.
    """

    task: np.ndarray
    terms: np.ndarray
    weights: np.ndarray
    own: np.ndarray
    parts: np.ndarray
    options: dict

    @property
    def scored(self):
        """Completions of which anything is known, (P, G)."""
        return known(self.task, self.terms)

    def apart(self, term):
        """The sum of all but one term, that term unweighted, and the sign of its weight.

        Both (P, G). Beside them what rounding can leave of a difference in the former.
        """
        domain = Number(low=0, high=len(self.terms) - 1, integer=True)
        term = checked_number("term", term, domain)
        sign = -1.0 if self.weights[term] < 0 else 1.0
        rest = np.delete(self.parts, 1 + term, axis=0)
        return summed(rest), sign * self.own[term], sign, rounding(rest, self.scored)


def read_batch(task, terms, weights, *, task_weight=1.0, **options):
    """The `ShapedBatch` of nested lists; options as in `advantage_against_weight`."""
    defaults = {"combine": next(iter(COMBINE)), "scale": "std", "ddof": 0, "eps": 1e-8}
    options = checked(**(defaults | options))
    task = read("task", task, "PG", missing=True)
    with suppress(ValueError):  # of ragged rows; `read` says where they are
        terms = terms if np.ndim(terms) != 2 else np.asarray(terms)[None]
        weights = weights if np.ndim(weights) else [weights]
    terms = read("terms", terms, "KPG", missing=True)
    if terms.shape[1:] != task.shape:
        raise ScenarioError(
            f"terms have shape {terms.shape[1:]}; expected {task.shape} like task", field="terms"
        )
    weights = read("weights", weights, "K")
    if len(weights) != len(terms):
        raise ScenarioError(
            f"{len(weights)} weights for {len(terms)} terms; wanted one for each", field="weights"
        )
    task_weight = checked_number("task_weight", task_weight, WEIGHT)
    before, after = (
        (task_weight, 1.0) if COMBINE[options["combine"]].weighted else (1.0, task_weight)
    )
    own_task, own = in_units(before * task, terms, **options)
    each = np.concatenate([[after], weights])[:, None, None]
    parts = weighted_sum(0.0, np.concatenate([own_task[None], own]), each)
    return ShapedBatch(task, terms, weights, own, parts, options)


def known(task, terms):
    """Completions of which the task reward or any term is known, (P, G)."""
    return ~np.isnan(task) | np.any(~np.isnan(terms), axis=0)


def in_units(task, terms, *, combine, scale, ddof, eps):
    """Task and terms in the units in which they are added up, each weight still to come.

    Parameters
    ----------
    task : ndarray, shape (P, G)
    terms : ndarray, shape (K, P, G)
        NaN in either is a value that is missing: it adds nothing.
    combine, scale, ddof, eps
        As in `advantage_against_weight`.

    Returns
    -------
    task : ndarray, shape (P, G)
        Up to a constant of each group, which no comparison within it sees.
    terms : ndarray, shape (K, P, G)
        Both without NaN. The order of ``task + sum_k w_k terms_k`` within a group, and each
        one's share of its spread, are those of the advantages.
    """
    row, scored = COMBINE[combine], known(task, terms)
    if row.task:
        task = own_advantages(task, ~np.isnan(task), scale, ddof, eps)
    else:
        # From the first score, so that what a tied group has in common cannot swallow a tiny
        # weight: 1 + 1e-17 is 1.
        task = np.where(np.isnan(task), 0.0, task)
        first = np.take_along_axis(task, np.argmax(scored, axis=1)[:, None], axis=1)
        with np.errstate(over="ignore"):
            task = np.where(scored, task - first, 0.0)
    if row.terms:
        flat = terms.reshape(-1, terms.shape[-1])
        own = own_advantages(flat, ~np.isnan(flat), scale, ddof, eps)
        return task, own.reshape(terms.shape)
    return task, np.where(np.isnan(terms), 0.0, terms)


def weighted_sum(task, terms, weights):
    """``task + weights terms``; refuses a sum that is beyond a double, naming its place."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        combined = task + weights * terms
    bad = ~np.isfinite(combined)
    if np.any(bad):
        where = tuple(int(index) for index in np.argwhere(bad)[0][-2:])
        raise ScenarioError(
            f"task and weighted terms at {place(where)} are too large to be added up; "
            "wanted smaller rewards or weights",
            field="weights",
            where=where,
        )
    return combined


def summed(parts):
    """The sum over parts (C, P, G); refuses one that is too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        return weighted_sum(np.sum(parts, axis=0), 0.0, 0.0)


def rounding(parts, scored):
    """What rounding can leave of each completion's sum over the parts (C, P, G); (P, G)."""
    C, P, G = parts.shape
    sizes = np.abs(deviations(parts.reshape(-1, G), np.tile(scored, (C, 1))))
    with np.errstate(under="ignore"):
        return np.sum((sizes * _ROUNDING).reshape(C, P, G), axis=0)


def own_advantages(values, scored, scale, ddof, eps):
    """Values (P, G) by the mean of their group and, if asked for, its std."""
    if scale == "none":
        return deviations(values, scored)
    return standardised(group_statistics(values, scored, ddof), eps)


def deviations(values, scored):
    """Values (P, G) less the mean of their group, 0 where not scored."""
    statistics = group_statistics(values, scored, 0)
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(statistics.centred, statistics.exponent)


def checked(**options):
    """Options in the type of their domain; refuses what is outside of it, or not an option."""
    for key in options:
        if key not in _DOMAINS:
            raise ScenarioError(
                f"there is no option {key}; wanted one of {', '.join(_DOMAINS)}", field=key
            )
    return {key: checked_number(key, value, _DOMAINS[key]) for key, value in options.items()}


def read(name, values, axes, *, missing=False, shape=None):
    """Numbers over some of the axes K, P, G as float64; NaN only if some may be missing.

    With a `shape` they must have the one that the task rewards have.
    """
    rule = _OR_BLANK if missing else _FINITE
    spec = ArraySpec(key=name, axes=axes, kind="float", default=0.0, label=name, rule=rule, help="")
    array = as_array(name, values, spec).astype(np.float64)
    if shape is not None:
        check_shape(name, array, shape, "task", spec)
    if not array.size:
        raise ScenarioError(f"{name} is empty; wanted at least one value", field=name)
    check_cells(name, array, spec, np.ones(array.shape, bool))
    return array


def read_line(name, values):
    """A list of finite numbers as float64, shape (N,)."""
    return checked_array(name, values, "S", WEIGHT)
