"""Findings about single shaping terms: without effect, of the wrong sign, missing, about length.

They read the attribution of the advantages, so they are about conventions that combine terms.
"""

import numpy as np

from ..errors import place
from ..group_statistics import group_statistics
from ..numerics import total
from ..words import count, groups, number, opening
from . import facts
from .row import FindingRow

# Formulas whose value is a matter of length alone; the cosine looks at the task reward itself.
LENGTH_FORMULAS = frozenset({"length_linear", "overlong"})
CORRELATED = 0.5  # below this a correlation of so few completions is not worth a sentence


def missing_value(evaluation):
    """A blank among the rewards that are combined, and what the convention makes of it."""
    shaped = evaluation.attribution
    if shaped is None:
        return None
    present = evaluation.scenario["present"]
    missing = np.isnan(shaped.values) & present  # (C, P, G)
    blank = missing.any(axis=0)
    if not blank.any():
        return None
    where = facts.places(blank)
    first = where[0]
    component = int(np.argmax(missing[(slice(None), *first)]))
    return {
        "places": where,
        "reward": facts.component(shaped.names, component),
        "values": int(np.sum(missing)),
        "groups": int(np.sum(blank.any(axis=1))),
        "size": int(np.sum(present[first[0]])),
        "effect": _effect(evaluation, component, first),
    }


# What becomes of one missing value.
EFFECTS = {
    "zero": "Here it counts as 0.",
    "unscored": "Nothing else scores the completion, so it is left out and its advantage is 0.",
    "left_out": "Here it is left out of the mean and std of that reward, and adds nothing to the "
    "advantage.",
    "nothing": "Here it adds nothing to the sum, as if it were 0.",
}


def _effect(evaluation, component, where):
    if facts.option(evaluation, "rewards", "missing") == "as_zero":
        return "zero"
    if not evaluation.scored[where]:
        return "unscored"
    row = facts.combining(evaluation)
    return "left_out" if (row.terms if component else row.task) else "nothing"


def _say_missing_value(figures):
    first = figures["places"][0]
    more = figures["values"] - 1
    rest = f" ({more:,} more in {count(figures['groups'], 'group')})" if more else ""
    return (
        f"{opening(place(first))} has no value of {figures['reward']}{rest}. "
        f"{EFFECTS[figures['effect']]} With a plain mean and std it would make NaN of "
        f"{count(figures['size'], 'advantage')}, those of the whole group."
    )


def wrong_sign(evaluation):
    """A term whose values are never above 0, and whose negative weight makes a reward of them."""
    shaped = evaluation.attribution
    if shaped is None:
        return None
    values = np.where(evaluation.scored, np.nan_to_num(shaped.values, nan=0.0), 0.0)
    penalty = np.all(values <= 0, axis=(1, 2)) & (shaped.weights < 0)
    penalty[0] = False  # a negative weight of the task is said in its options
    paid = np.where(penalty[:, None, None], shaped.weighted, 0.0)
    if not np.any(paid > 0):
        return None
    term, *where = facts.largest(paid, evaluation.scored & (paid > 0))
    rewarded = paid[term] > 0
    return {
        "places": facts.places_from(tuple(where), rewarded),
        "term": facts.component(shaped.names, term),
        "weight": float(shaped.weights[term]),
        "lowest": float(np.min(values[term])),
        "paid": float(paid[(term, *where)]),
    }


def _say_wrong_sign(figures):
    others = len(figures["places"]) - 1
    more = f", and as much or less to {others:,} more" if others else ""
    return (
        f"{opening(figures['term'])} rewards what it should punish: its values are never above 0 "
        f"(down to {number(figures['lowest'])}) and its weight is {number(figures['weight'])}, so "
        f"it adds {number(figures['paid'])} to {place(figures['places'][0])}{more}. Values below 0 "
        "punish with a positive weight."
    )


def constant_term(evaluation):
    """A term that gives the same to every completion of a group."""
    shaped = evaluation.attribution
    if shaped is None:
        return None
    scored = evaluation.scored
    paid = np.max(np.where(scored, np.abs(shaped.weighted), 0.0), axis=2) > 0
    alike = (facts.spread(shaped.weighted, scored) == 0) & paid  # (C, P)
    alike &= (np.sum(scored, axis=1) > 1) & facts.uniform(evaluation)
    alike[0] = False
    if not alike.any():
        return None
    term = int(np.argmax(np.sum(alike, axis=1)))
    (first,) = facts.places(alike[term], limit=1)[0]
    one = int(np.argmax(scored[first]))
    return {
        "places": facts.places(alike[term]),
        "of": len(scored),
        "term": facts.component(shaped.names, term),
        "paid": float(shaped.weighted[term, first, one]),
        "adds": float(shaped.parts[term, first, one]),
    }


