"""Editable tables on the screen: a stable frame under a versioned key, edits applied first.

Streamlit keeps a table's edits apart from its frame. Feeding the edited frame back loses
edits, so the frame stays as it was when the table appeared, and before anything is drawn
`apply_edits` puts the edits on it, checks the result and stores it. What cannot be stored
stays in the table with a message beside it, and the pictures keep the last good state.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import streamlit as st
from pandas.api.types import is_bool_dtype

from grpo_core import ARRAYS, ScenarioError

from . import state, tables
from .cells import Unfinished, cell_text, read_cell, text_frame
from .limits import TABLE_COLUMNS
from .literal import literal


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a table edits: its name, its frame, and how an edited frame enters a scenario.

    ``name`` tells the tables of a page apart; it stays when the table starts afresh.

    ``values`` is the frame in full precision; ``read(scenario, frame)`` gives the edited
    scenario or a `ScenarioError`. With ``dynamic`` rows can be added and removed.
    """

    name: str
    label: str
    values: pd.DataFrame
    read: Callable
    dynamic: bool = False


@dataclass
class Table:
    """A table that was on the screen: what it edits, as text, and the edits seen so far."""

    source: Source
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


_NO_EDITS = {"edited_rows": {}, "added_rows": [], "deleted_rows": []}


def _edits(key):
    held = st.session_state.get(key)
    if held is None:
        return None
    return {
        "edited_rows": {int(row): dict(cells) for row, cells in held["edited_rows"].items()},
        "added_rows": [dict(cells) for cells in held["added_rows"]],
        "deleted_rows": sorted(held["deleted_rows"]),
    }


def _apply(key, table, edits):
    """Store what can be stored; what cannot keeps its text, with the first reason beside it."""
    here = state.store()
    changed, refusal = _accepted(here.scenario, table.source, edits)
    here.errors.pop(key, None)
    if refusal is not None:
        here.errors[key] = refusal
    if changed is not here.scenario:
        state.edit(changed)


_SINGLY = 60  # changes that are tried one by one where they are refused together


def _accepted(scenario, source, edits):
    """The scenario with as many of the edits as hold together, and the first refusal or None."""
    try:
        return source.read(scenario, _edited(source, edits)), None
    except ScenarioError as error:
        refusal, units = error, _units(edits)
    if not 1 < len(units) <= _SINGLY:
        return scenario, refusal
    held, best = _NO_EDITS, scenario
    for unit in units:
        wider = _together(held, unit)
        try:
            best = source.read(scenario, _edited(source, wider))
        except ScenarioError:
            continue
        held = wider
    return best, refusal


def _units(edits):
    """Edits one by one: the removed rows together, each changed cell, each added row."""
    removed = [{"deleted_rows": edits["deleted_rows"]}] if edits["deleted_rows"] else []
    cells = [
        {"edited_rows": {row: {column: typed}}}
        for row, changed in edits["edited_rows"].items()
        for column, typed in changed.items()
    ]
    return [*removed, *cells, *({"added_rows": [row]} for row in edits["added_rows"])]


def _together(edits, unit):
    cells = {row: dict(changed) for row, changed in edits["edited_rows"].items()}
    for row, changed in unit.get("edited_rows", {}).items():
        cells[row] = {**cells.get(row, {}), **changed}
    return {
        "edited_rows": cells,
        "added_rows": [*edits["added_rows"], *unit.get("added_rows", [])],
        "deleted_rows": unit.get("deleted_rows", edits["deleted_rows"]),
    }


def _edited(source, edits):
    """The table's frame with the edits in it; rows are removed last, as their numbers say."""
    frame, deleted = source.values.copy(), set(edits["deleted_rows"])
    kept = [row for row in range(len(frame)) if row not in deleted]
    for row, cells in edits["edited_rows"].items():
        if row in deleted:
            continue
        now = sum(each < row for each in kept) if source.dynamic else None
        for column, typed in cells.items():
            _set_cell(frame, source, row, column, typed, now)
    frame = frame.iloc[kept]
    if not edits["added_rows"]:
        return frame
    added = source.values.iloc[:0].reindex(range(len(edits["added_rows"])))
    for row, cells in enumerate(edits["added_rows"]):
        for column, typed in cells.items():
            if column in added.columns:  # columns to read come along, empty
                _set_cell(added, source, row, column, typed, len(kept) + row)
    return pd.concat([frame, added], ignore_index=True) if len(frame) else added


