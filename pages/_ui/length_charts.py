"""What length counts: a token's weight against the length of its completion."""

import numpy as np

from grpo_core.length import length_weights, weight_curves
from grpo_core.numerics import times
from grpo_core.recipes import RECIPES

from .figure import FONT_SIZE, axis, figure, largest, nice_ceiling, tick_step, unselected
from .numbers import count, exact, number
from .size_charts import top_legend

_COMPARED = {recipe.aggregation for recipe in RECIPES.values()}
_MANY = 20_000  # tokens from which on curves get fewer points


def weight_chart(evaluation, prompt, *, palette, former=None, selected=None):
    """Weight of one token against its completion's length, right answers up, wrong ones down.

    Parameters
    ----------
    evaluation : Evaluation
    prompt : int
    palette : Palette
    former : Evaluation or None
    selected : (int, int, int) or None
        Its completion is the one whose length varies along the curves.

    Returns
    -------
    Figure
        A pair of curves for each aggregation of `compared_rows`, the chosen one thick;
        triangles are the prompt's completions. What is not pushed at all is not drawn.
    """
    weights = length_weights(evaluation)
    rows = compared_rows(weights)
    at, curves = _varied_curves(evaluation, _varied(weights.lengths, prompt, selected))
    points = [_points(weights, row, prompt) for row in rows]
    top = nice_ceiling(1.3 * largest(*(weight for _, weight in points)))
    colors = [palette.categories[2 + index % 4] for index in range(len(rows))]
    traces = []
    for row, color in zip(rows, colors, strict=True):
        traces += _pair(row, at, curves.get(row.label, at), top, color)
    if former is not None:
        traces.append(_ghosts(former, prompt, palette))
    for row, color in sorted(zip(rows, colors, strict=True), key=lambda r: r[0].chosen):
        traces.append(_triangles(weights, row, prompt, selected, color, palette))
    end = nice_ceiling(1.06 * max(largest(weights.lengths[prompt]), 1), floor=4)
    return figure(
        traces, palette=palette, height=430, margin=(62, 14, 78, 46),
        alt=_describe(weights, prompt),
        xaxis=axis("length of the completion (tokens)", palette=palette, range=[0, end], nticks=8),
        yaxis=_weight_axis(top, palette),
        annotations=[_side("right answers: pushed up", 1, palette.positive),
                     _side("wrong answers: pushed down", 0, palette.negative)],
        showlegend=True, legend=top_legend(palette),
    )  # fmt: skip


def compared_rows(weights):
    """The aggregations that recipes go by, and the chosen one.

    Mere sums and means within prompts would stand on another scale, or on the same curve.
    """
    return [row for row in weights.rows if row.chosen or row.choice.variant in _COMPARED]


def _varied(lengths, prompt, selected):
    """The completion whose length varies: the selected one, or the first one with tokens."""
    if selected is not None and selected[0] == prompt and lengths[prompt, selected[1]] > 0:
        return prompt, selected[1]
    (filled,) = np.nonzero(lengths[prompt] > 0)
    return (prompt, int(filled[0])) if filled.size else None


def _varied_curves(evaluation, where):
    if where is None:
        return np.zeros(0), {}
    few = None
    if evaluation.valid.size > _MANY:
        few = np.unique(np.rint(np.geomspace(1, evaluation.valid.shape[2], 16)).astype(int))
    return weight_curves(evaluation, where, few, among=_COMPARED)


def _points(weights, row, prompt):
    """Which completions of the prompt are pushed, and the signed weight of their tokens."""
    right, wrong = weights.right[prompt], weights.wrong[prompt]
    (pushed,) = np.nonzero(right | wrong)
    sign = np.where(right[pushed], 1.0, -1.0)
    return pushed, times(sign, row.token[prompt, pushed])


def _pair(row, at, curve, top, color):
    base = {
        "type": "scatter", "mode": "lines", "hoverinfo": "skip", "name": row.label, "x": at,
        "line": {"color": color, "width": 2.75 if row.chosen else 1.25,
                 "dash": "solid" if row.chosen else "dot"},
        "legendgroup": row.label,
    }  # fmt: skip
    inside = np.where(curve <= 1.02 * top, curve, np.nan)
    return [{**base, "y": inside}, {**base, "y": -inside, "showlegend": False}]


def _triangles(weights, row, prompt, selected, color, palette):
    pushed, weight = _points(weights, row, prompt)
    up = weight > 0
    signs = np.where(up, palette.positive, palette.negative).tolist()
    t = selected[2] if selected else 0
    hover = [
        f"completion {g}, {count(int(weights.lengths[prompt, g]), 'token')}<br>{row.label}: "
        f"weight {exact(abs(w))}<br>times advantage: {number(row.push[prompt, g], signed=True)}"
        for g, w in zip(pushed.tolist(), weight.tolist(), strict=True)
    ]
    chosen = row.chosen
    return {
        "type": "scatter", "mode": "markers", "name": f"{row.label}, completions",
        "x": weights.lengths[prompt, pushed], "y": weight, "showlegend": False,
        "customdata": [[prompt, g, t] for g in pushed.tolist()], "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>", "cliponaxis": False,
        "marker": {
            "symbol": np.where(up, "triangle-up", "triangle-down").tolist(),
            "size": 12 if chosen else 8,
            "color": signs if chosen else palette.background,
            "line": {"color": palette.background if chosen else signs,
                     "width": 1 if chosen else 1.25},
        },
        **unselected(opacity=1),
    }  # fmt: skip


def _ghosts(former, prompt, palette):
    weights = length_weights(former)
    row = next(row for row in weights.rows if row.chosen)
    pushed, weight = _points(weights, row, prompt)
    symbols = np.where(weight > 0, "triangle-up-open", "triangle-down-open").tolist()
    return {
        "type": "scatter", "mode": "markers", "name": "before", "showlegend": False,
        "x": weights.lengths[prompt, pushed], "y": weight, "hoverinfo": "skip",
        "marker": {"symbol": symbols, "size": 16, "color": palette.faint, "line": {"width": 1}},
        **unselected(opacity=1),
    }  # fmt: skip


def _weight_axis(top, palette):
    """Weights have no sign: the lower half is for what is pushed down."""
    step = tick_step(2 * top, ticks=6)
    ticks = (step * np.arange(-np.floor(top / step), np.floor(top / step) + 1)).tolist()
    return axis(
        "weight of one token", palette=palette, range=[-top, top], tickvals=ticks,
        ticktext=[number(abs(tick), 3) for tick in ticks], showgrid=True, zeroline=True,
        zerolinecolor=palette.neutral, zerolinewidth=1,
    )  # fmt: skip


def _side(text, y, color):
    return {
        "text": text, "x": 1, "xref": "paper", "xanchor": "right", "y": y, "yref": "paper",
        "yanchor": "top" if y else "bottom", "showarrow": False,
        "font": {"size": FONT_SIZE, "color": color},
    }  # fmt: skip


def _describe(weights, prompt):
    said = []
    for row in compared_rows(weights):
        _, weight = _points(weights, row, prompt)
        if weight.size:
            low, high = (number(float(end(np.abs(weight))), 3) for end in (np.min, np.max))
            said.append(f"{row.label} from {low} to {high}")
    listed = "; ".join(said) or "no completion is pushed"
    return f"Weight of one token against length in prompt {prompt}: {listed}."
