"""What a term does to advantages, and how heavy it may be, in sentences from the numbers."""

import numpy as np

from grpo_core.findings.shaping import DOMINATES
from grpo_core.shaping_parts import COMBINE
from grpo_core.words import groups, listing, opening

from .numbers import count, number, percent

_FULL = 0.95  # of the limit: from here on a weight is no longer small


def quoted(name):
    """A reader's name for a term inside a sentence."""
    return f"“{name}”"


def tied_line(bonus, term, combine, takeover):
    """What the term makes of a group that is tied in the task, at its weight and at any other.

    Parameters
    ----------
    bonus : grpo_core.shaping_views.TiedBonus or None
    term : grpo_core.Term
    combine : str
    takeover : float or None
    """
    name, weight = quoted(term.name), number(term.weight)
    if bonus is None:
        return f"All completions of this group gain alike by {name}: it changes no advantage here."
    if not term.weight:
        return f"The weight of {name} is 0: it does nothing. Give it a weight."
    text = (
        f"{bonus.having} of {count(bonus.size, 'completion')} "
        f"{'gains' if bonus.having == 1 else 'gain'} {'' if bonus.binary else 'most '}by {name}. "
        f"Were all task rewards equal, {'it' if bonus.having == 1 else 'they'} would get "
        f"{number(bonus.high, signed=True)}, {'the others' if bonus.binary else 'who gains least'} "
        f"{number(bonus.low, signed=True)}"
    )
    if bonus.limits is None:
        if COMBINE[combine].total:
            return (
                f"{text}: nothing is divided by a spread, so the weight of {weight} counts in full."
            )
        return (
            f"{text}: the weight of {weight} counts in full. Summed first, before normalising, it "
            f"would be {number(bonus.summed, signed=True)}."
        )
    reached = bonus.high / bonus.limits[0]
    which = "any weight" if takeover is None else f"any weight well above {number(takeover)}"
    return (
        f"{text}. That is {percent(reached)} of {_limit(bonus)}, where {which} leads. "
        f"{_verdict(reached, weight)}"
    )


def _limit(bonus):
    """The limit, with its closed form where the term has two values."""
    limit = number(bonus.limits[0])
    if not bonus.binary:
        return limit
    G, k = bonus.size, bonus.having
    form = f"√(({G} − {k}) / {k})"
    if not np.isclose(bonus.limits[0], np.sqrt((G - k) / k)):  # the sample formula
        form += f" · √({G - 1} / {G})"
    return f"{limit} = {form}"


def _verdict(reached, weight):
    if reached >= _FULL:
        return f"So {weight} is no small weight in a tied group."
    if reached >= 0.5:
        return f"At {weight} eps holds some of it back."
    return f"At {weight} eps outweighs the term: most of its push is gone."


def _clean(advantages, at):
    """An advantage with its sign; what is only the rounding of the group's others is 0."""
    rounding = 1e-12 * float(np.max(np.abs(advantages)))
    value = float(advantages[at])
    return number(value if abs(value) > rounding else 0.0, signed=True)


def mixed_line(evaluation, curves, prompt, term):
    """What the same weight does in the group as it is; empty where there is nothing to say."""
    shaped, scenario = evaluation.attribution, evaluation.scenario
    name, task = quoted(scenario.terms[term].name), shaped.values[0, prompt]
    known, high, low = task[~np.isnan(task)], curves.high, curves.low
    if not known.size or high == low:
        return ""
    if known.min() == known.max():
        return f"Prompt {prompt} is such a group: every task reward is {number(known[0])}."
    parts, now = shaped.parts[1 + term, prompt], evaluation.advantages[prompt]
    text = (
        f"In the group as it is, {name} is worth {number(parts[high] - parts[low])} between "
        f"completion {high} ({_clean(now, high)}) and completion {low} ({_clean(now, low)})."
    )
    if task[high] < task[low] and now[high] > now[low]:
        text += (
            f" Completion {high} is the worse answer and stands above: {name} outweighs the task."
        )
    if scenario.conventions["rewards"].options.get("batch_scale", "none") != "none":
        text += " The curves are those before the second normalisation, over the batch."
    return text


