"""Traces of a token heatmap: the cells and what is drawn and written on them."""

import numpy as np

from .figure import FONT_SIZE, unselected
from .numbers import count, exact, number
from .token_text import escaped

CELLS = "cells"  # name of the invisible trace that a click selects from
MAX_CLICKABLE = 4096
MAX_WRITTEN = 2000
_MAX_CROSSES = 1500


def panel_traces(panel, row, scale, size, palette, written):
    grid = panel.grid
    clickable = grid.values.size <= MAX_CLICKABLE and not grid.reduced
    heat = {
        "type": "heatmap",
        "z": scale.fit(grid.values),
        "x": panel.x,
        "y": panel.y,
        "coloraxis": "coloraxis",
        "xgap": size.gap[0],
        "ygap": size.gap[1],
        "name": row.title,
        "hoverongaps": False,
    }
    if clickable:
        heat["hoverinfo"] = "skip"
    else:
        heat |= _block_hover(panel, row)
    traces = [heat]
    writing = _writing(panel, scale, size) if written else []
    if np.any(grid.changed):
        traces.append(_changed_outline(panel, palette))
    traces += [*writing, *_crosses(panel, scale, size, palette, corner=bool(writing))]
    traces += _infinities(panel, scale)
    if clickable:
        traces.append(_cells(panel, row, size))
    return traces


def _cells(panel, row, size):
    """Invisible markers over the cells: Plotly reports no clicks on a heatmap."""
    grid = panel.grid
    r, c = np.nonzero(~np.isnan(grid.values))
    p, g = grid.rows[r].T
    t = grid.start + c
    notes = _notes(panel, r, c)
    value = f"{row.title.lower()} %{{customdata[3]}}"
    where = "prompt %{customdata[0]}, completion %{customdata[1]}, token %{customdata[2]}"
    lines = [where, value, *(["%{hovertext}"] if any(notes) else [])]
    side = max(min(size.row, size.column), 4)
    return {
        "type": "scatter",
        "name": CELLS,
        "mode": "markers",
        "x": panel.x[c],
        "y": panel.y[r],
        # Lists, not an array: Streamlit hands a typed array's rows back as mappings.
        "customdata": [
            [*cell, exact(value)]
            for *cell, value in zip(
                p.tolist(), g.tolist(), t.tolist(), grid.values[r, c], strict=True
            )
        ],
        "hovertext": notes if any(notes) else None,
        "hovertemplate": "<br>".join(lines) + "<extra></extra>",
        "marker": {"symbol": "square", "size": side, "opacity": 0},
        **unselected(opacity=0),
    }


def _notes(panel, r, c):
    """What the hover says beyond place and value: token text, clipping, former value."""
    grid, texts = panel.grid, getattr(panel.evaluation.scenario, "texts", None)
    tokens = bool(texts and texts.tokens)
    notes = []
    for i, j in zip(r.tolist(), c.tolist(), strict=True):
        parts = []
        if tokens:
            p, g = grid.rows[i].tolist()
            text = texts.token(p, g, grid.start + j)
            parts += [f"text {escaped(text)}"] if text else []
        if grid.marks[i, j]:
            parts.append("clipped")
        if grid.former is not None and grid.changed[i, j]:
            parts.append(f"before {number(float(grid.former[i, j]), 6)}")
        notes.append("<br>".join(parts))
    return notes


def _block_hover(panel, row):
    """Hover of a grid with too many cells for markers, its place in the smallest integers."""
    grid = panel.grid
    where = "prompt %{customdata[0]}, completion %{customdata[1]}, token %{x}"
    if grid.reduced:
        down, wide = grid.step
        block = f"{count(down, 'completion')} x {count(wide, 'token')}"
        where = f"largest of {block} from {where.replace('%{x}', '%{customdata[2]}')}"
    tokens = grid.start + grid.step[1] * np.arange(grid.values.shape[1])
    shape = grid.values.shape
    parts = (grid.rows[:, :1], grid.rows[:, 1:], tokens[None, :])[: 3 if grid.reduced else 2]
    places = np.stack([np.broadcast_to(part, shape) for part in parts], axis=-1)
    kind = np.uint8 if places.size == 0 or places.max() < 256 else np.uint16
    return {
        "customdata": places.astype(kind),
        "hovertemplate": f"{where}<br>{row.title.lower()} %{{z}}<extra></extra>",
    }


