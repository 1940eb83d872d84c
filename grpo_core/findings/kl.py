"""Findings about the pull towards the reference policy."""

import numpy as np

from ..errors import place
from ..kl import KLS
from ..kl_curves import kl_curve, kl_distance, mean_estimates
from ..numerics import times, total
from ..words import count, groups, listing, number, opening, percent
from . import facts
from .row import FindingRow

# A spike holds this share of the mean KL; in a large batch less will do if it is this many
# times an even share.
SPIKE_SHARE, SPIKE_SHARE_OF_MANY, SPIKE_TIMES = 0.25, 0.05, 50
SPIKE_ABOVE_OTHERS = 10  # times the mean of the others
ESTIMATES_APART = 0.5  # of the largest mean: beyond this the estimates disagree
ESTIMATES_FROM = 0.2  # nats; below this a disagreement of so few tokens means nothing
SPIKE_KL = 1.0  # below this a token's KL is no spike, however small the others are
ESTIMATES = tuple(key for key in KLS if key != "abs")  # |d| is a distance, no estimate of a KL


def kl_spike(evaluation):
    """One token that holds a large part of the mean KL."""
    kl = np.abs(times(evaluation.weight, evaluation.kl))
    n, whole = np.sum(evaluation.valid), float(total(kl))
    if n < 2 or not 0 < whole < np.inf:
        return None
    spike = facts.largest(kl, evaluation.valid)
    share = float(kl[spike] / whole)
    alone = share >= SPIKE_SHARE or (share >= SPIKE_SHARE_OF_MANY and share * n >= SPIKE_TIMES)
    above = kl[spike] >= SPIKE_ABOVE_OTHERS * (whole - kl[spike]) / (n - 1)
    if not (np.abs(evaluation.kl[spike]) >= SPIKE_KL and alone and above):
        return None
    in_reward = not facts.kl_in_objective(evaluation)
    policy = evaluation.logp_old if in_reward else evaluation.logp_new
    return {
        "places": (spike,),
        "kl": float(evaluation.kl[spike]),
        "share": share,
        "logp_ref": float(evaluation.logp_ref[spike]),
        "logp": float(policy[spike]),
        "policy": "old" if in_reward else "new",
        "beta": facts.option(evaluation, "kl", "beta"),
    }


def _say_kl_spike(figures):
    text = (
        f"One token makes up {percent(figures['share'])} of the mean KL: "
        f"{place(figures['places'][0])}, with KL {number(figures['kl'])}. Its log-probability is "
        f"{number(figures['logp_ref'])} under the reference and {number(figures['logp'])} under "
        f"the {figures['policy']} policy."
    )
    return f"{text} With beta 0 it changes nothing." if figures["beta"] == 0 else text


def kl_below_zero(evaluation):
    """Tokens whose estimate is negative, which no KL is."""
    below = evaluation.valid & (evaluation.kl < 0)
    if not below.any():
        return None
    lowest = facts.largest(-evaluation.kl, below)
    return {
        "places": (lowest, *(at for at in facts.places(below, facts.NAMED) if at != lowest)),
        "estimate": evaluation.scenario.conventions.variant("kl").label,
        "below": int(np.sum(below)),
        "tokens": int(np.sum(evaluation.valid)),
        "lowest": float(evaluation.kl[lowest]),
        "mean": evaluation.mean_kl,
    }


def _say_kl_below_zero(figures):
    mean = "is below 0, too" if figures["mean"] < 0 else "is not"
    return (
        f"{figures['estimate']} is below 0 at {figures['below']:,} of "
        f"{count(figures['tokens'], 'token')}, down to {number(figures['lowest'])} at "
        f"{place(figures['places'][0])}, where the reference likes the token more than the policy "
        f"does. One token's estimate may be negative, a KL never is. The mean, "
        f"{number(figures['mean'])}, {mean}."
    )


def kl_same_pull_everywhere(evaluation):
    """A KL term that pulls every token alike, however far each is from the reference."""
    if not _constant_slope(evaluation):
        return None
    counts = evaluation.weight > 0
    if not (counts.any() and np.ptp(evaluation.kl[counts]) > 0):
        return None
    pull = evaluation.kl_gradient[counts] / evaluation.weight[counts]
    if not (
        pull.any()
        and np.all(np.isfinite(pull))
        and np.ptp(pull) <= facts.NEGLIGIBLE * np.max(np.abs(pull))
    ):
        return None
    return {
        "places": (),
        "estimate": evaluation.scenario.conventions.variant("kl").label,
        "pull": float(np.median(pull)),
        "norm": float(np.sqrt(total(np.square(evaluation.kl_gradient, dtype=np.float64)))),
    }


def _constant_slope(evaluation):
    """True if the estimate has one slope on both sides of the reference, as only k1 has."""
    choice = evaluation.scenario.conventions["kl"]
    _, slope = kl_curve(choice.variant, [-1e-3, 1e-3], choice.options)
    return bool(slope[0] == slope[1] != 0)


def _say_kl_same_pull_everywhere(figures):
    return (
        f"{figures['estimate']} in the objective gives every token the same gradient, "
        f"{number(figures['pull'])} times its weight, whatever the reference says. Over tokens "
        "that the policy samples itself this averages to 0: no pull towards the reference, only "
        f"noise, here of norm {number(figures['norm'])}."
    )


