"""Reward and advantage of a completion, written out."""

from decimal import Decimal

import numpy as np

from .arithmetic import Number, Square, sqrt, total
from .numbers import count
from .sheet import TERMS, Writer


def _outcome(sheet):
    p, g, _ = sheet.where
    label = "reward of the completion"
    if not sheet.evaluation.scored[p, g]:
        sheet.note("reward", label, "This completion has no reward: it is left out of its group.")
        return
    reward = sheet.scenario["rewards"][p, g]
    missing = bool(np.isnan(reward))
    note = "No reward came; it counts as 0." if missing else ""
    name = "r" if sheet.in_reward else "R"
    sheet.value("reward", name, label, name, 0 if missing else reward, note=note)
    if sheet.in_reward:
        _penalised(sheet)


def _penalised(sheet):
    p, g, t = sheet.where
    positions = np.flatnonzero(sheet.evaluation.valid[p, g])
    penalties = sheet.evaluation.reward_penalty[p, g]
    terms = [
        sheet["p"] if u == t and "p" in sheet else Number(penalties[u], f"p_{{{u}}}")
        for u in positions
    ]
    words = ("reward", "P", f"KL penalty, summed over {count(len(positions), 'token')}", "P")
    if {Decimal("inf"), Decimal("-inf")} <= {term.value for term in terms}:
        sheet.value(*words, "inf", note="Penalties of ∞ and -∞ together are taken as ∞.")
    else:
        formula = total(terms or [Number(0)])
        sheet.line(*words, formula, general=r"\sum_t p_t", written=len(terms) <= TERMS)
    sheet.line("reward", "R", "score: reward less penalty", "R", sheet["r"] - sheet["P"])


def _scores(sheet):
    """Scores of the token's group, its own completion's among them."""
    p, g, _ = sheet.where
    return [
        sheet["R"] if i == g else Number(sheet.evaluation.scores[p, i], f"R_{{{i}}}")
        for i in np.flatnonzero(sheet.evaluation.scored[p])
    ]


def _mean(sheet, scores):
    return sheet.line(
        "advantage",
        "mean",
        f"mean of the group's {count(len(scores), 'score')}",
        r"\bar R",
        total(scores) / Number(len(scores), "n"),
        general=r"\frac{1}{n}\sum_i R_i",
        written=len(scores) <= TERMS,
        inner=True,
    )


def _std(sheet, scores, ddof):
    mean, n = sheet["mean"], Number(len(scores), "n")
    squares = sheet.line(
        "advantage",
        "Q",
        "sum of squared deviations",
        "Q",
        total([Square(score - mean) for score in scores]),
        general=r"\sum_i (R_i - \bar R)^2",
        written=len(scores) <= TERMS,
        inner=True,
    )
    label = "sample standard deviation" if ddof else "population standard deviation"
    if len(scores) <= ddof:
        note = "One score has no sample standard deviation; it is taken as 0."
        return sheet.value("advantage", "std", label, r"\sigma", 0, note=note)
    divisor = n - Number(ddof) if ddof else n
    return sheet.line("advantage", "std", label, r"\sigma", sqrt(squares / divisor), inner=True)


_A = ("advantage", "A", "advantage of the completion", "A")
_UNSCORED = "Without a reward there is nothing to compare: the advantage is 0."
_TIED = "All scores of the group are equal: nothing tells them apart, and the advantage is 0."
_ENDLESS = "A score of the group is infinite. Beside it the finite ones count as 0."
_ALONE = "A group of one score has nothing to compare it with: the advantage is 0."


def _compared(advantage):
    """A writer of an advantage that needs a score; ``advantage(sheet, scores)`` writes it."""

    def write(sheet):
        scores = _scores(sheet) if "R" in sheet else []
        if not scores:
            sheet.value(*_A, 0, note=_UNSCORED)
        elif all(score.value.is_finite() for score in scores):
            advantage(sheet, scores)
        else:
            sheet.value(*_A, sheet.evaluation.advantages[sheet.where[:2]], note=_ENDLESS)

    return Writer(write)


def _spread(sheet, scores):
    """The largest deviation from the mean, and what to say where there is none."""
    spread = max(abs(score.value - sheet["mean"].value) for score in scores)
    return spread, "" if spread else _ALONE if len(scores) == 1 else _TIED


def _mean_std(sheet, scores):
    mean = _mean(sheet, scores)
    std = _std(sheet, scores, sheet.option("advantage", "ddof"))
    spread, tied = _spread(sheet, scores)
    if tied:
        sheet.value(*_A, 0, note=tied)
        return
    eps = Number(sheet.option("advantage", "eps"), r"\mathrm{eps}")
    near = spread / (std.value + eps.value)
    sheet.line(*_A, (sheet["R"] - mean) / (std + eps), near=near)


def _mean_only(sheet, scores):
    mean = _mean(sheet, scores)
    spread, tied = _spread(sheet, scores)
    sheet.line(*_A, sheet["R"] - mean, near=spread, note=tied)


def _given(sheet):
    p, g, _ = sheet.where
    sheet.value(*_A, sheet.scenario["advantages"][p, g], note="Given, not computed from rewards.")


SCORE_WRITERS = {
    ("rewards", "outcome"): Writer(_outcome),
    ("advantage", "mean_std"): _compared(_mean_std),
    ("advantage", "mean_only"): _compared(_mean_only),
    ("advantage", "given"): Writer(_given),
}
