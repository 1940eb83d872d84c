"""What the course of a run says: hacked rewards, the task, lengths, KL, clipping."""

import numpy as np

from ..words import count, listing, named, number, percent
from .said import RunFinding
from .series import logged

_PART = 0.25  # of the steps, at each end, that a change is read between
_SIGMA, _CHANCE = 3.0, 2.0  # standard errors: a change, and what chance makes often


def ends(values, errors=None):
    """Means of the first and the last quarter, and their difference in standard errors.

    The noise is that between steps, or within them (``errors``, (S,)), whichever is larger: of
    one or two steps on each side only the latter is known.
    """
    known = np.isfinite(values)
    n = max(int(known.sum() * _PART), 1)
    if known.sum() < 2:
        return None
    first, last = values[known][:n], values[known][-n:]
    between = (np.var(first, ddof=1) + np.var(last, ddof=1)) / n if n > 1 else 0.0
    within = np.nan
    if errors is not None:
        own = errors[known]
        within = (np.mean(np.square(own[:n])) + np.mean(np.square(own[-n:]))) / n
    error = np.sqrt(max(between, np.nan_to_num(within)))
    change = float(np.mean(last) - np.mean(first))
    unknown = n == 1 and np.isnan(within)
    sigmas = 0.0 if unknown or change == 0 else change / max(error, 1e-12 * abs(change))
    return float(np.mean(first)), float(np.mean(last)), float(sigmas)


def hacked(shown):
    """A term that took over while the task got worse."""
    if not shown.turns:
        return None
    turn = shown.turns[0]
    return {
        "step": turn.step,
        "turn": turn,
        "term": shown.run.names[turn.term],
        "task": shown.task,
        "alone": len(shown.run.names) == 1,
    }


def _say_hacked(figures):
    turn, term, task = figures["turn"], figures["term"], figures["task"]
    moved = (
        f"{named(task)} fell from {number(turn.task_before, 3)} to "
        f"{number(turn.task_after, 3)} while the mean of {named(term)} rose from "
        f"{number(turn.term_before, 3)} to {number(turn.term_after, 3)}"
    )
    if figures["alone"]:
        return (
            f"The reward and the task part at step {turn.step}. {moved} (means before and from "
            f"that step on): what is rewarded is no longer what is wanted."
        )
    before, after = number(turn.reward_before, 3), number(turn.reward_after, 3)
    seems = (
        f" The total reward rose from {before} to {after}, which by itself looks like progress."
        if turn.reward_after > turn.reward_before
        else f" The total reward went from {before} to {after}."
    )
    return (
        f"{named(term)} is being hacked, and step {turn.step} is the turn. From there on "
        f"{named(term)} makes {percent(turn.share_after)} of the spread of the total reward within "
        f"groups, before it {percent(max(turn.share_before, 0.0))}. {moved} (means before and "
        f"from the turn on).{seems}"
    )


def driver(shown):
    """Which term makes most of the spread over the whole run, where none took over."""
    if shown.turns or len(shown.run.names) == 1:
        return None
    shares = shown.series.shares
    known = np.isfinite(shares).all(axis=1)
    if not known.any():
        return None
    mean = np.mean(shares[known], axis=0)
    top = int(np.argmax(mean))
    return {
        "term": shown.run.names[top],
        "share": float(mean[top]),
        "task": shown.task,
        "is_task": shown.run.names[top] == shown.task,
        "steps": int(known.sum()),
    }


def _say_driver(figures):
    said = (
        f"{named(figures['term'])} drives the update: on average over "
        f"{count(figures['steps'], 'scored step')} it makes {percent(figures['share'])} of the "
        "spread of the total reward within groups."
    )
    if figures["is_task"]:
        return f"{said} No other term took over."
    return f"{said} It is not {named(figures['task'])}."


def task_course(shown):
    """How the task went from the first quarter of the run to the last."""
    if shown.turns:
        return None
    found = ends(shown.series.task, shown.series.task_error)
    if found is None or len(shown.series.steps) < 4:
        return None
    first, last, sigmas = found
    return {"task": shown.task, "first": first, "last": last, "sigmas": sigmas}


