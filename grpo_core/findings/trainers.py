"""Findings about what trainers make of the same batch: 0 or NaN, float32, micro-batches."""

import numpy as np

from ..batch import Batch
from ..numerics import times, total
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
UNEVEN = 1.1  # a token's weight; sampled lengths alone change it by a tenth from step to step


def fully_masked_batch(evaluation):
    """No token is left to average over."""
    if evaluation.kept.any():
        return None
    return {"places": (), "tokens": int(np.sum(evaluation.valid))}


def _say_fully_masked_batch(figures):
    n = figures["tokens"]
    why = f"all {count(n, 'token')} have left the loss" if n else "every token is masked"
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


def micro_batch_split(evaluation):
    """A loss that changes if the batch is split in two micro-batches that are averaged."""
    parts = _halves(evaluation)
    if parts is None:
        return None
    halves, weight = parts
    both = (weight > 0) & (evaluation.weight > 0)
    if not all(np.any(both & half) for half in halves):
        return None
    kept = [int(np.sum(evaluation.kept & half)) for half in halves]
    factor = np.where(both, weight / np.where(both, evaluation.weight, 1), 1.0)
    if not max(np.max(factor), 1 / np.min(factor)) >= UNEVEN:
        return None
    most = facts.largest(factor, both)
    split = 0.0 - float(total(times(weight, evaluation.per_token)))
    if not np.isfinite([split, evaluation.loss]).all():
        return None
    size = facts.turnover(evaluation)
    return {
        "places": (most[:2],),
        "completions": int(np.sum(evaluation.scenario["present"])) // 2,
        "tokens": tuple(kept),
        "factors": (float(factor[most]), float(np.min(factor[both]))),
        "loss": _rounded(evaluation.loss, size),
        "split": _rounded(split, size),
    }


def _rounded(loss, size):
    return 0.0 if abs(loss) <= 1e-12 * size else loss


def _halves(evaluation):
    """The two halves (P, G, L), and the mean over both of each token's weight in its own.

    None where a token's divisor is none of tokens, or a given number of them, and where half is
    no number of completions.
    """
    options = evaluation.scenario.conventions["aggregation"].options
    if options.get("tokens", 1):
        return None
    if facts.option(evaluation, "tied", "denominator") == "counted":
        return None
    present = evaluation.scenario["present"]
    n = int(np.sum(present))
    if n < 2 or n % 2:
        return None
    rank = np.cumsum(present).reshape(present.shape)
    halves = [present & (rank <= n // 2), present & (rank > n // 2)]
    weight = sum(_weight_of(evaluation, half) for half in halves) / 2
    return [half[..., None] for half in halves], weight


def _weight_of(evaluation, present):
    """Weights of the tokens of some completions, averaged without the others."""
    conventions = evaluation.scenario.conventions
    batch = Batch(
        rewards=evaluation.scores,
        present=present,
        valid=evaluation.kept & present[..., None],
        logp_new=evaluation.logp_new,
        logp_old=evaluation.logp_old,
        logp_ref=evaluation.logp_ref,
    )
    return times(conventions.run("aggregation", batch), conventions.run("accumulation", batch))


def _say_micro_batch_split(figures):
    one, other = figures["tokens"]
    high, low = figures["factors"]
    n = figures["completions"]
    return (
        f"The loss depends on micro-batches: split in two of {count(n, 'completion')} each, with "
        f"{one:,} and {count(other, 'token')}, and averaged it would be {number(figures['split'])} "
        f"instead of {number(figures['loss'])}. A token counts {number(high, 3)} times as much as "
        f"in the whole batch in the one, {number(low, 3)} times in the other. Dividing by the "
        "tokens of the whole batch, as TRL's dapo does and its bnpo does not, leaves no such "
        "difference."
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
    FindingRow(
        code="micro_batch_split",
        severity="note",
        page="Conventions",
        question="Why does the micro-batch size change the loss?",
        find=micro_batch_split,
        sentence=_say_micro_batch_split,
    ),
)
