"""Small training runs made up for tests: rewards drawn, advantages made by a known rule."""

from functools import cache
from pathlib import Path

import numpy as np

from grpo_core.runs.rules import RULES, judge
from grpo_core.runs.run import Run, RunLog, total_rewards
from pages._ui.runs.opening import look, open_run, sources_of_path

RUNS = Path(__file__).resolve().parents[2] / "assets" / "runs"


@cache
def recorded(name):
    """A run that ships, as it is opened."""
    return open_run(look(sources_of_path(str(RUNS / f"{name}.zip"))))


def made_run(rule, weights, *, seed=0, eps=1e-4, S=20, P=8, G=8, absent=0.0, names=None, damaged=0):
    """A `Run` of S steps with P groups each, judged by a rule in float32.

    The first term is 0 or 1, the second normal, the third one of five values. ``absent`` is the
    chance that a completion beyond the second is not there; the advantages of the first
    ``damaged`` groups are noise.
    """
    rng = np.random.default_rng(seed)
    shape, K = (S * P, G), len(weights)
    columns = (
        rng.integers(0, 2, shape).astype(float),
        rng.normal(size=shape),
        rng.integers(0, 5, shape) / 4,
    )
    present = rng.random(shape) >= absent
    present[:, :2] = True
    steps = np.repeat(np.arange(S), P)
    names = names or ("correct", "style", "length")[:K]
    run = Run(steps=steps, present=present, names=names, terms=np.stack(columns[:K], axis=-1))
    row = RULES[rule]
    made = judge(run, row, np.array(weights), eps if row.eps else 0.0)
    made = made.astype(np.float32).astype(float)
    made[:damaged] = rng.normal(size=(damaged, G))
    return with_fields(run, advantages=np.where(present, made, np.nan))


def with_fields(run, **fields):
    """A copy of a run with other fields."""
    kept = ("steps", "present", "names", "terms", "totals", "measures", "advantages", "lengths")
    given = {name: getattr(run, name) for name in (*kept, "unit", "rows")}
    return Run(**{**given, **fields})


def reward_log(run, weights):
    """A log with the mean total reward of every step, as TRL writes it."""
    totals, step = total_rewards(run, np.array(weights)), np.searchsorted(run.every_step, run.steps)
    sums = np.bincount(step, np.nansum(totals, axis=1))
    return RunLog(run.every_step, {"reward": sums / np.bincount(step, run.sizes)})
