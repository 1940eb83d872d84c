"""What happens over the steps of a run: rewards, task, lengths, tied groups, shares of the terms.

S scored steps, Q groups, G completions, K terms. Everything is recounted from the completions.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import ScenarioError
from ..numerics import total
from .by_step import BySteps
from .rules import parts_of
from .run import equal_sums, total_rewards


@dataclass(frozen=True, eq=False, kw_only=True)
class Series:
    """One value for each scored step; NaN where a step has none.

    Attributes
    ----------
    steps : ndarray of int, (S,)
    groups, completions : ndarray of int, (S,)
    reward : ndarray, (S,)
        Mean total reward.
    terms : ndarray, (S, K)
        Mean of each term, unweighted, over the completions that it scored.
    task, task_error : ndarray, (S,)
        Mean of what counts as the task, and the standard error of that mean over groups.
    length, length_right, length_wrong : ndarray, (S,)
        Mean length of all completions; of those whose task value is above the middle of its
        range, and of the others.
    tied : ndarray of int, (S,)
        Groups whose sums are all equal.
    shaped_only : ndarray of int, (S,)
        Groups that are tied in the task and not in the total: shaping alone decides them.
    shares : ndarray, (S, K)
        Share of each term in the spread within groups, all groups of a step pooled:
        ``sum cov(w_k r_k, R) / sum var(R)``, or of the terms' own advantages where those are
        summed. They add up to 1.
    correlation : ndarray, (S,)
        Of the sum with the task, within groups.
    """

    steps: np.ndarray
    groups: np.ndarray
    completions: np.ndarray
    reward: np.ndarray
    terms: np.ndarray
    task: np.ndarray
    task_error: np.ndarray
    length: np.ndarray
    length_right: np.ndarray
    length_wrong: np.ndarray
    tied: np.ndarray
    shaped_only: np.ndarray
    shares: np.ndarray
    correlation: np.ndarray


# Words in the name of a reward or measure that is the task itself, the surest first, and words
# that say that it is not.
TASK_WORDS = (
    *("correctness", "correct", "accuracy", "acc", "task", "success", "solved", "solve"),
    *("exact", "answer", "verifier", "pass", "math"),
)
NOT_TASK_WORDS = {"format", "penalty", "incorrect", "wrong", "length", "bonus", "style", "overlong"}


def guess_task(run):
    """Name of the term or measure that is the task, most likely; the first term if none tells."""
    words = {
        name: set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))
        for name in (*run.names, *run.measures)
    }
    likely = [
        name
        for hint in TASK_WORDS
        for name, own in words.items()
        if hint in own and not own & NOT_TASK_WORDS
    ]
    return likely[0] if likely else run.names[0]


def values_of(run, name):
    """Values (Q, G) of a term or a measure by its name."""
    if name in run.names:
        return run.terms[..., run.names.index(name)]
    if name in run.measures:
        return run.measures[name]
    raise ScenarioError(f"There is no reward or measure named {name!r} in this run.")


@np.errstate(over="ignore", under="ignore", invalid="ignore")  # rewards beyond 1e154 have no square
def series(run, weights, task, parts=None):
    """The `Series` of a run under given weights of its terms.

    Parameters
    ----------
    run : Run
    weights : ndarray, (K,)
    task : str
        A term or a measure.
    parts : ndarray, (Q, G, K), optional
        What each term adds to what a group is compared by, see `Fit`; weighted rewards if
        nothing else is known. Ties, shares and the correlation are those of their sums.
    """
    totals, worth = total_rewards(run, weights), values_of(run, task)
    scored, by = run.scored, BySteps(run)
    parts = parts_of(run, None, weights, 0.0) if parts is None else parts
    compared = np.where(scored, total(parts, axis=-1), 0.0)
    judged = np.isfinite(worth) & run.present
    right = judged & (worth > _middle(worth, judged))
    lengths = run.lengths if run.lengths is not None else np.full(run.present.shape, np.nan)
    tied = equal_sums(scored, parts)
    silent = equal_sums(judged, np.where(judged, worth, 0.0)[..., None])
    moments = _moments(parts, compared, scored)
    task_mean, task_error = by.mean_and_error(worth, judged)
    return Series(
        steps=run.every_step,
        groups=by.sums(np.ones(len(run.steps))).astype(int),
        completions=by.sums(run.sizes).astype(int),
        reward=by.mean(totals, scored),
        terms=np.stack(
            [by.mean(run.terms[..., k], run.known[..., k]) for k in range(len(weights))], axis=1
        ),
        task=task_mean,
        task_error=task_error,
        length=by.mean(lengths, run.present),
        length_right=by.mean(lengths, right),
        length_wrong=by.mean(lengths, judged & ~right),
        tied=by.sums(tied).astype(int),
        shaped_only=by.sums(silent & ~tied & (scored.sum(axis=1) > 1)).astype(int),
        shares=by.ratio(moments, total(moments, axis=1)),
        correlation=_correlation(by, compared, worth, scored & judged),
    )


def _middle(values, counts):
    known = values[counts]
    return (known.min() + known.max()) / 2 if known.size else 0.0


def _moments(weighted, totals, scored):
    """Sum over a group of (w_k r_k - its mean) (R - its mean), (Q, K)."""
    number = np.maximum(scored.sum(axis=1), 1)[:, None]
    apart = np.where(scored, totals - totals.sum(axis=1, keepdims=True) / number, 0.0)
    return np.einsum("qg,qgk->qk", apart, weighted)


def _correlation(by, totals, worth, both):
    left, right = np.where(both, totals, 0.0), np.where(both, worth, 0.0)
    across = by.sums(_moments(right[..., None], left, both)[:, 0])
    own = by.sums(_moments(left[..., None], left, both)[:, 0])
    other = by.sums(_moments(right[..., None], right, both)[:, 0])
    below = np.sqrt(own * other)
    return np.divide(across, below, out=np.full(by.size, np.nan), where=below > 1e-12)


LOGGED: Mapping[str, tuple[str, ...]] = {
    "reward": ("reward", "critic/rewards/mean", "critic/score/mean", "train/reward"),
    # Not verl's actor/ppo_kl: that is the distance to the policy before the update.
    "kl": ("kl", "actor/kl_loss", "actor/reward_kl_penalty", "train/kl", "kl_penalty"),
    "clip_share": ("clip_ratio/region_mean", "clip_ratio", "actor/pg_clipfrac", "ppo_clip_ratio"),
    "entropy": ("entropy", "actor/entropy", "approx_entropy"),
    "length": ("completions/mean_length", "completion_length", "response_length/mean"),
    "tied_share": ("frac_reward_zero_std",),
    "loss": ("loss", "actor/pg_loss"),
    "reward_std": ("reward_std",),
}


def logged(log, what):
    """The name under which a log holds something, and its steps and values; None if it does not.

    Returns
    -------
    tuple of (str, ndarray (S,), ndarray (S,)) or None
    """
    for name in LOGGED[what] if log is not None else ():
        if name in log and np.any(np.isfinite(log.values[name])):
            known = np.isfinite(log.values[name])
            return name, log.steps[known], log.values[name][known]
    return None
