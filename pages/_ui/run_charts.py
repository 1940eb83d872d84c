"""Pictures of a run against the training step: panels that share the axis of steps."""

import functools
import itertools
from dataclasses import replace

import numpy as np

from .figure import FONT_SIZE, axis, figure, unselected
from .numbers import count, exact, number
from .palette import PALETTES
from .run_chart_panels import (
    LINE,
    key_trace,
    legend_keys,
    legend_place,
    line_traces,
    thinned,
    title_and_legend_rows,
    title_note,
    value_axis,
    value_range,
    window_of,
    with_other,
)
from .run_chart_rows import STEP_CHARTS, label, looks_of
from .run_group_charts import agreement_chart, group_chart, residue_chart

_OVERVIEW = ("reward", "task", "shares", "tied")
_LEFT, _RIGHT, _BOTTOM = 56, 14, 44
_TURNS = 2  # that are marked
_SAID = 14  # lines that the alt text tells of


def step_chart(key, shown, palette, other=None, step=None):
    """One picture against the training step.

    Parameters
    ----------
    key : str
        Of `STEP_CHARTS`.
    shown : Explained
    palette : Palette
    other : Explained or None
        Drawn thin and dashed.
    step : int or None
        Marked with a thin line.

    Returns
    -------
    Figure or None
        None where neither run has anything to draw; `why_missing` says why. The invisible
        trace ``steps`` returns ``customdata``: the step, for each scored step.
    """
    panels = _merged((key,), shown, palette, other)
    heights = [210 if len(panels) == 1 else 92] * len(panels)
    title = STEP_CHARTS[key].title
    return _stacked(panels, heights, shown, palette, other, step, title, exact) if panels else None


def steps_overview(shown, palette, other=None, step=None):
    """The whole run at a glance: reward, task, shares of the terms, tied groups.

    Parameters and the trace for clicks are those of `step_chart`. A single term has no share to
    show, and where it is the task it is drawn once.

    Returns
    -------
    Figure
        The hover tells of all panels at once, five digits a value.
    """
    runs = [run for run in (shown, other) if run is not None]
    alone = all(len(run.run.names) == 1 for run in runs)
    same = alone and all(run.task in run.run.names for run in runs)
    dropped = {"reward", "shares"} if same else {"shares"} if alone else set()
    keys = [key for key in _OVERVIEW if key not in dropped]
    panels = _merged(keys, shown, palette, other)
    heights = [124 if panel.key == "shares" else 88 for panel in panels]
    short = functools.partial(number, digits=5)
    return _stacked(panels, heights, shown, palette, other, step, "The run by step", short)


def why_missing(key, shown):
    """Why a picture of a run alone is not there, a sentence; '' where it is there.

    Parameters
    ----------
    key : str
        Of `STEP_CHARTS`.
    shown : Explained
    """
    row = STEP_CHARTS[key]
    return "" if row.panels(shown, looks_of(PALETTES["light"], shown)) else row.missing


def _merged(keys, shown, palette, other):
    """Panels with the lines of both runs; those that only the other one has come last."""
    runs = [shown] if other is None else [shown, other]
    looks = looks_of(palette, *runs)
    first, *more = (
        {panel.key: panel for key in keys for panel in STEP_CHARTS[key].panels(run, looks)}
        for run in runs
    )
    theirs = more[0] if more else {}
    lone = [replace(panel, lines=()) for key, panel in theirs.items() if key not in first]
    return [
        with_other(panel, theirs.get(panel.key), other, palette)
        for panel in (*first.values(), *lone)
    ]


def _stacked(panels, heights, shown, palette, other, step, title, written):
    """All panels above each other with one axis of steps."""
    runs = [] if other is None else [label(shown.name), label(other.name)]
    full = len(panels) == 1
    keys = [
        legend_keys(panel, [] if at else runs, palette, full) for at, panel in enumerate(panels)
    ]
    rows = [title_and_legend_rows(*pair) for pair in zip(panels, keys, strict=True)]
    heads = [(6 if at == 0 else 12) + LINE * lines for at, (_, lines) in enumerate(rows)]
    plot = sum(heights) + sum(heads[1:])
    traces, notes, layout, shapes, window = [], [], {}, [], window_of(panels)
    for at, (bottom, top) in enumerate(_domains(heads, heights, plot)):
        panel, suffix, (beside, lines) = panels[at], "" if at == 0 else str(at + 1), rows[at]
        traces += [
            trace for line in panel.lines for trace in line_traces(line, suffix, written, window)
        ]
        traces += [key_trace(*key, suffix) for key in keys[at]]
        notes.append(title_note(panel, top, _LEFT, 1 if beside else lines, palette))
        layout["yaxis" + suffix] = value_axis(panel, bottom, top, palette)
        layout["legend" + suffix] = legend_place(top, plot, lines, beside, palette)
        shapes += _marks(shown, step, bottom, top, palette)
    low, high = _step_range(panels)
    layout["xaxis"] = _step_axis(low, high, window, palette, anchor="y" + suffix)
    return figure(
        [*traces, _steps_trace(shown, panels[0])], palette=palette,
        height=heads[0] + plot + _BOTTOM, margin=(_LEFT, _RIGHT, heads[0], _BOTTOM),
        alt=_describe(panels, shown, other, title), shapes=shapes, showlegend=True,
        annotations=[*notes, *_turn_names(shown, low, high, palette)],
        hovermode="x unified", hoversubplots="axis", **layout,
    )  # fmt: skip


