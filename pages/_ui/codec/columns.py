"""A column of floating-point numbers to whole numbers, and back to the same bits.

A column is written as whole numbers in one of a few `KINDS`, perhaps as the difference to a
column that the reader knows already, plus the cells that come out wrong that way, in full.
The cheapest combination wins. What counts as right is always the bits: -0.0 is not 0.0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .integers import EXACT, Damaged, Plan, plan_integers, read_integers, write_integers

EXCEPTION_COST = 9  # bytes that a cell written in full costs, about
MOST_DIGITS = 17
MOST_BITS = 60
SAMPLE = 64  # cells that are enough to choose a number of digits by


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One way of seeing numbers as whole numbers at a scale; ``back`` undoes ``there``."""

    there: Callable
    back: Callable
    scales: Callable  # values -> the scales worth trying
    limit: int = 0  # the largest scale


def _rounded(values, factor):
    scaled = np.rint(values.astype(np.float64) * factor)
    return np.where(np.abs(scaled) < EXACT, scaled, 0.0).astype(np.int64)


def _cheapest(costs, size):
    best = int(np.argmin(costs))
    return (best,) if costs[best] < 8 * size else ()


def _decimal_scales(values):
    """The number of digits after the point that costs a sample least, by a rough count."""
    sample = values[:: max(values.size // SAMPLE, 1)]
    sample = sample[np.isfinite(sample)]
    costs = []
    for digits in range(MOST_DIGITS + 1 if sample.size else 0):
        back = (_rounded(sample, 10.0**digits) / 10.0**digits).astype(sample.dtype)
        missed = int(np.count_nonzero(back != sample))
        costs.append(sample.size * digits * 0.42 + missed * EXCEPTION_COST)
        if not missed:
            break
    return _cheapest(costs, sample.size) if costs else ()


def _binary_scales(values):
    """The number of bits after the point that costs least, by a rough count."""
    finite = values[np.isfinite(values)].astype(np.float64)
    fraction, exponent = np.frexp(finite)
    whole = (fraction * EXACT).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    needed = np.where(whole == 0, 0, np.clip(53 - exponent - lowest, 0, MOST_BITS + 1))
    missed = finite.size - np.cumsum(np.bincount(needed, minlength=1))[: MOST_BITS + 1]
    costs = np.arange(missed.size) * finite.size / 8 + missed * EXCEPTION_COST
    return _cheapest(costs, finite.size)


KNOWN, DECIMAL, BINARY, SINGLE, DOUBLE = range(5)  # KNOWN: the known column as it is
KINDS = {
    DECIMAL: Kind(
        there=lambda values, digits: _rounded(values, 10.0**digits),
        back=lambda whole, digits: whole / 10.0**digits,
        scales=_decimal_scales,
        limit=MOST_DIGITS,
    ),
    BINARY: Kind(
        there=lambda values, bits: _rounded(values, 2.0**bits),
        back=lambda whole, bits: whole / 2.0**bits,
        scales=_binary_scales,
        limit=MOST_BITS,
    ),
    SINGLE: Kind(
        there=lambda values, _: values.astype(np.float32).view(np.int32).astype(np.int64),
        back=lambda whole, _: whole.astype(np.int32).view(np.float32),
        scales=lambda values: (0,),
    ),
    DOUBLE: Kind(
        there=lambda values, _: values.astype(np.float64).view(np.int64),
        back=lambda whole, _: whole.view(np.float64),
        scales=lambda values: () if values.dtype == np.float32 else (0,),
    ),
}


@dataclass(frozen=True, eq=False)
class Column:
    """How a column is best written, and what that costs in bytes, about."""

    cost: float
    kind: int
    scale: int
    reference: int  # 0 for none, else 1 + its index
    integers: Plan | None
    places: np.ndarray  # of the cells that come out wrong
    exceptions: np.ndarray  # these cells


def plan_column(values, references=(), default=0.0):
    """The cheapest way of writing a float32 or float64 column.

    Parameters
    ----------
    values : ndarray, shape (N,)
    references : sequence of ndarray, shape (N,)
        Columns that the reader has, too.
    default : float
        What stands everywhere if there is no reference and nothing is written.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        known = (np.full(values.shape, default), *references)
        copies = [_known(values, column, i) for i, column in enumerate(known)]
        best = min(copies, key=lambda column: column.cost)
        for kind, way in KINDS.items():
            for scale in way.scales(values):
                best = _cheaper(best, values, references, kind, scale)
        return best


def _cheaper(best, values, references, kind, scale):
    """`best`, or this kind at this scale if it is cheaper."""
    way = KINDS[kind]
    whole = way.there(values, scale)
    wrong = _differ(way.back(whole, scale).astype(values.dtype), values)
    places = np.flatnonzero(wrong)
    if places.size * EXCEPTION_COST >= best.cost:
        return best
    for i, known in enumerate((None, *references)):
        step = whole if known is None else whole - way.there(known, scale)
        plan = plan_integers(np.where(wrong, 0, step))
        cost = 3 + plan.cost + places.size * EXCEPTION_COST
        if cost < best.cost:
            best = Column(cost, kind, scale, i, plan, places, values[places])
    return best


def _known(values, column, index):
    places = np.flatnonzero(_differ(column.astype(values.dtype), values))
    cost = 3 + places.size * EXCEPTION_COST
    return Column(cost, KNOWN, 0, index, None, places, values[places])


def _differ(left, right):
    bits = f"u{right.dtype.itemsize}"
    return left.view(bits) != right.view(bits)


def write_column(writer, column):
    """Write what `plan_column` planned."""
    excepted = column.places.size > 0
    writer.byte(column.kind | excepted << 3 | column.reference << 4)
    if column.kind != KNOWN:
        writer.byte(column.scale)
        write_integers(writer, column.integers)
    if excepted:
        writer.count(column.places.size)
        write_integers(writer, plan_integers(np.diff(column.places, prepend=-1) - 1))
        write_column(writer, _in_full(column.exceptions))


def _in_full(values):
    """The cheapest way of writing cells that needs no exceptions and no references."""
    fitting = []
    with np.errstate(over="ignore", invalid="ignore"):
        for kind, way in KINDS.items():
            for scale in way.scales(values):
                whole = way.there(values, scale)
                if not _differ(way.back(whole, scale).astype(values.dtype), values).any():
                    plan = plan_integers(whole)
                    none = np.empty(0, dtype=np.int64)
                    fitting.append(Column(3 + plan.cost, kind, scale, 0, plan, none, values[:0]))
    return min(fitting, key=lambda column: column.cost)


def read_column(reader, size, dtype, references=(), default=0.0):
    """Read a column of `size` cells; the arguments are those it was planned with."""
    head = reader.byte()
    kind, excepted, index = head & 7, head >> 3 & 1, head >> 4
    if index > len(references) or (kind != KNOWN and kind not in KINDS):
        raise Damaged("unknown way of writing a column")
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == KNOWN:
            known = references[index - 1] if index else np.full(size, default)
            values = known.astype(dtype)
        else:
            way, scale = KINDS[kind], reader.byte()
            if scale > way.limit:
                raise Damaged("unknown scale")
            whole = read_integers(reader, size)
            if index:
                whole = whole + way.there(references[index - 1], scale)
            values = way.back(whole, scale).astype(dtype)
    if excepted:
        _read_exceptions(reader, values)
    return values


def _read_exceptions(reader, values):
    many = reader.count()
    if not 0 < many <= values.size:
        raise Damaged("more exceptions than cells")
    gaps = read_integers(reader, many)
    if gaps.min() < 0 or gaps.max() >= values.size:
        raise Damaged("an exception stands outside")
    places = np.cumsum(gaps + 1) - 1
    if places[-1] >= values.size:
        raise Damaged("an exception stands outside")
    values[places] = read_column(reader, many, values.dtype)
