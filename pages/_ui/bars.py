"""Bars of one group: its advantages, and what other formulas would make of it."""

import numpy as np

from .figure import (
    CLEAR,
    FONT_SIZE,
    axis,
    figure,
    largest,
    legend_above,
    legend_bars,
    nice_ceiling,
    unselected,
)
from .numbers import count, exact, number
from .quantities import advantage_title, present

ROW = 32.8  # pixels per completion: a row of the table beside the bars, at 15 px type
HEADER = 34  # that table's header


def advantage_bars(evaluation, prompt, *, palette, former=None, pinned=None, selected=None):
    """One horizontal bar per completion of a group, its advantage written at the end.

    Parameters
    ----------
    evaluation : Evaluation
    prompt : int
    palette : Palette
    former : Evaluation or None
        Drawn as thin outlines where it differs.
    pinned : Evaluation or None
        Drawn as hatched bars, A, below each bar.
    selected : (int, int, int) or None
        Its completion is marked.

    Returns
    -------
    Figure
        Rows are as high as those of a table beside it, up to twelve completions.
    """
    now, there, scored = _group(evaluation, prompt)
    before, after = _same_group(former, prompt, now), _same_group(pinned, prompt, now)
    if before is not None and np.array_equal(before, now):
        before = None
    top = nice_ceiling(1.3 * largest(now, before, after), floor=_floor(evaluation))
    y = np.flatnonzero(there)
    width = 0.28 if after is not None else 0.56
    shift = 0.16 if after is not None else 0.0
    cells = [[prompt, g, selected[2] if selected else 0] for g in y.tolist()]
    traces = [_bars(now, y, y - shift, width, top, cells, palette)]
    if after is not None:
        traces.append(_pinned_bars(after, y, y + shift, width, top, cells, palette))
    if before is not None:
        traces.append(_ghost_bars(before, y, y - shift, width + 0.1, top, palette))
    traces.append(_bar_labels(now, before, scored, y, y - shift, top, palette))
    G = len(now)
    row = ROW if G <= 12 else max(420 / G, 4)
    return figure(
        [*traces, *_keys(before is not None, after is not None, palette)],
        palette=palette,
        height=round(row * G) + HEADER + 46,
        margin=(46, 12, HEADER, 46),
        alt=_describe_bars(prompt, now, there, scored),
        barmode="overlay",
        xaxis=axis(
            advantage_title(evaluation), palette=palette, range=[-top, top], zeroline=True,
            zerolinecolor=palette.neutral, zerolinewidth=1,
            tickvals=[-top, -top / 2, 0, top / 2, top],
            ticktext=[number(tick, 3) for tick in (-top, -top / 2, 0, top / 2, top)],
        ),
        yaxis=completion_axis(G, row, palette),
        shapes=row_band(prompt, selected, palette),
        annotations=_tied_note(evaluation, prompt, palette),
        **legend_above(palette),
    )  # fmt: skip


def _group(evaluation, prompt):
    """Advantages, present, scored of one prompt; each (G,)."""
    return evaluation.advantages[prompt], present(evaluation)[prompt], evaluation.scored[prompt]


def _same_group(other, prompt, now):
    """Another state's advantages of the prompt, or None if it has no such group."""
    if other is None or prompt >= len(other.advantages):
        return None
    advantages = other.advantages[prompt]
    return advantages if advantages.shape == now.shape else None


def _floor(evaluation):
    """Smallest axis end: two standard deviations, where that is the unit."""
    return 2.0 if "standard deviations" in advantage_title(evaluation) else 0.0


def _drawn(values, top):
    """Bar ends. Only an infinite value is cut: it ends beyond all others, before the edge."""
    return np.clip(values.astype(np.float64), -0.8 * top, 0.8 * top)


def _bars(now, y, at, width, top, cells, palette):
    return {
        "type": "bar", "orientation": "h", "name": "now", "showlegend": False,
        "x": _drawn(now[y], top), "y": at, "width": width, "customdata": cells,
        "hovertext": [exact(value) for value in now[y].tolist()],
        "hovertemplate": "completion %{customdata[1]}<br>advantage %{hovertext}<extra></extra>",
        "marker": {"color": [palette.of_sign(value) for value in now[y].tolist()],
                   "line": {"width": 0}},
        **unselected(opacity=1),
    }  # fmt: skip


def _pinned_bars(after, y, at, width, top, cells, palette):
    colors = [palette.of_sign(value) for value in after[y].tolist()]
    return {
        "type": "bar", "orientation": "h", "name": "A (pinned)", "showlegend": False,
        "x": _drawn(after[y], top),
        "y": at, "width": width, "customdata": cells,
        "hovertext": [exact(value) for value in after[y].tolist()],
        "hovertemplate": "completion %{customdata[1]}<br>A: advantage %{hovertext}<extra></extra>",
        "marker": {
            "color": CLEAR, "line": {"color": colors, "width": 1.25},
            "pattern": {"shape": "/", "size": 5, "solidity": 0.25, "fgcolor": colors,
                        "bgcolor": CLEAR},
        },
        **unselected(opacity=1),
    }  # fmt: skip


def _ghost_bars(before, y, at, width, top, palette):
    return {
        "type": "bar", "orientation": "h", "name": "before", "showlegend": False,
        "x": _drawn(before[y], top),
        "y": at, "width": width, "hoverinfo": "skip",
        "marker": {"color": CLEAR, "line": {"color": palette.faint, "width": 1}},
        **unselected(opacity=1),
    }  # fmt: skip


