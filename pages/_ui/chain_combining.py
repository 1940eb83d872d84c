"""What ways of combining share: the completion's numbers in their group, and its tokens'."""

from dataclasses import dataclass

import numpy as np

from .arithmetic import Number, total
from .chain_judging import checked
from .chain_terms import token_rewards
from .sheet import TERMS

_TIED = "What was compared is equal in the group, so that nothing is taken off either."


@dataclass(frozen=True)
class Wanted:
    """The advantage to be written, and the core's numbers for it.

    ``core`` has ``advantages`` (P, G) and ``token_advantages`` (P, G, L).
    """

    core: object
    name: str = "A"
    symbol: str = "A"
    symbol_of_completion: str = "A_i"
    label: str = "advantage of the completion"
    label_of_token: str = "advantage of this token"

    def completion(self, sheet, tokens=False):
        """Name, label and symbol of the completion's; another than the token's if asked."""
        if not tokens:
            return self.name, self.label, self.symbol
        return f"{self.name}_i", self.label, self.symbol_of_completion

    def value(self, sheet):
        """The completion's advantage in the core."""
        return self.core.advantages[sheet.where[:2]]


def weighted_terms(sheet, parts, places):
    """Weight times value of those components that the completion has."""
    return [
        parts.weight(k) * sheet[parts.name(k)] for k in places if parts.known(k, sheet.where[:2])
    ]


def largest(terms):
    """The largest of what is added; None where one is infinite."""
    sizes = [abs(term.evaluate(lambda number: number.value)) for term in terms]
    return max(sizes) if sizes and all(size.is_finite() for size in sizes) else None


def is_short(terms):
    """Whether a sum is written out."""
    return len(terms) <= TERMS


def in_group(sheet, counts, own, core, value, symbol):
    """A group's numbers, the completion's own among them as it was written.

    ``core`` (P, G) are the same numbers in the core. What is equal there is equal here, too:
    sums of decimals and of doubles part in their last digit.
    """
    p, g, _ = sheet.where
    return [
        own
        if i == g
        else Number(own.value if own and core[p, i] == core[p, g] else value((p, i)), symbol(i))
        for i in np.flatnonzero(counts[p]).tolist()
    ]


def indexed(letter, first=""):
    """A function that gives the LaTeX of a group's i-th number."""
    return lambda i: f"{letter}_{{{first}{i}}}"


def differs_by_token(sheet, parts):
    """Whether the token's advantage is another number than the completion's."""
    return bool(parts.core.past) and bool(sheet.evaluation.valid[sheet.where])


def write_at_token(sheet, parts, wanted, completion, slopes):
    """What terms as returns to go take off at this token; ``slopes`` divide it, by component."""
    if not differs_by_token(sheet, parts):
        return
    p, g, t = sheet.where
    taken = []
    for k, divide in slopes.items():
        rewards = token_rewards(sheet, parts, k, before=t)
        earned = sheet.line(
            "advantage",
            f"b_{k}",
            f"earned before this token by {parts.words(k)}",
            f"b_{{{k}}}",
            total(rewards or [Number(0)]),
            near=largest(rewards),
            general=rf"\sum_{{u<t}} f_{{{k},u}}",
            written=is_short(rewards),
        )
        if divide is not None:
            taken.append(divide(parts.weight(k) * earned))
    words = ("advantage", wanted.name, wanted.label_of_token, wanted.symbol)
    core = wanted.core.token_advantages[p, g, t]
    if not completion.value.is_finite():
        sheet.value(*words, core, note="Beside an infinite advantage nothing else counts.")
        return
    formula = total([completion])
    for each in taken:
        formula = formula - each
    note = "" if taken else _TIED
    checked(sheet, words, formula, core, near=largest([completion, *taken]), note=note)


def write_sum(sheet, words, terms, core):
    """A sum of products as a line; the core's number where one of them is infinite."""
    if largest(terms) is None:
        return sheet.value(*words, core, note="One of the advantages is infinite.")
    return checked(sheet, words, total(terms), core, near=largest(terms), written=is_short(terms))
