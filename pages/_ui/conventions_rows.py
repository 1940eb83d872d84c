"""What the page on conventions keeps of each setting: numbers of the batch, no arrays of tokens."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from grpo_core.comparison import OWN, compare
from grpo_core.presets import PRESETS, Difference

from .quantities import present

# What stands side by side until the reader chooses, and what it is compared with.
FIRST = (
    OWN,
    "trl-1.16",
    "verl-0.9.1-grpo",
    "openrlhf-0.11-group_norm",
    "deepseekmath",
    "dr-grpo",
    "gspo",
    "nemo-rl-grpo",
)
FIRST_BASE = "trl-1.16"
SETTINGS = (OWN, *PRESETS)
MOST = 12  # settings side by side
SWITCHED = 50_000  # tokens up to which the choices of every setting are switched one by one


@dataclass(frozen=True, eq=False, kw_only=True)
class Row:
    """One setting: numbers of the whole batch, and a number for each completion.

    ``advantages`` (P, G) are means over a completion's tokens, NaN where it has no score;
    ``weights`` (P, G) are those of a token of the completion that stays in the loss, 0 where
    none does. Completions that are absent are NaN in both.
    """

    key: str
    label: str
    loss: float
    mean_kl: float
    gradient_norm: float
    clip: float
    advantages: np.ndarray
    weights: np.ndarray
    differences: tuple[Difference, ...]
    largest: float
    where: tuple[int, int, int] | None
    base_largest: float
    causes: tuple[tuple[Difference, float], ...]


def rows(scenario, keys: Iterable[str], base, *, causes=True):
    """key -> `Row` of each setting beside the base."""
    found = {}
    for key in keys:  # one at a time, so that only one evaluation is held
        found[key] = _row(compare(scenario, [key], base, causes=causes)[key])
    return found


def _row(compared):
    evaluation = compared.evaluation
    there = present(evaluation)
    return Row(
        key=compared.key,
        label=compared.label,
        loss=evaluation.loss,
        mean_kl=evaluation.mean_kl,
        gradient_norm=evaluation.metrics["gradient_norm"],
        clip=evaluation.metrics["clip"],
        advantages=np.where(there & _judged(evaluation), _advantages(evaluation), np.nan),
        weights=np.where(there, _weights(evaluation), np.nan),
        differences=compared.differences,
        largest=compared.largest,
        where=compared.where,
        base_largest=compared.base_largest,
        causes=compared.causes,
    )


def _judged(evaluation):
    return evaluation.scored | (evaluation.advantages != 0)


@np.errstate(all="ignore")
def _advantages(evaluation):
    """Mean of the advantages of a completion's tokens: whitened, and less the KL, where it is."""
    tokens, lengths = evaluation.token_advantages, evaluation.lengths
    mean = np.sum(tokens, axis=-1) / np.maximum(lengths, 1)
    alike = np.all((tokens == evaluation.advantages[..., None]) | ~evaluation.valid, axis=-1)
    return np.where(alike | (lengths == 0), evaluation.advantages, mean)


def _weights(evaluation):
    """All tokens of a completion that stay weigh the same, whatever the aggregation."""
    return np.max(np.where(evaluation.kept, evaluation.weight, 0), axis=-1, initial=0.0)


def tokens_of(scenario):
    """Cells of the batch, padding included."""
    return scenario["mask"].size
