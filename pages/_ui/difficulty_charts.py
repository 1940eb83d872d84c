"""Weight of a prompt against its success rate, and the expected advantages behind it."""

import numpy as np

from .difficulty_axes import axis_of_rates, crosses, legend, points
from .difficulty_worlds import GRID
from .figure import axis, figure, largest, nice_ceiling
from .numbers import exact, number


def weight_chart(now, *, palette, former=None, pinned=None):
    """Weight of a prompt in the gradient against its rate, a curve for each way of dividing.

    Parameters
    ----------
    now, former, pinned : `Weighing`; the last two may be None
    palette : Palette

    Returns
    -------
    Figure
        The chosen way is thick, the table's prompts are dots on it, sampled ones crosses with
        bars of two standard errors. Graded rewards have no curve, only dots of every way.
    """
    top = nice_ceiling(1.5 * _highest(now, former, pinned))
    traces = [] if now.graded else [_limit(top, palette)]
    for way in sorted(now.ways, key=lambda way: way.chosen):
        color = way_color(now, way, palette)
        if way.curve is not None:
            traces.append(_curve(way, color, top))
        elif now.graded:
            traces.append(_dots(now, way, color, palette))
    for other, name, look in ((former, "before", _GHOST), (pinned, "A (pinned)", _PINNED)):
        if other is not None and _differs(now, other):
            traces += _other(other, name, look, top, palette)
    traces += [_dots(now, now.chosen, way_color(now, now.chosen, palette), palette, named=False)]
    traces += _sampled(now, "prompt_weight", palette)
    return figure(
        traces, palette=palette, height=440, margin=(52, 16, 100, 46), alt=_describe_weights(now),
        showlegend=True, legend=legend(palette),
        xaxis=axis_of_rates(now.prompts, now.graded, palette),
        yaxis=axis("weight in the gradient, c", palette=palette, range=[0, top], nticks=7,
                   showgrid=True, zeroline=True, zerolinecolor=palette.line),
    )  # fmt: skip


def way_color(weighing, way, palette):
    """A way's colour, the same in every picture; the first two colours mean signs."""
    colors = palette.categories[2:]
    return colors[list(weighing.ways).index(way) % len(colors)]


_GHOST = {"symbol": "circle-open", "dash": "solid"}
_PINNED = {"symbol": "diamond-open", "dash": "dash"}


def _highest(*weighings):
    """Largest weight drawn; the limit for endless groups may leave the picture."""
    found = [1.0]
    for weighing in weighings:
        if weighing is None:
            continue
        found += [largest(way.curve.prompt_weight) for way in weighing.ways if way.curve]
        if weighing.graded:
            found += [largest(_weights(way)) for way in weighing.ways]
        found.append(largest(weighing.weights))
    return max(found)


def _weights(way):
    return way.exact.prompt_weight if way.exact else way.sampled.prompt_weight.mean


def _differs(now, other):
    return other.G != now.G or other.choice != now.choice or not np.array_equal(
        other.weights, now.weights, equal_nan=True
    )  # fmt: skip


def _inside(values, top):
    return np.where(np.isfinite(values) & (values <= top), values, np.nan)


def _limit(top, palette):
    inner = GRID[1:-1]
    line = {"color": palette.neutral, "width": 1.5, "dash": "dot"}
    return {
        "type": "scatter", "mode": "lines", "name": "1/√(p(1 − p)), endless groups", "x": inner,
        "y": _inside(1 / np.sqrt(inner * (1 - inner)), top), "line": line, "hoverinfo": "skip",
    }  # fmt: skip


def _curve(way, color, top):
    values = way.curve.prompt_weight
    return {
        "type": "scatter", "mode": "lines", "name": way.name, "x": GRID, "y": _inside(values, top),
        "line": {"color": color, "width": 3 if way.chosen else 1.5},
        "customdata": [number(value) for value in values.tolist()],
        "hovertemplate": f"{way.name}<br>rate %{{x}}: weight %{{customdata}}<extra></extra>",
    }  # fmt: skip


def _dots(now, way, color, palette, named=True):
    values = _weights(way)
    return {
        "type": "scatter", "mode": "markers", "name": way.name if named else "table",
        "showlegend": named, "cliponaxis": False,
        **points(now.where, values, customdata=[exact(value) for value in values.tolist()]),
        "marker": {"size": 10 if way.chosen else 8, "color": color,
                   "line": {"color": palette.background, "width": 1.25}},
        "hovertemplate": f"{way.name}<br>%{{x:.4~g}}: weight %{{customdata}}<extra></extra>",
    }  # fmt: skip


