"""Findings about clipping: what is stopped, what is not, and why nothing is."""

import numpy as np

from ..clip_cases import unclipped_pull
from ..errors import place
from ..numerics import times, total
from ..words import cells, count, listing, number, opening, percent
from . import facts
from .row import FindingRow


def nothing_clipped_ratio_one(evaluation):
    """All ratios are 1, so that no bound is reached."""
    if not (_can_stop(evaluation) and facts.on_policy(evaluation)):
        return None
    drift, valid = evaluation.scenario.drift, evaluation.valid
    moved = np.any(evaluation.logp_new[valid] != evaluation.logp_old[valid])
    stored = np.any(
        evaluation.scenario["logp_new"][valid] != evaluation.scenario["logp_old"][valid]
    )
    return {"places": (), "moved": bool(moved), "drift_off": bool(drift == 0 and stored)}


def _can_stop(evaluation):
    """True if the surrogate stops tokens, and has stopped none."""
    return bool(facts.surrogate(evaluation).stops) and not facts.stopped(evaluation).any()


def _say_nothing_clipped_ratio_one(figures):
    why = "the new policy is still the one that sampled"
    if figures["moved"]:
        why = "what its tokens gained and lost cancels"
    elif figures["drift_off"]:
        why = "the drift is 0"
    return f"Nothing is clipped: the ratio of every token is 1, because {why}."


def nothing_clipped_no_advantage(evaluation):
    """The policy has moved, but there is no advantage that could be clipped."""
    valid = evaluation.valid
    if not valid.any() or facts.on_policy(evaluation) or not _can_stop(evaluation):
        return None
    if np.any(evaluation.token_advantages[valid]):
        return None
    ratios = evaluation.ratio[valid]
    return {"places": (), "low": float(np.min(ratios)), "high": float(np.max(ratios))}


def _say_nothing_clipped_no_advantage(figures):
    return (
        f"Nothing is clipped, although the ratios run from {number(figures['low'])} to "
        f"{number(figures['high'])}: every advantage is 0, and clipping only stops what an "
        "advantage pushes."
    )


def nothing_clipped_inside_band(evaluation):
    """The policy has moved, but no ratio has left the band."""
    band, valid = facts.band(evaluation), evaluation.valid
    if band is None or not valid.any() or facts.on_policy(evaluation):
        return None
    if not _can_stop(evaluation):
        return None
    low, high = float(np.min(evaluation.ratio[valid])), float(np.max(evaluation.ratio[valid]))
    if low < band[0] or high > band[1] or not np.any(evaluation.token_advantages[valid]):
        return None
    farthest = facts.largest(np.abs(evaluation.log_ratio), valid)
    return {
        "places": (farthest,),
        "lowest": low,
        "highest": high,
        "low": float(band[0]),
        "high": float(band[1]),
    }


def _say_nothing_clipped_inside_band(figures):
    return (
        f"Nothing is clipped: every ratio, from {number(figures['lowest'])} to "
        f"{number(figures['highest'])}, is inside the band ({number(figures['low'], 6)} to "
        f"{number(figures['high'], 6)}). {opening(place(figures['places'][0]))} has moved farthest."
    )


def clipped_share(evaluation):
    """Tokens whose policy gradient is stopped, and how much of it they would have had."""
    stopped, tokens = facts.stopped(evaluation), int(np.sum(evaluation.kept))
    if not stopped.any():
        return None
    pull = times(unclipped_pull(evaluation), evaluation.factor)
    banded = facts.band(evaluation) is not None  # elsewhere a gradient is no ratio times A
    whole = float(total(pull)) if banded else 0.0
    lost = float(total(np.where(stopped, pull, 0)))
    high, low = stopped & evaluation.clipped_high, stopped & evaluation.clipped_low
    return {
        "places": (facts.largest(pull, stopped),),
        "tokens": tokens,
        "high": int(np.sum(high)),
        "low": int(np.sum(low)),
        "dual": int(np.sum(stopped & ~(high | low))),
        "share": float(np.sum(stopped) / tokens),
        "lost": lost / whole if 0 < whole < np.inf else None,
    }


def _say_clipped_share(figures):
    kinds = {
        "above the band with a positive advantage": figures["high"],
        "below the band with a negative advantage": figures["low"],
        "beyond the dual clip": figures["dual"],
    }
    parts = [f"{n:,} {words}" for words, n in kinds.items() if n]
    n = sum(kinds.values())
    text = (
        f"{n:,} of {count(figures['tokens'], 'token')} ({percent(figures['share'])}) "
        f"{'is' if n == 1 else 'are'} clipped: {listing(parts)}."
    )
    if figures["lost"] is None:
        return text
    return (
        f"{text} Summed by size, {percent(figures['lost'])} of the policy gradient is lost with "
        f"{'it' if n == 1 else 'them'}."
    )


def dual_clip_active(evaluation):
    """Tokens with a negative advantage whose ratio is beyond the dual clip."""
    beyond = facts.stopped(evaluation) & evaluation.dual_clipped
    bound = facts.option(
        evaluation, "surrogate", "dual_clip", facts.option(evaluation, "surrogate", "delta")
    )
    if bound is None or not beyond.any():
        return None
    farthest = facts.largest(evaluation.log_ratio, beyond)
    advantage = float(evaluation.token_advantages[farthest])
    return {
        "places": facts.places_from(farthest, beyond)[: facts.NAMED],
        "tokens": int(np.sum(beyond)),
        "bound": float(bound),
        "ratio": float(evaluation.ratio[farthest]),
        "advantage": advantage,
        "unheld": float(times(evaluation.ratio[farthest], advantage)),
        "held": float(evaluation.surrogate[farthest] / evaluation.factor[farthest]),
    }


def _say_dual_clip_active(figures):
    n = figures["tokens"]
    return (
        f"The dual clip at {number(figures['bound'])} holds {count(n, 'token')} with a negative "
        f"advantage. {opening(place(figures['places'][0]))}: ratio {number(figures['ratio'])} with "
        f"advantage {number(figures['advantage'])} counts {number(figures['held'])} instead of "
        f"{number(figures['unheld'])}, and has no gradient. A token that became far too likely is "
        "not pushed back. Plain PPO, and TRL without delta, would push it hardest; verl has the "
        "dual clip on by default, at 3."
    )


def outside_band_not_clipped(evaluation):
    """Ratios outside the band on the side that the advantage's sign leaves open."""
    band = facts.band(evaluation)
    if band is None:
        return None
    low, high = band
    free = facts.in_loss(evaluation) & ~facts.stopped(evaluation)
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
        code="nothing_clipped_no_advantage",
        severity="note",
        page="Clipping",
        question="Why does nothing clip?",
        find=nothing_clipped_no_advantage,
        sentence=_say_nothing_clipped_no_advantage,
    ),
    FindingRow(
        code="nothing_clipped_inside_band",
        severity="note",
        page="Clipping",
        question="Why does nothing clip?",
        find=nothing_clipped_inside_band,
        sentence=_say_nothing_clipped_inside_band,
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
        code="dual_clip_active",
        severity="note",
        page="Clipping",
        question="What does the dual clip do?",
        find=dual_clip_active,
        sentence=_say_dual_clip_active,
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
