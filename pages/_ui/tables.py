"""Tables: arrays of a scenario as data frames, and edited frames back into a scenario."""

import numpy as np
import pandas as pd

from grpo_core import ARRAYS, ScenarioError, resize
from grpo_core.arrays import VOCABULARY
from grpo_core.errors import place
from grpo_core.estimators import resize_distributions, with_distributions
from grpo_core.scenario import counting_cells

from .group_tables import compare_formulas, comparison_frame, group_table
from .limits import check_sizes
from .paste import array_to_code, parse_numbers, parse_rewards
from .token_text import visible

_LIKE = {"PG": "present", "PGL": "mask"}
_AXIS_NAMES = {"P": "prompt", "G": "completion", "L": "token", "V": "token"}


def array_to_frame(scenario, key, prompt=None):
    """An array as a table to edit.

    Parameters
    ----------
    scenario : Scenario
    key : str
        Key of `ARRAYS`, present in the scenario. Distributions stand at their default if not.
    prompt : int or None
        One prompt's completions; needed for arrays (P, G, L).

    Returns
    -------
    DataFrame
        (P, G): rows are prompts, columns completions. (P, G) of one prompt: rows are
        completions, the one column is named `key`. (P, G, L) of one prompt: rows are
        completions, columns token positions. (V,): rows are tokens. Columns are named '0',
        '1', ...; float cells that do not count are NaN.
    """
    spec, scenario = ARRAYS[key], _shown(scenario, key)
    region = _region(prompt)
    values, counts = scenario[key][region], counting_cells(scenario.arrays, spec)[region]
    if spec.kind == "float":
        values = np.where(counts, values, np.nan).astype(np.float64)
    rows, columns = _table_shape(values)
    return pd.DataFrame(
        values.reshape(rows, columns).copy(),
        index=pd.Index([str(i) for i in range(rows)], name=_row_name(spec, prompt)),
        columns=_column_names(spec, prompt, columns),
    )


def frame_to_array(scenario, key, frame, prompt=None):
    """The scenario with an edited table put in; the same object if nothing was changed.

    Parameters
    ----------
    scenario : Scenario
    key : str
    frame : DataFrame
        As `array_to_frame` made it, edited. Further columns are ignored.
    prompt : int or None
        As given to `array_to_frame`.

    Raises
    ------
    ScenarioError
        Names array and cell: text, a number in padding, a blank where a number is wanted,
        a value that breaks the array's rule, or a table of another size.

    Notes
    -----
    A blank cell that does not count keeps what the scenario stores there, so that nothing
    is lost when the mask is switched off and on again.
    """
    spec, region = ARRAYS[key], _region(prompt)
    given, scenario = scenario, _shown(scenario, key)
    stored = scenario[key][region]
    rows, columns = _table_shape(stored)
    names = _column_names(spec, prompt, columns)
    if len(frame) != rows or any(name not in frame.columns for name in names):
        raise ScenarioError(
            f"{key}: the table has {len(frame)} rows and the columns "
            f"{', '.join(map(str, frame.columns))}; expected {rows} rows and the columns "
            f"{', '.join(names)}; change the size first",
            field=key,
        )
    edited = _numbers(frame[names], spec, prompt).reshape(stored.shape)
    counts = counting_cells(scenario.arrays, spec)[region]
    stray = np.argwhere(~counts & ~np.isnan(edited))
    if len(stray):
        why = _why_not_counting(scenario, prompt, stray[0])
        raise _error(spec, prompt, stray[0], why)
    changed = _put(scenario, spec, prompt, edited)
    return given if changed is scenario else changed


def paste_array(scenario, key, text, prompt=None):
    """The scenario with a pasted array put in, and resized to it where all of it was pasted.

    Parameters
    ----------
    scenario : Scenario
    key : str
        Key of `ARRAYS`; an optional array need not be there yet.
    text : str
        See `parse_numbers`. Several prompts are the whole array.
    prompt : int or None
        Where one prompt's numbers go, if the scenario has others. They must have its number
        of completions and no more tokens.

    Raises
    ------
    ScenarioError
        Unreadable text, wrong size, values that break the array's rule.

    Notes
    -----
    A completion whose pasted token values end early ends there: the mask is switched off.
    """
    spec = ARRAYS[key]
    if not spec.axes:
        return scenario.replace(**{key: _single(parse_numbers(text, "G"), key)})
    if spec.axes == "V":
        values = parse_numbers(text, "G")
        _check_vocabulary_size(values, key)
        return _put(resize_distributions(scenario, values.size), spec, None, values)
    values = parse_numbers(text, spec.axes)
    pasted = dict(zip(spec.axes, values.shape, strict=True))
    if spec.kind == "bool":
        values = np.where(np.isnan(values), 0.0, values)
    if len(values) == 1 and scenario.sizes["P"] > 1 and prompt is not None:
        values = _widened(values[0], spec, scenario.sizes["L"])
        here = tuple(scenario.sizes[axis] for axis in spec.axes[1:])
        if values.shape != here:
            raise ScenarioError(
                f"{key}: pasted {_spelled(values.shape)} values; each prompt here has "
                f"{_spelled(here)}",
                field=key,
            )
    else:
        prompt = None
        check_sizes({**scenario.sizes, **pasted})
        scenario = resize(scenario, **pasted)
    if spec.axes == "PGL" and spec.kind == "float":
        scenario = _end_completions(scenario, prompt, np.isnan(values))
    return _put(scenario, spec, prompt, values)


def array_as_code(scenario, key):
    """An array as NumPy code, with its name; distributions at their default if absent."""
    return array_to_code(_shown(scenario, key)[key], key)