def _set_cell(frame, source, row, column, typed, number=None):
    if column not in frame.columns or not 0 <= row < len(frame):
        raise ScenarioError(f"the table has no cell in row {row}, column {column!r}")
    at = (row, frame.columns.get_loc(column))
    if is_bool_dtype(frame.dtypes.iloc[at[1]]):
        frame.iloc[at] = bool(typed)
    elif typed != cell_text(frame.iloc[at]):  # the rounded text itself is no edit
        try:
            frame.iloc[at] = read_cell(typed)
        except ScenarioError as error:
            spot = f"row {frame.index[row] if number is None else number}, column {column}"
            raise ScenarioError(f"{source.label}, {spot}: {error}") from None


def _as_it_is(scenario):
    return scenario


def array_editor(name, prompt=None, *, beside=None, labels=None, of=_as_it_is):
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
    of : callable
        Puts into a scenario what the table starts from, where the array is not there.
    """
    scenario, spec = of(state.store().scenario), ARRAYS[name]
    columns = {**scenario.sizes, **scenario.own_sizes}.get(spec.axes[-1:], 0)
    if columns > TABLE_COLUMNS:
        st.caption(
            f"{spec.label}: {columns:,} columns are too many for a table; at most "
            f"{TABLE_COLUMNS:,} can be edited. Paste the array instead."
        )
        return

    def read(given, frame):
        whole = of(given)
        changed = tables.frame_to_array(whole, name, frame, prompt)
        return given if changed is whole else changed

    def source():
        return Source(
            name=f"{name}_{prompt}",
            label=spec.label,
            values=tables.array_to_frame(scenario, name, prompt),
            read=read,
        )

    editor(table_key(name, prompt), source, beside=beside, labels=labels)


def editor(key, source, *, beside=None, labels=None, after=False):
    """Draw an editable table; its source is only asked for when the table starts afresh.

    Parameters
    ----------
    key : str
        See `table_key`.
    source : callable
        Gives the `Source`.
    beside : DataFrame or None
        Columns to read, drawn left of the table's own, or right of them with ``after``.
    labels : dict or None
        Header of a column where it is not the column's name.
    """
    here = state.store()
    if key not in here.tables or key not in st.session_state:
        opened = source()
        here.tables[key] = Table(opened, text_frame(opened.values), _NO_EDITS)
        here.errors.pop(key, None)
    table = here.tables[key]
    fixed = [] if beside is None else list(beside.columns)
    st.data_editor(
        _laid_out(table.shown, beside, after),
        key=key,
        disabled=fixed,
        column_config=_columns(table, fixed, labels or {}),
        num_rows="dynamic" if table.source.dynamic else "fixed",
        placeholder="",
        height="content" if _rows(table) <= 16 else 595,
        alt=f"{table.source.label}, editable table",
    )
    with st.container(key=f"message_{table.source.name}"):
        refusal = here.errors.get(key)
        if isinstance(refusal, Unfinished):
            st.info(literal(str(refusal)), icon=":material/edit:")
        elif refusal is not None:
            st.error(literal(str(refusal)), icon=":material/error:")


def _laid_out(shown, beside, after):
    if beside is None:
        return shown
    return pd.concat([shown, beside] if after else [beside, shown], axis=1)


def _rows(table):
    """Rows that the table has on the screen."""
    edits = table.seen
    return len(table.shown) + len(edits["added_rows"]) - len(edits["deleted_rows"])


def _columns(table, fixed, labels):
    shown = table.shown
    rows = None if table.source.dynamic else st.column_config.Column(pinned=True, disabled=True)
    config = {"_index": rows}
    wide = _width(shown, labels)
    for column in shown.columns:
        label = labels.get(column, column)
        if is_bool_dtype(shown[column]):
            config[column] = st.column_config.CheckboxColumn(label, width=48)
        else:
            config[column] = st.column_config.TextColumn(label, width=wide, alignment="right")
    for column in fixed:
        config[column] = st.column_config.TextColumn(column)
    return config


def _width(shown, labels):
    """Pixels of a column of numbers, the same for all: room for the longest, and for the header."""
    if len(shown.columns) == 1:
        return None
    longest = max((len(str(cell)) for cell in shown.to_numpy().flat), default=0)
    header = max(len(str(labels.get(column, column))) for column in shown.columns)
    words = 26 + 7 * header if header > 3 else 0  # with the pencil of an editable column
    return min(max(18 + 8 * longest, words, 52), 140 if words else 96)


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
