"""What silent groups are, cost and leave behind, in sentences from the numbers."""

import numpy as np
import pandas as pd

from grpo_core.silent import silent_probability
from grpo_core.words import groups, opening

from .computed import kl_in_reward
from .numbers import MISSING, count, number, percent


def tied_line(evaluation, left):
    """What the tied groups of the batch cost, and what they still do."""
    tied = np.flatnonzero(left.tied)
    if np.max(np.sum(evaluation.scored, axis=1), initial=0) < 2:
        return (
            "Every group has one answer at most: there is nothing to compare it with, so no group "
            "teaches."
        )
    if not tied.size:
        return (
            "No group of this batch is tied. Give all answers of one prompt the same reward and "
            "see what stays of it."
        )
    where = [(int(p),) for p in tied]
    one = len(where) == 1
    pull = float(np.max(left.policy_pull[tied]))
    policy = (
        f"{'Its' if one else 'Their'} policy gradient is exactly 0"
        if pull == 0 else f"All the same a gradient of norm {number(pull)} is left"
    )  # fmt: skip
    return (
        f"{opening(groups(where))} {'is' if one else 'are'} tied: {percent(left.groups)} of the "
        f"groups and {percent(left.tokens)} of the tokens that were generated. "
        f"{policy}. {_kl_words(evaluation, left, tied)}"
    )


def _kl_words(evaluation, left, tied):
    if kl_in_reward(evaluation):
        return "The KL is in the reward here; where it differs between answers it breaks ties."
    pull, every = float(np.sum(left.kl_pull[tied])), float(np.sum(left.kl_pull))
    if pull > 0:
        least = np.flatnonzero(~left.tied)
        against = ""
        if least.size and np.max(left.policy_pull[least]) > 0:
            ratio = np.max(left.kl_pull[tied]) / np.max(left.policy_pull[least])
            against = f", {percent(ratio)} of the largest policy gradient beside it"
        return (
            f"What stays is the KL term: it pulls with norm {number(np.max(left.kl_pull[tied]))}"
            f"{against}. {percent(pull / every)} of all KL pull is in tied groups."
        )
    if not evaluation.scenario.conventions["kl"].options.get("beta"):
        return "With beta = 0 nothing stays; the group only counts where the mean is taken."
    return "The KL term leaves nothing either: the policy is where the reference is."


def broken_line(evaluation, task_tied):
    """Ties of the task reward that something else in the score breaks."""
    broken = np.flatnonzero(task_tied & ~evaluation.tied)
    if not broken.size:
        return ""
    where = [(int(p),) for p in broken]
    return (
        f"By the task reward {groups(where)} would be tied, too; a term or the KL in the score "
        "breaks the tie."
    )


def expected_line(now):
    """Expected share of silent groups, what it costs, and what larger groups would change."""
    double = float(np.mean(silent_probability(now.prompts, min(2 * now.G, 1024))))
    lost = now.share * now.G
    text = f"Groups of {now.G} of these prompts are silent in {percent(now.share)} of cases. "
    if now.share == 1:
        return text + "No prompt can have a mixed group: every answer is generated for nothing."
    return text + (
        f"Of every {now.G} answers {number(lost, 3)} are generated for nothing: "
        f"{number(1 / (1 - now.share), 3)} groups for each that teaches. Groups of "
        f"{min(2 * now.G, 1024)} would be silent in {percent(double)}, at twice the answers."
    )  # fmt: skip


def observed_line(now):
    """Share of tied groups of the batch against what the table's prompts would give."""
    n = now.batch_groups
    if not n:
        return "No group of the batch has two scores."
    text = (
        f"In the batch {now.batch_tied} of {count(n, 'group')} "
        f"{'is' if 1 in (now.batch_tied, n) else 'are'} tied, {percent(now.batch_tied / n)}. "
        f"If its prompts were drawn from the table, {percent(now.batch_expected)} would be expected"
    )
    surprise = now.surprise
    if not np.isfinite(surprise):
        return f"{text}, always: its prompts are others than those of the table."
    away = f"{number(abs(surprise), 3)} standard deviations away"
    if abs(surprise) < 2:
        return f"{text}, {away}: that may be chance."
    verdict = "easier or harder" if surprise > 0 else "more often of a middle rate"
    return (
        f"{text}, {away}: more than chance would have it. Its prompts are {verdict} than those of "
        "the table."
    )


