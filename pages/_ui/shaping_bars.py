"""What each component has in the advantages of a group, as stacked bars."""

import numpy as np

from .bars import HEADER, ROW, completion_axis, row_band
from .figure import (
    CLEAR,
    FAR,
    FONT_SIZE,
    axis,
    figure,
    largest,
    legend_above,
    nice_ceiling,
    unselected,
)
from .numbers import MISSING, count, exact, number
from .quantities import advantage_title, present

_HATCHES = ("", "/", "x", ".")
_ROUNDING = 1e-12  # of the largest part; what is smaller is drawn as nothing
SHOWN_NAMES = 6  # components that a legend has room for


def component_look(index, palette):
    """Marker of a component's bars: the task grey, terms in colours, hatched in later rounds."""
    if index == 0:
        return {"color": palette.neutral, "line": {"width": 0}}
    colors = palette.categories[2:5]  # the first two mean positive and negative
    color, turn = colors[(index - 1) % 3], (index - 1) // 3
    if not turn:
        return {"color": color, "line": {"width": 0}}
    shape = _HATCHES[1 + (turn - 1) % 3]
    pattern = {"shape": shape, "size": 5, "solidity": 0.35, "fgcolor": color, "bgcolor": CLEAR}
    return {"color": CLEAR, "line": {"color": color, "width": 1}, "pattern": pattern}


def part_bars(evaluation, prompt, *, palette, former=None, pinned=None, selected=None):
    """Each completion's advantage as a bar of parts: the task's, and one for each term.

    Parameters
    ----------
    evaluation : Evaluation
        With an attribution.
    prompt : int
    palette : Palette
    former, pinned : Evaluation or None
        Their advantages as thin outlines where they differ, and as diamonds, A.
    selected : (int, int, int) or None
        Its completion is marked.

    Returns
    -------
    Figure
        Parts of one sign are stacked from 0 on; a mark stands at the sum, which is written.
    """
    there, now = present(evaluation)[prompt], evaluation.advantages[prompt].astype(np.float64)
    parts = evaluation.attribution.parts[:, prompt]
    before, after = _other(former, prompt, now), _other(pinned, prompt, now)
    if before is not None and np.array_equal(before, now):
        before = None
    parts = np.where(np.abs(parts) <= _ROUNDING * largest(parts), 0.0, parts)
    drawn = np.clip(np.nan_to_num(parts), -FAR, FAR)
    up, down = (np.sum(np.where(drawn * s > 0, np.abs(drawn), 0), axis=0) for s in (1, -1))
    top = nice_ceiling(1.32 * largest(up, down, now, before, after), floor=0.1)
    y = np.flatnonzero(there)
    cells = [[prompt, g, selected[2] if selected else 0] for g in y.tolist()]
    names = evaluation.attribution.names
    G = len(now)
    row = ROW if G <= 12 else max(420 / G, 4)
    reach = np.where(now < 0, -down, up)
    return figure(
        [
            *_stack(names, drawn, y, cells, palette),
            *_ghost(before, y, palette),
            _sums(now, y, top, palette),
            *_pinned(after, y, palette),
            _written(now, evaluation.scored[prompt], reach, before, y, top, palette),
        ],
        palette=palette,
        height=round(row * G) + HEADER + 46,
        margin=(46, 12, HEADER, 46),
        alt=_describe_parts(evaluation, prompt, parts, y),
        barmode="relative",
        xaxis=axis(
            advantage_title(evaluation), palette=palette, range=[-top, top], zeroline=True,
            zerolinecolor=palette.neutral, zerolinewidth=1,
            tickvals=[-top, -top / 2, 0, top / 2, top],
            ticktext=[number(tick, 3) for tick in (-top, -top / 2, 0, top / 2, top)],
        ),
        yaxis=completion_axis(G, row, palette),
        shapes=row_band(prompt, selected, palette),
        **legend_above(palette),
    )  # fmt: skip


def _other(evaluation, prompt, now):
    if evaluation is None or prompt >= len(evaluation.advantages):
        return None
    advantages = evaluation.advantages[prompt].astype(np.float64)
    return advantages if advantages.shape == now.shape else None


