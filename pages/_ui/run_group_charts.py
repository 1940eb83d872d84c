"""Pictures of groups: what made one group's advantages, and all logged against recomputed ones."""

import numpy as np

from .bars import ROW
from .figure import CLEAR, FAR, FONT_SIZE, axis, figure, largest, nice_ceiling, unselected
from .numbers import MISSING, count, exact, number
from .run_chart_panels import LINE, legend_place, legend_rows
from .run_chart_rows import kept_terms, label, looks_of, short_label

MOST_POINTS = 2000  # of a picture
_WORST = 1000  # of them that are the worst; the others are spread over the run
_LEFT, _RIGHT, _BOTTOM = 46, 14, 46
_TERMS, _ADVANTAGES = [0.0, 0.56], [0.64, 1.0]  # parts of the width
_HATCHES = {"solid": "", "dot": "/", "dashdot": "x"}


def group_chart(shown, q, palette, selected=None):
    """One group's completions, best first: what its terms add, and its advantages.

    Parameters
    ----------
    shown : Explained
    q : int
        Index of the group.
    palette : Palette
    selected : int or None
        A completion to mark.

    Returns
    -------
    Figure
        Left: the weighted deviation of each term from its mean in the group, stacked. Right: a
        dot for the logged advantage, a ring for the recomputed one. ``customdata`` is the group
        and the completion.
    """
    parts = weighted_deviations(shown, q)
    order = order_of_group(shown, q)
    points = _advantages(shown, q)
    bars = _stack(parts, order, q, looks_of(palette, shown))
    dots = [_dots(*point, order, q, palette) for point in points.items()]
    rows = legend_rows([(trace["name"], None) for trace in (*bars, *dots)])
    row = ROW if len(order) <= 12 else max(420 / len(order), 4)
    plot, head = max(round(row * len(order)), 40), 6 + LINE * rows
    stacked = [sum(np.maximum(sign * part, 0.0) for part in parts.values()) for sign in (1, -1)]
    reach = nice_ceiling(1.05 * largest(*stacked))
    top = nice_ceiling(1.12 * largest(*points.values()), floor=0.5)
    return figure(
        [*bars, *dots], palette=palette, height=head + plot + _BOTTOM,
        margin=(_LEFT, _RIGHT, head, _BOTTOM), barmode="relative", showlegend=True,
        alt=_describe_group(shown, q, parts, order, points),
        legend=legend_place(1, plot, rows + 1, False, palette),
        xaxis=_signed("weight × deviation", reach, _TERMS if points else [0, 1], palette),
        xaxis2=_signed("advantage", top, _ADVANTAGES, palette, anchor="y"),
        yaxis=_completions(order, row, palette), shapes=_marked(order, selected, palette),
        annotations=[] if largest(*stacked) else [_note("no term differs", palette)],
    )  # fmt: skip


def order_of_group(shown, q):
    """Indices of a group's completions, the highest advantage first.

    By the logged advantage, where there is none by the recomputed one, else by the total.
    """
    sources = [*_advantages(shown, q).values(), sum(weighted_deviations(shown, q).values())]
    there = np.nonzero(shown.run.present[q])[0]
    by = next(values for values in sources if np.any(np.isfinite(values[there])))
    worth = np.where(np.isfinite(by[there]), by[there], -np.inf)
    return there[np.argsort(-worth, kind="stable")]


def weighted_deviations(shown, q):
    """What each term adds to a completion's total, less its mean in the group: name -> (G,).

    A term that gave no score adds 0, as in the total. Of very many terms the smaller ones are
    summed up as ``others``.
    """
    run, weights = shown.run, np.asarray(shown.fit.weights, dtype=np.float64)
    known = np.isfinite(run.terms[q]) & run.present[q][:, None]
    scored = known.any(axis=1)
    with np.errstate(over="ignore"):
        values = np.clip(np.where(known, run.terms[q], 0.0) * weights, -FAR, FAR)
    means = np.sum(values / max(scored.sum(), 1), axis=0)
    each = np.where(scored[:, None], np.clip(values - means, -FAR / 64, FAR / 64), 0.0)
    size = np.max(np.abs(values), axis=0, initial=0.0)
    each = np.where(np.abs(each) <= 1e-12 * size, 0.0, each)  # rounding of a mean
    kept, others = kept_terms(shown)
    parts = {run.names[k]: each[:, k] for k in kept}
    return {**parts, "others": np.sum(each[:, others], axis=1)} if others else parts


