"""One panel of a picture by step: both runs' lines as traces, its legend, its vertical axis."""

import math
from dataclasses import replace

import numpy as np

from .figure import CLEAR, FAR, FONT_SIZE, axis, tick_step, unselected
from .numbers import number, percent
from .run_chart_rows import label

MOST_POINTS = 1000  # of a line; extremes are kept
LINE = 19  # pixels of a title or of a line of a legend
_NARROW = 290  # pixels that a legend has on a telephone
_BROAD, _PALE = 7, 0.4
_CROWDED, _MEANS = 400, 150  # steps that single lines are too many for; means drawn instead
_SPAN = 0.3  # of its size; what varies by less is drawn without the zero


def with_other(panel, other_panel, other, palette):
    """The panel with the other run's lines in it, thin and dashed.

    Where each run has one line the other's has a colour of its own; else colours tell lines
    apart.
    """
    own = [line for line in panel.lines if not line.broad]
    theirs = [] if other_panel is None else [x for x in other_panel.lines if not x.broad]
    alone = len(own) <= 1 and len(theirs) <= 1
    known = {line.name for line in own}
    dashed = tuple(
        replace(
            line, said=f"{label(other.name)}: {line.said}", dash="dash", width=1.25, error=None,
            color=palette.negative if alone else line.color,
            named=not alone and line.name not in known,
        )
        for line in theirs
    )  # fmt: skip
    return replace(panel, lines=(*panel.lines, *dashed))


def legend_keys(panel, runs, palette, full=False):
    """What the legend of a panel names: (name, look of a line) pairs.

    ``runs`` are the names of both runs where the panel has to tell them apart, else empty;
    ``full`` gives lines from the log the name that it has for them.
    """
    own = [line for line in panel.lines if line.named]
    broad = [line for line in own if line.broad]
    several = len(own) - len(broad) > 1
    named = own if several or (broad and not runs) else broad
    keys = [(line.said if full and line.broad else line.name, _look(line)) for line in named]
    if runs:
        own = [line for line in panel.lines if line.dash != "dash" and not line.broad]
        here = own[0].color if len(own) == 1 else palette.text
        there = palette.text if several else palette.negative
        keys += [
            (runs[0], {"color": here, "width": 1.75}),
            (runs[1], {"color": there, "width": 1.25, "dash": "dash"}),
        ]
    return keys


def key_trace(name, look, suffix):
    """A line that stands in the legend only."""
    return {
        "type": "scatter", "mode": "lines", "x": [None], "y": [None], "name": name, "line": look,
        "legend": f"legend{suffix}", "showlegend": True, "yaxis": f"y{suffix}",
        "hoverinfo": "skip", "opacity": _PALE if look["width"] == _BROAD else 1,
    }  # fmt: skip


def legend_width(keys):
    """Pixels that a legend takes in one line, about."""
    return sum(_key_width(name) for name, _ in keys)


def _key_width(name):
    return 50 + 6.2 * len(name)


