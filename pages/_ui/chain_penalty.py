"""The KL penalty inside the reward, summed over a completion, written out."""

from decimal import Decimal

import numpy as np

from .arithmetic import Number, total
from .numbers import count
from .sheet import TERMS


def penalty(sheet):
    """Write P, the sum of the penalties of the completion's tokens."""
    p, g, t = sheet.where
    positions = np.flatnonzero(sheet.evaluation.valid[p, g])
    penalties = sheet.evaluation.reward_penalty[p, g]
    terms = [
        sheet["p"] if u == t and "p" in sheet else Number(penalties[u], f"p_{{{u}}}")
        for u in positions
    ]
    words = ("reward", "P", f"KL penalty, summed over {count(len(positions), 'token')}", "P")
    if _both_infinities(term.value for term in terms):
        sheet.value(*words, "inf", note="Penalties of ∞ and -∞ together are taken as ∞.")
    else:
        formula = total(terms or [Number(0)])
        sheet.line(*words, formula, general=r"\sum_t p_t", written=len(terms) <= TERMS)


def penalty_of(sheet, where):
    """The same sum of another completion (prompt, completion), as a decimal number."""
    if not sheet.in_reward:
        return Decimal(0)
    valid = sheet.evaluation.valid[where]
    penalties = [Decimal(str(each)) for each in sheet.evaluation.reward_penalty[where][valid]]
    return Decimal("inf") if _both_infinities(penalties) else sum(penalties, Decimal(0))


def _both_infinities(values):
    return {Decimal("inf"), Decimal("-inf")} <= set(values)
