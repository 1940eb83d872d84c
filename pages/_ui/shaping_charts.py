"""The advantage against the weight of a term: in a tied group, and in the group as it is."""

import numpy as np

from grpo_core.shaping_parts import COMBINE

from .figure import FONT_SIZE, figure, largest, legend_above, nice_ceiling, unselected
from .numbers import number
from .shaping_bars import short
from .weight_axis import centred_axis, panel_title, rule, weight_axis

_DASHES = ("solid", "dash", "dot")  # one for each way of combining
_PANELS = (("tied", (0.57, 1.0)), ("mixed", (0.0, 0.43)))


def weight_curves_chart(curves, evaluation, prompt, term, *, palette):
    """Advantage of two completions against the weight, a line for each way of combining.

    Parameters
    ----------
    curves : grpo_core.shaping_views.WeightCurves
    evaluation : Evaluation
        The curves' own.
    prompt, term : int
    palette : Palette

    Returns
    -------
    Figure
        Above, were all task rewards equal; below, as the group is. Blue is the completion
        that gains most by the term, orange the one that gains least. The chosen way of
        combining is thick; dots stand at the present weight.
    """
    chosen = evaluation.scenario.conventions["rewards"].variant
    name, weight = evaluation.scenario.terms[term].name, abs(evaluation.scenario.terms[term].weight)
    followed = [curves.high] if curves.high == curves.low else [curves.high, curves.low]
    colors = dict(zip(followed, (palette.positive, palette.negative), strict=False))
    top = nice_ceiling(1.2 * largest(*_chosen(curves, chosen, followed)), floor=0.1)
    traces, notes, axes = [], [], {}
    for index, (key, domain) in enumerate(_PANELS):
        lines, place = getattr(curves, key), {"xaxis": "x", "yaxis": "y" if index == 0 else "y2"}
        traces += _lines(lines, curves, chosen, colors, place)
        traces += _dots(lines[chosen], curves, weight, colors, top, place, palette)
        notes += _written(lines[chosen], curves, weight, colors, top, place["yaxis"], palette)
        axes["yaxis" if index == 0 else "yaxis2"] = centred_axis(
            "advantage", top, palette, domain=list(domain), zeroline=True,
            zerolinecolor=palette.line, zerolinewidth=1,
        )  # fmt: skip
    notes.append(panel_title("were all task rewards equal", 1.0, palette))
    notes.append(panel_title(f"as the group of prompt {prompt} is", 0.43, palette))
    now = rule(weight, curves.weights, f"now {number(weight)}", palette, at=0.57)
    eps = rule(
        curves.takeover, curves.weights, f"eps takes over: {number(curves.takeover)}", palette,
        at=0.53, dash="dash", color=palette.faint,
    )  # fmt: skip
    title = f"{'size of the negative weight' if curves.sign < 0 else 'weight'} of {short(name)}"
    return figure(
        [*traces, *_keys(chosen, palette)],
        palette=palette,
        height=430,
        margin=(52, 16, 52, 46),
        alt=_describe(curves, chosen, name, weight),
        xaxis=weight_axis(curves.weights, title, palette, anchor="y2"),
        shapes=[*now[0], *eps[0]],
        annotations=[*notes, *now[1], *eps[1], *_names(curves, colors, chosen, palette)],
        **axes,
        **legend_above(palette),
    )


def _chosen(curves, chosen, followed):
    return [getattr(curves, key)[chosen][:, followed] for key, _ in _PANELS]


def _lines(lines, curves, chosen, colors, place):
    order = sorted(COMBINE, key=lambda key: key == chosen)  # the chosen one on top
    return [
        {
            "type": "scatter", "mode": "lines", "name": f"{key}, completion {g}",
            "x": curves.weights, "y": lines[key][:, g], "showlegend": False, **place,
            "line": {"color": color, "width": 2.5 if key == chosen else 1.25,
                     "dash": _dash(key)},
            "opacity": 1.0 if key == chosen else 0.75,
            "hovertemplate": f"{COMBINE[key].label}<br>completion {g}: %{{y:.4g}} at weight "
            "%{x:.3g}<extra></extra>",
        }
        for key in order
        for g, color in colors.items()
    ]  # fmt: skip


