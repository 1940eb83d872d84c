"""Steps of completions as a table to edit, one row a step, and pasted as lists."""

import numpy as np
import pandas as pd

from grpo_core import ScenarioError, resize

from .cells import Unfinished
from .limits import check_sizes
from .paste import parse_numbers

STEP_KEYS = ("step_ends", "step_rewards")
COLUMNS = ("completion", "end", "reward")
# Which array the cell of a column belongs to.
_FIELDS = dict(zip(COLUMNS, ("step_ends", *STEP_KEYS), strict=True))


def steps_to_frame(scenario, prompt):
    """The steps of one prompt as a table to edit.

    Parameters
    ----------
    scenario : Scenario
        Without steps the table has no rows.
    prompt : int

    Returns
    -------
    DataFrame
        A row for each step of a completion that is present, by completion and then in order.
        The columns ``completion``, ``end`` and ``reward`` are float64.
    """
    ends, rewards = (_stored(scenario, key)[prompt] for key in STEP_KEYS)
    there = ~np.isnan(ends) & scenario["present"][prompt][:, None]
    columns = (np.nonzero(there)[0], ends[there], rewards[there])
    return pd.DataFrame(
        {name: values.astype(np.float64) for name, values in zip(COLUMNS, columns, strict=True)}
    )


def frame_to_steps(scenario, frame, prompt):
    """The scenario with an edited table of steps put in; the same object if none changed.

    Parameters
    ----------
    scenario : Scenario
    frame : DataFrame
        As `steps_to_frame` made it, edited. Rows may come in any order: those of one
        completion are sorted by their end, equal ones stay as they stand. Rows without any
        entry are left out.
    prompt : int

    Raises
    ------
    ScenarioError
        Names row, completion and step, and what is wanted there: an entry that is missing or
        no number, a completion that is not there, an end that is no token that counts.

    Notes
    -----
    The step arrays grow as needed, and are created with the first step. Steps of other
    prompts stay, and so do those of completions that are absent.
    """
    rows, values, texts = _entries(frame)
    dtypes = [_stored(scenario, key).dtype for key in STEP_KEYS]
    _refuse_bad_rows(scenario, prompt, rows, values, texts, dtypes[1])
    values = values[np.lexsort((values[:, 1], values[:, 0]))]  # stable
    before = steps_to_frame(scenario, prompt).to_numpy()
    if before.shape == values.shape and all(
        before[:, column].astype(dtype).tobytes() == values[:, column].astype(dtype).tobytes()
        for column, dtype in enumerate([np.dtype(int), *dtypes])
    ):
        return scenario
    completion = values[:, 0].astype(int)
    step = np.arange(len(values)) - np.searchsorted(completion, completion)
    S = max(_width(scenario), int(step.max(initial=0)) + 1)
    check_sizes({**scenario.sizes, "S": S})
    arrays = {}
    for column, key in enumerate(STEP_KEYS, start=1):
        array = _stored(scenario, key, S)
        array[prompt, scenario["present"][prompt]] = np.nan
        array[prompt, completion, step] = values[:, column]
        arrays[key] = array
    return scenario.replace(**arrays)


def paste_steps(scenario, ends_text, rewards_text, prompt=None):
    """The scenario with pasted steps in the place of those that it has.

    Parameters
    ----------
    scenario : Scenario
    ends_text, rewards_text : str
        A list for each completion, ``[[2, 5], [], [7]]``, as `parse_numbers` reads them; one
        number for each completion is one step each. Several prompts are all of them, and
        bring the number of prompts and completions with them.
    prompt : int or None
        Where one prompt's steps go, if the scenario has others.

    Raises
    ------
    ScenarioError
        Unreadable text, wrong sizes, a step that does not fit its completion.
    """
    texts = dict(zip(STEP_KEYS, (ends_text, rewards_text), strict=True))
    return _put(scenario, {key: _parsed(scenario, key, texts[key]) for key in STEP_KEYS}, prompt)


def paste_step_array(scenario, key, text, prompt=None):
    """As `paste_steps`, for one of the two arrays; the other one has to fit."""
    return _put(scenario, {key: _parsed(scenario, key, text)}, prompt)


def _stored(scenario, key, width=None):
    """A copy of a step array, `width` steps wide; blank where there is none."""
    width = _width(scenario) if width is None else width
    P, G = scenario["present"].shape
    array = scenario.arrays.get(key, np.empty((P, G, 0)))
    stored = np.full((P, G, width), np.nan, dtype=array.dtype)
    stored[..., : array.shape[2]] = array
    return stored


def _width(scenario):
    return scenario.own_sizes.get("S", 0)


def _entries(frame):
    """Rows that hold anything: their numbers, their entries (NaN if no number), and texts."""
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise ScenarioError(f"the table of steps has no column {missing[0]!r}")
    values, texts = np.full((len(frame), len(COLUMNS)), np.nan), {}
    for c, name in enumerate(COLUMNS):
        column = frame[name]
        if column.dtype.kind in "fiu":
            values[:, c] = column.to_numpy(dtype=np.float64)
            continue
        for r, cell in enumerate(column):
            if cell is None or cell is pd.NA or (isinstance(cell, str) and not cell.strip()):
                continue
            try:
                values[r, c] = float(cell)
            except (TypeError, ValueError, OverflowError):
                texts[r, c] = str(cell)
    held = ~np.isnan(values)
    for at in texts:
        held[at] = True
    rows = np.flatnonzero(np.any(held, axis=1))
    return rows, values[rows], texts


