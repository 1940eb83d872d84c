"""Token heatmaps: completions down, token positions across, padding empty."""

import numpy as np

from .cell_traces import panel_traces
from .figure import FONT_SIZE, axis, figure, heading, largest, nice_ceiling
from .grid import build_grid, drawn_prompts
from .numbers import count, number
from .palette import color_scale
from .quantities import QUANTITIES, advantage_unit

_MAX_HEIGHT = 640


def token_heatmap(
    evaluation,
    quantity,
    *,
    palette,
    prompts=None,
    window=None,
    former=None,
    pinned=None,
    selected=None,
    compact=False,
    titled=True,
    written=False,
    names=("now", "A (pinned)"),
    over=None,
):
    """Heatmap of one per-token quantity.

    Parameters
    ----------
    evaluation : Evaluation
    quantity : str
        Key of `QUANTITIES`.
    palette : Palette
    prompts : int, sequence of int, or None
        Which groups to draw; None is all of them, in order.
    window : (int, int) or None
        First token position to draw and the one after the last.
    former : Evaluation or None
        Cells that differ from it get a thin outline.
    pinned : Evaluation or None
        Drawn below as A, on the same colour scale.
    selected : (int, int, int) or None
        Prompt, completion, token to outline.
    compact : bool
        Small, for a row of several, with the colour scale below.
    titled : bool or (str, str)
        Title and unit above the cells; given, they stand there in place of the quantity's own.
    written : bool
        Write the token texts into the cells, where they fit.
    names : (str, str)
        What the two states are called where both are drawn.
    over : callable or None
        ``over(grid, column, palette)`` gives the shapes and annotations that are drawn over
        the cells; `column` is the width of one in pixels.

    Returns
    -------
    Figure
        With up to 4096 cells a trace named ``cells`` lies over them, so that a click returns
        its ``customdata``: prompt, completion, token and the value in full. More than 64 x 512
        cells are drawn as blocks, each showing its entry of largest magnitude.
    """
    row = QUANTITIES[quantity]
    chosen = drawn_prompts(evaluation, prompts)
    grid = build_grid(evaluation, row, prompts=chosen, window=window, former=former)
    panels = [_Panel(evaluation, grid, 0.0, names[0])]
    below = None if pinned is None else build_grid(pinned, row, prompts=chosen, window=window)
    if below is not None and len(below.rows):
        panels.append(_Panel(pinned, below, len(grid.rows) + 1.4, names[1]))
    scale = _Scale(row, palette, [panel.grid.values for panel in panels])
    size = _Size(panels, compact, titled, several=len(chosen) > 1)
    traces = []
    for panel in panels:
        traces += panel_traces(panel, row, scale, size, palette, written)
    layout = {
        "coloraxis": scale.color_axis(compact),
        "xaxis": _token_axis(panels, size, palette),
        "yaxis": _completion_axis(panels, size, palette),
        "shapes": [
            *_separators(panels, size, palette),
            *_outline(panels[0].grid, selected, palette),
        ],
        "annotations": [*_panel_names(panels, palette), *_nothing_note(grid, palette)],
    }
    if titled:
        layout["annotations"] += _heading(evaluation, row, titled, size, palette)
    if over is not None and not grid.reduced:
        shapes, annotations = over(grid, size.column, palette)
        layout["shapes"] += shapes
        layout["annotations"] += annotations
    return figure(
        traces, palette=palette, height=size.height, margin=size.margin,
        alt=_describe(titled, row, panels), **layout,
    )  # fmt: skip


class _Panel:
    """One state's grid and where its rows stand on the vertical axis."""

    def __init__(self, evaluation, grid, offset, name):
        self.evaluation, self.grid, self.offset, self.name = evaluation, grid, offset, name
        self.y = offset + np.arange(len(grid.rows))
        across = grid.step[1]
        self.x = grid.start + (across - 1) / 2 + across * np.arange(grid.values.shape[1])


