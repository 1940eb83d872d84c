"""Finding: a loss that changes if the batch is split into micro-batches that are averaged."""

from dataclasses import dataclass

import numpy as np

from ..batch import Batch
from ..numerics import times, total
from ..words import count, number
from . import facts
from .row import FindingRow

UNEVEN = 1.1  # a token's weight; sampled lengths alone change it by a tenth from step to step
_LENGTHS = 500  # unlike lengths up to which completions are looked at one by one


@dataclass(frozen=True)
class _Split:
    """Completions to a micro-batch, and the weight (P, G, L) that averaging gives each token."""

    size: int
    weight: np.ndarray
    single: bool = False


def micro_batch_split(evaluation):
    """A loss that two halves of the batch, or single completions, averaged do not give.

    What the aggregation makes of each micro-batch is computed, so that it does not matter which
    row it is. One factor for all tokens is no dependence on the split: sums are added up.
    """
    whole = _weight_of(evaluation, evaluation.scenario["present"])
    if not np.array_equal(whole, evaluation.weight):
        return None  # dropped tokens count in the denominators, which a part cannot know
    found = (split(evaluation) for split in (_halves, _singles))
    return next((figures for each in found if (figures := _figures(evaluation, each))), None)


def _figures(evaluation, split):
    if split is None:
        return None
    both = (split.weight > 0) & (evaluation.weight > 0)
    factor = np.where(both, split.weight / np.where(both, evaluation.weight, 1), 1.0)
    low = np.min(factor, where=both, initial=np.inf)
    high = np.max(factor, where=both, initial=0.0)
    if not both.any() or not max(high, 1 / low) >= UNEVEN or not high > low * (1 + 1e-9):
        return None
    loss = 0.0 - float(total(times(split.weight, evaluation.per_token)))
    if not np.isfinite([loss, evaluation.loss]).all():
        return None
    size, most = facts.turnover(evaluation), facts.largest(factor, both)
    least = facts.largest(-factor, both)
    return {
        "places": (most[:2],),
        "completions": split.size,
        "tokens": tuple(_tokens_beside(evaluation, where, split.size) for where in (most, least)),
        "factors": (float(high), float(low)),
        "loss": _rounded(evaluation.loss, size),
        "split": _rounded(loss, size),
        "single": split.single,
        "token_mean": facts.chosen(evaluation, "aggregation") == "token_mean",
    }


def _rounded(loss, size):
    return 0.0 if abs(loss) <= 1e-12 * size else loss


def _rank(evaluation):
    """Place of each completion among those that are there, from 0; (P, G)."""
    present = evaluation.scenario["present"]
    return np.cumsum(present).reshape(present.shape) - 1


def _tokens_beside(evaluation, where, size):
    """Tokens of the micro-batch that a token is in."""
    part = _rank(evaluation) // size
    alike = (part == part[where[:2]]) & evaluation.scenario["present"]
    return int(np.sum(evaluation.kept & alike[..., None]))


def _halves(evaluation):
    """The first and the second half of the completions; None where half is no number of them."""
    present = evaluation.scenario["present"]
    n = int(np.sum(present))
    if n < 2 or n % 2:
        return None
    first = present & (_rank(evaluation) < n // 2)
    weight = sum(_weight_of(evaluation, half) for half in (first, present & ~first)) / 2
    return _Split(n // 2, weight)


def _singles(evaluation):
    """Every completion on its own, where its tokens weigh alike and their number says how much.

    None for more unlike lengths than are looked at.
    """
    kept, present = evaluation.kept, evaluation.scenario["present"]
    lengths = np.sum(kept, axis=-1)
    unlike = np.unique(lengths[lengths > 0])
    n = int(np.sum(present))
    first = np.max(evaluation.weight, axis=-1, keepdims=True, initial=0)
    alike = np.all((evaluation.weight == first) | ~kept)
    if n < 2 or not alike or len(unlike) > _LENGTHS:
        return None
    width = kept.shape[-1]
    own = np.zeros(width + 1)
    for length in unlike.tolist():
        own[length] = _weight_alone(evaluation, np.arange(width) < length)
    weight = np.where(kept, own[lengths][..., None] / n, 0.0)
    return _Split(1, weight, single=True)


def _weight_alone(evaluation, valid):
    """Weight of the first token of a completion that is a batch of its own."""
    alone = np.zeros((1, 1, len(valid)), evaluation.ratio.dtype)
    batch = Batch(
        rewards=alone[..., 0], present=np.ones((1, 1), bool), valid=valid[None, None],
        logp_new=alone, logp_old=alone, logp_ref=alone,
    )  # fmt: skip
    return float(_weights(evaluation, batch)[0, 0, 0])


def _weight_of(evaluation, present):
    """Weights (P, G, L) of the tokens of some completions, averaged without the others."""
    batch = Batch(
        rewards=evaluation.scores,
        present=present,
        valid=evaluation.kept & present[..., None],
        logp_new=evaluation.logp_new,
        logp_old=evaluation.logp_old,
        logp_ref=evaluation.logp_ref,
    )
    return _weights(evaluation, batch)


def _weights(evaluation, batch):
    conventions = evaluation.scenario.conventions
    factor = conventions.run("accumulation", batch)
    return np.where(batch.valid, times(conventions.run("aggregation", batch), factor), 0)


def _say_micro_batch_split(figures):
    n = figures["completions"]
    one, other = figures["tokens"]
    high, low = figures["factors"]
    parts = f"in two of {count(n, 'completion')} each, with {one:,} and {count(other, 'token')}"
    places = "the one", "the other"
    if figures["single"]:
        parts = "into single completions"
        places = f"one of {count(one, 'token')}", f"one of {other:,}"
    remedy = "Dividing by what the whole batch holds leaves no such difference."
    if figures["token_mean"]:
        remedy = (
            "Dividing by the tokens of the whole batch, as TRL's dapo does and its bnpo does not, "
            "leaves no such difference."
        )
    return (
        f"The loss depends on micro-batches: split {parts}, and averaged it would be "
        f"{number(figures['split'])} instead of {number(figures['loss'])}. A token counts "
        f"{number(high, 3)} times as much as in the whole batch in {places[0]}, "
        f"{number(low, 3)} times in {places[1]}. {remedy}"
    )


ROWS = (
    FindingRow(
        code="micro_batch_split",
        severity="note",
        page="Conventions",
        question="Why does the micro-batch size change the loss?",
        find=micro_batch_split,
        sentence=_say_micro_batch_split,
    ),
)
