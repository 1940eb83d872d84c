"""The sheet that a chain is written on: lines in order, and numbers by name."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from .arithmetic import Number, Sum, Term
from .computed import Between, acts, kl_place
from .numbers import number
from .steps import Line, Step

# Longer sums are computed and not written out.
TERMS = 8

# By name in the chain: where the evaluation keeps the same number.
_KEPT = {
    "R": "scores",
    "A": "token_advantages",
    "log_ratio": "log_ratio",
    "ratio": "ratio",
    "s": "surrogate",
    "KL": "kl",
    "b": "entropy_bonus",
    "j": "per_token",
    "w": "weight",
    "contribution": "contribution",
    "g_s": "policy_gradient",
    "g_KL": "kl_gradient",
    "g": "gradient",
}

# Rounding that the core is allowed beside exact arithmetic: as a share of the number itself,
# and of the numbers that it was added up from.
_ROUNDING = {"float64": (1e-6, 1e-12), "float32": (1e-3, 1e-5)}


@dataclass(frozen=True)
class Slope:
    """Derivative of the surrogate at the token, and why it is 0 where something stopped it.

    By the ratio; if ``direct``, by the log-probability itself, past the ratio.
    """

    number: Term
    stopped: str = ""
    direct: bool = False


@dataclass(frozen=True)
class Flow:
    """A derivative by the ratio on its way back to the log-probabilities.

    It is the product of ``factors``, pairs of the number at this token and the array (P, G, L)
    that it comes from, times ``sign``; ``general`` is that product as LaTeX at a token t.
    ``words`` are stage, name, label and symbol of the gradient; ``stopped`` says why the last
    factor is 0 at this token.
    """

    words: tuple
    factors: tuple
    general: str
    stopped: str = ""
    sign: int = 1


@dataclass(frozen=True)
class Writer:
    """How a variant is written out, and the way back for the gradient where it has one.

    ``back(sheet)`` of a surrogate returns its `Slope` at the token, or None where it has
    written the gradient itself; ``back(sheet, flow)`` of a ratio writes the gradient that a
    `Flow` leads to; ``back(sheet)`` of a KL that of its own.
    """

    write: Callable
    back: Callable | None = None


class Sheet:
    """What has been written so far about one token of an evaluation."""

    def __init__(self, evaluation, where):
        self.evaluation, self.where = evaluation, where
        self.scenario = evaluation.scenario
        self.place = kl_place(evaluation)
        self.in_reward = self.place == "reward"
        self.between = Between(evaluation)
        self._written = []
        self._terms = {}
        self._instead, self._own = {}, {}
        self._range = np.finfo(evaluation.ratio.dtype)

    def lines(self):
        """The lines that have a result, in order."""
        return [line for line in self._written if isinstance(line, Line)]

    def steps(self, width):
        """Everything written, with the digits that it has now, set within a width."""
        return [line.step(width) if isinstance(line, Line) else line for line in self._written]

    def __getitem__(self, name):
        return self._terms[name]

    def __contains__(self, name):
        return name in self._terms

    def option(self, stage, key, default=None):
        """An option of a stage's chosen variant; ``default`` where it has none of that key."""
        return self.scenario.conventions[stage].options.get(key, default)

    def acts(self, stage):
        """Whether a stage changes anything under its options."""
        return acts(self.scenario.conventions, stage)

    @contextmanager
    def instead(self, name, own, symbol, core):
        """Within this, what is written under ``name`` gets the name ``own``, on the way there.

        ``core`` (P, G, L) are the core's numbers for it.
        """
        self._instead[name], self._own[own] = (own, symbol), core
        yield
        del self._instead[name]

    def given(self, name, value, symbol):
        """A number that the chain starts from."""
        return self.keep(name, Number(value, symbol))

    def keep(self, name, term):
        """A term that later lines read by this name."""
        self._terms[name] = term
        return term

    def line(
        self, stage, name, label, symbol, formula, *, near=None, written=True, inner=False, **more
    ):
        """Write ``symbol = formula`` and keep the result under its name.

        ``near`` is the size of what is subtracted in the formula; a result twelve digits
        below it is what rounding left over, and is written as 0. A formula too long to be
        ``written`` is computed and not shown. An ``inner`` result is one that the core keeps
        scaled, so that it cannot leave the range of its number type. Where the core keeps
        another number under this name, that is written instead, and no formula.
        """
        name, symbol = self._instead.get(name, (name, symbol))
        fit = _unbounded if inner else self._fit
        value = fit(formula.evaluate(lambda number: number.value))
        if near is not None and abs(value) < near * Decimal("1e-12"):
            value = Decimal(0)
        if not self._agrees(name, value, _sizes(formula, near)):
            found = number(float(value))
            note = f"Written out, the formula gives {found}; this is the core's number."
            return self.computed(stage, name, label, symbol, note=note)
        if value.is_infinite() and all(n.value.is_finite() for n in formula.numbers()):
            more["note"] = f"{more.get('note', '')} {self._overflow()}".strip()
        if not written:
            more["note"] = f"{name} is the {label}."
        shown = formula if written else None
        return self._keep(stage, name, label, value, symbol, formula=shown, fit=fit, **more)

    def value(self, stage, name, label, symbol, value, **more):
        """Write ``symbol = value`` where no formula leads there."""
        name, symbol = self._instead.get(name, (name, symbol))
        value = Decimal(str(value))
        if not self._agrees(name, value):
            return self.computed(stage, name, label, symbol, note="As the core computed it.")
        return self._keep(stage, name, label, value, symbol, **more)

    def computed(self, stage, name, label, symbol, result="", **more):
        """Write the core's own number: that of this name, or of another ``result``."""
        name, symbol = self._instead.get(name, (name, symbol))
        array = getattr(self.evaluation, result) if result else self._core(name)
        value = Decimal(str(array[self.where[: array.ndim]]))
        return self._keep(stage, name, label, value, symbol, **more)

    def note(self, stage, label, note, latex=""):
        """Write a sentence without a number of its own, with a formula if there is one."""
        self._written.append(Step(stage=stage, label=label, note=note, latex=latex))

    def _core(self, name):
        """The core's array of this name, None if it keeps none."""
        if name in self._own:
            return self._own[name]
        return getattr(self.evaluation, _KEPT[name]) if name in _KEPT else None

    def _agrees(self, name, value, sizes=()):
        """False if the core has another number of this name, by more than rounding explains."""
        counts = self.evaluation.valid[self.where] or name == "R"
        array = self._core(name)
        if array is None or not counts:
            return True
        core = Decimal(str(array[self.where[: array.ndim]]))
        if not (value.is_finite() and core.is_finite()):
            return value == core
        largest = np.max(np.abs(array), where=np.isfinite(array), initial=self._range.tiny)
        share, left_over = (Decimal(share) for share in _ROUNDING[self._range.dtype.name])
        size = max(Decimal(float(largest)), *(abs(size) for size in sizes), Decimal(0))
        return abs(value - core) <= share * abs(core) + left_over * size

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


def _sizes(formula, near):
    """Sizes of what a formula adds up, which its rounding goes by."""
    if near is not None:
        return [near]
    terms = [term for term, _ in formula.signed] if isinstance(formula, Sum) else []
    values = [term.evaluate(lambda number: number.value) for term in terms]
    return [value for value in values if value.is_finite()]


def _unbounded(value):
    return value
