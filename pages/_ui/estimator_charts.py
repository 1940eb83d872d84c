"""The KL estimators over two small distributions: what samples say, and whose gradient each has."""

import numpy as np

from .figure import CLEAR, FONT_SIZE, axis, figure, largest, nice_ceiling
from .kl_charts import estimator_color
from .numbers import exact, number

_GAP = 0.06  # between pictures side by side, as a share of the width


def sample_means(comparison, samples, *, palette):
    """Mean of the first n samples against n, a picture for each estimator on one scale.

    Parameters
    ----------
    comparison : grpo_core.estimators.Comparison
    samples : mapping of str to grpo_core.estimators.Samples
    palette : Palette

    Returns
    -------
    Figure
        Line: one run. Band: the middle 90% of all runs. Solid rule: the exact KL. Dashed
        rule: the estimator's own expectation, where that is another number.
    """
    low, high = _reach(comparison, samples)
    traces, shapes, notes, axes = [], [], [], {}
    for index, (key, row) in enumerate(comparison.estimators.items()):
        held = samples[key]
        color = estimator_color(key, palette)
        traces += _mean_traces(held, key, index, color, low, high)
        shapes += _rules(row, comparison, index, palette, color)
        notes.append(_title(row, index, len(samples), palette, _bias_words(row)))
        axes |= _axes(
            index, len(samples), palette,
            {"title": "samples n", "type": "log", "range": [0, np.log10(held.counts[-1])],
             "tickvals": [1, 10, 100, 1000], "ticktext": ["1", "10", "100", "1k"]},
            {"title": "mean of n samples (nats)", "range": [low, high], "nticks": 6},
        )  # fmt: skip
    return figure(
        traces, palette=palette, height=330, margin=(58, 14, 44, 46),
        alt=_describe_means(comparison, samples), shapes=shapes, annotations=notes, **axes,
    )  # fmt: skip


def _reach(comparison, samples):
    """Range of the common axis: the KL and the bands, without the first few samples' extremes."""
    later = slice(len(next(iter(samples.values())).counts) // 4, None)
    bands = [end[later] for held in samples.values() for end in (held.low, held.high)]
    seen = np.concatenate([*bands, [row.expected for row in comparison.estimators.values()]])
    seen = np.concatenate([seen[np.isfinite(seen)], [0.0]])
    if np.isfinite(comparison.reverse):
        seen = np.append(seen, comparison.reverse)
    high, low = nice_ceiling(1.05 * seen.max()), -nice_ceiling(-1.05 * seen.min())
    return (low if seen.min() < 0 else -0.06 * high), high


def _mean_traces(held, key, index, color, low, high):
    place = {"xaxis": f"x{index + 1}" if index else "x", "yaxis": f"y{index + 1}" if index else "y"}

    def inside(values):
        return np.clip(values, low, high)

    band = {"type": "scatter", "mode": "lines", "x": held.counts, "hoverinfo": "skip",
            "line": {"width": 0, "color": color}, **place}  # fmt: skip
    hover = [f"{n} samples: mean {exact(mean)}" for n, mean in
             zip(held.counts.tolist(), held.running.tolist(), strict=True)]  # fmt: skip
    return [
        {**band, "y": inside(held.low), "name": f"{key} low"},
        {**band, "y": inside(held.high), "name": f"{key} high", "fill": "tonexty",
         "fillcolor": _faded(color)},
        {"type": "scatter", "mode": "lines", "name": key, "x": held.counts,
         "y": np.where(np.isfinite(held.running), inside(held.running), np.nan),
         "line": {"color": color, "width": 2}, "hovertext": hover,
         "hovertemplate": "%{hovertext}<extra></extra>", **place},
    ]  # fmt: skip


def _faded(color):
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


def _rules(row, comparison, index, palette, color):
    """The exact KL, and the expectation of an estimator that has another one."""
    name = f"x{index + 1} domain" if index else "x domain"
    base = {"type": "line", "xref": name, "x0": 0, "x1": 1, "yref": f"y{index + 1}" if index
            else "y", "layer": "below"}  # fmt: skip
    rules = []
    if np.isfinite(comparison.reverse):
        line = {"color": palette.text, "width": 1.25}
        rules.append({**base, "y0": comparison.reverse, "y1": comparison.reverse, "line": line})
    if row.bias and np.isfinite(row.expected):
        line = {"color": color, "width": 1.25, "dash": "dash"}
        rules.append({**base, "y0": row.expected, "y1": row.expected, "line": line})
    return rules


def _bias_words(row):
    if not np.isfinite(row.expected):
        return "infinite"
    return f"bias {number(row.bias, 3, signed=True)}" if row.bias else "no bias"


def expected_gradients(comparison, *, palette):
    """Expected gradient of each estimator by the policy's logits, beside those of the two KLs.

    Returns
    -------
    Figure
        Bars: the estimator's, a bar per token. Circles: the gradient of KL(policy ||
        reference). Diamonds: that of KL(reference || policy).
    """
    targets = (
        ("KL(policy ‖ reference)", "circle-open", comparison.reverse_gradient),
        ("KL(reference ‖ policy)", "diamond-open", comparison.forward_gradient),
    )
    rows = comparison.estimators
    drawn = [row.gradient for row in rows.values()] + [target for *_, target in targets]
    top = nice_ceiling(1.1 * largest(*drawn))
    tokens = list(range(len(comparison.new)))
    traces, notes, axes = [], [], {}
    for index, row in enumerate(rows.values()):
        place = {"xaxis": f"x{index + 1}" if index else "x",
                 "yaxis": f"y{index + 1}" if index else "y"}  # fmt: skip
        traces += _gradient_traces(row, targets, tokens, place, index == 0, palette)
        notes.append(_title(row, index, len(rows), palette, _whose(row)))
        axes |= _axes(
            index, len(rows), palette,
            {"title": "token", "tickvals": tokens, "range": [-0.6, len(tokens) - 0.4]},
            {"title": "expected gradient by logit", "range": [-top, top], "nticks": 5},
        )  # fmt: skip
    return figure(
        traces, palette=palette, height=320, margin=(58, 14, 70, 46),
        alt=_describe_gradients(comparison), annotations=notes, showlegend=True,
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yref": "container",
                "yanchor": "top", "font": {"size": FONT_SIZE, "color": palette.faint},
                "itemclick": False, "itemdoubleclick": False, "bgcolor": CLEAR},
        **axes,
    )  # fmt: skip


