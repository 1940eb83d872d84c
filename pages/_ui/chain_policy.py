"""Ratio, surrogate, KL and weight of a token, written out, with their parts of the gradient."""

from decimal import Decimal

import numpy as np

from .arithmetic import Number, Square, clip, exp, larger, smaller, total
from .numbers import count
from .sheet import TERMS, Slope, Writer


def drifted_policy(sheet):
    """The new policy's log-probability, with the way there if a drift moves it."""
    p, g, t = sheet.where
    evaluation, drift = sheet.evaluation, sheet.scenario.drift
    used = evaluation.logp_new[p, g, t]
    symbol, old = r"\log\pi_{\mathrm{new}}", sheet["old"]
    if drift == 1:
        sheet.given("new", used, symbol)
        return
    stored = Number(sheet.scenario["logp_new"][p, g, t], r"\log\pi_{\mathrm{table}}")
    words = ("ratio", "new", "log-probability under the new policy, drifted", symbol)
    if evaluation.held[p, g, t]:
        sheet.value(*words, used, note="The drift leads above 0, where it is held.")
    elif not (stored.value.is_finite() and old.value.is_finite()):
        sheet.value(*words, used, note="No line leads to -∞: the drift takes the nearer end.")
    else:
        sheet.line(*words, old + Number(drift, r"\mathrm{drift}") * (stored - old))


def _difference(sheet, stage, name, label, symbol, left, right):
    left, right = sheet[left], sheet[right]
    if left.value == right.value == Decimal("-inf"):
        return sheet.value(stage, name, label, symbol, 0, note="Both are -∞, taken as equal.")
    return sheet.line(stage, name, label, symbol, left - right)


_RATIO = ("ratio", "ratio", "ratio of new to old policy", r"\rho")


def _token_ratio(sheet):
    label = "log-ratio of this token"
    log_ratio = _difference(sheet, "ratio", "log_ratio", label, r"\log\rho", "new", "old")
    sheet.line(*_RATIO, exp(log_ratio))


def _sequence_ratio(sheet):
    p, g, t = sheet.where
    label = "log-ratio of this token"
    own = _difference(sheet, "ratio", f"l_{t}", label, rf"\ell_{{{t}}}", "new", "old")
    positions = np.flatnonzero(sheet.evaluation.valid[p, g])
    terms = [own if u == t else _log_ratio(sheet.evaluation, (p, g, u)) for u in positions]
    sizes = [abs(term.value) for term in terms if term.value.is_finite()]
    summed = sheet.line(
        "ratio",
        "S",
        f"sum over the completion's {count(len(terms), 'token')}",
        "S",
        total(terms),
        general=r"\sum_t \ell_t",
        near=max(sizes, default=Decimal(0)),
        written=len(terms) <= TERMS,
    )
    label = "mean log-ratio of the completion"
    mean = sheet.line("ratio", "log_ratio", label, r"\log\rho", summed / _length(sheet))
    sheet.line(*_RATIO, exp(mean))


def _log_ratio(evaluation, where):
    new, old = (Decimal(str(a[where])) for a in (evaluation.logp_new, evaluation.logp_old))
    return Number(Decimal(0) if new == old else new - old, rf"\ell_{{{where[2]}}}")


def _length(sheet):
    p, g, _ = sheet.where
    return Number(int(sheet.evaluation.lengths[p, g]), "T")


_POLICY_GRADIENT = ("gradient", "g_s", "gradient of the surrogate part", "g_s")


def _token_gradient(sheet, slope):
    if slope.stopped:
        sheet.value(*_POLICY_GRADIENT, 0, note=slope.stopped)
        return
    sheet.line(*_POLICY_GRADIENT, sheet["w"] * slope.number * sheet["ratio"])


def _sequence_gradient(sheet, slope):
    """Each log-probability moves the ratio of every token of its completion."""
    p, g, t = sheet.where
    weight, slopes = sheet.evaluation.weight[p, g], sheet.slopes[p, g]
    positions = np.flatnonzero(sheet.evaluation.valid[p, g])
    alike = bool(np.all(slopes[positions] == slopes[t]))
    if slope.stopped and alike:
        sheet.value(*_POLICY_GRADIENT, 0, note=slope.stopped)
        return
    pulls = [
        (sheet["w"] if weight[u] == weight[t] else Number(weight[u]))
        * (slope.number if slopes[u] == slopes[t] else Number(slopes[u]))
        for u in positions
    ]
    symbol = slope.number.symbol if alike else "s'_t"
    pull = sheet.line(
        "gradient",
        "G",
        f"pull on the ratio that the completion's {count(len(positions), 'token')} share",
        "G",
        total(pulls),
        general=rf"\sum_t w_t {symbol}",
        note=slope.stopped,
        written=len(pulls) <= TERMS,
    )
    sheet.line(*_POLICY_GRADIENT, sheet["ratio"] / _length(sheet) * pull)


def _clip_slope(sheet):
    """A inside the band; outside on the side that counts 0, with the reason."""
    reason = _stopped(sheet)
    return Slope(Number(0, "s'") if reason else sheet["A"], reason)


