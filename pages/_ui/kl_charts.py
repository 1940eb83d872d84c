"""The KL estimators against d: value above, slope below, every token on the chosen curve."""

import numpy as np

from grpo_core.kl_curves import kl_curve
from grpo_core.numerics import FLOAT32_LOG_MAX
from grpo_core.stages import STAGES

from .figure import CLEAR, FONT_SIZE, axis, figure, heading, largest, nice_ceiling, unselected
from .kl_scales import EDGE, ROOM, Panel, Tokens
from .numbers import count, exact, number

_POINTS = 401
_TAIL_FROM = 30.0  # a value this large flattens all others on a linear axis


def needs_tail(evaluation):
    """True if a token's KL is so large that a linear axis shows the others as 0."""
    return largest(np.where(evaluation.valid, evaluation.kl, 0)) > _TAIL_FROM


def kl_curves(evaluation, *, palette, former=None, pinned=None, selected=None, tail=False):
    """Value and slope of every KL row against d, the batch's tokens on the chosen one.

    Parameters
    ----------
    evaluation : Evaluation
    palette : Palette
    former : Evaluation or None
        Tokens that moved are drawn as thin rings where they were.
    pinned : Evaluation or None
        Its tokens are drawn as diamonds, A.
    selected : (int, int, int) or None
        Its token is ringed; other prompts' tokens are paler.
    tail : bool
        Draw the vertical axes as ``sign(y) log10(1 + |y|)``.

    Returns
    -------
    Figure
        The slope is the derivative by ``logp_new``, before beta and weight. The trace
        ``tokens`` of each panel returns prompt, completion, token on a click.
    """
    chosen = evaluation.scenario.conventions["kl"]
    prompt = selected[0] if selected else None
    now = Tokens.of(evaluation, prompt)
    before = Tokens.moved(former, now, prompt)
    after = None if pinned is None else Tokens.of(pinned, prompt)
    states = [state for state in (now, before, after) if state is not None]
    right = nice_ceiling(ROOM * largest(*(state.d for state in states)), floor=1.0)
    d = np.linspace(-right, right, _POINTS)
    curves = {key: kl_curve(key, d, chosen.options) for key in STAGES["kl"].variants}
    panels = [
        Panel(panel, d, {key: pair[panel] for key, pair in curves.items()}, states, chosen, tail)
        for panel in (0, 1)
    ]
    traces = []
    for panel in panels:
        traces += _curve_traces(panel, d, chosen.variant, palette)
        for state, look in ((before, _ghost(palette)), (after, _pinned(palette))):
            if state is not None:
                traces.append(_dots(state, panel, right, **look))
        traces.append(_tokens(now, panel, right, chosen.variant, selected, palette))
        traces.append(_selected(now, panel, right, selected, palette))
    return figure(
        traces, palette=palette, height=560, margin=(58, 40, 42, 46),
        alt=_describe(now, evaluation, chosen),
        **_layout(panels, d, right, chosen, palette, tail),
    )  # fmt: skip


def estimator_color(key, palette):
    """A row's colour, the same in every picture; the first two colours mean signs."""
    keys = list(STAGES["kl"].variants)
    colors = palette.categories[2:]
    return colors[keys.index(key) % len(colors)]


def _curve_traces(panel, d, chosen, palette):
    order = sorted(panel.curves, key=lambda key: key == chosen)  # the chosen one on top
    return [
        {
            "type": "scatter", "mode": "lines", "name": key, "x": d,
            "y": np.where(np.isfinite(panel.y[key]), panel.y[key], np.nan),
            "xaxis": "x", "yaxis": "y" if panel.index == 0 else "y2", "hoverinfo": "skip",
            "line": {"color": estimator_color(key, palette), "width": 3 if key == chosen else 1.25,
                     "dash": "solid" if key == chosen else "dot"},
        }
        for key in order
    ]  # fmt: skip


def _dots(state, panel, right, *, name, marker, **more):
    return {
        "type": "scatter", "mode": "markers", "name": name,
        "x": np.clip(state.d.astype(np.float64), -EDGE * right, EDGE * right),
        "y": panel.place(state.values[panel.index]),
        "xaxis": "x", "yaxis": "y" if panel.index == 0 else "y2",
        "marker": marker, "hoverinfo": "skip", **more,
    }  # fmt: skip


def _ghost(palette):
    marker = {"symbol": "circle-open", "size": 8, "color": palette.faint, "line": {"width": 1}}
    return {"name": "before", "marker": marker, **unselected(opacity=1)}


def _pinned(palette):
    marker = {"symbol": "diamond-open", "size": 9, "color": palette.text, "line": {"width": 1.25}}
    return {"name": "A (pinned)", "marker": marker, **unselected(opacity=1)}


def _tokens(now, panel, right, chosen, selected, palette):
    where = now.where.tolist()
    here = np.array([selected is None or cell[0] == selected[0] for cell in where], dtype=bool)
    values, slopes = now.values
    hover = [
        f"d {exact(d)}<br>KL {exact(value)}<br>slope {exact(slope)}"
        for d, value, slope in zip(now.d.tolist(), values.tolist(), slopes.tolist(), strict=True)
    ]
    opacity = np.where(here, 1.0, 0.35)
    marker = {
        "size": 8, "opacity": opacity,
        "color": estimator_color(chosen, palette),
        "symbol": np.where(np.isinf(now.d) | np.isinf(values), "triangle-up", "circle").tolist(),
        "line": {"color": palette.background, "width": 1},
    }  # fmt: skip
    look = {
        "customdata": where, "hovertext": hover, "cliponaxis": False, "hoverinfo": None,
        "hovertemplate": "prompt %{customdata[0]}, completion %{customdata[1]}, "
        "token %{customdata[2]}<br>%{hovertext}<extra></extra>",
        "selected": {"marker": {}}, "unselected": {"marker": {}},
    }  # fmt: skip
    return _dots(now, panel, right, name="tokens", marker=marker, **look)


