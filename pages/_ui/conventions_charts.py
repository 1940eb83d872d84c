"""Settings down, completions of one group across: a number in each cell."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .figure import FAR, FONT_SIZE, axis, figure, heading, largest, nice_ceiling
from .numbers import MINUS, MISSING, count, exact, number
from .palette import color_scale

_ROW = 30  # pixels
_LEFT = 148
# Up to how many completions numbers are written, with how many decimals, at what size.
_SIZES = ((4, 4, FONT_SIZE), (6, 3, FONT_SIZE - 1), (9, 2, FONT_SIZE - 2))
_MOST = 64  # completions drawn


@dataclass(frozen=True, kw_only=True)
class _Map:
    """What the map can show: a number of each `Row`, times a unit, and how it is written.

    Text on cells beyond the share ``strong`` of the scale is in the background's colour.
    """

    title: str
    subtitle: str
    noun: str
    write: Callable
    unit: float = 1.0
    signed: bool = True
    strong: float = 0.72


def _fixed(value, decimals):
    """Numbers of order 1 with the same number of decimals, so that they can be held together."""
    if 0.5 * 10.0**-decimals <= abs(value) < 1000:
        return f"{MINUS if value < 0 else ''}{abs(value):.{decimals}f}"
    return number(value, 2)


MAPS = {
    "advantages": _Map(
        title="Advantage",
        subtitle="of each completion, in each setting's own units",
        noun="advantage",
        write=_fixed,
    ),
    "weights": _Map(
        title="Weight of a token, %",
        subtitle="its share in the loss; 0 where it has left it",
        noun="weight in %",
        write=lambda value, decimals: number(value, min(decimals, 3)),
        unit=100.0,
        signed=False,
        strong=0.45,
    ),
}


def setting_map(rows, former, quantity, prompt, *, palette):
    """A heat table of one number for each setting and completion of a group.

    Parameters
    ----------
    rows : mapping of str to Row
    former : mapping of str to Row or None
        Cells that differ from it get a thin outline.
    quantity : str
        ``advantages`` or ``weights``.
    prompt : int
    palette : Palette

    Returns
    -------
    Figure
        Numbers are written up to nine completions; beyond, they are on hover.
    """
    kind = MAPS[quantity]
    table = _table(rows, quantity, prompt)
    R, G = table.shape
    top = nice_ceiling(largest(table))
    names, labels = [_short(row.label) for row in rows.values()], [r.label for r in rows.values()]
    traces = [_cells(table, labels, kind, top, palette)]
    traces += [
        _written(table, kind, decimals, size, top, palette)
        for most, decimals, size in _SIZES
        if most >= G
    ][:1]
    return figure(
        traces, palette=palette, height=_ROW * R + 42 + 46, margin=(_LEFT, 8, 42, 46),
        alt=_describe(labels, table, kind.noun, G),
        xaxis=axis("completion", palette=palette, range=[-0.5, G - 0.5],
                   **({"tickvals": list(range(G))} if G <= 16 else {"nticks": 14})),
        yaxis=axis("", palette=palette, range=[R - 0.5, -0.5], tickvals=list(range(R)),
                   ticktext=[f"{name} " for name in names]),
        annotations=heading(kind.title, kind.subtitle, palette=palette, left=_LEFT - 5),
        shapes=_outlines(table, former, rows, quantity, prompt, palette),
    )  # fmt: skip


def _table(rows, quantity, prompt):
    """Numbers to draw, a row a setting; finite, or NaN where there is none."""
    values = [getattr(row, quantity)[prompt, :_MOST] for row in rows.values()]
    return MAPS[quantity].unit * np.clip(np.array(values, dtype=np.float64), -FAR, FAR)


def _short(label):
    """A label that has room beside the cells."""
    text = label.replace(" (paper)", "")
    return text if len(text) <= 22 else f"{text[:21]}…"


def _cells(table, labels, kind, top, palette):
    hover = [
        [f"{label}<br>completion {g}: {kind.noun} {exact(value)}" for g, value in enumerate(line)]
        for label, line in zip(labels, table.tolist(), strict=True)
    ]
    return {
        "type": "heatmap", "name": kind.noun, "z": table, "x": list(range(table.shape[1])),
        "y": list(range(len(labels))), "zmin": -top if kind.signed else 0.0, "zmax": top,
        "colorscale": color_scale(palette.diverging if kind.signed else palette.sequential),
        "showscale": False, "xgap": 2, "ygap": 2, "hoverongaps": False, "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }  # fmt: skip


def _written(table, kind, decimals, size, top, palette):
    """The numbers in the cells, in the background's colour where a cell is saturated."""
    r, c = np.indices(table.shape).reshape(2, -1)
    flat = table.ravel()
    strong = np.abs(flat) > kind.strong * top
    texts = [MISSING if np.isnan(v) else kind.write(v, decimals) for v in flat.tolist()]
    return {
        "type": "scatter", "mode": "text", "name": "numbers", "x": c, "y": r, "text": texts,
        "textfont": {"size": size,
                     "color": np.where(strong, palette.background, palette.text).tolist()},
        "hoverinfo": "skip",
    }  # fmt: skip


def _outlines(table, former, rows, quantity, prompt, palette):
    """A thin outline around each cell that was otherwise before the last edit."""
    if former is None or former.keys() != rows.keys():
        return []
    earlier = _table(former, quantity, prompt)
    changed = ~np.isclose(table, earlier, rtol=1e-12, atol=0, equal_nan=True)
    line = {"color": palette.faint, "width": 1, "dash": "dot"}
    return [
        {"type": "rect", "x0": c - 0.5, "x1": c + 0.5, "y0": r - 0.5, "y1": r + 0.5, "line": line}
        for r, c in np.argwhere(changed).tolist()
    ]


def _describe(labels, table, noun, G):
    said = [
        f"{label} {', '.join(number(value) for value in line[:8])}"
        for label, line in zip(labels, table.tolist(), strict=True)
    ]
    more = f" (first 8 of {G})" if G > 8 else ""
    return f"{noun} of {count(G, 'completion')}{more} under each setting: {'; '.join(said)}."
