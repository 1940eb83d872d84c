"""Three pictures of the pull on length, against how well the policy can tell right from wrong."""

import numpy as np

from grpo_core.recipes import RECIPES

from .figure import FONT_SIZE, axis, figure, largest, nice_ceiling
from .length_pull import PARTS, SHOWN
from .numbers import number, percent
from .size_charts import top_legend


def pull_chart(view, trials, *, palette):
    """Three pictures on one scale: how lengths move against the accuracy of the hunch.

    Parameters
    ----------
    view : PullView
    trials : dict of str to SampledPull
        Points at the chosen accuracy, with two standard errors.
    palette : Palette
    """
    colors = {"change_right": palette.positive, "change_wrong": palette.negative}
    values = [curve[part] for curve in view.curves.values() for part, _ in PARTS]
    values += [
        np.abs(getattr(t.mean, part)) + 2 * np.array(getattr(t.error, part))
        for t in trials.values() for part, _ in PARTS
    ]  # fmt: skip
    top = nice_ceiling(1.1 * largest(*values))
    traces, axes, notes, shapes = [], {}, [], []
    for index, key in enumerate(SHOWN):
        name = "" if index == 0 else str(index + 1)
        traces += _lines(view, key, index, name, colors, palette)
        for part, _ in PARTS if key in trials else ():
            traces.append(_point(view, trials[key], part, colors[part], index, name, palette))
        axes |= _axes(index, name, top, palette)
        notes.append(_title(index, RECIPES[key].label, palette))
        shapes.append({
            "type": "line", "xref": f"x{name}", "yref": f"y{name}", "x0": view.accuracy,
            "x1": view.accuracy, "y0": -top, "y1": top, "layer": "below",
            "line": {"color": palette.faint, "width": 1, "dash": "dash"},
        })  # fmt: skip
    return figure(
        traces, palette=palette, height=380, margin=(64, 14, 100, 46), alt=_describe(view, trials),
        annotations=notes, shapes=shapes, showlegend=True, legend=top_legend(palette), **axes,
    )  # fmt: skip


def _lines(view, key, index, name, colors, palette):
    if key not in view.curves:
        return []
    looks = [(part, label, {"color": colors[part], "width": 2.5}) for part, label in PARTS]
    looks.append(("change", "all answers", {"color": palette.text, "width": 1.25, "dash": "dash"}))
    return [
        {
            "type": "scatter", "mode": "lines", "x": view.accuracies, "name": label, "line": line,
            "y": view.curves[key][part], "showlegend": index == 0, "legendgroup": part,
            "xaxis": f"x{name}", "yaxis": f"y{name}",
            "hovertemplate": f"{label}: %{{y:.4g}} tokens<extra></extra>",
        }
        for part, label, line in looks
    ]  # fmt: skip


def _point(view, trial, part, color, index, name, palette):
    return {
        "type": "scatter", "mode": "markers", "x": [view.accuracy],
        "y": [getattr(trial.mean, part)], "name": "simulated, ±2 standard errors",
        "showlegend": index == 0 and part == "change_wrong",
        "error_y": {"type": "data", "array": [2 * getattr(trial.error, part)], "color": color,
                    "thickness": 1.5, "width": 4},
        "marker": {"size": 7, "color": palette.background, "line": {"color": color, "width": 1.5}},
        "hovertemplate": "simulated: %{y:.4g} tokens<extra></extra>",
        "xaxis": f"x{name}", "yaxis": f"y{name}",
    }  # fmt: skip


def _axes(index, name, top, palette):
    width, gap = 1 / len(SHOWN), 0.02
    domain = [index * width + gap * (index > 0), (index + 1) * width - gap * (index < 2)]
    lines = {"zeroline": True, "zerolinecolor": palette.neutral, "zerolinewidth": 1}
    return {
        f"xaxis{name}": axis(
            "accuracy of the hunch" if index == 1 else "", palette=palette, range=[0.38, 1.12],
            domain=domain, anchor=f"y{name}", tickvals=[0.5, 1],
            ticktext=["50%", "100%"],
        ),
        f"yaxis{name}": axis(
            "change of expected length (tokens)" if index == 0 else "", palette=palette,
            range=[-top, top], anchor=f"x{name}", showticklabels=index == 0, nticks=6,
            showgrid=True, **lines,
        ),
    }  # fmt: skip


def _title(index, text, palette):
    return {
        "text": f"<b>{text}</b>", "x": index / len(SHOWN) + 0.02 * (index > 0), "xref": "paper",
        "xanchor": "left", "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False,
        "font": {"size": FONT_SIZE, "color": palette.text},
    }  # fmt: skip


def _describe(view, trials):
    pulls = view.now or {key: trial.mean for key, trial in trials.items()}
    said = "; ".join(
        f"{RECIPES[key].label}: right {number(pulled.change_right, 3)}, wrong "
        f"{number(pulled.change_wrong, 3)}"
        for key, pulled in pulls.items()
    )
    how = "" if view.now else ", simulated"
    return (
        f"Change of expected length in tokens per unit of learning rate at a hunch of "
        f"{percent(view.accuracy)}{how}: {said}."
    )
