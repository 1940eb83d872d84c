"""Tables: arrays of a scenario as data frames, and edited frames back into a scenario."""

import numpy as np
import pandas as pd

from grpo_core import ARRAYS, ScenarioError, resize
from grpo_core.arrays import OWN_AXES
from grpo_core.estimators import resize_distributions, with_distributions
from grpo_core.scenario import SIZES, counting_cells

from .group_tables import compare_formulas, comparison_frame, group_table
from .limits import check_sizes
from .numbers import count
from .paste import array_to_code, parse_numbers, parse_rewards
from .put import cell_error, put, region_of, shape_of
from .step_tables import STEP_KEYS, paste_step_array, paste_steps
from .token_text import visible

_ROWS = {"P": "prompt", "G": "completion", "V": "token"}


def array_to_frame(scenario, key, prompt=None):
    """An array as a table to edit.

    Parameters
    ----------
    scenario : Scenario
    key : str
        Key of `ARRAYS`, present in the scenario. Distributions and values of terms stand at
        their default if not.
    prompt : int or None
        One prompt's completions; needed for arrays of three axes.

    Returns
    -------
    DataFrame
        (P, G): rows are prompts, columns completions. (P, G) of one prompt: rows are
        completions, the one column is named `key`. (P, G, L), (P, G, S) and (P, G, K) of one
        prompt: rows are completions, columns token positions, steps or terms. (V,): rows are
        tokens; so for every array beside the batch. Columns are named '0', '1', ...; float
        cells that do not count are NaN.
    """
    spec, scenario = ARRAYS[key], _shown(scenario, key)
    region = region_of(prompt)
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
    spec, region = ARRAYS[key], region_of(prompt)
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
        raise cell_error(spec, prompt, stray[0], why)
    changed = put(scenario, spec, prompt, edited)
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

    See Also
    --------
    paste_steps : both arrays of steps, which belong together.

    Raises
    ------
    ScenarioError
        Unreadable text, wrong size, values that break the array's rule.

    Notes
    -----
    A completion whose pasted token values end early ends there: the mask is switched off.
    """
    spec = ARRAYS[key]
    if "P" not in spec.axes:
        return _paste_beside(scenario, spec, text)
    if key in STEP_KEYS:
        return paste_step_array(scenario, key, text, prompt)
    values = parse_numbers(text, spec.axes)
    if spec.axes == "PGK":
        values = _columns_of_terms(values, len(scenario.terms))
    pasted = dict(zip(spec.axes, values.shape, strict=True))
    if spec.kind == "bool":
        values = np.where(np.isnan(values), 0.0, values)
    if len(values) == 1 and scenario.sizes["P"] > 1 and prompt is not None:
        values = _widened(values[0], spec, scenario.sizes["L"])
        here = shape_of(scenario, spec)[1:]
        if values.shape != here:
            raise ScenarioError(
                f"{key}: pasted {_spelled(values.shape)} values; each prompt here has "
                f"{_spelled(here)}",
                field=key,
            )
    else:
        prompt = None
        check_sizes({**scenario.sizes, **pasted})
        scenario = resize(scenario, **{axis: pasted[axis] for axis in SIZES if axis in pasted})
    if spec.axes == "PGL" and spec.kind == "float":
        scenario = _end_completions(scenario, prompt, np.isnan(values))
    return put(scenario, spec, prompt, values)


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
    spec = ARRAYS[key]
    if spec.axes == "PGK" and key not in scenario and scenario.terms:
        return scenario.replace(**{key: np.full(shape_of(scenario, spec), spec.default)})
    return with_distributions(scenario) if spec.axes == "V" else scenario


def _columns_of_terms(values, terms):
    """Pasted values with a column for each term; those of one term may come as a line."""
    if terms == 1 and values.shape[:2] == (1, 1):
        values = values.reshape(1, -1, 1)
    if values.shape[2] != terms:
        found, held = count(values.shape[2], "column"), count(terms, "term")
        raise ScenarioError(
            f"term_values: pasted {found}; the example has {held}, and each needs one",
            field="term_values",
        )
    return values


def _paste_beside(scenario, spec, text):
    """Put in an array that stands beside the batch and has the sizes that were pasted."""
    values = parse_numbers(text, "G" if len(spec.axes) < 2 else "PG")
    if not spec.axes:
        return scenario.replace(**{spec.key: _single(values, spec.key)})
    for axis, size in zip(spec.axes, values.shape, strict=True):
        own = OWN_AXES[axis]
        if not own.low <= size <= own.high:
            wanted = f"{own.low} to {own.high}" if own.low < own.high else own.low
            raise ScenarioError(
                f"{spec.key}: pasted {size} {own.noun}; wanted {wanted}", field=spec.key
            )
    if spec.axes == "V":
        return put(resize_distributions(scenario, values.size), spec, None, values)
    return scenario.replace(**{spec.key: values})


def _table_shape(values):
    """Rows and columns of a region: two axes as they are, fewer as one column."""
    return values.shape if values.ndim == 2 else (values.size, 1)


def _row_name(spec, prompt):
    axes = spec.axes if prompt is None else spec.axes[1:]
    return _ROWS.get(axes[:1])


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
        raise cell_error(spec, prompt, where, f"{str(cell)[:24]!r} is not a number") from None


def _why_not_counting(scenario, prompt, where):
    cell = (*region_of(prompt), *(int(i) for i in where))
    if not scenario["present"][cell[:2]]:
        return "this completion is not there; switch it on in the table of present completions"
    return "this position is padding; switch it on in the mask table first"


def _end_completions(scenario, prompt, blank):
    """Switch the mask off behind the last number of each completion."""
    number_follows = np.flip(np.logical_or.accumulate(np.flip(~blank, -1), axis=-1), -1)
    mask = scenario["mask"].copy()
    mask[region_of(prompt)] &= number_follows
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
    "paste_steps",
    "rewards_frame",
]
