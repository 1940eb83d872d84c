"""The surrogate against the ratio for one sign of the advantage, every token on its curve."""

import numpy as np

from grpo_core.clip_cases import follows_ratio, weights_log_probability
from grpo_core.curves import surrogate_regions

from .figure import CLEAR, FONT_SIZE, axis, figure, heading, unselected
from .numbers import count
from .ratio_axis import ratio_axis
from .surrogate_points import PIXELS, Points, chosen, height, per_unit

_LETTER = 5.8  # pixels, of the regions' names
_NAMES = {
    "inside": ("inside<br>the band", "band"),
    "outside": ("outside the band,<br>gradient stays", "gradient<br>stays", "kept"),
    "clipped_high": ("clipped,<br>no gradient", "clipped"),
    "clipped_low": ("clipped,<br>no gradient", "clipped"),
    "dual_clipped": ("dual clip,<br>no gradient", "dual<br>clip"),
}
_TITLES = {1: "A > 0: raise the token, but not too far", -1: "A < 0: lower it, but not too far"}


def surrogate_chart(
    evaluation, sign, *, palette, prompts=None, former=None, pinned=None, selected=None
):
    """Surrogate of one unit of advantage against the ratio, with the tokens of that sign.

    The surrogate is proportional to the size of the advantage, so that divided by it every
    token lies on one curve, whatever its advantage.

    Parameters
    ----------
    evaluation : Evaluation
    sign : {1, -1}
        Of the advantage.
    palette : Palette
    prompts : int, sequence of int, or None
        Whose tokens to draw; None is all.
    former : Evaluation or None
        Tokens that stood elsewhere get a thin ring there; a curve that differs a thin line.
    pinned : Evaluation or None
        Its tokens as open diamonds, its curve dotted.
    selected : (int, int, int) or None
        A ring around this token.

    Returns
    -------
    Figure
        Both signs have the same ratio axis. Ratios beyond it are arrows at its end.
    """
    conventions = evaluation.scenario.conventions
    regions = surrogate_regions(conventions, sign)
    scale = _scale(evaluation, pinned, prompts)
    points = Points(evaluation, sign, prompts, scale)
    traces = [_free_line(sign, scale, palette)] if follows_ratio(conventions) else []
    for other, look in ((former, _FORMER), (pinned, _PINNED)):
        if other is not None:
            traces += _other_state(other, evaluation, sign, prompts, scale, look, palette)
    traces.append(_curve(conventions, sign, scale, palette))
    traces += points.traces(palette)
    traces += _ring(evaluation, sign, scale, selected, palette)
    left = 52
    return figure(
        traces, palette=palette, height=348, margin=(left, 12, 76, 60),
        alt=_describe(sign, points),
        xaxis=scale.settings(_ratio_title(scale), palette, room=0.012),
        yaxis=_height_axis(conventions, sign, scale, palette),
        shapes=_shades(regions, scale, palette),
        annotations=[
            *_names(regions, scale, palette),
            *_title(sign, points, palette, left),
        ],
        **_legend(palette),
    )  # fmt: skip


def _scale(evaluation, pinned, prompts):
    """The axis that both pictures share: all tokens that are drawn, of both signs."""
    corners, ratios = [], []
    for state in (evaluation, pinned):
        if state is None:
            continue
        drawn = chosen(state, prompts) & (state.token_advantages != 0)
        ratios.append(state.ratio[drawn])
        for sign in (1, -1):
            conventions = state.scenario.conventions
            corners += [region.low for region in surrogate_regions(conventions, sign)[1:]]
    return ratio_axis(np.concatenate(ratios), corners)


def _free_line(sign, scale, palette):
    x = scale.samples()
    return {
        "type": "scatter", "mode": "lines", "name": "without clipping", "x": x,
        "y": height(sign * x, sign, scale), "hoverinfo": "skip",
        "line": {"color": palette.neutral, "width": 1.25, "dash": "6px,6px"},
    }  # fmt: skip


def _curve(conventions, sign, scale, palette, name="surrogate", **line):
    corners = [region.low for region in surrogate_regions(conventions, sign)]
    x = scale.samples(corners)
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": x,
        "y": per_unit(conventions, x, sign, scale), "hoverinfo": "skip",
        "showlegend": False, "line": {"color": palette.of_sign(sign), "width": 2.5, **line},
    }  # fmt: skip


_FORMER = {"name": "before", "symbol": "circle-open", "size": 9, "dash": "solid", "changed": True}
_PINNED = {"name": "A (pinned)", "symbol": "diamond-open", "size": 10, "dash": "dot",
           "changed": False}  # fmt: skip


def _other_state(other, evaluation, sign, prompts, scale, look, palette):
    """Curve and tokens of another state, thin; of the former one only what has moved."""
    conventions = other.scenario.conventions
    kinds = {follows_ratio(conventions), follows_ratio(evaluation.scenario.conventions)}
    if other.valid.shape != evaluation.valid.shape or len(kinds) > 1:  # or other heights
        return []
    traces = []
    if conventions["surrogate"] != evaluation.scenario.conventions["surrogate"]:
        thin = {"color": palette.faint, "width": 1, "dash": look["dash"]}
        traces.append(_curve(conventions, sign, scale, palette, f"{look['name']}, curve", **thin))
    points = Points(other, sign, prompts, scale)
    kept = np.ones(len(points.at), dtype=bool)
    if look["changed"]:
        index = tuple(points.at.T)
        there = evaluation.valid[index] & (np.sign(evaluation.token_advantages[index]) == sign)
        kept = (points.beyond == 0) & (~there | (evaluation.ratio[index] != points.ratio))
    if np.any(kept):
        color = palette.faint if look["changed"] else palette.of_sign(sign)
        traces.append({
            "type": "scatter", "mode": "markers", "name": look["name"],
            "x": points.x[kept], "y": points.y[kept], "hoverinfo": "skip", "cliponaxis": False,
            "marker": {"symbol": look["symbol"], "size": look["size"], "color": color,
                       "opacity": 1, "line": {"width": 1, "color": color}},
            **unselected(opacity=1),
        })  # fmt: skip
    return traces