def driver_line(log, names):
    """Which component drives the update, and which groups shaping alone decides."""
    live = log.shares.any(axis=0)
    if not live.any():
        return "No group pushes: within each of them the totals are equal, or they cancel."
    order = np.argsort(-log.mean_shares, kind="stable").tolist()
    said = [
        f"{names[c] if c == 0 else quoted(names[c])} {percent(log.mean_shares[c])}" for c in order
    ]
    over = f", on average over {count(int(live.sum()), 'group')}" if live.sum() > 1 else ""
    if log.mean_shares[order[0]] > DOMINATES:
        who = "The task" if order[0] == 0 else opening(quoted(names[order[0]]))
        rest = f", {listing(said[1:])}" if said[1:] else ""
        text = f"{who} drives the update: {percent(log.mean_shares[order[0]])} of the spread"
        text += f"{over}{rest}."
    else:
        text = f"Nothing drives the update alone. Shares of the spread{over}: {listing(said)}."
    against = [c for c in range(len(names)) if log.mean_shares[c] < -1e-9]
    if against:
        said = listing([names[c] if c == 0 else quoted(names[c]) for c in against])
        text += f" A share below 0 works against the total: {said}."
    if log.decided.any():
        where = [(p,) for p in np.flatnonzero(log.decided).tolist()]
        one = len(where) == 1
        text += (
            f" In {groups(where)} the task rewards are equal: shaping alone decides "
            f"{'it' if one else 'them'}."
        )
    return text


def safe_line(safe, term):
    """The largest weight at which no worse answer outranks a better one, and where it binds."""
    name, largest = quoted(term.name), safe.batch_largest
    if np.isnan(largest):
        return (
            f"No weight of {name} will do: whatever it is, a worse answer outranks a better one "
            "of its group. Look at the other terms."
        )
    if safe.where is None:
        return (
            f"No weight of {name} puts a worse answer first: none gains more by it than a better."
        )
    p, better, worse = safe.where
    pair = f"completion {worse} overtakes completion {better} of prompt {p}, a better answer"
    if largest == 0:
        return f"Any weight of {name} is too large: {pair}."
    within = "beyond it" if abs(term.weight) > abs(largest) else "within"
    least = f" At least {number(safe.batch_least)} is needed, too." if safe.batch_least else ""
    return (
        f"Up to {number(largest)} no worse answer outranks a better one of its group. Beyond it "
        f"{pair}.{least} The present weight, {number(term.weight)}, is {within}."
    )


def share_line(found, term, safe=None):
    """The weight at which the term carries a given share of the spread.

    With the `SafeWeight` of the term it also says where that is too large.
    """
    name, share = quoted(term.name), percent(found.share)
    if found.at_least >= found.share:
        least = percent(found.at_least)
        return (
            f"No weight gives {name} {share} of the spread: {least} of the groups that push differ "
            "by it alone, and there it has all of it at any weight."
        )
    if np.isnan(found.batch):
        return f"At no weight does {name} carry {share} of the spread."
    text = f"At {number(found.batch)} {name} carries {share} of the spread, on average."
    if safe is not None and abs(found.batch) > abs(safe.batch_largest):
        text += " That is too much: a worse answer then outranks a better one."
    return text


def no_small_line(found, term):
    """What no weight can do in groups that differ by the term alone."""
    name = quoted(term.name)
    where = [(p,) for p in np.flatnonzero(found.tied).tolist()]
    if not where:
        return (
            f"No group here differs by {name} alone. As answers get better more groups will be "
            "all right, and there no weight well above eps is small."
        )
    text = f"{opening(groups(where))} {'differs' if len(where) == 1 else 'differ'} by {name} alone."
    takeover = found.takeover[where[0][0]]
    if np.isnan(takeover):
        return f"{text} There the weight counts in full: it is not divided by a spread of its own."
    return (
        f"{text} There no weight well above {number(abs(takeover))} is small: only eps holds the "
        "term back."
    )