def kl_estimates_apart(evaluation):
    """Means of the estimates that differ by a large part of the largest."""
    means = mean_estimates(evaluation)
    means = {key: means[key] for key in ESTIMATES}
    sizes = np.array(list(means.values()))
    largest = np.max(np.abs(sizes))
    if not (np.isfinite(largest) and largest >= ESTIMATES_FROM):
        return None
    if np.ptp(sizes) <= ESTIMATES_APART * largest:
        return None
    in_reward = not facts.kl_in_objective(evaluation)
    return {
        "places": (),
        **means,
        "tokens": int(np.sum(evaluation.valid)),
        "sampled": in_reward or facts.on_policy(evaluation),
        "ratios": (evaluation.metrics["ratio_min"], evaluation.metrics["ratio_max"]),
    }


def _say_kl_estimates_apart(figures):
    means = listing([f"{key} {number(figures[key])}" for key in ESTIMATES])
    text = (
        f"The estimates of one KL differ on {count(figures['tokens'], 'token')}: their means are "
        f"{means}. Near the reference they agree; this far from it so few tokens do not tell the "
        "KL."
    )
    if figures["sampled"]:
        return text
    low, high = figures["ratios"]
    return (
        f"{text} They are made for tokens that the new policy samples; these come from the old "
        f"one, with ratios from {number(low, 3)} to {number(high, 3)}."
    )


def kl_clamp_active(evaluation):
    """Tokens whose KL a clamp holds, and which it therefore does not pull back."""
    choice = evaluation.scenario.conventions["kl"]
    clamps = [choice.options.get(key, 0.0) for key in ("clamp_in", "clamp_out")]
    if not any(clamps) or choice.options["beta"] == 0:
        return None
    d = kl_distance(evaluation)
    free = {**choice.options, "clamp_in": 0.0, "clamp_out": 0.0}

    def both(at):
        return (kl_curve(choice.variant, at, each)[0] for each in (choice.options, free))

    if np.array_equal(*both(np.array([np.min(d), np.max(d)]))):  # estimates grow with abs(d)
        return None
    held, value = both(d)
    stuck = evaluation.kept & (held != value)
    if not stuck.any():
        return None
    farthest = facts.largest(np.abs(d), stuck)
    return {
        "places": facts.places_from(farthest, stuck)[: facts.NAMED],
        "tokens": int(np.sum(stuck)),
        "distance": float(d[farthest]),
        "held": float(held[farthest]),
        "value": float(value[farthest]),
        "gradient": float(evaluation.kl_gradient[farthest]),
        "constant": not facts.kl_in_objective(evaluation),
    }


def _say_kl_clamp_active(figures):
    n = figures["tokens"]
    text = (
        f"A clamp holds the KL of {count(n, 'token')}. {opening(place(figures['places'][0]))}, "
        f"where the log-probabilities differ by {number(figures['distance'])}: "
        f"{number(figures['held'])} instead of {number(figures['value'])}."
    )
    if figures["constant"]:
        return f"{text} That is all that is taken off its reward or return."
    if figures["gradient"]:
        return f"{text} What is left of its gradient does not come from the held value."
    return (
        f"{text} Where it is held the gradient is 0: the token that is farthest from the "
        "reference is not pulled back."
    )


def tied_group_kl_pull(evaluation):
    """Tied groups that the KL term still moves."""
    norms = facts.group_norm(evaluation.kl_gradient)
    pulled = facts.tied(evaluation) & (norms > 0)
    if not pulled.any():
        return None
    (worst,) = facts.largest(norms, pulled)
    return {
        "places": facts.places_from((worst,), pulled),
        "norm": float(norms[worst]),
        "beta": facts.option(evaluation, "kl", "beta"),
    }


def _say_tied_group_kl_pull(figures):
    where = figures["places"]
    spot = "there" if len(where) == 1 else f"in group {where[0][0]}"
    return (
        f"The KL term still moves {groups(where, 'tied ')}: its gradient {spot} has norm "
        f"{number(figures['norm'])} (beta {number(figures['beta'])}), whatever the rewards are."
    )


ROWS = (
    FindingRow(
        code="kl_spike",
        severity="warning",
        page="KL",
        question="Where does the KL come from?",
        find=kl_spike,
        sentence=_say_kl_spike,
    ),
    FindingRow(
        code="kl_clamp_active",
        severity="warning",
        page="KL",
        question="Why is a far token not pulled back?",
        find=kl_clamp_active,
        sentence=_say_kl_clamp_active,
    ),
    FindingRow(
        code="kl_same_pull_everywhere",
        severity="warning",
        page="KL",
        question="Does the KL term pull towards the reference?",
        find=kl_same_pull_everywhere,
        sentence=_say_kl_same_pull_everywhere,
    ),
    FindingRow(
        code="kl_below_zero",
        severity="note",
        page="KL",
        question="Can the KL be negative?",
        find=kl_below_zero,
        sentence=_say_kl_below_zero,
    ),
    FindingRow(
        code="kl_estimates_apart",
        severity="note",
        page="KL",
        question="Is this KL right?",
        find=kl_estimates_apart,
        sentence=_say_kl_estimates_apart,
    ),
    FindingRow(
        code="tied_group_kl_pull",
        severity="note",
        page="KL",
        question="What still moves a tied group?",
        find=tied_group_kl_pull,
        sentence=_say_tied_group_kl_pull,
    ),
)
