"""From the completion's advantage to the token's: KL in the returns, whitening, and its limit."""

from decimal import Decimal
from functools import partial

import numpy as np

from grpo_core.numerics import total as core_total

from .arithmetic import Number, Square, clip, larger, sqrt, total
from .chain_baselines import JUDGES
from .chain_combining import Wanted, is_short, largest
from .chain_scores import judged_scores
from .computed import held_within
from .numbers import count
from .sheet import TERMS, Writer

_TOKEN = "advantage of this token"


def token_advantage(sheet, writer):
    """Write A: by the advantage row, then with what is done to the advantages of tokens."""
    row = writer(sheet, "advantage")
    if not sheet.evaluation.valid[sheet.where]:
        row.write(sheet)
        return
    limit = held_within(sheet.scenario.conventions)
    steps = [(row.write, "A_own", r"A_{\mathrm{own}}", sheet.between.advantages.token_advantages)]
    if limit:
        hold = partial(_held, limit=limit)
        steps.append((hold, "A_held", r"A_{\mathrm{held}}", sheet.between.held))
    if sheet.place == "returns":
        steps.append((_less_returns, "A_less", r"A_{\mathrm{less}}", sheet.between.unwhitened))
    if sheet.scenario.conventions["whitening"].variant != "none":
        steps.append((writer(sheet, "whitening").write, "A", "A", None))
    for write, *names in steps[:-1]:
        with sheet.instead("A", *names):
            write(sheet)
    steps[-1][0](sheet)


def _less_returns(sheet):
    """What the KL takes from this token's advantage: its penalty and those after it."""
    p, g, t = sheet.where
    penalties = sheet.between.kl.return_penalty[p, g]
    places = [u for u in np.flatnonzero(sheet.evaluation.valid[p, g]).tolist() if u >= t]
    terms = [sheet["p"] if u == t else Number(penalties[u], f"p_{{{u}}}") for u in places]
    taken = sheet.line(
        "advantage",
        "K",
        f"KL from this token on, over {count(len(terms), 'token')}",
        "K",
        total(terms),
        general=r"\sum_{u\ge t} p_u",
        written=is_short(terms),
    )
    label = f"{_TOKEN}, less the KL in its returns"
    own = _before(sheet, "A_held", "A_own")
    sheet.line("advantage", "A", label, "A", own - taken, near=largest([own, taken]))


def _before(sheet, *names):
    """The advantage as the step before left it."""
    return next(sheet[name] for name in (*names, "A_less", "A_held", "A_own") if name in sheet)


def _held(sheet, limit, *names):
    """Write A held within a limit."""
    held = clip(_before(sheet, *names), Number(-limit), Number(limit))
    sheet.line("advantage", "A", f"{_TOKEN}, held within its limit", "A", held)


_MEAN = ("advantage", "mean_A", "mean over the batch's {tokens}", r"\bar A")
_VARIANCE = ("advantage", "var_A", "variance over the same tokens", r"\sigma_A^{2}")


def _over_tokens(sheet):
    if not sheet.option("whitening", "limit"):
        _whitened(sheet)
        return
    limit = sheet.option("whitening", "limit")
    options = {**sheet.scenario.conventions["whitening"].options, "limit": 0.0}
    row, between = sheet.scenario.conventions.variant("whitening"), sheet.between
    own = between.advantages.token_advantages
    core = row.function(between.batch, own, between.taken, **options)
    with sheet.instead("A", "A_white", r"A_{\mathrm{white}}", core):
        _whitened(sheet)
    _held(sheet, limit, "A_white")


def _whitened(sheet):
    words = ("advantage", "A", f"{_TOKEN}, whitened over the batch", "A")
    own = _before(sheet)
    valid, unwhitened = sheet.evaluation.valid, sheet.between.unwhitened
    values = unwhitened[valid].astype(np.float64)
    if not (np.all(np.isfinite(values)) and own.value.is_finite()):
        sheet.computed(*words, note="An advantage of the batch is infinite.")
        return
    if not np.any(values != values[0]):
        sheet.value(*words, 0, note="All advantages of the batch are equal.")
        return
    mean, variance = (_written if len(values) <= TERMS else _summed)(sheet, values)
    eps = Number(sheet.option("whitening", "eps"), r"\mathrm{eps}")
    added = sheet.option("whitening", "guard") == "added"
    divisor = sqrt(variance + eps if added else larger(variance, eps))
    size = divisor.evaluate(lambda number: number.value)
    if not size or not size.is_finite():
        sheet.computed(*words, note="Written out, the variance leaves the range of numbers.")
        return
    shift = Decimal(str(np.max(np.abs(values - float(mean.value)))))
    sheet.line(*words, (own - mean) / divisor, near=shift / size)


