"""Variants without code of their own: the arrays that they gave, written out in the script."""

from .computed import surrogate_slope
from .export_arrays import assignment
from .export_spelling import Snippet

_NOTE = (
    "# This variant has no plain-NumPy transcription yet: below are the numbers that it gives",
    "# for this batch. They do not follow if an array above is changed.",
)

# What later lines read of a stage, by its name in Evaluation.
_GIVES = {
    "rewards": ("scores", "scored"),
    "advantage": ("mean", "std", "advantages", "token_advantages"),
    "ratio": ("log_ratio", "ratio"),
    "surrogate": ("surrogate", "clipped_low", "clipped_high", "dual_clipped"),
    "aggregation": ("weight",),
}

# What the stage's part of the gradient is, where it is not among these.
_GRADIENTS = {"ratio": "policy_gradient", "kl": "kl_gradient"}


def recorded(evaluation, stage):
    """A `Snippet` that holds a stage's results instead of computing them.

    Parameters
    ----------
    evaluation : Evaluation
    stage : str

    Returns
    -------
    Snippet
        Values, and the derivative that the gradient needs.
    """

    def code(w):
        names = _GIVES.get(stage, ())
        if stage == "kl":
            names = ("kl", "reward_penalty" if w.in_reward else "kl_penalty")
        lines = [line for name in names for line in assignment(name, getattr(evaluation, name))]
        if stage == "surrogate":
            lines += [
                "# derivative of the surrogate by the ratio",
                *assignment("d_ratio", surrogate_slope(evaluation)),
            ]
        return [*_NOTE, *lines]

    def back(_w):
        name = _GRADIENTS[stage]
        return [*_NOTE, *assignment(name, getattr(evaluation, name))]

    return Snippet(code, back)
