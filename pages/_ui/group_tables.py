"""Tables to read: the statistics of groups, and one group under several formulas."""

import numpy as np
import pandas as pd

from grpo_core import build_scenario, evaluate

from .numbers import number
from .quantities import present


def group_table(evaluation, prompts=None):
    """Per prompt: number of scored completions, mean, std, and whether all scores are equal."""
    chosen = range(len(evaluation.mean)) if prompts is None else list(prompts)
    scored = (evaluation.scored & present(evaluation)).sum(axis=1)
    frame = pd.DataFrame(
        {"scored": scored, "mean": evaluation.mean, "std": evaluation.std, "tied": evaluation.tied}
    )
    frame.index = pd.Index([str(p) for p in range(len(frame))], name="prompt")
    return frame.iloc[list(chosen)]


def compare_formulas(rewards, formulas):
    """Advantages of one group under several conventions: name -> (G,) array.

    Parameters
    ----------
    rewards : sequence of float
        NaN is a missing score.
    formulas : mapping of str to Conventions
    """
    scenario = build_scenario(rewards=[list(rewards)])
    return {
        name: evaluate(scenario.with_conventions(conventions)).advantages[0]
        for name, conventions in formulas.items()
    }


def comparison_frame(rewards, comparison):
    """Rewards of a group and what each formula makes of them, a row per completion."""
    frame = pd.DataFrame({"reward": np.asarray(rewards, dtype=np.float64), **comparison})
    frame.index = _completions(len(frame))
    return frame


def advantages_beside(evaluation, prompt):
    """Advantage of each completion of a prompt as a column to read beside its tokens."""
    advantages = evaluation.advantages[prompt].tolist()
    there = present(evaluation)[prompt].tolist()
    column = [
        number(a, 3, signed=True) if on else "" for a, on in zip(advantages, there, strict=True)
    ]
    return pd.DataFrame({"A": column}, index=_completions(len(column)))


def _completions(count):
    return pd.Index([str(g) for g in range(count)], name="completion")
