"""One value against those of its group, written out: mean, standard deviation, advantage."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from grpo_core.advantage_rows import centred, over_std

from .arithmetic import Number, Square, larger, sqrt, total
from .numbers import count, number
from .sheet import TERMS

UNSCORED = "Without a reward there is nothing to compare: the advantage is 0."
_TIED = "All {plural} of {whose} are equal: nothing tells them apart, and the advantage is 0."
_ENDLESS = "A score of the group is infinite. Beside it the finite ones count as 0."
_ALONE = "{one} has nothing to compare it with: the advantage is 0."

# Rounding that the core is allowed, as in `sheet`: of the number itself, and of its operands.
_ROUNDING = {"float64": ("1e-6", "1e-12"), "float32": ("1e-3", "1e-5")}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Values that are compared, and what the numbers of the comparison are called.

    ``own`` is one of ``values``, or None where the completion has no value; ``core`` is what
    the core made of it; ``result`` is (name, label, symbol) of the advantage. ``letter`` and
    ``sub`` are LaTeX: of the values, and the index of everything computed from them, which
    is ``tag`` in plain text. ``scores`` and ``scored`` (P, G) are the same of the whole batch.
    """

    values: list
    own: Number | None = None
    core: float = 0.0
    result: tuple = ("A", "advantage of the completion", "A")
    noun: str = "score"
    whose: str = "the group"
    letter: str = "R"
    tag: str = ""
    sub: str = ""
    scores: np.ndarray | None = None
    scored: np.ndarray | None = None


@dataclass(frozen=True)
class Judged:
    """An advantage, and how a difference of values becomes one of advantages; None for 0."""

    number: Number
    divide: Callable | None


@dataclass(frozen=True)
class Judge:
    """A way to compare: ``write(sheet, comparison)`` and the core's normaliser for a sheet."""

    write: Callable
    core: Callable
    endless: Callable | None = None  # how differences are divided beside an infinite value


def compared(sheet, judge, comparison):
    """Write how a value compares with its group; returns `Judged`."""
    words = ("advantage", *comparison.result)
    if comparison.own is None:
        return Judged(sheet.value(*words, 0, note=UNSCORED), judge.endless)
    if all(value.value.is_finite() for value in comparison.values):
        return judge.write(sheet, comparison)
    return Judged(sheet.value(*words, comparison.core, note=_ENDLESS), judge.endless)


def checked(sheet, words, formula, core, *, near=None, **more):
    """A line that shows the core's number where the formula leads to another one.

    `Sheet.line` does this for the numbers that it knows by name.
    """
    value = formula.evaluate(lambda each: each.value)
    if near is not None and abs(value) < near * Decimal("1e-12"):
        value = Decimal(0)
    if words[1] == "A" or _agree(sheet, formula, value, Decimal(str(core)), near):
        return sheet.line(*words, formula, near=near, **more)
    note = f"Written out, the formula gives {number(float(value))}; this is the core's number."
    return sheet.value(*words, core, note=note)


def _agree(sheet, formula, value, core, near):
    kind = sheet.evaluation.ratio.dtype
    if core.is_infinite() or not value.is_finite():
        return value == core or abs(value) > Decimal(float(np.finfo(kind).max))
    sizes = [abs(each.value) for each in formula.numbers() if each.value.is_finite()]
    size = near or max(sizes, default=Decimal(0))
    share, left_over = map(Decimal, _ROUNDING[kind.name])
    return abs(value - core) <= share * abs(core) + left_over * size


def mean_line(sheet, comparison):
    """The mean of all values."""
    values, letter = comparison.values, comparison.letter
    return sheet.line(
        "advantage",
        f"mean{comparison.tag}",
        f"mean of {comparison.whose}'s {count(len(values), comparison.noun)}",
        rf"\bar {letter}{comparison.sub}",
        total(values) / Number(len(values), "n"),
        general=rf"\frac{{1}}{{n}}\sum_i {letter}_i",
        written=len(values) <= TERMS,
        inner=True,
    )


