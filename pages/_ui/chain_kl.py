"""KL of a token, written out: estimate, clamps, weights, and its part of the gradient."""

from decimal import Decimal

from grpo_core.numerics import times

from .arithmetic import Number, Square, clip, exp, larger
from .chain_ratio import RATIO_WRITERS, difference
from .sheet import Flow, Writer

_HELD = "The KL is held at its clamp, where it has no gradient."
_KL = r"\mathrm{KL}"


def _kl(value, slope, pull, endless=False):
    """A KL row: its formula in d, its slope, and the gradient from ``w beta`` and d.

    ``slope`` is by the log-probability; ``pull`` is minus that, times ``w beta``. ``endless``
    says that the formula does not show that the KL of an infinite d is infinite.
    """

    def write(sheet):
        d = _distance(sheet)
        weighted = sheet.place == "objective" and sheet.option("kl", "weight") == "ratio"
        bound = sheet.option("kl", "clamp_out")
        own = ("KL_own", _KL + r"_{\mathrm{own}}") if weighted else ("KL", _KL)
        free = ("KL_free", _KL + r"_{\mathrm{free}}") if bound else own
        words = ("kl", free[0], "KL, estimated from this token", free[1])
        if endless and d.value == Decimal("inf"):
            sheet.value(*words, "inf", note="d is infinite, and so is the KL.")
        else:
            sheet.line(*words, value(d))
        if bound:
            held = clip(sheet["KL_free"], Number(-bound), Number(bound))
            sheet.line("kl", own[0], "KL, held within its clamp", own[1], held)
        if weighted:
            label = "KL, weighted by the ratio"
            sheet.line("kl", "KL", label, _KL, sheet["ratio"] * sheet["KL_own"])
        beta = sheet.given("beta", sheet.option("kl", "beta"), r"\beta")
        penalty = sheet.keep("penalty", beta * sheet["KL"])
        if sheet.place != "objective":
            sheet.line("kl", "p", "penalty of this token", "p", penalty)

    return Writer(write, lambda sheet: _gradient(sheet, slope, pull))


def _distance(sheet):
    policy = "new" if sheet.place == "objective" else "old"
    bound = sheet.option("kl", "clamp_in")
    name, symbol = ("d_free", r"d_{\mathrm{free}}") if bound else ("d", "d")
    label = "log-ratio of reference to policy"
    d = difference(sheet, "kl", name, label, symbol, "ref", policy)
    if not bound:
        return d
    held = clip(d, Number(-bound), Number(bound))
    return sheet.line("kl", "d", "held within its clamp", "d", held)


_GRADIENT = ("gradient", "g_KL", "gradient of the KL part", r"g_{\mathrm{KL}}")
_DIRECT = ("gradient", "g_d", "gradient of the KL by itself", "g_d")
_BY_RATIO = ("gradient", "g_r", "gradient of the KL through the ratio", "g_r")


def _gradient(sheet, slope, pull):
    weight = sheet.option("kl", "weight")
    if weight == "ratio":
        _own(sheet, slope, pull, _DIRECT, (sheet["w"] * sheet["beta"]) * sheet["ratio"])
        _through_the_ratio(sheet)
        sheet.line(*_GRADIENT, sheet["g_d"] + sheet["g_r"])
        return
    score = sheet["KL"] if weight == "score" else None
    _own(sheet, slope, pull, _GRADIENT, sheet["w"] * sheet["beta"], score)


def _own(sheet, slope, pull, words, strength, score=None):
    """The estimate's own gradient, with that of the score function where it is weighted so."""
    own = sheet.option("kl", "gradient") != "k2"
    if own and _is_held(sheet):
        if score is None:
            sheet.value(*words, 0, note=_HELD)
        else:
            sheet.line(*words, -(strength * score), note=_HELD)
        return
    d = sheet["d_free"] if not own and "d_free" in sheet else sheet["d"]
    if score is not None:
        sheet.line(*words, -(strength * ((slope if own else _k2_slope)(d) + score)))
    else:
        sheet.line(*words, (pull if own else _k2_pull)(strength, d))


def _is_held(sheet):
    pairs = (("d_free", "d"), ("KL_free", "KL_own" if "KL_own" in sheet else "KL"))
    return any(a in sheet and sheet[a].value != sheet[b].value for a, b in pairs)


def _through_the_ratio(sheet):
    between, weight = sheet.between, sheet.evaluation.weight
    back = RATIO_WRITERS.get(("ratio", sheet.scenario.conventions["ratio"].variant))
    if back is None:
        found = between.ratio.backward(0 - times(weight, between.kl.d_ratio))
        sheet.value(*_BY_RATIO, found[sheet.where], note="As the ratio's row leads it back.")
        return
    own = sheet["beta"] * sheet["KL_own"]
    general = r"w_t\,\beta\,\mathrm{KL}_{\mathrm{own},t}"
    factors = ((sheet["w"], weight), (own, between.kl.d_ratio))
    back.back(sheet, Flow(_BY_RATIO, factors, general, sign=-1))


def _k2_slope(d):
    return -d


def _k2_pull(strength, d):
    return strength * d


def _sign(d):
    return Number((d.value > 0) - (d.value < 0), r"\operatorname{sgn}(d)")


KL_WRITERS = {
    ("kl", "k3"): _kl(
        lambda d: exp(d) - d - Number(1),
        lambda d: Number(1) - exp(d),
        lambda strength, d: -(strength * (Number(1) - exp(d))),
        endless=True,
    ),
    ("kl", "k2"): _kl(lambda d: Square(d) / Number(2), _k2_slope, _k2_pull),
    ("kl", "k1"): _kl(lambda d: -d, lambda d: Number(1), lambda strength, d: -strength),
    ("kl", "abs"): _kl(
        lambda d: larger(d, -d), lambda d: -_sign(d), lambda strength, d: strength * _sign(d)
    ),
}
