"""Findings about difficulty: which prompts a std favours, and how many groups were bound to tie."""

import numpy as np

from ..prompt_rewards import GROUP_SIZE, prompts_from_table
from ..silent import silent_probability, tied_groups
from ..words import count, groups, number, opening, percent
from . import facts
from .groups import nearly_tied
from .row import FindingRow

UNEVEN = 1.5  # divisors that differ by less are no news: 1 and 4 right of 8 differ by 1.51
PAIR = 2  # scores of which only the order is left, which another finding says
BEYOND_CHANCE = 2.0  # standard deviations
LARGE = 0.5  # half of the batch generated for nothing is worth a sentence, chance or not


def divided_unevenly(evaluation):
    """The groups with the smallest and the largest divisor, where one std is far smaller."""
    divisors = facts.divisor(evaluation)
    if divisors is None or facts.by_steps(evaluation) or not facts.judged_as_one(evaluation):
        return None
    divided = _of_answers(evaluation)
    if np.sum(divided) < 2:
        return None
    (light,) = facts.largest(divisors, divided)
    (heavy,) = facts.largest(-divisors, divided)
    factor = divisors[light] / divisors[heavy]
    if not UNEVEN <= factor < np.inf:
        return None
    favoured = divided & (divisors <= divisors[light] / UNEVEN)
    return {
        "places": facts.places_from((heavy,), favoured),
        "than": light,
        "means": (float(evaluation.mean[heavy]), float(evaluation.mean[light])),
        "divisors": (float(divisors[heavy]), float(divisors[light])),
        "factor": float(factor),
    }


def _of_answers(evaluation):
    """Groups whose std is that of differing task rewards; shape (P,).

    A tie that only a term or the KL breaks is small for another reason, and said elsewhere.
    """
    rewards = np.nan_to_num(evaluation.scenario["rewards"], nan=0.0)
    answers = facts.spread(rewards, evaluation.scored) > 0
    answers &= np.sum(evaluation.scored, axis=1) > PAIR
    answers &= np.isfinite(evaluation.std) & np.isfinite(evaluation.mean) & (evaluation.std > 0)
    return answers & ~nearly_tied(evaluation)


def _say_divided_unevenly(figures):
    where, (small, large) = figures["places"], map(number, figures["divisors"])
    own, other = map(number, figures["means"])
    than = groups([(figures["than"],)])
    text = (
        f"{opening(groups(where[:1]))} (mean {own}) is divided by {small}, {than} "
        f"(mean {other}) by {large}: the same difference of rewards counts "
        f"{number(figures['factor'], 3)} times as much in the first."
    )
    if len(where) > 1:
        text += f" Favoured, too: {groups(where[1:])}."
    return text


def silent_share(evaluation):
    """Tied groups of the batch against the share that the kinds of prompts make likely."""
    scenario = evaluation.scenario
    if not all(key in scenario for key in ("reward_chances", "reward_values")):
        return None
    if facts.by_steps(evaluation) or not facts.judged_as_one(evaluation):
        return None
    rewards = np.where(scenario["present"], scenario["rewards"], np.nan)
    tied, sizes = tied_groups(rewards), np.sum(~np.isnan(rewards), axis=1)
    counted = sizes > 1
    # The chances are those of the task reward: scores with other ties are not about them.
    if not counted.any() or not np.array_equal(tied, evaluation.tied):
        return None
    expected = _expected(scenario, sizes[counted])
    observed = float(np.mean(tied[counted]))
    gap = abs(observed - expected)
    spread = np.sqrt(expected * (1 - expected) / np.sum(counted))
    beyond = bool(gap > 1e-12 and gap >= BEYOND_CHANCE * spread)
    if not beyond and observed < LARGE:
        return None
    return {
        "places": facts.places(tied),
        "of": int(np.sum(counted)),
        "observed": observed,
        "expected": expected,
        "beyond": beyond,
    }


def _expected(scenario, sizes):
    """Mean chance of a tie of groups of these sizes, each of any of the kinds of prompts."""
    prompts = prompts_from_table(scenario["reward_values"], scenario["reward_chances"])
    sizes, often = np.unique(np.minimum(sizes, int(GROUP_SIZE.high)), return_counts=True)
    each = [float(np.mean(silent_probability(prompts, int(size)))) for size in sizes]
    return min(float(np.average(each, weights=often)), 1.0)


def _say_silent_share(figures):
    tied = len(figures["places"])
    text = (
        f"{tied:,} of {count(figures['of'], 'group')} {'is' if tied == 1 else 'are'} tied, "
        f"{percent(figures['observed'])}. The chances in the table of prompts make "
        f"{percent(figures['expected'])} likely"
    )
    if not figures["beyond"]:
        return f"{text}, and the difference may be chance."
    return f"{text}: more than chance is between them, so the batch holds other prompts."


ROWS = (
    FindingRow(
        code="divided_unevenly",
        severity="note",
        page="Difficulty",
        question="Do all prompts count alike?",
        find=divided_unevenly,
        sentence=_say_divided_unevenly,
    ),
    FindingRow(
        code="silent_share",
        severity="note",
        page="Silent_groups",
        question="Are so many tied groups normal?",
        find=silent_share,
        sentence=_say_silent_share,
    ),
)