def _advantages(shown, q):
    """Advantages of a group as far as there are any: name -> (G,), NaN where none is."""
    run, fit = shown.run, shown.fit
    logged = None if run.advantages is None else run.advantages[q]
    found = {"logged": logged, "recomputed": None if fit.predicted is None else fit.predicted[q]}
    return {
        name: np.where(run.present[q] & np.isfinite(values), values, np.nan)
        for name, values in found.items()
        if values is not None and np.any(np.isfinite(values[run.present[q]]))
    }


def _stack(parts, order, q, looks):
    """A trace of bars for each term, stacked from 0 on by Plotly."""
    cells, traces = [[q, g] for g in order.tolist()], []
    for name, values in parts.items():
        color, dash = looks.of.get(name, (looks.palette.neutral, "solid"))
        said = label(name)
        traces.append({
            "type": "bar", "orientation": "h", "name": short_label(name, len(parts)),
            "x": values[order], "y": np.arange(len(order)), "width": 0.56, "customdata": cells,
            "marker": _bar_look(color, _HATCHES[dash]),
            "hovertext": [f"{said}: {exact(value)}" for value in values[order].tolist()],
            "hovertemplate": "completion %{customdata[1]}<br>%{hovertext}<extra></extra>",
            **unselected(opacity=1),
        })  # fmt: skip
    return traces


def _bar_look(color, hatch):
    if not hatch:
        return {"color": color, "line": {"width": 0}}
    pattern = {"shape": hatch, "size": 5, "solidity": 0.35, "fgcolor": color, "bgcolor": CLEAR}
    return {"color": CLEAR, "line": {"color": color, "width": 1}, "pattern": pattern}


def _dots(name, values, order, q, palette):
    """Logged advantages as dots, recomputed ones as rings around them."""
    at = np.nonzero(np.isfinite(values[order]))[0]
    ring = name == "recomputed"
    symbol = "circle-open" if ring else "circle"
    marker = {"symbol": symbol, "size": 14 if ring else 7, "color": palette.text,
              "line": {"width": 1.5 if ring else 0, "color": palette.text}}  # fmt: skip
    return {
        "type": "scatter", "mode": "markers", "name": name, "xaxis": "x2", "y": at,
        "x": np.clip(values[order[at]], -FAR, FAR), "marker": marker,
        "customdata": [[q, g] for g in order[at].tolist()],
        "hovertext": [f"{name}: {exact(value)}" for value in values[order[at]].tolist()],
        "hovertemplate": "completion %{customdata[1]}<br>%{hovertext}<extra></extra>",
        **unselected(opacity=1),
    }  # fmt: skip


def _signed(title, top, domain, palette, **more):
    return axis(
        title, palette=palette, range=[-top, top], domain=domain, zeroline=True,
        zerolinecolor=palette.neutral, zerolinewidth=1, tickvals=[-top, 0, top], tickangle=0,
        ticktext=[number(tick, 3) for tick in (-top, 0, top)], **more,
    )  # fmt: skip


def _completions(order, row, palette):
    """Completions from the top in their order, each with its own index."""
    places = list(range(0, len(order), max(round(14 / row + 0.49), 1)))
    return axis("completion", palette=palette, range=[max(len(order), 1) - 0.5, -0.5],
                tickvals=places, ticktext=[f"{order[place]} " for place in places])  # fmt: skip


