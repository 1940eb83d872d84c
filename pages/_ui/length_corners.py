"""A batch under the four combinations of std on and off and 1/length on and off."""

import numpy as np

from grpo_core.numerics import times

from .figure import CLEAR, FONT_SIZE, axis, figure, largest, nice_ceiling, tick_step, unselected
from .numbers import number, percent
from .quantities import present

MEASURES = {"token": "one token", "whole": "the whole answer"}
_PART = 13  # pixels of a bar from which on its number fits
_GAP = 50  # pixels between the upper and the lower pictures, for a title
_ORDER = ((True, True), (False, True), (True, False), (False, False))


def corner_chart(results, prompt, *, measure, palette, former=None):
    """Four small pictures: std on and off, 1/length on and off; the last is Dr. GRPO.

    Parameters
    ----------
    results : dict of str to grpo_core.recipes.RecipeResult
    prompt : int
        Its completions are drawn; shares are of the whole batch's update.
    measure : {'token', 'whole'}
    palette : Palette
    former : the same before the last edit, or None
    """
    corners = {r.recipe.corner: r for r in results.values() if r.recipe.corner is not None}
    before = (
        {}
        if former is None
        else {
            r.recipe.corner: shares(r, measure)[prompt] for r in former.values() if r.recipe.corner
        }
    )
    some = next(iter(corners.values())).evaluation
    (there,) = np.nonzero(present(some)[prompt])
    drawn = {key: shares(result, measure)[prompt, there] for key, result in corners.items()}
    top = nice_ceiling(1.6 * largest(*drawn.values()))
    row = min(max(30, _PART), 420 / max(len(there), 1))
    height = row * max(len(there), 1)
    share = height / (2 * height + _GAP)  # of the plot, for each line of pictures
    traces, axes, notes = [], {}, []
    for index, key in enumerate(_ORDER):
        name = "" if index == 0 else str(index + 1)
        ghost = before.get(key)
        if ghost is not None and len(ghost) > max(there, default=-1):
            traces.append(_corner_ghost(ghost[there], top, name, palette))
        traces.append(_corner_bars(drawn[key], there, prompt, name, palette))
        if row >= _PART:
            traces.append(_corner_numbers(drawn[key], name, palette))
        axes |= _corner_axes(index, name, top, there, some, prompt, row, share, palette)
        notes.append(_corner_title(index, corners[key], share, palette))
    return figure(
        traces, palette=palette, height=round(2 * height) + _GAP + 40 + 46, margin=(64, 8, 40, 46),
        alt=_describe_corners(corners, drawn, measure), barmode="overlay",
        annotations=notes, **axes,
    )  # fmt: skip


def shares(result, measure):
    """Signed share of the whole update that one token, or a whole answer, gets; (P, G)."""
    size = float(np.sum(np.abs(result.whole)))
    values = result.push if measure == "token" else result.whole
    return times(values, 1.0 / size) if size > 0 and np.isfinite(size) else np.zeros_like(values)


def _corner_bars(values, there, prompt, name, palette):
    return {
        "type": "bar", "orientation": "h", "x": values, "y": np.arange(len(there)), "width": 0.66,
        "xaxis": f"x{name}", "yaxis": f"y{name}",
        "customdata": [[prompt, g, 0] for g in there.tolist()],
        "hovertext": [f"{100 * value:.4g}%" for value in values.tolist()],
        "hovertemplate": "completion %{customdata[1]}: %{hovertext} of the update<extra></extra>",
        "marker": {"color": [palette.of_sign(value) for value in values.tolist()],
                   "line": {"width": 0}},
        **unselected(opacity=1),
    }  # fmt: skip


def _corner_ghost(values, top, name, palette):
    return {
        "type": "bar", "orientation": "h", "x": np.clip(values, -top, top),
        "y": np.arange(len(values)), "width": 0.86, "hoverinfo": "skip", "name": "before",
        "xaxis": f"x{name}", "yaxis": f"y{name}",
        "marker": {"color": CLEAR, "line": {"color": palette.faint, "width": 1}},
    }  # fmt: skip


def _corner_numbers(values, name, palette):
    return {
        "type": "scatter", "mode": "text", "x": values, "y": np.arange(len(values)),
        "xaxis": f"x{name}", "yaxis": f"y{name}", "hoverinfo": "skip", "cliponaxis": False,
        "text": [f" {percent(abs(value))} " if value else " 0 " for value in values.tolist()],
        "textposition": ["middle left" if value < 0 else "middle right"
                         for value in values.tolist()],
        "textfont": {"size": FONT_SIZE - 1, "color": palette.text},
    }  # fmt: skip


def _corner_axes(index, name, top, there, evaluation, prompt, row, share, palette):
    column, line = index % 2, index // 2
    lengths = evaluation.lengths[prompt, there].astype(int).tolist()
    step = max(round(13 / row + 0.49), 1)
    ticks = list(range(0, len(there), step))
    texts = [f"{there[tick]} ({lengths[tick]}) " for tick in ticks]
    tick = tick_step(2 * top, ticks=4)
    domain = [1 - share, 1] if line == 0 else [0, share]
    return {
        f"xaxis{name}": axis(
            "share of the update" if line else "", palette=palette, range=[-top, top],
            domain=[0, 0.485] if column == 0 else [0.515, 1], anchor=f"y{name}",
            tickformat=".2~%", tickvals=[-tick, 0, tick], zeroline=True,
            zerolinecolor=palette.neutral, zerolinewidth=1, showticklabels=bool(line),
        ),
        f"yaxis{name}": axis(
            "completion (tokens)" if column == 0 else "", palette=palette, domain=domain,
            range=[max(len(there), 1) - 0.45, -0.55], anchor=f"x{name}",
            showticklabels=column == 0, tickvals=ticks, ticktext=texts,
        ),
    }  # fmt: skip


def _corner_title(index, result, share, palette):
    std, by_length = result.recipe.corner
    said = f"{'std' if std else 'no std'}, {'1/length' if by_length else 'no 1/length'}"
    return {
        "text": f"<b>{result.recipe.label}</b><br>{said}", "x": 0 if index % 2 == 0 else 0.515,
        "xref": "paper", "xanchor": "left", "y": 1 if index < 2 else share, "yref": "paper",
        "yanchor": "bottom", "align": "left", "showarrow": False,
        "font": {"size": FONT_SIZE - 1, "color": palette.text},
    }  # fmt: skip


def _describe_corners(corners, drawn, measure):
    said = "; ".join(
        f"{corners[key].recipe.label} {', '.join(number(100 * v, 3) for v in values[:8].tolist())}"
        for key, values in drawn.items()
    )
    return f"Share of the update in percent that {MEASURES[measure]} gets: {said}."