def rewards_frame(scenario, prompt):
    """Completions of one prompt with their texts, if known, and rewards; for `frame_to_array`."""
    frame = array_to_frame(scenario, "rewards", prompt)
    if scenario.texts.tokens:
        G = scenario.sizes["G"]
        texts = [_one_line(scenario.texts.completion(prompt, g)) for g in range(G)]
        frame.insert(0, "completion text", texts)
    return frame


def _one_line(text, limit=60):
    """A completion on one line: blanks stay blanks, everything else as `visible`."""
    return visible(text, limit).replace("␣", " ")


def _shown(scenario, key):
    """The scenario in which a table finds its array."""
    return with_distributions(scenario) if ARRAYS[key].axes == "V" else scenario


def _check_vocabulary_size(values, key):
    low, high = VOCABULARY
    if not low <= values.size <= high:
        raise ScenarioError(
            f"{key}: pasted {values.size} values; wanted {low} to {high}", field=key
        )


def _region(prompt):
    return () if prompt is None else (prompt,)


def _table_shape(values):
    """Rows and columns of a region: two axes as they are, fewer as one column."""
    return values.shape if values.ndim == 2 else (values.size, 1)


def _row_name(spec, prompt):
    axes = spec.axes if prompt is None else spec.axes[1:]
    return _AXIS_NAMES[axes[0]] if axes else None


def _column_names(spec, prompt, columns):
    axes = spec.axes if prompt is None else spec.axes[1:]
    return [spec.key] if len(axes) < 2 else [str(i) for i in range(columns)]


def _numbers(frame, spec, prompt):
    """Cells as float64, blank as NaN (in a table of flags as off)."""
    values = np.full(frame.shape, np.nan)
    for c, name in enumerate(frame.columns):
        column = frame[name]
        if column.dtype.kind in "fiub":
            values[:, c] = column.to_numpy(dtype=np.float64)
            continue
        for r, cell in enumerate(column):
            values[r, c] = _number(cell, spec, prompt, (r, c))
    return np.where(np.isnan(values), 0.0, values) if spec.kind == "bool" else values


def _number(cell, spec, prompt, where):
    if cell is None or cell is pd.NA or (isinstance(cell, str) and not cell.strip()):
        return np.nan
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        raise _error(spec, prompt, where, f"{str(cell)[:24]!r} is not a number") from None


def _error(spec, prompt, where, problem):
    """The house's form of a cell error: array, place, what is wrong, what is wanted."""
    axes = spec.axes if prompt is None else spec.axes[1:]
    cell = (*_region(prompt), *(int(i) for i in where))[: len(spec.axes)] if axes else ()
    spot = f", {place(cell, spec.axes)}" if cell else ""
    return ScenarioError(f"{spec.key}{spot}: {problem}", field=spec.key, where=cell)


def _why_not_counting(scenario, prompt, where):
    cell = (*_region(prompt), *(int(i) for i in where))
    if not scenario["present"][cell[:2]]:
        return "this completion is not there; switch it on in the table of present completions"
    return "this position is padding; switch it on in the mask table first"


def _put(scenario, spec, prompt, edited):
    """Replace a region of one array; blanks that do not count keep what is stored."""
    region = _region(prompt)
    counts = counting_cells(scenario.arrays, spec)[region]
    stored = scenario.arrays.get(spec.key)
    if stored is None:  # an optional array that was not there
        stored = np.full(scenario[_LIKE[spec.axes]].shape, spec.default, dtype=np.float64)
    with np.errstate(over="ignore"):
        typed = np.asarray(edited).astype(np.float64).astype(_number_type(stored, spec))
    bad = counts & ~(spec.rule.holds(typed) & (np.isin(typed, (0, 1)) | (spec.kind != "bool")))
    if np.any(bad):
        where = np.argwhere(bad)[0]
        value = np.asarray(edited)[tuple(where)]
        found = "blank" if np.isnan(value) else f"{value:g}"
        raise _error(spec, prompt, where, f"{found}; wanted {spec.rule.words}")
    array = stored.copy()
    array[region] = np.where(counts | ~np.isnan(typed), typed, stored[region])
    if spec.key in scenario and array.tobytes() == stored.tobytes():
        return scenario
    arrays = {spec.key: array}
    if spec.kind == "bool":
        arrays |= _awakened(scenario, spec.key, array)
    return scenario.replace(**arrays)


def _number_type(stored, spec):
    return np.float64 if spec.kind == "bool" else stored.dtype


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


def _end_completions(scenario, prompt, blank):
    """Switch the mask off behind the last number of each completion."""
    number_follows = np.flip(np.logical_or.accumulate(np.flip(~blank, -1), axis=-1), -1)
    mask = scenario["mask"].copy()
    mask[_region(prompt)] &= number_follows
    return scenario.replace(mask=mask)


def _widened(values, spec, width):
    """One prompt's token values filled up to the batch's width: blank, or off in a mask."""
    if not spec.axes.endswith("L") or values.shape[-1] >= width:
        return values
    filler = 0.0 if spec.kind == "bool" else np.nan
    rest = np.full((len(values), width - values.shape[-1]), filler)
    return np.concatenate([values, rest], axis=-1)


def _single(values, key):
    if values.size != 1:
        raise ScenarioError(f"{key}: pasted {values.size} values; wanted one", field=key)
    return values[0]


def _spelled(shape):
    return " x ".join(map(str, shape))


__all__ = [
    "array_as_code",
    "array_to_code",
    "array_to_frame",
    "compare_formulas",
    "comparison_frame",
    "frame_to_array",
    "group_table",
    "parse_numbers",
    "parse_rewards",
    "paste_array",
    "rewards_frame",
]