def _stack(names, parts, y, cells, palette):
    return [
        {
            "type": "bar", "orientation": "h", "name": short(name), "x": part[y], "y": y,
            "width": 0.56, "customdata": cells, "marker": component_look(index, palette),
            "showlegend": index < SHOWN_NAMES,
            "hovertext": [f"{plain(name)}: {exact(value)}" for value in part[y].tolist()],
            "hovertemplate": "completion %{customdata[1]}<br>%{hovertext}<extra></extra>",
            **unselected(opacity=1),
        }
        for index, (name, part) in enumerate(zip(names, parts, strict=True))
    ]  # fmt: skip


def _ghost(before, y, palette):
    """The advantages before the last edit, an outline around each bar."""
    if before is None:
        return []
    ends = np.clip(before[y], -FAR, FAR)
    low, high, gap = np.minimum(ends, 0), np.maximum(ends, 0), np.full(len(y), np.nan)
    box = [low, high, high, low, low, gap], [y - 0.36, y - 0.36, y + 0.36, y + 0.36, y - 0.36, gap]
    return [{
        "type": "scatter", "mode": "lines", "name": "before", "hoverinfo": "skip",
        "x": np.stack(box[0], axis=1).ravel(), "y": np.stack(box[1], axis=1).ravel(),
        "line": {"color": palette.faint, "width": 1},
    }]  # fmt: skip


def _sums(now, y, top, palette):
    return {
        "type": "scatter", "mode": "markers", "name": "advantage", "hoverinfo": "skip",
        "showlegend": False,
        "x": np.clip(now[y], -top, top), "y": y, "cliponaxis": False,
        "marker": {"symbol": "line-ns-open", "size": 22, "color": palette.text,
                   "line": {"width": 2.5}},
        **unselected(opacity=1),
    }  # fmt: skip


def _pinned(after, y, palette):
    if after is None:
        return []
    marker = {"symbol": "diamond-open", "size": 9, "color": palette.text, "line": {"width": 1.25}}
    return [{
        "type": "scatter", "mode": "markers", "name": "A (pinned)", "hoverinfo": "skip",
        "x": np.clip(after[y], -FAR, FAR), "y": y, "marker": marker, **unselected(opacity=1),
    }]  # fmt: skip


def _written(now, scored, reach, before, y, top, palette):
    """Values beyond the end of the stack and of its ghost, on the side of the advantage."""
    ends = np.clip(reach, -0.78 * top, 0.78 * top)
    if before is not None:
        beyond = (np.sign(before) == np.sign(now)) & (np.abs(before) > np.abs(ends))
        ends = np.where(beyond, np.clip(before, -0.78 * top, 0.78 * top), ends)
    return {
        "type": "scatter", "mode": "text", "name": "values", "showlegend": False,
        "x": ends[y], "y": y, "hoverinfo": "skip", "cliponaxis": False,
        "text": [
            f"  {number(now[g], 3, signed=True) if scored[g] or now[g] else 'no score'}  "
            for g in y.tolist()
        ],
        "textposition": ["middle left" if now[g] < 0 else "middle right" for g in y.tolist()],
        "textfont": {"size": FONT_SIZE, "color": palette.text},
    }  # fmt: skip


def short(name):
    """A name that fits into a legend, never read as markup."""
    return plain(name if len(name) <= 16 else f"{name[:15]}…")


def plain(name):
    """A reader's name for a place where Plotly reads tags."""
    return name.replace("&", "&amp;").replace("<", "&lt;")


def _describe_parts(evaluation, prompt, parts, y):
    names = evaluation.attribution.names
    said = [
        f"completion {g} {number(evaluation.advantages[prompt, g], 3)} ("
        + ", ".join(f"{name} {number(part[g], 3)}" for name, part in zip(names, parts, strict=True))
        + ")"
        for g in y.tolist()[:12]
    ]
    rest = len(y) - len(said)
    more = f", and {count(rest, 'more completion')}" if rest else ""
    return f"Bars: advantages in prompt {prompt} by part: {', '.join(said) or MISSING}{more}."