class _Scale:
    """One colour scale for all panels, symmetric around zero where there are two signs."""

    def __init__(self, quantity, palette, arrays):
        below_zero = any(bool(np.any(values < 0)) for values in arrays)
        self.signed = quantity.signed or below_zero
        self.top = nice_ceiling(largest(*arrays))
        self.colors = palette.diverging if self.signed else palette.sequential
        self.bottom = -self.top if self.signed else 0.0
        # Colours need no more digits than float32 has, but they do need its range.
        self.dtype = np.float32 if 1e-30 < self.top < 1e30 else np.float64
        self.palette = palette

    def fit(self, values):
        """Values as sent to the browser; infinite ones take the colour of their end."""
        values = values.astype(np.float64)  # a round number may be beyond float32
        return np.clip(values, -self.top, self.top).astype(self.dtype)

    def ink(self, values):
        """Colours of signs on cells: the background's where a cell is saturated."""
        strong = np.abs(values) > 0.6 * self.top
        return np.where(strong, self.palette.background, self.palette.text).tolist()

    def color_axis(self, compact):
        """Plotly's colour axis with a slim bar and three numbers."""
        ticks = [self.bottom, 0.0, self.top] if self.signed else [0.0, self.top / 2, self.top]
        inside = 1 - 1e-6  # Plotly drops a tick that rounding puts outside the bar
        bar = {
            "thickness": 6 if compact else 9,
            "outlinewidth": 0,
            "tickvals": [inside * tick for tick in ticks],
            "ticktext": [number(tick, 3) for tick in ticks],
            "tickfont": {
                "size": FONT_SIZE - 2 if compact else FONT_SIZE - 1,
                "color": self.palette.faint,
            },
            "ticks": "",
        }
        if compact:
            bar |= {
                "orientation": "h",
                "len": 0.84,
                "lenmode": "fraction",
                "x": 0.5,
                "xpad": 0,
                "y": 0,
                "yref": "container",
                "yanchor": "bottom",
                "ypad": 2,
            }
        else:
            bar |= {"len": 1, "x": 1, "xpad": 12, "ypad": 0, "y": 0.5}
        return {"cmin": self.bottom, "cmax": self.top, "colorscale": color_scale(self.colors),
                "colorbar": bar}  # fmt: skip


class _Size:
    """Pixels: rows of one height whatever the numbers, so that nothing moves on a redraw."""

    def __init__(self, panels, compact, titled, several):
        rows = max(sum(len(panel.grid.rows) for panel in panels), 1)
        columns = max(panel.grid.values.shape[1] for panel in panels)
        self.pinned, self.compact, self.several = len(panels) > 1, compact, several
        extra = 2.4 if self.pinned else 0.0
        tallest = 24 if compact else 30
        self.row = max(min(tallest, _MAX_HEIGHT / (rows + extra)), 1.0)
        self.column = (150 if compact else 680) / max(columns, 1)
        left = (54 if several else 40) - (16 if compact else 0)
        top = 42 if titled else 8
        self.margin = (left, 6, top, 64) if compact else (left, 74, top, 44)
        self.height = round(self.row * (rows + extra)) + self.margin[2] + self.margin[3]
        self.gap = (1 if self.column >= 5 else 0, 1 if self.row >= 6 else 0)


def _token_axis(panels, size, palette):
    start = min(panel.grid.start for panel in panels)
    stop = max(
        panel.grid.start + panel.grid.step[1] * panel.grid.values.shape[1] for panel in panels
    )
    down, across = panels[0].grid.step
    title = "token"
    if (down, across) != (1, 1):
        block = " x ".join(
            count(n, noun) for n, noun in ((down, "completion"), (across, "token")) if n > 1
        )
        title = f"token (each cell shows the largest of {block})"
    few = {"nticks": 5 if size.compact else 14}
    if stop - start <= (6 if size.compact else 16):
        few = {"tickvals": list(range(start, stop))}
    return axis(title, palette=palette, range=[start - 0.5, stop - 0.5], constrain="domain",
                **few)  # fmt: skip


