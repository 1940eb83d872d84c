"""What a way of dividing does to easy and hard prompts, in sentences from the numbers."""

import numpy as np

from grpo_core.difficulty import largest
from grpo_core.words import listing

from .numbers import count, number

_FLAT = 1.005  # weights within half a percent of each other count as equal
_GUARD = 0.01  # an eps up to here is no part of the story
_NO_WEIGHTING = 3  # the largest group in which only one mixed spread is possible


def weight_line(now):
    """Which prompts count more than others, by what factor, and where that ends."""
    weights = now.weights
    known = np.flatnonzero(~np.isnan(weights))
    if not known.size:
        return "No prompt of the table can have a mixed group, so none has a weight."
    high = known[np.argmax(weights[known])]
    low = known[np.argmin(weights[known])]
    if weights[high] <= _FLAT * weights[low]:
        return f"Every prompt counts the same, {number(weights[high])}. {_why_flat(now)}"
    best, least = _named(now, weights, high), _named(now, weights, low)
    factor = number(weights[high] / weights[low], 3)
    return (
        f"Dividing by the std of the group makes prompts of {best} count {factor} times as much "
        f"as those of {least}: {number(weights[high])} against {number(weights[low])}. Without a "
        f"division every prompt counts {number((now.G - 1) / now.G)}.{_cap(now)}"
    )  # fmt: skip


def _why_flat(now):
    if now.choice.variant == "none":
        return f"Nothing is divided by, so the weight is (G − 1)/G whatever the {_noun(now)}."
    if np.sum(~np.isnan(now.weights)) == 1:
        return "Only one kind of prompt can have a mixed group; add a row to compare."
    if now.G <= _NO_WEIGHTING and not now.graded:
        only = "one way" if now.G == 2 else "one spread"
        return (
            f"In a group of {now.G} there is only {only} to be mixed, so the std is a constant: no "
            "weighting by difficulty at all. It starts at groups of 4."
        )
    if now.choice.options["eps"] > 1:
        eps = number(now.choice.options["eps"])
        return f"With eps = {eps} the std hardly matters in the divisor."
    return "These prompts are equally hard, or as easy as the others are hard."


def _cap(now):
    """No weight is larger than this; for 0/1 rewards under the std of the group."""
    cap = weight_cap(now)
    if cap is None:
        return ""
    spelled = "√(G − 1)" if now.choice.options["ddof"] == 0 else "(G − 1)/√G"
    return f" In groups of {now.G} no weight exceeds {spelled} = {number(cap)}."


def weight_cap(now):
    """Weight of a prompt whose rate tends to 0 or 1 at eps 0, or None."""
    if now.graded or now.choice.variant != "group" or now.choice.options["eps"] > _GUARD:
        return None
    ddof = now.choice.options["ddof"]
    return np.sqrt(now.G - 1) * (np.sqrt((now.G - 1) / now.G) if ddof else 1.0)


def story_line(now):
    """Where the popular story, the weight of endless groups, is wrong here."""
    if np.all(np.isnan(now.weights)):
        return ""
    if now.graded:
        return _graded_line(now)
    p = now.prompts.mean
    inside = np.flatnonzero((p > 0) & (p < 1))
    if not inside.size:
        return ""
    limit = 1 / np.sqrt(p[inside] * (1 - p[inside]))
    worst = inside[np.argmax(limit)]
    story, fact = number(np.max(limit)), number(now.weights[worst])
    if now.choice.variant == "none":
        std = now.ways[0].exact.prompt_weight[worst]
        return (
            f"With the std of the group it would be {number(std)} at rate {number(p[worst])}, not "
            f"the {story} of the well-known 1/√(p(1 − p)): that is for endless groups."
        )
    return (
        f"The well-known 1/√(p(1 − p)) is for endless groups. At rate {number(p[worst])} it says "
        f"{story}; in groups of {now.G} it is {fact}."
    )


def _graded_line(now):
    exact = now.chosen.exact
    if exact is None:
        return (
            "Groups of this size with so many different rewards are too many to enumerate: the "
            "weights are sampled."
        )
    at = int(np.argmin(exact.alignment))
    if exact.alignment[at] > 1 - 1e-9:
        return (
            "The expected advantage is a straight line over the rewards, so each prompt's gradient "
            "keeps its direction: only its weight changes."
        )
    return (
        "With graded rewards the weight is a slope: the expected advantage is no straight line "
        f"over the rewards. Most at mean reward {number(now.where[at])}, where the two have a "
        f"correlation of {number(exact.alignment[at])}."
    )


