"""The waterfall: how contributions of completions add up to the objective."""

import numpy as np

from .account import Account, account_rows
from .bars import HEADER, ROW
from .cell_traces import CELLS
from .figure import CLEAR, FONT_SIZE, axis, figure, legend_bars, nice_ceiling, tick_step, unselected
from .ledger import column
from .numbers import count, exact, number

_TALL = 430  # pixels for all rows, once they are more than a table beside them has
_GAP = 0.25  # rows between the last bar and the sum


def waterfall(evaluation, prompt, *, palette, former=None, pinned=None, selected=None):
    """Bars that add up to the objective, each beginning where the one above ends.

    Parameters
    ----------
    evaluation : Evaluation
    prompt : int
        Its completions have a bar each; other prompts have one as a whole.
    palette : Palette
    former, pinned : Evaluation or None
        Drawn as thin outlines where it differs, and as hatched bars, A.
    selected : (int, int, int) or None
        Its completion is marked.

    Returns
    -------
    Figure
        Solid bars are policy parts; dotted ones below them, the KL parts, go on from there.
        The trace ``sums`` holds the running sum after each row, the last of them the
        objective to the last bit. The trace ``cells`` takes clicks and says the values in full.
    """
    rows = account_rows(evaluation, prompt)
    now = Account(evaluation, rows)
    before = None if former is None else Account(former, rows)
    after = None if pinned is None else Account(pinned, rows)
    if before is not None and np.array_equal(before.sums, now.sums):
        before = None
    accounts = [account for account in (now, before, after) if account is not None]
    low, high = _range(accounts)
    row = ROW if len(rows) <= 12 else max(min(ROW, _TALL / (len(rows) + 1)), 5)
    lanes = _Lanes(now, after)
    traces = [
        *_ghost(before, lanes, palette),
        _connectors(now, lanes, palette),
        *_parts(now, lanes, palette),
        *_open_ends(now, palette),
        *_pinned(after, lanes, palette),
        _click_area(now, rows, selected, low, high),
        *_keys(lanes, before, after, palette),
    ]
    left = 46 if all(r.single for r in rows) else 66
    return figure(
        traces,
        palette=palette,
        height=round(row * (len(rows) + 1 + _GAP)) + HEADER + 46,
        margin=(left, 84, HEADER, 46),
        alt=_describe(now, rows),
        barmode="overlay",
        xaxis=_sum_axis(low, high, palette),
        yaxis=_row_axis(rows, row, palette),
        shapes=[*_sum_line(rows, palette), *_row_band(rows, selected, palette)],
        annotations=_values(now, rows, row, palette),
        **_legend(palette),
    )


class _Lanes:
    """Where in a row, and how thick, each kind of bar lies; y grows downwards."""

    def __init__(self, now, after):
        self.kl_shown = bool(np.any(now.kl)) or (after is not None and bool(np.any(after.kl)))
        self.pinned = after is not None
        self.policy = (-0.12, 0.4) if self.kl_shown else (0.0, 0.56)
        self.kl = (0.2, 0.2)
        self.after = (0.36, 0.18)
        if self.pinned:
            self.policy = (-0.22, 0.32) if self.kl_shown else (-0.1, 0.44)
            self.kl = (0.06, 0.2)
        self.net = (0.0, 0.68)


def _range(accounts):
    ends = np.concatenate([np.concatenate([a.sums, a.turns]) for a in accounts])
    low, high = -float(np.min(ends, initial=0)), float(np.max(ends, initial=0))
    if not (low or high):
        return -1.0, 1.0
    low, high = (nice_ceiling(1.04 * end) if end else 0.0 for end in (low, high))
    room = 0.03 * max(low, high)
    return -max(low, room), max(high, room)


def _bar(name, values, base, y, lane, **style):
    at, width = lane
    return {
        "type": "bar", "orientation": "h", "name": name, "showlegend": False,
        "x": values, "base": base, "y": y + at, "width": width, "hoverinfo": "skip",
        "marker": style, **unselected(opacity=1),
    }  # fmt: skip


