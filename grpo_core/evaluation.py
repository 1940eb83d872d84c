"""evaluate: run all stages once and keep every array that arises on the way."""

from dataclasses import dataclass, replace

import numpy as np

from .attribution import Attribution, attribute
from .filters import tied_groups
from .numerics import cast, k3, nested_total, norm, plus, times, total
from .returns import returns_to_go
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
        Groups in which nothing tells the completions apart, see `filters.tied_groups`.
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
    factor, entropy_bonus : ndarray, (P, G, L)
        What the surrogate was multiplied by (selection and sampler correction), and what the
        entropy adds.
    kept : ndarray of bool, (P, G, L)
        Valid tokens that stay in the loss.
    per_token : ndarray, (P, G, L)
        Surrogate less the KL penalty, plus the entropy bonus.
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
    factor: np.ndarray
    entropy_bonus: np.ndarray
    kept: np.ndarray
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
    ratio = conventions.run("ratio", batch)
    kl = conventions.run("kl", batch, ratio)
    scores = conventions.run("rewards", batch, kl.reward_penalty)
    advantages = conventions.run("advantage", batch, scores)
    token_advantages = _token_advantages(batch, conventions, advantages, kl)
    kept, counted = _kept(batch, conventions, scores, advantages)
    factor = times(
        conventions.run("selection", batch, token_advantages), conventions.run("correction", batch)
    )
    surrogate = conventions.run("surrogate", batch, ratio, token_advantages)
    entropy = conventions.run("entropy", batch)
    weight = _weight(batch, conventions, kept, counted)

    value = times(factor, surrogate.value)
    per_token = plus(plus(value, -kl.penalty), entropy)
    contribution = times(weight, per_token)
    policy_gradient = _policy_gradient(times(weight, factor), surrogate, ratio)
    kl_gradient = _kl_gradient(weight, kl, ratio)
    objective = nested_total(contribution)
    tied = tied_groups(scores, advantages)
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
        token_advantages=token_advantages,
        surrogate=value,
        factor=factor,
        entropy_bonus=entropy,
        kept=kept,
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


def _token_advantages(batch, conventions, advantages, kl):
    """Advantages less the KL in the returns, whitened."""
    taken = in_returns(batch, kl)
    return conventions.run("whitening", batch, advantages.token_advantages, taken)


def in_returns(batch, kl):
    """What the KL takes off the advantage of each token, (P, G, L): its own and that to come."""
    penalty = kl.return_penalty
    if not np.any(penalty):
        return penalty
    return cast(returns_to_go(penalty, batch.valid), batch.dtype)


def _kept(batch, conventions, scores, advantages):
    """Tokens that stay in the loss, and those that its denominators count; bool (P, G, L)."""
    truncated = conventions.run("truncated", batch, scores, advantages)
    tied = conventions.run("tied", batch, scores, advantages)
    return truncated.tokens & tied.tokens, truncated.counted & tied.counted


def _weight(batch, conventions, kept, counted):
    """Weight of each token; 0 where it does not stay in the loss."""
    weight = conventions.run("aggregation", replace(batch, valid=counted))
    factor = conventions.run("accumulation", batch)
    return np.where(kept, times(weight, factor), batch.dtype.type(0))


def _policy_gradient(upstream, surrogate, ratio):
    """D objective / d logp_new of the surrogate, from dJ/dvalue."""
    if surrogate.backward is not None:
        return surrogate.backward(upstream)
    gradient = ratio.backward(times(upstream, surrogate.d_ratio))
    if surrogate.d_logp is None:
        return gradient
    return plus(gradient, times(upstream, surrogate.d_logp))


def _kl_gradient(weight, kl, ratio):
    """D objective / d logp_new of the KL penalty, directly and through the ratio."""
    direct = 0 - times(weight, kl.derivative)
    if not np.any(kl.d_ratio):
        return direct
    return plus(direct, ratio.backward(0 - times(weight, kl.d_ratio)))


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
