"""Scenario: one example, whole. Arrays, conventions, texts, drift and terms, checked once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from types import MappingProxyType

import numpy as np

from .arrays import ARRAYS, as_array, own_sizes
from .errors import ScenarioError
from .scenario_checks import (
    check_needs,
    check_shapes,
    check_terms,
    check_texts,
    check_values,
    refuse_unknown,
)
from .stages import DEFAULT_CONVENTIONS, Conventions
from .terms import Term
from .variants import Number

_DRIFT = Number(low=-np.inf)


@dataclass(frozen=True)
class Texts:
    """What prompts and tokens read, for the eye only.

    ``prompts`` holds P strings or none. ``tokens[p][g][t]`` is the text of one position;
    either may be empty where nothing is known.
    """

    prompts: tuple[str, ...] = ()
    tokens: tuple[tuple[tuple[str, ...], ...], ...] = ()

    def prompt(self, p):
        """Text of a prompt, '' if unknown."""
        return self.prompts[p] if p < len(self.prompts) else ""

    def token(self, p, g, t):
        """Text of a token, '' if unknown."""
        try:
            return self.tokens[p][g][t]
        except IndexError:
            return ""

    def completion(self, p, g):
        """Text of a completion: its tokens in a row."""
        try:
            return "".join(self.tokens[p][g])
        except IndexError:
            return ""


@dataclass(frozen=True, eq=False)
class Scenario:
    """An example that can be evaluated, linked, saved and exported.

    Parameters
    ----------
    arrays : mapping from key of `ARRAYS` to array-like
        All required ones. What stands at cells that do not count (padding, absent
        completions) is kept but never read.
    conventions : Conventions
    texts : Texts
    drift : float
        The effective new log-probability is ``logp_old + drift (logp_new - logp_old)``.
    terms : tuple of Term
        Shaping terms, which the rewards stage may combine with the task reward. The array
        ``term_values``, if there is one, has a column for each.

    Raises
    ------
    ScenarioError
        Missing or unknown arrays, wrong shapes, a cell that counts and is not valid, texts of
        what is not there, steps that do not fit their completion.
    """

    arrays: Mapping[str, np.ndarray]
    conventions: Conventions = DEFAULT_CONVENTIONS
    texts: Texts = field(default_factory=Texts)
    drift: float = 1.0
    terms: tuple[Term, ...] = ()

    def __post_init__(self):
        refuse_unknown(self.arrays)
        arrays = {}
        for key, spec in ARRAYS.items():
            value = self.arrays.get(key)
            if value is None and spec.required:
                raise ScenarioError(f"{key} is missing", field=key)
            if value is not None:
                arrays[key] = as_array(key, value, spec)
        check_shapes(arrays)
        check_values(arrays)
        check_texts(self.texts, arrays["mask"].shape)
        for array in arrays.values():
            array.setflags(write=False)
        terms = tuple(self.terms)
        check_terms(terms, arrays)
        check_needs(self.conventions, terms, arrays)
        drift = _DRIFT.coerce(self.drift)
        if drift not in _DRIFT:
            raise ScenarioError(f"drift is {self.drift!r}; wanted a finite number", field="drift")
        object.__setattr__(self, "arrays", MappingProxyType(arrays))
        object.__setattr__(self, "drift", drift)
        object.__setattr__(self, "terms", terms)

    def __getitem__(self, key):
        return self.arrays[key]

    def __contains__(self, key):
        return key in self.arrays

    @property
    def sizes(self):
        """``{'P': prompts, 'G': completions per prompt, 'L': token positions}``."""
        return dict(zip("PGL", self.arrays["mask"].shape, strict=True))

    @property
    def own_sizes(self):
        """Length of each axis of `OWN_AXES` that one of the arrays has."""
        return own_sizes(self.arrays)

    @property
    def valid(self):
        """Positions that count: unmasked tokens of completions that are present; (P, G, L)."""
        return self.arrays["mask"] & self.arrays["present"][..., None]

    def replace(self, **arrays):
        """A copy with other arrays; None takes an optional one out."""
        return replace_fields(self, arrays={**self.arrays, **arrays})

    def choose(self, stage, variant=None, **options):
        """A copy with another variant or other options in one stage."""
        return replace_fields(self, conventions=self.conventions.replace(stage, variant, **options))

    def with_conventions(self, conventions):
        """A copy under other conventions."""
        return replace_fields(self, conventions=conventions)

    def with_terms(self, terms, values=None):
        """A copy with other terms; `values` (P, G, K) replaces ``term_values``."""
        arrays = {**self.arrays, "term_values": values}
        return replace_fields(self, arrays=arrays, terms=terms)

    def with_texts(self, texts):
        """A copy with other texts."""
        return replace_fields(self, texts=texts)
