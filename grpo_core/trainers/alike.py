"""When two conventions compute the same, though they are chosen differently."""

from ..presets import differences
from ..stages import Conventions
from ..variants import Choice


def _two_sided(options):
    """Dual clip as a bound on the ratio: the same where the bound is beyond the band."""
    if options["dual_clip"] > 1 + options["epsilon_high"]:
        band = {key: options[key] for key in ("epsilon_low", "epsilon_high")}
        return Choice("two_sided", {**band, "delta": options["dual_clip"]})
    return None


def _dual_clip(options):
    if options["delta"] > 1 + options["epsilon_high"]:
        band = {key: options[key] for key in ("epsilon_low", "epsilon_high")}
        return Choice("dual_clip", {**band, "dual_clip": options["delta"]})
    return None


def _summed(options):
    """One reward is a sum of one."""
    return Choice("sum_then_normalize", {"missing": options["missing"]})


def _one_reward(options):
    """A sum is one reward, if the reward function returns it."""
    return Choice("outcome", {"missing": options["missing"]})


def _nothing(variant, key, value):
    return lambda options: Choice(variant) if options[key] == value else None


def _as(variant):
    return lambda options: Choice(variant, options)


# (stage, variant) -> the same in other words, or None.
CANONICAL = {
    ("surrogate", "dual_clip"): _two_sided,
    ("rewards", "outcome"): _summed,
    ("selection", "entropy"): _nothing("all", "share", 1.0),
    ("entropy", "bonus"): _nothing("none", "coefficient", 0.0),
}
_BACK = {
    ("surrogate", "two_sided"): _dual_clip,
    ("rewards", "sum_then_normalize"): _one_reward,
}
# Not the same, and nearer than anything else: the ratio is the same, and not its gradient; with
# rewards per token the score is not what is still to come.
_NEAR = {
    ("ratio", "sequence"): _as("sequence_token"),
    ("ratio", "sequence_token"): _as("sequence"),
    ("advantage", "uncompared"): _as("returns"),
}


def wordings(stage, choice):
    """The choice, the same in other words, and what is near; complete, with all options."""
    found = [choice]
    for table in (CANONICAL, _BACK, _NEAR):
        other = table.get((stage, choice.variant), lambda options: None)(choice.options)
        if other is not None:
            found.append(Conventions({stage: other})[stage])
    return found


def canonical(conventions):
    """One wording for all that is the same."""
    choices = {}
    for stage, choice in conventions.choices.items():
        rule = CANONICAL.get((stage, choice.variant))
        choices[stage] = (rule and rule(choice.options)) or choice
    return Conventions(choices)


def telling_differences(left, right):
    """Differences of two conventions that change what is trained; tuple of Difference.

    Under a KL weight of 0 on both sides it says nothing how the KL would be estimated.
    """
    no_kl = left["kl"].options.get("beta") == right["kl"].options.get("beta") == 0
    found = differences(canonical(left), canonical(right))
    return tuple(each for each in found if not (no_kl and each.stage == "kl"))
