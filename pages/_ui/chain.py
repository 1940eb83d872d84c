"""The chain of one token: from its reward to its gradient, written out with its numbers."""

import numpy as np

from grpo_core import ScenarioError

from .arithmetic import working
from .chain_policy import POLICY_WRITERS, drifted_policy
from .chain_process import PROCESS_WRITERS
from .chain_recorded import RECORDED_WRITERS
from .chain_scores import SCORE_WRITERS
from .chain_shaping import SHAPING_WRITERS
from .chain_terms import unquoted
from .numbers import count, number
from .sheet import TERMS, Sheet
from .steps import WIDTH, settle

# How each variant of each stage is written out, keyed (stage, variant). A variant that is not
# here is written as its formula and the numbers that it computed.
WRITERS = {**SCORE_WRITERS, **SHAPING_WRITERS, **PROCESS_WRITERS, **POLICY_WRITERS}


def chain(evaluation, where, width=WIDTH):
    """Write out every step of one token's computation.

    Parameters
    ----------
    evaluation : Evaluation
        Of a scenario, which says under which conventions.
    where : tuple of int
        (prompt, completion, token position).
    width : float
        Pixels that a formula may take, at the size of `st.latex`.

    Returns
    -------
    tuple of Step
        In the order of the computation. The numbers shown in a step's formula give its shown
        value in the last digit, and a number reads the same in every step. Where a formula
        does not lead to what the core computed, the core's number stands without it. At a
        position that does not count the steps end with the reason.

    Raises
    ------
    ScenarioError
        There is no such position.
    """
    shape = evaluation.valid.shape
    if not all(0 <= index < size for index, size in zip(where, shape, strict=True)):
        raise ScenarioError(
            f"there is no prompt {where[0]}, completion {where[1]}, token {where[2]}; the batch "
            f"has {shape[0]} prompts, {shape[1]} completions and {shape[2]} token positions",
            where=where,
        )
    with working():
        sheet = Sheet(evaluation, where)
        _write(sheet)
        settle(sheet.lines())
        return tuple(sheet.steps(width))


def as_text(steps):
    """The steps as plain text to copy: a line each, with what it computes."""
    rows = []
    for step in steps:
        words = ". ".join(part.rstrip(".") for part in (step.label, step.note) if part)
        words = unquoted(words)  # labels and notes are Markdown
        rows.append(f"{step.text}  # {words}" if step.text else f"# {words}")
    return "\n".join(rows)


def _write(sheet):
    p, g, t = sheet.where
    evaluation = sheet.evaluation
    if not sheet.scenario["present"][p, g]:
        sheet.note("reward", "filler", f"Prompt {p} has no completion {g}.")
        return
    counts = bool(evaluation.valid[p, g, t])
    if counts:
        sheet.given("old", evaluation.logp_old[p, g, t], r"\log\pi_{\mathrm{old}}")
        sheet.given("ref", evaluation.logp_ref[p, g, t], r"\log\pi_{\mathrm{ref}}")
        if sheet.in_reward:
            _writer(sheet, "kl").write(sheet)
    _writer(sheet, "rewards").write(sheet)
    _writer(sheet, "advantage").write(sheet)
    if not counts:
        sheet.note("objective", "padding", _padding(evaluation.valid[p, g], t))
        return
    drifted_policy(sheet)
    _writer(sheet, "ratio").write(sheet)
    _writer(sheet, "surrogate").write(sheet)
    if not sheet.in_reward:
        _writer(sheet, "kl").write(sheet)
    _objective(sheet)
    _gradient(sheet)


def _writer(sheet, stage):
    own = WRITERS.get((stage, sheet.scenario.conventions[stage].variant))
    return own or RECORDED_WRITERS[stage]


def _objective(sheet):
    formula = sheet["s"] if sheet.in_reward else sheet["s"] - sheet["penalty"]
    note = "The KL is in the reward, so none is subtracted here." if sheet.in_reward else ""
    sheet.line("objective", "j", "objective of this token", "j", formula, note=note)
    _writer(sheet, "aggregation").write(sheet)
    tokens = count(int(sheet.evaluation.valid.sum()), "token")
    objective = number(sheet.evaluation.objective)
    sheet.line(
        "objective",
        "contribution",
        "contribution to the objective",
        r"w\,j",
        sheet["w"] * sheet["j"],
        note=f"The objective, {objective}, is the sum of w j over {tokens}.",
    )


def _gradient(sheet):
    slope = _writer(sheet, "surrogate").back(sheet)
    _writer(sheet, "ratio").back(sheet, slope)
    if sheet.in_reward:
        formula, note = sheet["g_s"], "The KL is in the reward and has no gradient of its own."
    else:
        _writer(sheet, "kl").back(sheet)
        formula, note = sheet["g_s"] + sheet["g_KL"], ""
    label = "gradient of the objective by this token's log-probability"
    sheet.line("gradient", "g", label, "g", formula, note=note)


def _padding(valid, t):
    positions = np.flatnonzero(valid)
    if len(positions) == 0:
        return f"Position {t} does not count: no token of this completion does."
    return f"Position {t} does not count; the tokens of this completion are at {_span(positions)}."


def _span(positions):
    first, last = positions[0], positions[-1]
    if first == last:
        return f"position {first}"
    if last - first + 1 == len(positions):
        return f"positions {first} to {last}"
    listed = ", ".join(map(str, positions[:TERMS]))
    return f"positions {listed}" + (", ..." if len(positions) > TERMS else "")
