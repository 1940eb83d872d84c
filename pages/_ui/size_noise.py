"""The noise of the gradient under each baseline: closed form as bars, simulation as points."""

import numpy as np

from grpo_core.baselines import BASELINES

from .figure import CLEAR, FONT_SIZE, axis, figure, largest, nice_ceiling
from .numbers import exact, number
from .size_charts import top_legend

_BAR = 44
MEASURES = {
    "variance": "noise of one sample",
    "signal": "signal to noise of one sample",
}


def measured(view, measure, kind=None):
    """A measure of the noise under each baseline: of one kind of prompt, or over all of them.

    Over all, noises are averaged; signal to noise is the mean squared gradient over the mean
    noise, so that kinds without any noise do not decide alone.
    """
    found = {}
    for key, row in view.noise.items():
        which = slice(None) if kind is None else slice(kind, kind + 1)
        noise = float(np.mean(row.per_sample[which]))
        size = float(np.mean(np.sum(row.mean[which] ** 2, axis=1)))
        if measure == "signal":
            noise = size / noise if noise > 0 else np.inf if size > 0 else 0.0
        found[key] = noise
    return found


def sampled_variance(view, sampled, kind=None):
    """The same noise by simulation, and its standard error: two dicts by baseline."""
    which = slice(None) if kind is None else slice(kind, kind + 1)
    means, errors = {}, {}
    for key, row in sampled.items():
        means[key] = float(view.G * np.mean(row.variance[which]))
        squares = np.sum(row.variance_error[which] ** 2)
        errors[key] = float(view.G * np.sqrt(squares) / len(row.variance_error[which]))
    return means, errors


def noise_bars(view, sampled, *, measure, palette, kind=None, former=None):
    """A bar for each baseline, in closed form; simulated points with two standard errors.

    Baselines that nobody has while training are hatched. Points stand on the variance only.
    """
    values = measured(view, measure, kind)
    before = None
    if (
        former is not None
        and former.noise is not None
        and (kind is None or kind < len(former.policy.value))
    ):
        before = measured(former, measure, kind)
    points = (
        None if sampled is None or measure != "variance" else sampled_variance(view, sampled, kind)
    )
    ends = [list(values.values()), list((before or values).values())]
    if points is not None:
        ends.append([points[0][key] + 2 * points[1][key] for key in values])
    top = nice_ceiling(1.18 * largest(*(np.array(end) for end in ends)))
    y = np.arange(len(values))
    traces = [_bars(values, y, top, palette)]
    if before is not None:
        traces.append(_ghost(before, y, top, palette))
    if points is not None:
        traces.append(_points(points, values, y, palette))
    traces.append(_numbers(values, points, y, top, palette))
    return figure(
        traces, palette=palette, height=_BAR * len(values) + 34 + 46, margin=(10, 14, 34, 46),
        alt=_describe_noise(values, measure), barmode="overlay", bargap=0,
        xaxis=axis(_titles(view)[measure], palette=palette, range=[0, top], nticks=6,
                   zeroline=True, zerolinecolor=palette.neutral, zerolinewidth=1),
        yaxis=axis("", palette=palette, range=[len(values) - 0.4, -0.75], showticklabels=False),
        annotations=_names(values, y, palette),
        showlegend=points is not None, legend=top_legend(palette),
    )  # fmt: skip


def _titles(view):
    return {
        "variance": f"variance of a group's gradient × {view.G}",
        "signal": f"|mean gradient|² / (variance × {view.G})",
    }


def _drawn(values, top):
    """Infinite bars reach the edge."""
    return np.minimum(np.array(list(values.values())), top)


def _bars(values, y, top, palette):
    color = palette.categories[5]
    known = [not BASELINES[key].needs_value for key in values]
    return {
        "type": "bar", "orientation": "h", "name": "closed form", "showlegend": False,
        "x": _drawn(values, top), "y": y, "width": 0.4,
        "customdata": [exact(value) for value in values.values()],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {
            "color": color, "line": {"color": color, "width": 1},
            "pattern": {"shape": ["" if real else "/" for real in known], "size": 6,
                        "solidity": 0.3, "fgcolor": color, "bgcolor": palette.background},
        },
    }  # fmt: skip


def _ghost(values, y, top, palette):
    return {
        "type": "bar", "orientation": "h", "name": "before", "x": _drawn(values, top), "y": y,
        "width": 0.54, "hoverinfo": "skip", "showlegend": False,
        "marker": {"color": CLEAR, "line": {"color": palette.faint, "width": 1}},
    }  # fmt: skip


def _points(points, values, y, palette):
    means, errors = ([part[key] for key in values] for part in points)
    return {
        "type": "scatter", "mode": "markers", "name": "simulated, ±2 standard errors",
        "x": means, "y": y, "hovertemplate": "simulated %{x:.4g}<extra></extra>",
        "error_x": {"type": "data", "array": [2 * error for error in errors],
                    "color": palette.text, "thickness": 1.5, "width": 4},
        "marker": {"size": 7, "color": palette.background,
                   "line": {"color": palette.text, "width": 1.5}},
    }  # fmt: skip


def _numbers(values, points, y, top, palette):
    ends = _drawn(values, top)
    if points is not None:
        reach = [points[0][key] + 2 * points[1][key] for key in values]
        ends = np.maximum(ends, np.minimum(reach, top))
    return {
        "type": "scatter", "mode": "text", "x": ends, "y": y, "showlegend": False,
        "text": [f"\u2002{number(value, 3)}" for value in values.values()], "cliponaxis": False,
        "textposition": "middle right", "hoverinfo": "skip", "name": "values",
        "textfont": {"size": FONT_SIZE, "color": palette.text},
    }  # fmt: skip


def _names(values, y, palette):
    return [
        {
            "text": BASELINES[key].label, "x": 0, "xref": "paper", "xanchor": "left",
            "y": at - 0.24, "yanchor": "bottom", "showarrow": False,
            "font": {"size": FONT_SIZE, "color": palette.text},
        }
        for key, at in zip(values, y.tolist(), strict=True)
    ]  # fmt: skip


def _describe_noise(values, measure):
    said = "; ".join(f"{BASELINES[key].label} {number(v, 3)}" for key, v in values.items())
    return f"Bars: {MEASURES[measure]} under each baseline: {said}."
