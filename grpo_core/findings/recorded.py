"""Findings about a recorded batch: is the loss the trainer's, and if not, why."""

import numpy as np

from ..evaluation import evaluate
from ..numerics import times, total
from ..stages import STAGES
from ..words import groups, number, opening
from . import facts
from .row import FindingRow

SAME_LOSS = 1e-6


def logged_loss_differs(evaluation):
    """The recomputed loss does not equal the logged one, and no residue explains it."""
    figures = _against_logged(evaluation)
    if not figures or figures["same"] or _explained(advantages_residue(evaluation)):
        return None
    return figures


def _explained(residue):
    """True if the difference to the logged loss comes from tied groups alone."""
    return bool(
        residue
        and residue.get("target") == "logged"
        and max(abs(residue["from_others"]), abs(residue["unexplained"])) <= SAME_LOSS
    )


def _say_logged_loss_differs(figures):
    return (
        f"The loss is not the trainer's: {number(figures['loss'])} here, "
        f"{number(figures['logged'])} logged, a difference of {number(figures['difference'])}. "
        "Some convention or array is not the trainer's."
    )


def logged_loss(evaluation):
    """The recomputed loss equals the logged one."""
    figures = _against_logged(evaluation)
    return figures if figures and figures["same"] else None


def _against_logged(evaluation):
    logged = evaluation.scenario.arrays.get("logged_loss")
    if logged is None:
        return None
    difference = evaluation.loss - float(logged)
    return {
        "places": (),
        "loss": evaluation.loss,
        "logged": float(logged),
        "difference": difference,
        "same": bool(abs(difference) <= SAME_LOSS),
    }


def _say_logged_loss(figures):
    return (
        f"The loss is the trainer's: {number(figures['loss'])} here, {number(figures['logged'])} "
        f"logged; they differ by {number(figures['difference'])}."
    )


def advantages_residue(evaluation):
    """Tied groups whose given advantages are not 0, and what they do to the loss."""
    scenario = evaluation.scenario
    if "advantages" not in scenario:
        return None
    given = np.where(scenario["present"], scenario["advantages"], 0)
    sizes = facts.group_max(np.abs(given)) * facts.tied(evaluation)
    if not np.any(sizes > 0):
        return None
    (worst,) = facts.largest(sizes, sizes > 0)
    places = facts.places_from((worst,), sizes > 0)
    figures = {
        "places": places,
        "advantage": float(sizes[worst]),
        "constant": bool(np.ptp(given[worst][scenario["present"][worst]]) == 0),
    }
    if facts.given(evaluation):
        value = times(evaluation.weight, evaluation.surrogate)[sizes > 0]
        return {**figures, "shift": -float(total(value))}
    return {**figures, **_loss_shift(evaluation, sizes > 0)}


def _loss_shift(evaluation, residual):
    """Loss now less the loss with the given advantages, split by group."""
    given = evaluate(_with_given_advantages(evaluation.scenario))
    change = -total(evaluation.contribution - given.contribution, axis=(1, 2))  # (P,)
    logged = evaluation.scenario.arrays.get("logged_loss")
    target = given.loss if logged is None else float(logged)
    shift = float(total(change))
    tied = float(total(np.where(residual, change, 0)))
    if not np.isfinite([shift, tied, evaluation.loss, given.loss]).all():
        return {}
    return {
        "target": "given" if logged is None else "logged",
        "difference": evaluation.loss - target,
        "from_tied": tied,
        "from_others": shift - tied,
        "unexplained": given.loss - target,
    }


def _with_given_advantages(scenario):
    variants = STAGES["advantage"].variants.values()
    row = next(variant for variant in variants if "advantages" in variant.needs)
    return scenario.choose("advantage", row.key)


def _say_advantages_residue(figures):
    where = figures["places"]
    size = number(figures["advantage"])
    # The mark of a rounded mean: all deviations from it are the same.
    cause = ", the rest that a mean rounded to float32 leaves" if figures["constant"] else ""
    if "difference" not in figures:
        effect = (
            f" They change the loss by {number(figures['shift'])}." if "shift" in figures else ""
        )
        return (
            f"{opening(groups(where))} {'is' if len(where) == 1 else 'are'} tied, yet the given "
            f"advantages there reach {size} instead of 0{cause}.{effect}"
        )
    target = "logged loss" if figures["target"] == "logged" else "loss with the given advantages"
    text = (
        f"The loss differs from the {target} by {number(figures['difference'])}: "
        f"{number(figures['from_tied'])} from {groups(where, 'tied ')}, where the given "
        f"advantages reach {size} instead of 0{cause}, and {number(figures['from_others'])} from "
        "the other groups."
    )
    if abs(figures["unexplained"]) > SAME_LOSS:
        text += f" With the given advantages {number(figures['unexplained'])} would remain."
    return text


ROWS = (
    FindingRow(
        code="logged_loss_differs",
        severity="warning",
        page="Objective",
        question="Is this the trainer's loss?",
        find=logged_loss_differs,
        sentence=_say_logged_loss_differs,
    ),
    FindingRow(
        code="logged_loss",
        severity="note",
        page="Objective",
        question="Is this the trainer's loss?",
        find=logged_loss,
        sentence=_say_logged_loss,
    ),
    FindingRow(
        code="advantages_residue",
        severity="warning",
        page="Advantages",
        question="Why is a tied group not silent?",
        find=advantages_residue,
        sentence=_say_advantages_residue,
    ),
)
