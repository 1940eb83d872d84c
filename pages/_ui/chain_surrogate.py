"""Surrogates that clip a ratio or weight a log-probability, written out."""

from decimal import Decimal

import numpy as np

from .arithmetic import Number, Square, clip, exp, larger, smaller
from .chain_ratio import completion_sum, difference, log_ratio_of
from .numbers import count
from .sheet import Slope, Writer

_CLIPPED = "Clipped: the ratio is {side} the band and A is {sign}."
_NO_GRADIENT = "No gradient from here."
_SURROGATE = ("surrogate", "s")


def stopped(sheet):
    """Why a clipped token gets no gradient; '' where it is not clipped."""
    evaluation, where = sheet.evaluation, sheet.where
    if evaluation.dual_clipped[where]:
        return f"{_beyond(sheet)} {_NO_GRADIENT}"
    if evaluation.clipped_high[where]:
        return f"{_CLIPPED.format(side='above', sign='positive')} {_NO_GRADIENT}"
    if evaluation.clipped_low[where]:
        return f"{_CLIPPED.format(side='below', sign='negative')} {_NO_GRADIENT}"
    return ""


def _beyond(sheet):
    bound = "delta" if sheet.option("surrogate", "delta") else "c"
    return f"Dual clip: the ratio is above {bound} and A is negative."


def _clip_slope(sheet):
    """A inside the band; outside on the side that counts 0, with the reason."""
    reason = stopped(sheet)
    return Slope(Number(0, "s'") if reason else sheet["A"], reason)


def _band(sheet):
    low, high = (Decimal(str(sheet.option("surrogate", f"epsilon_{e}"))) for e in ("low", "high"))
    return (
        Number(1 - low, r"1-\varepsilon_{\mathrm{low}}"),
        Number(1 + high, r"1+\varepsilon_{\mathrm{high}}"),
    )


def _where(sheet):
    """What the band does to this ratio, in a sentence; '' inside."""
    low, high = _band(sheet)
    ratio, advantage = sheet["ratio"].value, sheet["A"].value
    if low.value <= ratio <= high.value or advantage == 0:
        return ""
    side, beyond = ("above", advantage > 0) if ratio > high.value else ("below", advantage < 0)
    sign = "positive" if advantage > 0 else "negative"
    if beyond:
        return _CLIPPED.format(side=side, sign=sign)
    return f"Not clipped: the ratio is {side} the band, but A is {sign}."


def _two_sides(sheet, ratio=None):
    free = sheet.line(
        "surrogate",
        "s_free",
        "unclipped" if ratio is None else "with the ratio held at delta",
        r"s_{\mathrm{free}}",
        (sheet["ratio"] if ratio is None else ratio) * sheet["A"],
    )
    held = clip(sheet["ratio"], *_band(sheet)) * sheet["A"]
    label = "with the ratio held in the band"
    return free, sheet.line("surrogate", "s_clip", label, r"s_{\mathrm{clip}}", held)


def _clip(sheet):
    formula = smaller(*_two_sides(sheet))
    label = "surrogate: the smaller of the two"
    sheet.line(*_SURROGATE, label, "s", formula, note=_where(sheet))


def _dual_clip(sheet):
    if sheet["A"].value >= 0:
        _clip(sheet)
        return
    free, held = _two_sides(sheet)
    c = Number(sheet.option("surrogate", "dual_clip"), "c")
    label = "what the surrogate may not fall below"
    bound = sheet.line("surrogate", "s_dual", label, r"s_{\mathrm{dual}}", c * sheet["A"])
    beyond = bool(sheet.evaluation.dual_clipped[sheet.where])
    note = _beyond(sheet) if beyond else _where(sheet)
    label = "surrogate: the smaller of the two, held above the bound"
    sheet.line(*_SURROGATE, label, "s", larger(smaller(free, held), bound), note=note)


def _two_sided(sheet):
    delta = Number(sheet.option("surrogate", "delta"), r"\delta")
    formula = smaller(*_two_sides(sheet, smaller(sheet["ratio"], delta)))
    note = stopped(sheet).removesuffix(_NO_GRADIENT).strip()
    sheet.line(*_SURROGATE, "surrogate: the smaller of the two", "s", formula, note=note)


