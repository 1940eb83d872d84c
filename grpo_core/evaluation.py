"""evaluate: run all stages once and keep every array that arises on the way."""

from dataclasses import dataclass

import numpy as np

from .attribution import Attribution, attribute
from .numerics import k3, nested_total, norm, plus, times, total
from .scenario import Scenario, as_batch


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """Everything computed from a scenario. P prompts, G completions, L token positions.

    Attributes
    ----------
    valid : ndarray of bool, (P, G, L)
        Positions that count. Every per-token array is 0 elsewhere.
    lengths : ndarray of int, (P, G)
        Valid tokens of each completion.
    held : ndarray of bool, (P, G, L)
        Where the drift would have led above 0 and was held there.
    logp_new, logp_old, logp_ref : ndarray, (P, G, L)
        As used: drift applied.
    scores : ndarray, (P, G)
        Rewards less the KL penalty in the reward; 0 where not ``scored``.
    scored : ndarray of bool, (P, G)
    mean, std : ndarray, (P,)
        Of each group's scores, std as the convention divides by it.
    tied : ndarray of bool, (P,)
        Groups of two or more scores that are all equal; under process supervision those in
        which no token has an advantage.
    advantages : ndarray, (P, G)
        Under process supervision the sum over a completion's steps.
    attribution : Attribution or None
        Of the advantages to task reward and shaping terms, where scores are combined and
        advantages computed from them.
    step_advantages : ndarray, (P, G, S), or None
        Normalised step rewards under process supervision, 0 where there is no step.
    token_advantages, log_ratio, ratio, surrogate, kl : ndarray, (P, G, L)
    clipped_low, clipped_high, dual_clipped : ndarray of bool, (P, G, L)
        Tokens whose policy gradient is stopped, aware of the advantage's sign.
    kl_penalty, reward_penalty : ndarray, (P, G, L)
        What the KL takes from the per-token objective, and from the reward; see `KL`.
    per_token : ndarray, (P, G, L)
        Surrogate less the KL penalty.
    weight, contribution : ndarray, (P, G, L)
        contribution = weight * per_token, and it sums to the objective.
    policy_gradient, kl_gradient, gradient : ndarray, (P, G, L)
        d objective / d logp_new, in two parts and whole.
    objective, loss, mean_kl : float
        Maximised; minimised (= -objective); KL aggregated with the same weights.
    metrics : dict of float
        See `metrics`.
    """

    scenario: Scenario | None
    valid: np.ndarray
    lengths: np.ndarray
    held: np.ndarray
    logp_new: np.ndarray
    logp_old: np.ndarray
    logp_ref: np.ndarray
    scores: np.ndarray
    scored: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    tied: np.ndarray
    advantages: np.ndarray
    token_advantages: np.ndarray
    log_ratio: np.ndarray
    ratio: np.ndarray
    clipped_low: np.ndarray
    clipped_high: np.ndarray
    dual_clipped: np.ndarray
    surrogate: np.ndarray
    kl: np.ndarray
    kl_penalty: np.ndarray
    reward_penalty: np.ndarray
    per_token: np.ndarray
    weight: np.ndarray
    contribution: np.ndarray
    policy_gradient: np.ndarray
    kl_gradient: np.ndarray
    gradient: np.ndarray
    objective: float
    loss: float
    mean_kl: float
    metrics: dict
    attribution: Attribution | None = None
    step_advantages: np.ndarray | None = None


def evaluate(scenario):
    """Compute every intermediate array of a scenario under its conventions.

    Parameters
    ----------
    scenario : Scenario

    Returns
    -------
    Evaluation
        Never NaN; infinite where the exact result is beyond the number type.
    """
    batch, held = as_batch(scenario)
    return evaluate_batch(batch, scenario.conventions, held=held, scenario=scenario)