def draws_line(drawn):
    """What dynamic sampling generates to fill the batch."""
    it = drawn.exact
    if it.chance == 0:
        return "None of these prompts can have a mixed group: dynamic sampling would never end."
    return (
        f"To keep {count(it.wanted, 'mixed group')} of {it.G}, {number(it.draws)} are generated on "
        f"average, give or take {number(it.draws_std, 3)} (standard deviation): "
        f"{number(it.draws / it.wanted, 3)} for each that is kept, {number(it.samples)} answers "
        f"for {it.wanted * it.G:,} that train. Generated {count(it.wanted, 'group')} at a time: "
        f"{number(it.batches, 3)} rounds."
    )


def selection_line(now, drawn):
    """What dynamic sampling does to the distribution of prompts, and to the gradient."""
    it = drawn.exact
    if it.chance == 0:
        return ""
    if it.chance > 1 - 1e-9:
        return "Hardly any group of these prompts is silent, so nothing is selected."
    change = it.kept_share / it.drawn_share
    up, down = int(np.argmax(change)), int(np.argmin(change))
    noun, x = "mean reward" if now.graded else "rate", now.prompts.mean
    if change[up] <= 1.005 * change[down]:
        chosen = "Every kind of prompt is kept as often as it is drawn."
    else:
        chosen = (
            f"Prompts of {noun} {number(x[down], 3)} go from {percent(it.drawn_share[down])} of "
            f"the groups to {percent(it.kept_share[down])}, those of {number(x[up], 3)} to "
            f"{percent(it.kept_share[up])}."
        )
    return (
        f"{chosen} The mean gradient becomes {number(it.factor, 3)} times as large and keeps its "
        "direction, since silent groups add 0 to it: what is gained is a steady step, not signal "
        "for each answer generated. Not so under the std of the batch, which the selection changes."
    )


def draws_frame(drawn):
    """Closed form beside sampling of dynamic sampling, with two standard errors."""
    it, seen = drawn.exact, drawn.sampled
    rows = {
        "groups generated": (it.draws, "draws"),
        "rounds": (it.batches, "batches"),
        "mean reward kept": (it.kept_observed, "kept_observed"),
    }
    return pd.DataFrame(
        {
            "closed form": [number(value) for value, _ in rows.values()],
            "sampled": [_sampled(seen, name) for _, name in rows.values()],
        },
        index=pd.Index(list(rows), name="dynamic sampling"),
    )


def _sampled(seen, name):
    if seen is None:
        return MISSING
    found = getattr(seen, name)
    return f"{number(found.mean, 4)} ± {number(2 * found.error, 2)}"


def means_line(drawn):
    """The trap: the mean reward among the groups kept is not that of their prompts."""
    it, seen = drawn.exact, drawn.sampled
    if it.chance == 0:
        return ""
    if np.isclose(it.drawn_mean, it.kept_mean) and np.isclose(it.kept_mean, it.kept_observed):
        return f"The mean reward stays {number(it.drawn_mean)} among the groups kept."
    runs = "not sampled: mixed groups are too rare" if seen is None else (
        f"{seen.draws.count:,} runs sampled"
    )  # fmt: skip
    return (
        f"True mean of the prompts drawn {number(it.drawn_mean)}, of those kept "
        f"{number(it.kept_mean)}; answers in the groups kept have {number(it.kept_observed)}, "
        f"since a group was kept for its rewards. ({opening(runs)}.)"
    )
