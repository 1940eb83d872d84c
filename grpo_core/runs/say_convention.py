"""What the logged advantages say of the convention that made them, and what they cannot say."""

import numpy as np

from ..words import count, listing, named, number, percent
from .said import RunFinding


def _weights(shown):
    """Weights as words, the terms whose weight is told."""
    return [
        f"{named(name)} {number(weight)}"
        for name, weight, fixed in zip(
            shown.run.names, shown.fit.weights, shown.fit.fixed, strict=True
        )
        if fixed
    ]


def convention(shown):
    """The rule that fits, with its weights."""
    found = shown.fit
    if found.rule is None:
        return None
    judged = np.isfinite(found.off) & ~found.tied
    return {
        "label": found.rule.label,
        "weights": _weights(shown),
        "several": len(shown.run.names) > 1,
        "scale": found.scale,
        "eps": found.eps if found.rule.eps else None,
        "eps_found": found.eps_found,
        "error": found.error,
        "groups": int(judged.sum()) - len(found.misfits),
        "of": int(judged.sum()),
        "ambiguous": found.ambiguous,
        "first": _first(shown),
        "alike": [each.rule.label for each in found.alike],
        "two": int(shown.run.sizes.max()) == 2,
    }


def _first(shown):
    """The first term with a weight: the unit where no scale is known."""
    return next(
        (name for name, w in zip(shown.run.names, shown.fit.weights, strict=True) if w),
        shown.run.names[0],
    )


# Where the scale of the weights comes from, by what told it.
_SCALES = {
    "advantages": "These advantages grow with the weights, so they tell their scale as well.",
    "log": "Advantages fix only the ratio of the weights; their scale comes from the logged "
    "reward against the means of the terms.",
    "totals": "Advantages fix only the ratio of the weights; their scale comes from the totals "
    "in the file.",
    "given": "Advantages fix only the ratio of the weights; their scale is the one entered here.",
    "one": "Advantages do not tell the weight of a single term; it is taken as 1.",
    "unknown": "Advantages fix only the ratio of the weights, and eps in units of the first. No "
    "log with the total reward was found, so their scale is unknown: {first} counts as 1.",
}


def _say_convention(figures):
    eps = ""
    if figures["eps"] is not None:
        eps = (
            f" plus {number(figures['eps'])}"
            if figures["eps_found"]
            else " (what is added to it cannot be told)"
        )
    weights = f", weights {listing(figures['weights'])}" if figures["several"] else ""
    said = (
        f"The logged advantages are made like this: {figures['label']}{eps}{weights}. That gives "
        f"{figures['groups']:,} of {count(figures['of'], 'group')} that are not tied back to "
        f"within {number(figures['error'], 2)}."
    )
    if figures["ambiguous"]:
        said += (
            " In groups of two advantages tell no more of the weights than which answer of a pair "
            "they favour; other weights would fit as well."
            if figures["two"]
            else " Some terms move together, so that other weights would fit as well."
        )
    if figures["alike"]:
        said += f" On these groups this cannot be told from: {'; '.join(figures['alike'])}."
    return f"{said} {_SCALES[figures['scale']].format(first=named(figures['first']))}"


def no_convention(shown):
    """Advantages were logged, and no rule gives them."""
    found = shown.fit
    if found.rule is not None or not found.tried or np.isnan(found.error):
        return None
    best = found.tried[0]
    return {"label": best.rule.label, "error": found.error, "rules": len(found.tried)}


def _say_no_convention(figures):
    return (
        f"None of {count(figures['rules'], 'known rule')} gives the logged advantages. The nearest "
        f"({figures['label']}) is off by {number(figures['error'], 2)} in the middle group. "
        "Something was added after normalising, rewards in the file are not those that were "
        "judged, or groups are not what shares a prompt and a step."
    )


def not_logged(shown):
    """No advantages, so nothing to compare with."""
    if shown.fit.tried:
        return None
    return {
        "weights": _weights(shown) if shown.fit.fixed.any() else [],
        "scale": shown.fit.scale,
        "names": shown.run.names,
    }


def _say_not_logged(figures):
    said = "The file holds no advantages, so it does not tell how they were made."
    if figures["scale"] == "assumed":
        return f"{said} Weights of the rewards are unknown too: each counts as 1 until you say."
    if len(figures["names"]) == 1:
        return said
    source = {"log": "the logged reward", "totals": "the totals in the file"}
    return (
        f"{said} The weights are {listing(figures['weights'])}, from "
        f"{source.get(figures['scale'], 'what was entered here')}."
    )


def misfits(shown):
    """Groups whose logged advantages the rule does not give."""
    found = shown.fit
    if found.rule is None or not found.misfits.size:
        return None
    q = int(found.misfits[0])
    steps = np.unique(shown.run.steps[found.misfits])
    return {
        "group": q,
        "count": len(found.misfits),
        "of": int((np.isfinite(found.off) & ~found.tied).sum()),
        "off": float(found.off[q]),
        "at": int(shown.run.steps[q]),
        "steps": [int(step) for step in steps[:4]],
        "more": max(len(steps) - 4, 0),
    }


def _say_misfits(figures):
    several = len(figures["steps"]) > 1 or figures["more"]
    named = [str(step) for step in figures["steps"]]
    if figures["more"]:
        named.append(f"{figures['more']:,} more")
    return (
        f"{count(figures['count'], 'group')} of {figures['of']:,} "
        f"{'does' if figures['count'] == 1 else 'do'} not fit that rule "
        f"({'steps' if several else 'step'} {listing(named)}). The worst is off by "
        f"{number(figures['off'], 3)}, at step {figures['at']}."
    )


