"""The ratio of a token, written out, and the way of a gradient back through it."""

from decimal import Decimal

import numpy as np

from .arithmetic import Number, clip, exp, smaller, total
from .numbers import count
from .sheet import TERMS, Writer


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


def difference(sheet, stage, name, label, symbol, left, right):
    """Write a difference of two log-probabilities by their names."""
    left, right = sheet[left], sheet[right]
    if left.value == right.value == Decimal("-inf"):
        return sheet.value(stage, name, label, symbol, 0, note="Both are -∞, taken as equal.")
    return sheet.line(stage, name, label, symbol, left - right)


def completion_sum(sheet, words, own, term, general, note=""):
    """Write a sum over the completion's tokens; ``term(u)`` is that of another token."""
    p, g, t = sheet.where
    positions = np.flatnonzero(sheet.evaluation.valid[p, g])
    terms = [own if u == t else term(u) for u in positions.tolist()]
    sizes = [abs(each.evaluate(lambda number: number.value)) for each in terms]
    return sheet.line(
        *words,
        total(terms),
        general=general,
        note=note,
        near=max((size for size in sizes if size.is_finite()), default=Decimal(0)),
        written=len(terms) <= TERMS,
    )


def length_of(sheet):
    """T, the number of the completion's tokens."""
    return Number(int(sheet.evaluation.lengths[sheet.where[:2]]), "T")


def log_ratio_of(evaluation, where):
    """Log-ratio of another token, exact in decimals."""
    new, old = (Decimal(str(a[where])) for a in (evaluation.logp_new, evaluation.logp_old))
    return Decimal(0) if new == old else new - old


_LOG_RATIO = ("ratio", "log_ratio")
_RATIO = ("ratio", "ratio", "ratio of new to old policy", r"\rho")
_HELD = "The log-ratio is held at its clamp, where it has no gradient."


def _token_ratio(sheet):
    clamp = sheet.option("ratio", "clamp")
    name, symbol = ("l", r"\ell") if clamp else ("log_ratio", r"\log\rho")
    label = "log-ratio of this token"
    log_ratio = difference(sheet, "ratio", name, label, symbol, "new", "old")
    if clamp:
        held = clip(log_ratio, Number(-clamp), Number(clamp))
        log_ratio = sheet.line(*_LOG_RATIO, "held within its clamp", r"\log\rho", held)
    sheet.line(*_RATIO, exp(log_ratio))


def _completion_ratio(mean):
    """A ratio per completion: of the mean of its log-ratios, or of their sum."""

    def write(sheet):
        p, g, t = sheet.where
        label = "log-ratio of this token"
        own = difference(sheet, "ratio", f"l_{t}", label, rf"\ell_{{{t}}}", "new", "old")
        tokens = count(int(sheet.evaluation.lengths[p, g]), "token")
        clamp = sheet.option("ratio", "clamp")
        free = ("l", r"\ell") if clamp else ("log_ratio", r"\log\rho")
        name, symbol = ("S", "S") if mean else free

        def term(u):
            return Number(log_ratio_of(sheet.evaluation, (p, g, u)), rf"\ell_{{{u}}}")

        words = ("ratio", name, f"sum over the completion's {tokens}", symbol)
        log_ratio = completion_sum(sheet, words, own, term, r"\sum_t \ell_t")
        if mean:
            label = "mean log-ratio of the completion"
            words = ("ratio", free[0], label, free[1])
            log_ratio = sheet.line(*words, log_ratio / length_of(sheet))
        if clamp:
            held = smaller(log_ratio, Number(clamp))
            log_ratio = sheet.line(*_LOG_RATIO, "held at most at its clamp", r"\log\rho", held)
        sheet.line(*_RATIO, exp(log_ratio))

    return write


def _held(sheet):
    """Whether the clamp holds the log-ratio."""
    return "l" in sheet and sheet["l"].value != sheet["log_ratio"].value


def _product(factors):
    first, *others = factors
    for other in others:
        first = first * other
    return first


def _signed(flow, term):
    return term if flow.sign > 0 else -term


def _own_token(sheet, flow):
    """The token answers for its own term alone."""
    stopped = flow.stopped or (_HELD if _held(sheet) else "")
    if stopped:
        sheet.value(*flow.words, 0, note=stopped)
        return
    formula = _product([*(number for number, _ in flow.factors), sheet["ratio"]])
    sheet.line(*flow.words, _signed(flow, formula))


def _all_tokens(mean):
    """Each log-probability moves the ratio of every token of its completion."""

    def back(sheet, flow):
        p, g, t = sheet.where
        valid = sheet.evaluation.valid[p, g]
        alike = bool(np.all(flow.factors[-1][1][p, g][valid] == flow.factors[-1][1][p, g, t]))
        stopped = flow.stopped if alike else ""
        if stopped or _held(sheet):
            sheet.value(*flow.words, 0, note=stopped or _HELD)
            return

        def term(u):
            return _product(
                [
                    number if array[p, g, u] == array[p, g, t] else Number(array[p, g, u])
                    for number, array in flow.factors
                ]
            )

        stage, name, _, symbol = flow.words
        tokens = count(int(valid.sum()), "token")
        pull = completion_sum(
            sheet,
            (
                stage,
                name.replace("g_s", "G").replace("g_", "G_"),
                f"pull on the ratio that the completion's {tokens} share",
                symbol.replace("g_s", "G").replace("g_", "G_"),
            ),
            term(t),
            term,
            rf"\sum_t {flow.general}",
            note=flow.stopped,
        )
        share = sheet["ratio"] / length_of(sheet) if mean else sheet["ratio"]
        sheet.line(*flow.words, _signed(flow, share * pull))

    return back


RATIO_WRITERS = {
    ("ratio", "token"): Writer(_token_ratio, _own_token),
    ("ratio", "sequence"): Writer(_completion_ratio(mean=True), _all_tokens(mean=True)),
    ("ratio", "sequence_token"): Writer(_completion_ratio(mean=True), _own_token),
    ("ratio", "sequence_product"): Writer(_completion_ratio(mean=False), _all_tokens(mean=False)),
}
