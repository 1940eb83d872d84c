"""One batch under each way of weighing answers and tokens that trainers go by.

The four corners are std on and off, 1/length on and off; the last of them is Dr. GRPO.
"""

from dataclasses import dataclass

import numpy as np

from .evaluation import Evaluation, evaluate
from .numerics import times, total
from .variants import table


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A choice of the advantage row and of the aggregation row; all else stays as it is.

    ``corner`` is (divided by std, divided by the completion's length), None if it is none
    of the four combinations of these two.
    """

    key: str
    label: str
    advantage: str
    aggregation: str
    corner: tuple[bool, bool] | None = None

    def applied(self, conventions):
        """The conventions with this recipe's two rows; chosen options of a row that stays, too."""
        return conventions.replace("advantage", self.advantage).replace(
            "aggregation", self.aggregation
        )


RECIPES = table(
    Recipe(
        key="grpo",
        label="GRPO",
        advantage="mean_std",
        aggregation="completion_mean",
        corner=(True, True),
    ),
    Recipe(
        key="no_std",
        label="GRPO without std",
        advantage="mean_only",
        aggregation="completion_mean",
        corner=(False, True),
    ),
    Recipe(
        key="no_length",
        label="GRPO without 1/length",
        advantage="mean_std",
        aggregation="constant",
        corner=(True, False),
    ),
    Recipe(
        key="dr_grpo",
        label="Dr. GRPO",
        advantage="mean_only",
        aggregation="constant",
        corner=(False, False),
    ),
    Recipe(key="dapo", label="DAPO", advantage="mean_std", aggregation="token_mean"),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchPull:
    """Where this very batch pushes the length, if stopping were a choice by one logit.

    Attributes
    ----------
    stop : float
        Stop probability per token that fits the batch, 1 / mean length; 0 without tokens.
    logit : ndarray, (P, G)
        Gradient of the objective by that logit, from each completion.
    right, wrong, whole : float
        Change of the expected length per unit of learning rate, in tokens: from the
        completions with an advantage above 0, from those below, from all. If the policy can
        tell that it is wrong, ``right`` moves right answers and ``wrong`` the wrong ones; if
        it cannot, both move with ``whole``.
    """

    stop: float
    logit: np.ndarray
    right: float
    wrong: float
    whole: float


def batch_pull(evaluation):
    """The pull of one batch on the length, see `BatchPull`.

    Notes
    -----
    Each token was a decision to go on, its last one to stop: the stop logit's derivative of
    their log-probabilities is ``-s`` and ``1 - s``. Expected length is 1/s, and its derivative
    by the logit ``-(1 - s)/s``. A completion cut off at the width did not choose to stop; that
    is not known here and left out of account. Derived here.
    """
    lengths = evaluation.lengths
    filled = int(np.sum(lengths > 0))
    stop = filled / float(np.sum(lengths)) if filled else 0.0
    gradient = evaluation.policy_gradient
    last = gradient.shape[2] - 1 - np.argmax(evaluation.valid[..., ::-1], axis=2)[..., None]
    at_end = np.take_along_axis(gradient, last, axis=2)[..., 0]
    logit = total(np.stack([at_end, -stop * total(gradient, axis=2)]), axis=0)
    slope = -(1 - stop) / stop if stop else 0.0

    def moved(which):
        return 0.0 + float(times(slope, total(np.where(which, logit, 0.0))))

    everywhere = np.ones(lengths.shape, dtype=bool)
    return BatchPull(
        stop=stop,
        logit=logit,
        right=moved(evaluation.advantages > 0),
        wrong=moved(evaluation.advantages < 0),
        whole=moved(everywhere),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class RecipeResult:
    """A batch under one recipe.

    Attributes
    ----------
    recipe : Recipe
    evaluation : Evaluation
    push : ndarray, (P, G)
        Weight of one token times its completion's advantage.
    whole : ndarray, (P, G)
        The same for all tokens of a completion together.
    share : ndarray, (P, G)
        Of the sum of ``abs(whole)``, which is what is left when the learning rate makes up
        for the size; all 0 if that is 0.
    pull : BatchPull
        On the length.
    """

    recipe: Recipe
    evaluation: Evaluation
    push: np.ndarray
    whole: np.ndarray
    share: np.ndarray
    pull: BatchPull


def under_recipes(scenario):
    """The batch under every recipe: the four corners of std and 1/length, and DAPO.

    Returns
    -------
    dict of str to RecipeResult
        A row of `grpo_core.recipes.RECIPES` each. Options of the scenario's own rows are kept
        where a recipe uses the same row. Rewards are judged by their groups, also where the
        scenario's own advantages are given, or those of steps.
    """
    return {key: _under(recipe, scenario) for key, recipe in RECIPES.items()}


def _under(recipe, scenario):
    evaluation = evaluate(scenario.with_conventions(recipe.applied(scenario.conventions)))
    pushed = times(evaluation.weight, evaluation.token_advantages)
    first = np.argmax(evaluation.valid, axis=2)[..., None]
    whole = total(pushed, axis=2)
    size = float(total(np.abs(whole)))
    return RecipeResult(
        recipe=recipe,
        evaluation=evaluation,
        push=np.take_along_axis(pushed, first, axis=2)[..., 0],
        whole=whole,
        share=np.abs(whole) / size if size else np.zeros_like(whole),
        pull=batch_pull(evaluation),
    )