def _say_task_course(figures):
    sigmas, size = figures["sigmas"], number(abs(figures["sigmas"]), 2)
    span = f"from {number(figures['first'], 3)} to {number(figures['last'], 3)}"
    between = "(means of the first and the last quarter of the steps)"
    if abs(sigmas) < _CHANCE:
        return (
            f"{named(figures['task'])} went {span} {between}: no more than chance makes of it, "
            f"{size} standard errors."
        )
    moved = "rose" if sigmas > 0 else "fell"
    doubt = "." if abs(sigmas) > _SIGMA else f": {size} standard errors, seldom chance alone."
    return f"{named(figures['task'])} {moved} {span} {between}{doubt}"


def length_course(shown):
    """Length that changed by more than a tenth and by more than chance."""
    found = ends(shown.series.length)
    if found is None or not found[0] > 0:
        return None
    first, last, sigmas = found
    if abs(last / first - 1) < 0.1 or abs(sigmas) < _SIGMA:
        return None
    right, wrong = ends(shown.series.length_right), ends(shown.series.length_wrong)
    return {
        "first": first, "last": last, "unit": shown.run.unit,
        "right": right and right[:2], "wrong": wrong and wrong[:2],
    }  # fmt: skip


def _say_length_course(figures):
    apart = [
        f"{name} answers from {number(pair[0], 3)} to {number(pair[1], 3)}"
        for name, pair in (("right", figures["right"]), ("wrong", figures["wrong"]))
        if pair
    ]
    more = f": {listing(apart)}" if len(apart) == 2 else ""
    verb = "grew" if figures["last"] > figures["first"] else "shrank"
    return (
        f"Completions {verb} from {number(figures['first'], 3)} to {number(figures['last'], 3)} "
        f"{figures['unit']} on average{more}."
    )


def far_from_reference(shown):
    """A logged KL that ended far above where it began."""
    found = logged(shown.log, "kl")
    if found is None:
        return None
    name, steps, values = found
    both = ends(values)
    if both is None or both[1] < 1.0 or both[1] < 2 * both[0]:
        return None
    return {"name": name, "first": both[0], "last": both[1], "step": int(steps[np.argmax(values)]),
            "largest": float(np.max(values))}  # fmt: skip


def _say_far(figures):
    return (
        f"The policy went far from its reference: the logged {figures['name']} rose from "
        f"{number(figures['first'], 3)} to {number(figures['last'], 3)} per token (means of the "
        f"first and the last quarter), {number(figures['largest'], 3)} at step {figures['step']}."
    )


def never_clipped(shown):
    """A clip share of 0 at every logged step."""
    found = logged(shown.log, "clip_share")
    if found is None or len(found[2]) < 2 or np.any(found[2] != 0):
        return None
    return {"name": found[0], "steps": len(found[2])}


def _say_never_clipped(figures):
    return (
        f"Nothing was clipped: {figures['name']} is 0 in all {figures['steps']:,} records. Where "
        "each batch is used once, the ratio is 1 everywhere and the clip range does nothing."
    )


ROWS = (
    RunFinding(
        code="reward_hacked",
        question="Is a reward hacked?",
        severity="warning",
        find=hacked,
        sentence=_say_hacked,
    ),
    RunFinding(
        about_rewards=False,
        code="far_from_reference",
        question="How far did it go?",
        severity="warning",
        find=far_from_reference,
        sentence=_say_far,
    ),
    RunFinding(
        code="task_course",
        question="Did it learn the task?",
        severity="note",
        find=task_course,
        sentence=_say_task_course,
    ),
    RunFinding(
        code="driver",
        question="What drives the update?",
        severity="note",
        find=driver,
        sentence=_say_driver,
    ),
    RunFinding(
        about_rewards=False,
        code="length_course",
        question="Did answers get longer?",
        severity="note",
        find=length_course,
        sentence=_say_length_course,
    ),
    RunFinding(
        about_rewards=False,
        code="never_clipped",
        question="Does clipping do anything?",
        severity="note",
        find=never_clipped,
        sentence=_say_never_clipped,
    ),
)
