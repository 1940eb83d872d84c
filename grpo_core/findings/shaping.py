"""Findings about shaped rewards: what drives the update of a group, the task or a term.

They read the attribution of the advantages, so they are about conventions that combine terms.
"""

import numpy as np

from ..words import groups, number, opening, percent
from . import facts
from .row import FindingRow

DOMINATES = 0.505  # of the spread: a term outweighs all else, and reads as more than half
ROUNDING = 8  # units in the last place of what was added up: a smaller spread is none


def shaping_only_group(evaluation):
    """Groups of equal task rewards whose advantages all come from terms."""
    shaped = evaluation.attribution
    if shaped is None:
        return None
    known = evaluation.scored & ~np.isnan(shaped.values[0])
    equal = (np.sum(known, axis=1) > 1) & (facts.spread(shaped.values[0], known) == 0)
    unmoved = facts.spread(shaped.parts[0], evaluation.scored) == 0  # by a KL in the reward, too
    pushed = shaped.shares.any(axis=0) & ~_cancelled(evaluation)
    only = equal & unmoved & pushed
    if not only.any():
        return None
    sizes = facts.group_max(np.abs(evaluation.advantages))
    (worst,) = facts.largest(sizes, only)
    term = 1 + int(np.argmax(shaped.shares[1:, worst]))
    return {
        "places": facts.places_from((worst,), only),
        "of": len(only),
        "reward": float(shaped.values[0, worst][known[worst]][0]),
        "term": facts.component(shaped.names, term),
        "share": float(shaped.shares[term, worst]),
        "advantage": float(sizes[worst]),
        "halved": _at_half_weights(evaluation, worst),
    }


def _at_half_weights(evaluation, group):
    """Largest advantage of a tied group at half of every term's weight, None if not divided.

    Deviations and std halve alike, and only eps stays: d / (std + 2 eps).
    """
    if facts.divisor(evaluation) is None or not facts.judged_as_one(evaluation):
        return None
    if facts.option(evaluation, "advantage", "floor"):
        return None
    eps = facts.option(evaluation, "advantage", "eps")
    std = float(evaluation.std[group])
    halved = float(np.max(np.abs(evaluation.advantages[group]))) * ((std + eps) / (std + 2 * eps))
    return halved if np.isfinite(halved) else None


def _say_shaping_only_group(figures):
    where = figures["places"]
    one = len(where) == 1
    text = f"{opening(groups(where))} {'is' if one else 'are'} decided by shaping alone: "
    if one:
        text += f"every task reward in it is {number(figures['reward'])}, yet advantages reach "
    else:
        text += "the task rewards of each are equal, yet advantages reach "
    spot = "" if one else f" in group {where[0][0]}"
    text += f"{number(figures['advantage'])}{spot}, where {figures['term']} makes up "
    text += f"{percent(figures['share'])} of their spread."
    if figures["halved"] is not None:
        text += f" At half the weight of every term they would reach {number(figures['halved'])}."
    return text


def term_dominates(evaluation):
    """A term that makes up more than half of the spread of the advantages."""
    shaped = evaluation.attribution
    if shaped is None:
        return None
    live = shaped.shares.any(axis=0) & ~_cancelled(evaluation)
    if not live.any():
        return None
    mean = np.mean(shaped.shares[:, live], axis=1)
    term = int(np.argmax(mean))
    if not (term and mean[term] > DOMINATES and np.all(np.isfinite(mean))):
        return None
    own = shaped.shares[term]
    (worst,) = facts.largest(own, live)
    differing = live & (facts.spread(shaped.values[0], ~np.isnan(shaped.values[0])) > 0)
    mixed = bool(differing.any() and (live & ~differing).any())
    return {
        "places": facts.places_from((worst,), live & (own > DOMINATES)),
        "term": facts.component(shaped.names, term),
        "weight": float(shaped.weights[term]),
        "share": float(mean[term]),
        "task": float(mean[0]),
        "groups": int(np.sum(live)),
        "differing": float(np.mean(own[differing])) if mixed else None,
    }


def _say_term_dominates(figures):
    over = f", on average over {figures['groups']:,} groups" if figures["groups"] > 1 else ""
    text = (
        f"{opening(figures['term'])} drives the update: with weight {number(figures['weight'])} it "
        f"makes up {percent(figures['share'])} of the spread of the advantages, the task reward "
        f"{percent(figures['task'])}{over}."
    )
    if figures["differing"] is not None:
        text += f" Where task rewards differ it is {percent(figures['differing'])}."
    return text


