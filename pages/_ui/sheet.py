"""The sheet that a chain is written on: lines in order, and numbers by name."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from .arithmetic import Number
from .steps import Line, Step

# Longer sums are computed and not written out.
TERMS = 8


@dataclass(frozen=True)
class Writer:
    """How a variant is written out; ``back`` writes its part of the gradient, where it has one."""

    write: Callable
    back: Callable | None = None


class Sheet:
    """What has been written so far about one token of an evaluation."""

    def __init__(self, evaluation, where):
        self.evaluation, self.where = evaluation, where
        self.scenario = evaluation.scenario
        self._written = []
        self._numbers = {}
        self._range = np.finfo(evaluation.ratio.dtype)

    def lines(self):
        """The lines that have a result, in order."""
        return [line for line in self._written if isinstance(line, Line)]

    def steps(self, width):
        """Everything written, with the digits that it has now, set within a width."""
        return [line.step(width) if isinstance(line, Line) else line for line in self._written]

    def __getitem__(self, name):
        return self._numbers[name]

    def __contains__(self, name):
        return name in self._numbers

    def option(self, stage, key):
        """An option of a stage's chosen variant."""
        return self.scenario.conventions[stage].options[key]

    def given(self, name, value, symbol):
        """A number that the chain starts from."""
        self._numbers[name] = Number(value, symbol)
        return self._numbers[name]

    def line(
        self, stage, name, label, symbol, formula, *, near=None, written=True, inner=False, **more
    ):
        """Write ``symbol = formula`` and keep the result under its name.

        ``near`` is the size of what is subtracted in the formula; a result twelve digits
        below it is what rounding left over, and is written as 0. A formula too long to be
        ``written`` is computed and not shown. An ``inner`` result is one that the core keeps
        scaled, so that it cannot leave the range of its number type.
        """
        fit = _unbounded if inner else self._fit
        value = fit(formula.evaluate(lambda number: number.value))
        if near is not None and abs(value) < near * Decimal("1e-12"):
            value = Decimal(0)
        if value.is_infinite() and all(n.value.is_finite() for n in formula.numbers()):
            more["note"] = f"{more.get('note', '')} {self._overflow()}".strip()
        if not written:
            more["note"] = f"{name} is the {label}."
        shown = formula if written else None
        return self._keep(stage, name, label, value, symbol, formula=shown, fit=fit, **more)

    def value(self, stage, name, label, symbol, value, **more):
        """Write ``symbol = value`` where no formula leads there."""
        return self._keep(stage, name, label, Decimal(str(value)), symbol, **more)

    def note(self, stage, label, note):
        """Write a sentence without a number of its own."""
        self._written.append(Step(stage=stage, label=label, note=note))

    def _keep(self, stage, name, label, value, symbol, **more):
        result = self.given(name, value, symbol)
        self._written.append(Line(stage=stage, label=label, name=name, result=result, **more))
        return result

    def _overflow(self):
        kind = {"float32": "single", "float64": "double"}[str(self._range.dtype)]
        return f"Beyond {float(self._range.max):.2g}, the largest number in {kind} precision."

    def _fit(self, value):
        """What the core's number type makes of it: infinite or 0 beyond its range."""
        if abs(value) > Decimal(float(self._range.max)):
            return Decimal("inf").copy_sign(value)
        tiny = abs(value) < Decimal(float(self._range.smallest_subnormal)) / 2
        return Decimal(0) if tiny else value


def _unbounded(value):
    return value
