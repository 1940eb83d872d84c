"""Tables of the process page: what steps give to each completion, and what tricks would."""

import numpy as np
import pandas as pd

from grpo_core.credit_rules import CREDIT_RULES
from grpo_core.gaming import credited, present_steps
from grpo_core.group_statistics import group_statistics

from .numbers import MISSING, change, number

# What the steps give to a completion: the advantage of its first token, the sum over all of them.
FIRST, ALL = "first token", "all tokens"


def credit_frame(evaluation, former, prompt):
    """Each completion's steps and what they give, with what it was before the last edit.

    Returns
    -------
    DataFrame
        A row a completion that is present: number of steps, their mean reward, advantage of the
        first token, sum of the advantages of all tokens; texts.
    """
    now = _credit(evaluation.scenario, prompt)
    before = now if former is None or not _stepped(former) else _credit(former.scenario, prompt)
    present = evaluation.scenario["present"][prompt]
    columns = {
        name: [change(a, b) for a, b in zip(before[name].tolist(), values.tolist(), strict=True)]
        for name, values in now.items()
    }
    names = pd.Index([str(g) for g in range(len(present))], name="completion")
    return pd.DataFrame(columns, index=names)[present]


def _stepped(evaluation):
    scenario = evaluation.scenario
    return "step_ends" in scenario and scenario.conventions["advantage"].variant == "process"


def _credit(scenario, prompt):
    ends, rewards = (array[prompt] for array in present_steps(scenario))
    there = ~np.isnan(ends)
    n = there.sum(axis=-1)
    first, masses = (values[prompt] for values in credited(scenario))
    return {
        "steps": n.astype(float),
        "mean reward": np.where(n > 0, group_statistics(rewards, there, 0).mean, np.nan),
        FIRST: first,
        ALL: masses,
    }


def trials_frame(trials, before):
    """Every trick with what it would bring to the chosen completion."""
    rows = {
        trial.edit.label: {
            FIRST: _moved(before[0], trial.first),
            ALL: _moved(before[1], trial.mass),
        }
        for trial in trials
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("trick")


def _moved(before, after):
    if np.isnan(after):
        return MISSING
    rounding = 1e-12 * max(abs(before), abs(after))
    moved = after - before if abs(after - before) > rounding else 0.0
    return f"{number(after)} ({number(moved, signed=True)})"


def rules_frame(evaluation, prompt):
    """What each completion's tokens get together under the sum and under other rules."""
    scenario, valid = evaluation.scenario, evaluation.valid
    present = scenario["present"]
    ends, rewards = present_steps(scenario)
    options = scenario.conventions["advantage"].options
    kept = {key: options[key] for key in ("ddof", "eps")}
    rows = {}
    for rule in CREDIT_RULES.values():
        tokens = rule.function(rewards, ends, valid, **kept)[prompt]
        sums = tokens.sum(axis=-1)
        rows[rule.label] = {
            str(g): number(sums[g]) if present[prompt, g] else MISSING for g in range(len(sums))
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("rule")
