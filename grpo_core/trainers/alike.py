"""When two conventions compute the same, though they are chosen differently."""

from itertools import chain

from ..idle import unread, without_idle
from ..presets import Difference, differences
from ..stages import STAGES, Conventions
from ..surrogate_base import HIGH
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


def _as_bound(options):
    """CISPO's upper bound itself in place of its offset from 1."""
    bound = 1 + options["epsilon_high"]
    if options["bound"] == "absolute" or bound not in HIGH.domain:
        return None
    return Choice("cispo", {**options, "epsilon_high": bound, "bound": "absolute"})


def _as_offset(options):
    """The other way; a bound below 1 has no offset, and 0 is the nearest."""
    if options["bound"] == "offset":
        return None
    offset = max(options["epsilon_high"] - 1, 0.0)
    plain = float(f"{offset:.12g}")  # 0.2, not 0.19999999999999996, where that is the same
    offset = plain if 1 + plain == 1 + offset else offset
    return Choice("cispo", {**options, "epsilon_high": offset, "bound": "offset"})


def _summed(options):
    """One reward is a sum of one."""
    return Choice("sum_then_normalize", {"missing": options["missing"]})


def _one_reward(options):
    """A sum is one reward, if the reward function returns it."""
    return Choice("outcome", {"missing": options["missing"]})


def _all_forks(options):
    """Where all tokens are of high entropy the completions alone are selected."""
    if options["share"] < 1:
        return None
    return Choice("on_policy", {"threshold": options["threshold"]})


def _nothing(variant, key, value):
    return lambda options: Choice(variant) if options[key] == value else None


# (stage, variant) -> the same in other words, or None.
CANONICAL = {
    ("surrogate", "dual_clip"): _two_sided,
    ("surrogate", "cispo"): _as_bound,
    ("rewards", "outcome"): _summed,
    ("selection", "entropy"): _nothing("all", "share", 1.0),
    ("selection", "entropy_on_policy"): _all_forks,
    ("entropy", "bonus"): _nothing("none", "coefficient", 0.0),
}
_BACK = {
    ("surrogate", "two_sided"): _dual_clip,
    ("surrogate", "cispo"): _as_offset,
    ("rewards", "sum_then_normalize"): _one_reward,
}
# Not the same, and nearer than anything else, the nearest first: the ratio is the same, and not
# its gradient; with rewards per token the score is not what is still to come; another estimator
# pulls to the same reference; groups without a difference have no other advantage than 0.
_NEAR = {
    ("ratio", "sequence"): ("sequence_token",),
    ("ratio", "sequence_token"): ("sequence",),
    ("advantage", "uncompared"): ("returns",),
    ("tied", "zero"): ("drop",),
    **{
        ("kl", key): tuple(other for other in ("k3", "k2", "k1") if other != key)
        for key in STAGES["kl"].variants
    },
}


def wordings(stage, choice):
    """The choice and the same in other words; complete, with all options."""
    found = [choice]
    for table in (CANONICAL, _BACK):
        other = table.get((stage, choice.variant), lambda options: None)(choice.options)
        if other is not None:
            found.append(Conventions({stage: other})[stage])
    return found


def near(stage, choice):
    """What is not the same, and nearer than anything else; the nearest first."""
    found = []
    for variant in _NEAR.get((stage, choice.variant), ()):
        known = [option.key for option in STAGES[stage].variants[variant].options]
        options = {key: value for key, value in choice.options.items() if key in known}
        found.append(Conventions({stage: Choice(variant, options)})[stage])
    return found


def canonical(conventions):
    """One wording for all that is the same."""
    choices = {}
    for stage, choice in without_idle(conventions).choices.items():
        rule = CANONICAL.get((stage, choice.variant))
        choices[stage] = (rule and rule(choice.options)) or choice
    return Conventions(choices)


def telling_differences(left, right):
    """Differences of two conventions that change what is trained; tuple of Difference.

    All estimators of the KL have the same options, which are compared also where the estimators
    differ.
    """
    left, right = canonical(left), canonical(right)
    found = [(each, *_more(each, left, right)) for each in differences(left, right)]
    return tuple(each for each in chain(*found) if not unread(each, left, right))


def _more(difference, left, right):
    """Differences in the options of two estimators of the KL."""
    if difference.stage != "kl" or difference.option:
        return ()
    here, there = left["kl"].options, right["kl"].options
    return tuple(
        Difference(stage="kl", option=key, left=value, right=there[key])
        for key, value in here.items()
        if there.get(key, value) != value
    )
