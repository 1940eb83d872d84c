"""Findings about settings that read like another one, and about what a surrogate's value means."""

import numpy as np

from ..numerics import times, total
from ..surrogate_weighted import ROWS as WEIGHTED
from ..words import count, number, opening, percent
from . import facts
from .losses import loss_at_ratio_one
from .row import FindingRow

# Published offsets of the band end at 0.4, its edges start at 1.2: in between nobody means an
# offset. From 2 on a band is meant to be wide (DeepSeek-R1: 10), as it is with no lower edge.
EDGE_HIGH = (1.0, 2.0)
EDGE_LOW = (0.5, 1.0)
LOG_BOUND = 0.4  # of the GMPO paper


def edge_given_as_offset(evaluation):
    """A bound of the band that looks like its edge, where offsets from 1 are wanted."""
    if facts.band(evaluation) is None:
        return None
    low, high = (facts.option(evaluation, "surrogate", f"epsilon_{side}") for side in _SIDES)
    upper = EDGE_HIGH[0] <= high < EDGE_HIGH[1]
    lower = EDGE_LOW[0] <= low < EDGE_LOW[1]
    if not (upper or lower):
        return None
    return {
        "places": (),
        "low": low,
        "high": high,
        "upper": upper,
        "lower": lower,
        "stopped": int(np.sum(facts.stopped(evaluation))),
    }


_SIDES = ("low", "high")


def _say_edge_given_as_offset(figures):
    low, high = figures["low"], figures["high"]
    name, value, meant = (
        ("epsilon high", high, high - 1) if figures["upper"] else ("epsilon low", low, 1 - low)
    )
    also = f", and epsilon low is {number(low)}" if figures["upper"] and figures["lower"] else ""
    n = figures["stopped"]
    stops = (
        f"{count(n, 'token')} {'is' if n == 1 else 'are'} stopped" if n else "nothing is stopped"
    )
    return (
        f"{opening(name)} is {number(value)}{also}: is that an edge of the band? It is taken as an "
        f"offset from 1, so the band runs from {number(1 - low)} to {number(1 + high)} "
        f"and {stops}. For an edge at {number(value)} it has to be {number(meant)}."
    )


def delta_inside_band(evaluation):
    """A two-sided bound delta that is no larger than the upper edge of the band."""
    delta = facts.option(evaluation, "surrogate", "delta")
    band = facts.band(evaluation)
    if delta is None or band is None or delta > band[1]:
        return None
    above = facts.in_loss(evaluation) & (evaluation.ratio > delta)
    above &= evaluation.token_advantages > 0
    return {
        "places": facts.places(above, limit=facts.NAMED),
        "delta": delta,
        "high": float(band[1]),
        "tokens": int(np.sum(above)),
    }


def _say_delta_inside_band(figures):
    n = figures["tokens"]
    return (
        f"delta is {number(figures['delta'])}, inside a band that ends at "
        f"{number(figures['high'])}. It is a bound of the ratio itself, no offset from 1: above it "
        f"a token with a positive advantage has no gradient, here {count(n, 'token')}, while those "
        "with a negative advantage are held only at the band's edge and beyond. Values in use "
        "are 2 to 4."
    )


def narrow_log_bounds(evaluation):
    """Bounds of GMPO's log-ratios that are those of a band of ratios."""
    low, high = (facts.option(evaluation, "surrogate", f"log_{side}") for side in _SIDES)
    if low is None or max(low, high) >= LOG_BOUND:
        return None
    n = int(np.sum(facts.stopped(evaluation)))
    return {"places": (), "low": low, "high": high, "tokens": n}


def _say_narrow_log_bounds(figures):
    low, high = figures["low"], figures["high"]
    edges = " to ".join(number(np.exp(x)) for x in (-low, high))
    wide = " to ".join(number(np.exp(x), 3) for x in (-LOG_BOUND, LOG_BOUND))
    return (
        f"The bounds {number(low)} and {number(high)} are taken of the log-ratio: ratios from "
        f"{edges} are not held. Beyond them {count(figures['tokens'], 'token')} "
        f"{'is' if figures['tokens'] == 1 else 'are'} stopped. verl passes its clip ratio here, "
        "whose default of 0.2 is made for the ratio itself; the paper's bound is "
        f"{number(LOG_BOUND)}, {wide}."
    )


def cispo_bound_below_one(evaluation):
    """An absolute upper bound of CISPO's weight that is below the ratio of a first step."""
    if facts.option(evaluation, "surrogate", "bound") != "absolute":
        return None
    bound = facts.option(evaluation, "surrogate", "epsilon_high")
    acting = facts.in_loss(evaluation) & (evaluation.token_advantages != 0)
    held = acting & (evaluation.ratio > bound)
    if bound >= 1 or not held.any():
        return None
    gradient = np.abs(evaluation.policy_gradient, dtype=np.float64)
    return {
        "places": (facts.largest(gradient, held),),
        "bound": bound,
        "tokens": int(np.sum(held)),
        "share": float(np.sum(held) / np.sum(acting)),
        "factor": 1 / bound if bound else None,
    }


