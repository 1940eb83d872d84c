"""Surrogates that bend, drop or average ratios, written out: SAPO, DPPO and GMPO."""

from decimal import Decimal

from .arithmetic import Number, clip, exp, smaller
from .chain_ratio import completion_sum, difference, length_of, log_ratio_of
from .chain_surrogate import write_weighted
from .numbers import count
from .sheet import Slope, Writer

_SURROGATE = ("surrogate", "s")
_ONE = Number(1)


def _sapo(sheet):
    sign = "up" if sheet["A"].value > 0 else "down"
    tau = sheet.given("tau", sheet.option("surrogate", f"tau_{sign}"), r"\tau")
    gate = _ONE / (_ONE + exp(-(tau * (sheet["ratio"] - _ONE))))
    q = sheet.line("surrogate", "q", "gate: 1/2 at ratio 1", "q", gate)
    label = "surrogate: the gate, scaled to the slope of the ratio"
    sheet.line(*_SURROGATE, label, "s", Number(4) / tau * q * sheet["A"])


def _sapo_slope(sheet):
    label = "slope of the surrogate: its derivative by the ratio"
    formula = Number(4) * sheet["q"] * (_ONE - sheet["q"]) * sheet["A"]
    return Slope(sheet.line("gradient", "slope", label, "s'", formula))


def _dppo(far):
    """A DPPO row: ``far(sheet)`` writes how far the token has moved."""

    def write(sheet):
        far(sheet)
        if _dropped(sheet):
            sheet.value(*_SURROGATE, "surrogate", "s", 0, note=_dropped(sheet))
        elif sheet.option("surrogate", "form") == "ratio":
            sheet.line(*_SURROGATE, "surrogate", "s", sheet["ratio"] * sheet["A"])
        else:
            bound = Number(sheet.option("surrogate", "truncate"), "c")
            label = "weight of the log-probability, a constant of the update"
            held = smaller(sheet["ratio"], bound)
            write_weighted(sheet, sheet.line("surrogate", "v", label, "v", held))

    return Writer(write, _dppo_slope)


def _dropped(sheet):
    """Why the token is dropped; '' where it is kept."""
    if sheet.evaluation.clipped_high[sheet.where]:
        return "Dropped: it has risen beyond the bound, and A is positive."
    if sheet.evaluation.clipped_low[sheet.where]:
        return "Dropped: it has fallen beyond the bound, and A is not positive."
    return ""


def _dppo_slope(sheet):
    direct = sheet.option("surrogate", "form") != "ratio"
    if _dropped(sheet):
        return Slope(Number(0, "s'"), _dropped(sheet), direct)
    return Slope(sheet["v"] * sheet["A"] if direct else sheet["A"], direct=direct)


def _total_variation(sheet):
    label = "how far the probability of this token has moved"
    formula = exp(sheet["new"]) - exp(sheet["old"])
    sheet.line("surrogate", "D", label, "D", formula)


def _bernoulli(sheet):
    label = "KL of the token against all others, old to new"
    p, q = (
        _chance(sheet, name, symbol)
        for name, symbol in (("old", r"p_{\mathrm{old}}"), ("new", r"p_{\mathrm{new}}"))
    )
    found = p * (p / q).ln() + (1 - p) * ((1 - p) / (1 - q)).ln()
    sheet.value("surrogate", "D", label, "D", found)


def _chance(sheet, name, symbol):
    """A probability, kept off 0 and 1 as in the core."""
    edge = Decimal("1e-8")
    label = f"probability under the {name} policy"
    held = clip(exp(sheet[name]), Number(edge), Number(1 - edge))
    return sheet.line("surrogate", f"p_{name}", label, symbol, held).value


def _gmpo(sheet):
    p, g, t = sheet.where
    tokens = count(int(sheet.evaluation.lengths[p, g]), "token")
    label = "log-ratio of this token"
    own = difference(sheet, "surrogate", f"l_{t}", label, rf"\ell_{{{t}}}", "new", "old")
    own_held = _log_held(sheet, (p, g, t), own.value)
    if own_held != own.value:
        label = "held at the bound on its side"
        own = sheet.value("surrogate", "l_held", label, r"\ell_{\mathrm{held}}", own_held)

    def term(u):
        where = (p, g, u)
        value = _log_held(sheet, where, log_ratio_of(sheet.evaluation, where))
        return Number(value, rf"\ell_{{{u}}}")

    words = ("surrogate", "S_l", f"sum over the completion's {tokens}", r"S_\ell")
    summed = completion_sum(sheet, words, own, term, r"\sum_t \ell_t")
    mean = exp(summed / _counted(sheet))
    if sheet.option("surrogate", "count_eps"):
        mean = mean * (length_of(sheet) / _counted(sheet))
    mean = sheet.line("surrogate", "M", "geometric mean of these ratios", "M", mean)
    sheet.line(*_SURROGATE, "surrogate, the same at each token of A", "s", mean * sheet["A"])


def _counted(sheet):
    """T, with what is added to token counts."""
    eps = sheet.option("surrogate", "count_eps")
    length = length_of(sheet)
    return length + Number(eps, r"\mathrm{eps}") if eps else length


def _log_held(sheet, where, log_ratio):
    if sheet.evaluation.clipped_high[where]:
        return Decimal(str(sheet.option("surrogate", "log_high")))
    if sheet.evaluation.clipped_low[where]:
        return -Decimal(str(sheet.option("surrogate", "log_low")))
    return log_ratio


def _gmpo_back(sheet):
    """All terms of the completion hold the same mean, and each log-probability moves it."""
    p, g, _ = sheet.where
    words = ("gradient", "g_s", "gradient of the surrogate part", "g_s")
    if "l_held" in sheet:
        sheet.value(*words, 0, note="The log-ratio is held at its bound. No gradient from here.")
        return
    evaluation = sheet.evaluation

    def term(u):
        return Number(evaluation.weight[p, g, u]) * Number(evaluation.surrogate[p, g, u])

    tokens = count(int(evaluation.lengths[p, g]), "token")
    label = f"weighted surrogates of the completion's {tokens}"
    pull = completion_sum(
        sheet, ("gradient", "G", label, "G"), sheet["w"] * sheet["s"], term, r"\sum_t w_t\,s_t"
    )
    sheet.line(*words, pull / _counted(sheet))


SMOOTH_WRITERS = {
    ("surrogate", "sapo"): Writer(_sapo, _sapo_slope),
    ("surrogate", "dppo_tv"): _dppo(_total_variation),
    ("surrogate", "dppo_kl"): _dppo(_bernoulli),
    ("surrogate", "gmpo"): Writer(_gmpo, _gmpo_back),
}
