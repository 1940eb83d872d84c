"""Where an option that a trainer does not have makes no difference to the batch at hand."""

import numpy as np

from ..scenario import effective_logp_new


def _nothing_missing(scenario, difference):
    missing = np.any(np.isnan(scenario["rewards"][scenario["present"]]))
    of_terms = np.any(np.isnan(scenario.arrays.get("term_values", 0.0)))
    return not missing and not of_terms


def _no_group_of_one(scenario, difference):
    alone = np.any(np.sum(scenario["present"], axis=1) == 1)
    return _nothing_missing(scenario, difference) and not alone


def _no_empty_completion(scenario, difference):
    # Completions that leave the loss are empty, too.
    kept = all(scenario.conventions[stage].variant == "keep" for stage in ("truncated", "tied"))
    return kept and bool(np.all(np.any(scenario.valid, axis=-1)[scenario["present"]]))


def _bound(difference):
    """The narrower of two bounds of which 0 is none."""
    return min(bound or np.inf for bound in (difference.left, difference.right))


def _largest(scenario, *pairs):
    """The largest distance of two log-probabilities at tokens that count."""
    with np.errstate(invalid="ignore"):
        far = [np.abs(left - right)[scenario.valid] for left, right in pairs]
    far = np.concatenate(far, axis=None)
    return float(np.max(far, initial=0.0)) if not np.any(np.isnan(far)) else np.inf


def _ratio_inside(scenario, difference):
    far = _largest(scenario, (effective_logp_new(scenario)[0], scenario["logp_old"]))
    whole = scenario.conventions["ratio"].variant == "sequence_product"
    return far * (scenario.sizes["L"] if whole else 1) <= _bound(difference)


def _reference_distance(scenario):
    policies = (effective_logp_new(scenario)[0], scenario["logp_old"])
    return _largest(scenario, *((scenario["logp_ref"], policy) for policy in policies))


def _kl_inside(scenario, difference):
    far = _reference_distance(scenario)
    with np.errstate(over="ignore"):
        largest = max(far, float(np.expm1(far)) - far)  # no estimator is above k3 or |d|
    return largest <= _bound(difference)


def _score_is_to_come(scenario, difference):
    return (difference.left, difference.right) == ("uncompared", "returns") and (
        "token_rewards" not in scenario
    )


# "stage.option", or "stage." for its variant -> (scenario, difference) -> is it the same here?
QUIET = {
    "advantage.": _score_is_to_come,
    "rewards.missing": _nothing_missing,
    "rewards.tokens": lambda scenario, difference: "token_rewards" not in scenario,
    "advantage.alone": _no_group_of_one,
    "aggregation.empty": _no_empty_completion,
    "surrogate.sampler": lambda scenario, difference: "sampler_weights" not in scenario,
    "ratio.clamp": _ratio_inside,
    "kl.clamp_in": lambda scenario, difference: _reference_distance(scenario) <= _bound(difference),
    "kl.clamp_out": _kl_inside,
}
