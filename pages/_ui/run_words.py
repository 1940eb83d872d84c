"""What the page *Your run* says in numbers and words; free of Streamlit."""

import numpy as np

from grpo_core.runs.run import total_rewards
from grpo_core.runs.say_course import ends
from grpo_core.runs.series import values_of
from grpo_core.words import listing, named

from .numbers import number
from .run_tables import groups_table
from .token_text import readable


def nearest_step(found, wanted):
    """The scored step nearest to a wanted one."""
    steps = found.series.steps
    return int(steps[np.argmin(np.abs(steps - wanted))])


def first_step(found):
    """The step to look at first: the turn of a hacked term, else the middle of the run."""
    steps = found.series.steps
    return found.turns[0].step if found.turns else int(steps[len(steps) // 2])


def groups_of_step(found, step):
    """Table of a step's groups, counted from 0 within the step; the task by its name."""
    frame = groups_table(found, step)
    frame["group"] = np.arange(len(frame))
    if found.task in found.run.names:
        frame["decided by"] = frame["decided by"].replace("task", found.task)
    return frame.rename(columns={"off": "off by"})


def first_group(found, step):
    """The group to look at first: one that shaping alone decides, else one that differs most."""
    run, weights = found.run, found.fit.weights
    at = run.at(step)
    totals = total_rewards(run, weights)[at]
    task = np.where(run.present, values_of(run, found.task), np.nan)[at]
    of_total, of_task = _spread(totals), _spread(task)
    shaped = (of_task == 0) & (of_total > 0)
    return int(at[int(np.argmax(np.where(shaped | ~shaped.any(), of_total, -1.0)))])


def _spread(values):
    """Highest less lowest of each row, 0 where fewer than two are known."""
    known = np.isfinite(values)
    high = np.max(np.where(known, values, -np.inf), axis=1)
    low = np.min(np.where(known, values, np.inf), axis=1)
    return np.where(known.sum(axis=1) > 1, high - low, 0.0)


_ENDS = (
    ("total reward", lambda found: found.series.reward),
    ("{task}", lambda found: found.series.task),
    ("length", lambda found: found.series.length),
)


def ends_row(found, other=None):
    """(label, first -> last, the other run's) of what matters: means of the outer quarters."""
    rows = []
    for label, read in _ENDS:
        now = _ends(read(found))
        below = "first → last quarter" if other is None else f"{other.name}: {_ends(read(other))}"
        if now:
            rows.append((label.format(task=readable(found.task, 30)), now, below))
    tied = f"{int(found.fit.tied.sum()):,} of {len(found.run.steps):,}"
    below = ""
    if other is not None:
        below = f"{other.name}: {int(other.fit.tied.sum()):,} of {len(other.run.steps):,}"
    return [*rows, ("tied groups", tied, below)]


def _ends(values):
    found = ends(values)
    if found is None:
        known = values[np.isfinite(values)]
        return number(known[0], 3) if known.size else ""
    return f"{number(found[0], 3)} → {number(found[1], 3)}"


def formatted(frame):
    """A frame with its numbers rounded for reading; texts made visible."""

    def cell(value):
        if isinstance(value, (bool, np.bool_)):
            return "yes" if value else "no"
        if isinstance(value, (int, np.integer)):
            return f"{value:,}"
        if isinstance(value, (float, np.floating)):
            return "" if np.isnan(value) else number(float(value), 4)
        return readable(str(value), 200)

    return frame.map(cell)


def completion_line(found, q, g):
    """What one completion got: total of its terms, advantage logged and recomputed, length."""
    run, fit = found.run, found.fit
    parts = [
        f"{readable(name, 30)} {number(value)} × {number(weight)}"
        for name, value, weight in zip(run.names, run.terms[q, g], fit.weights, strict=True)
        if np.isfinite(value)
    ]
    total = float(total_rewards(run, fit.weights)[q, g])
    said = [f"total {number(total)} = {' + '.join(parts)}" if parts else "no reward"]
    if run.lengths is not None and np.isfinite(run.lengths[q, g]):
        said.append(f"{int(run.lengths[q, g]):,} {run.unit}")
    return " · ".join(said)


def advantages_line(found, q, g):
    """Logged and recomputed advantage of one completion, as far as there are any."""
    logged = None if found.run.advantages is None else float(found.run.advantages[q, g])
    made = None if found.fit.rule is None else float(found.fit.predicted[q, g])
    if logged is None or np.isnan(logged):
        return "" if made is None else f"advantage {number(made)}"
    if made is None or abs(made - logged) < 1e-6:
        return f"advantage {number(logged)}"
    return f"advantage {number(logged)} logged, {number(made)} recomputed"


def advantage_of(found, q, g):
    """Logged advantage of a completion, else the recomputed one; None without either."""
    for values in (found.run.advantages, found.fit.predicted):
        if values is not None and np.isfinite(values[q, g]):
            return float(values[q, g])
    return None


def largest_advantage(found, q):
    """Largest size among the advantages of a group."""
    known = [advantage_of(found, q, g) for g in np.nonzero(found.run.present[q])[0]]
    return max((abs(value) for value in known if value is not None), default=0.0)


def order_of(found, q):
    """Completions of a group by advantage, the largest first; by total reward without any."""
    run = found.run
    key = total_rewards(run, found.fit.weights)[q]
    if run.advantages is not None and np.isfinite(run.advantages[q][run.present[q]]).all():
        key = run.advantages[q]
    key = np.where(run.present[q], np.nan_to_num(key, nan=-np.inf), -np.inf)
    order = np.argsort(-key, kind="stable")
    return [int(g) for g in order if run.present[q, g]]


def group_words(found, q):
    """One sentence on a group: what decides it."""
    run, weights = found.run, found.fit.weights
    totals = total_rewards(run, weights)[q]
    known = np.isfinite(totals) & run.present[q]
    if known.sum() < 2:
        return "Fewer than two completions have a reward: nothing can be compared."
    if found.fit.tied[q]:
        return "All rewards are equal: this group gives no signal."
    differing = [
        name
        for k, name in enumerate(run.names)
        if np.ptp(np.nan_to_num(run.terms[q][known][:, k])) > 0
    ]
    spread = f"Total rewards from {number(totals[known].min())} to {number(totals[known].max())}"
    if found.task in run.names and found.task not in differing and differing:
        return f"{spread}. All are equal in {named(found.task)}: shaping alone decides here."
    return f"{spread}, apart in {listing([named(name) for name in differing])}."
