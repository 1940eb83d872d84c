"""What length counts and where it is pulled, in sentences computed from the numbers."""

import numpy as np
import pandas as pd

from grpo_core.length import length_weights
from grpo_core.recipes import RECIPES
from grpo_core.words import listing

from .length_charts import compared_rows
from .length_pull import pull_rows
from .length_tables import long_over_short, short_and_long
from .numbers import change, count, number, percent

_SAME = 1e-9


def weight_line(evaluation, prompt):
    """What a token of the longest completion counts against one of the shortest, by each rule."""
    weights = length_weights(evaluation)
    lengths = weights.lengths[prompt]
    ends = short_and_long(lengths)
    if ends is None:
        return "No completion of this prompt has a token that counts."
    short, long = (int(lengths[end]) for end in ends)
    if short == long:
        return (
            f"All completions of this prompt have {count(short, 'token')}: every aggregation "
            "gives their tokens the same weight. Edit a length."
        )
    found = {}
    for row in compared_rows(weights):
        factor = float(row.token[prompt, ends[1]] / row.token[prompt, ends[0]])
        said = "as much" if abs(factor - 1) < 1e-6 else f"{number(factor, 3)} times as much"
        found.setdefault(said, []).append(row.label)
    said = "; by ".join(f"{listing(labels)}: {said}" for said, labels in found.items())
    text = (
        f"Against a token of the shortest answer ({short}) one of the longest ({long}) counts, by "
        f"{said}."
    )
    return f"{text} {_mildly(weights, prompt)}".strip()


def _mildly(weights, prompt):
    """The wrong answer that gets off lightly under the chosen rule, if there is one."""
    (wrong,) = np.nonzero(weights.wrong[prompt])
    if wrong.size < 1:
        return "No answer of this prompt is pushed down."
    row = next(row for row in weights.rows if row.chosen)
    lengths = weights.lengths[prompt, wrong]
    longest, shortest = wrong[np.argmax(lengths)], wrong[np.argmin(lengths)]
    pushes = [float(abs(row.push[prompt, g])) for g in (longest, shortest)]
    if longest == shortest or not pushes[1] > pushes[0] * (1 + 1e-6):
        return ""
    said = (
        f"Under the chosen rule a token of the long wrong answer {longest} is pushed down by "
        f"{number(pushes[0], 3)}, one of the short wrong answer {shortest} by "
        f"{number(pushes[1], 3)}."
    )
    own = weights.advantages[prompt, [longest, shortest]]
    if np.isclose(*own):
        return said
    return (
        f"{said} Their lengths account for a factor of {number(lengths.min() / lengths.max(), 3)} "
        f"at most; the rest is their advantages, {number(own[0], 3)} and {number(own[1], 3)}."
    )


def judged_line(scenario):
    """That the recipes judge rewards by their groups where the example does not; else ""."""
    row = scenario.conventions.variant("advantage")
    if row.key in {recipe.advantage for recipe in RECIPES.values()}:
        return ""
    return (
        f"This example's advantages are “{row.label}”. Here and in the pull below its rewards are "
        "judged by their groups instead: minus the mean, over the std or not."
    )


def corner_line(results, prompt):
    """What each of the two divisions changes on this batch."""
    by_corner = {r.recipe.corner: r for r in results.values() if r.recipe.corner is not None}
    grpo, no_std = by_corner[True, True], by_corner[False, True]
    if not np.any(grpo.whole):
        return "No answer of this batch is pushed, under any of the four."
    return f"{_std_line(grpo, no_std, prompt)} {_length_line(by_corner, prompt)}".strip()


def _std_line(grpo, no_std, prompt):
    live = np.flatnonzero(np.sum(np.abs(grpo.whole), axis=1) > 0)
    if live.size == 1:
        return (
            f"Only prompt {live[0]} is pushed here, so the std changes the size of the step and "
            "nothing else: with it and without it the shares are the same. Between prompts it "
            "shifts them."
        )
    with_std, without = (np.sum(r.share, axis=1) for r in (grpo, no_std))
    shifts = np.abs(with_std - without)
    most = prompt if shifts[prompt] > 1e-6 else int(np.argmax(shifts))
    if shifts[most] < 1e-6:
        return "All groups have the same spread, so dividing by the std shifts nothing."
    return (
        f"The std shifts shares between prompts: prompt {most} gets "
        f"{percent(float(with_std[most]))} of the update with it and "
        f"{percent(float(without[most]))} without."
    )


def _length_line(by_corner, prompt):
    grpo, dr_grpo = by_corner[False, True], by_corner[False, False]
    lengths = grpo.evaluation.lengths[prompt]
    (pushed,) = np.nonzero(grpo.whole[prompt] != 0)
    if not pushed.size or np.ptp(lengths[pushed]) == 0:
        return ""
    long = int(pushed[np.argmax(lengths[pushed])])
    shares = [percent(float(r.share[prompt, long])) for r in (grpo, dr_grpo)]
    return (
        f"1/length shifts shares between answers: the longest one of prompt {prompt}, answer "
        f"{long}, gets {shares[0]} with it and {shares[1]} without. Without either: Dr. GRPO."
    )


