"""Two small worlds: what a bonus does to a bandit, and a potential to a task of two steps."""

import numpy as np

from grpo_core.shaping_potential import CREDITS

from .figure import CLEAR, FONT_SIZE, axis, figure, largest, legend_above, nice_ceiling, unselected
from .numbers import number
from .weight_axis import centred_axis, panel_title, rule, weight_axis

_ROW = 40  # pixels of a rule of credit: its name above its bar


def bandit_chart(view, *, palette):
    """What is gained by answer A against B, and where GRPO's expected update leads.

    Parameters
    ----------
    view : grpo_core.shaping_world_views.BanditView
    palette : Palette

    Returns
    -------
    Figure
        Above, expected reward of A less that of B against the weight of B's bonus; below, the
        expected update of A's logit. Blue is for A, orange for B.
    """
    panels = ((view.reward_gap, "y", (0.57, 1.0)), (view.update, "y2", (0.0, 0.43)))
    traces, shapes, axes = [], [], {}
    for values, name, domain in panels:
        top = nice_ceiling(1.1 * largest(values), floor=1e-3)
        traces.append(_gap(view.weights, values, name, palette))
        shapes += _sides(name, top, palette)
        axes["yaxis" if name == "y" else "yaxis2"] = centred_axis(
            "", top, palette, domain=list(domain), zeroline=True,
            zerolinecolor=palette.neutral, zerolinewidth=1,
        )  # fmt: skip
    marks = (
        (view.optimum_flip, f"B is worth more: {number(view.optimum_flip)}", 0.66, "solid",
         palette.negative),
        (view.update_flip, f"B is learned: {number(view.update_flip)}", 0.09, "dash",
         palette.negative),
        (view.weight, f"now {number(view.weight)}", 0.53, "solid", palette.text),
    )  # fmt: skip
    notes = [
        panel_title("expected reward, A less B", 1.0, palette),
        panel_title("expected update of A's logit", 0.43, palette),
    ]
    for weight, words, at, dash, color in marks:
        line, name = rule(weight, view.weights, words, palette, at=at, dash=dash, color=color)
        shapes += line
        notes += name
    return figure(
        traces,
        palette=palette,
        height=380,
        margin=(58, 16, 26, 46),
        alt=_describe_bandit(view),
        xaxis=weight_axis(view.weights, "weight of B's bonus", palette, anchor="y2"),
        shapes=shapes,
        annotations=notes,
        **axes,
    )


def _gap(weights, values, name, palette):
    return {
        "type": "scatter", "mode": "lines", "name": "gap" if name == "y" else "update",
        "x": weights, "y": values, "xaxis": "x", "yaxis": name,
        "line": {"color": palette.text, "width": 2},
        "hovertemplate": "%{y:.4g} at weight %{x:.3g}<extra></extra>",
    }  # fmt: skip


def _sides(name, top, palette):
    """A tint of who is favoured: A above 0, B below."""
    base = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": name, "y0": 0,
            "opacity": 0.08, "layer": "below", "line": {"width": 0}}  # fmt: skip
    return [
        {**base, "y1": top, "fillcolor": palette.positive},
        {**base, "y1": -top, "fillcolor": palette.negative},
    ]


def credit_chart(view, *, palette):
    """Expected gradient on the first token under each way of giving credit.

    Parameters
    ----------
    view : grpo_core.shaping_world_views.PotentialView
    palette : Palette

    Returns
    -------
    Figure
        Bars: with the potential. Outlines: without it. Line: the true gradient.
    """
    keys = list(CREDITS)
    now, plain = (np.array([found[key][0] for key in keys]) for found in (view.now, view.plain))
    top = nice_ceiling(1.3 * largest(now, plain, np.array([view.true])), floor=0.01)
    y = np.arange(len(keys)) + 0.14
    traces = [
        {
            "type": "bar", "orientation": "h", "name": "with the potential", "x": now, "y": y,
            "width": 0.34, "showlegend": False, "hoverinfo": "skip",
            "marker": {"color": [palette.of_sign(value) for value in now.tolist()],
                       "line": {"width": 0}},
            **unselected(opacity=1),
        },
        {
            "type": "bar", "orientation": "h", "name": "without it", "x": plain, "y": y,
            "width": 0.5, "showlegend": False, "hoverinfo": "skip",
            "marker": {"color": CLEAR, "line": {"color": palette.faint, "width": 1}},
            **unselected(opacity=1),
        },
        *_credit_keys(palette),
    ]  # fmt: skip
    base = {"showarrow": False, "xref": "paper", "yanchor": "middle",
            "bgcolor": palette.background, "opacity": 0.92, "borderpad": 0,
            "font": {"size": FONT_SIZE, "color": palette.text}}  # fmt: skip
    names = [
        {**base, "text": CREDITS[key].label, "x": 0, "xanchor": "left", "y": index - 0.3}
        for index, key in enumerate(keys)
    ] + [
        {**base, "text": number(value, 3, signed=True), "x": 1, "xanchor": "right", "y": at}
        for at, value in zip(y.tolist(), now.tolist(), strict=True)
    ]
    true = {
        "type": "line", "x0": view.true, "x1": view.true, "yref": "paper", "y0": 0, "y1": 1,
        "line": {"color": palette.text, "width": 1.25, "dash": "dot"}, "layer": "below",
    }  # fmt: skip
    return figure(
        traces,
        palette=palette,
        height=_ROW * len(keys) + 34 + 46,
        margin=(12, 12, 34, 46),
        alt=_describe_credit(view, keys, now, plain),
        barmode="overlay",
        xaxis=centred_axis(
            "expected gradient: towards going on →", top, palette, zeroline=True,
            zerolinecolor=palette.neutral, zerolinewidth=1,
        ),
        yaxis=axis("", palette=palette, range=[len(keys) - 0.5, -0.6], tickvals=[]),
        shapes=[true],
        annotations=names,
        **legend_above(palette),
    )  # fmt: skip


def _credit_keys(palette):
    bar = {"type": "bar", "x": [None], "y": [None], "showlegend": True, "hoverinfo": "skip"}
    line = {"color": palette.faint, "width": 1}
    return [
        {**bar, "name": "with the potential", "marker": {"color": palette.faint}},
        {**bar, "name": "without it", "marker": {"color": CLEAR, "line": line}},
        {"type": "scatter", "mode": "lines", "x": [None], "y": [None], "name": "true",
         "hoverinfo": "skip", "line": {"color": palette.text, "width": 1.25, "dash": "dot"}},
    ]  # fmt: skip


def _describe_bandit(view):
    return (
        "Curves against the weight of B's bonus: expected reward of A less that of B, and the "
        f"expected update of A's logit. At weight {number(view.weight)} they are "
        f"{number(view.reward_gap_now, 3)} and {number(view.update_now, 3)}. B is worth more from "
        f"{number(view.optimum_flip)} on, and is learned from {number(view.update_flip)} on."
    )


def _describe_credit(view, keys, now, plain):
    said = [
        f"{CREDITS[key].label} {number(with_it, 3)} (without it {number(without, 3)})"
        for key, with_it, without in zip(keys, now.tolist(), plain.tolist(), strict=True)
    ]
    return (
        "Bars: expected gradient on the first token with the potential: "
        f"{'; '.join(said)}. True: {number(view.true, 3)}."
    )
