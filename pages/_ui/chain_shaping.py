"""Rewards with shaping terms, written out: the values, and how they become an advantage."""

from decimal import Decimal

from .arithmetic import total
from .chain_alone import normalize_then_sum
from .chain_combining import (
    differs_by_token,
    in_group,
    indexed,
    is_short,
    largest,
    weighted_terms,
    write_at_token,
    write_sum,
)
from .chain_judging import UNSCORED, Comparison, compared
from .chain_penalty import penalty, penalty_of
from .chain_terms import Parts, write_components
from .sheet import Writer


def _rewards(sheet, summed):
    """Values of all components, and their sum where the row has one."""
    parts = Parts(sheet)
    write_components(sheet, parts)
    where = sheet.where[:2]
    if not sheet.evaluation.scored[where]:
        note = "This completion has no reward and no term: it is left out of its group."
        sheet.note("reward", "score of the completion", note)
        return
    less = sheet.in_reward and (summed or parts.known(0, where))
    if less:
        penalty(sheet)
    elif sheet.in_reward:
        note = "No task reward is known, so no KL penalty is taken from it."
        sheet.note("reward", "KL penalty", note)
    if summed:
        terms = weighted_terms(sheet, parts, parts.places)
        formula = total(terms) - sheet["P"] if less else total(terms)
        label = "score: the weighted sum" + (", less the penalty" if less else "")
        sheet.line("reward", "R", label, "R", formula, near=largest(terms), written=is_short(terms))


def _sum_of(sheet, parts, where):
    """The weighted sum of another completion, in decimals like that of the chain's own."""
    products = [
        parts.weight(k).value * parts.exact(k, where) for k in parts.places if parts.known(k, where)
    ]
    return sum(products, Decimal(0)) - penalty_of(sheet, where)


def _sum_then_normalize(sheet, judge, wanted):
    parts = Parts(sheet)
    own = sheet["R"] if sheet.evaluation.scored[sheet.where[:2]] else None
    scores = in_group(
        sheet,
        parts.core.scored,
        own,
        sheet.evaluation.scores,
        lambda where: _sum_of(sheet, parts, where),
        indexed("R"),
    )
    judged = compared(
        sheet,
        judge,
        Comparison(
            own=own,
            values=scores,
            core=wanted.value(sheet),
            result=wanted.completion(sheet, differs_by_token(sheet, parts)),
            scores=sheet.evaluation.scores,
            scored=parts.core.scored,
        ),
    )
    write_at_token(
        sheet, parts, wanted, judged.number, dict.fromkeys(parts.core.past, judged.divide)
    )


def _add_after(sheet, judge, wanted):
    parts = Parts(sheet)
    where = sheet.where[:2]
    task = compared(sheet, judge, _task(sheet, parts, judge))
    words = ("advantage", *wanted.completion(sheet, differs_by_token(sheet, parts)))
    added = weighted_terms(sheet, parts, parts.places[1:])
    if not sheet.evaluation.scored[where]:
        number = sheet.value(*words, 0, note=UNSCORED)
    else:
        number = write_sum(sheet, words, [total([task.number]), *added], wanted.value(sheet))
    write_at_token(sheet, parts, wanted, number, dict.fromkeys(parts.core.past, lambda term: term))


def _task(sheet, parts, judge):
    """The comparison of the weighted task rewards, less the penalty in them."""
    where = sheet.where[:2]
    known = parts.known(0, where)
    own = sheet["r"] if known else None
    if known and (sheet.in_reward or parts.weight(0).value != 1):
        formula = parts.weight(0) * own
        formula = formula - sheet["P"] if sheet.in_reward else formula
        label = "task reward, weighted" + (", less the penalty" if sheet.in_reward else "")
        own = sheet.line("advantage", "r_0", label, r"r'", formula)

    def value(where):
        weighted = parts.weight(0).value * parts.exact(0, where)
        return weighted - penalty_of(sheet, where)

    core = judge.core(sheet)(parts.core.weighted[0], parts.core.known[0]).advantages
    return Comparison(
        own=own,
        values=in_group(
            sheet, parts.core.known[0], own, parts.core.weighted[0], value, indexed("r")
        ),
        core=core[where],
        result=("A_0", "advantage by the task reward alone", "A_{0}"),
        noun="value",
        letter="r",
        tag="_0",
        sub="_{0}",
        scores=parts.core.weighted[0],
        scored=parts.core.known[0],
    )


# How scores become an advantage, by the row of the rewards stage.
COMBINATIONS = {
    "sum_then_normalize": _sum_then_normalize,
    "normalize_then_sum": normalize_then_sum,
    "add_after": _add_after,
}

SHAPING_WRITERS = {
    ("rewards", "sum_then_normalize"): Writer(lambda sheet: _rewards(sheet, summed=True)),
    ("rewards", "normalize_then_sum"): Writer(lambda sheet: _rewards(sheet, summed=False)),
    ("rewards", "add_after"): Writer(lambda sheet: _rewards(sheet, summed=False)),
}