def _say_cispo_bound_below_one(figures):
    bound = number(figures["bound"])
    n = figures["tokens"]
    text = (
        f"CISPO's bound is {bound}, taken as the largest weight itself: {count(n, 'token')} "
        f"({percent(figures['share'])}) with a larger ratio {'weighs' if n == 1 else 'weigh'} "
        f"{bound}, also at ratio 1, where nothing needs a bound."
    )
    if figures["factor"] is not None:
        text += f" With a bound of 1 a first step would be {number(figures['factor'])} times as "
        text += "large."
    return (
        f"{text} TRL's epsilon high is this bound and resolves to 0.2 by default; ScaleRL sets 5. "
        "Where the bound is an offset, as in verl, 0.2 makes it 1.2."
    )


def sapo_loss_on_policy(evaluation):
    """At ratio 1 SAPO's gate makes a loss of advantages that add up to another one."""
    taus = [facts.option(evaluation, "surrogate", f"tau_{way}") for way in ("up", "down")]
    plain = _loss_of_plain_ratio(evaluation)
    if taus[0] is None or plain is None:
        return None
    return {"places": (), "loss": evaluation.loss, "plain": plain, "taus": tuple(taus)}


def _loss_of_plain_ratio(evaluation):
    """Loss that the same batch at ratio 1 has under the plain ratio; None where it is the same."""
    if not loss_at_ratio_one(evaluation):
        return None
    expected = times(evaluation.weight, facts.worth_advantage(evaluation))
    plain, size = 0.0 - float(total(expected)), facts.turnover(evaluation)
    if not (np.isfinite(plain) and abs(evaluation.loss - plain) > facts.NEGLIGIBLE * size):
        return None
    return 0.0 if abs(plain) <= 1e-12 * size else plain


def _say_sapo_loss_on_policy(figures):
    up, down = figures["taus"]
    return (
        f"Every ratio is 1, yet the loss is {number(figures['loss'])}, and not "
        f"{number(figures['plain'])} as with a plain ratio: there SAPO's gate is worth 2 / tau "
        f"times the advantage, {number(2 / up)} where that is above 0 and {number(2 / down)} where "
        "it is below. The gradient is none the less that of the plain ratio, whose slope at 1 the "
        "gate shares."
    )


def loss_of_log_probabilities(evaluation):
    """At ratio 1 a surrogate of weighted log-probabilities has a loss that says nothing."""
    if facts.chosen(evaluation, "surrogate") not in _LOG_PROBABILITY:
        return None
    plain = _loss_of_plain_ratio(evaluation)
    if plain is None:
        return None
    label = evaluation.scenario.conventions.variant("surrogate").label
    return {"places": (), "surrogate": label, "loss": evaluation.loss, "plain": plain}


_LOG_PROBABILITY = frozenset(row.key for row in WEIGHTED)


def _say_loss_of_log_probabilities(figures):
    return (
        f"Every ratio is 1, yet the loss is {number(figures['loss'])}, and not "
        f"{number(figures['plain'])} as with a plain ratio: {figures['surrogate']} multiplies the "
        "advantage by a log-probability. Its value goes with how likely the tokens were and says "
        "nothing about progress. Only the gradient is meant."
    )


ROWS = (
    FindingRow(
        code="cispo_bound_below_one",
        severity="warning",
        page="Conventions",
        question="Is this bound an offset or the bound itself?",
        find=cispo_bound_below_one,
        sentence=_say_cispo_bound_below_one,
    ),
    FindingRow(
        code="edge_given_as_offset",
        severity="warning",
        page="Conventions",
        question="Is this bound an offset or an edge?",
        find=edge_given_as_offset,
        sentence=_say_edge_given_as_offset,
    ),
    FindingRow(
        code="delta_inside_band",
        severity="warning",
        page="Conventions",
        question="Is delta an offset or the bound itself?",
        find=delta_inside_band,
        sentence=_say_delta_inside_band,
    ),
    FindingRow(
        code="narrow_log_bounds",
        severity="note",
        page="Conventions",
        question="Are these bounds of a ratio or of its logarithm?",
        find=narrow_log_bounds,
        sentence=_say_narrow_log_bounds,
    ),
    FindingRow(
        code="sapo_loss_on_policy",
        severity="note",
        page="Objective",
        question="Why is the loss not 0?",
        find=sapo_loss_on_policy,
        sentence=_say_sapo_loss_on_policy,
    ),
    FindingRow(
        code="loss_of_log_probabilities",
        severity="note",
        page="Objective",
        question="Why is the loss not 0?",
        find=loss_of_log_probabilities,
        sentence=_say_loss_of_log_probabilities,
    ),
)
