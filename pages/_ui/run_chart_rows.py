"""STEP_CHARTS: what is drawn of a run against the training step, a row for each picture.

A row makes `Panel`s of a run, each with its own vertical axis; `run_charts` draws them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from grpo_core.runs.series import LOGGED, logged, values_of
from grpo_core.variants import table
from grpo_core.words import listing

from .token_text import escaped

MOST_TERMS = 12  # lines in one picture; what is more is summed up
_FEW = 4  # names that a legend gives in full
_DASHES = ("solid", "dot", "dashdot")


@dataclass(frozen=True, eq=False, kw_only=True)
class Line:
    """One value for each step, NaN in gaps.

    ``name`` is what a legend calls it, ``said`` what it is called elsewhere; both are safe for
    Plotly. ``error`` (S,) is half the height of a band around it;
    ``broad`` draws a pale broad line, in the middle of which another one lies that agrees;
    ``named`` puts it into the legend of a panel of several.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    color: str
    dash: str = "solid"
    width: float = 1.75
    error: np.ndarray | None = None
    broad: bool = False
    named: bool = True
    said: str = ""

    def __post_init__(self):
        object.__setattr__(self, "said", self.said or self.name)


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """Lines that share a vertical axis.

    ``key`` tells which panel of another run belongs beside it. ``least`` is a range that the
    axis shows at least; ``percents`` writes its ticks so. ``omitted`` says what is not drawn.
    """

    key: str
    title: str
    unit: str
    lines: tuple[Line, ...]
    least: tuple[float, float] | None = None
    percents: bool = False
    omitted: str = ""


@dataclass(frozen=True, kw_only=True)
class StepChart:
    """One picture against the step.

    ``panels(shown, looks)`` is what a run has of it; ``missing`` is said where that is nothing.
    """

    key: str
    title: str
    note: str
    unit: str
    panels: Callable
    missing: str


@dataclass(frozen=True)
class Looks:
    """Colours of what is drawn: `of` maps the name of a reward to its colour and dash."""

    palette: object
    of: dict