def speed_line(now):
    """Weight is not speed: how fast the mean reward itself rises."""
    speed = now.speed
    if not np.any(speed > 0):
        return ""
    fast = int(np.nanargmax(speed))
    slow = int(np.nanargmin(np.where(speed > 0, speed, np.nan)))
    if speed[fast] <= _FLAT * speed[slow]:
        return ""
    return (
        "A larger weight is not faster learning. In a policy with one logit a prompt's mean reward "
        f"rises by weight × variance: {number(speed[fast], 3)} at {_named(now, speed, fast)}, "
        f"{number(speed[slow], 3)} at {_named(now, speed, slow)}."
    )


def _named(now, values, at):
    """All prompts that share a value with this one, e.g. ``rate 0.01 or 0.99``."""
    sign = 1 if values[at] == np.nanmax(values) else -1
    alike = largest(sign * values) or (at,)
    where = list(dict.fromkeys(number(now.where[i], 3) for i in alike))
    if len(where) > 3:
        where = [*where[:2], f"{len(where) - 2} more"]
    return f"{_noun(now)} {' or '.join(where)}"


def _noun(now):
    return "mean reward" if now.graded else "rate"


def expected_line(now):
    """How far the advantages of right and wrong answers are from each other, and why."""
    exact = now.chosen.exact
    mixed = np.flatnonzero(~np.isnan(now.weights))
    if exact is None or now.graded or not mixed.size:
        return ""
    at = int(mixed[np.argmin(now.prompts.mean[mixed])])
    p = number(now.where[at], 3)
    right, wrong = number(exact.right[at], 3), number(exact.wrong[at], 3)
    with np.errstate(over="ignore"):
        odds = number(exact.asymmetry[at], 3)
    return (
        f"At rate {p} a right answer can expect {right}, a wrong one {wrong}. Their sizes differ "
        f"by the factor (1 − p)/p = {odds} under every way of dividing, "
        "since the advantages of a group add up to 0."
    )


def agreement_line(now):
    """Whether sampling and closed form agree, with the number of samples."""
    if now.chosen.exact is None:
        return f"Sampled only, {count(now.sampled.prompt_weight.count, 'batch', 'batches')}."
    exact, seen = now.chosen.exact, now.sampled
    pairs = ("prompt_weight", "expected_advantage", "silent")
    apart = [
        name.replace("_", " ") for name in pairs
        if not np.all(getattr(seen, name).agrees(getattr(exact, name)))
    ]  # fmt: skip
    batches = f"{seen.prompt_weight.count:,} batches of {count(len(now.weights), 'group')}"
    if apart:
        return f"{batches} were sampled; beyond four standard errors apart: {listing(apart)}."
    return (
        f"{batches} were sampled by the code that computes a batch. Every closed form is within "
        "four standard errors of it, plus what may never have come up."
    )


def followed_line(scenario, followed):
    """Which way of dividing the page takes, where the example's own is none of them."""
    if followed:
        return ""
    label = scenario.conventions.variant("advantage").label
    return f"This example's advantages are “{label}”. The page takes the std of the group instead."


def shares_line(shares):
    """What the std of the group does to the batch on the screen; from `batch_shares`."""
    own, common = shares.values()
    if not np.any(own > 0):
        return "Every group of this batch is tied: no way of dividing gives one an advantage."
    if len(own) == 1:
        return (
            "One prompt has all the push of this batch, however it is divided: a divisor changes "
            "only the size of the step."
        )
    factor = np.divide(own, common, out=np.ones_like(own), where=common > 0)
    up, down = int(np.argmax(factor)), int(np.argmin(np.where(common > 0, factor, np.inf)))
    if factor[up] <= _FLAT * factor[down]:
        return (
            "The groups of this batch that teach have the same spread, so every way of dividing "
            "gives each prompt the same share of the push."
        )
    return (
        f"On this batch the std of the group raises the share of prompt {up} from "
        f"{number(common[up], 3)}% to {number(own[up], 3)}% and lowers that of prompt {down} from "
        f"{number(common[down], 3)}% to {number(own[down], 3)}%. Any divisor that all groups have "
        "in common leaves the shares alone."
    )


def sizes_line(now):
    """What larger groups bring and cost."""
    if now.choice.variant == "none":
        return (
            "Larger groups: without a division they change no prompt's share, only fewer groups "
            "are silent."
        )
    return (
        "Larger groups: fewer are silent, and the weighting by difficulty grows, since more "
        "spreads become possible. The price is answers, or prompts at the same cost."
    )
