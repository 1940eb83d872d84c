"""Bars of the clip cases: the share of the tokens, and of the gradient, side by side."""

from grpo_core.clip_cases import clip_cases

from .figure import CLEAR, FONT_SIZE, axis, figure, unselected
from .numbers import count, percent

_ROW = 40
_TOP = 30
_WIDTH = 0.3
_TOKENS = {"share": "share", "shift": -0.17}
_GRADIENT = {"share": "gradient", "shift": 0.17}


def case_bars(evaluation, *, palette, prompts=None, former=None, pinned=None, selected=None):
    """Two bars for each clip case: its share of the tokens and of the unclipped gradient.

    Parameters
    ----------
    evaluation : Evaluation
    palette : Palette
    prompts : int, sequence of int, or None
        Whose tokens are counted; None is all.
    former : Evaluation or None
        Thin outlines where a share was another one.
    pinned : Evaluation or None
        A short line across each bar at the share that A has.
    selected : (int, int, int) or None
        Not used; a click selects the case's token with the largest gradient.
    """
    now = clip_cases(evaluation, prompts)
    before = None if former is None else clip_cases(former, prompts)
    after = None if pinned is None else clip_cases(pinned, prompts)
    keys = [("tokens", {"color": palette.neutral}), ("gradient", {"color": palette.text}),
            ("lost", {"color": palette.text, "pattern": _hatch(palette)})]  # fmt: skip
    traces = [
        _bars("share of the tokens", now, _TOKENS, palette, palette.neutral),
        _bars("share of the gradient", now, _GRADIENT, palette, palette.text),
    ]
    if before is not None and _changed(before, now):
        traces.append(_ghosts(_changed(before, now), palette))
        keys.append(("before", {"color": CLEAR, "line": {"color": palette.faint, "width": 1}}))
    if after is not None:
        traces.append(_marks(after, palette))
        keys.append(("A (pinned)", {"color": palette.categories[2]}))
    states = [state for state in (now, before, after) if state is not None]
    traces.append(_labels(states, _TOKENS, _token_label, palette.faint))
    traces.append(_labels(states, _GRADIENT, _gradient_label, palette.text))
    rows = len(now)
    return figure(
        [*traces, *(_key(name, marker) for name, marker in keys)],
        palette=palette, height=_ROW * rows + _TOP + 8, margin=(112, 8, _TOP, 8),
        alt=_describe(now), barmode="overlay",
        xaxis=axis("", palette=palette, range=[0, 1.36], showticklabels=False),
        yaxis=axis("", palette=palette, range=[rows - 0.5, -0.5], tickvals=list(range(rows)),
                   ticktext=[f"{item.case.label} " for item in now],
                   tickfont={"size": FONT_SIZE, "color": palette.text}),
        showlegend=True,
        legend={"orientation": "h", "x": 0, "xref": "container", "xanchor": "left",
                "y": 1, "yref": "container", "yanchor": "top", "itemclick": False,
                "font": {"size": FONT_SIZE, "color": palette.faint},
                "itemdoubleclick": False, "bgcolor": CLEAR, "entrywidth": 62},
    )  # fmt: skip


def _ends(state, bar):
    """(share, height) of one of the two bars of every case."""
    return [(getattr(item, bar["share"]), row + bar["shift"]) for row, item in enumerate(state)]


def _bars(name, now, bar, palette, color):
    share, row = zip(*_ends(now, bar), strict=True)
    lost = [bar is _GRADIENT and item.case.stopped for item in now]
    return {
        "type": "bar", "orientation": "h", "name": name, "showlegend": False,
        "x": share, "y": row, "width": _WIDTH,
        "customdata": [list(item.where or ()) for item in now],
        "hovertext": [f"{item.case.label}: {item.case.help}" for item in now],
        "hovertemplate": f"%{{hovertext}}<br>{name} %{{x:.4%}}<extra></extra>",
        "marker": {"color": color, "line": {"color": color, "width": 1 if any(lost) else 0},
                   "pattern": {**_hatch(palette), "shape": ["/" if flag else "" for flag in lost]}},
        **unselected(opacity=1),
    }  # fmt: skip


def _hatch(palette):
    return {"shape": "/", "size": 5, "solidity": 0.3, "fgcolor": palette.text,
            "bgcolor": palette.background}  # fmt: skip


def _labels(states, bar, text, color):
    """Numbers beyond the bar, its ghost and its mark, whichever is longest."""
    ends = [_ends(state, bar) for state in states]
    return {
        "type": "scatter", "mode": "text", "name": "values", "showlegend": False,
        "x": [max(share for share, _ in same) for same in zip(*ends, strict=True)],
        "y": [row for _, row in ends[0]],
        "text": [f" {text(item)}" for item in states[0]], "textposition": "middle right",
        "textfont": {"size": FONT_SIZE - 1, "color": color},
        "cliponaxis": False, "hoverinfo": "skip",
    }  # fmt: skip


def _token_label(item):
    return f"{item.tokens:,} · {percent(item.share)}" if item.tokens else "none"


def _gradient_label(item):
    if not item.tokens:
        return ""
    text = "<0.01%" if 0 < item.gradient < 1e-4 else percent(item.gradient)
    return f"{text} lost" if item.case.stopped and item.gradient else text


def _changed(before, now):
    """Ends of another state's bars where they differ from the present ones."""
    pairs = (zip(_ends(before, bar), _ends(now, bar), strict=True) for bar in (_TOKENS, _GRADIENT))
    return [there for pair in pairs for there, here in pair if there != here]


def _ghosts(ends, palette):
    share, row = zip(*ends, strict=True)
    return {
        "type": "bar", "orientation": "h", "name": "before", "showlegend": False,
        "x": share, "y": row, "width": _WIDTH + 0.06, "hoverinfo": "skip",
        "marker": {"color": CLEAR, "line": {"color": palette.faint, "width": 1}},
        **unselected(opacity=1),
    }  # fmt: skip


def _marks(after, palette):
    share, row = zip(*_ends(after, _TOKENS), *_ends(after, _GRADIENT), strict=True)
    return {
        "type": "scatter", "mode": "markers", "name": "A (pinned)", "showlegend": False,
        "x": share, "y": row, "hovertext": [percent(end) for end in share],
        "hovertemplate": "A: %{hovertext}<extra></extra>", "cliponaxis": False,
        "marker": {"symbol": "line-ns", "size": 13, "opacity": 1,
                   "line": {"color": palette.categories[2], "width": 2}},
        **unselected(opacity=1),
    }  # fmt: skip


def _key(name, marker):
    return {"type": "bar", "x": [None], "y": [None], "name": name, "showlegend": True,
            "hoverinfo": "skip", "marker": marker}  # fmt: skip


def _describe(now):
    parts = [
        f"{item.case.label} {count(item.tokens, 'token')} and {percent(item.gradient)} "
        "of the gradient"
        for item in now
        if item.tokens
    ]
    return f"Bars of the clip cases: {'; '.join(parts)}."