def _infinities(panel, scale):
    """A sign on infinite cells: their colour is only that of the end of the scale."""
    values = panel.grid.values
    r, c = np.nonzero(np.isinf(values))
    if not 0 < len(r) <= _MAX_CROSSES:
        return []
    return [{
        "type": "scatter", "mode": "text", "name": "infinite", "text": ["∞"] * len(r),
        "x": panel.x[c], "y": panel.y[r], "textfont": {"color": scale.ink(values[r, c])},
        "hoverinfo": "skip", **unselected(opacity=1),
    }]  # fmt: skip


def _crosses(panel, scale, size, palette, corner):
    """Crosses on clipped cells; a bar through each where there are too many for signs."""
    grid = panel.grid
    r, c = np.nonzero(grid.marks)
    if not len(r):
        return []
    if len(r) > _MAX_CROSSES:
        bars = np.where(grid.marks, 1.0, np.nan).astype(np.float32)
        return [{
            "type": "heatmap", "name": "clipped", "z": bars, "x": panel.x, "y": panel.y,
            "ygap": 0.75 * size.row, "opacity": 0.5, "showscale": False, "hoverinfo": "skip",
            "colorscale": [[0, palette.text], [1, palette.text]],
        }]  # fmt: skip
    side = float(np.clip(min(0.4 * size.row, 0.8 * size.column), 3, 6 if corner else 9))
    right, up = (0.5 - 7 / size.column, 0.5 - 7 / size.row) if corner else (0, 0)
    return [{
        "type": "scatter", "mode": "markers", "name": "clipped",
        "x": panel.x[c] + right, "y": panel.y[r] - up,
        "marker": {"symbol": "x-thin", "size": side, "opacity": 1,
                   "line": {"color": scale.ink(grid.values[r, c]), "width": 1.5}},
        "hoverinfo": "skip", **unselected(opacity=1),
    }]  # fmt: skip


def _changed_outline(panel, palette):
    """One thin line around each run of changed cells in a row."""
    grid = panel.grid
    edges = np.diff(np.pad(grid.changed, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    r, first = np.nonzero(edges == 1)
    _, after = np.nonzero(edges == -1)
    half = grid.step[1] / 2
    left, right = panel.x[first] - half, panel.x[after - 1] + half
    top, bottom = panel.y[r] - 0.5, panel.y[r] + 0.5
    gap = np.full(len(r), np.nan)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "changed",
        "x": np.stack([left, right, right, left, left, gap], axis=1).ravel(),
        "y": np.stack([top, top, bottom, bottom, top, gap], axis=1).ravel(),
        "line": {"color": palette.faint, "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
    }


def _writing(panel, scale, size):
    """Token texts in the cells, if there are any and the cells have room for them."""
    grid, texts = panel.grid, getattr(panel.evaluation.scenario, "texts", None)
    wide = grid.values.shape[1] <= 40 and grid.values.size <= MAX_WRITTEN
    if texts is None or not texts.tokens or size.several or not wide or size.row < 16:
        return []
    r, c = np.nonzero(~np.isnan(grid.values))
    limit = max(int(size.column / 7), 1)
    places = zip(grid.rows[r].tolist(), (grid.start + c).tolist(), strict=True)
    return [{
        "type": "scatter", "mode": "text", "name": "texts", "x": panel.x[c], "y": panel.y[r],
        "text": [escaped(texts.token(p, g, t), limit) for (p, g), t in places],
        "textfont": {"size": FONT_SIZE - 1, "color": scale.ink(grid.values[r, c])},
        "hoverinfo": "skip",
        "selected": {"textfont": {}}, "unselected": {"textfont": {}},
    }]  # fmt: skip