def _ring(evaluation, sign, scale, selected, palette):
    """A ring around the selected token, if it has this sign."""
    if selected is None:
        return []
    at = tuple(selected)
    if not evaluation.valid[at] or np.sign(evaluation.token_advantages[at]) != sign:
        return []
    ratio = evaluation.ratio[at][None]
    return [{
        "type": "scatter", "mode": "markers", "name": "selected", "hoverinfo": "skip",
        "showlegend": False, "cliponaxis": False, "x": scale.drawn(ratio),
        "y": per_unit(evaluation.scenario.conventions, ratio, sign, scale),
        "marker": {"symbol": "circle-open", "size": 17, "color": palette.text, "opacity": 1,
                   "line": {"width": 2, "color": palette.text}},
        **unselected(opacity=1),
    }]  # fmt: skip


def _shades(regions, scale, palette):
    """Regions without gradient shaded, and a dotted line at each edge."""
    tall = {"yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    ends = {"low": -0.012, "high": 1.012}
    shapes = []
    for region in regions:
        low, high = scale.position([region.low, region.high]).tolist()
        if region.case.stopped and high > low:
            low, high = (ends["low"] if low == 0 else low), (ends["high"] if high == 1 else high)
            shapes.append({
                "type": "rect", "xref": "paper", **tall, "line": {"width": 0},
                "x0": _paper(low), "x1": _paper(high), "fillcolor": palette.line, "opacity": 0.6,
            })  # fmt: skip
    for region in regions[1:]:
        if scale.low < region.low < scale.high:
            at = _paper(float(scale.position(region.low)))
            shapes.append({
                "type": "line", "xref": "paper", **tall, "x0": at, "x1": at,
                "line": {"color": palette.faint, "width": 1, "dash": "dot"},
            })  # fmt: skip
    return shapes


def _paper(position, room=0.012):
    """A position on the ratio axis as a share of the picture's width, which has room beside it."""
    return min(max((position + room) / (1 + 2 * room), 0.0), 1.0)


def _names(regions, scale, palette):
    """Names of the regions above the picture, each where it has room."""
    names = []
    for region in regions:
        low, high = scale.position([region.low, region.high]).tolist()
        text = _fitting(_NAMES.get(region.case.key, ()), (high - low) * PIXELS)
        if text:
            names.append({
                "text": text, "showarrow": False,
                "xref": "paper", "xanchor": "center", "x": _paper((low + high) / 2),
                "yref": "paper", "y": 1, "yanchor": "bottom", "yshift": 1, "align": "center",
                "font": {"size": FONT_SIZE - 1, "color": palette.faint},
            })  # fmt: skip
    return names


def _fitting(names, pixels):
    """The first of some names that is not wider than its region."""

    def width(name):
        return _LETTER * max(len(line) for line in name.split("<br>"))

    return next((name for name in names if width(name) <= pixels), "")


def _title(sign, points, palette, left):
    kept, beyond = points.total - points.lost, points.away
    said = f"no token has A {'>' if sign > 0 else '<'} 0"
    if points.total:
        said = (
            f"{count(points.total, 'token')}: {kept:,} with a gradient, {points.lost:,} clipped ×"
        )
        said += f", {beyond:,} beyond the axis ▸" if beyond else ""
    lines = heading(_TITLES[sign], said, palette=palette, left=left - 5)
    return [{**line, "yshift": line["yshift"] + 34} for line in lines]


def _height_axis(conventions, sign, scale, palette):
    """Heights are as large as ratios, save where the surrogate does not follow them.

    A weighted log-probability is drawn for a token that the old policy was sure of.
    """
    title = "surrogate / |A|"
    if follows_ratio(conventions):
        return scale.settings(title, palette, sign=sign, room=0.05)
    sure = ", at log π old = 0" if weights_log_probability(conventions) else ""
    heights = per_unit(conventions, scale.samples(), sign, scale)
    low, high = min(float(np.min(heights)), 0.0), max(float(np.max(heights)), 0.0)
    room = 0.06 * (high - low or 1.0)
    return axis(f"{title}{sure}", palette=palette, range=[low - room, high + room], nticks=7)


def _ratio_title(scale):
    return "ratio, new to old policy" + (" (log scale)" if scale.log else "")


def _describe(sign, points):
    side = "positive" if sign > 0 else "negative"
    more = f", {points.away:,} beyond the ends of the axis" if points.away else ""
    return (
        f"Surrogate per unit of advantage against the ratio, for a {side} advantage: "
        f"{count(points.total, 'token')}, {points.lost:,} clipped{more}."
    )


def _legend(palette):
    """What the thin marks mean, in one line below the axis."""
    return {
        "showlegend": True,
        "legend": {
            "orientation": "h", "x": 0.5, "xanchor": "center",
            "y": 0, "yref": "container", "yanchor": "bottom", "itemclick": False,
            "font": {"size": FONT_SIZE - 1, "color": palette.faint},
            "itemdoubleclick": False, "bgcolor": CLEAR, "traceorder": "normal",
        },
    }  # fmt: skip
