"""What a token counts in the loss, written out: what drops or weights it, and its entropy."""

from decimal import Decimal

import numpy as np

from .arithmetic import Number, clip, exp, larger, smaller
from .chain_ratio import completion_sum, difference, length_of
from .numbers import count, number
from .sheet import Writer

_WEIGHT = ("objective", "w")
_WORDS = ("weight of this token", "w")


def weight_of_token(sheet, writer):
    """Write w: by the aggregation, times the last factor; 0 for a token that leaves the loss."""
    for stage in ("truncated", "tied"):
        if sheet.acts(stage):
            writer(sheet, stage).write(sheet)
    if not sheet.evaluation.kept[sheet.where]:
        sheet.value(*_WEIGHT, *_WORDS, 0, note="The token leaves the loss.")
    elif sheet.acts("accumulation"):
        own = sheet.between.aggregated
        with sheet.instead("w", "w_own", r"w_{\mathrm{own}}", own):
            writer(sheet, "aggregation").write(sheet)
        writer(sheet, "accumulation").write(sheet)
    else:
        writer(sheet, "aggregation").write(sheet)


def _leaves(stage, reason):
    """A row that drops tokens: nothing is written where the token stays."""

    def write(sheet):
        if not getattr(sheet.between, stage).tokens[sheet.where]:
            sheet.note("objective", "leaves the loss", reason)

    return Writer(write)


def _nothing(_sheet):
    """A row that leaves everything as it is."""


def _factor(sheet):
    factor = Number(sheet.option("accumulation", "factor"), r"\mathrm{factor}")
    sheet.line(*_WEIGHT, *_WORDS, factor * sheet["w_own"])


def _bonus(sheet):
    entropy = Number(sheet.scenario["entropy"][sheet.where], "H")
    coefficient = Number(sheet.option("entropy", "coefficient"), "c_H")
    sheet.line("objective", "b", "entropy bonus of this token", "b", coefficient * entropy)


# ---- selection and correction


_SELECTED = ("surrogate", "m", "selected (1) or not (0)", "m")


def _by_entropy(sheet):
    _selected(sheet, _its_entropy(sheet))


def _by_policy(sheet):
    _selected(sheet, _its_step(sheet))


def _by_both(sheet):
    _selected(sheet, f"{_its_entropy(sheet)} {_its_step(sheet)}")


def _selected(sheet, note):
    sheet.value(*_SELECTED, int(sheet.between.selection[sheet.where]), note=note)


def _its_entropy(sheet):
    entropies = sheet.between.batch.entropy[sheet.evaluation.valid]
    share = sheet.option("selection", "share")
    bar = np.quantile(entropies, 1 - share)
    own = sheet.scenario["entropy"][sheet.where]
    return (
        f"Its entropy is {number(own)}; tokens of at least {number(bar)} are selected, "
        f"the top {number(100 * share)}%."
    )


def _its_step(sheet):
    p, g, _ = sheet.where
    batch, valid = sheet.between.batch, sheet.evaluation.valid[p, g]
    with np.errstate(invalid="ignore"):
        steps = (batch.logp_sampler - batch.logp_new)[p, g][valid]
        far = np.mean(np.where(np.isnan(steps), 0.0, steps))  # unknown: not moved
    bar = number(sheet.option("selection", "threshold"))
    return (
        f"The completion has lost {number(far)} nats a token, against a threshold of {bar}. "
        "Only one beyond it with a negative advantage goes."
    )


_CORRECTION = ("surrogate", "c", "correction for the sampler", "c")


def _given(sheet):
    own = sheet.scenario["sampler_weights"][sheet.where]
    if sheet.option("correction", "level") == "token":
        sheet.value(*_CORRECTION, own, note="Given, not computed.")
    else:
        found = sheet.between.correction[sheet.where]
        sheet.value(*_CORRECTION, found, note="The geometric mean over the completion.")


def _sampler(sheet):
    level = sheet.option("correction", "level")
    log = _step_to_sampler(sheet)
    judged = log if level == "token" else _over_completion(sheet, log, level)
    bound = sheet.option("correction", "clamp")
    if bound:
        held = clip(judged, Number(-bound), Number(bound))
        judged = sheet.line("surrogate", "u", "the same, held within its clamp", "u", held)
    _bounded(sheet, judged, log if level == "sequence_filter" else judged)


def _bounded(sheet, judged, used):
    """Write c: what is ``used`` where what is ``judged`` is inside the bounds."""
    low, high = (sheet.option("correction", key) for key in ("low", "high"))
    ratio = judged.value.exp()
    inside = Decimal(str(low)) <= ratio and (not high or ratio <= Decimal(str(high)))
    truncates = sheet.option("correction", "mode") == "truncate"
    gone = bool(sheet.between.correction[sheet.where] == 0)
    if (not inside and not truncates) or (used is not judged and gone):
        sheet.value(*_CORRECTION, 0, note="Beyond the bounds: the token is dropped.")
        return
    formula = exp(used)
    if used is judged and truncates:
        formula = larger(formula, Number(low)) if low else formula
        formula = smaller(formula, Number(high)) if high else formula
    note = "" if inside else "Held at the bound."
    sheet.line(*_CORRECTION, formula, note=note)


