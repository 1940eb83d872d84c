"""Silent groups against the success rate and the group size, and what dynamic sampling keeps."""

import numpy as np

from .difficulty_axes import axis_of_rates, crosses, legend, points
from .difficulty_worlds import GRID
from .figure import FONT_SIZE, axis, figure, nice_ceiling
from .numbers import exact, number, percent

_PERCENT = {"tickvals": [0, 0.25, 0.5, 0.75, 1], "ticktext": ["0%", "25%", "50%", "75%", "100%"]}


def rate_chart(now, *, palette, former=None):
    """Probability of a tie against the success rate, the table's prompts on it.

    Parameters
    ----------
    now, former : `Silent`, the latter or None
    palette : Palette
    """
    traces = []
    if former is not None and _differs(now, former):
        if former.curve is not None:
            traces.append(_line(GRID, former.curve, "before", palette.faint, 1.25))
        look = {"symbol": "circle-open", "size": 9, "color": palette.faint, "line": {"width": 1}}
        traces.append({**_dots(former, look), "hoverinfo": "skip", "name": "before",
                       "showlegend": former.curve is None})  # fmt: skip
    if now.curve is not None:
        traces.append(_line(GRID, now.curve, f"groups of {now.G}", palette.categories[2], 2.5))
    marker = {"size": 10, "color": palette.categories[2],
              "line": {"color": palette.background, "width": 1.25}}  # fmt: skip
    traces.append({**_dots(now, marker), "showlegend": now.curve is None})
    line = {"color": palette.text, "width": 1, "dash": "dash"}
    mean = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": now.share, "y1": now.share,
            "line": line, "layer": "below"}  # fmt: skip
    label = {"text": f"mean {percent(now.share)}", "xref": "paper", "x": 0.5, "y": now.share,
             "yanchor": "bottom", "showarrow": False,
             "font": {"size": FONT_SIZE - 1, "color": palette.text}}  # fmt: skip
    return figure(
        traces, palette=palette, height=330, margin=(58, 16, 40, 46), alt=_describe_rates(now),
        showlegend=True, legend=legend(palette), shapes=[mean], annotations=[label],
        xaxis=axis_of_rates(now.prompts, now.graded, palette),
        yaxis=_shares("probability of a tie", palette),
    )  # fmt: skip


def _differs(now, former):
    return former.G != now.G or not np.array_equal(former.probability, now.probability)


def _line(x, y, name, color, width, **more):
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "hoverinfo": "skip",
            "line": {"color": color, "width": width}, **more}  # fmt: skip


def _dots(now, marker):
    return {
        "type": "scatter", "mode": "markers", "name": f"groups of {now.G}",
        "marker": marker, "cliponaxis": False,
        **points(now.prompts.mean, now.probability,
                 customdata=[percent(value) for value in now.probability.tolist()]),
        "hovertemplate": "%{x:.4~g}: %{customdata} of groups tie<extra></extra>",
    }  # fmt: skip


def _shares(title, palette):
    return axis(title, palette=palette, range=[-0.02, 1.03], showgrid=True, **_PERCENT)