def _refuse_bad_rows(scenario, prompt, rows, values, texts, dtype):
    """Refuse the first row that is no step of the prompt, with its place in the table."""
    completion = values[:, 0]
    for name, bad, wanted in _problems(scenario, prompt, values, dtype):
        if not np.any(bad):
            continue
        at, column = int(np.argmax(bad)), COLUMNS.index(name)
        spot, where = f"row {rows[at]}", (prompt,)
        if name != "completion":
            step = int(np.sum(completion[:at] == completion[at]))
            spot += f", completion {completion[at]:g}, step {step}"
            where = (prompt, completion[at], step)
        found = texts.get((int(rows[at]), column))
        shown = repr(found[:24]) if found else f"{values[at, column]:g}".replace("nan", "blank")
        kind = Unfinished if shown == "blank" else ScenarioError
        raise kind(f"{spot}: {name} is {shown}; wanted {wanted}", field=_FIELDS[name], where=where)


def _problems(scenario, prompt, values, dtype):
    """What may be wrong with rows: (column, which rows, what is wanted there)."""
    present, valid = scenario["present"][prompt], scenario.valid[prompt]
    G, L = valid.shape
    completion, end, reward = values.T
    known, inside = _counted(completion, G), _counted(end, L)
    g = np.where(known, completion, 0).astype(int)
    t = np.where(inside, end, 0).astype(int)
    yield "completion", ~known, f"the number of a completion, from 0 to {G - 1}"
    there = "one that is there; switch it on in the table of present completions"
    yield "completion", ~present[g], there
    yield "end", ~inside, f"a token position from 0 to {L - 1}"
    yield "end", ~valid[g, t], "a token that counts; this one is padding"
    with np.errstate(over="ignore"):
        yield "reward", ~np.isfinite(reward.astype(dtype)), "a finite number"


def _counted(values, size):
    """Whole numbers from 0 to below `size`."""
    return (values >= 0) & (values < size) & (values == np.trunc(values))


def _parsed(scenario, key, text):
    """Pasted lists of one of the arrays; (P, G, S) of what was pasted."""
    try:
        values = parse_numbers(text, "PGS")
    except ScenarioError as error:
        raise ScenarioError(f"{key}: {error}", field=key) from None
    G = scenario.sizes["G"]
    if values.shape[:2] != (1, 1) or G == 1:
        return values
    if values.size != G:
        raise ScenarioError(
            f"{key}: pasted one row of {values.size} values; wanted a list for each of the "
            f"{G} completions",
            field=key,
        )
    return values.reshape(1, G, 1)


def _put(scenario, pasted, prompt):
    """Put pasted step arrays in, with as many columns as they have."""
    P, G = _common_size(pasted)
    width = max(values.shape[2] for values in pasted.values())
    whole = prompt is None or P > 1 or scenario.sizes["P"] == 1
    if whole:
        check_sizes({**scenario.sizes, "P": P, "G": G, "S": width})
        if scenario["present"].shape != (P, G):
            scenario = resize(scenario, P=P, G=G)
    elif scenario.sizes["G"] != G:
        raise ScenarioError(
            f"pasted steps of {G} completions; each prompt here has {scenario.sizes['G']}",
            field=next(iter(pasted)),
        )
    S = max(width, _width(scenario))
    check_sizes({**scenario.sizes, "S": S})
    arrays = {key: _stored(scenario, key, S) for key in STEP_KEYS}
    region = slice(None) if whole else slice(prompt, prompt + 1)
    present = scenario["present"][region, :, None]
    for key, values in pasted.items():
        values = np.pad(values, ((0, 0), (0, 0), (0, S - values.shape[2])), constant_values=np.nan)
        # A blank of an absent completion keeps what is stored, as in every table.
        stays = ~present & np.isnan(values)
        with np.errstate(over="ignore"):
            arrays[key][region] = np.where(stays, arrays[key][region], values)
    if whole and all(np.all(np.isnan(array[..., width:])) for array in arrays.values()):
        arrays = {key: array[..., :width] for key, array in arrays.items()}
    if all(
        key in scenario
        and scenario[key].shape == array.shape
        and scenario[key].tobytes() == array.tobytes()
        for key, array in arrays.items()
    ):
        return scenario
    return scenario.replace(**arrays)


def _common_size(pasted):
    """Prompts and completions of what was pasted, which both arrays have to agree on."""
    (first, one), *others = pasted.items()
    for key, values in others:
        if values.shape[:2] != one.shape[:2]:
            found, wanted = (" x ".join(map(str, a.shape[:2])) for a in (values, one))
            raise ScenarioError(
                f"{key} was pasted for {found} completions, {first} for {wanted}; paste both "
                "for the same ones",
                field=key,
            )
    return one.shape[:2]