def write_weighted(sheet, weight=None):
    """Write ``weight A log pi``; without a weight the advantage alone."""
    formula = sheet["A"] if weight is None else weight * sheet["A"]
    label = "surrogate: what the log-probability is weighted with, times it"
    sheet.line(*_SURROGATE, label, "s", formula * sheet["new"])


def _weighted_slope(sheet):
    """The weight is a constant of the update: the derivative is ``v A``, past the ratio."""
    slope = sheet["v"] * sheet["A"] if "v" in sheet else sheet["A"]
    return Slope(slope, direct=True)


_WEIGHT = "weight of the log-probability, a constant of the update"


def _cispo(sheet):
    low, high = _band(sheet)
    if sheet.option("surrogate", "bound") == "absolute":
        high = Number(sheet.option("surrogate", "epsilon_high"), r"\varepsilon_{\mathrm{high}}")
    least = low.evaluate(lambda number: number.value)
    held = clip(sheet["ratio"], low, high) if least else smaller(sheet["ratio"], high)
    ratio = sheet["ratio"].value
    kept = ratio == held.evaluate(lambda number: number.value)
    note = "" if kept else "The ratio is held at its bound. The token keeps its gradient."
    write_weighted(sheet, sheet.line("surrogate", "v", _WEIGHT, "v", held, note=note))


def _vespo(sheet):
    sign = "up" if sheet["A"].value >= 0 else "down"
    k = Number(sheet.option("surrogate", f"k_{sign}"), "k")
    rate = Number(sheet.option("surrogate", f"lambda_{sign}"), r"\lambda")
    free = _log_weight(sheet)
    least = Number(float(np.log(1e-8)), r"\log 10^{-8}")
    label = "the same, held within its range"
    log_w = sheet.line("surrogate", "log_w", label, r"\log w", clip(free, least, Number(20)))
    formula = exp(rate + k * log_w - rate * exp(log_w))
    write_weighted(sheet, sheet.line("surrogate", "v", _WEIGHT, "v", formula))


def _log_weight(sheet):
    """The completion's summed log-ratio, each token's held within 20, sampler weights inside."""
    p, g, t = sheet.where
    tokens = count(int(sheet.evaluation.lengths[p, g]), "token")
    words = ("surrogate", "S_w", f"log-ratios of the completion's {tokens}, summed", "S_w")
    weights = sheet.between.batch.sampler_weights
    inside = sheet.option("surrogate", "sampler") == "inside" and weights is not None

    def term(u):
        held = min(max(log_ratio_of(sheet.evaluation, (p, g, u)), Decimal(-20)), Decimal(20))
        if inside:
            with np.errstate(divide="ignore"):
                log = np.clip(np.log(weights[p, g, u]), -20.0, 20.0)
            held += Decimal(str(log))
        return Number(held, rf"\ell_{{{u}}}")

    return completion_sum(sheet, words, term(t), term, r"\sum_t \ell_t")


def _dro(sheet):
    label = "log-ratio of this token"
    step = difference(sheet, "surrogate", "h", label, "h", "new", "old")
    half = Number(sheet.option("surrogate", "dro_beta"), r"\beta_{\mathrm{dro}}") / Number(2)
    formula = sheet["A"] * sheet["new"] - half * Square(step)
    sheet.line(*_SURROGATE, "surrogate", "s", formula)


def _dro_slope(sheet):
    rate = Number(sheet.option("surrogate", "dro_beta"), r"\beta_{\mathrm{dro}}")
    label = "slope of the surrogate: its derivative by the log-probability"
    formula = sheet["A"] - rate * sheet["h"]
    return Slope(sheet.line("gradient", "slope", label, "s'", formula), direct=True)


SURROGATE_WRITERS = {
    ("surrogate", "clip"): Writer(_clip, _clip_slope),
    ("surrogate", "dual_clip"): Writer(_dual_clip, _clip_slope),
    ("surrogate", "two_sided"): Writer(_two_sided, _clip_slope),
    ("surrogate", "reinforce"): Writer(write_weighted, _weighted_slope),
    ("surrogate", "cispo"): Writer(_cispo, _weighted_slope),
    ("surrogate", "vespo"): Writer(_vespo, _weighted_slope),
    ("surrogate", "dro"): Writer(_dro, _dro_slope),
}