def unread_terms(shown):
    """Terms that never differ within a group, and so pull at nothing."""
    run = shown.run
    known = np.where(np.isnan(run.terms) | ~run.present[..., None], -np.inf, run.terms)
    high = known.max(axis=1)
    low = np.where(np.isinf(known), np.inf, known).min(axis=1)
    flat = np.all((high == low) | np.isinf(high), axis=0)
    if not flat.any():
        return None
    return {"names": [name for name, one in zip(run.names, flat, strict=True) if one]}


def _say_unread(figures):
    one = len(figures["names"]) == 1
    return (
        f"{listing([named(name) for name in figures['names']])} never "
        f"{'differs' if one else 'differ'} within a group: {'it pulls' if one else 'they pull'} at "
        f"no completion, and no advantage tells {'its weight' if one else 'their weights'}."
    )


def log_disagrees(shown):
    """A logged mean reward that is not the mean of the completions of that step."""
    if shown.log is None or "reward" not in shown.log or shown.fit.scale in ("unknown", "assumed"):
        return None
    if shown.log.stride > 1:  # a record is the mean of several steps, a file holds one of them
        return None
    logged = shown.log.at("reward", shown.series.steps)
    apart = np.abs(logged - shown.series.reward)
    limit = 1e-4 * max(float(np.nanmax(np.abs(logged), initial=0.0)), 1e-3)
    bad = np.nan_to_num(apart) > limit
    if not bad.any():
        return None
    at = int(np.nanargmax(np.where(bad, apart, np.nan)))
    return {
        "step": int(shown.series.steps[at]), "logged": float(logged[at]),
        "own": float(shown.series.reward[at]), "steps": int(bad.sum()),
        "of": int(np.isfinite(logged).sum()),
        "typed": shown.fit.scale == "given",
    }  # fmt: skip


# Why the log and the files may differ, by whether the weights were typed in.
_CAUSES = {
    True: "The weights typed in here are not those of the run, or files hold part of a batch only.",
    False: "Files hold only part of a batch where several processes write, an evaluation overwrote "
    "them, or the weights changed.",
}


def _say_log_disagrees(figures):
    return (
        f"The logged reward is not the mean of the completions in {figures['steps']:,} of "
        f"{count(figures['of'], 'step')}: {number(figures['logged'])} against "
        f"{number(figures['own'])} at step {figures['step']}. {_CAUSES[figures['typed']]}"
    )


def shares_said(shown):
    """Groups that shaping alone decides."""
    decided, groups = int(shown.series.shaped_only.sum()), int(shown.series.groups.sum())
    if not decided or len(shown.run.names) == 1:
        return None
    worst = int(np.argmax(shown.series.shaped_only / np.maximum(shown.series.groups, 1)))
    return {
        "decided": decided, "groups": groups, "task": shown.task,
        "step": int(shown.series.steps[worst]),
        "then": float(shown.series.shaped_only[worst] / shown.series.groups[worst]),
    }  # fmt: skip


def _say_shares(figures):
    verb = "is" if figures["decided"] == 1 else "are"
    return (
        f"{count(figures['decided'], 'group')} of {figures['groups']:,} "
        f"({percent(figures['decided'] / figures['groups'])}) {verb} tied in "
        f"{named(figures['task'])} and decided by the other rewards alone, most at step "
        f"{figures['step']} ({percent(figures['then'])} of its groups). However small their "
        "weight, such a group pushes at full strength where it is divided by its standard "
        "deviation."
    )


def stand_ins(shown):
    """Rewards that are none."""
    return {"names": shown.run.names} if shown.stand_ins else None


def _say_stand_ins(figures):
    return (
        "The files hold no rewards. "
        f"{listing([named(name) for name in figures['names']])} stands in for them, so that groups "
        "can be looked at: nothing can be said of the task, of the weights or of how advantages "
        "were made."
    )


ROWS = (
    RunFinding(
        code="stand_ins",
        question="What was rewarded?",
        severity="warning",
        find=stand_ins,
        sentence=_say_stand_ins,
        about_rewards=False,
    ),
    RunFinding(
        code="no_convention",
        question="How were the advantages made?",
        severity="warning",
        find=no_convention,
        sentence=_say_no_convention,
    ),
    RunFinding(
        code="misfits",
        question="Which groups do not fit?",
        severity="warning",
        find=misfits,
        sentence=_say_misfits,
    ),
    RunFinding(
        code="log_disagrees",
        question="Does the log say the same?",
        severity="warning",
        find=log_disagrees,
        sentence=_say_log_disagrees,
    ),
    RunFinding(
        code="convention",
        question="How were the advantages made?",
        severity="note",
        find=convention,
        sentence=_say_convention,
    ),
    RunFinding(
        code="not_logged",
        question="How were the advantages made?",
        severity="note",
        find=not_logged,
        sentence=_say_not_logged,
    ),
    RunFinding(
        code="unread_terms",
        question="Which rewards do nothing?",
        severity="note",
        find=unread_terms,
        sentence=_say_unread,
    ),
    RunFinding(
        code="shaped_only",
        question="Which groups does shaping decide?",
        severity="note",
        find=shares_said,
        sentence=_say_shares,
    ),
)
