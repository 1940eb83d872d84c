"""Task reward and shaping terms of a completion, written out: the components of its score."""

import re
from decimal import Context, Decimal

import numpy as np

from grpo_core.components import components
from grpo_core.scenario import as_batch

from .arithmetic import Number, Term, larger, smaller, total
from .chain_judging import checked
from .literal import literal
from .numbers import count, number
from .sheet import TERMS
from .token_text import visible

_JOINER = "\u2060"
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_READ = ("task_weight", "missing", "tokens")


class Parts:
    """The core's components of the scores on a sheet, task first, and what they are called."""

    def __init__(self, sheet):
        self.batch, _ = as_batch(sheet.scenario)
        options = {key: sheet.option("rewards", key) for key in _READ}
        self.core = components(self.batch, sheet.evaluation.reward_penalty, **options)
        self.places = range(len(self.core.weights))

    def known(self, k, where):
        """Whether component k takes part at a completion (prompt, completion)."""
        return bool(self.core.known[(k, *where)])

    def value(self, k, where):
        """Component k of a completion, 0 where it is missing; in the batch's number type."""
        value = self.core.values[(k, *where)]
        return self.batch.dtype.type(0 if np.isnan(value) else value)

    def exact(self, k, where):
        """The same as a decimal number; rewards per token are added up as decimals."""
        if k and self.batch.terms[k - 1].values.ndim == 3:
            tokens = self.batch.terms[k - 1].values[where][self.batch.valid[where]]
            return sum((Decimal(str(reward)) for reward in tokens), Decimal(0))
        return Decimal(str(self.value(k, where)))

    def weight(self, k):
        """The weight of component k."""
        return Number(self.core.weights[k], f"w_{{{k}}}")

    def name(self, k):
        """Name of component k in the chain."""
        return f"f_{k}" if k else "r"

    def words(self, k):
        """Component k as words of a sentence, safe to be read as Markdown."""
        return quoted(self.core.names[k]) if k else "the task reward"


def quoted(name):
    """A reader's name of a term, for labels and notes, which are Markdown.

    Addresses in it would become links, whatever is escaped: an invisible joiner breaks them.
    `unquoted` gives the plain text back.
    """
    shown = visible(name).replace("␣", " ")
    for mark in ("://", "www", "@"):
        shown = re.sub(f"({mark[0]})({mark[1:]})", rf"\1{_JOINER}\2", shown, flags=re.IGNORECASE)
    return f"“{literal(shown)}”"


def unquoted(words):
    """Words with `quoted` names in them as plain text."""
    return _ESCAPED.sub(r"\1", words.replace(_JOINER, ""))


def write_components(sheet, parts):
    """Write the value of each component of the completion, or that it is missing."""
    where = sheet.where[:2]
    for k in parts.places:
        symbol = f"f_{{{k}}}" if k else "r"
        words = ("reward", parts.name(k), _label(sheet, k), symbol)
        if not np.isnan(parts.core.values[(k, *where)]):
            if k:
                _written(sheet, parts, k, words)
            else:
                sheet.value(*words, parts.value(k, where))
        elif parts.known(k, where):
            sheet.value(*words, 0, note="It is missing here, and counts as 0.")
        else:
            sheet.note("reward", words[2], "It is missing here, and adds nothing.")


def _label(sheet, k):
    if not k:
        return "task reward"
    term = sheet.scenario.terms[k - 1]
    return f"{quoted(term.name)}: {term.variant.label}"


def _written(sheet, parts, k, words):
    """A term by its formula where that leads from shown numbers, else its value."""
    term = sheet.scenario.terms[k - 1]
    writer = TERM_WRITERS.get(term.formula.variant, _value)
    writer(sheet, parts, k, words, **term.formula.options)


def _value(sheet, parts, k, words, **_options):
    return sheet.value(*words, parts.value(k, sheet.where[:2]))


def _format_bonus(sheet, parts, k, words, **_options):
    found = parts.batch.term_values[(*sheet.where[:2], k - 1)] != 0
    note = "The format is right." if found else "The format is wrong."
    sheet.value(*words, parts.value(k, sheet.where[:2]), note=note)


