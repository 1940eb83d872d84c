"""Bars for each prompt of a batch, several quantities or ways side by side."""

import numpy as np

from .figure import CLEAR, FONT_SIZE, axis, figure, largest, nice_ceiling
from .numbers import count, exact, number

MOST = 24  # prompts drawn
_BAR = 15  # pixels


def prompt_bars(columns, *, palette, title, colors=None, chosen=None, notes=None):
    """Horizontal bars, a block for each prompt and in it a bar for each column.

    Parameters
    ----------
    columns : mapping of str to array (P,)
        Numbers of at least 0; NaN has no bar.
    title : str
        Of the axis, with the unit.
    colors : sequence of str, optional
        One for each column.
    chosen : str, optional
        This column is solid, the others are lighter; all are solid without it.
    notes : sequence of str, optional
        What stands beside each prompt's number, (P,).
    """
    values = {name: np.asarray(column, dtype=np.float64)[:MOST] for name, column in columns.items()}
    P = len(next(iter(values.values())))
    if max(len(column) for column in columns.values()) > P:
        title = f"{title}, first {P} prompts"
    colors = list(colors or palette.categories[2:])
    top = nice_ceiling(1.22 * largest(*values.values()))
    width = 0.84 / len(values)
    traces = [
        {
            "type": "bar", "orientation": "h", "name": name,
            "x": np.minimum(np.nan_to_num(column), top),
            "y": np.arange(P) + (index - (len(values) - 1) / 2) * width, "width": 0.88 * width,
            "text": [number(value, 3) for value in column.tolist()], "textposition": "outside",
            "constraintext": "none", "cliponaxis": False,
            "textfont": {"size": FONT_SIZE - 1, "color": palette.text},
            "customdata": [exact(value) for value in column.tolist()],
            "hovertemplate": f"{name}<br>%{{customdata}}<extra></extra>",
            "marker": {"color": colors[index % len(colors)], "line": {"width": 0},
                       "opacity": 1 if chosen in (None, name) else 0.6},
        }
        for index, (name, column) in enumerate(values.items())
    ]  # fmt: skip
    names = [f"prompt {p}{_beside(notes, p)} " for p in range(P)]
    legend = 20 * len(values) + 6
    return figure(
        traces, palette=palette, margin=(96, 20, legend, 46), barmode="overlay",
        height=max(_BAR * len(values) + 8, 34) * P + legend + 46,
        alt=_describe(values, title, P),
        xaxis=axis(title, palette=palette, range=[0, top], nticks=6, zeroline=True,
                   zerolinecolor=palette.neutral),
        yaxis=axis("", palette=palette, range=[P - 0.5, -0.5], tickvals=list(range(P)),
                   ticktext=names),
        showlegend=True,
        legend={"orientation": "v", "x": 0, "xref": "container", "xanchor": "left", "y": 1,
                "yref": "container", "yanchor": "top", "bgcolor": CLEAR, "itemclick": False,
                "itemdoubleclick": False, "traceorder": "normal",
                "font": {"size": FONT_SIZE - 1, "color": palette.faint}},
    )  # fmt: skip


def _beside(notes, p):
    return f" <br>{notes[p]}" if notes is not None and notes[p] else ""


def _describe(values, title, P):
    said = [
        f"{name} {', '.join(number(value, 3) for value in column[:8].tolist())}"
        for name, column in values.items()
    ]
    return f"Bars: {title} of {count(P, 'prompt')}: {'; '.join(said)}."
