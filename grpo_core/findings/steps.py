"""Findings about process rewards: who gains by more steps, and what steps change in credit."""

import numpy as np

from ..errors import place
from ..evaluation import evaluate
from ..group_statistics import group_statistics
from ..numerics import total
from ..stages import STAGES
from ..step_credit import credit_changes, gains_by_count
from ..words import cells, count, groups, number, opening, percent
from . import facts
from .row import FindingRow


def gain_by_steps(evaluation):
    """A completion that is put before another by having more steps, not better ones."""
    if not facts.by_steps(evaluation):
        return None
    ends = np.where(_there(evaluation), evaluation.scenario["step_ends"], np.nan)
    gains = gains_by_count(evaluation.step_advantages, ends)
    if not len(gains.gain):
        return None
    p, _, j = gains.where[0].tolist()
    gaining = list(dict.fromkeys(map(tuple, gains.where[:, :2].tolist())))
    return {
        "places": tuple(gaining),
        "other": (p, j),
        "gain": float(gains.gain[0]),
        "steps": tuple(gains.steps[0].tolist()),
        "means": tuple(gains.means[0].tolist()),
        "totals": tuple(gains.totals[0].tolist()),
        "at_equal_count": float(gains.at_equal_count[0]),
    }


def _there(evaluation):
    """Steps that there are, (P, G, S)."""
    scenario = evaluation.scenario
    return ~np.isnan(scenario["step_ends"]) & scenario["present"][..., None]


def _say_gain_by_steps(figures):
    (mine, theirs), (mean, other) = figures["steps"], figures["means"]
    whole, rival = figures["totals"]
    text = (
        f"{opening(place(figures['places'][0]))} gains only by having more steps. Its {mine} "
        f"steps are on average no better than the {theirs} of completion {figures['other'][1]} "
        f"(normalised, {number(mean)} against {number(other)}), yet they add up to "
        f"{number(whole)} against {number(rival)}: {number(figures['gain'])} more. With "
        f"{count(theirs, 'step')} of that mean it would have {number(figures['at_equal_count'])}."
    )
    more = figures["places"][1:]
    return f"{text} Others that gain so: {cells(more)}." if more else text


def credit_sign_changes(evaluation):
    """Tokens that step rewards push the other way than the outcome alone would."""
    if not facts.by_steps(evaluation):
        return None
    outcome = _outcome_alone(evaluation)
    changes = credit_changes(evaluation.token_advantages, outcome, evaluation.valid)
    if not changes.flipped.any():
        return None
    where = facts.largest(np.abs(changes.difference), changes.flipped)
    share = changes.flipped_total / changes.total
    return {
        "places": (where,),
        "flipped": int(np.sum(changes.flipped)),
        "tokens": changes.tokens,
        "before": float(outcome[where]),
        "after": float(evaluation.token_advantages[where]),
        "share": float(share) if np.isfinite(changes.total) else None,
    }


def _outcome_alone(evaluation):
    """Token advantages of the outcome, with the std and eps of the steps and all that follows."""
    chosen = evaluation.scenario.conventions["advantage"].options
    row = STAGES["advantage"].variants[STAGES["advantage"].default]
    options = {option.key: chosen[option.key] for option in row.options if option.key in chosen}
    return evaluate(evaluation.scenario.choose("advantage", row.key, **options)).token_advantages


def _say_credit_sign_changes(figures):
    n = figures["flipped"]
    text = (
        f"Step rewards turn the sign of {n:,} of {count(figures['tokens'], 'token')} "
        f"({percent(n / figures['tokens'])}), most at {place(figures['places'][0])}: from "
        f"{number(figures['before'])} by the outcome alone to {number(figures['after'])}."
    )
    if figures["share"] is not None:
        text += f" That is {percent(figures['share'])} of all change in credit."
    return text