@np.errstate(under="ignore")  # what is too small to matter may vanish, whatever NumPy is set to
def evaluate_batch(batch, conventions, *, held=None, scenario=None):
    """`evaluate` for arrays that are already prepared, see `grpo_core.batch.prepare`."""
    kl = conventions.run("kl", batch)
    scores = conventions.run("rewards", batch, kl.reward_penalty)
    advantages = conventions.run("advantage", batch, scores)
    ratio = conventions.run("ratio", batch)
    surrogate = conventions.run("surrogate", batch, ratio, advantages.token_advantages)
    weight = conventions.run("aggregation", batch)

    per_token = plus(surrogate.value, -kl.penalty)
    contribution = times(weight, per_token)
    policy_gradient = ratio.backward(times(weight, surrogate.d_ratio))
    kl_gradient = 0 - times(weight, kl.derivative)
    objective = nested_total(contribution)
    tied = _tied(scores, advantages)
    arrays = {
        "ratio": ratio.ratio,
        "log_ratio": ratio.log_ratio,
        "clipped_low": surrogate.clipped_low,
        "clipped_high": surrogate.clipped_high,
        "dual_clipped": surrogate.dual_clipped,
        "gradient": plus(policy_gradient, kl_gradient),
    }
    return Evaluation(
        scenario=scenario,
        valid=batch.valid,
        lengths=batch.lengths,
        held=np.zeros_like(batch.valid) if held is None else held,
        logp_new=batch.logp_new,
        logp_old=batch.logp_old,
        logp_ref=batch.logp_ref,
        scores=scores.scores,
        scored=scores.scored,
        mean=advantages.mean,
        std=advantages.std,
        tied=tied,
        advantages=advantages.advantages,
        token_advantages=advantages.token_advantages,
        surrogate=surrogate.value,
        kl=kl.value,
        kl_penalty=kl.penalty,
        reward_penalty=kl.reward_penalty,
        per_token=per_token,
        weight=weight,
        contribution=contribution,
        policy_gradient=policy_gradient,
        kl_gradient=kl_gradient,
        objective=objective,
        loss=0.0 - objective,  # not -objective, which would show -0.0
        mean_kl=nested_total(times(weight, kl.value)),
        metrics=metrics(valid=batch.valid, tied=tied, **arrays),
        attribution=None
        if advantages.parts is None
        else attribute(scores.components, advantages.parts),
        step_advantages=advantages.steps,
        **arrays,
    )


def _tied(scores, advantages):
    """Groups of two or more scores that are all equal, shape (P,).

    Under process supervision steps and not scores are compared: groups without an advantage.
    """
    if advantages.steps is not None:
        return ~np.any(advantages.token_advantages, axis=(1, 2))
    low = np.min(np.where(scores.scored, scores.scores, np.inf), axis=1)
    high = np.max(np.where(scores.scored, scores.scores, -np.inf), axis=1)
    return (np.sum(scores.scored, axis=1) > 1) & (low == high)


def metrics(*, valid, tied, ratio, log_ratio, clipped_low, clipped_high, dual_clipped, gradient):
    """Shares and sizes that trainers log, each over all valid tokens or all groups.

    Returns
    -------
    dict of float
        ``clip_low``, ``clip_high``, ``dual_clip``, ``clip`` (any of them): shares of valid
        tokens. ``tied_groups``: share of groups. ``kl_to_old``: mean of k3 of the
        log-ratio, an estimate of KL(old || new). ``ratio_min``, ``ratio_max``.
        ``gradient_norm``: Euclidean norm of d objective / d logp_new.
    """
    count = max(int(np.sum(valid)), 1)
    clipped = clipped_low | clipped_high | dual_clipped
    return {
        "clip_low": float(np.sum(clipped_low)) / count,
        "clip_high": float(np.sum(clipped_high)) / count,
        "dual_clip": float(np.sum(dual_clipped)) / count,
        "clip": float(np.sum(clipped)) / count,
        "tied_groups": float(np.mean(tied)),
        "kl_to_old": float(total(np.where(valid, k3(log_ratio), 0))) / count,
        "ratio_min": float(np.min(ratio, where=valid, initial=np.inf)) if valid.any() else 1.0,
        "ratio_max": float(np.max(ratio, where=valid, initial=0.0)) if valid.any() else 1.0,
        "gradient_norm": norm(gradient),
    }
