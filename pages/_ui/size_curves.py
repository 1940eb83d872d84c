"""Curves against the group size: the chance of a signal, and the noise at a fixed budget."""

import numpy as np

from .figure import FONT_SIZE, axis, figure
from .numbers import count, number, percent
from .size_charts import top_legend

_TICKS = [2, 4, 8, 16, 32, 64, 128, 256, 512]
_FEW = 4  # kinds that get a colour of their own; more would not be told apart


def signal_curves(view, *, palette, former=None):
    """Chance that a group is not tied, against its size: each kind of prompt, and the mean."""
    N = len(view.signal)
    colors = palette.categories[2:]
    traces = []
    if former is not None:
        traces.append(
            _line(former.sizes, np.mean(former.signal, axis=0), "mean before", palette.faint, 1,
                  dash="dot")
        )  # fmt: skip
    for kind, row in enumerate(view.signal):
        color = colors[kind % len(colors)] if N <= _FEW else palette.neutral
        traces.append(_line(view.sizes, row, f"kind {kind}", color, 1.5, legend=N <= _FEW))
    traces.append(_line(view.sizes, np.mean(view.signal, axis=0), "mean", palette.text, 3))
    traces.append(_dots(view, palette))
    return figure(
        traces, palette=palette, height=330, margin=(54, 16, 48, 46),
        alt=_describe_signal(view),
        xaxis=_size_axis(view.sizes, palette),
        yaxis=axis("groups that are not tied", palette=palette, range=[0, 1.03], dtick=0.2,
                   tickformat=".0%", showgrid=True),
        shapes=[_here(view.G, palette)],
        showlegend=True, legend=top_legend(palette),
    )  # fmt: skip


def _line(x, y, name, color, width, *, dash="solid", legend=True):
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "showlegend": legend,
        "line": {"color": color, "width": width, "dash": dash},
        "hovertemplate": f"{name}<br>G = %{{x}}: %{{y:.4g}}<extra></extra>",
    }  # fmt: skip


def _dots(view, palette):
    return {
        "type": "scatter", "mode": "markers", "x": [view.G] * len(view.now), "y": view.now,
        "name": "now", "showlegend": False,
        "hovertext": [f"kind {kind}: {percent(value)}" for kind, value in enumerate(view.now)],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {"size": 8, "color": palette.text,
                   "line": {"color": palette.background, "width": 1}},
    }  # fmt: skip


def _size_axis(sizes, palette):
    last = int(sizes[-1])
    ticks = [tick for tick in _TICKS if tick <= last]
    ends = np.log10([2 / 1.06, last * 1.06])
    return axis("group size G (log scale)", palette=palette, type="log", range=ends.tolist(),
                tickvals=ticks, ticktext=[str(tick) for tick in ticks])  # fmt: skip


def _here(G, palette):
    line = {"color": palette.faint, "width": 1, "dash": "dash"}
    return {"type": "line", "x0": G, "x1": G, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _describe_signal(view):
    said = ", ".join(
        f"kind {kind} {percent(value)}" for kind, value in enumerate(view.now[:12].tolist())
    )
    return f"Curves: chance that a group is not tied against its size; at G = {view.G}: {said}."


def budget_chart(view, batches, *, palette, former=None):
    """Variance of a batch's gradient against G at a fixed budget, the smallest ones ringed.

    Parameters
    ----------
    view : as `size_kinds.size_view` gives it
    batches : dict of int to SampledBatches
        Simulated ones, drawn as points with two standard errors.
    """
    curve = view.curve
    fresh, same = palette.categories[2], palette.categories[3]
    traces = []
    if former is not None:
        traces.append(_line(former.curve.sizes, _positive(former.curve.fresh), "fresh, before",
                            palette.faint, 1, dash="dot", legend=False))  # fmt: skip
    traces += [
        _line(curve.sizes, _positive(curve.between), "share of the choice of prompts",
              palette.neutral, 1.25, dash="dash"),
        _line(curve.sizes, _positive(curve.fresh), "fresh prompts in every batch", fresh, 2.5),
        _line(curve.sizes, _positive(curve.same), "the same prompts every time", same, 2.5),
        _best(curve, fresh, same),
        *(_simulated(batches, part, color, palette)
          for part, color in (("fresh", fresh), ("same", same)) if batches),
    ]  # fmt: skip
    return figure(
        traces, palette=palette, height=380, margin=(66, 16, 84, 46),
        alt=_describe_budget(view),
        xaxis=_size_axis(curve.sizes, palette),
        yaxis=axis("variance of the batch's gradient", palette=palette, type="log",
                   range=_decades(curve, batches), exponentformat="power", showgrid=True,
                   dtick="D2", nticks=6),
        shapes=[_here(view.G, palette)],
        annotations=[
            _label(curve, curve.best_fresh, float(np.min(curve.fresh)), fresh),
            _label(curve, curve.best_same, float(np.min(curve.same)), same),
        ] if np.all(curve.fresh > 0) and np.all(curve.same > 0) else [],
        showlegend=True, legend=top_legend(palette),
    )  # fmt: skip


def _positive(values):
    return np.where(values > 0, values, np.nan)  # a log axis has no 0


def _decades(curve, batches):
    seen = [curve.fresh, curve.same, _positive(curve.between)]
    seen += [np.array([held.fresh, held.same]) for held in batches.values()]
    values = np.concatenate(seen)
    values = values[np.isfinite(values) & (values > 0)]
    if not values.size:
        return [-3, 0]
    return [float(np.log10(np.min(values)) - 0.15), float(np.log10(np.max(values)) + 0.1)]


def _best(curve, fresh, same):
    ends = (np.min(curve.fresh), np.min(curve.same))
    return {
        "type": "scatter", "mode": "markers", "name": "best G", "showlegend": False,
        "x": [curve.best_fresh, curve.best_same], "y": _positive(np.array(ends)),
        "hovertemplate": "best G = %{x}<extra></extra>",
        "marker": {"symbol": "circle-open", "size": 14, "color": [fresh, same],
                   "line": {"width": 2.5}},
    }  # fmt: skip


def _simulated(batches, part, color, palette):
    means = [getattr(held, part) for held in batches.values()]
    errors = [2 * getattr(held, f"{part}_error") for held in batches.values()]
    return {
        "type": "scatter", "mode": "markers", "name": "simulated, ±2 standard errors",
        "showlegend": part == "fresh", "x": list(batches), "y": means,
        "hovertemplate": "simulated, G = %{x}: %{y:.4g}<extra></extra>",
        "error_y": {"type": "data", "array": errors, "color": color, "thickness": 1.5, "width": 4},
        "marker": {"size": 7, "color": palette.background, "line": {"color": color, "width": 1.5}},
    }  # fmt: skip


def _label(curve, G, y, color):
    return {
        "text": f"best: {G}", "x": float(np.log10(G)), "y": float(np.log10(y)), "showarrow": False,
        "xanchor": "right" if curve.sizes[-1] / 2 < G else "center", "yanchor": "top",
        "yshift": -9, "font": {"size": FONT_SIZE, "color": color},
    }  # fmt: skip


def _describe_budget(view):
    curve = view.curve
    return (
        f"Curves: variance of the gradient of {count(view.budget, 'sample')} against the group "
        f"size; with fresh prompts smallest at G = {curve.best_fresh} "
        f"({number(np.min(curve.fresh))}), with the same prompts at "
        f"G = {curve.best_same}."
    )