def _selected(now, panel, right, selected, palette):
    """A ring around the selected token, on top of all others."""
    picked = np.all(now.where == np.array(selected or (-1, -1, -1)), axis=1)
    only = Tokens(now.where[picked], now.d[picked], tuple(each[picked] for each in now.values))
    marker = {"symbol": "circle-open", "size": 15, "color": palette.text, "line": {"width": 2.5}}
    return _dots(only, panel, right, name="selected", marker=marker, **unselected(opacity=1))


def _layout(panels, d, right, chosen, palette, tail):
    value, slope = panels
    place = chosen.options.get("place", "objective")
    constant = place != "objective"
    policy = "old" if constant else "new"
    lines = {"zeroline": True, "zerolinecolor": palette.line, "zerolinewidth": 1}
    scaled = ", log scale" if tail else ""
    unused = f"in the {place}: a constant, this slope is not followed"
    return {
        "xaxis": axis(
            f"d = log π ref − log π {policy} (nats)", palette=palette, range=[-right, right],
            anchor="y2", nticks=9, **lines,
        ),
        "yaxis": axis(f"KL of one token (nats{scaled})", palette=palette, range=value.range,
                      domain=[0.47, 1], **value.ticks(), **lines),
        "yaxis2": axis(f"slope ∂KL/∂log π new{scaled}", palette=palette, range=slope.range,
                       domain=[0, 0.38], anchor="x", **slope.ticks(), **lines),
        "annotations": [
            *heading("Estimates of the KL",
                     "thick: the chosen one, with the tokens on it", palette=palette, left=52),
            *(_label(panel, key, d, chosen.variant, palette)
              for panel in panels for key in panel.curves),
            *([_note(unused, palette)] if constant else _pull_names(palette)),
            *_limit_name(right, palette),
        ],
        "shapes": [*_limit(right, palette), *([] if constant else _pulls(slope, palette))],
    }  # fmt: skip


def _label(panel, key, d, chosen, palette):
    """The row's name where its curve leaves the picture on the right."""
    low, high = panel.range
    y = panel.y[key]
    (inside,) = np.nonzero(np.isfinite(y) & (y >= low) & (y <= high))
    last = int(inside[-1]) if inside.size else 0
    at_edge = last == len(d) - 1
    return {
        "text": f"<b>{key}</b>" if key == chosen else key, "showarrow": False,
        "x": float(d[last]), "y": float(y[last]) if inside.size else low,
        "yref": "y" if panel.index == 0 else "y2", "xanchor": "left",
        "yanchor": "middle" if at_edge else "top" if y[last] > 0 else "bottom", "xshift": 5,
        "font": {"size": FONT_SIZE, "color": estimator_color(key, palette)},
    }  # fmt: skip


def _note(text, palette):
    return {
        "text": text, "showarrow": False, "x": 0, "xref": "paper", "xanchor": "left",
        "y": 0.385, "yref": "paper", "yanchor": "bottom",
        "font": {"size": FONT_SIZE - 1, "color": palette.faint},
    }  # fmt: skip


def _pulls(slope, palette):
    """A tint of the gradient's sign: a penalty that rises with log π makes the token rarer."""
    low, high = slope.range
    base = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "y2", "y0": 0,
            "opacity": 0.07, "layer": "below", "line": {"width": 0}}  # fmt: skip
    return [
        {**base, "y1": high, "fillcolor": palette.negative},
        {**base, "y1": low, "fillcolor": palette.positive},
    ]


def _pull_names(palette):
    base = {"xref": "paper", "yref": "y2", "y": 0, "showarrow": False,
            "font": {"size": FONT_SIZE - 1, "color": palette.faint}}  # fmt: skip
    return [
        {**base, "text": "makes the token less likely ", "x": 1, "xanchor": "right",
         "yanchor": "bottom"},
        {**base, "text": " makes it more likely", "x": 0, "xanchor": "left", "yanchor": "top"},
    ]  # fmt: skip


def _limit(right, palette):
    """Where the exponential of d leaves float32."""
    if right < FLOAT32_LOG_MAX:
        return []
    line = {"color": palette.negative, "width": 1, "dash": "dash"}
    return [{"type": "line", "yref": "paper", "y0": 0, "y1": 1, "layer": "below",
             "x0": FLOAT32_LOG_MAX, "x1": FLOAT32_LOG_MAX, "line": line}]  # fmt: skip


def _limit_name(right, palette):
    if right < FLOAT32_LOG_MAX:
        return []
    return [{
        "text": "float32 ends: e<sup>88.72</sup> ", "showarrow": False, "x": FLOAT32_LOG_MAX,
        "xanchor": "right", "y": 0.43, "yref": "paper", "bgcolor": CLEAR,
        "font": {"size": FONT_SIZE - 1, "color": palette.negative},
    }]  # fmt: skip


def _describe(now, evaluation, chosen):
    rows = ", ".join(STAGES["kl"].variants)
    text = f"Curves: {rows} and their slopes against d, {count(len(now.d), 'token')}"
    if len(now.d):
        low, high = (number(end(now.d), 3) for end in (np.min, np.max))
        text += f" with d from {low} to {high} on {chosen.variant}"
    return f"{text}; mean KL {number(evaluation.mean_kl)}."
