"""The chain of one token: from its reward to its gradient, written out with its numbers."""

import numpy as np

from grpo_core import ScenarioError

from .arithmetic import working
from .chain_advantage import ADVANTAGE_WRITERS, token_advantage
from .chain_kl import KL_WRITERS
from .chain_loss import LOSS_WRITERS, weight_of_token
from .chain_process import PROCESS_WRITERS
from .chain_ratio import RATIO_WRITERS, drifted_policy
from .chain_recorded import RECORDED_WRITERS
from .chain_scores import SCORE_WRITERS
from .chain_shaping import SHAPING_WRITERS
from .chain_smooth import SMOOTH_WRITERS
from .chain_surrogate import SURROGATE_WRITERS
from .chain_terms import unquoted
from .numbers import count, number
from .sheet import TERMS, Flow, Sheet
from .steps import WIDTH, settle

# How each variant of each stage is written out, keyed (stage, variant). A variant that is not
# here is written as its formula and the numbers that it computed.
WRITERS = {
    **SCORE_WRITERS,
    **SHAPING_WRITERS,
    **PROCESS_WRITERS,
    **ADVANTAGE_WRITERS,
    **RATIO_WRITERS,
    **KL_WRITERS,
    **SURROGATE_WRITERS,
    **SMOOTH_WRITERS,
    **LOSS_WRITERS,
}


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
        if sheet.place != "objective":
            _writer(sheet, "kl").write(sheet)
    _writer(sheet, "rewards").write(sheet)
    token_advantage(sheet, _writer)
    if not counts:
        sheet.note("objective", "padding", _padding(evaluation.valid[p, g], t))
        return
    drifted_policy(sheet)
    _writer(sheet, "ratio").write(sheet)
    _surrogate(sheet)
    if sheet.place == "objective":
        _writer(sheet, "kl").write(sheet)
    _objective(sheet)
    _gradient(sheet)


def _writer(sheet, stage):
    own = WRITERS.get((stage, sheet.scenario.conventions[stage].variant))
    return own or RECORDED_WRITERS[stage]


# Stages that multiply the surrogate, and what their factor is called.
_FACTORS = {"selection": "m", "correction": "c"}


def _surrogate(sheet):
    stages = [stage for stage in _FACTORS if sheet.acts(stage)]
    if not stages:
        _writer(sheet, "surrogate").write(sheet)
        return
    own = sheet.between.surrogate.value
    with sheet.instead("s", "s_own", r"s_{\mathrm{own}}", own):
        _writer(sheet, "surrogate").write(sheet)
    formula = sheet["s_own"]
    for stage in stages:
        _writer(sheet, stage).write(sheet)
        formula = sheet[_FACTORS[stage]] * formula
    sheet.line("surrogate", "s", "surrogate with its factor", "s", formula)


# Why no penalty is subtracted from the objective of a token.
_ELSEWHERE = {"reward": "in the reward", "returns": "in the returns"}


def _objective(sheet):
    formula, note = sheet["s"], ""
    if sheet.place == "objective":
        formula = formula - sheet["penalty"]
    else:
        note = f"The KL is {_ELSEWHERE[sheet.place]}, so none is subtracted here."
    if sheet.acts("entropy"):
        _writer(sheet, "entropy").write(sheet)
        formula = formula + sheet["b"]
    sheet.line("objective", "j", "objective of this token", "j", formula, note=note)
    weight_of_token(sheet, _writer)
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


_POLICY_GRADIENT = ("gradient", "g_s", "gradient of the surrogate part", "g_s")


def _gradient(sheet):
    _policy_gradient(sheet)
    if sheet.place == "objective":
        _writer(sheet, "kl").back(sheet)
        formula, note = sheet["g_s"] + sheet["g_KL"], ""
    else:
        where = _ELSEWHERE[sheet.place]
        formula, note = sheet["g_s"], f"The KL is {where} and has no gradient of its own."
    label = "gradient of the objective by this token's log-probability"
    sheet.line("gradient", "g", label, "g", formula, note=note)


def _policy_gradient(sheet):
    slope = _writer(sheet, "surrogate").back(sheet)
    if slope is None:
        return
    between, factors = sheet.between, [(sheet["w"], sheet.evaluation.weight)]
    for stage, name in _FACTORS.items():
        if sheet.acts(stage):
            factors.append((sheet[name], getattr(between, stage)))
    factors.append((slope.number, between.surrogate.d_ratio))
    if not slope.direct:
        general = r"\,".join([*(f"{number.symbol}_t" for number, _ in factors[:-1]), "s'_t"])
        flow = Flow(_POLICY_GRADIENT, tuple(factors), general, slope.stopped)
        _writer(sheet, "ratio").back(sheet, flow)
    elif slope.stopped:
        sheet.value(*_POLICY_GRADIENT, 0, note=slope.stopped)
    else:
        product, *others = (number for number, _ in factors)
        for other in others:
            product = product * other
        sheet.line(*_POLICY_GRADIENT, product)


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