def _bar_labels(now, before, scored, y, at, top, palette):
    """Values beyond the end of the bar and of its ghost, whichever is longer on that side."""
    ends, texts = [], []
    for g in y.tolist():
        value, earlier = now[g], 0.0 if before is None else before[g]
        same_side = np.sign(earlier) == np.sign(value)
        end = max(abs(value), abs(earlier)) if same_side else abs(value)
        ends.append(-end if value < 0 else end)
        texts.append(number(value, 3, signed=True) if scored[g] or value else "no score")
    return {
        "type": "scatter", "mode": "text", "name": "values", "showlegend": False,
        "x": _drawn(np.array(ends), top), "y": at,
        "text": [f" {text} " for text in texts],
        "textposition": ["middle left" if end < 0 else "middle right" for end in ends],
        "textfont": {"size": FONT_SIZE, "color": [
            palette.text if scored[g] else palette.faint for g in y.tolist()
        ]},
        "cliponaxis": False, "hoverinfo": "skip",
    }  # fmt: skip


def _keys(ghost, pinned, palette):
    """Legend entries in no sign's colour; none where only the present state is shown."""
    line = {"color": palette.faint, "width": 1}
    looks = [("now", {"color": palette.faint})]
    looks += [("before", {"color": CLEAR, "line": line})] if ghost else []
    hatch = {"shape": "/", "size": 5, "solidity": 0.25, "fgcolor": palette.faint, "bgcolor": CLEAR}
    looks += [("A (pinned)", {"color": CLEAR, "line": line, "pattern": hatch})] if pinned else []
    return legend_bars(looks)


def completion_axis(G, row, palette):
    """The axis that numbers completions downwards, as densely as rows of `row` pixels allow."""
    step = max(round(14 / row + 0.49), 1)
    ticks = list(range(0, G, step))
    return axis("completion", palette=palette, range=[G - 0.5, -0.5], tickvals=ticks,
                ticktext=[f"{tick} " for tick in ticks])  # fmt: skip


def row_band(prompt, selected, palette):
    """A band behind the selected completion, if it is one of this prompt."""
    if selected is None or selected[0] != prompt:
        return []
    g = selected[1]
    return [{
        "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": g - 0.46, "y1": g + 0.46,
        "fillcolor": palette.panel, "line": {"color": palette.line, "width": 1}, "layer": "below",
    }]  # fmt: skip


def _tied_note(evaluation, prompt, palette):
    if not evaluation.tied[prompt] or np.any(evaluation.advantages[prompt]):
        return []
    return [{
        "text": "all scores are equal: every advantage is 0", "showarrow": False,
        "x": 0, "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper", "yanchor": "bottom",
        "font": {"size": FONT_SIZE, "color": palette.faint},
    }]  # fmt: skip


def _describe_bars(prompt, now, there, scored):
    parts = [
        f"completion {g} {number(now[g], 3) if scored[g] else 'no score'}"
        for g in np.flatnonzero(there)[:16].tolist()
    ]
    rest = int(np.sum(there)) - len(parts)
    more = f", and {count(rest, 'more completion')}" if rest else ""
    return f"Bars: advantages in prompt {prompt}: {', '.join(parts)}{more}."


def formula_bars(comparison, *, palette, title="advantage"):
    """The same group under several formulas: bars side by side for each completion.

    Parameters
    ----------
    comparison : mapping of str to sequence of float
        Advantages of the completions under each formula's name.
    title : str
        Axis title with the unit.
    """
    values = {name: np.asarray(column, dtype=np.float64) for name, column in comparison.items()}
    G = max((len(column) for column in values.values()), default=0)
    top = nice_ceiling(1.3 * largest(*values.values()))
    width = 0.76 / max(len(values), 1)
    colors = palette.categories[2:]  # the first two mean positive and negative
    traces = [
        {
            "type": "bar", "orientation": "h", "name": name, "x": _drawn(column, top),
            "y": np.arange(len(column)) + (index - (len(values) - 1) / 2) * width,
            "width": 0.9 * width, "showlegend": True,
            "text": [number(value, 3, signed=True) for value in column.tolist()],
            "textposition": "outside", "cliponaxis": False,
            "textfont": {"size": FONT_SIZE - 1, "color": palette.text},
            "customdata": [exact(value) for value in column.tolist()],
            "hovertemplate": f"{name}<br>advantage %{{customdata}}<extra></extra>",
            "marker": {"color": colors[index % len(colors)],
                       "line": {"width": 0}},
        }
        for index, (name, column) in enumerate(values.items())
    ]  # fmt: skip
    row = min(max(15 * len(values) + 8, ROW), 480 / max(G, 1))
    return figure(
        traces,
        palette=palette,
        height=round(row * G) + HEADER + 46,
        margin=(46, 12, HEADER, 46),
        alt=f"Bars: advantages of {count(G, 'completion')} under {', '.join(values)}.",
        barmode="overlay",
        xaxis=axis(title, palette=palette, range=[-top, top], nticks=7, zeroline=True,
                   zerolinecolor=palette.neutral, zerolinewidth=1),
        yaxis=completion_axis(G, row, palette),
        **legend_above(palette),
    )  # fmt: skip
