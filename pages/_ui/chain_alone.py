"""Components judged each on its own and then summed, written out, and scaled over the batch."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from grpo_core.numerics import total as core_total

from .arithmetic import Number, Square, sqrt, total
from .chain_combining import (
    differs_by_token,
    in_group,
    indexed,
    is_short,
    write_at_token,
    write_sum,
)
from .chain_judging import UNSCORED, Comparison, checked, compared
from .chain_penalty import penalty_of
from .chain_terms import Parts

_ALIKE = "All sums of the batch are equal: nothing tells them apart, and the advantage is 0."


def normalize_then_sum(sheet, judge, wanted):
    """Write each component's advantage, their weighted sum, and its second normalisation."""
    parts = Parts(sheet)
    where = sheet.where[:2]
    alone = _Alone(sheet, parts, judge)
    judged = {k: alone.write(k) for k in parts.places if parts.known(k, where)}
    by_token = differs_by_token(sheet, parts)
    scale = BATCH_SCALES[sheet.option("rewards", "batch_scale")]
    name, label, symbol = wanted.completion(sheet, by_token)
    if not judged:
        number = sheet.value("advantage", name, label, symbol, 0, note=UNSCORED)
        write_at_token(sheet, parts, wanted, number, {})
        return
    terms = [parts.weight(k) * each.number for k, each in judged.items()]
    words = ("advantage", name, label, symbol)
    if scale is not None:
        words = ("advantage", "Z", "weighted sum of these advantages", "Z")
    core = alone.sums[where] if scale is not None else wanted.value(sheet)
    summed = write_sum(sheet, words, terms, core)
    slopes = {k: judged[k].divide for k in parts.core.past}
    if scale is not None:
        words = ("advantage", name, label, symbol)
        summed, over = _over_batch(sheet, parts, summed, alone.sums, words, wanted, scale)
        slopes = {k: _both(sheet, k, divide, over) for k, divide in slopes.items()}
    write_at_token(sheet, parts, wanted, summed, slopes)


def _both(sheet, k, first, second):
    """Divided alone and then over the batch; a line for the first, or fractions hold fractions."""
    if first is None or second is None:
        return None
    words = ("advantage", f"v_{k}", "what it takes off the weighted sum", f"v_{{{k}}}")
    return lambda term: second(sheet.line(*words, first(term), inner=True))


class _Alone:
    """Each component of a completion compared on its own."""

    def __init__(self, sheet, parts, judge):
        self.sheet, self.parts, self.judge = sheet, parts, judge
        normalise = judge.core(sheet)
        values = np.nan_to_num(parts.core.values, nan=0.0)
        if sheet.in_reward:
            values[0] = values[0] + core_total(-sheet.evaluation.reward_penalty, axis=-1)
        known, self._values = parts.core.known, values
        self._core = [
            normalise(np.where(there, value, 0.0), there).advantages
            for value, there in zip(values, known, strict=True)
        ]
        with np.errstate(invalid="ignore", over="ignore"):
            weighted = parts.core.weights[:, None, None] * np.stack(self._core)
            self.sums = np.sum(weighted, axis=0)

    def write(self, k):
        """The comparison of component k; returns `Judged`."""
        sheet, parts = self.sheet, self.parts
        own = sheet[parts.name(k)]
        if k == 0 and sheet.in_reward:
            label = "task reward less the penalty"
            own = sheet.line("advantage", "r_less", label, r"r'", own - sheet["P"])
        values = in_group(
            sheet,
            parts.core.known[k],
            own,
            self._values[k],
            lambda where: self._value(k, where),
            indexed("f", f"{k},") if k else indexed("r"),
        )
        return compared(
            sheet,
            self.judge,
            Comparison(
                own=own,
                values=values,
                core=self._core[k][sheet.where[:2]],
                result=(f"A_{k}", f"advantage by {parts.words(k)} alone", f"A_{{{k}}}"),
                noun="value",
                letter="f" if k else "r",
                tag=f"_{k}",
                sub=f"_{{{k}}}",
                scores=self._values[k],
                scored=parts.core.known[k],
            ),
        )

    def _value(self, k, where):
        value = self.parts.exact(k, where)
        return value if k else value - penalty_of(self.sheet, where)


def _over_batch(sheet, parts, own, sums, words, wanted, scale):
    """The second normalisation, over the batch; returns the advantage and how it divides."""
    places = [tuple(map(int, where)) for where in np.argwhere(parts.core.scored)]
    weights = [Number(scale.weight(sheet, where), "T") for where in places]
    values = [
        own
        if where == sheet.where[:2]
        else Number(
            own.value if sums[where] == sums[sheet.where[:2]] else sums[where],
            f"Z_{{{where[0]},{where[1]}}}",
        )
        for where in places
    ]
    counted = [(w, z) for w, z in zip(weights, values, strict=True) if w.value]
    size = sum((w.value for w, _ in counted), Decimal(0))
    finite = all(z.value.is_finite() for z in values)
    if not finite or len({z.value for _, z in counted}) < 2:
        note = _ALIKE if finite else "One of the sums is infinite."
        return sheet.value(*words, wanted.value(sheet), note=note), None
    mean, std = _batch_lines(sheet, counted, Number(size, "N"), scale)
    divisor = scale.divisor(std, Number(sheet.option("rewards", "batch_eps"), r"\mathrm{eps}"))
    shift = max(abs(z.value - mean.value) for z in values)
    near = shift / divisor.evaluate(lambda number: number.value)
    advantage = checked(sheet, words, (own - mean) / divisor, wanted.value(sheet), near=near)
    return advantage, lambda term: term / divisor


def _batch_lines(sheet, counted, size, scale):
    written = is_short(counted)
    mean = sheet.line(
        "advantage",
        "mean_Z",
        f"mean over {scale.over}",
        r"\bar Z",
        total([scale.times(w, z) for w, z in counted]) / size,
        general=scale.mean,
        written=written,
        inner=True,
    )
    squares = sheet.line(
        "advantage",
        "Q_Z",
        "sum of squared deviations",
        "Q_Z",
        total([scale.times(w, Square(z - mean)) for w, z in counted]),
        general=scale.squares,
        written=written,
        inner=True,
    )
    label = "sample standard deviation"
    formula = sqrt(squares / (size - Number(1)))
    return mean, sheet.line("advantage", "std_Z", label, r"\sigma_Z", formula, inner=True)


@dataclass(frozen=True, kw_only=True)
class _BatchScale:
    """What the second normalisation runs over, with how much a completion counts."""

    over: str
    weight: object
    times: object
    divisor: object
    mean: str
    squares: str


BATCH_SCALES = {
    "none": None,
    "completion": _BatchScale(
        over="all completions of the batch",
        weight=lambda sheet, where: 1,
        times=lambda weight, term: term,
        divisor=lambda std, eps: std + eps,
        mean=r"\frac{1}{N}\sum_i Z_i",
        squares=r"\sum_i (Z_i - \bar Z)^2",
    ),
    "token": _BatchScale(
        over="all tokens of the batch",
        weight=lambda sheet, where: int(sheet.evaluation.lengths[where]),
        times=lambda weight, term: weight * term,
        divisor=lambda std, eps: sqrt(Square(std) + Square(eps)),
        mean=r"\frac{1}{N}\sum_i T_i Z_i",
        squares=r"\sum_i T_i (Z_i - \bar Z)^2",
    ),
}
