"""How tokens become one loss: by completion and prompt, by part, and by aggregation."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from .evaluation import Evaluation, evaluate_batch
from .numerics import norm, plus, times, total
from .scenario import as_batch
from .stages import STAGES
from .variants import Choice, OneOf, complete_choice


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """What a part of the objective amounts to for completions, prompts and the batch.

    Attributes
    ----------
    completions : ndarray, (P, G)
    prompts : ndarray, (P,)
    whole : float
    """

    completions: np.ndarray
    prompts: np.ndarray
    whole: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Contributions:
    """The objective, taken apart.

    Attributes
    ----------
    both : Part
        ``both.completions`` of a prompt add up to its entry of ``both.prompts``, these to
        ``both.whole``, and that is the objective: each time to the last bit, summed as
        `numerics.total` does. Only where a part alone overflows can they not.
    policy, kl : Part
        Weighted surrogate with its entropy bonus, and weighted KL penalty with a minus. Their
        sum is ``both`` up to rounding: each token's terms are added before they are weighted.
    gain, drain : float
        Sum of the positive completions' contributions and of the negative ones'.
    """

    both: Part
    policy: Part
    kl: Part
    gain: float
    drain: float


def contributions(evaluation):
    """Take the objective of an evaluation apart, see `Contributions`."""
    both = _part(evaluation.contribution)
    completions = both.completions
    return Contributions(
        both=Part(completions=completions, prompts=both.prompts, whole=float(evaluation.objective)),
        policy=_part(
            times(evaluation.weight, plus(evaluation.surrogate, evaluation.entropy_bonus))
        ),
        kl=_part(0 - times(evaluation.weight, evaluation.kl_penalty)),
        gain=float(total(np.maximum(completions, 0))),
        drain=float(total(np.minimum(completions, 0))),
    )


def _part(values):
    completions = total(values, axis=2)  # (P, G)
    prompts = total(completions, axis=1)  # (P,)
    return Part(completions=completions, prompts=prompts, whole=float(total(prompts)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Aggregated:
    """The same batch under one choice of the aggregation.

    Attributes
    ----------
    choice : Choice
    label : str
        The variant's, with the words of every option that is not at its default.
    chosen : bool
        Whether the scenario's own conventions say so.
    evaluation : Evaluation
        With objective, loss, mean KL and gradient under that choice.
    first_weight : ndarray, (P, G)
        Weight of the first token of each completion that stays in the loss; 0 where there is none.
    """

    choice: Choice
    label: str
    chosen: bool
    evaluation: Evaluation
    first_weight: np.ndarray


def aggregations(evaluation):
    """The batch of an evaluation under every aggregation that there is.

    Parameters
    ----------
    evaluation : Evaluation
        Of a scenario, as `evaluate` returns it.

    Returns
    -------
    tuple of Aggregated
        A row of `STAGES['aggregation']` each, the chosen one with its options, the others
        with their defaults; further ones for the other words of an option, where these
        change a weight on this batch.
    """
    scenario, rows = evaluation.scenario, []
    batch, _ = as_batch(scenario)
    chosen = scenario.conventions["aggregation"]
    for choice in _choices(chosen):
        conventions = scenario.conventions.replace("aggregation", choice.variant, **choice.options)
        is_chosen = choice == chosen
        own = evaluation if is_chosen else evaluate_batch(batch, conventions)
        twin = any(
            row.choice.variant == choice.variant
            and np.array_equal(row.evaluation.weight, own.weight)
            for row in rows
        )
        if not twin:
            rows.append(
                Aggregated(
                    choice=choice,
                    label=_label(choice),
                    chosen=is_chosen,
                    evaluation=own,
                    first_weight=_first_weight(own),
                )
            )
    return tuple(rows)


def _choices(chosen):
    """Variants in the table's order; of one variant the chosen options or the defaults first."""
    stage = STAGES["aggregation"]
    for variant in stage.variants.values():
        first = chosen if variant.key == chosen.variant else Choice(variant.key)
        first = complete_choice(stage, first)
        words = [option for option in variant.options if isinstance(option.domain, OneOf)]
        yield first
        for values in product(*(option.domain.words for option in words)):
            named = dict(zip((option.key for option in words), values, strict=True))
            other = complete_choice(stage, Choice(variant.key, {**first.options, **named}))
            if other != first:
                yield other


def _label(choice):
    """The variant's label, with the words of every option that is not at its default."""
    variant = STAGES["aggregation"].variants[choice.variant]
    said = [variant.label]
    for option in variant.options:
        value = choice.options[option.key]
        if value == option.default:
            continue
        words = option.domain.words[value] if isinstance(option.domain, OneOf) else f"{value:,}"
        said.append(f"{option.label.lower()}: {words}")
    return ", ".join(said)


def _first_weight(evaluation):
    first = np.argmax(evaluation.kept, axis=2)[..., None]  # (P, G, 1), 0 if none stays
    return np.take_along_axis(evaluation.weight, first, axis=2)[..., 0]


@dataclass(frozen=True, kw_only=True)
class GradientSplit:
    """The gradient's policy part beside its KL part.

    Attributes
    ----------
    norm, policy_norm, kl_norm : float
        Euclidean, over all tokens.
    cosine : float or None
        Of the angle between the parts; None where one of them is 0 or infinite.
    both, against : int
        Tokens that both parts move, and those of them that they move in opposite directions.
    only_policy, only_kl : int
        Tokens that one part alone moves.
    """

    norm: float
    policy_norm: float
    kl_norm: float
    cosine: float | None
    both: int
    against: int
    only_policy: int
    only_kl: int


def gradient_split(evaluation):
    """Compare the two parts of an evaluation's gradient, see `GradientSplit`."""
    policy, kl = evaluation.policy_gradient, evaluation.kl_gradient
    sizes = norm(policy), norm(kl)
    moved, pulled = policy != 0, kl != 0
    return GradientSplit(
        norm=norm(evaluation.gradient),
        policy_norm=sizes[0],
        kl_norm=sizes[1],
        cosine=_cosine(policy, kl, sizes),
        both=int(np.sum(moved & pulled)),
        against=int(np.sum(moved & pulled & ((policy > 0) != (kl > 0)))),
        only_policy=int(np.sum(moved & ~pulled)),
        only_kl=int(np.sum(pulled & ~moved)),
    )


def _cosine(left, right, sizes):
    if not all(np.isfinite(size) and size > 0 for size in sizes):
        return None
    # Each is divided first: the product of two norms may be beyond the number type.
    left, right = left.astype(np.float64) / sizes[0], right.astype(np.float64) / sizes[1]
    return float(np.clip(total(times(left, right)), -1, 1))
