"""The groups on the screen: how sure their means are, and other ways to spend the samples."""

import numpy as np
import pandas as pd

from grpo_core.silent import tied_subgroups

from .figure import axis, figure
from .numbers import count, number, percent
from .size_charts import top_legend

_FAR = 1e150  # whose square is finite


def group_means(evaluation, *, palette, former=None, prompt=None):
    """The groups on the screen: rewards, mean, and how far the mean may be off.

    Returns
    -------
    Figure
        A row a prompt: scores as dots, the mean with two standard errors (std / sqrt(n), sample
        formula). A tied group has none to show. The shown prompt's row has a band.
    """
    rows = scores_of(evaluation)
    P = len(rows)
    means = _means(rows)
    errors = np.array([standard_error(scores) for scores in rows])
    low, high = _reach([*rows, means - 2 * errors, means + 2 * errors])
    room = 0.06 * (high - low) or 0.5
    row = max(min(32, 620 / max(P, 1)), 3)
    step = max(round(12 / row + 0.49), 1)
    traces = [_scores(rows, palette), _mean_marks(means, errors, palette)]
    if former is not None:
        traces.append(_before(_means(scores_of(former)), palette))
    return figure(
        traces, palette=palette, height=round(row * P) + 44 + 62, margin=(44, 14, 62, 44),
        alt=f"Means of {count(P, 'group')} with two standard errors: "
        + "; ".join(f"prompt {p} {number(mean, 3)}" for p, mean in enumerate(means[:12].tolist()))
        + ".",
        shapes=[] if prompt is None else [_band(prompt, palette)],
        xaxis=axis("score", palette=palette, range=[low - room, high + room], nticks=7,
                   showgrid=True),
        yaxis=axis("prompt", palette=palette, range=[max(P, 1) - 0.4, -0.6],
                   tickvals=list(range(0, P, step))),
        showlegend=True, legend=top_legend(palette),
    )  # fmt: skip


def _means(rows):
    return np.array([np.mean(scores) if scores.size else np.nan for scores in rows])


def _reach(ends):
    seen = np.concatenate([np.atleast_1d(end) for end in ends])
    seen = seen[np.isfinite(seen)]
    return (float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0)


def _scores(rows, palette):
    return {
        "type": "scatter", "mode": "markers", "name": "scores", "x": np.concatenate(rows),
        "y": np.repeat(np.arange(len(rows)), [len(scores) for scores in rows]),
        "hovertemplate": "score %{x:.4g}<extra></extra>",
        "marker": {"size": 9, "color": palette.categories[3], "opacity": 0.4, "line": {"width": 0}},
    }  # fmt: skip


def _mean_marks(means, errors, palette):
    return {
        "type": "scatter", "mode": "markers", "name": "group mean, ±2 standard errors",
        "x": means, "y": np.arange(len(means)), "hovertemplate": "mean %{x:.4g}<extra></extra>",
        "error_x": {"type": "data", "array": 2 * np.nan_to_num(errors), "color": palette.text,
                    "thickness": 1.25, "width": 4},
        "marker": {"symbol": "line-ns-open", "size": 14, "color": palette.text,
                   "line": {"width": 3, "color": palette.text}},
    }  # fmt: skip


def _before(means, palette):
    return {
        "type": "scatter", "mode": "markers", "name": "mean before", "x": means,
        "y": np.arange(len(means)), "hoverinfo": "skip",
        "marker": {"symbol": "line-ns-open", "size": 14, "color": palette.faint,
                   "line": {"width": 1, "color": palette.faint}},
    }  # fmt: skip


def _band(prompt, palette):
    return {
        "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": prompt - 0.46,
        "y1": prompt + 0.46, "fillcolor": palette.panel, "layer": "below",
        "line": {"color": palette.line, "width": 1},
    }  # fmt: skip


def scores_of(evaluation):
    """The finite scores of each group that count, as float64; those of enormous size held back."""
    counts = evaluation.scored & np.isfinite(evaluation.scores)
    return [
        np.clip(scores[count].astype(np.float64), -_FAR, _FAR)
        for scores, count in zip(evaluation.scores, counts, strict=True)
    ]


