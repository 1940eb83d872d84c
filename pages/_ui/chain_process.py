"""Advantage from step rewards, written out: each step's, and their sum from a token on."""

from decimal import Decimal

import numpy as np

from grpo_core.advantages import mean_std

from .arithmetic import Number, total
from .chain_combining import Wanted
from .chain_judging import OVER_STD, Comparison, checked, mean_line, spread, std_line
from .chain_scores import judged_scores
from .numbers import count
from .sheet import TERMS, Writer

_NONE = "No step ends at or after this token."
_NO_STEPS = "The completion has no step."
_TIED = "All step rewards of {whose} are equal: nothing tells the steps apart, and each counts 0."
_ALONE = "One step reward has nothing to compare it with, and counts 0."


def _process(sheet):
    outcome = _outcome(sheet)
    pool = _pool(sheet)
    steps = _steps(sheet)
    valid = bool(sheet.evaluation.valid[sheet.where])
    label = "advantage of this token" if valid else "advantage of the completion"
    terms, note = _normalised(sheet, pool, steps)
    if not steps:
        note = _NONE if _step_places(sheet).size else _NO_STEPS
    if outcome is not None:
        terms = [*terms, outcome]
    else:
        note = f"{note} The outcome's reward has no part in it: its weight is 0.".strip()
    if len(steps) > TERMS:
        label = f"{label}, summed over {count(len(steps), 'step')}"
    _written(sheet, label, terms, note, len(terms) <= TERMS + 1)


def _written(sheet, label, terms, note, written):
    words = ("advantage", "A", label, "A")
    core = sheet.between.advantages.token_advantages[sheet.where]
    values = [term.evaluate(lambda number: number.value) for term in terms]
    if not all(value.is_finite() for value in values):
        sheet.value(*words, core, note=note)
        return
    near = max(map(abs, values), default=Decimal(0))
    formula = total(terms or [Number(0)])
    general = "" if written else r"\sum_{j:\, e_j \ge t} z_j"
    checked(sheet, words, formula, core, near=near, note=note, general=general, written=written)


def _outcome(sheet):
    """Weight times the advantage of the whole answer; None where the weight is 0."""
    weight = sheet.option("advantage", "outcome_weight")
    if not weight:
        return None
    options = {key: sheet.option("advantage", key) for key in ("ddof", "eps")}
    core = mean_std(sheet.between.batch, sheet.between.scores, **options)
    label = "advantage by the outcome"
    symbols = (r"A_{\mathrm{out}}", r"A_{\mathrm{out},i}")
    wanted = Wanted(core, "A_out", *symbols, label, f"{label}, at this token")
    judged_scores(sheet, OVER_STD, wanted)
    return Number(weight, r"w_{\mathrm{out}}") * sheet[wanted.name]


def _step_places(sheet):
    p, g, _ = sheet.where
    return np.flatnonzero(~np.isnan(sheet.scenario["step_ends"][p, g]))


def _steps(sheet):
    """Steps that end at or after the token; all of the completion's where it does not count."""
    p, g, t = sheet.where
    ends = sheet.scenario["step_ends"][p, g]
    first = t if sheet.evaluation.valid[p, g, t] else 0
    return [int(j) for j in _step_places(sheet) if ends[j] >= first]


# Whose steps are compared, by the option `over`: the words, and the completions.
_POOLS = {
    "group": ("the group", lambda sheet: np.flatnonzero(sheet.scenario["present"][sheet.where[0]])),
    "completion": ("the completion", lambda sheet: [sheet.where[1]]),
}


def _pool(sheet):
    """The step rewards that are normalised together."""
    whose, completions = _POOLS[sheet.option("advantage", "over")]
    p = sheet.where[0]
    ends, rewards = sheet.scenario["step_ends"][p], sheet.scenario["step_rewards"][p]
    values = [
        Number(rewards[i, j], _reward_symbol(i, j))
        for i in completions(sheet)
        for j in np.flatnonzero(~np.isnan(ends[i]))
    ]
    return Comparison(
        values=values,
        noun="step reward",
        whose=whose,
        letter="r",
        tag="_step",
        sub=r"_{\mathrm{step}}",
    )


def _reward_symbol(i, j):
    return f"r_{{{i},{j}}}"


def _normalised(sheet, pool, steps):
    """z of each of the steps, and what to say where they are all 0."""
    if not steps:
        return [], ""
    mean = mean_line(sheet, pool)
    std = std_line(sheet, pool, mean)
    size, tied = spread(pool, mean)
    if tied:
        return [], _ALONE if len(pool.values) == 1 else _TIED.format(whose=pool.whose)
    p, g, _ = sheet.where
    core = sheet.evaluation.step_advantages[p, g]
    if len(steps) > TERMS:
        return [Number(core[j], f"z_{{{j}}}") for j in steps], ""
    divisor = std + Number(sheet.option("advantage", "eps"), r"\mathrm{eps}")
    near = size / divisor.evaluate(lambda number: number.value)
    rewards, ends = sheet.scenario["step_rewards"][p, g], sheet.scenario["step_ends"][p, g]
    return [
        checked(
            sheet,
            ("advantage", f"z_{j}", f"step {j}, which ends at token {int(ends[j])}", f"z_{{{j}}}"),
            (Number(rewards[j], _reward_symbol(g, j)) - mean) / divisor,
            core[j],
            near=near,
        )
        for j in steps
    ], ""


PROCESS_WRITERS = {("advantage", "process"): Writer(_process)}
