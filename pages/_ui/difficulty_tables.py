"""Tables of the page on difficulty: closed forms beside samples, and what can be done."""

from types import MappingProxyType

import numpy as np
import pandas as pd

from grpo_core.scales import SCALES, scaled_advantages
from grpo_core.silent import silent_probability, tied_groups
from grpo_core.words import opening

from .difficulty_worlds import scale_of
from .numbers import MISSING, number, percent
from .rate_tables import batch_rewards

# What each row of SCALES costs, for the reader who thinks of choosing it.
PRICES = MappingProxyType(
    {
        "group": "Very hard and very easy prompts weigh more, and so does a nearly tied group.",
        "none": "Advantages have the unit of the reward: its size acts like the learning rate.",
        "batch": "One prompt's advantages depend on which others are in the batch.",
        "leave_one_out": "As without a division, and G/(G − 1) times as large: noisy at G = 2.",
    }
)


def comparison_frame(now):
    """Closed form and samples of every prompt, with two standard errors.

    Returns
    -------
    DataFrame
        A row a prompt: weight, advantages of the best and the worst answer, silent groups.
    """
    exact, seen = now.chosen.exact, now.sampled
    best, worst = ("best", "worst") if now.graded else ("right", "wrong")
    quantities = {
        "weight": ("prompt_weight", None),
        f"A {best}": ("expected_advantage", -1),
        f"A {worst}": ("expected_advantage", 0),
        "silent": ("silent", None),
    }
    columns = {"mean reward" if now.graded else "success rate": [number(x) for x in now.where]}
    for name, (field, part) in quantities.items():
        pick = (slice(None),) if part is None else (slice(None), part)
        if exact is not None:
            columns[name] = [number(value) for value in getattr(exact, field)[pick].tolist()]
        sampled = getattr(seen, field)
        columns[f"{name} sampled"] = [
            _with_error(mean, error)
            for mean, error in zip(sampled.mean[pick], sampled.error[pick], strict=True)
        ]
    return pd.DataFrame(columns, index=pd.RangeIndex(len(now.weights), name="kind"))


def _with_error(mean, error):
    return MISSING if np.isnan(mean) else f"{number(mean, 3)} ± {number(2 * error, 2)}"


def options_of(scenario):
    """Every way of dividing on the batch: name -> (row of SCALES, options, whether chosen)."""
    choice, followed = scale_of(scenario)
    eps = choice.options.get("eps", 1e-8)
    found = {}
    for key, row in SCALES.items():
        for ddof in (0, 1) if key == "group" else (choice.options.get("ddof", 0),):
            options = {"ddof": ddof, "eps": eps} if row.options else {}
            chosen = followed and key == choice.variant and (
                not row.options or ddof == choice.options["ddof"]
            )  # fmt: skip
            label = f"{row.label}, ddof {ddof}" if key == "group" else row.label
            found[label] = (row, options, chosen)
    return found


def batch_shares(scenario):
    """Share of each prompt of the batch in the sizes of all advantages, in percent; (P,) each.

    Under the group's own std, and under any divisor that all groups have in common.
    """
    rewards, (choice, _) = batch_rewards(scenario), scale_of(scenario)
    given = choice.options if choice.variant == "group" else {}
    return {
        "std of the group": 100 * _shares(scaled_advantages(rewards, "group", **given)),
        "nothing, or one divisor for all": 100 * _shares(scaled_advantages(rewards, "none")),
    }


def _shares(advantages):
    sizes = np.nan_to_num(np.abs(advantages))  # infinite ones as the largest there are
    sizes = sizes / (np.max(sizes, initial=0.0) or 1.0)  # so that their sum stays in range
    push = np.sum(sizes, axis=1)
    return push / np.sum(push) if np.any(push) else np.full(len(push), np.nan)


def mean_notes(scenario):
    """Mean reward of each prompt of the batch, in words."""
    rewards = batch_rewards(scenario)
    scored = ~np.isnan(rewards)
    with np.errstate(over="ignore"):
        sums = np.sum(rewards, axis=1, where=scored)
    counts = np.sum(scored, axis=1)
    tied = tied_groups(rewards)
    return [
        "no score" if not n else f"mean {number(total / n, 3)}{', tied' if same else ''}"
        for total, n, same in zip(sums.tolist(), counts.tolist(), tied.tolist(), strict=True)
    ]


def options_frame(scenario):
    """What each way of dividing does to the batch on the screen."""
    rewards, rows = batch_rewards(scenario), {}
    for name, (row, options, chosen) in options_of(scenario).items():
        advantages = scaled_advantages(rewards, row.key, **options)
        shares = _shares(advantages)
        known = ~np.isnan(shares)
        rows[f"● {name}" if chosen else name] = {
            "largest advantage": number(np.max(np.abs(advantages)), 3),
            "mean size": number(float(np.sum(np.abs(advantages) / advantages.size)), 3),
            "largest share of a prompt": percent(np.max(shares)) if known.any() else MISSING,
            "groups that teach": str(int(np.sum(np.any(advantages != 0, axis=1)))),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("divide by")


def option_lines():
    """When to choose each way of dividing, and its price; a line each."""
    return [
        f"**{opening(row.label)}.** {row.choose_when} Price: {PRICES[key]} TRL: {row.trl}. verl: "
        f"{row.verl}."
        for key, row in SCALES.items()
    ]


def sizes_frame(now):
    """What larger groups do to the prompts of the table."""
    rows = {}
    for G, contrast in now.larger:
        rows[str(G)] = {
            "largest weight against smallest": number(contrast, 3),
            "silent groups": percent(float(np.mean(silent_probability(now.prompts, G)))),
            "answers per prompt": "as many" if now.G == G else f"{G // now.G} times",
            "prompts at the same cost": "as many" if now.G == G else f"1/{G // now.G}",
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("group size")
