"""Settings down, completions of one group across: a number in each cell."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .conventions_words import SPOILT
from .figure import FAR, FONT_SIZE, axis, figure, heading, largest, nice_ceiling
from .numbers import MINUS, MISSING, count, exact, number
from .palette import color_scale
from .settled import settled

_ROW = 30  # pixels
_LEFT = 148
# Up to how many completions numbers are written, with how many decimals, at what size.
_SIZES = ((4, 4, FONT_SIZE), (6, 3, FONT_SIZE - 1), (9, 2, FONT_SIZE - 2))
_MOST = 64  # completions drawn
_BECOMES_NAN = "→ NaN"


@dataclass(frozen=True, kw_only=True)
class _Map:
    """What the map can show: a number of each `Row`, times a unit, and how it is written.

    Text on cells beyond the share ``strong`` of the scale is in the background's colour. What
    is ``of_scores`` is no number where a trainer makes NaN of a missing one.
    """

    title: str
    subtitle: str
    noun: str
    write: Callable
    unit: float = 1.0
    signed: bool = True
    strong: float = 0.72
    of_scores: bool = False


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
        of_scores=True,
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
    spoilt = np.array([kind.of_scores & row.spoilt[prompt, :_MOST] for row in rows.values()])
    R, G = table.shape
    top = nice_ceiling(largest(_held(table)))
    names, labels = [_short(row.label) for row in rows.values()], [r.label for r in rows.values()]
    traces = [_cells(table, spoilt, labels, kind, top, palette)]
    traces += [
        _written(table, spoilt, kind, decimals, size, top, palette)
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
    """Numbers to show, a row a setting; NaN where there is none."""
    values = np.array([_of(row, quantity)[prompt, :_MOST] for row in rows.values()])
    with np.errstate(over="ignore"):
        return MAPS[quantity].unit * values.astype(np.float64)


def _of(row, quantity):
    return np.where(MAPS[quantity].of_scores & row.spoilt, np.nan, getattr(row, quantity))


def _held(table):
    """Numbers that a picture can be drawn of."""
    return np.clip(table, -FAR, FAR)


def _short(label):
    """A label that has room beside the cells."""
    text = label.replace(" (paper)", "")
    return text if len(text) <= 22 else f"{text[:21]}…"


def _cells(table, spoilt, labels, kind, top, palette):
    hover = [
        [
            f"{label}<br>completion {g}: {SPOILT if lost else f'{kind.noun} {exact(value)}'}"
            for g, (value, lost) in enumerate(zip(line, missing, strict=True))
        ]
        for label, line, missing in zip(labels, table.tolist(), spoilt.tolist(), strict=True)
    ]
    return {
        "type": "heatmap", "name": kind.noun, "z": _held(table), "x": list(range(table.shape[1])),
        "y": list(range(len(labels))), "zmin": -top if kind.signed else 0.0, "zmax": top,
        "colorscale": color_scale(palette.diverging if kind.signed else palette.sequential),
        "showscale": False, "xgap": 2, "ygap": 2, "hoverongaps": False, "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }  # fmt: skip


def _written(table, spoilt, kind, decimals, size, top, palette):
    """The numbers in the cells, in the background's colour where a cell is saturated."""
    r, c = np.indices(table.shape).reshape(2, -1)
    with np.errstate(over="ignore"):
        magnitudes = np.nansum(np.abs(table), axis=1, keepdims=True)
    flat, lost = settled(table, magnitudes).ravel(), spoilt.ravel().tolist()
    strong = np.abs(flat) > kind.strong * top
    texts = [
        _BECOMES_NAN if spoilt_here else MISSING if np.isnan(v) else kind.write(v, decimals)
        for v, spoilt_here in zip(flat.tolist(), lost, strict=True)
    ]
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
    earlier = _held(_table(former, quantity, prompt))
    changed = ~np.isclose(_held(table), earlier, rtol=1e-12, atol=0, equal_nan=True)
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
