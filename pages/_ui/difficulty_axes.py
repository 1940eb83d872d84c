"""Axes and lines over success rates and group sizes, shared by two pages."""

import numpy as np

from .figure import CLEAR, FAR, FONT_SIZE, axis
from .numbers import number

ERRORS = 2  # standard errors that an error bar is long


def points(x, y, top=np.inf, **more):
    """Coordinates of markers without those that are no number or above the top; and their texts.

    ``more`` are lists of one entry a point. Infinite and huge values end at `FAR`.
    """
    drawn = np.flatnonzero(np.isfinite(x) & ~np.isnan(y) & (y <= top))
    kept = {name: [values[i] for i in drawn] for name, values in more.items()}
    return {"x": np.clip(x[drawn], -FAR, FAR), "y": np.clip(y[drawn], -FAR, FAR), **kept}


def crosses(x, mean, error, palette, **more):
    """Means of samples with bars of two standard errors."""
    bars = np.nan_to_num(ERRORS * error)
    there = points(x, mean, customdata=[
        f"{number(m)} ± {number(ERRORS * e, 2)}"
        for m, e in zip(mean.tolist(), error.tolist(), strict=True)
    ])  # fmt: skip
    length = bars[np.isfinite(x) & ~np.isnan(mean)]
    return {
        "type": "scatter", "mode": "markers", "name": "sampled, ± 2 standard errors",
        "cliponaxis": False, **there,
        "error_y": {"type": "data", "array": length, "thickness": 1.25, "width": 4,
                    "color": palette.text},
        "marker": {"symbol": "x-thin", "size": 6, "color": palette.text,
                   "line": {"color": palette.text, "width": 1.25}},
        "hovertemplate": "sampled: %{customdata}<extra></extra>", **more,
    }  # fmt: skip


def legend(palette):
    """A legend above the plot that wraps within the figure's width."""
    return {
        "orientation": "h", "x": 0, "xanchor": "left", "xref": "container", "y": 1,
        "yref": "container", "yanchor": "top", "bgcolor": CLEAR, "itemclick": False,
        "itemdoubleclick": False, "traceorder": "normal",
        "font": {"size": FONT_SIZE - 1, "color": palette.faint},
    }  # fmt: skip


def axis_of_rates(prompts, graded, palette, **settings):
    """The axis of success rates from 0 to 1, or of mean rewards with a little room beside them."""
    if not graded:
        ticks = [0, 0.25, 0.5, 0.75, 1]
        return axis("success rate p of the prompt", palette=palette, range=[-0.02, 1.02],
                    tickvals=ticks, ticktext=["0", "0.25", "0.5", "0.75", "1"],
                    showline=True, linecolor=palette.line, **settings)  # fmt: skip
    low, high = (float(np.clip(end(prompts.values), -FAR, FAR)) for end in (np.min, np.max))
    room = 0.02 * (high - low) or max(0.5, 0.02 * abs(high))
    return axis("mean reward of the prompt", palette=palette, range=[low - room, high + room],
                nticks=6, showline=True, linecolor=palette.line, **settings)  # fmt: skip
