"""The axis of weights, with what is marked on it, for pictures against the weight of a term."""

import numpy as np

from .figure import FONT_SIZE, axis, tick_step
from .numbers import number


def weight_axis(weights, title, palette, **settings):
    """A logarithmic axis over the weights, with a tick at every second power of ten or fewer."""
    low, high = (round(float(np.log10(weights[end]))) for end in (0, -1))
    step = 2 * -(-(high - low) // 10)
    powers = list(range(high, low - 1, -step))[::-1]
    return axis(
        title, palette=palette, type="log", range=[low, high],
        tickvals=[10.0**power for power in powers],
        ticktext=[number(10.0**power) for power in powers], **settings,
    )  # fmt: skip


def centred_axis(title, top, palette, **settings):
    """An axis from -top to top with a few round ticks, none of them at its very ends."""
    step = tick_step(2 * top, 4)
    ticks = [at * step for at in range(-9, 10) if abs(at * step) < 0.97 * top]
    return axis(
        title, palette=palette, range=[-top, top], tickvals=ticks,
        ticktext=[number(tick, 3) for tick in ticks], **settings,
    )  # fmt: skip


def rule(weight, weights, words, palette, *, at, dash="solid", color=None):
    """A vertical line at a weight and its name beside it, as (shapes, annotations).

    ``at`` is the height of the name, from 0 to 1 of the picture; none where the weight is off
    the axis.
    """
    if weight is None or not weights[0] <= weight <= weights[-1]:
        return [], []
    color = color or palette.text
    share = np.log(weight / weights[0]) / np.log(weights[-1] / weights[0])
    left = share > 0.5  # the name stands on the side where there is room
    line = {
        "type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": weight, "x1": weight,
        "layer": "below", "line": {"color": color, "width": 1.25, "dash": dash},
    }  # fmt: skip
    name = {
        "text": f" {words} ", "showarrow": False, "x": float(np.log10(weight)), "xref": "x",
        "xanchor": "right" if left else "left", "y": at, "yref": "paper", "yanchor": "top",
        "font": {"size": FONT_SIZE - 1, "color": color}, "bgcolor": palette.background,
        "opacity": 0.9, "borderpad": 0,
    }  # fmt: skip
    return [line], [name]


def panel_title(text, y, palette):
    """A panel's name above its top left corner."""
    return {
        "text": text, "showarrow": False, "x": 0, "xref": "paper", "xanchor": "left",
        "y": y, "yref": "paper", "yanchor": "bottom",
        "font": {"size": FONT_SIZE, "color": palette.text}, "bgcolor": palette.background,
        "opacity": 0.92, "borderpad": 0,
    }  # fmt: skip