def looks_of(palette, *runs):
    """The `Looks` for runs shown together: a name has one colour, the task is blue.

    Parameters
    ----------
    palette : Palette
    *runs : Explained
        The first one's names take the first colours.
    """
    names = list(dict.fromkeys(name for shown in runs for name in shown.run.names))
    colors = palette.categories[2:]
    others = [name for name in names if name != runs[0].task]
    looks = {
        name: (colors[at % len(colors)], _DASHES[at // len(colors) % len(_DASHES)])
        for at, name in enumerate(others)
    }
    return Looks(palette, {**looks, runs[0].task: (palette.categories[0], "solid")})


def label(name, limit=28):
    """A name from a file for a place where Plotly reads tags; a long one loses its middle."""
    if len(name) > limit:
        name = f"{name[: limit // 2]}…{name[limit // 2 + 1 - limit :]}"
    return escaped(name, 2 * limit).replace("␣", " ")


def short_label(name, number):
    """A name for a legend, so short that a telephone has room for many."""
    return label(name, 24 if number <= _FEW else 14)


def _finite(values):
    return np.where(np.isfinite(values), values, np.nan)


def _recounted(shown, name, values, color, **more):
    return Line(name=name, x=shown.series.steps, y=_finite(values), color=color, **more)


def _beside(shown, what, looks):
    """What the log says of something that is recounted as well, as a broad pale line."""
    found = logged(shown.log, what)
    if found is None:
        return []
    name, steps, values = found
    return [
        Line(name="logged", said=f"logged as {label(name)}", x=steps, y=_finite(values),
             color=looks.palette.faint, broad=True)
    ]  # fmt: skip


def _drawn(key, title, unit, lines, **more):
    """The panel, or none where no line has a value."""
    lines = tuple(line for line in lines if np.any(np.isfinite(line.y)))
    return [Panel(key=key, title=title, unit=unit, lines=lines, **more)] if lines else []


# How far the weights are known, where nothing tells their scale.
_SCALES = {"unknown": " (first weight = 1)", "assumed": " (weights of 1)"}


def _reward(shown, looks):
    lines = [
        *_beside(shown, "reward", looks),
        _recounted(shown, "recounted", shown.series.reward, looks.palette.text,
                   said="total reward, recounted"),
    ]  # fmt: skip
    title = f"Total reward, mean{_SCALES.get(shown.fit.scale, '')}"
    return _drawn("reward", title, "reward", lines)


def _terms(shown, looks):
    names = shown.run.names
    kept, omitted = kept_terms(shown)
    panels = []
    for k in kept:
        color, dash = looks.of[names[k]]
        line = _recounted(shown, label(names[k]), shown.series.terms[:, k], color, dash=dash,
                          said=f"mean of {label(names[k])}")  # fmt: skip
        panels += _drawn(names[k], label(names[k], 40), "mean", [line])
    if omitted and panels:
        note = f"{len(omitted)} terms of small share are not drawn"
        panels[-1] = replace(panels[-1], omitted=note)
    return panels


def _task(shown, looks):
    line = _recounted(
        shown, label(shown.task), shown.series.task, looks.palette.categories[0],
        error=2 * shown.series.task_error, said=f"mean of {label(shown.task)}",
    )  # fmt: skip
    title = f"Task: {label(shown.task, 20)}, ± 2 standard errors"
    low, high = _ends(shown.series.task)
    within = (0.0, 0.0) if low >= 0 and high <= 1 else None
    return _drawn("task", title, "mean", [line], least=within)


def _ends(values):
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)


def _length(shown, looks):
    series, palette, unit = shown.series, looks.palette, shown.run.unit
    above, below = _sides_of_task(shown)
    lines = _beside(shown, "length", looks) if unit == "tokens" else []
    lines += [
        _recounted(shown, "all", series.length, palette.text, said="length of all"),
        _recounted(shown, above, series.length_right, palette.categories[2], width=1.25,
                   said=f"length, {above}"),
        _recounted(shown, below, series.length_wrong, palette.categories[1], width=1.25,
                   dash="dot", said=f"length, {below}"),
    ]  # fmt: skip
    return _drawn("length", "Length of a completion, mean", unit, lines)


def _sides_of_task(shown):
    """What completions above and below the middle of the task are called."""
    values = values_of(shown.run, shown.task)
    values = values[np.isfinite(values) & shown.run.present]
    low, high = _ends(values)
    two = np.all((values == low) | (values == high))
    return ("right", "wrong") if two else ("upper half of the task", "lower half")


def _from_log(what, title, unit):
    def panels(shown, looks):
        found = logged(shown.log, what)
        if found is None:
            return []
        name, steps, values = found
        line = Line(name=label(name), x=steps, y=values, color=looks.palette.text)
        return _drawn(what, f"{title}, logged as {label(name, 24)}", unit, [line])

    return panels


def _tied(shown, looks):
    lines = [
        *_beside(shown, "tied_share", looks),
        _recounted(shown, "recounted", shown.series.tied / shown.series.groups,
                   looks.palette.text, said="tied groups, recounted"),
    ]  # fmt: skip
    return _drawn("tied", "Tied groups", "share of groups", lines, percents=True,
                  least=(0.0, 0.1))  # fmt: skip


def kept_terms(shown):
    """Indices of the terms that are drawn on their own, in their order, and of the others."""
    K = len(shown.run.names)
    if K <= MOST_TERMS:
        return list(range(K)), []
    sizes = np.abs(np.where(np.isfinite(shown.series.shares), shown.series.shares, 0.0))
    order = np.argsort(-np.mean(sizes, axis=0), kind="stable")
    return sorted(order[: MOST_TERMS - 1].tolist()), sorted(order[MOST_TERMS - 1 :].tolist())


def _shares(shown, looks):
    names, shares = shown.run.names, shown.series.shares
    kept, others = kept_terms(shown)
    lines = []
    for k in kept:
        color, dash = looks.of[names[k]]
        name = short_label(names[k], len(names))
        lines.append(_recounted(shown, name, shares[:, k], color, dash=dash,
                                said=f"share of {label(names[k])}"))  # fmt: skip
    note = ""
    if others:
        rest = np.sum(shares[:, others], axis=1)
        lines.append(_recounted(shown, "others", rest, looks.palette.neutral,
                                said="share of all others"))  # fmt: skip
        note = f"{len(others)} terms of small share are summed up as others"
    return _drawn("shares", "Share in the spread within groups", "share", lines, percents=True,
                  least=(0.0, 1.0), omitted=note)  # fmt: skip


def _shaped_only(shown, looks):
    share = shown.series.shaped_only / shown.series.groups
    line = _recounted(shown, "decided by shaping alone", share, looks.palette.text)
    return _drawn("shaped_only", "Groups equal in the task, not in the total",
                  "share of groups", [line], percents=True, least=(0.0, 0.1))  # fmt: skip


def _correlation(shown, looks):
    line = _recounted(shown, "correlation", shown.series.correlation, looks.palette.text)
    return _drawn("correlation", f"Correlation of the total with {label(shown.task, 20)}",
                  "correlation", [line], least=(0.0, 1.0))  # fmt: skip


def _not_logged(what):
    return f"The log holds none; it would stand under {listing(LOGGED[what])}."


STEP_CHARTS = table(
    StepChart(
        key="reward", title="Total reward", unit="reward", panels=_reward,
        note="Mean of the weighted sum of all terms, recounted from the completions, and what "
        "the log says.",
        missing="No completion has a reward.",
    ),
    StepChart(
        key="terms", title="Each reward term", unit="mean", panels=_terms,
        note="Mean of each term, unweighted, over the completions that it scored. Each has an "
        "axis of its own.",
        missing="No term scored a completion.",
    ),
    StepChart(
        key="task", title="Task success", unit="mean", panels=_task,
        note="Mean of what counts as the task, with a band of two standard errors over groups.",
        missing="Nothing scored the task.",
    ),
    StepChart(
        key="shares", title="Share of each term", unit="share", panels=_shares,
        note="What each term has of the spread of the totals within groups, which is all that "
        "advantages see. A negative share works against the total. They add up to 100%.",
        missing="In no step does a reward differ within a group.",
    ),
    StepChart(
        key="tied", title="Tied groups", unit="share of groups", panels=_tied,
        note="Groups whose totals are all equal: their advantages are 0.",
        missing="The run holds no group.",
    ),
    StepChart(
        key="shaped_only", title="Groups decided by shaping alone", unit="share of groups",
        panels=_shaped_only,
        note="Groups that are equal in the task and differ in the total: whatever they teach "
        "is not the task.",
        missing="The run holds no group.",
    ),
    StepChart(
        key="correlation", title="Total and task", unit="correlation", panels=_correlation,
        note="Correlation of the total reward with the task, within groups. It falls before "
        "the task does.",
        missing="In no step do both the total and the task differ within a group.",
    ),
    StepChart(
        key="length", title="Response length", unit="tokens or characters", panels=_length,
        note="Mean length of all completions, and of right and wrong ones apart.",
        missing="The file tells no length.",
    ),
    StepChart(
        key="kl", title="KL", unit="nats", panels=_from_log("kl", "KL", "nats"),
        note="KL divergence as the trainer estimates it: from the reference policy or, where "
        "the name says ppo_kl, from the policy that sampled.",
        missing=_not_logged("kl"),
    ),
    StepChart(
        key="clip_share", title="Clipped share", unit="share",
        panels=_from_log("clip_share", "Clipped share", "share of tokens"),
        note="Share of the tokens whose ratio was clipped, as logged.",
        missing=_not_logged("clip_share"),
    ),
    StepChart(
        key="entropy", title="Entropy", unit="nats", panels=_from_log("entropy", "Entropy", "nats"),
        note="Mean entropy of the policy over the tokens, as logged.",
        missing=_not_logged("entropy"),
    ),
    StepChart(
        key="loss", title="Loss", unit="loss", panels=_from_log("loss", "Loss", "loss"),
        note="The loss as logged. It tells little of the training: where the ratios are 1 it "
        "is near 0 whatever is learned.",
        missing=_not_logged("loss"),
    ),
)  # fmt: skip
