"""Reading recorded cases, and running them under conventions: shared by all sources."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grpo_core.batch import prepare
from grpo_core.evaluation import evaluate_batch
from grpo_core.terms import TermValues

SPECIAL = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


class Unsupported(Exception):
    """A case that the core does not compute, with the reason."""


@dataclass(frozen=True)
class Check:
    """One output: what was recorded, what the core gives, and how near they have to be."""

    name: str
    recorded: object
    computed: object
    rtol: float
    atol: float

    @property
    def passes(self):
        """True if shapes agree and every number is near enough; NaN equals NaN."""
        recorded, computed = (np.asarray(x, dtype=float) for x in (self.recorded, self.computed))
        if recorded.shape != computed.shape:
            return False
        return bool(np.allclose(computed, recorded, rtol=self.rtol, atol=self.atol, equal_nan=True))

    @property
    def distance(self):
        """Largest absolute difference; infinite where the shapes differ or one only is NaN."""
        recorded, computed = (np.asarray(x, dtype=float) for x in (self.recorded, self.computed))
        if recorded.shape != computed.shape:
            return np.inf
        same = (recorded == computed) | (np.isnan(recorded) & np.isnan(computed))
        with np.errstate(invalid="ignore"):
            gap = np.abs(np.where(same, 0.0, recorded - computed))
        return float(np.max(np.where(np.isnan(gap), np.inf, gap), initial=0.0))


def numbers(value):
    """Nested lists and tables with "nan", "inf" and "-inf" as text -> the same with floats."""
    if isinstance(value, list):
        return [numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: numbers(item) for key, item in value.items()}
    return SPECIAL.get(value, value) if isinstance(value, str) else value


def cases(path):
    """The cases of one file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))["cases"]


class Case:
    """A case as its source reads it: inputs as arrays, options, and the checks that arise."""

    def __init__(self, case):
        self.kwargs = case["kwargs"]
        self.inputs = {key: numbers(value) for key, value in case["inputs"].items()}
        self.outputs = numbers(case["outputs"])
        self.tolerance = case["tolerance"]
        self.source = case["source"]

    def array(self, key, default=None):
        """One input as an array; `default` where the case has none."""
        if key not in self.inputs:
            return default
        return np.array(self.inputs[key], dtype=np.float64)

    def option(self, key, default=None):
        """One option; `default` where it is missing or null."""
        value = self.kwargs.get(key)
        return default if value is None else value

    def check(self, name, computed, rtol=None, atol=None):
        """Compare one output at the case's tolerance, or at a given one."""
        return Check(
            name,
            self.outputs[name],
            computed,
            self.tolerance["rtol"] if rtol is None else rtol,
            self.tolerance["atol"] if atol is None else atol,
        )


@dataclass(frozen=True, eq=False)
class Groups:
    """Flat rows as groups: where each row stands in arrays of P prompts x G completions."""

    prompt: np.ndarray
    completion: np.ndarray
    shape: tuple[int, int]

    @classmethod
    def of(cls, index):
        """Rows with one value of `index` are a group, in their order."""
        index = np.asarray(index)
        _, first, prompt = np.unique(index, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))  # groups in order of appearance
        prompt = rank[prompt]
        order = np.argsort(prompt, kind="stable")
        starts = np.searchsorted(prompt[order], prompt[order])
        completion = np.empty(len(index), dtype=int)
        completion[order] = np.arange(len(index)) - starts
        return cls(prompt, completion, (int(prompt.max()) + 1, int(completion.max()) + 1))

    @classmethod
    def blocks(cls, rows, size):
        """Every `size` rows are a group."""
        return cls.of(np.arange(rows) // size)

    def up(self, rows, filler=0.0):
        """Rows (N, ...) as (P, G, ...)."""
        rows = np.asarray(rows)
        grouped = np.full((*self.shape, *rows.shape[1:]), filler, dtype=rows.dtype)
        grouped[self.prompt, self.completion] = rows
        return grouped

    def down(self, grouped):
        """(P, G, ...) back to rows."""
        return grouped[self.prompt, self.completion]

    @property
    def present(self):
        """Completions that some row stands for, (P, G)."""
        return self.up(np.ones(len(self.prompt), dtype=bool), False)


def run(conventions, groups, *, mask, rewards=None, terms=(), **rows):
    """Evaluate flat rows (N, L) under conventions.

    Parameters
    ----------
    conventions : Conventions
    groups : Groups
    mask : ndarray, (N, L)
    rewards : ndarray, (N,), optional
    terms : sequence of (weight, values (N,))
    rows
        Arrays of a batch by their keys, (N,) or (N, L); log-probabilities that are missing
        are those of the new policy, and 0 without one.
    """
    from dataclasses import replace

    mask = np.asarray(mask, dtype=bool)
    new = rows.pop("logp_new", np.zeros(mask.shape))
    logps = {key: rows.pop(key, new) for key in ("logp_old", "logp_ref")}
    rewards = np.zeros(len(mask)) if rewards is None else rewards
    batch = prepare(
        rewards=groups.up(rewards, np.nan),
        mask=groups.up(mask, False),
        present=groups.present,
        logp_new=groups.up(new),
        **{key: groups.up(array) for key, array in logps.items()},
        **{key: groups.up(array) for key, array in rows.items()},
    )
    columns = tuple(
        TermValues(f"term {k}", weight, groups.up(values, np.nan))
        for k, (weight, values) in enumerate(terms)
    )
    return evaluate_batch(replace(batch, terms=columns), conventions)