def _domains(heads, heights, plot):
    """Part of the height that each panel has, from the top: (bottom, top)."""
    tops = itertools.accumulate(
        (height + head for height, head in zip(heights[:-1], heads[1:], strict=True)), initial=0
    )
    for top, height in zip(tops, heights, strict=True):
        yield max(1 - (top + height) / plot, 0.0), 1 - top / plot


def _step_range(panels):
    """Ends of the axis of steps, a little beyond the first and the last one."""
    ends = [end for panel in panels for line in panel.lines for end in line.x[[0, -1]].tolist()]
    low, high = min(ends), max(ends)
    room = max(0.012 * (high - low), 0.5, 1e-6 * max(abs(low), abs(high)))
    return low - room, high + room


def _step_axis(low, high, window, palette, **more):
    """The axis of steps; it says what a strong line is where single steps are too many."""
    strong = f" (strong line: mean of {window:,})" if window > 1 else ""
    ticks = {"tick0": 0, "dtick": 1} if high - low < 7 else {"nticks": 7}
    return axis(
        f"training step{strong}", palette=palette, range=[low, high], tickangle=0, tickformat="d",
        unifiedhovertitle={"text": "step %{x}"}, hoverformat="d", **ticks, **more,
    )  # fmt: skip


def _marks(shown, step, bottom, top, palette):
    """The foot of a panel, the turns and the selected step."""
    base = {"type": "line", "xref": "x", "yref": "paper", "y0": bottom, "y1": top}
    foot = {**base, "xref": "paper", "x0": 0, "x1": 1, "y1": bottom,
            "line": {"color": palette.line, "width": 1}}  # fmt: skip
    turns = [
        {**base, "x0": turn.step, "x1": turn.step,
         "line": {"color": palette.negative, "width": 1.5, "dash": "dash"}}
        for turn in shown.turns[:_TURNS]
    ]  # fmt: skip
    chosen = {**base, "x0": step, "x1": step, "line": {"color": palette.text, "width": 1}}
    return [foot, *turns, *([] if step is None else [chosen])]


def _turn_names(shown, low, high, palette):
    """The step of each turn beside its line, on the side where there is room."""
    return [
        {
            "text": f"step {turn.step}", "x": turn.step, "yref": "paper", "y": 1 - 0.03 * at,
            "yanchor": "top", "xanchor": "right" if turn.step > (low + high) / 2 else "left",
            "showarrow": False, "bgcolor": palette.background, "borderpad": 1,
            "font": {"size": FONT_SIZE, "color": palette.negative},
        }
        for at, turn in enumerate(shown.turns[:_TURNS])
    ]  # fmt: skip


def _steps_trace(shown, panel):
    """Invisible points, so that a click returns the nearest scored step."""
    steps = shown.series.steps[thinned(shown.series.reward)]
    low, high = value_range(panel)
    return {
        "type": "scatter", "mode": "markers", "name": "steps", "x": steps,
        "y": np.full(len(steps), low / 2 + high / 2), "customdata": steps[:, None].tolist(),
        "hoverinfo": "none", "showlegend": False, "marker": {"size": 14, "opacity": 0},
        **unselected(opacity=0),
    }  # fmt: skip


def _describe(panels, shown, other, title):
    """First and last value of every line, the turns, and what is not drawn."""
    series = shown.series
    first, last = series.steps[[0, -1]].tolist()
    said = [
        f"{line.said} from {number(known[0], 3)} to {number(known[-1], 3)}"
        for panel in panels
        for line in panel.lines
        if len(known := line.y[np.isfinite(line.y)].tolist())
    ]
    more = [f"{len(said) - _SAID:,} more lines"] if len(said) > _SAID else []
    beside = "" if other is None else f" beside {label(other.name)}"
    text = (
        f"{title} of {label(shown.name)}{beside}: lines over "
        f"{count(len(series.steps), 'scored step')} from {first} to {last}; "
        f"{'; '.join([*said[:_SAID], *more])}."
    )
    text += "".join(
        f" {label(shown.run.names[turn.term])} takes over at step {turn.step}."
        for turn in shown.turns[:_TURNS]
    )
    return text + "".join(f" {panel.omitted}." for panel in panels if panel.omitted)


__all__ = [
    "STEP_CHARTS",
    "agreement_chart",
    "group_chart",
    "residue_chart",
    "step_chart",
    "steps_overview",
    "why_missing",
]
