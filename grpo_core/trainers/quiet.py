"""Where an option that a trainer does not have makes no difference to the batch at hand."""

import numpy as np

from ..comparison_choices import applied
from ..errors import ScenarioError
from ..evaluation import evaluate
from ..scenario import effective_logp_new
from .alike import canonical

_EVALUATED = 20_000  # tokens up to which differences are tried out; beyond, rules alone tell
_SAME = 1e-12  # of the larger one; a smaller difference is rounding


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


def felt(scenario, left, right, differences):
    """Which differences of two conventions change the loss or the gradient of a batch.

    Parameters
    ----------
    scenario : Scenario or None
        Without one all of them may.
    left, right : Conventions
    differences : sequence of Difference
        From left to right, as `telling_differences` gives them.

    Returns
    -------
    list of bool
        Of small batches each difference is made alone in `left`; where none is felt alone, and
        all together are, all count. Of large ones a few rules tell, see `QUIET`.
    """
    if scenario is None:
        return [True] * len(differences)
    ruled = [not _ruled_out(scenario, each) for each in differences]
    if scenario["mask"].size > _EVALUATED or not any(ruled):
        return ruled
    left, right = canonical(left), canonical(right)
    start = _trained(scenario, left)
    alone = [
        possible and not _alike(start, _trained(scenario, applied(left, each, right)))
        for possible, each in zip(ruled, differences, strict=True)
    ]
    if any(alone) or _alike(start, _trained(scenario, right)):
        return alone
    return ruled


def _ruled_out(scenario, difference):
    rule = QUIET.get(f"{difference.stage}.{difference.option}")
    return rule is not None and rule(scenario, difference)


def _trained(scenario, conventions):
    """Loss and gradient; None where the scenario lacks an array that the conventions ask for."""
    try:
        found = evaluate(scenario.with_conventions(conventions))
    except ScenarioError:
        return None
    return np.append(found.gradient, found.loss).astype(np.float64)


@np.errstate(invalid="ignore", over="ignore")
def _alike(one, other):
    if one is None or other is None:
        return False
    largest = max(np.max(np.abs(one)), np.max(np.abs(other)))
    return bool(np.all((one == other) | (np.abs(one - other) <= _SAME * largest)))
