"""What verl's PPO trainer logs for GRPO, name by name (verl 0.9.1)."""

import numpy as np

from .evaluation import in_returns
from .metric_readings import (
    Metric,
    chosen,
    lengths_of,
    option,
    range_of,
    scores_before_kl,
    token_log_ratio,
    token_mean,
)
from .numerics import plus, times, total
from .scenario import as_batch
from .surrogate_weighted import cispo_bounds


def _pg_loss(evaluation):
    return 0.0 - float(total(times(evaluation.weight, evaluation.surrogate)))


def _kl_in_loss(evaluation):
    return option(evaluation, "kl", "beta") and option(evaluation, "kl", "place") == "objective"


def _kl_loss(evaluation):
    return evaluation.mean_kl if _kl_in_loss(evaluation) else None


def _kl_coef(evaluation):
    return option(evaluation, "kl", "beta") if _kl_in_loss(evaluation) else None


def _kl_in_reward(evaluation):
    """Mean over completions of their token-mean KL, where it is in the reward; 0 without tokens."""
    if not _coefficient_in_reward(evaluation):
        return None
    means = total(evaluation.kl, axis=-1) / np.maximum(evaluation.lengths, 1)
    return float(total(means)) / max(int(np.sum(evaluation.scenario["present"])), 1)


def _coefficient_in_reward(evaluation):
    place, beta = (option(evaluation, "kl", key) for key in ("place", "beta"))
    return beta if beta and place in ("reward", "returns") else None


def _entropy(evaluation):
    """Averaged as the loss is."""
    if "entropy" not in evaluation.scenario.arrays:
        return None
    entropy = np.where(evaluation.valid, evaluation.scenario["entropy"], 0.0)
    return float(total(times(evaluation.weight, entropy)))


def _ppo_kl(evaluation):
    return token_mean(evaluation, 0.0 - token_log_ratio(evaluation))


def _clipfrac(evaluation):
    return _fraction(evaluation, _CLIPFRACS)


def _fraction(evaluation, kinds):
    kind = evaluation.scenario.conventions.variant("surrogate").clip_fraction
    return token_mean(evaluation, kinds[kind](evaluation)) if kind else None


def _stopped(evaluation):
    return evaluation.clipped_low | evaluation.clipped_high


def _outside(evaluation):
    """CISPO's: outside the bounds whatever the advantage's sign is."""
    low, high = cispo_bounds(**evaluation.scenario.conventions["surrogate"].options)
    value_type = evaluation.ratio.dtype.type
    below = evaluation.ratio < value_type(low)
    return evaluation.valid & (below | (evaluation.ratio > value_type(high)))


def _outside_logs(evaluation):
    """GMPO's: log-ratios outside the bounds on either side, held or not."""
    low, high = (option(evaluation, "surrogate", f"log_{side}") for side in ("low", "high"))
    step = token_log_ratio(evaluation)
    return evaluation.valid & ((step < -low) | (step > high))


# What a surrogate's clip fraction counts, by its row's name for it, and what the lower one does.
# GMPO counts tokens with A > 0 in the one fraction, and those with A < 0 in the other.
_CLIPFRACS = {
    "stopped": _stopped,
    "bounds": _outside,
    "log bounds": lambda evaluation: _outside_logs(evaluation) & (evaluation.token_advantages > 0),
}
_LOWER = {
    "stopped": lambda evaluation: evaluation.dual_clipped,
    "bounds": lambda evaluation: evaluation.dual_clipped,
    "log bounds": lambda evaluation: _outside_logs(evaluation) & (evaluation.token_advantages < 0),
}


def _clipfrac_lower(evaluation):
    return _fraction(evaluation, _LOWER)


def _score(evaluation):
    scores = scores_before_kl(evaluation)
    return range_of(scores[~np.isnan(scores)])


def _rewards(evaluation):
    return range_of(evaluation.scores[evaluation.scored])


def _advantages(evaluation):
    return range_of(evaluation.token_advantages[evaluation.valid])


def _returns(evaluation):
    """Returns of tokens: those to go where rewards stay per token, else the advantages."""
    if chosen(evaluation, "advantage") != "returns":
        return _advantages(evaluation)
    batch, _ = as_batch(evaluation.scenario)
    conventions = evaluation.scenario.conventions
    ratio = conventions.run("ratio", batch)
    kl = conventions.run("kl", batch, ratio)
    scores = conventions.run("rewards", batch, kl.reward_penalty)
    own = conventions.run("advantage", batch, scores).token_advantages
    return range_of(plus(own, -in_returns(batch, kl))[evaluation.valid])


def _response_length(evaluation):
    lengths = lengths_of(evaluation)
    spread = range_of(lengths)
    if spread is None:
        return None
    width = evaluation.valid.shape[-1]
    return spread | {"clip_ratio": float(np.mean(lengths == width))}


ROWS = (
    Metric(name="actor/pg_loss", help="The loss without KL and entropy.", read=_pg_loss),
    Metric(
        name="actor/ppo_kl",
        help="Mean over tokens of logp_old - logp_new: k1 to the old policy, often negative.",
        read=_ppo_kl,
    ),
    Metric(
        name="actor/pg_clipfrac",
        help="Share of tokens whose clipped loss is above the unclipped one; CISPO: outside "
        "the bounds whatever the sign.",
        read=_clipfrac,
    ),
    Metric(
        name="actor/pg_clipfrac_lower",
        help="Share of tokens that the dual clip holds.",
        read=_clipfrac_lower,
    ),
    Metric(name="actor/kl_loss", help="KL averaged as the loss is.", read=_kl_loss),
    Metric(name="actor/kl_coef", help="Weight of the KL.", read=_kl_coef),
    Metric(
        name="actor/reward_kl_penalty",
        help="KL in the reward: token means, averaged over completions.",
        read=_kl_in_reward,
    ),
    Metric(
        name="actor/reward_kl_penalty_coeff",
        help="Weight of the KL in the reward.",
        read=_coefficient_in_reward,
    ),
    Metric(name="actor/entropy", help="Entropy averaged as the loss is.", read=_entropy),
    Metric(name="critic/score/", help="Scores before a KL in the reward.", read=_score),
    Metric(name="critic/rewards/", help="Scores less a KL in the reward.", read=_rewards),
    Metric(
        name="critic/advantages/",
        help="Over tokens, so long completions count more: the mean need not be 0.",
        read=_advantages,
    ),
    Metric(
        name="critic/returns/",
        help="Over tokens: what is still to come where rewards stay on their tokens "
        "(reinforce_plus_plus), else the advantages.",
        read=_returns,
    ),
    Metric(
        name="response_length/",
        help="Tokens; clip_ratio is the share that fills the width.",
        read=_response_length,
    ),
)
