"""Findings about numbers that no trainer could hold: overflow of float32, probability 0."""

import numpy as np

from ..errors import place
from ..numerics import FLOAT32_LOG_MAX
from ..words import MINUS, cells, count, listing, number, opening
from . import facts
from .row import FindingRow

FLOAT32_MAX = float(np.finfo(np.float32).max)


def logp_minus_inf(evaluation):
    """Tokens of probability 0 under one of the policies."""
    names = {"new": "logp_new", "old": "logp_old", "reference": "logp_ref"}
    flags = {
        name: evaluation.valid & np.isneginf(getattr(evaluation, key))
        for name, key in names.items()
    }
    found = np.logical_or.reduce(list(flags.values()))
    if not found.any():
        return None
    return {
        "places": facts.places(found, limit=facts.NAMED),
        "tokens": int(np.sum(found)),
        "policies": tuple(name for name, flag in flags.items() if flag.any()),
    }


def _say_logp_minus_inf(figures):
    n = figures["tokens"]
    return (
        f"{count(n, 'token')} {'has' if n == 1 else 'have'} a log-probability of {MINUS}inf, so "
        f"probability 0 ({listing(figures['policies'])} policy): {cells(figures['places'], n)}. "
        "A ratio or KL made from it can only be 0, 1 or infinite."
    )


def float32_overflow(evaluation):
    """Finite log-probabilities whose ratio or KL is beyond float32."""
    arrays = (evaluation.logp_new, evaluation.logp_old, evaluation.logp_ref, evaluation.log_ratio)
    finite = evaluation.valid & np.logical_and.reduce([np.isfinite(array) for array in arrays])
    ratio = finite & (evaluation.log_ratio > FLOAT32_LOG_MAX) & _reads_ratio(evaluation)
    kl = finite & (np.abs(evaluation.kl) > FLOAT32_MAX)
    if not (ratio | kl).any():
        return None
    size = np.where(ratio, evaluation.log_ratio, 0.0)
    gap = np.abs(evaluation.logp_ref.astype(np.float64) - evaluation.logp_new)
    worst = facts.largest(np.where(kl, np.maximum(size, gap), size), ratio | kl)
    return {
        "places": (worst,),
        "tokens": int(np.sum(ratio | kl)),
        "what": "ratio" if ratio[worst] else "KL",
        "log": float(evaluation.log_ratio[worst] if ratio[worst] else gap[worst]),
        "limit": FLOAT32_LOG_MAX,
    }


def _reads_ratio(evaluation):
    """True if the ratio enters the surrogate or the KL."""
    if facts.surrogate(evaluation).reads_ratio:
        return True
    return facts.option(evaluation, "kl", "weight") == "ratio"


def _say_float32_overflow(figures):
    n = figures["tokens"]
    names = {"ratio": "log-ratio", "KL": "difference to the reference"}
    return (
        f"{count(n, 'token')} would be infinite in a trainer, which runs in float32. "
        f"{opening(place(figures['places'][0]))}: the {names[figures['what']]} is "
        f"{number(figures['log'])}, and float32 ends at {number(figures['limit'])}."
    )


ROWS = (
    FindingRow(
        code="logp_minus_inf",
        severity="error",
        page="Clipping",
        question="Why is something infinite?",
        find=logp_minus_inf,
        sentence=_say_logp_minus_inf,
    ),
    FindingRow(
        code="float32_overflow",
        severity="error",
        page="Clipping",
        question="Why would a trainer see inf or NaN?",
        find=float32_overflow,
        sentence=_say_float32_overflow,
    ),
)
