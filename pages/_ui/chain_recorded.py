"""Variants without a writer of their own: their formula, and the numbers that the core computed.

Whatever is added to a stage's table is shown on the page at once, and never a wrong number.
"""

from grpo_core import STAGES

from .sheet import Slope, Writer
from .steps import strutted


def _formula(sheet, stage):
    """The row's formula, with a note that names it."""
    row = sheet.scenario.conventions.variant(stage)
    note = f"“{row.label}” has no written-out form: its numbers are shown as computed."
    label = f"{STAGES[stage].label}, its formula"
    sheet.note(stage, label, note, latex=_in_a_cell(row.formula))


def _in_a_cell(formula):
    """A formula fit for a cell of a Markdown table, which a bar or a line break would end."""
    bare = formula.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
    return strutted(" ".join(bare.split()))


def _rewards(sheet):
    p, g, _ = sheet.where
    _formula(sheet, "rewards")
    if not sheet.evaluation.scored[p, g]:
        sheet.note("reward", "score of the completion", "It has none: it is left out of its group.")
        return
    sheet.computed("reward", "R", "score of the completion", "R")


def _advantage(sheet):
    p, g, _ = sheet.where
    _formula(sheet, "advantage")
    evaluation = sheet.evaluation
    whole = ("advantage of the completion", "A")
    if not evaluation.valid[sheet.where]:
        sheet.computed("advantage", "A", *whole, "advantages")
        return
    if evaluation.advantages[p, g] == evaluation.token_advantages[sheet.where]:
        sheet.computed("advantage", "A", *whole)
        return
    sheet.computed("advantage", "A_i", "advantage of the completion", "A_i", "advantages")
    sheet.computed("advantage", "A", "advantage of this token", "A")


def _ratio(sheet):
    _formula(sheet, "ratio")
    sheet.computed("ratio", "log_ratio", "log-ratio", r"\log\rho")
    sheet.computed("ratio", "ratio", "ratio of new to old policy", r"\rho")


def _ratio_back(sheet, slope):
    sheet.computed("gradient", "g_s", "gradient of the surrogate part", "g_s", note=slope.stopped)


def _surrogate(sheet):
    _formula(sheet, "surrogate")
    sheet.computed("surrogate", "s", "surrogate", "s")


def _surrogate_back(sheet):
    label = "slope of the surrogate: its derivative by the ratio"
    return Slope(sheet.value("gradient", "slope", label, "s'", sheet.slopes[sheet.where]))


def _kl(sheet):
    _formula(sheet, "kl")
    sheet.computed("kl", "KL", "KL, estimated from this token", r"\mathrm{KL}")
    result = "reward_penalty" if sheet.in_reward else "kl_penalty"
    sheet.keep("penalty", sheet.computed("kl", "p", "penalty of this token", "p", result))


def _kl_back(sheet):
    sheet.computed("gradient", "g_KL", "gradient of the KL part", r"g_{\mathrm{KL}}")


def _aggregation(sheet):
    _formula(sheet, "aggregation")
    sheet.computed("objective", "w", "weight of this token", "w")


RECORDED_WRITERS = {
    "kl": Writer(_kl, _kl_back),
    "rewards": Writer(_rewards),
    "advantage": Writer(_advantage),
    "ratio": Writer(_ratio, _ratio_back),
    "surrogate": Writer(_surrogate, _surrogate_back),
    "aggregation": Writer(_aggregation),
}
