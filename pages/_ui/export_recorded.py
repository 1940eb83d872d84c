"""Variants without code of their own: the arrays that they gave, written out in the script."""

import numpy as np

from grpo_core.numerics import times

from .computed import Between
from .export_arrays import assignment
from .export_spelling import Snippet

_NOTE = (
    "# This variant has no plain-NumPy transcription yet: below are the numbers that it gives",
    "# for this batch. They do not follow if an array above is changed.",
)

# What the KL is called by where it enters, in a script and in `grpo_core.kl.KL`.
_PENALTIES = {
    "objective": ("kl_penalty", "penalty"),
    "reward": ("reward_penalty", "reward_penalty"),
    "returns": ("return_penalty", "return_penalty"),
}


def _kl(w, between):
    name, own = _PENALTIES[w.place]
    return {"kl": between.kl.value, name: getattr(between.kl, own)}


def _advantage(w, between):
    found = between.advantages
    names = ("mean", "std", "advantages", "token_advantages")
    return {name: getattr(found, name) for name in names}


def _surrogate(w, between):
    found = between.surrogate
    flags = {name: getattr(found, name) for name in _FLAGS}
    return {"surrogate": found.value, **flags, "d_ratio": found.d_ratio}


_FLAGS = ("clipped_low", "clipped_high", "dual_clipped")


def _kept(stage):
    def arrays(w, between):
        found = getattr(between, stage)
        return {f"stays_{stage}": found.tokens, f"counts_{stage}": found.counted}

    return arrays


# What later lines read of a stage, by name.
_GIVES = {
    "kl": _kl,
    "rewards": lambda w, between: {
        "scores": between.scores.scores,
        "scored": between.scores.scored,
    },
    "advantage": _advantage,
    "ratio": lambda w, between: {
        "log_ratio": between.ratio.log_ratio,
        "ratio": between.ratio.ratio,
    },
    "whitening": lambda w, between: {"token_advantages": w.evaluation.token_advantages},
    "truncated": _kept("truncated"),
    "tied": _kept("tied"),
    "selection": lambda w, between: {"selected": np.asarray(between.selection)},
    "correction": lambda w, between: {"correction": np.asarray(between.correction)},
    "surrogate": _surrogate,
    "entropy": lambda w, between: {"entropy_bonus": w.evaluation.entropy_bonus},
    "aggregation": lambda w, between: {"weight": between.aggregated},
    "accumulation": lambda w, between: {"weight": w.evaluation.weight},
}


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
    between = Between(evaluation)

    def code(w):
        lines = list(_NOTE)
        for name, array in _GIVES[stage](w, between).items():
            lines += assignment(name, np.asarray(array))
        if stage in ("truncated", "tied"):
            lines += [f"kept = kept & stays_{stage}", f"counted = counted & counts_{stage}"]
        if stage == "aggregation" and w.filters:
            lines.append("weight = np.where(kept, weight, 0.0)")
        return lines

    return Snippet(code, _BACKS.get(stage, lambda *_: None)(evaluation, between))


def _ratio_back(evaluation, between):
    """Of the surrogate, or of the KL where it is weighted by the ratio."""
    gradients = {
        "policy_gradient": lambda: evaluation.policy_gradient,
        "kl_through_ratio": lambda: between.ratio.backward(
            0 - times(evaluation.weight, between.kl.d_ratio)
        ),
    }
    return lambda w, pull, name: [*_NOTE, *assignment(name, gradients[name]())]


def _kl_back(evaluation, between):
    return lambda w, ratio: [*_NOTE, *assignment("kl_gradient", evaluation.kl_gradient)]


def _surrogate_back(evaluation, between):
    if between.surrogate.backward is None and between.surrogate.d_logp is None:
        return None
    return lambda w, pull: [*_NOTE, *assignment("policy_gradient", evaluation.policy_gradient)]


_BACKS = {"ratio": _ratio_back, "kl": _kl_back, "surrogate": _surrogate_back}
