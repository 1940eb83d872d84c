"""Advantages by other baselines and scales than the group's own, written out."""

from decimal import Decimal
from math import comb

import numpy as np

from grpo_core import advantage_rows as core
from grpo_core.group_statistics import group_statistics

from .arithmetic import Number, Square, sqrt, total
from .chain_judging import (
    CENTRED,
    OVER_STD,
    Judge,
    Judged,
    alone,
    as_is,
    checked,
    mean_line,
    spread,
    std_line,
)
from .numbers import count
from .sheet import TERMS


def _words(comparison):
    return ("advantage", *comparison.result)


def _zero(sheet, comparison, note, divide=None):
    return Judged(sheet.value(*_words(comparison), 0, note=note), divide)


def _eps(sheet):
    return Number(sheet.option("advantage", "eps"), r"\mathrm{eps}")


def _size(term):
    return term.evaluate(lambda number: number.value)


def _over_batch_std(sheet, comparison):
    mean = mean_line(sheet, comparison)
    ddof = sheet.option("advantage", "ddof")
    scores, scored = (each.reshape(1, -1) for each in (comparison.scores, comparison.scored))
    std = group_statistics(scores, scored, ddof).std[0]
    kind = "sample" if ddof else "population"
    nouns = count(int(scored.sum()), comparison.noun)
    label = f"{kind} standard deviation of the batch's {nouns}"
    symbol = r"\sigma_{\mathrm{batch}}" + (f"^{{({comparison.tag[1:]})}}" if comparison.tag else "")
    std = sheet.value("advantage", f"std_batch{comparison.tag}", label, symbol, std)
    if not std.value:
        note = f"All {comparison.noun}s of the batch are equal, and the advantage is 0."
        return _zero(sheet, comparison, note)
    divisor = std + _eps(sheet)
    size, tied = spread(comparison, mean)
    formula = (comparison.own - mean) / divisor
    words = _words(comparison)
    near = size / _size(divisor)
    number = checked(sheet, words, formula, comparison.core, near=near, note=tied)
    return Judged(number, lambda term: term / divisor)


def _others(sheet, comparison):
    """The other values of the group, and their mean as a line."""
    others = [value for value in comparison.values if value is not comparison.own]
    letter, sub = comparison.letter, comparison.sub
    mean = sheet.line(
        "advantage",
        f"mean{comparison.tag}",
        f"mean of the {count(len(others), f'other {comparison.noun}')}",
        rf"\bar {letter}{sub}",
        total(others) / Number(len(others), "m"),
        general=rf"\frac{{1}}{{m}}\sum_{{j\ne i}} {letter}_j",
        written=len(others) <= TERMS,
        inner=True,
    )
    return others, mean


def _leave_one_out(sheet, comparison):
    one = alone(sheet, comparison)
    if one is not None:
        return one
    n = len(comparison.values)
    if n == 1:
        return _zero(sheet, comparison, "The only score of its group: the advantage is 0.")
    _, mean = _others(sheet, comparison)
    size, tied = spread(comparison, mean)
    formula = comparison.own - mean
    number = checked(sheet, _words(comparison), formula, comparison.core, near=size, note=tied)
    return Judged(number, lambda term: term * Number(n, "n") / Number(n - 1, "m"))


def _leave_one_out_std(sheet, comparison):
    n = len(comparison.values)
    if n == 1:
        return _zero(sheet, comparison, "The only score of its group: the advantage is 0.")
    others, mean = _others(sheet, comparison)
    std = _std_of_others(sheet, comparison, others, mean)
    size, _ = spread(comparison, mean)
    formula, divisor, note = comparison.own - mean, None, "The others are equal: not divided."
    if std.value:
        divisor, note = std + _eps(sheet), ""
        formula, size = formula / divisor, size / _size(divisor)
    words = _words(comparison)
    number = checked(sheet, words, formula, comparison.core, near=size, note=note)

    def divide(term):
        term = term * Number(n, "n") / Number(n - 1, "m")
        return term if divisor is None else term / divisor

    return Judged(number, divide)


