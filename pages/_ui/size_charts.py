"""True values of the kinds of prompts, and what a group's mean and one constant make of them."""

import numpy as np

from .figure import CLEAR, FONT_SIZE, axis, figure
from .numbers import count, exact, number

_ROW = 44
_WIDEST = 22  # pixels of the bubble of a mean that comes every time


def top_legend(palette):
    """A legend above the plot that may break into lines."""
    return {
        "orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yref": "container",
        "yanchor": "top", "font": {"size": FONT_SIZE, "color": palette.faint}, "bgcolor": CLEAR,
        "itemclick": False, "itemdoubleclick": False, "traceorder": "normal",
    }  # fmt: skip


def value_chart(view, *, palette, former=None):
    """Each kind's true value, what a group mean says about it, and the one constant.

    Parameters
    ----------
    view : SizeView
    palette : Palette
    former : the same before the last edit, or None

    Returns
    -------
    Figure
        Bubbles: means of sampled groups, larger where they come more often. Bar: two standard
        deviations of a group mean about the true value, in closed form.
    """
    policy, N = view.policy, len(view.policy.value)
    spread = np.sqrt(policy.reward_variance / view.G)
    row = max(min(_ROW, 620 / N), 9)
    low, high = float(np.min(policy.rewards)), float(np.max(policy.rewards))
    room = 0.06 * (high - low) or 0.5
    traces = [
        _bubbles(view, palette),
        _values(policy, spread, view.G, palette),
        _marks("best constant", policy.best_constant, "diamond-open", 9, palette.categories[2]),
    ]
    if former is not None and len(former.policy.value) == N:
        moved = np.where(former.policy.value != policy.value, former.policy.value, np.nan)
        traces.append(_marks("true value before", moved, "line-ns-open", 14, palette.faint))
    step = max(round(12 / row + 0.49), 1)
    return figure(
        traces, palette=palette, height=round(row * N) + 44 + 84, margin=(44, 14, 84, 44),
        alt=_describe_values(view, spread),
        xaxis=axis("reward", palette=palette, range=[low - room, high + room], nticks=7,
                   showgrid=True),
        yaxis=axis("kind of prompt", palette=palette, range=[N - 0.4, -0.6],
                   tickvals=list(range(0, N, step))),
        **_constant(view.constant, palette),
        showlegend=True, legend=top_legend(palette),
    )  # fmt: skip


def _constant(value, palette):
    """A rule at the one constant, with its name above the plot."""
    line = {"color": palette.faint, "width": 1.25, "dash": "dash"}
    rule = {"type": "line", "x0": value, "x1": value, "yref": "paper", "y0": 0, "y1": 1}
    name = {
        "text": f"one constant {number(value, 3)}", "x": value, "y": 1, "yref": "paper",
        "yanchor": "bottom", "showarrow": False,
        "font": {"size": FONT_SIZE - 1, "color": palette.faint},
    }  # fmt: skip
    return {"shapes": [{**rule, "line": line}], "annotations": [name]}


def _bubbles(view, palette):
    at, kinds, shares = [], [], []
    for kind, means in enumerate(view.means.T):
        values, times = np.unique(np.round(means, 12), return_counts=True)
        at += values.tolist()
        kinds += [kind] * len(values)
        shares += (times / len(means)).tolist()
    return {
        "type": "scatter", "mode": "markers", "name": f"means of {view.G} sampled answers",
        "x": at, "y": kinds, "customdata": [f"{100 * share:.0f}%" for share in shares],
        "hovertemplate": "group mean %{x:.4g}: %{customdata} of groups<extra></extra>",
        "marker": {"size": (_WIDEST * np.sqrt(shares)).tolist(), "color": palette.categories[3],
                   "opacity": 0.45, "line": {"width": 0}},
    }  # fmt: skip


def _values(policy, spread, G, palette):
    low, high = np.min(policy.rewards), np.max(policy.rewards)
    texts = [
        f"kind {kind}: true value {exact(value)}<br>a mean of {G} is off by {number(off)}"
        for kind, (value, off) in enumerate(
            zip(policy.value.tolist(), spread.tolist(), strict=True)
        )
    ]
    return {
        "type": "scatter", "mode": "markers", "name": "true value, ±2 sd of a group mean",
        "x": policy.value, "y": np.arange(len(spread)), "hovertext": texts,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "error_x": {
            "type": "data", "symmetric": False, "color": palette.text, "thickness": 1,
            "array": np.minimum(2 * spread, high - policy.value),
            "arrayminus": np.minimum(2 * spread, policy.value - low), "width": 0,
        },
        "marker": {"symbol": "line-ns-open", "size": 16, "color": palette.text,
                   "line": {"width": 3, "color": palette.text}},
    }  # fmt: skip


def _marks(name, values, symbol, size, color):
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": values,
        "y": np.arange(len(values)), "hovertemplate": f"{name} %{{x:.4g}}<extra></extra>",
        "marker": {"symbol": symbol, "size": size, "color": color,
                   "line": {"width": 1.5, "color": color}},
    }  # fmt: skip


def _describe_values(view, spread):
    said = [
        f"kind {kind}: true value {number(value, 3)}, group means within {number(2 * off, 3)}"
        for kind, (value, off) in enumerate(
            zip(view.policy.value[:12].tolist(), spread[:12].tolist(), strict=True)
        )
    ]
    return (
        f"True values of {count(len(spread), 'kind')} of prompts and means of groups of {view.G}; "
        f"{'; '.join(said)}. The constant is {number(view.constant, 3)}."
    )
