"""The rows of the objective's account: what each adds, and the sum so far."""

from dataclasses import dataclass

import numpy as np

from grpo_core.breakdown import contributions

from .figure import FAR, largest
from .quantities import present


@dataclass(frozen=True)
class Row:
    """A bar's completion, or its whole prompt where ``g`` is None."""

    p: int
    g: int | None
    single: bool  # the only prompt of its batch

    @property
    def label(self):
        if self.g is None:
            return f"prompt {self.p}"
        return str(self.g) if self.single else f"{self.p}·{self.g}"

    @property
    def name(self):
        where = f"prompt {self.p}"
        return where if self.g is None else f"{where}, completion {self.g}"

    @property
    def where(self):
        """Index into (P, G) arrays."""
        return (self.p,) if self.g is None else (self.p, self.g)

    def of(self, part):
        """The row's entry of a part of the objective."""
        return float((part.prompts if self.g is None else part.completions)[self.where])


def account_rows(evaluation, prompt):
    """Every prompt as one row, the given one as its completions."""
    there = present(evaluation)
    single = len(there) == 1
    rows = []
    for p in range(len(there)):
        opened = np.flatnonzero(there[p]).tolist() if p == prompt else [None]
        rows += [Row(p, g, single) for g in opened]
    return rows


class Account:
    """What each row adds, in its two parts, and the sum so far before and after it."""

    def __init__(self, evaluation, rows):
        parts = contributions(evaluation)
        self.both, self.policy, self.kl = (
            np.array([row.of(part) for row in rows])
            for part in (parts.both, parts.policy, parts.kl)
        )
        self.objective = parts.both.whole
        self.tokens = [int(np.sum(evaluation.lengths[row.where])) for row in rows]
        # What is infinite ends far beyond everything else, and the sum with it.
        far = 4 * largest(self.policy, self.kl) or 1.0
        self.drawn_policy, self.drawn_kl, steps = (
            np.clip(values, -min(far, FAR), min(far, FAR))
            for values in (self.policy, self.kl, self.both)
        )
        self.sums = np.concatenate([[0.0], np.cumsum(steps)])
        if np.isfinite(self.objective) and abs(self.objective) < FAR:
            self.sums[-1] = self.objective

    @property
    def turns(self):
        """Where each row's policy part ends and its KL part begins."""
        return self.sums[:-1] + self.drawn_policy
