"""Scenarios under process supervision, from lists of steps, for tests of the page."""

import numpy as np

from grpo_core import build_scenario
from grpo_core.process_views import judged_by_steps


def stepped(rewards, ends=None, *, lengths=None, outcome=None, options=None, **arrays):
    """One prompt's group, or several where `rewards` is nested once more.

    Parameters
    ----------
    rewards : nested lists, [completion][step] or [prompt][completion][step]
    ends : nested lists like `rewards`, optional
        Without it every step has one token.
    lengths : nested lists of int, [completion] or [prompt][completion], optional
        Tokens of each completion. Without it the steps' last end of the batch, for all.
    outcome : nested lists like `lengths`, optional
        Rewards of the completions; 0 if not given.
    options : dict, optional
        Of the advantage; eps is 0 if not given.
    """
    one = not _nested(rewards)
    rewards, ends, lengths, outcome = (
        [given] if one and given is not None else given
        for given in (rewards, ends, lengths, outcome)
    )
    ends = ends or [[list(range(len(row))) for row in group] for group in rewards]
    P, G = len(rewards), len(rewards[0])
    last = max([end for group in ends for row in group for end in row], default=0)
    lengths = np.full((P, G), last + 1) if lengths is None else np.array(lengths)
    L = int(max(lengths.max(), 1))
    scenario = build_scenario(
        **{
            "rewards": np.zeros((P, G)) if outcome is None else np.array(outcome, float),
            "logp_new": np.full((P, G, L), -1.0),
            "mask": np.arange(L) < lengths[..., None],
            "step_ends": _padded(ends),
            "step_rewards": _padded(rewards),
            **arrays,
        }
    )
    return judged_by_steps(scenario).choose(
        "advantage", "process", **{"eps": 0.0, **(options or {})}
    )


def _nested(rewards):
    return any(isinstance(entry, list) for group in rewards for entry in group)


def _padded(lists):
    width = max([len(row) for group in lists for row in group] + [1])
    return np.array([[row + [np.nan] * (width - len(row)) for row in group] for group in lists])
