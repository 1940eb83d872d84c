"""The batch under every aggregation, side by side: a table, and what a first token weighs."""

import numpy as np
import pandas as pd

from .bars import ROW
from .figure import CLEAR, FONT_SIZE, axis, figure, largest, nice_ceiling, tick_step, unselected
from .numbers import count, exact, number
from .quantities import present

CHOSEN = "●"
_PATTERNS = ("", "/", ".", "x", "-")


def aggregation_frame(rows):
    """Objective, loss, mean KL and gradient norm, a row per aggregation, the chosen one marked.

    Parameters
    ----------
    rows : sequence of grpo_core.breakdown.Aggregated
    """
    return pd.DataFrame(
        {
            "objective": [number(row.evaluation.objective) for row in rows],
            "loss": [number(row.evaluation.loss) for row in rows],
            "mean KL": [number(row.evaluation.mean_kl) for row in rows],
            "gradient norm": [number(row.evaluation.metrics["gradient_norm"]) for row in rows],
        },
        index=pd.Index([_name(row) for row in rows], name="aggregation"),
    )


def _name(row):
    return f"{CHOSEN} {row.label}" if row.chosen else row.label


def first_weight_bars(rows, prompt, *, palette, selected=None):
    """Weight of the first token of each completion of a prompt, a bar per aggregation.

    Parameters
    ----------
    rows : sequence of grpo_core.breakdown.Aggregated
    prompt : int
    palette : Palette
    selected : (int, int, int) or None
        A click keeps its token.

    Returns
    -------
    Figure
        The chosen aggregation is solid and outlined, the others are patterned.
    """
    evaluation = rows[0].evaluation
    (there,) = np.nonzero(present(evaluation)[prompt])
    lengths = evaluation.lengths[prompt, there].tolist()
    weights = [row.first_weight[prompt, there] for row in rows]
    top = nice_ceiling(1.3 * largest(*weights))
    at = np.arange(len(there))
    width = 0.8 / len(rows)
    height = min(max(13 * len(rows) + 8, ROW), 480 / max(len(at), 1))
    traces = [
        _series(row, values, at + (index - (len(rows) - 1) / 2) * width, width, top,
                [[prompt, g, selected[2] if selected else 0] for g in there.tolist()],
                _look(index, row.chosen, rows, palette), palette, 12 * len(rows) <= height)
        for index, (row, values) in enumerate(zip(rows, weights, strict=True))
    ]  # fmt: skip
    step = tick_step(top, ticks=4)
    ticks = (step * np.arange(np.floor(top / step) + 1)).tolist()
    names = [f"{g} ({count(n, 'token')}) " for g, n in zip(there.tolist(), lengths, strict=True)]
    legend = 18 * len(rows)
    return figure(
        traces, palette=palette, height=round(height * len(at)) + legend + 46 + 8,
        margin=(96, 12, legend + 8, 46), alt=_describe(rows, prompt, there, weights),
        barmode="overlay",
        xaxis=axis("weight of its first token (share of the objective)", palette=palette,
                   range=[0, top], tickvals=ticks, ticktext=[number(tick, 3) for tick in ticks],
                   zeroline=True, zerolinecolor=palette.neutral, zerolinewidth=1),
        yaxis=axis("", palette=palette, range=[max(len(at), 1) - 0.5, -0.5], tickvals=at,
                   ticktext=names),
        showlegend=True,
        legend={"orientation": "v", "x": 0, "xanchor": "left", "y": 1, "yref": "container",
                "yanchor": "top", "font": {"size": FONT_SIZE, "color": palette.faint},
                "itemclick": False, "itemdoubleclick": False, "bgcolor": CLEAR,
                "traceorder": "normal"},
    )  # fmt: skip


def _series(row, values, y, width, top, cells, look, palette, written):
    return {
        "type": "bar", "orientation": "h", "name": _name(row), "x": np.minimum(values, top), "y": y,
        "width": 0.86 * width, "showlegend": True, "marker": look,
        "text": [number(value, 3) for value in values.tolist()] if written else None,
        "textposition": "outside", "cliponaxis": False, "constraintext": "none",
        "textfont": {"size": FONT_SIZE - 1, "color": palette.text},
        "customdata": cells, "hovertext": [exact(value) for value in values.tolist()],
        "hovertemplate": f"{row.label}<br>completion %{{customdata[1]}}: "
        "weight %{hovertext}<extra></extra>",
        **unselected(opacity=1),
    }  # fmt: skip


def _look(index, chosen, rows, palette):
    """Solid for the chosen; a colour and a pattern of its own for each of the others."""
    colors = palette.categories[2:]  # the first two mean positive and negative
    color = colors[index % len(colors)]
    if chosen:
        return {"color": color, "line": {"color": color, "width": 1}}
    others = [i for i, row in enumerate(rows) if not row.chosen]
    shape = _PATTERNS[1 + others.index(index) % (len(_PATTERNS) - 1)]
    return {
        "color": CLEAR, "line": {"color": color, "width": 1},
        "pattern": {"shape": shape, "size": 5, "solidity": 0.3, "fgcolor": color,
                    "bgcolor": CLEAR},
    }  # fmt: skip


def _describe(rows, prompt, there, weights):
    said = [
        f"{row.label} from {number(float(np.min(values)), 3)} to {number(float(np.max(values)), 3)}"
        for row, values in zip(rows, weights, strict=True)
        if len(values)
    ]
    what = f"weight of the first token of {count(len(there), 'completion')} of prompt {prompt}"
    return f"Bars: {what}: {'; '.join(said)}."