def standard_error(scores):
    """Of a mean, by the sample formula; NaN for fewer than two scores."""
    return float(np.std(scores, ddof=1) / np.sqrt(scores.size)) if scores.size > 1 else np.nan


def splits_frame(evaluation):
    """The batch on the screen and what larger groups or more prompts would make of it.

    Returns
    -------
    DataFrame
        A row an option: its shape, samples, expected groups with a signal, and how far a
        mean is off.
    """
    P, G = evaluation.scores.shape
    rows = {"as it is": (P, G)}
    if P > 1:
        rows["larger groups, fewer prompts"] = (P // 2, 2 * G)
    if G >= 4:
        rows["more prompts, smaller groups"] = (2 * P, G // 2)
    rows["larger groups, same prompts"] = (P, 2 * G)
    return pd.DataFrame.from_dict(
        {name: _split(evaluation, *row) for name, row in rows.items()}, orient="index"
    ).rename_axis("option")


def _split(evaluation, prompts, size):
    share, exact = signal_share(evaluation, size)
    groups = number(share * prompts, 3)
    return {
        "prompts × group": f"{number(prompts)} × {size}",
        "samples": number(prompts * size),
        "groups with a signal": f"{'' if exact else 'at least '}{groups} ({percent(share)})",
        "mean off by": number(_mean_off(evaluation, size), 3),
    }


def signal_share(evaluation, size):
    """Share of groups of another size expected to be mixed, and whether that is an estimate of it.

    Smaller groups: parts of the observed ones, without bias. Larger ones: groups that are
    mixed now stay so, of tied ones nobody knows; so it is a lower bound, unless none is tied.
    """
    if size < 2:
        return 0.0, True
    counts = evaluation.scored & np.isfinite(evaluation.scores)
    rewards = np.where(counts, evaluation.scores, np.nan)
    scored = np.sum(counts, axis=1)
    if size <= int(np.max(scored, initial=0)):
        tied = tied_subgroups(rewards, size)
        known = tied[~np.isnan(tied)]
        return (float(1 - np.mean(known)) if known.size else 0.0), True
    mixed = (scored > 1) & ~evaluation.tied
    return float(np.mean(mixed)), bool(np.all(mixed))


def _mean_off(evaluation, size):
    """Root mean square error of a mean of `size` scores, by the observed spread within groups."""
    variances = [
        scores.size * standard_error(scores) ** 2
        for scores in scores_of(evaluation)
        if scores.size > 1
    ]
    return float(np.sqrt(np.mean(variances) / size)) if variances else np.nan


def batch_line(evaluation):
    """How well the groups on the screen know their means, in a sentence."""
    P, G = evaluation.scores.shape
    tied = int(np.sum(evaluation.tied))
    off = _mean_off(evaluation, G)
    text = (
        f"The batch on the screen: {count(P, 'group')} of {G}, "
        f"{count(tied, 'of them tied', 'of them tied')}."
    )
    certain = (
        " A tied group's mean looks certain, and is not: nobody knows what a further answer would "
        "score."
        if tied
        else ""
    )
    if np.isnan(off):
        return f"{text} Too few scores to say how far a mean is off."
    return (
        f"{text} By the spread within the groups a mean of {G} scores is off by "
        f"{number(off, 3)}, one of {2 * G} by {number(off / np.sqrt(2), 3)}.{certain}"
    )


def prompt_line(evaluation, prompt):
    """What the shown group says about its prompt's true value."""
    scores = scores_of(evaluation)[prompt]
    error = standard_error(scores)
    if np.isnan(error):
        return f"Prompt {prompt} has {count(scores.size, 'score')}: too few to say how sure it is."
    mean = float(np.mean(scores))
    if error == 0:
        return f"Prompt {prompt}: every score is {number(mean)}, so its group is tied."
    return (
        f"Prompt {prompt}: its {count(scores.size, 'score')} put the true value at "
        f"{number(mean, 3)} ± {number(2 * error, 2)} (two standard errors)."
    )
