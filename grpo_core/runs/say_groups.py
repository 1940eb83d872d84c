"""What the groups of a run say: ties that the log misses, residues, missing rewards, sizes."""

import numpy as np

from ..words import count, listing, named, number, percent
from .said import RunFinding
from .series import logged

_MANY = 0.2  # of the groups tied
_ROUNDING = 0.05  # a larger advantage in a tied group is no residue of rounding


def tied(shown):
    """Tied groups as recounted, beside what the trainer logged."""
    groups, equal = len(shown.run.steps), int(shown.fit.tied.sum())
    found = logged(shown.log, "tied_share")
    at = None if found is None else shown.log.at(found[0], shown.series.steps)
    if at is None or not np.isfinite(at).any():
        if not equal:
            return None
        return {"tied": equal, "groups": groups, "name": None, "severity": _grave(equal / groups)}
    known = np.isfinite(at)
    recounted = shown.series.tied / np.maximum(shown.series.groups, 1)
    return {
        "tied": equal,
        "groups": groups,
        "name": found[0],
        "logged": float(np.mean(at[known])),
        "recounted": float(np.mean(recounted[known])),
        "never": bool(np.all(at[known] == 0)),
        "agrees": bool(np.max(np.abs(at - recounted)[known]) < 1e-6),
        "stride": shown.log.stride,
        "severity": _grave(equal / groups),
    }


def _grave(share):
    """A few ties are no trouble; many are a batch that teaches nothing."""
    return "warning" if share > _MANY else "note"


def _say_tied(figures):
    said = (
        f"{figures['tied']:,} of {count(figures['groups'], 'group')} "
        f"({percent(figures['tied'] / figures['groups'])}) "
        f"{'is' if figures['tied'] == 1 else 'are'} tied: all rewards equal, no signal."
    )
    if figures["name"] is None:
        return said
    if figures["agrees"]:
        return f"{said} The logged {figures['name']} says the same."
    if figures["never"]:
        return (
            f"{said} The log reports none: {figures['name']} is 0 at every step. The float32 mean "
            "of equal rewards is not always that reward, which leaves a standard deviation just "
            "above the 0 that the trainer looks for."
        )
    if figures["stride"] > 1:
        return (
            f"{said} The log has a record every {figures['stride']} steps, the mean of all of "
            f"them: {figures['name']} is {percent(figures['logged'])} on average."
        )
    return (
        f"{said} The log reports another share: {figures['name']} is "
        f"{percent(figures['logged'])} on average, recounted it is "
        f"{percent(figures['recounted'])}."
    )


def residue(shown):
    """Advantages logged in tied groups, where 0 would be right."""
    found = shown.fit
    if shown.run.advantages is None or not found.residue > 0:
        return None
    own = np.where(found.tied, np.nan_to_num(shown.run.largest_advantages), 0.0)
    return {
        "group": int(np.argmax(own)),
        "residue": found.residue,
        "groups": int(np.sum(own > 0)),
        "tied": int(found.tied.sum()),
        "small": found.residue < _ROUNDING,
        "severity": "note" if found.residue < _ROUNDING else "warning",
        "eps": found.eps if found.eps_found else None,
    }


def _say_residue(figures):
    said = (
        f"{figures['groups']:,} of {count(figures['tied'], 'tied group')} were logged with "
        f"advantages that are not 0, up to {number(figures['residue'], 3)}"
    )
    if not figures["small"]:
        return f"{said}. That is too much for rounding: they were judged by something else."
    eps = "" if figures["eps"] is None else f", {number(figures['eps'])}"
    return (
        f"{said}: the residue of a float32 mean, divided by what is added to the standard "
        f"deviation{eps}. All completions of such a group are pushed the same way, by an error."
    )


def missing(shown):
    """Rewards that are blank."""
    blank = np.isnan(shown.run.terms) & shown.run.present[..., None]
    if not blank.any():
        return None
    per_term = blank.sum(axis=(0, 1))
    unscored = int((blank.all(axis=2) & shown.run.present).sum())
    return {
        "terms": [
            f"{named(name)} ({amount:,})"
            for name, amount in zip(shown.run.names, per_term.tolist(), strict=True)
            if amount
        ],
        "unscored": unscored,
        "completions": int(shown.run.sizes.sum()),
    }


def _say_missing(figures):
    said = f"Some completions have no value of {listing(figures['terms'])}: it adds nothing there."
    if figures["unscored"]:
        said += (
            f" {count(figures['unscored'], 'completion')} of {figures['completions']:,} "
            f"{'has' if figures['unscored'] == 1 else 'have'} no reward at all and "
            f"{'is' if figures['unscored'] == 1 else 'are'} left out."
        )
    return said


def alone(shown):
    """Groups of one completion."""
    single = shown.run.sizes == 1
    if not single.any():
        return None
    return {"single": int(single.sum()), "groups": len(single), "all": bool(single.all()),
            "group": int(np.argmax(single))}  # fmt: skip


def _say_alone(figures):
    if figures["all"]:
        return (
            "Every group has one completion only: nothing can be compared with its group. Either "
            "the prompts of a group differ in the file (look at the columns below), or only part "
            "of each batch was written."
        )
    return (
        f"{count(figures['single'], 'group')} of {figures['groups']:,} "
        f"{'has' if figures['single'] == 1 else 'have'} one completion only, which cannot be "
        "better or worse than its group."
    )


def unequal(shown):
    """Groups of different sizes."""
    sizes = shown.run.sizes
    values, counts = np.unique(sizes, return_counts=True)
    if len(values) == 1:
        return None
    usual = int(values[np.argmax(counts)])
    return {
        "usual": usual, "low": int(values[0]), "high": int(values[-1]),
        "others": int(np.sum(sizes != usual)), "groups": len(sizes),
        "group": int(np.argmax(sizes != usual)),
    }  # fmt: skip


def _say_unequal(figures):
    return (
        f"Groups differ in size, from {figures['low']:,} to "
        f"{count(figures['high'], 'completion')}. The commonest size is {figures['usual']:,}, in "
        f"{figures['groups'] - figures['others']:,} of {figures['groups']:,} groups."
    )


ROWS = (
    RunFinding(
        about_rewards=False,
        code="groups_of_one",
        question="Is there anything to compare with?",
        severity="warning",
        find=alone,
        sentence=_say_alone,
    ),
    RunFinding(
        code="tied_recounted",
        question="How many groups are tied?",
        severity="note",
        find=tied,
        sentence=_say_tied,
    ),
    RunFinding(
        code="residue",
        question="What were tied groups taught?",
        severity="note",
        find=residue,
        sentence=_say_residue,
    ),
    RunFinding(
        code="missing_rewards",
        question="Are rewards missing?",
        severity="note",
        find=missing,
        sentence=_say_missing,
    ),
    RunFinding(
        about_rewards=False,
        code="unequal_groups",
        question="Are groups of one size?",
        severity="note",
        find=unequal,
        sentence=_say_unequal,
    ),
)