def _marked(order, selected, palette):
    places = [] if selected is None else np.nonzero(order == selected)[0].tolist()
    return [
        {
            "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": y - 0.46, "y1": y + 0.46,
            "fillcolor": palette.panel, "line": {"color": palette.line, "width": 1},
            "layer": "below",
        }
        for y in places
    ]  # fmt: skip


def _note(text, palette):
    return {
        "text": text, "showarrow": False, "xref": "paper", "x": sum(_TERMS) / 2, "yref": "paper",
        "y": 0.5, "bgcolor": palette.background, "font": {"size": FONT_SIZE,
                                                          "color": palette.faint},
    }  # fmt: skip


def _describe_group(shown, q, parts, order, points):
    said = []
    for g in order[:12].tolist():
        terms = [f"{label(name)} {number(values[g], 3, signed=True)}"
                 for name, values in list(parts.items())[:6]]  # fmt: skip
        ends = [f"{name} advantage {number(values[g], 3)}" for name, values in points.items()]
        said.append(f"completion {g}: {', '.join([*terms, *ends])}")
    rest = len(order) - len(said)
    more = f"; and {count(rest, 'more completion')}" if rest else ""
    return (
        f"Bars: weighted deviations of the terms in a group of step {shown.run.steps[q]}, highest "
        f"advantage first; {'; '.join(said) or MISSING}{more}."
    )


def agreement_chart(shown, palette):
    """Logged against recomputed advantages, a point a completion; on the diagonal they agree.

    Parameters
    ----------
    shown : Explained
    palette : Palette

    Returns
    -------
    Figure or None
        None where no advantage was logged or none can be recomputed. Of more than 2,000
        completions the worst 1,000 are drawn and as many of the others. ``customdata`` is the
        group and the completion.
    """
    run, fit = shown.run, shown.fit
    if run.advantages is None or fit.predicted is None:
        return None
    q, g = np.nonzero(run.present & np.isfinite(run.advantages) & np.isfinite(fit.predicted))
    if not q.size:
        return None
    off = np.abs(run.advantages[q, g] - fit.predicted[q, g])
    kept = _worst_and_some(off)
    q, g = q[kept], g[kept]
    misfit = np.isin(q, fit.misfits)
    looks = (
        ("fits", ~fit.tied[q] & ~misfit, "circle", palette.categories[0]),
        ("tied group", fit.tied[q], "square-open", palette.text),
        ("does not fit", misfit & ~fit.tied[q], "x", palette.negative),
    )
    end = nice_ceiling(1.05 * largest(run.advantages[q, g], fit.predicted[q, g]), floor=0.5)
    line = {"type": "line", "x0": -end, "y0": -end, "x1": end, "y1": end, "layer": "below",
            "line": {"color": palette.neutral, "width": 1}}  # fmt: skip
    ends = {"range": [-1.04 * end, 1.04 * end], "nticks": 7, "showgrid": True, "zeroline": True,
            "zerolinecolor": palette.line, "zerolinewidth": 1}  # fmt: skip
    return figure(
        [_points(shown, q[which], g[which], *look) for *look, which in _reordered(looks)],
        palette=palette, height=340, margin=(52, _RIGHT, 10 + LINE, _BOTTOM), showlegend=True,
        alt=_describe_agreement(shown, off, len(kept)), shapes=[line],
        legend=legend_place(1, 340 - _BOTTOM - LINE - 10, 2, False, palette),
        xaxis=axis("recomputed advantage", palette=palette, **ends),
        yaxis=axis("logged advantage", palette=palette, **ends),
    )  # fmt: skip


def _reordered(looks):
    return [(name, symbol, color, which) for name, which, symbol, color in looks if which.any()]


def _worst_and_some(off):
    """Indices of the largest values and of others spread evenly, at most 2,000 in all."""
    if len(off) <= MOST_POINTS:
        return np.arange(len(off))
    order = np.argsort(-off, kind="stable")
    rest = np.sort(order[_WORST:])
    spread = np.linspace(0, len(rest) - 1, MOST_POINTS - _WORST).astype(int)
    return np.sort(np.concatenate([order[:_WORST], rest[spread]]))