def _say_constant_term(figures):
    where = figures["places"]
    one = len(where) == 1
    spot = "" if one else f", {number(figures['paid'])} in group {where[0][0]}"
    paid = number(figures["paid"]) if one else "the same"
    text = (
        f"{opening(figures['term'])} gives {paid} to every completion of {groups(where)}{spot}. "
        "What all have tells none apart: it "
    )
    there = "there" if one else f"in group {where[0][0]}"
    if figures["adds"]:
        return f"{text}adds {number(figures['adds'])} to every advantage {there}."
    return f"{text}changes no advantage {'there' if one else 'in them'}."


def length_term_correlated(evaluation):
    """A term of length that moves with the task reward within groups, or against it."""
    shaped = evaluation.attribution
    if shaped is None:
        return None
    found = {
        k: _within_groups(shaped.values[0], shaped.values[k], evaluation.scored)
        for k, term in enumerate(evaluation.scenario.terms, 1)
        if term.formula.variant in LENGTH_FORMULAS and term.weight != 0
    }
    if not found:
        return None
    term = max(found, key=lambda k: abs(found[k][0]))
    correlation, tasks, among = found[term]
    if not abs(correlation) >= CORRELATED:
        return None
    lengths = evaluation.lengths
    group = int(np.argmax(np.sum(among, axis=1)))
    better, worse = among & (tasks > 0), among & (tasks < 0)
    if not (better.any() and worse.any()):  # deviations too small for a double
        return None
    sign = -1 if shaped.weights[term] < 0 else 1
    return {
        "places": facts.places_from((group,), among.any(axis=1)),
        "term": facts.component(shaped.names, term),
        "weight": float(shaped.weights[term]),
        "correlation": float(correlation) * sign,
        "completions": int(np.sum(among)),
        "better": float(np.mean(lengths[better])),
        "worse": float(np.mean(lengths[worse])),
    }


def _within_groups(task, values, scored):
    """Correlation pooled within groups, deviations of the task, and the completions used.

    Groups in which one of the two does not differ say nothing; 0 if there are no others.
    """
    known = scored & ~np.isnan(task) & ~np.isnan(values)
    own, other = (group_statistics(np.where(known, each, 0.0), known, 0) for each in (task, values))
    among = known & (own.spread > 0) & (other.spread > 0)
    a, b = (np.where(among, np.ldexp(each.centred, each.exponent), 0.0) for each in (own, other))
    size = np.sqrt(total(np.square(a))) * np.sqrt(total(np.square(b)))
    pooled = float(total(a * b) / size) if 0 < size < np.inf else 0.0
    return (pooled if np.isfinite(pooled) else 0.0), a, among


def _say_length_term_correlated(figures):
    against = figures["correlation"] < 0
    lead = "punishes right answers" if against else "pays for being right once more"
    return (
        f"{opening(figures['term'])} {lead}: within groups, what it gives correlates with the task "
        f"reward at {number(figures['correlation'], 2)} "
        f"({count(figures['completions'], 'completion')}). Those above their group's mean task "
        f"reward have {number(figures['better'], 3)} tokens on average, those below "
        f"{number(figures['worse'], 3)}."
    )


ROWS = (
    FindingRow(
        code="missing_value",
        severity="warning",
        page="Shaping",
        question="What becomes of a missing reward?",
        find=missing_value,
        sentence=_say_missing_value,
    ),
    FindingRow(
        code="wrong_sign",
        severity="warning",
        page="Shaping",
        question="Why does a penalty not work?",
        find=wrong_sign,
        sentence=_say_wrong_sign,
    ),
    FindingRow(
        code="length_term_correlated",
        severity="warning",
        page="Shaping",
        question="Is length rewarded, or being right?",
        find=length_term_correlated,
        sentence=_say_length_term_correlated,
    ),
    FindingRow(
        code="constant_term",
        severity="note",
        page="Shaping",
        question="Why does a bonus do nothing?",
        find=constant_term,
        sentence=_say_constant_term,
    ),
)