def _std_of_others(sheet, comparison, others, mean):
    tag, sub = comparison.tag, comparison.sub
    words = ("advantage", f"std{tag}", "sample standard deviation of the others", rf"\sigma{sub}")
    if len({other.value for other in others}) == 1:
        return sheet.value(*words, 0)
    squares = sheet.line(
        "advantage",
        f"Q{tag}",
        "sum of their squared deviations",
        f"Q{sub}",
        total([Square(other - mean) for other in others]),
        general=rf"\sum_{{j\ne i}} ({comparison.letter}_j - \bar {comparison.letter}{sub})^2",
        written=len(others) <= TERMS,
        inner=True,
    )
    return sheet.line(*words, sqrt(squares / (Number(len(others), "m") - Number(1))), inner=True)


def _uncompared(sheet, comparison):
    words, note = _words(comparison), "No baseline: the score itself."
    formula = total([comparison.own])
    return Judged(checked(sheet, words, formula, comparison.core, note=note), as_is)


def _over_mean(sheet, comparison):
    mean = mean_line(sheet, comparison)
    if mean.value <= 0:
        return _zero(sheet, comparison, "The mean is not above 0, and the advantage is 0.")
    size, tied = spread(comparison, mean)
    divisor = mean + _eps(sheet)
    formula = (comparison.own - mean) / divisor
    words, near = _words(comparison), size / _size(divisor)
    number = checked(sheet, words, formula, comparison.core, near=near, note=tied)
    return Judged(number, lambda term: term / divisor)


def _nonzero_scaled(sheet, comparison):
    scored, nonzero = comparison.scored, comparison.scored & (comparison.scores != 0)
    kept = Number(int(nonzero.sum()) or int(scored.sum()), r"N_{\ne 0}")
    norm = Number(sheet.option("advantage", "f_norm"), r"f_{\mathrm{norm}}")
    below = kept * norm
    label = f"all {comparison.noun}s of the batch over those that are not 0"
    symbol = rf"\alpha{comparison.sub}"
    formula = Number(int(scored.sum()), "N") / below
    words = ("advantage", f"alpha{comparison.tag}", label, symbol)
    alpha = sheet.line(*words, formula)
    note = ""
    if len(comparison.values) == 1 and sheet.option("advantage", "alone") != "zero":
        result, size = alpha * comparison.own, None
        note = f"The only {comparison.noun} of its group, compared with nothing."
    else:
        mean = mean_line(sheet, comparison)
        size, note = spread(comparison, mean)
        result, size = alpha * (comparison.own - mean), size * abs(alpha.value)
    words = _words(comparison)
    number = checked(sheet, words, result, comparison.core, near=size, note=note)
    return Judged(number, lambda term: alpha * term)


def _best_over_second(sheet, comparison):
    values = comparison.values
    by_std = sheet.option("advantage", "divide") == "std"
    divisor = None
    if by_std:
        mean = mean_line(sheet, comparison)
        std = std_line(sheet, comparison, mean)
        divisor = std + _eps(sheet)
    best = max(range(len(values)), key=lambda i: (values[i].value, -i))
    divide = as_is if divisor is None else None
    if divisor is not None and _size(divisor):
        divide = lambda term: term / divisor  # noqa: E731
    if len(values) == 1:
        return _zero(sheet, comparison, "The only score of its group is better than none.", divide)
    if values[best] is not comparison.own:
        return _zero(sheet, comparison, "Only the best of the group has an advantage.", divide)
    if divide is None:
        return _zero(sheet, comparison, "All are equal, and the advantage is 0.", divide)
    second = max((v for v in values if v is not comparison.own), key=lambda v: v.value)
    lead = comparison.own - Number(second.value, f"{comparison.letter}_{{(2)}}")
    words, note = _words(comparison), "The best of its group, against the second best."
    return Judged(checked(sheet, words, divide(lead), comparison.core, note=note), divide)


