"""Findings about what trainers make of the same batch: 0 or NaN, float32, micro-batches."""

import numpy as np

from ..presets import PRESETS
from ..words import count, groups, listing, number, opening
from . import facts
from .row import FindingRow

# Trainers by their preset: each adds another eps to the std of a group.
RESIDUES = {
    "TRL": "trl-1.16",
    "verl": "verl-0.9.1-grpo",
    "OpenRLHF": "openrlhf-0.11-group_norm",
}
# What an average over no token is, as their code has it: a guarded division or 0 / 0.
ZERO_OF_NOTHING = ("TRL", "NeMo-RL", "AReaL")
NAN_OF_NOTHING = ("verl", "OpenRLHF")


def fully_masked_batch(evaluation):
    """No token is left to average over."""
    if evaluation.kept.any():
        return None
    tokens = int(np.sum(evaluation.valid))
    return {"places": (), "tokens": tokens, "filtered": _untruncated(evaluation)}


def _untruncated(evaluation):
    """Whether tokens have left the loss, and not all because their answers were cut."""
    left = evaluation.valid
    if facts.chosen(evaluation, "truncated") != "keep":
        left = left & ~(evaluation.scenario["truncated"] > 0)[..., None]
    return bool(left.any())


def _say_fully_masked_batch(figures):
    n = figures["tokens"]
    why = f"all {count(n, 'token')} have left the loss" if n else "every token is masked"
    if figures["filtered"]:
        return (
            f"There is nothing to average: {why}, as no group has anything to tell apart. The "
            "loss is 0 here. A trainer that filters such groups, as verl, OpenRLHF and NeMo-RL "
            "can, samples others in their place and never trains on a batch like this."
        )
    return (
        f"There is nothing to average: {why}. The loss is 0 here and in "
        f"{listing(ZERO_OF_NOTHING)}; in {listing(NAN_OF_NOTHING)} it is 0 / 0, NaN."
    )


def float32_residue(evaluation):
    """Tied groups whose float32 mean is not their reward, and what trainers make of that."""
    if facts.by_steps(evaluation) or facts.given(evaluation):
        return None
    if facts.divisor(evaluation) is None or not facts.judged_as_one(evaluation):
        return None
    tied = facts.tied(evaluation)
    deviation, std = float32_statistics(evaluation.scores[tied], evaluation.scored[tied])
    off = np.zeros(len(tied))
    off[tied] = np.abs(deviation)
    if not (off > 0).any():
        return None
    (worst,) = facts.largest(off, off > 0)
    rank = int(np.sum(tied[:worst]))
    low, _ = facts.score_range(evaluation)
    return {
        "places": facts.places_from((worst,), off > 0),
        "score": float(low[worst]),
        "size": int(np.sum(evaluation.scored[worst])),
        "off": float(off[worst]),
        **{name: _residue(off[worst], std[rank], key) for name, key in RESIDUES.items()},
    }


def float32_statistics(scores, scored):
    """Deviation of a tied group's scores from their mean, and sample std, as float32 has them.

    Parameters
    ----------
    scores : ndarray, (P, G)
    scored : ndarray of bool, (P, G)

    Returns
    -------
    deviation, std : ndarray of float32, (P,)
        Summed one after the other; a trainer that sums in another order has another rest, or
        none. All scores of a group are equal, so that one deviation is all of them.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        single = np.where(scored, scores, 0).astype(np.float32)
        n = np.sum(scored, axis=1).astype(np.float32)
        mean = np.cumsum(single, axis=1, dtype=np.float32)[:, -1] / np.maximum(n, np.float32(1))
        deviation = np.max(
            np.where(scored, single - mean[:, None], -np.inf), axis=1, initial=-np.inf
        )
        std = np.sqrt(n * deviation * deviation / np.maximum(n - 1, np.float32(1)))
    known = np.isfinite(deviation) & np.isfinite(std)
    return np.where(known, deviation, 0), np.where(known, std, 0)


def _residue(deviation, std, preset):
    eps = PRESETS[preset].conventions["advantage"].options["eps"]
    return float(deviation / (std + eps))


def _say_float32_residue(figures):
    where = figures["places"]
    each = listing([f"{number(figures[name], 2)} under {name}" for name in RESIDUES])
    more = f" So it is in {groups(where[1:])}." if len(where) > 1 else ""
    return (
        f"{opening(groups(where[:1]))} is tied, and its advantages are exactly 0 here. In float32 "
        f"the mean of {figures['size']} scores of {number(figures['score'])}, added up one by one, "
        f"is off by {number(figures['off'], 2)}: a trainer divides that by its own std + eps and "
        f"gets advantages of size {each}, all of one sign.{more}"
    )


def tied_group_pushed(evaluation):
    """Groups of equal scores that whitening or a KL in the returns gives advantages."""
    if facts.by_steps(evaluation) or facts.given(evaluation):
        return None
    still = facts.group_max(np.abs(evaluation.advantages)) == 0
    sizes = facts.group_max(np.abs(evaluation.token_advantages))
    pushed = evaluation.tied & still & (sizes > 0)
    whitened = facts.chosen(evaluation, "whitening") != "none"
    returns = facts.option(evaluation, "kl", "place") == "returns"
    if not (pushed.any() and (whitened or returns) and facts.judged_as_one(evaluation)):
        return None
    (worst,) = facts.largest(sizes, pushed)
    return {
        "places": facts.places_from((worst,), pushed),
        "advantage": float(sizes[worst]),
        "whitened": whitened,
        "returns": returns,
    }


def _say_tied_group_pushed(figures):
    where = figures["places"]
    one = len(where) == 1
    causes = ["the KL is taken off the returns of their tokens"] * figures["returns"]
    causes += ["whitening takes the mean of all tokens off theirs"] * figures["whitened"]
    return (
        f"{opening(groups(where))} {'is' if one else 'are'} tied and still pushed: "
        f"{listing(causes)}, so that "
        f"advantages {'there' if one else f'in group {where[0][0]}'} reach "
        f"{number(figures['advantage'])}, whatever the rewards say."
    )


ROWS = (
    FindingRow(
        code="fully_masked_batch",
        severity="error",
        page="Objective",
        question="Why is the loss NaN?",
        find=fully_masked_batch,
        sentence=_say_fully_masked_batch,
    ),
    FindingRow(
        code="tied_group_pushed",
        severity="warning",
        page="Advantages",
        question="Why is a tied group not silent?",
        find=tied_group_pushed,
        sentence=_say_tied_group_pushed,
    ),
    FindingRow(
        code="float32_residue",
        severity="note",
        page="Conventions",
        question="Would a trainer see 0 here?",
        find=float32_residue,
        sentence=_say_float32_residue,
    ),
)
