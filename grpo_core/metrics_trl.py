"""What TRL's GRPOTrainer logs, name by name (trl 1.16.0)."""

import numpy as np

from .metric_readings import (
    Metric,
    chosen,
    completion_shares,
    lengths_of,
    mean_and_std,
    once,
    option,
    per_completion,
    range_of,
    sample_std,
    scores_before_kl,
    token_mean,
)
from .numerics import difference, times, total
from .scenario import as_batch
from .surrogate_weighted import cispo_bounds

ZERO_STD = 1e-8  # torch.isclose(std, 0)


def _reward(evaluation):
    scores = scores_before_kl(evaluation)
    known = scores[~np.isnan(scores)]
    return float(total(known)) / known.size if known.size else None


def _reward_std(evaluation):
    scores = scores_before_kl(evaluation)
    return sample_std(scores[~np.isnan(scores)]).get("std")


def _components(evaluation):
    """Mean and std of each reward function: the task's, and every term by its name."""
    shaped, present = evaluation.attribution, evaluation.scenario["present"]
    columns = {"task": evaluation.scenario["rewards"]}
    if shaped is not None:
        columns |= dict(zip(shaped.names[1:], shaped.values[1:], strict=True))
    found = {}
    for name, values in columns.items():
        both = mean_and_std(np.where(present, values, np.nan)) or {}
        found |= {f"{name}/{key}": value for key, value in both.items()}
    return found or None


def _zero_std(evaluation):
    """Share of groups whose std is 0; one flag for the batch where its std is what divides."""
    if chosen(evaluation, "rewards") == "normalize_then_sum":
        return float(_flat_after_normalising(evaluation))
    scores = scores_before_kl(evaluation)
    rows = scores.reshape(1, -1) if chosen(evaluation, "advantage") == "batch_std" else scores
    several = np.sum(~np.isnan(rows), axis=1) > 1  # one score has no std: NaN, which is not 0
    filled = np.where(np.isnan(rows), np.inf, rows)
    low, high = np.min(filled, axis=1), np.max(np.where(np.isnan(rows), -np.inf, rows), axis=1)
    spread = np.where(several & (high > low), _sample_stds(rows), 0.0)
    return float(np.mean(several & (spread <= ZERO_STD)))


def _sample_stds(rows):
    with np.errstate(all="ignore"):
        known = ~np.isnan(rows)
        count = np.maximum(np.sum(known, axis=1), 2)
        mean = np.sum(np.where(known, rows, 0.0), axis=1) / count
        squares = np.square(np.where(known, rows - mean[:, None], 0.0))
        return np.nan_to_num(np.sqrt(np.sum(squares, axis=1) / (count - 1)), nan=np.inf)


def _flat_after_normalising(evaluation):
    """Whether the sums of normalised rewards are all equal; they are divided by std + eps."""
    advantages = evaluation.advantages[evaluation.scored].astype(np.float64)
    seen = sample_std(advantages).get("std", np.inf)
    if option(evaluation, "rewards", "batch_scale") != "completion":
        return seen <= ZERO_STD
    eps = option(evaluation, "rewards", "batch_eps")
    return seen <= ZERO_STD / (ZERO_STD + eps)  # std / (std + eps) at the tolerance


def _kl(evaluation):
    beta, place = (option(evaluation, "kl", key) for key in ("beta", "place"))
    return token_mean(evaluation, evaluation.kl) if beta and place == "objective" else None


def _entropy(evaluation):
    arrays = evaluation.scenario.arrays
    return token_mean(evaluation, arrays["entropy"]) if "entropy" in arrays else None


def _policy_loss(evaluation):
    """The loss without what the entropy bonus takes off it."""
    if chosen(evaluation, "entropy") == "none":
        return None
    return evaluation.loss + float(total(times(evaluation.weight, evaluation.entropy_bonus)))


def _entropy_coef(evaluation):
    return option(evaluation, "entropy", "coefficient")


def _beyond(evaluation):
    """Tokens below the band with A < 0, and above it with A > 0, as TRL counts them."""
    low, high = (option(evaluation, "surrogate", f"epsilon_{side}") for side in ("low", "high"))
    ratio = evaluation.ratio
    delta = option(evaluation, "surrogate", "delta")
    if delta is not None:  # TRL counts after the ratio has been held at delta
        ratio = np.minimum(ratio, ratio.dtype.type(delta))
    value_type = ratio.dtype.type
    down = (ratio < value_type(1 - low)) & (evaluation.token_advantages < 0)
    up = (ratio > value_type(1 + high)) & (evaluation.token_advantages > 0)
    return down & evaluation.kept, up & evaluation.kept


def _clip_ratio(evaluation):
    if evaluation.scenario.conventions.variant("surrogate").stops != "band":
        return None
    low, high = _beyond(evaluation)
    present = evaluation.scenario["present"]
    if not present.any():
        return None
    return {
        "low_mean": _mean_share(evaluation, low),
        "low_min": float(np.min(completion_shares(evaluation, low)[present])),
        "high_mean": _mean_share(evaluation, high),
        "high_max": float(np.max(completion_shares(evaluation, high)[present])),
        "region_mean": _mean_share(evaluation, low | high),
    }