def size_chart(now, *, palette, former=None):
    """Share of silent groups against the group size: the table's prompts, and the batch.

    Thin: each kind of prompt. Thick: all of them, equally frequent. Dotted: rates spread
    evenly from 0 to 1. Diamonds: what the batch shows up to its own size.
    """
    color = palette.categories[2]
    traces = [
        _line(now.sizes, each, "each kind", palette.neutral, 0.75, showlegend=index == 0)
        for index, each in enumerate(now.by_size)
    ]
    if former is not None and not np.array_equal(former.by_size, now.by_size):
        traces.append(
            _line(former.sizes, former.by_size.mean(axis=0), "before", palette.faint, 1.25)
        )
    mean = now.by_size.mean(axis=0)
    traces.append({
        **_line(now.sizes, mean, "all kinds", color, 2.5), "hoverinfo": None,
        "customdata": [percent(value) for value in mean.tolist()],
        "hovertemplate": "groups of %{x}: %{customdata} silent<extra></extra>",
    })  # fmt: skip
    if not now.graded:
        dotted = {"color": palette.categories[4], "width": 1.5, "dash": "dot"}
        traces.append({
            **_line(now.sizes, 2 / (now.sizes + 1), "rates spread evenly, 2/(G + 1)", "", 1),
            "line": dotted,
        })  # fmt: skip
    traces.append({
        "type": "scatter", "mode": "markers", "name": "this batch", "x": now.batch_sizes,
        "y": now.batch_ties, "cliponaxis": False,
        "marker": {"symbol": "diamond-open", "size": 9, "color": palette.text,
                   "line": {"width": 1.5}},
        "customdata": [percent(value) for value in now.batch_ties.tolist()],
        "hovertemplate": "any %{x} answers of a group: equal in %{customdata}<extra></extra>",
    })  # fmt: skip
    ticks = [size for size in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if size <= now.sizes[-1]]
    chosen = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": now.G, "x1": now.G,
              "line": {"color": palette.text, "width": 1, "dash": "dash"},
              "layer": "below"}  # fmt: skip
    span = np.log10([1.9, 1.05 * now.sizes[-1]]).tolist()
    return figure(
        traces, palette=palette, height=330, margin=(58, 16, 66, 46), alt=_describe_sizes(now),
        showlegend=True, legend=legend(palette), shapes=[chosen],
        xaxis=axis("group size G", palette=palette, type="log", range=span, tickvals=ticks,
                   ticktext=[str(tick) for tick in ticks], showline=True,
                   linecolor=palette.line),
        yaxis=_shares("share of silent groups", palette),
    )  # fmt: skip


def kept_chart(now, drawn, *, palette):
    """Share of each kind of prompt among the groups drawn, and among those kept."""
    exactly, seen = drawn.exact, drawn.sampled
    kept = 100 * exactly.kept_share
    top = nice_ceiling(1.1 * max(np.nanmax(np.append(kept, 0)), 100 * exactly.drawn_share[0]))
    x = now.prompts.mean
    order = np.argsort(x, kind="stable")
    traces = [
        _line(x[order], 100 * exactly.drawn_share[order], "drawn", palette.faint, 1.5),
        {
            "type": "scatter", "mode": "markers" if now.graded else "lines+markers",
            "name": "kept", **points(x[order], kept[order], customdata=[
                exact(value) for value in kept[order].tolist()
            ]),
            "line": {"color": palette.categories[3], "width": 1.5},
            "marker": {"size": 9, "color": palette.categories[3]}, "cliponaxis": False,
            "hovertemplate": "%{x:.4~g}: %{customdata}% of the groups kept<extra></extra>",
        },
    ]  # fmt: skip
    if seen is not None:
        traces.append(crosses(x, 100 * seen.kept_share.mean, 100 * seen.kept_share.error, palette))
    return figure(
        traces, palette=palette, height=330, margin=(52, 16, 62, 46),
        alt=_describe_kept(now, exactly), showlegend=True, legend=legend(palette),
        xaxis=axis_of_rates(now.prompts, now.graded, palette),
        yaxis=axis("share of the groups (%)", palette=palette, range=[0, top], nticks=6,
                   showgrid=True),
    )  # fmt: skip


def _pairs(x, values):
    return ", ".join(
        f"{number(a, 3)}: {percent(b)}" if np.isfinite(b) else f"{number(a, 3)}: none"
        for a, b in zip(x[:12].tolist(), values[:12].tolist(), strict=True)
    )


def _describe_rates(now):
    what = "mean reward" if now.graded else "success rate"
    said = _pairs(now.prompts.mean, now.probability)
    return (
        f"Probability of a tie in groups of {now.G} by {what}: {said}. Mean {percent(now.share)}."
    )


def _describe_sizes(now):
    at = np.unique(np.searchsorted(now.sizes, [2, 4, 8, 16, 64]).clip(0, len(now.sizes) - 1))
    said = _pairs(now.sizes[at], now.by_size.mean(axis=0)[at])
    return f"Share of silent groups by group size: {said}."


def _describe_kept(now, exactly):
    return (
        f"Of the groups drawn each kind is {percent(exactly.drawn_share[0])}; of those kept: "
        f"{_pairs(now.prompts.mean, exactly.kept_share)}."
    )
