"""Findings about clipping: what is stopped, what is not, and why nothing is."""

import numpy as np

from ..errors import place
from ..numerics import plus, times, total
from ..words import cells, count, listing, number, opening, percent
from . import facts
from .row import FindingRow


def nothing_clipped_ratio_one(evaluation):
    """All ratios are 1, so that no bound is reached."""
    if not facts.on_policy(evaluation):
        return None
    drift, valid = evaluation.scenario.drift, evaluation.valid
    moved = np.any(evaluation.logp_new[valid] != evaluation.logp_old[valid])
    stored = np.any(
        evaluation.scenario["logp_new"][valid] != evaluation.scenario["logp_old"][valid]
    )
    return {"places": (), "moved": bool(moved), "drift_off": bool(drift == 0 and stored)}


def _say_nothing_clipped_ratio_one(figures):
    why = "the new policy is still the one that sampled"
    if figures["moved"]:
        why = "what its tokens gained and lost cancels"
    elif figures["drift_off"]:
        why = "the drift is 0"
    return f"Nothing is clipped: the ratio of every token is 1, because {why}."


def clipped_share(evaluation):
    """Tokens whose policy gradient is stopped, and how much of it they would have had."""
    stopped = evaluation.clipped_low | evaluation.clipped_high | evaluation.dual_clipped
    if not stopped.any():
        return None
    pull = _unclipped_pull(evaluation)
    dual = evaluation.dual_clipped & ~(evaluation.clipped_low | evaluation.clipped_high)
    return {
        "places": (facts.largest(pull, stopped),),
        "tokens": int(np.sum(evaluation.valid)),
        "high": int(np.sum(evaluation.clipped_high)),
        "low": int(np.sum(evaluation.clipped_low)),
        "dual": int(np.sum(dual)),
        "share": float(np.sum(stopped) / np.sum(evaluation.valid)),
        "lost": float(total(np.where(stopped, pull, 0)) / total(pull)),
    }


def _unclipped_pull(evaluation):
    """Size of each token's policy gradient without clipping, against the largest of them.

    weight * abs(A) * ratio, by way of logarithms: ratios may be beyond any number.
    """
    size = np.abs(evaluation.token_advantages).astype(np.float64)
    scale = np.log(evaluation.weight.astype(np.float64)) + np.log(size)  # log(0) = -inf
    log_pull = plus(scale, evaluation.log_ratio)
    top = np.max(log_pull)
    relative = np.where(log_pull == top, 0.0, log_pull - top)  # inf - inf would be NaN
    return np.where(evaluation.valid & (size > 0), np.exp(relative), 0.0)


def _say_clipped_share(figures):
    kinds = {
        "above the band with a positive advantage": figures["high"],
        "below the band with a negative advantage": figures["low"],
        "beyond the dual clip": figures["dual"],
    }
    parts = [f"{n:,} {words}" for words, n in kinds.items() if n]
    n = sum(kinds.values())
    return (
        f"{n:,} of {count(figures['tokens'], 'token')} ({percent(figures['share'])}) "
        f"{'is' if n == 1 else 'are'} clipped: {listing(parts)}. With "
        f"{'it' if n == 1 else 'them'} {percent(figures['lost'])} of the policy gradient is lost."
    )


def outside_band_not_clipped(evaluation):
    """Ratios outside the band on the side that the advantage's sign leaves open."""
    band = _band(evaluation)
    if band is None:
        return None
    low, high = band
    stopped = evaluation.clipped_low | evaluation.clipped_high | evaluation.dual_clipped
    free = evaluation.valid & ~stopped
    above = free & (evaluation.ratio > high) & (evaluation.token_advantages < 0)
    below = free & (evaluation.ratio < low) & (evaluation.token_advantages > 0)
    outside = above | below
    if not outside.any():
        return None
    distance = times(np.abs(evaluation.log_ratio), np.abs(evaluation.token_advantages))
    farthest = facts.largest(distance, outside)
    return {
        "places": (farthest,),
        "tokens": int(np.sum(outside)),
        "above": int(np.sum(above)),
        "below": int(np.sum(below)),
        "low": float(low),
        "high": float(high),
        "ratio": float(evaluation.ratio[farthest]),
        "advantage": float(evaluation.token_advantages[farthest]),
    }


def _band(evaluation):
    """Edges of the clip band in the evaluation's own precision; None without a band."""
    low = facts.option(evaluation, "surrogate", "epsilon_low")
    high = facts.option(evaluation, "surrogate", "epsilon_high")
    if low is None or high is None:
        return None
    cast = evaluation.ratio.dtype.type
    return cast(1 - low), cast(1 + high)


def _say_outside_band_not_clipped(figures):
    n = figures["tokens"]
    stands = "has its ratio" if n == 1 else "have their ratio"
    return (
        f"{count(n, 'token')} {stands} outside the band ({number(figures['low'], 6)} "
        f"to {number(figures['high'], 6)}) and {'is' if n == 1 else 'are'} not clipped. "
        f"{opening(place(figures['places'][0]))}: ratio {number(figures['ratio'])} with "
        f"advantage {number(figures['advantage'])}. Only a token that has moved far the way its "
        "advantage asks is stopped; the others are pulled back."
    )


def drift_held(evaluation):
    """Tokens whose drifted log-probability would have been above 0."""
    if not evaluation.held.any():
        return None
    return {
        "places": facts.places(evaluation.held, limit=facts.NAMED),
        "tokens": int(np.sum(evaluation.held)),
        "drift": evaluation.scenario.drift,
    }


def _say_drift_held(figures):
    n = figures["tokens"]
    return (
        f"A drift of {number(figures['drift'])} would lift "
        f"{count(n, 'log-probability', 'log-probabilities')} above 0, which none can be; "
        f"held at 0: {cells(figures['places'], n)}."
    )


ROWS = (
    FindingRow(
        code="nothing_clipped_ratio_one",
        severity="note",
        page="Clipping",
        question="Why does nothing clip?",
        find=nothing_clipped_ratio_one,
        sentence=_say_nothing_clipped_ratio_one,
    ),
    FindingRow(
        code="clipped_share",
        severity="note",
        page="Clipping",
        question="How much is clipped?",
        find=clipped_share,
        sentence=_say_clipped_share,
    ),
    FindingRow(
        code="outside_band_not_clipped",
        severity="note",
        page="Clipping",
        question="Why is this not clipped?",
        find=outside_band_not_clipped,
        sentence=_say_outside_band_not_clipped,
    ),
    FindingRow(
        code="drift_held",
        severity="note",
        page="Clipping",
        question="Why does the drift stop?",
        find=drift_held,
        sentence=_say_drift_held,
    ),
)