def _mean_share(evaluation, flags):
    """Share of tokens; of completions where they have one ratio each."""
    if not per_completion(evaluation):
        return token_mean(evaluation, flags)
    present = evaluation.scenario["present"]
    return float(np.mean(np.any(flags, axis=-1)[present])) if present.any() else 0.0


def _cispo_clip_ratio(evaluation):
    if chosen(evaluation, "surrogate") != "cispo":
        return None
    _, bound = cispo_bounds(**evaluation.scenario.conventions["surrogate"].options)
    beyond = evaluation.ratio > evaluation.ratio.dtype.type(bound)
    return _mean_share(evaluation, beyond & (evaluation.token_advantages > 0) & evaluation.kept)


def _phi(evaluation):
    """Mean of VESPO's weight over completions, over tokens where each has an advantage."""
    if chosen(evaluation, "surrogate") != "vespo":
        return None
    batch, _ = as_batch(evaluation.scenario)
    conventions = evaluation.scenario.conventions
    signs = np.where(evaluation.token_advantages >= 0, 1.0, -1.0)
    weighted = conventions.run("surrogate", batch, conventions.run("ratio", batch), signs)
    phi = np.abs(weighted.d_logp)
    if "token_advantages" in conventions.variant("advantage").needs:
        return token_mean(evaluation, phi)
    # A completion without a token has the weight of a ratio of 1.
    whole = np.where(evaluation.lengths > 0, np.max(phi, axis=-1), 1.0)
    present = evaluation.scenario["present"]
    return float(np.mean(whole[present])) if present.any() else None


def _completions(evaluation):
    scenario = evaluation.scenario
    found = _lengths(lengths_of(evaluation), "length")
    if "truncated" in scenario.arrays and scenario["present"].any():
        cut = scenario["truncated"] > 0
        found["clipped_ratio"] = float(np.mean(cut[scenario["present"]]))
        ended = evaluation.lengths[scenario["present"] & ~cut]
        found |= _lengths(ended if ended.size else np.zeros(1), "terminated_length")
    return found or None


def _lengths(values, name):
    spread = range_of(values) or {}
    return {f"{key}_{name}": spread[key] for key in ("mean", "min", "max") if key in spread}


def _sampling_difference(evaluation):
    scenario, valid = evaluation.scenario, evaluation.valid
    if "logp_sampler" not in scenario.arrays or not valid.any():
        return None
    sampler = np.where(valid, scenario["logp_sampler"], 0.0)
    gap = np.abs(difference(evaluation.logp_old, sampler))[valid]
    spread = range_of(gap[~np.isnan(gap)]) or {}
    return {key: spread[key] for key in ("mean", "max") if key in spread} or None


def _sampling_ratio(evaluation):
    """Weights of the sampler correction, bounds applied; of completions where they share one."""
    if chosen(evaluation, "correction") == "none" or not evaluation.valid.any():
        return None
    batch, _ = as_batch(evaluation.scenario)
    weights = evaluation.scenario.conventions.run("correction", batch)
    shared = option(evaluation, "correction", "level") in ("sequence", "sequence_mean")
    spread = range_of(weights[once(evaluation) if shared else evaluation.valid])
    return {key: spread[key] for key in ("min", "mean", "max")}


ROWS = (
    Metric(name="loss", help="What is minimised.", read=lambda evaluation: evaluation.loss),
    Metric(name="reward", help="Mean of the weighted sums of rewards.", read=_reward),
    Metric(
        name="reward_std",
        help="Sample std of the weighted sums over the whole batch, not within groups.",
        read=_reward_std,
    ),
    Metric(name="rewards/", help="Each reward function over the batch.", read=_components),
    Metric(
        name="frac_reward_zero_std",
        help="Share of groups whose scores are all equal.",
        read=_zero_std,
    ),
    Metric(name="kl", help="Mean over tokens, weighted by the ratio where the KL is.", read=_kl),
    Metric(name="entropy", help="Mean over all tokens.", read=_entropy),
    Metric(
        name="policy_loss",
        help="The loss without the entropy bonus, where there is one.",
        read=_policy_loss,
    ),
    Metric(name="entropy_coef", help="Weight of the entropy bonus.", read=_entropy_coef),
    Metric(
        name="clip_ratio/",
        help="Share of tokens outside the band on the side that the advantage's sign stops.",
        read=_clip_ratio,
    ),
    Metric(
        name="cispo_clip_ratio",
        help="Share of tokens with A > 0 whose ratio is above the bound.",
        read=_cispo_clip_ratio,
    ),
    Metric(name="vespo/phi_seq_mean", help="Mean weight of a completion.", read=_phi),
    Metric(name="completions/", help="Lengths, and the share of cut ones.", read=_completions),
    Metric(
        name="sampling/sampling_logp_difference/",
        help="Size of the difference of trainer and sampler.",
        read=_sampling_difference,
    ),
    Metric(
        name="sampling/importance_sampling_ratio/",
        help="Weights of the sampler correction, after truncating or masking.",
        read=_sampling_ratio,
    ),
)