def batch_pull_line(results):
    """Where this very batch pushes the length, by GRPO and by Dr. GRPO."""
    grpo, dr_grpo = results["grpo"].pull, results["dr_grpo"].pull
    if not (grpo.right or grpo.wrong or grpo.whole):
        return "This batch does not push the length."
    said = "longer" if grpo.whole > 0 else "shorter"
    return (
        f"If stopping is a choice by one logit, this very batch makes answers {said} under GRPO: "
        f"{number(grpo.whole, 3, signed=True)} tokens per unit of learning rate "
        f"({number(dr_grpo.whole, 3, signed=True)} under Dr. GRPO). If the policy can tell that it "
        f"is wrong, GRPO moves wrong answers by {number(grpo.wrong, 3, signed=True)} and right "
        f"ones by {number(grpo.right, 3, signed=True)}. One batch also moves by chance; below is "
        "what is left on average."
    )


def hunch_line(view):
    """That nothing is pulled without a hunch, and what is with one; from the numbers."""
    if not view.now:
        return (
            "Under this choice advantages or weights depend on the rest of the batch, so there is "
            "no closed form: the points are simulated batches alone."
        )
    if view.rate in (0.0, 1.0):
        return (
            f"All answers are {'right' if view.rate else 'wrong'} here, so every group is tied: no "
            "rule pulls at lengths, with a hunch or without."
        )
    blind = max(abs(float(curve[part][0])) for curve in view.curves.values() for part in curve)
    text = (
        "If the policy cannot tell that it is wrong (50%), no rule pulls at lengths: the expected "
        "change is 0 for right and wrong answers alike, with 1/length as without it."
        if blind < _SAME
        else "Even without a hunch lengths are pulled here."
    )
    if view.accuracy == 0.5:
        return f"{text} Single runs still drift by chance."
    if max(abs(part) for pulled in view.now.values() for part in _moves(pulled)) <= _SAME:
        return "Where these answers stop is certain, so there is nothing to pull."
    said = [
        f"{RECIPES[key].label} {number(pulled.change_wrong, 3, signed=True)}"
        for key, pulled in view.now.items()
    ]
    return (
        f"{text} With a hunch that is right {percent(view.accuracy)} of the time the expected "
        f"length of wrong answers changes by, in tokens per unit of learning rate: "
        f"{', '.join(said)}. Right answers move the other way. {_about_all(view)}"
    )


def _moves(pulled):
    return pulled.change_right, pulled.change_wrong


def _about_all(view):
    grpo, dapo = view.now["grpo"], view.now["dapo"]
    said = []
    if grpo.change_wrong > 0 and dapo.change_wrong > 0:
        share = dapo.change_wrong / grpo.change_wrong
        n = view.prompts * view.G
        said.append(
            f"DAPO keeps {percent(share)} of the pull: its denominator holds {n} answers, and a "
            "single one moves it by about 1/n."
        )
    if abs(grpo.change) > _SAME * max(map(abs, _moves(grpo))):
        way = "grows" if grpo.change > 0 else "falls"
        said.append(
            f"With {percent(view.rate)} right the mean length {way} at first under GRPO "
            f"({number(grpo.change, 3, signed=True)})."
        )
    elif view.rate == 0.5:
        said.append("As many answers are right as wrong, so at first the mean length stays.")
    else:
        said.append("At first the mean length stays.")
    return " ".join(said)


def world_line(view):
    """What the small policy is, in numbers."""
    return (
        f"Answers of 1 to {view.logits.size + 1} tokens, {number(view.length, 3)} on average; "
        f"{_whose_rate(view)}; batches of {view.prompts} × {view.G}. The last token always stops."
    )


def _whose_rate(view):
    if view.assumed:
        return "half of them right, since no answer of the prompt above is pushed"
    return f"{percent(view.rate)} right, as of the pushed answers of the prompt above"


def pull_frame(view, trials):
    """Closed form, where there is one, beside simulation; a row for each recipe and kind."""
    rows = pull_rows(view, trials)
    return pd.DataFrame(
        {
            "change of length": [number(exact, 3, signed=True) for _, _, exact, _, _ in rows],
            "simulated": [
                f"{number(mean, 3, signed=True)} ± {number(2 * error, 2)}"
                for _, _, _, mean, error in rows
            ],
        },
        index=pd.Index([f"{recipe}, {part}" for recipe, part, *_ in rows], name="recipe, answers"),
    )


def price_lines(evaluation, rows):
    """What each aggregation costs on this batch, the chosen one first; a sentence each."""
    lengths = evaluation.lengths
    ends = short_and_long(lengths.ravel())
    chosen = next(row for row in rows if row.chosen)
    size = float(chosen.evaluation.metrics["gradient_norm"])
    return [
        f"{row.label}: {_price(row, ends, lengths, size)}"
        for row in sorted(rows, key=lambda row: not row.chosen)
    ]


def _price(row, ends, lengths, size):
    token, answer = long_over_short(row, ends, lengths)
    said = []
    if token < 1 - 1e-6:
        said.append(
            f"each token of the longest answer counts only {number(token, 3)} of one of the "
            "shortest. A long wrong answer gets off lightly, token by token."
        )
    elif answer > 1 + 1e-6:
        said.append(
            f"every token counts the same, so the longest answer as a whole counts "
            f"{number(answer, 3)} times the shortest: a few long ones can decide the step."
        )
    else:
        said.append("all answers are equally long, so nothing changes between them.")
    if row.choice.variant == "token_mean":
        said.append("The denominator moves with the batch: about 1/n of the pull on length stays.")
    if row.choice.variant == "constant":
        said.append("The constant sets the size of the step, not the batch.")
    now = float(row.evaluation.metrics["gradient_norm"])
    if not row.chosen and abs(now - size) > 1e-9 * abs(size):
        said.append(f"The gradient's size goes {change(size, now, 3)}: another learning rate.")
    return " ".join(said)
