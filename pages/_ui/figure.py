"""What all figures share: frame, axes, alt text, and numbers that do not jump."""

import math

import numpy as np
import plotly.graph_objects as go

# Passed to st.plotly_chart(config=...): a picture to keep and nothing else.
CONFIG = {
    "displaylogo": False,
    "displayModeBar": "hover",
    "modeBarButtons": [["toImage"]],
    "toImageButtonOptions": {"format": "svg", "filename": "grpo-explorer", "scale": 1},
    "scrollZoom": False,
    "doubleClick": "reset",
}

FONT_SIZE = 12
FONTS = '"Source Sans", "Source Sans 3", "Source Sans Pro", sans-serif'  # the app's own
CLEAR = "rgba(0,0,0,0)"
# Plotly's own "none" written out; the default template weighs 7 kB a figure.
NO_TEMPLATE = {"data": {"scatter": [{"type": "scatter"}]}}
FAR = 1e300  # pictures end here, so that sums and differences of what they draw stay finite
_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


def figure(traces, *, palette, height, margin, alt, **layout):
    """A figure in the house style; ``margin`` is (left, right, top, bottom) in pixels."""
    left, right, top, bottom = margin
    frame = {
        "height": height,
        "margin": {"l": left, "r": right, "t": top, "b": bottom, "pad": 0},
        "autosize": True,
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"family": FONTS, "size": FONT_SIZE, "color": palette.faint},
        "template": NO_TEMPLATE,
        "colorway": list(palette.categories),
        "showlegend": False,
        "hovermode": "closest",
        "hoverdistance": 100,  # markers stand at the middle of cells that may be wide
        "dragmode": False,
        "uirevision": "constant",
        "modebar": {
            "bgcolor": CLEAR, "color": palette.faint, "activecolor": palette.text,
        },
        "hoverlabel": {
            "bgcolor": palette.panel,
            "bordercolor": palette.line,
            "font": {"color": palette.text, "size": FONT_SIZE},
            "align": "left",
        },
        "meta": {"alt": alt},
    }  # fmt: skip
    # Plotly's check of every property takes three quarters of the time that a figure takes, in
    # every rerun, and can only find a mistake of ours: the tests make it instead.
    return go.Figure(data=traces, layout={**frame, **layout}, _validate=False)


def axis(title, *, palette, **settings):
    """An axis with a quiet title, without grid or zero line, that does not grow its margin."""
    base = {
        "title": {
            "text": title,
            "font": {"size": FONT_SIZE, "color": palette.faint},
            "standoff": 6,
        },
        "tickfont": {"size": FONT_SIZE - 1, "color": palette.faint},
        "showgrid": False,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "automargin": False,
        "fixedrange": True,
        "gridcolor": palette.line,
    }
    return {**base, **settings}


def heading(title, subtitle, *, palette, left):
    """Two lines at the top left as annotations, which no theme moves or makes bold."""
    place = {
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": 1,
        "xanchor": "left",
        "yanchor": "bottom",
        "xshift": -left,
        "showarrow": False,
    }
    return [
        {**place, "text": title, "yshift": 18, "font": {"size": FONT_SIZE + 2,
                                                        "color": palette.text}},
        {**place, "text": subtitle, "yshift": 2, "font": {"size": FONT_SIZE - 1,
                                                          "color": palette.faint}},
    ]  # fmt: skip


def alt_text(chart):
    """What a screen reader says of a figure."""
    return chart.layout.meta["alt"]


def nice_ceiling(value, floor=0.0):
    """The next round number at or above a magnitude, so that axes hold still in small edits.

    At most `FAR`: the browser, too, takes differences of an axis's ends.
    """
    value = min(max(float(value), floor), FAR)
    if not value > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    if power == 0:  # below the smallest power of ten that has a double
        return value
    found = next((step * power for step in _STEPS if step * power >= value), value)
    return min(found, FAR)


def tick_step(span, ticks=7):
    """Distance between about so many ticks: 1, 2 or 5 times a power of ten."""
    rough = float(span) / ticks
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 0.0
    if power == 0:  # below the smallest power of ten that has a double
        return float(span)
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough)


def largest(*arrays):
    """Largest finite magnitude in some arrays, 0 if there is none."""
    sizes = [np.max(np.abs(a), where=np.isfinite(a), initial=0.0) for a in arrays if a is not None]
    return float(max(sizes, default=0.0))


def unselected(**style):
    """Marker settings that keep a trace as it is while another one's point is selected."""
    return {"selected": {"marker": style}, "unselected": {"marker": style}}


def legend_bars(looks):
    """Bars that stand in the legend only, from (name, marker); none where one look is all."""
    return [
        {"type": "bar", "x": [None], "y": [None], "name": name, "marker": marker,
         "showlegend": True, "hoverinfo": "skip"}
        for name, marker in looks if len(looks) > 1
    ]  # fmt: skip


def legend_above(palette):
    """A legend in one line above the plot, inside the margin that is kept for it."""
    return {
        "showlegend": True,
        "legend": {
            "orientation": "h", "x": 1, "xanchor": "right",
            "y": 1, "yref": "container", "yanchor": "top",
            "font": {"size": FONT_SIZE, "color": palette.faint}, "itemclick": False,
            "itemdoubleclick": False, "bgcolor": CLEAR, "traceorder": "normal",
        },
    }  # fmt: skip