def _parts(now, lanes, palette):
    y = np.arange(len(now.both))
    traces = [
        _bar("policy part", now.drawn_policy, now.sums[:-1], y, lanes.policy,
             color=_signs(now.policy, palette), line={"width": 0}),
        _bar("objective", now.sums[-1:], np.zeros(1), np.array([len(y) + _GAP]), (0.0, 0.56),
             color=[palette.of_sign(now.objective)],
             line={"width": 1.5, "color": palette.text}),
    ]  # fmt: skip
    if lanes.kl_shown:
        colors = _signs(now.kl, palette)
        dots = _bar("KL part", now.drawn_kl, now.turns, y, lanes.kl, color=CLEAR,
                    line={"width": 1, "color": colors}, pattern=_pattern(".", colors))  # fmt: skip
        traces.insert(1, dots)
    return traces


def _open_ends(now, palette):
    """Arrows where a bar is drawn to an end that the value does not have."""
    values = np.append(now.both, now.objective)
    (at,) = np.nonzero(~np.isfinite(values))
    if not len(at):
        return []
    y = np.append(np.arange(len(now.both)), len(now.both) + _GAP)
    pointing = ["triangle-right" if up else "triangle-left" for up in values[at] > 0]
    return [{
        "type": "scatter", "mode": "markers", "name": "infinite", "showlegend": False,
        "x": np.append(now.sums[1:], now.sums[-1])[at], "y": y[at],
        "marker": {"symbol": pointing, "size": 12, "color": palette.text},
        "hoverinfo": "skip", "cliponaxis": False, **unselected(opacity=1),
    }]  # fmt: skip


def _signs(values, palette):
    return [palette.of_sign(value) for value in values.tolist()]


def _pattern(shape, colors):
    solidity = 0.45 if shape == "." else 0.25
    return {"shape": shape, "size": 5, "solidity": solidity, "fgcolor": colors, "bgcolor": CLEAR}


def _ghost(before, lanes, palette):
    """What each row added before the last edit, and the objective then, as outlines."""
    if before is None:
        return []
    y = np.append(np.arange(len(before.both)), len(before.both) + _GAP)
    return [_bar(
        "before", np.append(np.diff(before.sums), before.sums[-1]),
        np.append(before.sums[:-1], 0.0), y, lanes.net,
        color=CLEAR, line={"width": 1, "color": palette.faint},
    )]  # fmt: skip


def _pinned(after, lanes, palette):
    if after is None:
        return []
    y = np.append(np.arange(len(after.both)), len(after.both) + _GAP)
    steps = np.append(np.diff(after.sums), after.sums[-1])
    colors = _signs(steps, palette)
    return [_bar("A (pinned)", steps, np.append(after.sums[:-1], 0.0), y, lanes.after,
                 color=CLEAR, line={"width": 1.25, "color": colors},
                 pattern=_pattern("/", colors))]  # fmt: skip


def _connectors(now, lanes, palette):
    """The running sum, carried from each row down to the next."""
    middle, half = lanes.policy[0], lanes.policy[1] / 2
    n = len(now.both)
    y = np.append(np.arange(n), n + _GAP)
    gap = np.full(n, np.nan)
    return {
        "type": "scatter", "mode": "lines", "name": "sums", "showlegend": False,
        "x": np.stack([now.sums[1:], now.sums[1:], gap], axis=1).ravel(),
        "y": np.stack([y[:-1] + middle + half, y[1:] + middle - half, gap], axis=1).ravel(),
        "line": {"color": palette.faint, "width": 1}, "hoverinfo": "skip",
    }  # fmt: skip


def _click_area(now, rows, selected, low, high):
    """An invisible bar over each row: small contributions can be hovered and clicked too."""
    g, t = selected[1:] if selected else (0, 0)
    says = [
        f"{row.name}, {count(tokens, 'token')}<br>policy part {exact(policy)}"
        f"<br>KL part {exact(kl)}<br>contribution {exact(both)}<br>sum so far {exact(reached)}"
        for row, tokens, policy, kl, both, reached in zip(
            rows, now.tokens, now.policy.tolist(), now.kl.tolist(), now.both.tolist(),
            now.sums[1:].tolist(), strict=True)
    ]  # fmt: skip
    return {
        "type": "bar", "orientation": "h", "name": CELLS, "showlegend": False,
        "x": np.full(len(rows), high - low), "base": np.full(len(rows), low),
        "y": np.arange(len(rows)), "width": 1.0, "marker": {"color": CLEAR},
        "customdata": [[row.p, g if row.g is None else row.g, t] for row in rows],
        "hovertext": says, "hovertemplate": "%{hovertext}<extra></extra>",
        **unselected(opacity=1),
    }  # fmt: skip