def _dash(key):
    return _DASHES[list(COMBINE).index(key) % len(_DASHES)]


def _dots(values, curves, weight, colors, top, place, palette):
    """The chosen way at the present weight."""
    found = _at(values, curves, weight, colors)
    return [{
        "type": "scatter", "mode": "markers", "name": "now", "showlegend": False,
        "x": [weight] * len(found), "y": np.clip(found, -top, top), **place,
        "marker": {"size": 9, "color": list(colors.values()),
                   "line": {"color": palette.background, "width": 1.5}},
        "hoverinfo": "skip", "cliponaxis": False, **unselected(opacity=1),
    }]  # fmt: skip


def _at(values, curves, weight, completions):
    """Advantages at a weight between those of the curves; none at weight 0."""
    if not weight > 0:
        return []
    at = np.log(curves.weights)
    return [float(np.interp(np.log(weight), at, values[:, g])) for g in completions]


def _written(values, curves, weight, colors, top, axis_name, palette):
    """The values at the present weight: the upper one above its dot, the lower one below."""
    found = _at(values, curves, weight, colors)
    return [
        {
            "text": f" {number(value, 3, signed=True)} ", "showarrow": False,
            "x": float(np.log10(weight)), "xref": "x", "xanchor": "right", "xshift": -5,
            "y": float(np.clip(value, -top, top)), "yref": axis_name,
            "yanchor": "bottom" if value == max(found) else "top",
            "bgcolor": palette.background, "opacity": 0.92, "borderpad": 0,
            "font": {"size": FONT_SIZE, "color": palette.text},
        }
        for value in found
    ]  # fmt: skip


def _keys(chosen, palette):
    """Legend entries for the ways of combining, in no completion's colour."""
    words = ("summed", "each alone", "added")
    return [
        {
            "type": "scatter", "mode": "lines", "x": [None], "y": [None], "hoverinfo": "skip",
            "name": f"<b>{text}</b>" if key == chosen else text, "showlegend": True,
            "line": {"color": palette.text, "width": 2.5 if key == chosen else 1.25,
                     "dash": _dash(key)},
        }
        for key, text in zip(COMBINE, words, strict=True)
    ]  # fmt: skip


def _names(curves, colors, chosen, palette):
    """Which completion is which colour, where the lower panel's curves begin."""
    start = curves.mixed[chosen][0]
    words = ("gains most", "gains least")
    if len(colors) == 2 and abs(start[curves.high] - start[curves.low]) < 1e-3:
        heights = ("bottom", "top")
    else:
        heights = ["bottom" if start[g] >= start[curves.low] else "top" for g in colors]
        heights = heights if len(set(heights)) > 1 or len(colors) == 1 else ["top", "bottom"]
    return [
        {
            "text": f"completion {g}: {said}", "showarrow": False,
            "x": float(np.log10(curves.weights[0])), "xref": "x", "xanchor": "left",
            "y": float(start[g]), "yref": "y2", "yanchor": height,
            "font": {"size": FONT_SIZE, "color": color}, "bgcolor": palette.background,
            "opacity": 0.92, "borderpad": 0,
        }
        for (g, color), said, height in zip(colors.items(), words, heights, strict=False)
    ]  # fmt: skip


def _describe(curves, chosen, name, weight):
    text = f"Curves: advantage against the weight of {name}, chosen: {COMBINE[chosen].label}."
    followed = (curves.high, curves.low)
    for words, values in (
        ("were all task rewards equal", curves.tied), ("as the group is", curves.mixed)
    ):  # fmt: skip
        said = [
            f"completion {g} {number(value, 3)}"
            for g, value in zip(
                followed, _at(values[chosen], curves, weight, followed), strict=False
            )
        ]
        text += f" At the present weight {number(weight)}, {words}: {', '.join(said) or 'nothing'}."
    if curves.takeover:
        text += f" eps takes over at {number(curves.takeover)}."
    return text
