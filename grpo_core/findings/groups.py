"""Findings about groups: ties, near ties, groups too small to compare in.

Each rule returns the figures of its sentence, with the places that it holds for, or None.
"""

import numpy as np

from ..numerics import times, total
from ..words import MINUS, cells, count, groups, number, opening, percent
from . import facts
from .row import FindingRow

NEAR = 1e-3  # spread against the largest reward of the group; and the largest eps that is a guard


def nearly_tied_group(evaluation):
    """The near tie with the largest advantage, and how it came about."""
    if facts.by_steps(evaluation) or not facts.judged_as_one(evaluation):
        return None
    near = nearly_tied(evaluation)
    if not near.any():
        return None
    eps, divisor = facts.option(evaluation, "advantage", "eps"), facts.divisor(evaluation)
    sizes = facts.group_max(np.abs(evaluation.advantages))
    (worst,) = facts.largest(sizes, near)
    low, high = facts.score_range(evaluation)
    advantage = float(sizes[worst])
    return {
        "places": facts.places_from((worst,), near),
        "spread": float(high[worst] - low[worst]),
        "std": float(evaluation.std[worst]),
        "eps": eps,
        "eps_share": float(eps / divisor[worst]),
        "amplification": float(1 / divisor[worst]),
        "deviation": float(advantage * divisor[worst]),
        "advantage": advantage,
    }


def nearly_tied(evaluation):
    """Groups whose spread is small against their rewards, or lost in eps; shape (P,).

    Small is at most 1/1000 of the group's largest score, or a standard deviation of at most
    eps where eps is a mere guard (at most 1/1000). Both scale with the rewards as the
    convention does, and a group of 0s and 1s meets neither.
    """
    eps = facts.option(evaluation, "advantage", "eps")
    if facts.divisor(evaluation) is None:  # nothing is divided by the spread
        return np.zeros(len(evaluation.std), dtype=bool)
    low, high = facts.score_range(evaluation)
    spread = high - low
    # 1 - 0.999 is a little more than 0.001 in doubles
    small = spread <= NEAR * (1 + 1e-9) * np.maximum(np.abs(low), np.abs(high))
    lost = (evaluation.std <= eps) & (eps <= NEAR)
    return (spread > 0) & np.isfinite(spread) & (evaluation.std > 0) & (small | lost)


def _say_nearly_tied_group(figures):
    where = figures["places"]
    text = (
        f"{opening(groups(where[:1]))} is nearly tied: its scores differ by at most "
        f"{number(figures['spread'])}. Dividing by std + eps multiplies differences by "
        f"{number(figures['amplification'])}, so {number(figures['deviation'])} from the mean "
        f"became an advantage of {number(figures['advantage'])}."
    )
    if figures["eps_share"] >= 0.01:
        text += f" eps is {percent(figures['eps_share'])} of the divisor."
    if len(where) > 1:
        text += f" Nearly tied, too: {groups(where[1:])}."
    return text


def tie_broken_by_kl(evaluation):
    """Groups of equal rewards whose scores differ by the KL penalty inside the reward."""
    if facts.by_steps(evaluation) or facts.given(evaluation):
        return None
    if facts.chosen(evaluation, "advantage") in facts.UNCOMPARED:  # a tie there is none
        return None
    rewards, scores, scored, advantages = _judged(evaluation)
    spread = facts.spread(scores, scored)
    equal = (np.sum(scored, axis=1) > 1) & (facts.spread(rewards, scored) == 0)
    broken = equal & (spread > 0) & evaluation.reward_penalty.any(axis=(1, 2))
    if not broken.any():
        return None
    sizes = facts.group_max(np.abs(advantages))
    (worst,) = facts.largest(sizes, broken)
    return {
        "places": facts.places_from((worst,), broken),
        "spread": float(spread[worst]),
        "advantage": float(sizes[worst]),
        "task_only": not facts.judged_as_one(evaluation),
    }


def _judged(evaluation):
    """Rewards without the KL penalty, with it, which count, and what comes of them; all (P, G).

    Where terms are judged apart these are the task's own: the penalty is in no other.
    """
    scored, shaped = evaluation.scored, evaluation.attribution
    if shaped is None:
        rewards = np.nan_to_num(evaluation.scenario["rewards"], nan=0.0)  # missing as zero
        return rewards, evaluation.scores, scored, evaluation.advantages
    values = np.nan_to_num(shaped.values, nan=0.0)
    if facts.judged_as_one(evaluation):
        weighted = times(shaped.weights[:, None, None], values)
        rewards = total(np.moveaxis(weighted, 0, -1), axis=-1)
        return rewards, evaluation.scores, scored, evaluation.advantages
    if facts.option(evaluation, "rewards", "missing") != "as_zero":
        scored = scored & ~np.isnan(shaped.values[0])
    return values[0], shaped.weighted[0], scored, shaped.parts[0]


def _say_tie_broken_by_kl(figures):
    where = figures["places"]
    one, task = len(where) == 1, figures["task_only"]
    return (
        f"{opening(groups(where))} {'has' if one else 'have'} equal {'task ' if task else ''}"
        "rewards, but the KL penalty "
        f"inside the reward breaks the tie{'' if one else f', most in group {where[0][0]}'}: "
        f"{'task ' if task else ''}scores differ by up to {number(figures['spread'])}, and "
        f"{'their part of the advantages reaches' if task else 'advantages reach'} "
        f"{number(figures['advantage'])}."
    )