def _length(sheet):
    return Number(int(sheet.evaluation.lengths[sheet.where[:2]]), "n")


class _Rounded(Term):
    """A formula whose result is cut to 30 digits, so that sums and means of it are exact."""

    def __init__(self, formula):
        self.formula = formula
        self.numbers, self.text, self.latex = formula.numbers, formula.text, formula.latex

    @property
    def tight(self):
        return self.formula.tight

    def evaluate(self, read):
        return Context(prec=30, traps=[]).plus(self.formula.evaluate(read))


def _formula(sheet, parts, k, words, formula, **more):
    core = parts.value(k, sheet.where[:2])
    return checked(sheet, words, _Rounded(formula), core, **more)


def _length_linear(sheet, parts, k, words, *, free, per):
    over = larger(_length(sheet) - Number(free, r"\mathrm{free}"), Number(0))
    _formula(sheet, parts, k, words, -(over / Number(per, r"\mathrm{per}")))


def _overlong(sheet, parts, k, words, *, limit, buffer, beyond):
    limit, buffer = Number(limit, "L"), Number(buffer, "c")
    over = larger((_length(sheet) - (limit - buffer)) / buffer, Number(0))
    held = smaller(over, Number(1)) if beyond == "held" else over
    _formula(sheet, parts, k, words, -held)


def _cosine_length(sheet, parts, k, words, *, limit, right_above, beyond, **corners):
    """The half cosine as a number of its own: how much of the short value is left."""
    where = sheet.where[:2]
    right = bool(sheet.evaluation.scenario["rewards"][where] > right_above)
    kind = "right" if right else "wrong"
    short, long = (Number(corners[f"{kind}_{end}"], rf"\mathrm{{{end}}}") for end in _ENDS)
    progress = int(sheet.evaluation.lengths[where]) / limit
    share = (1 + np.cos(np.pi * (min(progress, 1.0) if beyond == "held" else progress))) / 2
    name, symbol = f"c_{k}", f"c_{{{k}}}"
    tokens = count(int(sheet.evaluation.lengths[where]), "token")
    label = f"share of the short value left after {tokens} of {number(limit)}"
    left = sheet.value("reward", name, label, symbol, max(share, 0.0))
    note = f"The answer counts as {kind}."
    _formula(sheet, parts, k, words, long + (short - long) * left, note=note)


_ENDS = ("short", "long")


def _repetition(sheet, parts, k, words, *, n):
    every = max(int(sheet.evaluation.lengths[sheet.where[:2]]) - n + 1, 0)
    value = parts.value(k, sheet.where[:2])
    if not every:
        sheet.value(*words, value, note=f"There are no {n} tokens in a row.")
        return
    distinct = Number(round((1 + float(value)) * every), r"\mathrm{distinct}")
    share = distinct / Number(every, r"\mathrm{all}")
    _formula(sheet, parts, k, words, -(Number(1) - share), note=f"Of {n} tokens in a row.")


def token_rewards(sheet, parts, k, before=None):
    """Rewards of a completion's tokens by a term per token, or of those before a position."""
    p, g, _ = sheet.where
    values = parts.batch.terms[k - 1].values[p, g]
    return [
        Number(values[u], f"f_{{{k},{u}}}")
        for u in np.flatnonzero(sheet.evaluation.valid[p, g])
        if before is None or u < before
    ]


def _per_token(sheet, parts, k, words):
    rewards = token_rewards(sheet, parts, k)
    stage, name, label, symbol = words
    label = f"{label}, summed over the completion"
    sizes = [abs(reward.value) for reward in rewards]
    _formula(
        sheet,
        parts,
        k,
        (stage, name, label, symbol),
        total(rewards or [Number(0)]),
        near=max(sizes, default=None),
        general=rf"\sum_t f_{{{k},t}}",
        written=len(rewards) <= TERMS,
    )


# By the key of a row of `grpo_core.terms.TERMS`; one that is not here shows its value.
TERM_WRITERS = {
    "given": _value,
    "format_bonus": _format_bonus,
    "length_linear": _length_linear,
    "overlong": _overlong,
    "cosine_length": _cosine_length,
    "repetition": _repetition,
    "per_token": _per_token,
}