def legend_rows(keys):
    """Lines of a legend on a narrow screen; in several, all columns are as wide as the widest."""
    if not keys or legend_width(keys) <= _NARROW:
        return min(len(keys), 1)
    columns = max(int(_NARROW // max(_key_width(name) for name, _ in keys)), 1)
    return -(-len(keys) // columns)


def title_and_legend_rows(panel, keys):
    """Whether the legend has room beside the title, and the lines that both take."""
    rows = legend_rows(keys)
    beside = rows == 1 and 6.6 * len(panel.title) + legend_width(keys) <= _NARROW + 40
    return beside, 1 if beside else 1 + rows


def line_traces(line, suffix, written, window):
    """A line, the band around it, and dots where a value stands alone between gaps.

    ``written`` gives the text of a value for the hover. With a ``window`` of more than one step
    the line is pale and its mean over the window strong.
    """
    at = thinned(line.y)
    x, y = line.x[at], np.clip(line.y[at], -FAR, FAR)
    alone = _alone(y)
    crowded = len(line.y) > _CROWDED and not line.broad
    opacity = _PALE if line.broad or crowded else 1
    base = {"type": "scatter", "yaxis": f"y{suffix}", "name": line.said, "showlegend": False,
            "opacity": opacity}  # fmt: skip
    look = _look(line)
    drawn = {
        **base, "mode": "lines", "x": x, "y": y,
        "line": {**look, "width": 0.75} if crowded else look,
        "hovertext": [written(value) for value in y.tolist()],
        "hovertemplate": line.said.replace("%", "&#37;") + ": %{hovertext}<extra></extra>",
    }  # fmt: skip
    dots = {
        **base, "mode": "markers", "x": x[alone], "y": y[alone], "hoverinfo": "skip",
        "marker": {"color": line.color, "size": 11 if line.broad else 6},
        **unselected(opacity=opacity),
    }  # fmt: skip
    band = [] if line.error is None else _band(line, at, base)
    strong = [_strong(line, window, base)] if crowded else []
    return [*band, drawn, *([dots] if alone.any() else []), *strong]


def window_of(panels):
    """Steps that are drawn as their mean beside the single ones; 1 where lines are not crowded."""
    most = max(len(line.y) for panel in panels for line in panel.lines)
    return -(-most // _MEANS) if most > _CROWDED else 1


def _strong(line, window, base):
    """Means over windows of steps."""
    rest = np.full(-len(line.y) % window, np.nan)
    rows = np.concatenate([np.clip(line.y, -FAR, FAR), rest]).reshape(-1, window)
    places = np.concatenate([line.x.astype(float), rest]).reshape(-1, window)
    known = np.isfinite(rows)
    number = np.sum(known, axis=1)
    shares = np.where(known, rows, 0.0) / np.maximum(number, 1)[:, None]
    y = np.where(number > 0, np.sum(shares, axis=1), np.nan)
    return {
        **base, "mode": "lines", "x": np.nanmean(places, axis=1), "y": y, "opacity": 1,
        "name": f"{line.said}, mean", "line": _look(line), "hoverinfo": "skip",
    }  # fmt: skip


def _look(line):
    return {"color": line.color, "dash": line.dash, "width": _BROAD if line.broad else line.width}


def _band(line, at, base):
    x, y, error = line.x[at].astype(float), line.y[at], line.error[at]
    low, high = np.clip(y - error, -FAR, FAR), np.clip(y + error, -FAR, FAR)
    outlines = [
        (np.concatenate([x[part], x[part][::-1], [np.nan]]),
         np.concatenate([high[part], low[part][::-1], [np.nan]]))
        for part in _stretches(np.isfinite(low) & np.isfinite(high))
    ]  # fmt: skip
    if not outlines:
        return []
    across, up = (np.concatenate(parts)[:-1] for parts in zip(*outlines, strict=True))
    return [{
        **base, "mode": "lines", "x": across, "y": up, "name": "± 2 standard errors",
        "fill": "toself", "fillcolor": line.color, "opacity": 0.2, "hoverinfo": "skip",
        "line": {"width": 0},
    }]  # fmt: skip


def thinned(values, most=MOST_POINTS):
    """Indices of at most so many values, rising, the lowest and highest of each stretch kept.

    Parameters
    ----------
    values : ndarray, (S,)
        NaN in gaps.
    most : int
        At least 4.

    Returns
    -------
    ndarray of int
    """
    size = len(values)
    if size <= most:
        return np.arange(size)
    width = -(-size // (most // 2 - 1))
    rows = np.concatenate([values, np.full(-size % width, np.nan)]).reshape(-1, width)
    starts = np.arange(len(rows)) * width
    low = starts + np.argmin(np.where(np.isfinite(rows), rows, np.inf), axis=1)
    high = starts + np.argmax(np.where(np.isfinite(rows), rows, -np.inf), axis=1)
    return np.unique(np.concatenate([low, high, [0, size - 1]]))


def _stretches(known):
    """Index arrays of the runs of True."""
    at = np.nonzero(known)[0]
    return np.split(at, np.nonzero(np.diff(at) > 1)[0] + 1) if at.size else []


def _alone(y):
    """Values between two gaps, which no line shows."""
    known = np.concatenate([[False], np.isfinite(y), [False]])
    return known[1:-1] & ~known[:-2] & ~known[2:]


def value_axis(panel, bottom, top, palette):
    """The panel's vertical axis over its part of the picture, with a few round ticks."""
    low, high = value_range(panel)
    step = tick_step(high - low, 5)
    first, last = math.ceil(low / step), math.floor(high / step)
    ticks = [at * step for at in range(first, last + 1)] if last - first < 12 else [low, high]
    said = [percent(tick) if panel.percents else number(tick, 4) for tick in ticks]
    return axis(
        panel.unit, palette=palette, range=[low, high], domain=[bottom, top], anchor="x",
        tickvals=ticks, ticktext=said, showgrid=True, zeroline=low < 0 < high,
        zerolinecolor=palette.neutral, zerolinewidth=1,
    )  # fmt: skip


def value_range(panel):
    """Ends of a panel's vertical axis, a little beyond all that it draws."""
    ends = [_ends(line) for line in panel.lines]
    ends = [*(end for end in ends if end is not None), *([panel.least] if panel.least else [])]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    size = max(abs(low), abs(high))
    if high - low >= _SPAN * size:
        low, high = min(low, 0.0), max(high, 0.0)
    if not high - low > 1e-9 * size:
        low, high = (low - 0.5 * size, high + 0.5 * size) if size else (0.0, 1.0)
    room = 0.06 * (high - low) or high - low
    return low - room, high + room


def _ends(line):
    """Lowest and highest value of a line and its band."""
    known = np.clip(line.y[np.isfinite(line.y)], -FAR / 4, FAR / 4)
    if not known.size:
        return None
    if line.error is None:
        return float(known.min()), float(known.max())
    error = np.where(np.isfinite(line.error), line.error, 0.0)[np.isfinite(line.y)]
    error = np.minimum(error, FAR / 4)
    return float(np.min(known - error)), float(np.max(known + error))


def title_note(panel, top, left, rows, palette):
    """The panel's title above it at the left."""
    return {
        "text": panel.title, "xref": "paper", "x": 0, "xanchor": "left", "xshift": 4 - left,
        "yref": "paper", "y": top, "yanchor": "bottom", "yshift": 2 + LINE * (rows - 1),
        "showarrow": False, "font": {"size": FONT_SIZE + 1, "color": palette.text},
    }  # fmt: skip


def legend_place(top, plot, rows, beside, palette):
    """A legend on the line of the title, at the right, or on the lines below it."""
    lift = (LINE * (rows if beside else rows - 1) + 6) / plot  # its own border included
    across = (
        {"xref": "paper", "x": 1, "xanchor": "right"}
        if beside
        else {"xref": "paper", "x": 0, "xanchor": "left"}
    )
    return {
        **across, "orientation": "h", "yref": "paper", "y": top + lift, "yanchor": "top",
        "font": {"size": FONT_SIZE, "color": palette.faint}, "bgcolor": CLEAR, "itemwidth": 30,
        "itemclick": False, "itemdoubleclick": False, "traceorder": "normal",
    }  # fmt: skip
