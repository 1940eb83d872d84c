"""What each component has in the spread of every group, as stacked bars."""

import numpy as np

from .bars import HEADER
from .figure import FAR, axis, figure, legend_above, nice_ceiling, unselected
from .numbers import percent
from .shaping_bars import SHOWN_NAMES, component_look, plain, short

_MOST = 96  # bars; the sentence beside them is about all


def share_bars(log, names, *, palette, selected=None):
    """What task and terms have of each group's spread, negative shares below 0.

    Parameters
    ----------
    log : grpo_core.shaping_log.ShapingLog
    names : sequence of str, (C,)
    palette : Palette
    selected : (int, int, int) or None
        Its prompt is marked.

    Returns
    -------
    Figure
        A bar for each prompt; of very many, for those around the selected one. A dot above
        one says that its task rewards are equal, a ring that nothing tells its completions
        apart.
    """
    shown = _shown(log.shares.shape[1], selected)
    shares = np.clip(log.shares[:, shown], -FAR, FAR)
    P = len(shown)
    up, down = (np.sum(np.where(shares * s > 0, np.abs(shares), 0), axis=0) for s in (1, -1))
    high, low = nice_ceiling(round(max(float(up.max()), 1.0), 9)), float(down.max())
    bottom = nice_ceiling(low) if low > 1e-9 else 0.0
    roof = high + 0.16 * (high + bottom)
    traces = [
        {
            "type": "bar", "name": short(name), "x": shown, "y": part, "width": 0.62,
            "marker": component_look(index, palette), "showlegend": index < SHOWN_NAMES,
            "customdata": [[p, 0, 0] for p in shown.tolist()],
            "hovertext": [f"{plain(name)}: {percent(value)}" for value in part.tolist()],
            "hovertemplate": "prompt %{customdata[0]}<br>%{hovertext}<extra></extra>",
            **unselected(opacity=1),
        }
        for index, (name, part) in enumerate(zip(names, shares, strict=True))
    ]  # fmt: skip
    marks = (
        ("task rewards equal", log.decided[shown], "circle", (high + roof) / 2),
        ("nothing differs", ~np.any(shares, axis=0), "circle-open", 0.05 * high),
    )
    traces += [_marks(*mark, shown, palette) for mark in marks if mark[1].any()]
    side = max(3 - P, 0)  # a few bars are no wider than they would be among six
    ticks = [0, high / 2, high]
    if 8 * bottom > high:  # else it would be written over the 0
        ticks.insert(0, -bottom)
    step = max(-(-P // 16), 1)
    return figure(
        traces,
        palette=palette,
        height=250,
        margin=(52, 12, HEADER, 46),
        alt=_describe_shares(log, names),
        barmode="relative",
        xaxis=axis(
            "prompt" if log.shares.shape[1] == P else f"prompt ({P} of {log.shares.shape[1]:,})",
            palette=palette, range=[shown[0] - 0.6 - side, shown[-1] + 0.6 + side],
            tickvals=shown[::step].tolist(),
        ),
        yaxis=axis("share of the spread", palette=palette, range=[-bottom, roof],
                   tickvals=ticks, ticktext=[percent(tick) for tick in ticks], zeroline=True,
                   zerolinecolor=palette.neutral, zerolinewidth=1),
        shapes=_column_band(selected, palette),
        **legend_above(palette),
    )  # fmt: skip


def _shown(P, selected):
    """Prompts that are drawn: all, or those around the selected one."""
    first = min(max((selected[0] if selected else 0) - _MOST // 2, 0), max(P - _MOST, 0))
    return np.arange(first, min(first + _MOST, P))


def _marks(name, which, symbol, height, shown, palette):
    at = shown[which]
    marker = {"symbol": symbol, "size": 9, "color": palette.text, "line": {"width": 1.5}}
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": at, "y": np.full(len(at), height),
        "marker": marker, "hovertext": [f"prompt {p}: {name}" for p in at.tolist()],
        "hovertemplate": "%{hovertext}<extra></extra>", **unselected(opacity=1),
    }  # fmt: skip


def _column_band(selected, palette):
    if selected is None:
        return []
    p = selected[0]
    return [{
        "type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": p - 0.46, "x1": p + 0.46,
        "fillcolor": palette.panel, "line": {"color": palette.line, "width": 1}, "layer": "below",
    }]  # fmt: skip


def _describe_shares(log, names):
    said = [
        f"prompt {p} "
        + ", ".join(f"{name} {percent(s)}" for name, s in zip(names, log.shares[:, p], strict=True))
        + (" (task rewards equal)" if log.decided[p] else "")
        for p in range(min(log.shares.shape[1], 12))
    ]
    return f"Bars: share of each group's spread: {'; '.join(said)}."
