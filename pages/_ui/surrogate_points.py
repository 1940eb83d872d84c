"""Tokens on the curve of the surrogate: where each stands, how it looks, what its hover says."""

import numpy as np

from grpo_core.clip_cases import CASES, cases_of, clip_band, follows_ratio
from grpo_core.curves import surrogate_curve

from .figure import unselected
from .numbers import count, exact
from .quantities import clipped
from .token_text import escaped

MAX_POINTS = 1500  # more tokens than this are drawn one for each pixel of the curve
PIXELS = 400  # of the ratio axis, roughly
_CASES = list(CASES.values())
_HOVER = (
    "prompt %{customdata[0]}, completion %{customdata[1]}, token %{customdata[2]}<br>"
    "ratio %{customdata[3]}<br>advantage %{customdata[4]}<br>surrogate %{customdata[5]}<br>"
    "%{hovertext}<extra></extra>"
)


def chosen(evaluation, prompts):
    """Valid tokens of some prompts; bool (P, G, L)."""
    flags = np.zeros_like(evaluation.valid)
    inside = slice(None) if prompts is None else prompts
    flags[inside] = evaluation.valid[inside]
    return flags


def per_unit(conventions, ratios, sign, scale):
    """The surrogate of advantage 1 or -1 at ratios held within the axis."""
    value, _ = surrogate_curve(conventions, scale.drawn(ratios), sign)
    return height(value, sign, scale) if follows_ratio(conventions) else value


def height(value, sign, scale):
    """A logarithmic axis of negative values holds magnitudes."""
    return sign * value if scale.log else value


class Points:
    """Tokens of one sign; many on one pixel are drawn once."""

    def __init__(self, evaluation, sign, prompts, scale):
        drawn = chosen(evaluation, prompts) & (np.sign(evaluation.token_advantages) == sign)
        self.evaluation, self.scale, self.sign = evaluation, scale, sign
        self.total, stopped = int(np.sum(drawn)), clipped(evaluation)
        self.lost = int(np.sum(drawn & stopped))
        self.away = int(np.count_nonzero(scale.beyond(evaluation.ratio[drawn])))
        first, self.more = _thinned(scale.position(evaluation.ratio[drawn]), stopped[drawn])
        self.at = np.argwhere(drawn)[first]
        self.ratio, self.stopped = evaluation.ratio[drawn][first], stopped[drawn][first]
        self.beyond = scale.beyond(self.ratio)
        self.x = scale.drawn(self.ratio)
        self.y = per_unit(evaluation.scenario.conventions, self.ratio, sign, scale)

    def traces(self, palette):
        """Circles where the gradient stays, crosses where it is stopped, arrows at the ends."""
        color = palette.of_sign(self.sign)
        edge = {"color": palette.background, "width": 1}
        circle = {"symbol": "circle", "size": 9, "color": color, "opacity": 1, "line": edge}
        cross = {"symbol": "x-thin", "size": 8, "opacity": 1,
                 "line": {"color": palette.text, "width": 1.75}}  # fmt: skip
        looks = [
            ("tokens", (self.beyond == 0) & ~self.stopped, circle),
            ("beyond, above", self.beyond > 0, {**circle, "symbol": "triangle-right", "size": 12}),
            ("beyond, below", self.beyond < 0, {**circle, "symbol": "triangle-left", "size": 12}),
            ("clipped", self.stopped, cross),
        ]
        return [self._trace(name, which, look) for name, which, look in looks if np.any(which)]

    def _trace(self, name, which, marker):
        (rows,) = np.nonzero(which)
        index = tuple(self.at[rows].T)
        keys = ("ratio", "token_advantages", "surrogate")
        numbers = [getattr(self.evaluation, key)[index].tolist() for key in keys]
        return {
            "type": "scatter", "mode": "markers", "name": name, "showlegend": False,
            "x": self.x[rows], "y": self.y[rows], "marker": marker, "cliponaxis": False,
            # Lists, not an array: Streamlit hands a typed array's rows back as mappings.
            "customdata": [[*at, *(exact(value) for value in values)] for at, *values in
                           zip(self.at[rows].tolist(), *numbers, strict=True)],
            "hovertext": self._notes(rows), "hovertemplate": _HOVER, **unselected(opacity=1),
        }  # fmt: skip

    def _notes(self, rows):
        """What the hover says beyond the numbers: text, case, held drift, tokens left out."""
        state, notes = self.evaluation, []
        case = cases_of(
            state,
            state.ratio,
            state.token_advantages,
            clip_band(state.scenario.conventions, state.ratio.dtype),
        )
        for at, more in zip(self.at[rows].tolist(), self.more[rows].tolist(), strict=True):
            place = tuple(at)
            text = state.scenario.texts.token(*place)
            notes.append("<br>".join([
                *([f"text {escaped(text)}"] if text else []),
                _CASES[case[place]].help,
                *(["log-probability held at 0"] if state.held[place] else []),
                *([f"and {count(more, 'more token')} at this place"] if more else []),
            ]))  # fmt: skip
        return notes


def _thinned(position, stopped):
    """Which tokens to draw where there are many, and how many more each stands for."""
    if len(position) <= MAX_POINTS:
        return slice(None), np.zeros(len(position), dtype=int)
    pixel = 2 * np.round(PIXELS * position).astype(int) + stopped
    _, first, size = np.unique(pixel, return_index=True, return_counts=True)
    return first, size - 1
