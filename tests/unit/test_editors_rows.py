"""Edits of a table whose rows can be added and removed: what the grid reports, put on the frame."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core import ScenarioError
from pages._ui import editors
from pages._ui.cells import text_frame
from pages._ui.editors import Source, _edited

NONE = {"edited_rows": {}, "added_rows": [], "deleted_rows": []}


def source(*rows):
    frame = pd.DataFrame(list(rows), columns=["completion", "end", "reward"], dtype=np.float64)
    return Source(name="steps", label="Steps", values=frame, read=lambda s, f: s, dynamic=True)


THREE = source([0, 1, 1], [0, 3, 0.5], [1, 2, -1])


def rows(frame):
    return [[None if np.isnan(cell) else cell for cell in row] for row in frame.to_numpy().tolist()]


def edited(table, **edits):
    return rows(_edited(table, {**NONE, **edits}))


def test_no_edits_give_the_frame_and_leave_the_source_alone():
    before = THREE.values.copy()
    assert edited(THREE) == [[0, 1, 1], [0, 3, 0.5], [1, 2, -1]]
    _edited(THREE, {**NONE, "edited_rows": {0: {"end": "0"}}, "deleted_rows": [1]})
    assert THREE.values.equals(before)


def test_edited_added_and_deleted_rows_together():
    # Rows 0 and 2 stay, row 0 with another end; the new row follows them.
    got = edited(
        THREE,
        edited_rows={0: {"end": "0"}},
        deleted_rows=[1],
        added_rows=[{"completion": "1", "end": "3", "reward": "0.25"}],
    )
    assert got == [[0, 0, 1], [1, 2, -1], [1, 3, 0.25]]


def test_row_numbers_of_edits_are_those_before_any_row_was_deleted():
    got = edited(THREE, edited_rows={2: {"reward": "7"}}, deleted_rows=[0, 1])
    assert got == [[1, 2, 7]]


def test_a_new_row_is_blank_where_nothing_was_typed_yet():
    half = edited(THREE, added_rows=[{}, {"completion": "0"}, {"end": None, "reward": ""}])
    assert half[3:] == [[None] * 3, [0, None, None], [None] * 3]


def test_all_rows_deleted_and_new_ones_added():
    assert edited(THREE, deleted_rows=[0, 1, 2]) == []
    added = [{"completion": "1", "end": "1", "reward": "1"}]
    assert edited(THREE, deleted_rows=[0, 1, 2], added_rows=added) == [[1, 1, 1]]


def test_rows_can_be_added_to_a_table_without_any():
    empty = source()
    assert edited(empty) == []
    typed = [{"completion": "0", "end": "3", "reward": "−0.5"}]
    frame = _edited(empty, {**NONE, "added_rows": typed})
    assert rows(frame) == [[0, 3, -0.5]]
    assert set(frame.dtypes) == {np.dtype(np.float64)}


def test_columns_to_read_come_along_with_a_new_row():
    typed = [{"completion": "0", "end": "0", "reward": "1", "step reads": "x"}]
    assert edited(THREE, added_rows=typed)[3] == [0, 0, 1]


def test_a_cell_left_at_its_rounded_text_keeps_its_value():
    third = source([0, 1, 1 / 3])
    assert edited(third, edited_rows={0: {"reward": "0.33333"}}) == [[0, 1, 1 / 3]]


@pytest.mark.parametrize(
    ("edits", "spot"),
    [
        ({"edited_rows": {1: {"reward": "high"}}}, "Steps, row 1, column reward: 'high' is not"),
        ({"added_rows": [{"end": "x"}]}, "Steps, row 3, column end: 'x' is not a number"),
        ({"added_rows": [{}, {"end": "1,5"}]}, "Steps, row 4, column end: '1,5' has a comma"),
    ],
)
def test_a_cell_that_is_no_number_is_named(edits, spot):
    with pytest.raises(ScenarioError) as caught:
        edited(THREE, **edits)
    assert spot in str(caught.value)


@pytest.mark.parametrize(
    "cells", [{3: {"end": "1"}}, {-1: {"end": "1"}}, {0: {"price": "1"}}], ids=str
)
def test_an_edit_of_a_cell_that_is_not_there_is_refused(cells):
    with pytest.raises(ScenarioError, match="the table has no cell in row"):
        edited(THREE, edited_rows=cells)


@given(st.data())
def test_any_mix_of_edits_is_what_a_list_of_rows_would_make_of_it(data):
    number = st.integers(-9, 9)
    row = st.tuples(number, number, number).map(list)
    start = data.draw(st.lists(row, max_size=4))
    table = source(*start)
    columns = list(table.values.columns)
    places = st.tuples(st.integers(0, max(len(start) - 1, 0)), st.sampled_from(columns))
    typed = data.draw(st.dictionaries(places, number)) if start else {}
    deleted = data.draw(st.sets(st.integers(0, len(start) - 1))) if start else set()
    added = data.draw(st.lists(st.dictionaries(st.sampled_from(columns), number), max_size=3))
    cells = {}
    for (at, column), value in typed.items():
        cells.setdefault(at, {})[column] = str(value)
        start[at][columns.index(column)] = value
    expected = [values for at, values in enumerate(start) if at not in deleted]
    expected += [[fresh.get(column) for column in columns] for fresh in added]
    got = edited(
        table,
        edited_rows=cells,
        deleted_rows=sorted(deleted),
        added_rows=[{name: str(value) for name, value in fresh.items()} for fresh in added],
    )
    assert got == expected


def test_a_table_without_rows_is_shown_with_its_columns():
    shown = text_frame(source().values)
    assert list(shown.columns) == ["completion", "end", "reward"]
    assert len(shown) == 0


def source_of(rewards):
    """A table of one reward a row, which refuses negative ones."""

    def read(scenario, frame):
        values = frame["reward"].to_numpy()
        if np.any(values < 0):
            raise ScenarioError("a reward is negative")
        return tuple(values.tolist())

    values = pd.DataFrame({"reward": np.array(rewards, dtype=float)})
    return editors.Source(name="t", label="T", values=values, read=read, dynamic=True)


def test_a_refused_cell_does_not_hold_back_the_others():
    edits = {
        "edited_rows": {0: {"reward": "-1"}, 1: {"reward": "5"}},
        "added_rows": [{"reward": "-2"}, {"reward": "7"}],
        "deleted_rows": [2],
    }
    stored, refusal = editors._accepted(None, source_of([1, 2, 3]), edits)
    assert stored == (1, 5, 7)  # row 0 as it was, row 1 edited, row 2 gone, one row added
    assert str(refusal) == "a reward is negative"


def test_text_in_one_cell_does_not_hold_back_the_others():
    edits = {
        "edited_rows": {0: {"reward": "abc"}, 2: {"reward": "0.5"}},
        "added_rows": [],
        "deleted_rows": [],
    }
    stored, refusal = editors._accepted(None, source_of([1, 2, 3]), edits)
    assert stored == (1, 2, 0.5)
    assert "not a number" in str(refusal)