def wrong_answer_pushed_up(evaluation):
    """Completions of a low outcome reward whose tokens have positive advantages."""
    if not facts.by_steps(evaluation):
        return None
    rewards = evaluation.scenario["rewards"]
    known = evaluation.scenario["present"] & ~np.isnan(rewards)
    outcomes = group_statistics(np.where(known, rewards, 0.0), known, 0)
    lengths = np.maximum(evaluation.lengths, 1)
    mean = total(np.where(evaluation.valid, evaluation.token_advantages, 0.0), axis=2) / lengths
    slack = 1e-9 * facts.group_max(np.abs(evaluation.token_advantages))[:, None]
    worse = known & (outcomes.centred < 0)
    whole, start = worse & (mean > slack), worse & (evaluation.advantages > slack)
    pushed = whole | start
    if not pushed.any():
        return None
    # On average over its tokens is worse than at the first one only.
    worst = facts.largest(mean if whole.any() else evaluation.advantages, pushed)
    return {
        "places": facts.places_from(worst, pushed),
        "reward": float(rewards[worst]),
        "group": float(outcomes.mean[worst[0]]),
        "whole": bool(whole[worst]),
        "first": float(evaluation.advantages[worst]),
        "mean": float(mean[worst]),
        "tokens": int(evaluation.lengths[worst]),
    }


def _say_wrong_answer_pushed_up(figures):
    where = figures["places"]
    text = (
        f"{opening(place(where[0]))} is pushed up {'' if figures['whole'] else 'at its start '}"
        f"although its reward {number(figures['reward'])} is below its group's mean, "
        f"{number(figures['group'])}: its first token has the advantage "
        f"{number(figures['first'])}, the mean over its {count(figures['tokens'], 'token')} is "
        f"{number(figures['mean'])}."
    )
    if len(where) == 1:
        return text
    return f"{text} Above 0 at the first token or in the mean, too: {cells(where[1:])}."


# Axes over which steps are pooled, by the option 'over'.
_POOL_AXES = {"group": (1, 2), "completion": (2,)}


def tied_steps(evaluation):
    """Pools of steps that all have the same reward."""
    if not facts.by_steps(evaluation):
        return None
    axes = _POOL_AXES[facts.option(evaluation, "advantage", "over")]
    there, rewards = _there(evaluation), evaluation.scenario["step_rewards"]
    low = np.min(np.where(there, rewards, np.inf), axis=axes, initial=np.inf)
    high = np.max(np.where(there, rewards, -np.inf), axis=axes, initial=-np.inf)
    tied = low == high
    if not tied.any():
        return None
    return {
        "places": facts.places(tied),
        "steps": int(np.sum(there, axis=axes)[tied][0]),
        "reward": float(low[tied][0]),
    }


def _say_tied_steps(figures):
    where = figures["places"]
    named = groups(where) if len(where[0]) == 1 else cells(where)
    if len(where) > 1:
        said = "all steps have the same reward within each"
    elif figures["steps"] == 1:
        said = "there is a single step, which is its own mean"
    else:
        said = f"all {figures['steps']} steps have the reward {number(figures['reward'])}"
    return f"Steps are tied in {named}: {said}. So each counts 0, and they teach nothing there."


def no_steps(evaluation):
    """Completions without a step."""
    if not facts.by_steps(evaluation):
        return None
    without = evaluation.scenario["present"] & ~_there(evaluation).any(axis=2)
    if not without.any():
        return None
    return {
        "places": facts.places(without),
        "silent": not np.any(evaluation.token_advantages[without]),
    }


def _say_no_steps(figures):
    n = len(figures["places"])
    text = f"{count(n, 'completion')} without a step: {cells(figures['places'])}."
    if figures["silent"]:
        return f"{text} {'Its' if n == 1 else 'Their'} tokens get the advantage 0."
    return f"{text} {'Its' if n == 1 else 'Their'} tokens have the outcome's advantage alone."


ROWS = (
    FindingRow(
        code="gain_by_steps",
        severity="warning",
        page="Process_rewards",
        question="Do more steps pay?",
        find=gain_by_steps,
        sentence=_say_gain_by_steps,
    ),
    FindingRow(
        code="wrong_answer_pushed_up",
        severity="warning",
        page="Process_rewards",
        question="Why is a wrong answer pushed up?",
        find=wrong_answer_pushed_up,
        sentence=_say_wrong_answer_pushed_up,
    ),
    FindingRow(
        code="tied_steps",
        severity="warning",
        page="Process_rewards",
        question="Why is an advantage 0?",
        find=tied_steps,
        sentence=_say_tied_steps,
    ),
    FindingRow(
        code="no_steps",
        severity="warning",
        page="Process_rewards",
        question="Why is an advantage 0?",
        find=no_steps,
        sentence=_say_no_steps,
    ),
    FindingRow(
        code="credit_sign_changes",
        severity="note",
        page="Process_rewards",
        question="What do step rewards change?",
        find=credit_sign_changes,
        sentence=_say_credit_sign_changes,
    ),
)