def _pass_at_k(sheet, comparison):
    k, bar = int(sheet.option("advantage", "k")), sheet.option("advantage", "right_above")
    n, tag, sub = len(comparison.values), comparison.tag, comparison.sub
    right = [value.value > Decimal(str(bar)) for value in comparison.values]
    wrong = n - sum(right)
    label = f"chance that {k} of the {n} are all wrong; {wrong} are"
    none = sheet.value("advantage", f"none{tag}", label, f"q{sub}", _share(wrong, n, k))
    if none.value in (0, 1):
        return _zero(sheet, comparison, "A set passes always or never: the advantage is 0.")
    formula = sqrt(none * (Number(1) - none))
    label = "standard deviation of passing"
    std = sheet.line("advantage", f"std{tag}", label, rf"\sigma{sub}", formula, inner=True)
    divisor = std + _eps(sheet)
    own = comparison.own.value > Decimal(str(bar))
    above = none
    if not own:
        label = "the same of sets with this completion in them"
        share = _share(wrong - 1, n - 1, k - 1)
        above = none - sheet.value("advantage", f"rest{tag}", label, f"u{sub}", share)
    note = f"It counts as {'right' if own else 'wrong'}."
    words = _words(comparison)
    number = checked(sheet, words, above / divisor, comparison.core, note=note)
    return Judged(number, lambda term: term / divisor)


def _share(few, n, k):
    """C(few, k) / C(n, k): the chance that k of n are all among the few."""
    if k == 0:
        return Decimal(1)
    return Decimal(comb(few, k)) / Decimal(comb(n, k)) if few >= 0 and k <= few else Decimal(0)


def _length_weighted(sheet, comparison):
    one = alone(sheet, comparison)
    if one is not None:
        return one
    p = sheet.where[0]
    places = np.flatnonzero(comparison.scored[p]).tolist()
    lengths = [Number(int(sheet.evaluation.lengths[p, i]), f"T_{{{i}}}") for i in places]
    tokens = int(sum(length.value for length in lengths))
    if not tokens:
        mean = mean_line(sheet, comparison)
    else:
        pairs = zip(lengths, comparison.values, strict=True)
        mean = sheet.line(
            "advantage",
            f"mean{comparison.tag}",
            f"mean of the group's {count(len(places), comparison.noun)}, weighted by length",
            rf"\bar {comparison.letter}{comparison.sub}",
            total([length * value for length, value in pairs]) / Number(tokens, r"\sum T"),
            general=rf"\frac{{\sum_i T_i {comparison.letter}_i}}{{\sum_i T_i}}",
            written=len(places) <= TERMS,
            inner=True,
        )
    size, tied = spread(comparison, mean)
    words, formula = _words(comparison), comparison.own - mean
    return Judged(checked(sheet, words, formula, comparison.core, near=size, note=tied), as_is)


def _normaliser(row, *keys):
    """The core's normaliser for a sheet, from the options of these keys."""
    return lambda sheet: row(*(sheet.option("advantage", key) for key in keys))


def _core_length_weighted(sheet):
    return core.length_weighted(sheet.evaluation.lengths, sheet.option("advantage", "alone"))


JUDGES = {
    "mean_std": OVER_STD,
    "mean_only": CENTRED,
    "batch_std": Judge(_over_batch_std, _normaliser(core.over_batch_std, "ddof", "eps")),
    "leave_one_out": Judge(_leave_one_out, _normaliser(core.leave_one_out, "alone")),
    "leave_one_out_std": Judge(_leave_one_out_std, _normaliser(core.leave_one_out_std, "eps")),
    "uncompared": Judge(_uncompared, lambda _sheet: core.uncompared, endless=as_is),
    "length_weighted": Judge(_length_weighted, _core_length_weighted, endless=as_is),
    "over_mean": Judge(_over_mean, _normaliser(core.over_mean, "eps")),
    "nonzero_scaled": Judge(_nonzero_scaled, _normaliser(core.nonzero_scaled, "f_norm", "alone")),
    "best_over_second": Judge(
        _best_over_second, _normaliser(core.best_over_second, "ddof", "eps", "divide")
    ),
    "pass_at_k": Judge(_pass_at_k, _normaliser(core.pass_at_k, "k", "eps", "right_above")),
}