def tied_group(evaluation):
    """Groups of two or more scores that are all equal."""
    # A tied group with an advantage all the same is said by the finding on residues.
    tied = facts.tied(evaluation) & facts.silent(evaluation)
    if not tied.any():
        return None
    score, _ = facts.score_range(evaluation)
    return {
        "places": facts.places(tied),
        "of": len(tied),
        "score": float(score[np.argmax(tied)]),
    }


def _say_tied_group(figures):
    where = figures["places"]
    one = len(where) == 1
    text = f"{opening(groups(where))} {'is' if one else 'are'} tied: "
    if one:
        text += f"every score in it is {number(figures['score'])}"
    else:
        text += "within each of them all scores are equal"
    return f"{text}, so all advantages are 0 and the rewards teach nothing here."


def group_of_one(evaluation):
    """Groups with a single scored completion, whose score therefore gives no advantage."""
    single = np.sum(evaluation.scored, axis=1) == 1
    given = facts.given(evaluation)
    if given:
        single &= facts.judged_as_one(evaluation)
    else:  # terms added after normalising are an advantage also here, and so are steps
        single &= facts.silent(evaluation) & (not facts.by_steps(evaluation))
    return {"places": facts.places(single), "given": given} if single.any() else None


def _say_group_of_one(figures):
    where = figures["places"]
    one = len(where) == 1
    text = f"{opening(groups(where))} {'has' if one else 'have'} a single scored completion"
    text += ": it is its own mean, " if one else " each: it is its own mean, "
    if figures["given"]:
        return f"{text}so an advantage computed from it would be 0."
    return f"{text}so its advantage is 0."


def missing_reward(evaluation):
    """Completions that nothing scored, unless there are no rewards at all to miss.

    What is missing of several rewards that are combined is told by another finding.
    """
    scenario = evaluation.scenario
    missing = scenario["present"] & np.isnan(scenario["rewards"])
    given = facts.given(evaluation)
    none = given and not (scenario["present"] & ~missing).any()
    unread = not (given or facts.uses_scores(evaluation))
    if not missing.any() or none or unread or evaluation.attribution is not None:
        return None
    # With terms a completion can have a score without a task reward.
    counted = facts.combining(evaluation) is None or not np.any(evaluation.scored[missing])
    return {
        "places": facts.places(missing),
        "silent": not np.any(evaluation.token_advantages[missing]),
        "convention": facts.option_words(evaluation, "rewards", "missing") if counted else None,
    }


def _say_missing_reward(figures):
    n = len(figures["places"])
    text = f"{count(n, 'completion')} without a reward: {cells(figures['places'])}."
    if figures["convention"]:
        text += f" By the chosen convention a missing reward is {figures['convention']}."
    if figures["silent"]:
        text += f" {'Its advantage is' if n == 1 else 'Their advantages are'} 0."
    return text


def group_of_two(evaluation):
    """Groups of two scores divided by their own spread: only the order is left."""
    divisor, std = facts.divisor(evaluation), evaluation.std
    one_score = facts.judged_as_one(evaluation) and not facts.by_steps(evaluation)
    if divisor is None or not one_score:
        return None
    spread = (std > 0) & np.isfinite(std)
    clear = spread & (divisor <= 1.01 * std) & ~nearly_tied(evaluation)
    two = (np.sum(evaluation.scored, axis=1) == 2) & clear & facts.uniform(evaluation)
    if not two.any():
        return None
    return {
        "places": facts.places(two),
        "advantage": float(np.max(np.abs(evaluation.advantages[two]))),
    }


def _say_group_of_two(figures):
    where, size = figures["places"], number(figures["advantage"])
    have = "has two scored completions" if len(where) == 1 else "have two scored completions each"
    return (
        f"{opening(groups(where))} {have}: the better one gets {size}, the other {MINUS}{size}, "
        "however far apart their scores are."
    )


ROWS = (
    FindingRow(
        code="nearly_tied_group",
        severity="warning",
        page="Advantages",
        question="Why are advantages so large?",
        find=nearly_tied_group,
        sentence=_say_nearly_tied_group,
    ),
    FindingRow(
        code="tie_broken_by_kl",
        severity="warning",
        page="Advantages",
        question="Why is a tied group not silent?",
        find=tie_broken_by_kl,
        sentence=_say_tie_broken_by_kl,
    ),
    FindingRow(
        code="tied_group",
        severity="warning",
        page="Advantages",
        question="Why is an advantage 0?",
        find=tied_group,
        sentence=_say_tied_group,
    ),
    FindingRow(
        code="group_of_one",
        severity="warning",
        page="Advantages",
        question="Why is an advantage 0?",
        find=group_of_one,
        sentence=_say_group_of_one,
    ),
    FindingRow(
        code="missing_reward",
        severity="warning",
        page="Advantages",
        question="What becomes of a missing reward?",
        find=missing_reward,
        sentence=_say_missing_reward,
    ),
    FindingRow(
        code="group_of_two",
        severity="note",
        page="Advantages",
        question="Why are advantages always the same?",
        find=group_of_two,
        sentence=_say_group_of_two,
    ),
)