def _keys(lanes, before, after, palette):
    """Legend entries in no sign's colour."""
    grey = palette.faint
    line = {"color": grey, "width": 1}
    looks = [("policy", {"color": grey})]
    if lanes.kl_shown:
        looks.append(("KL", {"color": CLEAR, "line": line, "pattern": _pattern(".", grey)}))
    if before is not None:
        looks.append(("before", {"color": CLEAR, "line": line}))
    if after is not None:
        looks.append(("A", {"color": CLEAR, "line": line, "pattern": _pattern("/", grey)}))
    return legend_bars(looks)


def _legend(palette):
    return {
        "showlegend": True,
        "legend": {
            "orientation": "h", "x": 0, "xref": "container", "xanchor": "left", "y": 1,
            "yref": "container",
            "yanchor": "top", "font": {"size": FONT_SIZE, "color": palette.faint},
            "itemclick": False, "itemdoubleclick": False, "bgcolor": CLEAR,
            "traceorder": "normal",
        },
    }  # fmt: skip


def _sum_axis(low, high, palette):
    step = tick_step(high - low, ticks=6)
    ticks = (step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)).tolist()
    return axis(
        "summed so far (unit of the advantage)", palette=palette, range=[low, high],
        zeroline=True, zerolinecolor=palette.neutral, zerolinewidth=1, tickvals=ticks,
        ticktext=[number(tick, 3) for tick in ticks],
    )  # fmt: skip


def _row_axis(rows, row, palette):
    step = max(round(14 / row + 0.49), 1)
    shown = [(y, r.label) for y, r in enumerate(rows) if y % step == 0]
    shown.append((len(rows) + _GAP, "<b>J</b>"))
    single = all(r.single for r in rows)
    return axis(
        "completion" if single else "", palette=palette, range=[len(rows) + 0.75, -0.5],
        tickvals=[y for y, _ in shown], ticktext=[f"{text} " for _, text in shown],
    )  # fmt: skip


def _values(now, rows, row, palette):
    """A column of numbers beside the bars, which add up as they stand there."""
    parts, whole = column(now.both.tolist(), now.objective)
    place = {"xref": "paper", "x": 1, "xanchor": "right", "xshift": 80, "showarrow": False,
             "yanchor": "middle"}  # fmt: skip
    texts = list(enumerate(parts)) if row >= 12 else []
    found = [
        {**place, "y": y, "text": text, "font": {"size": FONT_SIZE, "color": palette.text}}
        for y, text in texts
    ]
    found.append({**place, "y": len(rows) + _GAP, "text": f"<b>{whole}</b>",
                  "font": {"size": FONT_SIZE + 1, "color": palette.text}})  # fmt: skip
    found.append({**place, "y": 1, "yref": "paper", "yanchor": "bottom", "text": "contribution",
                  "font": {"size": FONT_SIZE - 1, "color": palette.faint}})  # fmt: skip
    return found


def _sum_line(rows, palette):
    y = len(rows) - 0.5 + _GAP / 2
    return [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y,
             "line": {"color": palette.neutral, "width": 1}}]  # fmt: skip


def _row_band(rows, selected, palette):
    at = [y for y, row in enumerate(rows) if selected and (row.p, row.g) == selected[:2]]
    return [
        {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": y - 0.48, "y1": y + 0.48,
         "fillcolor": palette.panel, "line": {"color": palette.line, "width": 1},
         "layer": "below"}
        for y in at
    ]  # fmt: skip


def _describe(now, rows):
    parts, whole = column(now.both.tolist(), now.objective)
    named = [f"{row.name} {text}" for row, text in zip(rows[:16], parts, strict=False)]
    rest = len(rows) - len(named)
    more = f", and {count(rest, 'more bar')}" if rest else ""
    return f"Waterfall: contributions to the objective: {', '.join(named)}{more}; sum {whole}."
