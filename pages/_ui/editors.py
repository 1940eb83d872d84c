"""Editable tables on the screen: a stable frame under a versioned key, edits applied first.

Streamlit keeps a table's edits apart from its frame. Feeding the edited frame back loses
edits, so the frame stays as it was when the table appeared, and before anything is drawn
`apply_edits` puts the edits on it, checks the result and stores it. What cannot be stored
stays in the table with a message beside it, and the pictures keep the last good state.
"""

import hashlib
from dataclasses import dataclass

import pandas as pd
import streamlit as st
from pandas.api.types import is_bool_dtype

from grpo_core import ARRAYS, ScenarioError

from . import state, tables
from .cells import cell_text, read_cell, text_frame
from .limits import TABLE_COLUMNS
from .literal import literal


@dataclass
class Table:
    """A table that was on the screen: whose it is, its values, and the edits seen so far."""

    name: str
    prompt: int | None
    values: pd.DataFrame
    shown: pd.DataFrame
    seen: dict


def apply_edits():
    """Store the edits of every table that was on the screen in the run before."""
    for key, table in list(state.store().tables.items()):
        edits = _edits(key)
        if edits is None:
            state.store().tables.pop(key, None)  # the page was left: its edits are stored
        elif edits != table.seen:
            table.seen = edits
            _apply(key, table, edits)


def editing():
    """True if a table that was on the screen has edits which are not stored yet."""
    return any(
        edits is not None and edits != table.seen
        for table, edits in ((table, _edits(key)) for key, table in state.store().tables.items())
    )


def _edits(key):
    held = st.session_state.get(key)
    if held is None:
        return None
    return {int(row): dict(cells) for row, cells in held["edited_rows"].items()}


def _apply(key, table, edits):
    here = state.store()
    try:
        frame = table.values.copy()
        for row, cells in edits.items():
            for column, typed in cells.items():
                _set_cell(frame, table, row, column, typed)
        changed = tables.frame_to_array(here.scenario, table.name, frame, table.prompt)
    except ScenarioError as error:
        here.errors[key] = str(error)
        return
    here.errors.pop(key, None)
    state.edit(changed)


def _set_cell(frame, table, row, column, typed):
    if column not in frame.columns or not 0 <= row < len(frame):
        raise ScenarioError(f"the table has no cell in row {row}, column {column!r}")
    at = (row, frame.columns.get_loc(column))
    if is_bool_dtype(frame.dtypes.iloc[at[1]]):
        frame.iloc[at] = bool(typed)
    elif typed != cell_text(frame.iloc[at]):  # the rounded text itself is no edit
        try:
            frame.iloc[at] = read_cell(typed)
        except ScenarioError as error:
            spot = f"row {frame.index[row]}, column {column}"
            raise ScenarioError(f"{ARRAYS[table.name].label}, {spot}: {error}") from None


def array_editor(name, prompt=None, *, beside=None, labels=None):
    """Draw the editable table of one array, of one prompt or of all.

    Parameters
    ----------
    name : str
        Key in `ARRAYS`.
    prompt : int or None
    beside : DataFrame or None
        Columns to read, such as the completions' texts, drawn left of the array's own.
    labels : dict or None
        Header of a column where it is not the column's name.
    """
    here = state.store()
    columns = here.scenario.sizes.get(ARRAYS[name].axes[-1:], 0)
    if columns > TABLE_COLUMNS:
        st.caption(
            f"{ARRAYS[name].label}: {columns:,} columns are too many for a table; at most "
            f"{TABLE_COLUMNS:,} can be edited. Paste the array instead."
        )
        return
    key = table_key(name, prompt)
    if key not in here.tables or key not in st.session_state:
        values = tables.array_to_frame(here.scenario, name, prompt)
        shown = text_frame(values)
        here.tables[key] = Table(name, prompt, values, shown, {})
        here.errors.pop(key, None)
    shown = here.tables[key].shown
    fixed = [] if beside is None else list(beside.columns)
    st.data_editor(
        shown if beside is None else pd.concat([beside, shown], axis=1),
        key=key,
        disabled=fixed,
        column_config=_columns(shown, fixed, labels or {}),
        placeholder="",
        height="content" if len(shown) <= 16 else 595,
        alt=f"{ARRAYS[name].label}, editable table",
    )
    with st.container(key=f"message_{name}_{prompt}"):
        if key in here.errors:
            st.error(literal(here.errors[key]), icon=":material/error:")


def _columns(shown, fixed, labels):
    config = {"_index": st.column_config.Column(pinned=True, disabled=True)}
    wide = _width(shown)
    for column in shown.columns:
        label = labels.get(column, column)
        if is_bool_dtype(shown[column]):
            config[column] = st.column_config.CheckboxColumn(label, width=48)
        else:
            config[column] = st.column_config.TextColumn(label, width=wide, alignment="right")
    for column in fixed:
        config[column] = st.column_config.TextColumn(column)
    return config


def _width(shown):
    """Pixels of a column of numbers, the same for all: room for the longest, and for the header."""
    if len(shown.columns) == 1:
        return None
    longest = max((len(str(cell)) for cell in shown.to_numpy().flat), default=0)
    return min(max(18 + 8 * longest, 52), 96)


def table_key(name, prompt=None):
    """Key of a table's widget: it changes whenever the table has to start afresh."""
    here = state.store()
    shown = "all" if prompt is None else prompt
    return f"table_{name}_{shown}_{here.version}_{_padding_digest(name, here.scenario)}"


def _padding_digest(name, scenario):
    """Tables blank what does not count, so a change of the mask gives the others a fresh frame."""
    own = () if name in ("mask", "present") else ("mask", "present")
    cells = b"".join(scenario[key].tobytes() for key in own)
    return hashlib.blake2b(cells, digest_size=4).hexdigest()