def _other(other, name, look, top, palette):
    """Another state, as a thin outline."""
    style = {"color": palette.faint, "width": 1.25, "dash": look["dash"]}
    traces, chosen = [], other.chosen
    if chosen.curve is not None:
        traces.append({
            "type": "scatter", "mode": "lines", "name": name, "x": GRID, "line": style,
            "y": _inside(chosen.curve.prompt_weight, top), "hoverinfo": "skip",
        })  # fmt: skip
    traces.append({
        "type": "scatter", "mode": "markers", "name": name, "showlegend": not traces,
        **points(other.where, other.weights, top), "hoverinfo": "skip",
        "marker": {"symbol": look["symbol"], "size": 9, "color": palette.faint,
                   "line": {"width": 1.25}},
    })  # fmt: skip
    return traces


def _sampled(now, field, palette, part=None, named=True):
    if now.sampled is None:
        return []
    seen = getattr(now.sampled, field)
    mean, error = (seen.mean, seen.error) if part is None else (
        seen.mean[:, part], seen.error[:, part]
    )  # fmt: skip
    return [crosses(now.where, mean, error, palette, showlegend=named)]


def advantage_chart(now, *, palette, former=None):
    """Expected advantage of a right and of a wrong answer against the rate, the chosen way.

    With graded rewards: of an answer with the highest and with the lowest of them.
    """
    sides = (
        ("highest reward" if now.graded else "right answer", "right", -1, palette.positive),
        ("lowest reward" if now.graded else "wrong answer", "wrong", 0, palette.negative),
    )
    top = nice_ceiling(1.25 * max(_reach(now), 0 if former is None else _reach(former)))
    traces = []
    for name, side, part, color in sides:
        if former is not None and former.chosen.curve is not None and _differs(now, former):
            traces.append(_side_curve(former, side, "before", palette.faint, 1.25, part == -1))
        if now.chosen.curve is not None:
            traces.append(_side_curve(now, side, name, color, 2.5, True))
        traces.append(_side_dots(now, side, part, name, color, palette))
        traces += _sampled(now, "expected_advantage", palette, part, part == -1)
    return figure(
        traces, palette=palette, height=360, margin=(52, 16, 62, 46),
        alt=_describe_advantages(now), showlegend=True, legend=legend(palette),
        xaxis=axis_of_rates(now.prompts, now.graded, palette),
        yaxis=axis("expected advantage", palette=palette, range=[-top, top], nticks=7,
                   showgrid=True, zeroline=True, zerolinecolor=palette.neutral,
                   zerolinewidth=1),
    )  # fmt: skip


def _reach(weighing):
    chosen = weighing.chosen
    if chosen.curve is not None:
        return largest(chosen.curve.right, chosen.curve.wrong)
    return largest(*(_side(weighing, side, part) for side, part in (("right", -1), ("wrong", 0))))


def _side(weighing, side, part):
    chosen = weighing.chosen
    if chosen.exact is not None:
        return getattr(chosen.exact, side)
    return chosen.sampled.expected_advantage.mean[:, part]


def _side_curve(weighing, side, name, color, width, named):
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": GRID, "showlegend": named,
        "y": getattr(weighing.chosen.curve, side), "line": {"color": color, "width": width},
        "hoverinfo": "skip",
    }  # fmt: skip


def _side_dots(now, side, part, name, color, palette):
    values = _side(now, side, part)
    return {
        "type": "scatter", "mode": "markers", "name": name, "cliponaxis": False,
        "showlegend": now.chosen.curve is None,
        **points(now.where, values, customdata=[exact(value) for value in values.tolist()]),
        "marker": {"size": 9, "color": color, "line": {"color": palette.background, "width": 1}},
        "hovertemplate": f"{name}<br>%{{x:.4~g}}: %{{customdata}}<extra></extra>",
    }  # fmt: skip


def _describe_weights(now):
    pairs = ", ".join(
        f"{number(x, 3)}: {number(c, 3)}"
        for x, c in zip(now.where[:12].tolist(), now.weights[:12].tolist(), strict=True)
    )
    what = "mean reward" if now.graded else "success rate"
    return f"Weight in the gradient by {what}, groups of {now.G}, over {now.chosen.name}: {pairs}."


def _describe_advantages(now):
    ends = [_side(now, side, part)[:12].tolist() for side, part in (("right", -1), ("wrong", 0))]
    said = "; ".join(
        f"{number(x, 3)}: {number(right, 3)} and {number(wrong, 3)}"
        for x, right, wrong in zip(now.where[:12].tolist(), *ends, strict=True)
    )
    return f"Expected advantages, {'best and worst' if now.graded else 'right and wrong'}: {said}."
