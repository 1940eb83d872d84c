"""The table that a scenario file holds: from a scenario, back to one, and laid out to read."""

import json
import math
import reprlib
from dataclasses import replace

import numpy as np

from grpo_core import (
    ARRAYS,
    STAGES,
    Choice,
    Conventions,
    ScenarioError,
    Texts,
    build_scenario,
)
from grpo_core.arrays import OWN_AXES
from grpo_core.scenario import counting_cells
from grpo_core.terms import Term

from .codec.scenarios import plain_arrays
from .codec.texts import TEXT_LIMIT

_INFINITY = "-inf"
_DEEPEST = 4  # lists within lists; an array has at most three axes


def check_table(value, name, known):
    """Refuse what is not a table, and the first key that means nothing."""
    if not isinstance(value, dict):
        raise ScenarioError(f"{name} is not a table of names and values, as in {{...}}.")
    for key in value:
        if key not in known:
            found, listing = reprlib.repr(key), ", ".join(known)
            raise ScenarioError(f"{name} holds {found}, which is not known; known are {listing}.")


def listed_arrays(scenario):
    """The arrays as nested lists, without masks that a reader gets from the rest as well."""
    listed = {}
    implied = {"mask": scenario.valid, "present": True}
    for key, array in scenario.arrays.items():
        if ARRAYS[key].kind == "bool":
            if key not in implied or np.any(array != implied[key]):
                listed[key] = array.astype(int).tolist()
        else:
            counts = counting_cells(scenario.arrays, ARRAYS[key])
            listed[key] = _spelled(np.where(counts, array, np.nan).tolist())
    return listed


def _spelled(value):
    if isinstance(value, list):
        return [_spelled(each) for each in value]
    if math.isnan(value):
        return None
    if math.isinf(value):
        return _INFINITY
    negative_zero = value == 0 and math.copysign(1, value) < 0
    return int(value) if value.is_integer() and abs(value) < 1e15 and not negative_zero else value


def with_infinities(name, value, depth=_DEEPEST):
    """Nested lists with "-inf" as a number; any other text is refused, and lists too deep."""
    if isinstance(value, list):
        if not depth:
            raise ScenarioError(f"{name} holds lists more than {_DEEPEST} deep.", field=name)
        return [with_infinities(name, each, depth - 1) for each in value]
    if isinstance(value, str):
        if value != _INFINITY:
            text = reprlib.repr(value)
            raise ScenarioError(f'{name} holds the text {text}; wanted numbers, null or "-inf".')
        return -math.inf
    return value


def said(scenario):
    """What a scenario holds beside arrays, as a table."""
    rest = {
        "conventions": {
            stage: {"variant": choice.variant, **choice.options}
            for stage, choice in scenario.conventions.choices.items()
        }
    }
    if scenario.terms:
        rest["terms"] = [_described(term) for term in scenario.terms]
    texts = {}
    if scenario.texts.prompts:
        texts["prompts"] = list(scenario.texts.prompts)
    if scenario.texts.tokens:
        first = _first_valid(scenario.valid)
        texts["tokens"] = [
            [_shortened(tokens, first[p][g]) for g, tokens in enumerate(group)]
            for p, group in enumerate(scenario.texts.tokens)
        ]
    if texts:
        rest["texts"] = texts
    return {**rest, "drift": scenario.drift}


def _described(term):
    named = {"name": term.name, "weight": term.weight, "formula": term.formula.variant}
    return {**named, **term.formula.options}


def _first_valid(valid):
    return valid.argmax(axis=2).tolist()


def _shortened(tokens, first):
    """One string where that says the same."""
    text = "".join(tokens)
    return text if _placed(list(text), first, len(tokens)) == tuple(tokens) else list(tokens)


def _placed(texts, first, length):
    """A row of `length` texts that begins at a position; None if it does not fit."""
    if len(texts) == length:
        return tuple(texts)
    after = length - first - len(texts)
    return (*[""] * first, *texts, *[""] * after) if after >= 0 else None


def assembled(arrays, document):
    """A scenario from checked arrays and the rest of a document."""
    if not any(key in ARRAYS and "P" in ARRAYS[key].axes for key in arrays):
        raise ScenarioError("The file holds no arrays; at least rewards are needed.")
    if "mask" not in arrays:
        per_token = [key for key in arrays if ARRAYS[key].axes == ARRAYS["mask"].axes]
        if per_token:
            arrays = {**arrays, "mask": ~np.isnan(arrays[per_token[0]])}
    drift = document.get("drift", 1.0)
    if isinstance(drift, bool) or not isinstance(drift, (int, float)):
        raise ScenarioError("drift is not a number.", field="drift")
    try:
        built = build_scenario(
            **arrays,
            conventions=_conventions(document.get("conventions", _made_for(arrays))),
            drift=float(drift),
            terms=_terms(document.get("terms", [])),
        )
    except OverflowError:
        raise ScenarioError("The file holds a number that is too large.") from None
    texts = _texts(document.get("texts", {}), built)
    return replace(built, arrays=plain_arrays(built), texts=texts)


