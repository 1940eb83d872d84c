"""Where tokens and curves of the KL page stand: their d, their values, the scale of each axis."""

from dataclasses import dataclass

import numpy as np

from grpo_core.kl_curves import kl_curve, kl_distance

from .figure import FAR, largest, nice_ceiling
from .numbers import number

MOST_TOKENS = 3000  # more are not drawn: then only those of the shown prompt
ROOM = 1.15
EDGE = 0.97  # infinite values stand here, as a share of the axis


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens of one state: where they are, d, and value and slope of the state's own row."""

    where: np.ndarray  # (N, 3)
    d: np.ndarray
    values: tuple  # value and slope, each (N,)

    @classmethod
    def of(cls, evaluation, prompt):
        where = np.argwhere(evaluation.valid)
        if len(where) > MOST_TOKENS and prompt is not None:
            where = where[where[:, 0] == prompt][:MOST_TOKENS]
        at = tuple(where.T)
        d = kl_distance(evaluation)[at]
        choice = evaluation.scenario.conventions["kl"]
        # Before any weighting by the ratio, which would lift a token off the curve.
        return cls(where, d, kl_curve(choice.variant, d, choice.options))

    @classmethod
    def moved(cls, former, now, prompt):
        """Tokens of a former state that are elsewhere now, None if there are none."""
        if former is None:
            return None
        then = cls.of(former, prompt)
        if not np.array_equal(then.where, now.where):
            return None
        same = (then.d == now.d) & (then.values[0] == now.values[0])
        if np.all(same):
            return None
        return cls(then.where[~same], then.d[~same], tuple(each[~same] for each in then.values))


class Panel:
    """One of the two pictures: its curves and the range and scale of its vertical axis."""

    def __init__(self, index, d, curves, states, chosen, tail):
        self.index, self.curves, self.tail = index, curves, tail
        self.name = "xy" if index == 0 else "xy2"
        middle = len(d) // 2
        shown = [state.values[index] for state in states]
        shown.append(np.array([1.1 * values[middle] for values in curves.values()]))
        parabola = curves["k2"] if "k2" in curves else curves[chosen.variant]
        reach = 0.6 * largest(parabola)
        self.top = nice_ceiling(ROOM * max(self._most(shown), reach))
        deepest = self._most([-values for values in curves.values()])
        usual = min((0.3, 0.6)[index] * self.top, deepest)
        below = max(ROOM * self._most([-values for values in shown]), usual)
        self.bottom = -nice_ceiling(below)
        self.y = {key: self.scale(values) for key, values in curves.items()}
        self.range = [float(self.scale(np.float64(end))) for end in (self.bottom, self.top)]

    @staticmethod
    def _most(arrays):
        """Largest finite positive value, 0 if there is none."""
        return largest(*(np.maximum(values, 0) for values in arrays))

    def scale(self, values):
        """A value's place on the axis."""
        values = np.asarray(values, dtype=np.float64)
        return np.sign(values) * np.log10(1 + np.abs(values)) if self.tail else values

    def place(self, values):
        """As `scale`; infinite values stand just inside the axis's end."""
        low, high = self.range
        values = np.asarray(values, dtype=np.float64)
        endless = np.abs(values) > FAR
        inside = np.where(values > 0, EDGE * high, EDGE * low)
        return np.where(endless, inside, self.scale(np.where(endless, 0, values)))

    def ticks(self):
        """Tick values and their texts where the axis is logarithmic."""
        if not self.tail:
            return {"nticks": 6 if self.index == 0 else 5}
        most = np.log10(max(self.top, -self.bottom))
        step = max(int(np.ceil(most / 4)), 1)
        powers = 10.0 ** np.arange(0, np.floor(most) + 1, step)
        values = np.concatenate([-powers[::-1], [0.0], powers])
        values = values[(values >= self.bottom) & (values <= self.top)]
        texts = [number(value, 1) for value in values.tolist()]
        return {"tickvals": self.scale(values), "ticktext": texts}