def _step_to_sampler(sheet):
    own = sheet.scenario["logp_sampler"][sheet.where]
    words = ("surrogate", "u_t", "log-ratio of trainer to sampler", "u_t")
    if np.isnan(own):
        return sheet.value(*words, 0, note="The sampler's log-probability is unknown.")
    sheet.given("sampler", own, r"\log\pi_{\mathrm{sampler}}")
    return difference(sheet, *words, "old", "sampler")


def _over_completion(sheet, own, level):
    p, g, _ = sheet.where
    sampler, old = sheet.scenario["logp_sampler"], sheet.evaluation.logp_old

    def term(u):
        here, there = old[p, g, u], sampler[p, g, u]
        unknown = np.isnan(there) or here == there
        found = Decimal(0) if unknown else Decimal(str(here)) - Decimal(str(there))
        return Number(found, f"u_{{{u}}}")

    tokens = count(int(sheet.evaluation.lengths[p, g]), "token")
    words = ("surrogate", "U", f"sum over the completion's {tokens}", "U")
    summed = completion_sum(sheet, words, own, term, r"\sum_t u_t")
    if level == "sequence":
        return summed
    label = "mean over the completion"
    return sheet.line("surrogate", "U_mean", label, r"\bar u", summed / length_of(sheet))


# ---- aggregation, over the tokens that denominators count


def _counted_length(sheet):
    return Number(int(sheet.between.counted[sheet.where[:2]].sum()), "T")


def _completions(sheet):
    given = sheet.option("aggregation", "completions")
    if given:
        return Number(given, "N")
    counted = sheet.scenario["present"]
    if sheet.option("aggregation", "empty") == "drop":
        counted = counted & sheet.between.counted.any(axis=-1)
    return Number(int(counted.sum()), "N")


def _constant_length(sheet):
    length = sheet.option("aggregation", "length") or sheet.evaluation.valid.shape[-1]
    return Number(length, r"L_{\max}")


def _completion_mean(sheet):
    length, eps = _counted_length(sheet), sheet.option("aggregation", "count_eps")
    length = length + Number(eps, r"\mathrm{eps}") if eps else length
    return _completions(sheet) * length


def _token_mean(sheet):
    tokens = sheet.option("aggregation", "tokens") or int(sheet.between.counted.sum())
    return Number(tokens, r"\textstyle\sum_i T_i")


def _prompt_mean(sheet):
    p = sheet.where[0]
    counted = sheet.between.counted
    prompts = Number(int(counted.any(axis=(1, 2)).sum()), "P")
    if sheet.option("aggregation", "inner") == "tokens":
        return prompts * Number(int(counted[p].sum()), r"T_p")
    return prompts * Number(int(counted[p].any(axis=-1).sum()), "n_p") * _counted_length(sheet)


def _over(denominator):
    """A row whose weight is 1 over something."""
    return Writer(lambda sheet: sheet.line(*_WEIGHT, *_WORDS, Number(1) / denominator(sheet)))


_DENOMINATORS = {
    "completion_mean": _completion_mean,
    "token_mean": _token_mean,
    "constant": lambda sheet: _completions(sheet) * _constant_length(sheet),
    "length_only": _constant_length,
    "completion_sum": _completions,
    "prompt_mean": _prompt_mean,
}

LOSS_WRITERS = {
    ("truncated", "keep"): Writer(_nothing),
    ("truncated", "drop"): _leaves("truncated", "The answer was cut at the length limit."),
    ("tied", "keep"): Writer(_nothing),
    ("tied", "drop"): _leaves("tied", "All scores of the group are equal."),
    ("tied", "zero"): _leaves("tied", "Its advantage is 0."),
    ("selection", "all"): Writer(_nothing),
    ("selection", "entropy"): Writer(_by_entropy),
    ("selection", "on_policy"): Writer(_by_policy),
    ("selection", "entropy_on_policy"): Writer(_by_both),
    ("correction", "none"): Writer(_nothing),
    ("correction", "sampler"): Writer(_sampler),
    ("correction", "given"): Writer(_given),
    ("entropy", "none"): Writer(_nothing),
    ("entropy", "bonus"): Writer(_bonus),
    ("accumulation", "factor"): Writer(_factor),
    ("aggregation", "token_sum"): Writer(lambda sheet: sheet.value(*_WEIGHT, *_WORDS, 1)),
    **{("aggregation", key): _over(below) for key, below in _DENOMINATORS.items()},
}
