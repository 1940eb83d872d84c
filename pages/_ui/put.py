"""Edited or pasted numbers into an array of a scenario, each cell checked by the array's rule."""

import numpy as np

from grpo_core import ARRAYS, ScenarioError
from grpo_core.errors import place
from grpo_core.scenario import counting_cells

from .step_tables import STEP_KEYS


def put(scenario, spec, prompt, edited):
    """Replace a region of one array; blanks that do not count keep what is stored."""
    region = region_of(prompt)
    stored = scenario.arrays.get(spec.key)
    if stored is None:  # an optional array that was not there
        stored = np.full(shape_of(scenario, spec), spec.default, dtype=np.float64)
    counts = counting_cells({**scenario.arrays, spec.key: stored}, spec)[region]
    with np.errstate(over="ignore"):
        typed = np.asarray(edited).astype(np.float64).astype(_number_type(stored, spec))
    bad = counts & ~(spec.rule.holds(typed) & (np.isin(typed, (0, 1)) | (spec.kind != "bool")))
    if np.any(bad):
        where = np.argwhere(bad)[0]
        value = np.asarray(edited)[tuple(where)]
        found = "blank" if np.isnan(value) else f"{value:g}"
        raise cell_error(spec, prompt, where, f"{found}; wanted {spec.rule.words}")
    array = stored.copy()
    array[region] = np.where(counts | ~np.isnan(typed), typed, stored[region])
    if spec.key in scenario and array.tobytes() == stored.tobytes():
        return scenario
    if spec.kind == "bool":
        return _switched(scenario, spec.key, array)
    return scenario.replace(**{spec.key: array})


def shape_of(scenario, spec):
    """The shape that an array has in a scenario, whether it is there or not."""
    sizes = {**scenario.sizes, **scenario.own_sizes, "K": len(scenario.terms)}
    return tuple(sizes[axis] for axis in spec.axes)


def region_of(prompt):
    """Index of one prompt's part of an array, or of all of it."""
    return () if prompt is None else (prompt,)


def _number_type(stored, spec):
    return np.float64 if spec.kind == "bool" else stored.dtype


def _switched(scenario, key, flags):
    """Other flags; steps of a completion that comes back and do not fit it any more are gone."""
    arrays = {key: flags, **_awakened(scenario, key, flags)}
    try:
        return scenario.replace(**arrays)
    except ScenarioError as error:
        if key != "present" or error.field not in STEP_KEYS:
            raise
    back = (flags & ~scenario["present"])[..., None]
    gone = {name: np.where(back, np.nan, scenario[name]) for name in STEP_KEYS}
    return scenario.replace(**arrays, **gone)


def _awakened(scenario, key, flags):
    """Defaults for cells that start to count now and hold what was never a valid value."""
    after = {**scenario.arrays, key: flags}
    filled = {}
    for name, array in scenario.arrays.items():
        spec = ARRAYS[name]
        counts = counting_cells(after, spec)
        invalid = counts & ~spec.rule.holds(array)
        if spec.kind == "float" and np.any(invalid):
            filled[name] = np.where(invalid, array.dtype.type(spec.default), array)
    return filled


def cell_error(spec, prompt, where, problem):
    """The house's form of a cell error: array, place, what is wrong, what is wanted."""
    axes = spec.axes if prompt is None else spec.axes[1:]
    cell = (*region_of(prompt), *(int(i) for i in where))[: len(spec.axes)] if axes else ()
    spot = f", {place(cell, spec.axes)}" if cell else ""
    return ScenarioError(f"{spec.key}{spot}: {problem}", field=spec.key, where=cell)
