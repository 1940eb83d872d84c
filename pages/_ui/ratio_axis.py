"""The axis of ratios: straight where they are near 1, logarithmic where some are far from it."""

from dataclasses import dataclass

import numpy as np

from .figure import axis, nice_ceiling
from .numbers import number

_STRAIGHT = 3.0  # ratios up to 1 + this stand on a straight axis
_FARTHEST = 100.0  # a logarithmic axis ends here and at its inverse: the band must stay visible
_SAMPLES = 200
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


@dataclass(frozen=True)
class RatioAxis:
    """Ratios from ``low`` to ``high``; those beyond are drawn at its ends."""

    low: float
    high: float
    log: bool

    def beyond(self, ratios):
        """-1 where a ratio is below the axis, 1 above, else 0."""
        return np.where(ratios > self.high, 1, np.where(ratios < self.low, -1, 0))

    def drawn(self, ratios):
        """Ratios held within the axis."""
        return np.clip(np.asarray(ratios, dtype=np.float64), self.low, self.high)

    def samples(self, corners=()):
        """Ratios at which to draw a curve: evenly spaced on the axis, and at its corners."""
        spaced = np.geomspace if self.log else np.linspace
        even = spaced(self.low, self.high, _SAMPLES)
        inside = [corner for corner in corners if self.low < corner < self.high]
        return np.unique(np.concatenate([even, inside]))

    def position(self, ratios):
        """Where ratios stand, from 0 at the left end to 1 at the right one."""
        ends = np.array([self.low, self.high])
        at = self.drawn(ratios)
        if self.log:
            ends, at = np.log(ends), np.log(at)
        return (at - ends[0]) / (ends[1] - ends[0])

    def plotted(self, ratios):
        """Ratios in the unit that Plotly wants for shapes and annotations on this axis."""
        return np.log10(ratios) if self.log else np.asarray(ratios, dtype=np.float64)

    def settings(self, title, palette, *, sign=1, room=0.0):
        """Plotly's axis for ratios, or for values of this sign as large as they are.

        A logarithmic axis of negative values holds their magnitudes, upside down, with a
        minus in the labels. ``room`` is free space at both ends, as a share of the axis.
        """
        low, high = self.plotted([self.low, self.high]).tolist()
        gap = room * (high - low)
        ends = [low - gap, high + gap]
        if not self.log:
            ends = ends if sign > 0 else [-end for end in reversed(ends)]
            return axis(title, palette=palette, range=ends, nticks=7)
        ticks = [tick for tick in self._ticks() if self.low <= tick <= self.high]
        return axis(
            title, palette=palette, type="log", range=ends if sign > 0 else ends[::-1],
            tickvals=ticks, ticktext=[number(sign * tick) for tick in ticks], minor={"ticks": ""},
        )  # fmt: skip

    def _ticks(self):
        """1, 2 and 5 of each power of ten, or only the powers where that is too many."""
        inside = [tick for tick in _TICKS if self.low <= tick <= self.high]
        return inside if len(inside) <= 8 else [0.01, 0.1, 1.0, 10.0, 100.0]


def ratio_axis(ratios, corners=()):
    """An axis for some ratios and the corners of the curves.

    Parameters
    ----------
    ratios : ndarray
        May hold 0 and infinity.
    corners : sequence of float
        Edges of bands; those too far away do not count.
    """
    near = [corner for corner in corners if 1 / _FARTHEST <= corner <= _FARTHEST]
    farthest = max((abs(corner - 1) for corner in near), default=0.0)
    reach = max(2.2 * farthest if farthest < 1 else 1.3 * farthest, _reach(ratios))
    if reach <= _STRAIGHT:
        span = nice_ceiling(reach) if reach else 0.5
        return RatioAxis(max(1.0 - span, 0.0), 1.0 + span, log=False)
    both = np.array([*np.ravel(ratios), *near, 0.5, 2.0], dtype=np.float64)
    ends = np.clip([np.min(both) / 1.1, 1.1 * np.max(both)], 1 / _FARTHEST, _FARTHEST)
    steps = 4 * np.log10(ends)  # quarters of a power of ten: the axis holds still in small edits
    low, high = 10 ** (np.array([np.floor(steps[0]), np.ceil(steps[1])]) / 4)
    return RatioAxis(float(low), float(high), log=True)


def _reach(ratios):
    """Distance of the farthest ratio from 1, with a little room."""
    return 1.06 * float(np.max(np.abs(np.ravel(ratios) - 1.0), initial=0.0))