def std_line(sheet, comparison, mean):
    """The standard deviation that the options of the advantage row ask for."""
    values, tag, sub = comparison.values, comparison.tag, comparison.sub
    ddof = sheet.option("advantage", "ddof")
    squares = sheet.line(
        "advantage",
        f"Q{tag}",
        "sum of squared deviations",
        f"Q{sub}",
        total([Square(value - mean) for value in values]),
        general=rf"\sum_i ({comparison.letter}_i - \bar {comparison.letter}{sub})^2",
        written=len(values) <= TERMS,
        inner=True,
    )
    label = "sample standard deviation" if ddof else "population standard deviation"
    words = ("advantage", f"std{tag}", label, rf"\sigma{sub}")
    if len(values) <= ddof:
        note = f"One {comparison.noun} has no sample standard deviation; it is taken as 0."
        return sheet.value(*words, 0, note=note)
    n = Number(len(values), "n")
    divisor = n - Number(ddof) if ddof else n
    return sheet.line(*words, sqrt(squares / divisor), inner=True)


def spread(comparison, mean):
    """The largest deviation from the mean, and what to say where there is none."""
    size = max(abs(value.value - mean.value) for value in comparison.values)
    if len({value.value for value in comparison.values}) > 1:
        return size, ""
    noun = comparison.noun
    if len(comparison.values) == 1:
        return size, _ALONE.format(one=f"A group of one {noun}")
    return size, _TIED.format(plural=f"{noun}s", whose=comparison.whose)


def alone(sheet, comparison):
    """What the only score of a group is worth, where it is worth something; else None."""
    worth = sheet.option("advantage", "alone", "zero")
    if len(comparison.values) > 1 or worth == "zero":
        return None
    divide = as_is
    if worth == "reward_over_1":
        one = Number(1) + Number(sheet.option("advantage", "eps", 0.0), r"\mathrm{eps}")
        divide = lambda term: term / one  # noqa: E731
    formula = divide(comparison.own)
    words = ("advantage", *comparison.result)
    note = f"The only {comparison.noun} of its group, compared with nothing."
    return Judged(checked(sheet, words, formula, comparison.core, note=note), divide)


def _over_std(sheet, comparison):
    one = alone(sheet, comparison)
    if one is not None:
        return one
    mean = mean_line(sheet, comparison)
    std = std_line(sheet, comparison, mean)
    size, tied = spread(comparison, mean)
    words = ("advantage", *comparison.result)
    if tied:
        return Judged(sheet.value(*words, 0, note=tied), None)
    floor = sheet.option("advantage", "floor")
    least = larger(std, Number(floor, r"\mathrm{floor}")) if floor else std
    divisor = least + Number(sheet.option("advantage", "eps"), r"\mathrm{eps}")
    near = size / divisor.evaluate(lambda each: each.value)
    formula = (comparison.own - mean) / divisor
    result = checked(sheet, words, formula, comparison.core, near=near)
    return Judged(result, lambda term: term / divisor)


def _centred(sheet, comparison):
    one = alone(sheet, comparison)
    if one is not None:
        return one
    mean = mean_line(sheet, comparison)
    size, tied = spread(comparison, mean)
    words = ("advantage", *comparison.result)
    formula = comparison.own - mean
    result = checked(sheet, words, formula, comparison.core, near=size, note=tied)
    return Judged(result, as_is)


def as_is(term):
    """A difference of scores is one of advantages."""
    return term


def _core_over_std(sheet):
    wanted = {"ddof": 0, "eps": 0.0, "floor": 0.0, "alone": "zero"}
    return over_std(**{key: sheet.option("advantage", key, own) for key, own in wanted.items()})


OVER_STD = Judge(_over_std, _core_over_std)
CENTRED = Judge(
    _centred, lambda sheet: centred(sheet.option("advantage", "alone", "zero")), endless=as_is
)