def _completion_axis(panels, size, palette):
    labels = [pair for panel in panels for pair in _row_labels(panel, size)]
    last = panels[-1]
    title = "prompt" if size.several and size.row < 13 else "completion"
    title = "" if size.compact else title
    return axis(
        title,
        palette=palette,
        range=[last.offset + max(len(last.grid.rows), 1) - 0.5, -1.2 if size.pinned else -0.5],
        tickvals=[y for y, _ in labels],
        ticktext=[f"{text} " for _, text in labels],
    )


def _row_labels(panel, size):
    """(position, text) of each label: completions, or only prompts where rows are thin."""
    rows = panel.grid.rows
    if not size.several:
        return [(y, str(g)) for y, (_, g) in zip(panel.y.tolist(), rows.tolist(), strict=True)]
    if size.row >= 13:
        names = [f"{p}·{g}" for p, g in rows.tolist()]
        return list(zip(panel.y.tolist(), names, strict=True))
    labels, free = [], -np.inf
    for p in np.unique(rows[:, 0]).tolist():
        y = float(panel.y[rows[:, 0] == p].mean())
        if y >= free:
            labels.append((y, str(p)))
            free = y + 13 / size.row
    return labels


def _separators(panels, size, palette):
    """A thin line between prompts."""
    if not size.several:
        return []
    line = {"color": palette.faint, "width": 1 if size.row >= 6 else 0.5}
    return [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}
        for panel in panels
        for y in (panel.y[1:][np.diff(panel.grid.rows[:, 0]) != 0] - 0.5).tolist()
    ]


def _outline(grid, selected, palette):
    """Two rectangles around the selected token, light on dark, to be seen on every colour."""
    if selected is None:
        return []
    p, g, t = selected
    (rows,) = np.nonzero((grid.rows[:, 0] == p) & (grid.rows[:, 1] == g))
    column = t - grid.start
    if grid.reduced or not len(rows) or not 0 <= column < grid.values.shape[1]:
        return []
    y = int(rows[0])
    box = {"type": "rect", "x0": t - 0.5, "x1": t + 0.5, "y0": y - 0.5, "y1": y + 0.5}
    return [
        {**box, "line": {"color": palette.background, "width": 4}},
        {**box, "line": {"color": palette.text, "width": 2}},
    ]


def _panel_names(panels, palette):
    if len(panels) == 1:
        return []
    return [
        {
            "text": panel.name, "x": 0, "xref": "paper", "xanchor": "left", "showarrow": False,
            "y": panel.offset - 0.55, "yanchor": "bottom",
            "font": {"size": FONT_SIZE, "color": palette.text},
        }
        for panel in panels
    ]  # fmt: skip


def _nothing_note(grid, palette):
    """Why the picture is empty, where it is."""
    if not np.all(np.isnan(grid.values)):
        return []
    return [{
        "text": "no token counts here", "showarrow": False, "xref": "paper", "x": 0.5,
        "y": max(len(grid.rows) - 1, 0) / 2,
        "font": {"size": FONT_SIZE, "color": palette.faint},
    }]  # fmt: skip


def _heading(evaluation, row, titled, size, palette):
    is_advantage = row.key == "token_advantages"
    subtitle = advantage_unit(evaluation) if is_advantage else row.subtitle
    lines = (row.title, subtitle) if titled is True else titled
    return heading(*lines, palette=palette, left=size.margin[0] - 5)


def _describe(titled, row, panels):
    now = panels[0].grid
    inside = now.values[~np.isnan(now.values)]
    what = row.title.lower() if isinstance(titled, bool) else titled[0]
    text = f"Heatmap: {what} of {count(len(now.rows), 'completion')} by token position"
    if inside.size:
        low, high = float(np.min(inside)), float(np.max(inside))
        text += f", from {number(low, 3)} to {number(high, 3)}"
    if row.marks:
        text += f", {count(int(np.sum(now.marks)), 'clipped cell')}"
    return text + (f", with {panels[1].name} below" if len(panels) > 1 else "") + "."