def _made_for(arrays):
    """Conventions of a file that names none: what an array is brought for is chosen."""
    return {
        stage.key: {"variant": row.key}
        for stage in STAGES.values()
        for row in stage.variants.values()
        if row.needs and all(key in arrays for key in row.needs)
    }


def _conventions(given):
    if not isinstance(given, dict):
        raise ScenarioError("conventions is not a table of stages.")
    choices = {}
    for stage, choice in given.items():
        if not isinstance(choice, dict) or not isinstance(choice.get("variant"), str):
            name = reprlib.repr(stage)
            raise ScenarioError(f"conventions: {name} is no table with a variant.", field=stage)
        choices[stage] = Choice(
            choice["variant"], _options(choice, ("variant",), "conventions", stage)
        )
    return Conventions(choices)


def _options(choice, others, part, stage):
    """What a choice holds beside `others`: a plain number or word each."""
    options = {key: value for key, value in choice.items() if key not in others}
    for key, value in options.items():
        finite = math.isfinite(value) if isinstance(value, (int, float)) else True
        if not isinstance(value, (str, int, float)) or not finite:
            name = reprlib.repr(f"{stage}.{key}")
            raise ScenarioError(f"{part}: {name} is no number or word.", field=f"{stage}.{key}")
    return options


def _terms(given):
    most = OWN_AXES["K"].high
    if not isinstance(given, list) or len(given) > most:
        raise ScenarioError(f"terms is no list of at most {most} tables.", field="terms")
    return tuple(_term(term, f"term {k}") for k, term in enumerate(given))


def _term(given, spot):
    if not isinstance(given, dict) or not isinstance(given.get("formula", "given"), str):
        raise ScenarioError(f"terms: {spot} is no table with a formula.", field="terms")
    options = _options(given, ("name", "weight", "formula"), "terms", spot)
    weight = given.get("weight", 1.0)
    if (
        isinstance(weight, bool)
        or not isinstance(weight, (int, float))
        or not math.isfinite(weight)
    ):
        raise ScenarioError(f"terms: the weight of {spot} is no number.", field="terms")
    try:
        term = Term(given.get("name"), weight, Choice(given.get("formula", "given"), options))
    except ScenarioError as error:
        raise ScenarioError(f"terms: {spot}: {error}", field="terms") from None
    _check_texts([term.name], f"the name of {spot}", "terms")
    return term


def _texts(given, scenario):
    check_table(given, "texts", ("prompts", "tokens"))
    P, G, L = scenario.sizes.values()
    prompts, tokens = given.get("prompts", []), given.get("tokens", [])
    if not isinstance(prompts, list) or len(prompts) > P:
        raise ScenarioError(f"texts: prompts is no list of at most {P} texts.")
    _check_texts(prompts, "prompts")
    if not tokens:
        return Texts(tuple(prompts))
    if not isinstance(tokens, list) or len(tokens) > P:
        raise ScenarioError(f"texts: tokens is no list of at most {P} groups.")
    first = _first_valid(scenario.valid)
    rows = []
    for p in range(P):
        group = tokens[p] if p < len(tokens) else []
        if not isinstance(group, list) or len(group) > G:
            raise ScenarioError(f"texts: tokens of prompt {p} is no list of at most {G} rows.")
        group = [*group, *[""] * (G - len(group))]
        rows.append(tuple(_row(texts, first[p][g], L, (p, g)) for g, texts in enumerate(group)))
    return Texts(tuple(prompts), tuple(rows))


def _row(texts, first, length, where):
    spot = f"tokens of prompt {where[0]}, completion {where[1]}"
    if not isinstance(texts, (str, list)):
        raise ScenarioError(f"texts: {spot} is neither a text nor a list of texts.", where=where)
    row = list(texts)
    _check_texts(row, spot)
    placed = _placed(row, first, length)
    if placed is None:
        raise ScenarioError(
            f"texts: {spot} has {len(row)} texts, more than there are positions.", where=where
        )
    return placed


def _check_texts(texts, spot, part="texts"):
    if not all(isinstance(text, str) for text in texts):
        raise ScenarioError(f"{part}: {spot} holds something that is not a text.")
    whole = "".join(texts)
    if len(whole) > TEXT_LIMIT:
        raise ScenarioError(f"{part}: {spot} has more than {TEXT_LIMIT:,} characters.")
    try:
        whole.encode()
    except UnicodeEncodeError:
        raise ScenarioError(f"{part}: {spot} holds half of a character.") from None


def laid_out(value, indent=""):
    """JSON text: tables and nested lists over several lines, everything flat on one."""
    inner = indent + "  "
    nested = isinstance(value, (dict, list))
    parts = (value.values() if isinstance(value, dict) else value) if nested else ()
    if not any(isinstance(part, (dict, list)) for part in parts):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {laid_out(part, inner)}" for key, part in value.items()]
        return "{\n" + ",\n".join(inner + line for line in lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + laid_out(part, inner) for part in value) + f"\n{indent}]"