def terms_cancel(evaluation):
    """Groups whose rewards differ one by one and not when they are added up."""
    one = facts.judged_as_one(evaluation)
    # Returns to go tell tokens apart where completions are alike, unless the sum is judged.
    cancelled = _cancelled(evaluation) & (one | facts.uniform(evaluation))
    if not cancelled.any():
        return None
    shaped = evaluation.attribution
    parts = shaped.weighted if one else shaped.parts
    (worst,) = facts.places(cancelled, limit=1)[0]
    scored = evaluation.scored[worst]
    spreads = facts.spread(parts[:, worst], scored)
    first, second = np.argsort(-spreads, kind="stable")[:2].tolist()
    low, _ = facts.score_range(evaluation)
    level = float(np.mean(evaluation.advantages[worst][scored], dtype=np.float64))
    return {
        "places": facts.places_from((worst,), cancelled),
        "terms": tuple(facts.component(shaped.names, k) for k in (first, second)),
        "spreads": (float(spreads[first]), float(spreads[second])),
        "sum": float(low[worst]) if one else None,
        "level": level if abs(level) > facts.NEGLIGIBLE * spreads[first] else 0.0,
        "largest": float(np.max(np.abs(evaluation.token_advantages[worst]))),
    }


def _cancelled(evaluation):
    """Groups whose components differ, and what is judged, their sum, does not; (P,)."""
    shaped = evaluation.attribution
    if shaped is None:
        return np.zeros(len(evaluation.tied), dtype=bool)
    # A sum that is judged afterwards is divided by what is left of its spread, however small.
    if facts.judged_as_one(evaluation):
        parts, whole, negligible = shaped.weighted, evaluation.scores, 0.0
    else:
        parts, whole, negligible = shaped.parts, evaluation.advantages, facts.NEGLIGIBLE
    noise = _noise(evaluation, parts)
    spreads = facts.spread(parts, evaluation.scored)  # (C, P)
    several = np.sum(spreads > 0, axis=0) > 1  # one alone can only have overflowed
    apart = np.max(spreads, axis=0)
    together = facts.spread(whole, evaluation.scored)
    return several & (apart > 100 * noise) & (together <= np.maximum(noise, negligible * apart))


def _noise(evaluation, parts):
    """Largest spread of a sum of parts (C, P, G) in a group that can be rounding, (P,)."""
    sizes = np.sum(np.max(np.where(evaluation.scored, np.abs(parts), 0.0), axis=2), axis=0)
    return ROUNDING * np.finfo(evaluation.scores.dtype).eps * sizes


def _say_terms_cancel(figures):
    where = figures["places"]
    spot = "there" if len(where) == 1 else f"in group {where[0][0]}"
    one, other = figures["terms"]
    a, b = figures["spreads"]
    apart = f"{one} differs by {number(a)} {spot} and {other} by {number(b)}"
    text = f"The rewards of {groups(where)} cancel. "
    if figures["sum"] is None:
        text += f"Judged apart and weighted, {apart}, but added up they give every completion "
        return f"{text}the advantage {number(figures['level'])}: none is preferred."
    text += f"Weighted, {apart}, but the sum is {number(figures['sum'])} for every completion"
    if figures["largest"]:
        left = number(figures["largest"])
        return f"{text}, save for rounding, of which advantages of {left} are made."
    return f"{text}: every advantage is 0, and no reward has a share in it."


def summed_tie_pushes(evaluation):
    """Groups whose rewards add up to the same, and which push as terms are judged apart."""
    shaped = evaluation.attribution
    if shaped is None or facts.judged_as_one(evaluation):
        return None
    noise = _noise(evaluation, shaped.weighted)
    equal = facts.spread(evaluation.scores, evaluation.scored) <= noise
    pushing = equal & shaped.shares.any(axis=0) & ~_cancelled(evaluation)
    if not pushing.any():
        return None
    sizes = facts.group_max(np.abs(evaluation.advantages))
    (worst,) = facts.largest(sizes, pushing)
    low, _ = facts.score_range(evaluation)
    return {
        "places": facts.places_from((worst,), pushing),
        "sum": float(low[worst]),
        "advantage": float(sizes[worst]),
        "each": facts.combining(evaluation).terms,
    }


def _say_summed_tie_pushes(figures):
    where = figures["places"]
    each = "each reward is" if figures["each"] else "the task reward is"
    most = "" if len(where) == 1 else f", most in group {where[0][0]}"
    return (
        f"The rewards of every completion in {groups(where)} add up to the same"
        f"{'' if most else ', ' + number(figures['sum'])}, yet advantages reach "
        f"{number(figures['advantage'])}{most}: {each} judged by its own mean. Summed first, as "
        "TRL does by default, they would give no advantage."
    )


ROWS = (
    FindingRow(
        code="shaping_only_group",
        severity="warning",
        page="Shaping",
        question="Why is a tied group not silent?",
        find=shaping_only_group,
        sentence=_say_shaping_only_group,
    ),
    FindingRow(
        code="term_dominates",
        severity="warning",
        page="Shaping",
        question="Which reward drives the update?",
        find=term_dominates,
        sentence=_say_term_dominates,
    ),
    FindingRow(
        code="terms_cancel",
        severity="warning",
        page="Shaping",
        question="Why is an advantage 0?",
        find=terms_cancel,
        sentence=_say_terms_cancel,
    ),
    FindingRow(
        code="summed_tie_pushes",
        severity="note",
        page="Shaping",
        question="Why is a tied group not silent?",
        find=summed_tie_pushes,
        sentence=_say_summed_tie_pushes,
    ),
)
