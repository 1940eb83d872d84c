"""Adding, changing and removing the shaping terms of a scenario."""

from dataclasses import replace
from itertools import chain

import numpy as np

from .arrays import OWN_AXES
from .errors import ScenarioError
from .terms import TERMS, Term
from .variants import Choice

_WORD = "term"


def add_term(scenario, formula="given"):
    """The scenario with one more term of weight 1, under a name that is not taken.

    A given term starts at 0 for every completion. Without any term before, scores are
    combined from now on: summed, then normalised.

    Raises
    ------
    ScenarioError
        There are as many terms as there may be.
    """
    most = OWN_AXES["K"].high
    if len(scenario.terms) >= most:
        raise ScenarioError(f"there are {most} terms already; remove one first", field="terms")
    taken = {term.name for term in scenario.terms}
    label = TERMS[formula].label if formula != "given" else _WORD
    name = next(name for name in _names(label) if name not in taken)
    term = Term(name, 1.0, Choice(formula))
    column = np.zeros(scenario["present"].shape)
    values = np.concatenate([_columns(scenario), column[..., None]], axis=-1)
    ready = _with_needed(scenario, term)
    if not scenario.terms and ready.conventions["rewards"].variant == "outcome":
        ready = ready.choose("rewards", "sum_then_normalize")
    return ready.with_terms((*scenario.terms, term), values)


def remove_term(scenario, index):
    """The scenario without one of its terms; without the last one no column is left either."""
    terms = _without(scenario.terms, index)
    values = np.delete(_columns(scenario), index, axis=-1) if terms else None
    return scenario.with_terms(terms, values)


def change_term(scenario, index, *, name=None, weight=None, formula=None, **options):
    """The scenario with one term renamed, reweighted, or computed otherwise.

    Another ``formula`` takes its options at their defaults; ``options`` change those of the
    present one. Arrays that a formula reads and that are not there come in filled: token ids
    by the texts of the tokens where these are known.
    """
    term = scenario.terms[index]
    choice = term.formula
    if formula is not None and formula != choice.variant:
        choice = Choice(formula)
    choice = Choice(choice.variant, {**choice.options, **options})
    changed = replace(
        term,
        name=term.name if name is None else name.strip(),
        weight=term.weight if weight is None else weight,
        formula=choice,
    )
    terms = (*scenario.terms[:index], changed, *scenario.terms[index + 1 :])
    columns = _columns(scenario).copy()
    reads = "term_values" in changed.variant.needs
    if reads and "term_values" not in term.variant.needs and np.isnan(columns[..., index]).all():
        columns[..., index] = 0.0  # a column that nobody wrote: something to start from
    return _with_needed(scenario, changed).with_terms(terms, columns)


def _names(label):
    yield label
    yield from (f"{label} {n}" for n in range(2, OWN_AXES["K"].high + 2))


def _without(items, index):
    return (*items[:index], *items[index + 1 :])


def _columns(scenario):
    """Values of the terms, (P, G, K); blank where the scenario holds none."""
    if "term_values" in scenario:
        return scenario["term_values"]
    return np.full((*scenario["present"].shape, len(scenario.terms)), np.nan)


def _with_needed(scenario, term):
    """The scenario with the arrays per token that a term's formula reads."""
    missing = [key for key in term.variant.needs if key not in scenario and key in _FILLERS]
    return scenario.replace(**{key: _FILLERS[key](scenario) for key in missing})


def _token_ids(scenario):
    """A number for each distinct text of a token, in order of appearance; without texts 0."""
    texts = _texts(scenario)
    _, first, number = np.unique(texts, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number].astype(float).reshape(texts.shape)


def _texts(scenario):
    """Texts of all tokens, (P, G, L); '' where unknown."""
    P, G, L = scenario["mask"].shape
    completions = list(chain.from_iterable(scenario.texts.tokens))
    sizes, lengths = np.zeros(P, int), np.zeros((P, G), int)
    sizes[: len(scenario.texts.tokens)] = list(map(len, scenario.texts.tokens))
    lengths[np.arange(G) < sizes[:, None]] = list(map(len, completions))
    texts = np.full((P, G, L), "", dtype=object)
    texts[np.arange(L) < lengths[..., None]] = list(chain.from_iterable(completions))
    return texts


_FILLERS = {
    "token_rewards": lambda scenario: np.zeros(scenario["mask"].shape),
    "token_ids": _token_ids,
}