def _whose(row):
    """Whose gradient an estimator has, as short as the mark of a KL."""
    if row.gradient is None:
        return "infinite"
    if not np.any(row.gradient):
        return "= 0"
    return {"reverse": "= ○", "forward": "= ◇", "both": "= ○ = ◇", "neither": "≠ ○, ≠ ◇"}[
        row.gradient_of
    ]


def _gradient_traces(row, targets, tokens, place, named, palette):
    traces = []
    if row.gradient is not None:
        traces.append({
            "type": "bar", "name": row.label, "x": tokens, "y": row.gradient, "width": 0.5,
            "marker": {"color": estimator_color(row.key, palette), "opacity": 0.75,
                       "line": {"width": 0}},
            "customdata": [exact(value) for value in row.gradient.tolist()], "showlegend": False,
            "hovertemplate": "token %{x}<br>gradient %{customdata}<extra></extra>", **place,
        })  # fmt: skip
    for name, symbol, target in targets:
        if target is not None:
            traces.append({
                "type": "scatter", "mode": "markers", "name": name, "x": tokens, "y": target,
                "marker": {"symbol": symbol, "size": 11, "color": palette.text,
                           "line": {"width": 1.5}},
                "customdata": [exact(value) for value in target.tolist()], "showlegend": named,
                "hovertemplate": f"token %{{x}}<br>{name} %{{customdata}}<extra></extra>", **place,
            })  # fmt: skip
    return traces


def _title(row, index, many, palette, words):
    start, _ = _domain(index, many)
    base = {"xref": "paper", "yref": "paper", "x": start, "y": 1, "xanchor": "left",
            "yanchor": "bottom", "showarrow": False, "align": "left"}  # fmt: skip
    color = estimator_color(row.key, palette)
    text = f"<b><span style='color:{color}'>{row.label}</span></b>  {words}"
    return {**base, "text": text, "yshift": 6, "font": {"size": FONT_SIZE, "color": palette.faint}}


def _domain(index, many):
    width = (1 - _GAP * (many - 1)) / many
    start = index * (width + _GAP)
    return start, min(start + width, 1.0)


def _axes(index, many, palette, across, up):
    """A pair of axes; only the first picture's vertical one is written."""
    suffix = str(index + 1) if index else ""
    title = up.pop("title") if index == 0 else up.pop("title") and ""
    return {
        f"xaxis{suffix}": axis(across.pop("title"), palette=palette, anchor=f"y{suffix}",
                               domain=list(_domain(index, many)), showline=True,
                               linecolor=palette.line, **across),
        f"yaxis{suffix}": axis(title, palette=palette, anchor=f"x{suffix}", showgrid=True,
                               zeroline=True, zerolinecolor=palette.neutral, zerolinewidth=1,
                               showticklabels=index == 0, **up),
    }  # fmt: skip


def _describe_means(comparison, samples):
    parts = [
        f"{key} {number(held.running[-1])}, 90% of runs from {number(held.low[-1])} to "
        f"{number(held.high[-1])}"
        for key, held in samples.items()
    ]
    most = int(next(iter(samples.values())).counts[-1])
    exactly = number(comparison.reverse)
    return f"Mean of up to {most} samples, exact KL {exactly}: {'; '.join(parts)}."


def _describe_gradients(comparison):
    parts = [f"{key} {_whose(row)}" for key, row in comparison.estimators.items()]
    return (
        f"Bars: expected gradient by each logit: {'; '.join(parts)}, where ○ is the gradient of "
        "KL(policy ‖ reference) and ◇ that of KL(reference ‖ policy)."
    )
