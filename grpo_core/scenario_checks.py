"""What a scenario may hold, checked once: shapes, cells, terms, texts."""

import reprlib

import numpy as np

from .arrays import ARRAYS, OWN_AXES, check_cells, check_own_axes, check_shape, own_sizes
from .errors import ScenarioError
from .step_checks import check_steps

SIZES = {"P": "prompts", "G": "completions per prompt", "L": "token positions"}


def counting_cells(arrays, spec):
    """Cells of one array that count, as a boolean array of its shape."""
    if spec.key in ("mask", "present") or not spec.axes.startswith("PG"):
        return np.ones(arrays[spec.key].shape, dtype=bool)
    if spec.axes == "PG":
        return arrays["present"]
    if spec.axes == "PGL":
        return arrays["mask"] & arrays["present"][..., None]
    return np.broadcast_to(arrays["present"][..., None], arrays[spec.key].shape)


def check_shapes(arrays):
    """Refuse arrays whose shapes do not fit the mask's or each other."""
    check_own_axes(arrays)
    shape = arrays["mask"].shape
    for size, (letter, name) in zip(shape, SIZES.items(), strict=True):
        if size < 1:
            raise ScenarioError(
                f"mask has {size} {name} ({letter}); wanted at least 1", field="mask"
            )
    sizes = {**own_sizes(arrays), **dict(zip("PGL", shape, strict=True))}
    for key, array in arrays.items():
        expected = tuple(sizes[axis] for axis in ARRAYS[key].axes)
        check_shape(key, array, expected, "mask", ARRAYS[key])


def check_values(arrays):
    """Refuse the first cell that counts and is not valid, and steps that do not fit."""
    for key, array in arrays.items():
        check_cells(key, array, ARRAYS[key], counting_cells(arrays, ARRAYS[key]))
    check_steps(arrays)


def check_terms(terms, arrays):
    """Refuse terms of one name, and another number of them than there are columns of values."""
    names = [term.name for term in terms]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ScenarioError(
            f"two terms are called {twice!r}; give each its own name", field="terms"
        )
    most = OWN_AXES["K"].high
    if len(terms) > most:
        raise ScenarioError(f"there are {len(terms)} terms; wanted at most {most}", field="terms")
    columns = arrays["term_values"].shape[-1] if "term_values" in arrays else len(terms)
    if columns != len(terms):
        raise ScenarioError(
            f"term_values has {columns} columns; wanted one for each of the {len(terms)} terms",
            field="term_values",
        )


def check_needs(conventions, terms, arrays):
    """Refuse a choice whose arrays are not there."""
    chosen = [
        (f"{stage} is set to", conventions.variant(stage)) for stage in conventions.choices
    ] + [(f"the term {term.name!r} is set to", term.variant) for term in terms]
    for words, variant in chosen:
        for key in variant.needs:
            if key not in arrays:
                raise ScenarioError(
                    f"{words} {variant.key!r}, which needs the array {key!r}", field=key
                )


def check_texts(texts, shape):
    """Refuse texts of prompts, completions or tokens that the batch does not have."""
    groups = texts.tokens
    found = (
        max(len(texts.prompts), len(groups)),
        max(map(len, groups), default=0),
        max((len(tokens) for group in groups for tokens in group), default=0),
    )
    for size, most, name in zip(found, shape, SIZES.values(), strict=True):
        if size > most:
            raise ScenarioError(f"texts have {size} {name}; the batch has {most}", field="texts")


def refuse_unknown(keys):
    """Refuse names that are no array."""
    unknown = [key for key in keys if key not in ARRAYS]
    if unknown:
        name = reprlib.repr(unknown[0])
        raise ScenarioError(f"unknown array {name}; known are {', '.join(ARRAYS)}")
