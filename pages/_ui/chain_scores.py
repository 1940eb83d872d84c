"""Reward and advantage of a completion, written out."""

import numpy as np

from .arithmetic import Number
from .chain_judging import Comparison, compared
from .chain_penalty import penalty
from .chain_shaping import COMBINATIONS
from .sheet import Writer


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
        penalty(sheet)
        sheet.line("reward", "R", "score: reward less penalty", "R", sheet["r"] - sheet["P"])


def judged_scores(sheet, judge, wanted):
    """Write an advantage from scores, or from the components that they are combined from."""
    row = sheet.scenario.conventions["rewards"].variant
    COMBINATIONS.get(row, _of_the_score)(sheet, judge, wanted)


def _of_the_score(sheet, judge, wanted):
    p, g, _ = sheet.where
    own = sheet["R"] if sheet.evaluation.scored[p, g] else None
    scores = [
        own if i == g else Number(sheet.evaluation.scores[p, i], f"R_{{{i}}}")
        for i in np.flatnonzero(sheet.evaluation.scored[p])
    ]
    comparison = Comparison(
        own=own,
        values=scores,
        core=wanted.value(sheet),
        result=wanted.completion(sheet),
        scores=sheet.evaluation.scores,
        scored=sheet.evaluation.scored,
    )
    compared(sheet, judge, comparison)


def _given(sheet):
    p, g, _ = sheet.where
    sheet.value(
        "advantage",
        "A",
        "advantage of the completion",
        "A",
        sheet.scenario["advantages"][p, g],
        note="Given, not computed from rewards.",
    )


SCORE_WRITERS = {
    ("rewards", "outcome"): Writer(_outcome),
    ("advantage", "given"): Writer(_given),
}