def _stopped(sheet):
    evaluation, where = sheet.evaluation, sheet.where
    if evaluation.dual_clipped[where]:
        return "Dual clip: the ratio is above c and A is negative. No gradient from here."
    if evaluation.clipped_high[where]:
        return "Clipped: the ratio is above the band and A is positive. No gradient from here."
    if evaluation.clipped_low[where]:
        return "Clipped: the ratio is below the band and A is negative. No gradient from here."
    return ""


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
        return f"Clipped: the ratio is {side} the band and A is {sign}."
    return f"Not clipped: the ratio is {side} the band, but A is {sign}."


def _two_sides(sheet):
    free = sheet.line(
        "surrogate", "s_free", "unclipped", r"s_{\mathrm{free}}", sheet["ratio"] * sheet["A"]
    )
    held = clip(sheet["ratio"], *_band(sheet)) * sheet["A"]
    label = "with the ratio held in the band"
    return free, sheet.line("surrogate", "s_clip", label, r"s_{\mathrm{clip}}", held)


def _clip(sheet):
    formula = smaller(*_two_sides(sheet))
    label = "surrogate: the smaller of the two"
    sheet.line("surrogate", "s", label, "s", formula, note=_where(sheet))


def _dual_clip(sheet):
    if sheet["A"].value >= 0:
        _clip(sheet)
        return
    free, held = _two_sides(sheet)
    c = Number(sheet.option("surrogate", "dual_clip"), "c")
    label = "what the surrogate may not fall below"
    bound = sheet.line("surrogate", "s_dual", label, r"s_{\mathrm{dual}}", c * sheet["A"])
    beyond = bool(sheet.evaluation.dual_clipped[sheet.where])
    note = "Dual clip: the ratio is above c and A is negative." if beyond else _where(sheet)
    label = "surrogate: the smaller of the two, held above the bound"
    sheet.line("surrogate", "s", label, "s", larger(smaller(free, held), bound), note=note)


def _kl(value, pull):
    """A KL row: its formula in d, and the gradient of its penalty from ``w beta`` and d."""

    def write(sheet):
        policy = "old" if sheet.in_reward else "new"
        label = "log-ratio of reference to policy"
        d = _difference(sheet, "kl", "d", label, "d", "ref", policy)
        words = ("kl", "KL", "KL, estimated from this token", r"\mathrm{KL}")
        if d.value == Decimal("inf") and sheet.evaluation.kl[sheet.where] == np.inf:
            sheet.value(*words, "inf", note="d is infinite, and so is the KL.")
        else:
            sheet.line(*words, value(d))
        beta = sheet.given("beta", sheet.option("kl", "beta"), r"\beta")
        penalty = sheet.keep("penalty", beta * sheet["KL"])
        if sheet.in_reward:
            sheet.line("kl", "p", "penalty of this token", "p", penalty)

    def gradient(sheet):
        formula = pull(sheet["w"] * sheet["beta"], sheet["d"])
        label = "gradient of the KL part"
        sheet.line("gradient", "g_KL", label, r"g_{\mathrm{KL}}", formula)

    return Writer(write, gradient)


_WEIGHT = ("objective", "w", "weight of this token", "w")


def _completion_mean(sheet):
    counted = sheet.scenario["present"]
    if sheet.option("aggregation", "empty") == "drop":
        counted = counted & (sheet.evaluation.lengths > 0)
    completions = Number(int(counted.sum()), "N")
    sheet.line(*_WEIGHT, Number(1) / (completions * _length(sheet)))


def _token_mean(sheet):
    tokens = Number(int(sheet.evaluation.valid.sum()), r"\textstyle\sum_i T_i")
    sheet.line(*_WEIGHT, Number(1) / tokens)


def _constant(sheet):
    completions = Number(int(sheet.scenario["present"].sum()), "N")
    length = sheet.option("aggregation", "length") or sheet.evaluation.valid.shape[-1]
    sheet.line(*_WEIGHT, Number(1) / (completions * Number(length, r"L_{\max}")))


POLICY_WRITERS = {
    ("ratio", "token"): Writer(_token_ratio, _token_gradient),
    ("ratio", "sequence"): Writer(_sequence_ratio, _sequence_gradient),
    ("surrogate", "clip"): Writer(_clip, _clip_slope),
    ("surrogate", "dual_clip"): Writer(_dual_clip, _clip_slope),
    ("kl", "k3"): _kl(
        lambda d: exp(d) - d - Number(1), lambda pull, d: -(pull * (Number(1) - exp(d)))
    ),
    ("kl", "k2"): _kl(lambda d: Square(d) / Number(2), lambda pull, d: pull * d),
    ("kl", "k1"): _kl(lambda d: -d, lambda pull, d: -pull),
    ("aggregation", "completion_mean"): Writer(_completion_mean),
    ("aggregation", "token_mean"): Writer(_token_mean),
    ("aggregation", "constant"): Writer(_constant),
}