def _count(sheet, size):
    eps = sheet.option("whitening", "count_eps")
    tokens = Number(size, "N")
    return tokens + Number(eps, r"\mathrm{eps}_N") if eps else tokens


def _mean_words(size):
    stage, name, label, symbol = _MEAN
    return stage, name, label.format(tokens=count(size, "token")), symbol


def _summed(sheet, values):
    """Mean and variance of many tokens, computed and not written out."""
    size = len(values)
    below = size + sheet.option("whitening", "count_eps")
    mean = core_total(values) / below
    with np.errstate(over="ignore", under="ignore"):
        variance = core_total(np.square(values - mean)) / below
    variance = variance * size / max(size - sheet.option("whitening", "ddof"), 1)
    return sheet.value(*_mean_words(size), mean), sheet.value(*_VARIANCE, variance)


def _written(sheet, values):
    own, size = _before(sheet), len(values)
    places = np.argwhere(sheet.evaluation.valid).tolist()
    core = sheet.between.unwhitened[sheet.evaluation.valid]  # in the batch's number type
    terms = [
        own if tuple(place) == sheet.where else Number(value, f"A_{{{','.join(map(str, place))}}}")
        for place, value in zip(places, core, strict=True)
    ]
    mean = sheet.line(
        *_mean_words(size),
        total(terms) / _count(sheet, size),
        general=r"\frac1N\sum A_{i,t}",
        near=largest(terms),
    )
    squares = sheet.line(
        "advantage",
        "Q_A",
        "sum of squared deviations",
        "Q_A",
        total([Square(term - mean) for term in terms]),
        general=r"\sum (A_{i,t} - \bar A)^2",
    )
    variance = squares / _count(sheet, size)
    if sheet.option("whitening", "ddof"):
        n = Number(size, "N")
        variance = variance * (n / (n - Number(1)) if size > 1 else Number(1))
    return mean, sheet.line(*_VARIANCE, variance)


# ---- advantages of single tokens


def _returns(sheet):
    p, g, t = sheet.where
    evaluation, found = sheet.evaluation, sheet.between.advantages
    valid = evaluation.valid[p, g]
    if not valid[t]:
        sheet.value("advantage", "A", "advantage of the completion", "A", found.advantages[p, g])
        return
    rewards = sheet.between.batch.token_rewards
    alone = sheet.between.scores.combine is None and rewards is not None
    last, gamma = int(np.flatnonzero(valid)[-1]), sheet.option("advantage", "gamma")
    terms = []
    for steps, u in enumerate(u for u in np.flatnonzero(valid).tolist() if u >= t):
        discount = Number(gamma**steps, rf"\gamma^{{{steps}}}") if steps and gamma != 1 else None
        earned = [Number(rewards[p, g, u], f"r_{{{u}}}")] if alone and rewards[p, g, u] else []
        if u == last and evaluation.scored[p, g]:
            earned.append(sheet["R"] if "R" in sheet else Number(evaluation.scores[p, g], "R"))
        terms += [each if discount is None else discount * each for each in earned]
    words = ("advantage", "A", f"{_TOKEN}: what is earned from it on", "A")
    if largest(terms) is None and terms:
        sheet.computed(*words, note="A reward is infinite.")
        return
    general = "" if is_short(terms) else r"\sum_{u\ge t}\gamma^{u-t} r_u"
    sheet.line(
        *words,
        total(terms or [Number(0)]),
        near=largest(terms),
        general=general,
        written=is_short(terms),
    )


def _given_per_token(sheet):
    p, g, t = sheet.where
    if sheet.evaluation.valid[p, g, t]:
        own = sheet.scenario["token_advantages"][p, g, t]
        sheet.value("advantage", "A", _TOKEN, "A", own, note="Given, not computed from rewards.")
        return
    own = sheet.evaluation.advantages[p, g]
    sheet.value("advantage", "A", "advantage of the completion: the mean of its tokens'", "A", own)


def _judged(judge):
    """A writer of the advantage row that compares in this way."""
    return Writer(lambda sheet: judged_scores(sheet, judge, Wanted(sheet.between.advantages)))


ADVANTAGE_WRITERS = {
    **{("advantage", key): _judged(judge) for key, judge in JUDGES.items()},
    ("advantage", "returns"): Writer(_returns),
    ("advantage", "given_per_token"): Writer(_given_per_token),
    ("whitening", "none"): Writer(lambda sheet: None),  # its limit is a step before
    ("whitening", "tokens"): Writer(_over_tokens),
}