def _points(shown, q, g, name, symbol, color):
    logged, recomputed = shown.run.advantages[q, g], shown.fit.predicted[q, g]
    hover = [
        f"step {step}, completion {at}<br>logged {exact(a)}<br>recomputed {exact(b)}"
        for step, at, a, b in zip(
            shown.run.steps[q].tolist(), g.tolist(), logged.tolist(), recomputed.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    return {
        "type": "scatter", "mode": "markers", "name": name, "hovertext": hover,
        "x": np.clip(recomputed, -FAR, FAR), "y": np.clip(logged, -FAR, FAR),
        "customdata": np.stack([q, g], axis=1).tolist(),
        "hovertemplate": "%{hovertext}<extra>" + name + "</extra>",
        "marker": {"symbol": symbol, "size": 6, "color": color,
                   "opacity": 0.6 if symbol == "circle" else 1},
        **unselected(opacity=0.6 if symbol == "circle" else 1),
    }  # fmt: skip


def _describe_agreement(shown, off, drawn):
    of = "" if drawn == len(off) else f" ({drawn:,} are drawn, the worst among them)"
    return (
        f"Points: logged against recomputed advantages of {count(len(off), 'completion')}{of}; "
        f"they differ by at most {number(float(np.max(off)), 3)}, "
        f"{count(len(shown.fit.misfits), 'group')} do not fit and "
        f"{int(np.sum(shown.fit.tied)):,} are tied."
    )


def residue_chart(shown, palette):
    """Logged advantages in tied groups, where 0 would be right, against the step.

    Parameters
    ----------
    shown : Explained
    palette : Palette

    Returns
    -------
    Figure or None
        None where no group is tied or no advantage was logged there. Of more than 2,000
        completions the largest 1,000 are drawn and as many of the others.
    """
    run = shown.run
    if run.advantages is None:
        return None
    q, g = np.nonzero(run.present & np.isfinite(run.advantages) & shown.fit.tied[:, None])
    if not q.size:
        return None
    every = np.abs(run.advantages[q, g])
    kept = _worst_and_some(every)
    q, g = q[kept], g[kept]
    values = np.clip(run.advantages[q, g], -FAR, FAR)
    top = nice_ceiling(1.08 * largest(values)) if values.any() else 1e-6
    first, last = run.steps[[0, -1]].astype(float).tolist()
    room = max(0.02 * (last - first), 0.5, 1e-6 * abs(last))
    ticks = {"tick0": 0, "dtick": 1} if last - first < 6 else {"nticks": 7}
    hover = [
        f"step {step}, completion {at}<br>logged {exact(value)}"
        for step, at, value in zip(
            run.steps[q].tolist(), g.tolist(), values.tolist(), strict=True
        )
    ]  # fmt: skip
    trace = {
        "type": "scatter", "mode": "markers", "name": "tied", "x": run.steps[q], "y": values,
        "customdata": np.stack([q, g], axis=1).tolist(), "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {"symbol": "square-open", "size": 6, "color": palette.text},
        **unselected(opacity=1),
    }  # fmt: skip
    return figure(
        [trace], palette=palette, height=340, margin=(64, _RIGHT, 10, _BOTTOM),
        alt=f"Points: logged advantages of {count(len(every), 'completion')} in "
        f"{count(len(np.unique(np.nonzero(shown.fit.tied)[0])), 'tied group')} by step, where 0 "
        f"is right; the largest is {number(float(np.max(every)), 3)}.",
        xaxis=axis("training step", palette=palette, range=[first - room, last + room],
                   tickangle=0, tickformat="d", **ticks),
        yaxis=axis("logged advantage", palette=palette, range=[-top, top], zeroline=True,
                   zerolinecolor=palette.neutral, zerolinewidth=1, showgrid=True,
                   tickvals=[-top, -top / 2, 0, top / 2, top],
                   ticktext=[number(tick, 3) for tick in (-top, -top / 2, 0, top / 2, top)]),
    )  # fmt: skip
