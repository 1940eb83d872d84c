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
    found = sheet.between.advantages
    whole = ("advantage of the completion", "A")
    if not sheet.evaluation.valid[sheet.where]:
        sheet.computed("advantage", "A", *whole, "advantages")
        return
    if found.advantages[p, g] == found.token_advantages[sheet.where]:
        sheet.computed("advantage", "A", *whole)
        return
    sheet.computed("advantage", "A_i", "advantage of the completion", "A_i", "advantages")
    sheet.computed("advantage", "A", "advantage of this token", "A")


def _ratio(sheet):
    _formula(sheet, "ratio")
    sheet.computed("ratio", "log_ratio", "log-ratio", r"\log\rho")
    sheet.computed("ratio", "ratio", "ratio of new to old policy", r"\rho")


_POLICY_GRADIENT = ("gradient", "g_s", "gradient of the surrogate part", "g_s")


def _ratio_back(sheet, flow):
    sheet.computed(*_POLICY_GRADIENT, note=flow.stopped)


def _surrogate(sheet):
    _formula(sheet, "surrogate")
    sheet.computed("surrogate", "s", "surrogate", "s")


def _surrogate_back(sheet):
    surrogate = sheet.between.surrogate
    if surrogate.backward is not None or surrogate.d_logp is not None:
        sheet.computed(*_POLICY_GRADIENT)
        return None
    label = "slope of the surrogate: its derivative by the ratio"
    slope = surrogate.d_ratio[sheet.where]
    return Slope(sheet.value("gradient", "slope", label, "s'", slope))


def _kl(sheet):
    _formula(sheet, "kl")
    sheet.computed("kl", "KL", "KL, estimated from this token", r"\mathrm{KL}")
    kl = sheet.between.kl
    taken = {"objective": kl.penalty, "reward": kl.reward_penalty, "returns": kl.return_penalty}
    penalty = taken[sheet.place][sheet.where]
    sheet.keep("penalty", sheet.value("kl", "p", "penalty of this token", "p", penalty))


def _kl_back(sheet):
    sheet.computed("gradient", "g_KL", "gradient of the KL part", r"g_{\mathrm{KL}}")


def _whitening(sheet):
    _formula(sheet, "whitening")
    sheet.computed("advantage", "A", "advantage of this token", "A")


def _stays(stage):
    def write(sheet):
        _formula(sheet, stage)
        stays = getattr(sheet.between, stage).tokens[sheet.where]
        sheet.value("objective", "k", "stays in the loss (1) or not (0)", "k", int(stays))

    return Writer(write)


def _factor(stage, name):
    def write(sheet):
        _formula(sheet, stage)
        factor = getattr(sheet.between, stage)[sheet.where]
        sheet.value("surrogate", name, "factor of the surrogate", name, float(factor))

    return Writer(write)


def _entropy(sheet):
    _formula(sheet, "entropy")
    sheet.computed("objective", "b", "entropy bonus of this token", "b")


def _weight(stage):
    def write(sheet):
        _formula(sheet, stage)
        sheet.computed("objective", "w", "weight of this token", "w")

    return Writer(write)


RECORDED_WRITERS = {
    "kl": Writer(_kl, _kl_back),
    "rewards": Writer(_rewards),
    "advantage": Writer(_advantage),
    "ratio": Writer(_ratio, _ratio_back),
    "surrogate": Writer(_surrogate, _surrogate_back),
    "whitening": Writer(_whitening),
    "truncated": _stays("truncated"),
    "tied": _stays("tied"),
    "selection": _factor("selection", "m"),
    "correction": _factor("correction", "c"),
    "entropy": Writer(_entropy),
    "aggregation": _weight("aggregation"),
    "accumulation": _weight("accumulation"),
}
