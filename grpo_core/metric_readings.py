"""What metrics of several trainers are read from: masked means, scores, lengths, log-ratios."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .numerics import difference, plus, total


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One line of a trainer's log.

    ``read`` maps an evaluation to a number; to a mapping from the rest of the name to numbers
    where ``name`` ends with a slash; or to None where the trainer would not log it.
    """

    name: str
    help: str
    read: Callable


def table_of(rows, evaluation):
    """The rows of a table as ordered name -> number, without those that do not apply."""
    found = {}
    for row in rows:
        value = row.read(evaluation)
        if isinstance(value, dict):
            found |= {row.name + key: number for key, number in value.items()}
        elif value is not None:
            found[row.name] = value
    return found


def option(evaluation, stage, key, default=None):
    """Value of an option, `default` where the chosen row has no such option."""
    return evaluation.scenario.conventions[stage].options.get(key, default)


def chosen(evaluation, stage):
    """Key of the chosen row."""
    return evaluation.scenario.conventions[stage].variant


def token_mean(evaluation, values, among=None):
    """Mean over the tokens that stay in the loss; 0 if there are none, as trainers log it."""
    among = evaluation.kept if among is None else among
    count = max(int(np.sum(among)), 1)
    return float(total(np.where(among, values, 0))) / count


def completion_shares(evaluation, flags):
    """Share of flagged tokens in each completion; shape (P, G), 0 where none stays."""
    flagged = np.sum(flags & evaluation.kept, axis=-1)
    return flagged / np.maximum(np.sum(evaluation.kept, axis=-1), 1)


def once(evaluation):
    """One position of each completion with tokens: its first; bool (P, G, L)."""
    return evaluation.valid & (np.cumsum(evaluation.valid, axis=-1) == 1)


def per_completion(evaluation):
    """True if all tokens of a completion share one ratio."""
    return chosen(evaluation, "ratio") in ("sequence", "sequence_product")


def scores_before_kl(evaluation):
    """Scores without the penalty that a KL in the reward takes off them; (P, G)."""
    penalty = total(evaluation.reward_penalty, axis=-1)
    return np.where(evaluation.scored, plus(evaluation.scores, penalty), np.nan)


def range_of(values):
    """``{'mean', 'max', 'min'}`` of a flat array; None if it is empty."""
    if not values.size:
        return None
    return {
        "mean": float(total(values)) / values.size,
        "max": float(np.max(values)),
        "min": float(np.min(values)),
    }


def mean_and_std(values):
    """``{'mean', 'std'}`` (sample std) of the values that are there; std from two on."""
    known = values[~np.isnan(values)]
    if not known.size:
        return None
    return {"mean": float(total(known)) / known.size} | sample_std(known)


def sample_std(known):
    """``{'std'}`` with n - 1; empty below two values, where it is not defined."""
    if known.size < 2:
        return {}
    with np.errstate(over="ignore", invalid="ignore"):
        std = float(np.std(known.astype(np.float64), ddof=1))
    return {"std": np.inf if np.isnan(std) else std}


def lengths_of(evaluation):
    """Tokens of every completion that is there; flat."""
    return evaluation.lengths[evaluation.scenario["present"]]


def token_log_ratio(evaluation):
    """``logp_new - logp_old`` of single tokens, clamped where the ratio per token is; (P, G, L)."""
    step = difference(evaluation.logp_new, evaluation.logp_old)
    clamp = option(evaluation, "ratio", "clamp", 0.0)
    single = chosen(evaluation, "ratio") == "token"  # one of a whole completion clamps the mean
    return np.clip(step, -clamp, clamp) if clamp and single else step
