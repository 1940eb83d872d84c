"""What the page on conventions keeps of each setting: numbers of the batch, no arrays of tokens."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from grpo_core.comparison import OWN, compare
from grpo_core.presets import PRESETS, Difference
from grpo_core.stages import Conventions
from grpo_core.trainer_metrics import trl_metrics, verl_metrics

from .quantities import present
from .settled import loss_of, mean_kl_of, settled, size_of

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
# What each trainer's log holds, and how the keys of its presets begin.
LOGS = {"TRL": ("trl-", trl_metrics), "verl": ("verl-", verl_metrics)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Row:
    """One setting: numbers of the whole batch, and a number for each completion.

    ``advantages`` (P, G) are means over a completion's tokens, NaN where it has no score;
    ``weights`` (P, G) are those of a token of the completion that stays in the loss, 0 where
    none does. Completions that are absent are NaN in both. ``spoilt`` (P, G) are those whose
    advantage is NaN in the trainer, which handles no missing reward. ``kl_inside`` is where a KL
    that is not 0 is taken off, 'reward' or 'returns', or ''. ``logged`` holds what
    trainers log under the setting: trainer -> name -> number.
    """

    key: str
    label: str
    loss: float
    mean_kl: float
    gradient_norm: float
    clip: float
    advantages: np.ndarray
    weights: np.ndarray
    spoilt: np.ndarray
    kl_inside: str
    conventions: Conventions
    logged: Mapping[str, Mapping[str, float]]
    differences: tuple[Difference, ...]
    largest: float
    where: tuple[int, int, int] | None
    base_largest: float
    causes: tuple[tuple[Difference, float], ...]

    @property
    def lost(self):
        """Whether the trainer's loss is NaN."""
        return bool(np.any(self.spoilt))


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
        loss=loss_of(evaluation),
        mean_kl=mean_kl_of(evaluation),
        gradient_norm=evaluation.metrics["gradient_norm"],
        clip=evaluation.metrics["clip"],
        advantages=np.where(there & _judged(evaluation), _advantages(evaluation), np.nan),
        weights=np.where(there, _weights(evaluation), np.nan),
        spoilt=compared.spoilt,
        kl_inside=_kl_inside(evaluation),
        conventions=evaluation.scenario.conventions,
        logged=_logged(compared.key, evaluation),
        differences=compared.differences,
        largest=compared.largest,
        where=compared.where,
        base_largest=compared.base_largest,
        causes=compared.causes,
    )


def _logged(key, evaluation):
    """What the preset's own trainer logs; what any would, for the conventions of the example."""
    return {
        name: _without_noise(read(evaluation), evaluation)
        for name, (begins, read) in LOGS.items()
        if key == OWN or key.startswith(begins)
    }


# Sums of parts of both signs, which may come to 0.
_LOSSES = ("loss", "policy_loss", "actor/pg_loss")
_MEAN_ADVANTAGE = "critic/advantages/mean"


def _without_noise(log, evaluation):
    parts = dict.fromkeys(_LOSSES, evaluation.contribution)
    parts[_MEAN_ADVANTAGE] = evaluation.token_advantages
    return {
        name: float(settled(value, size_of(parts[name]))) if name in parts else value
        for name, value in log.items()
    }


def _kl_inside(evaluation):
    options = evaluation.scenario.conventions["kl"].options
    where = options.get("place", "objective")
    felt = options.get("beta", 0) and np.any(evaluation.kl[evaluation.valid])
    return where if felt and where != "objective" else ""


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
