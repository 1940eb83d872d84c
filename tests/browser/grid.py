"""Work a Streamlit table by keyboard, as a person would.

The table is a canvas; what stands in it is known from the table of cells that it keeps for screen
readers. That table lags by 200 ms and is renewed only when the selection moves, so that each
function here moves the selection first and reads then.

Columns are named by their header, or counted from 0 with the index column, where it is shown, as
number 0 (the markers of a table with addable rows do not count). Rows count from 0.
"""

import contextlib

from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.browser.idle import wait_idle

WAIT_MS = 3000
LAG_MS = 300  # more than the cell table needs to follow
TRIES = 3
FIRST_CELL, LAST_CELL = "ControlOrMeta+Home", "ControlOrMeta+End"
OVERLAY = "#portal input, #portal textarea"
# First column of the cell table: the marker column of a table with addable rows has no cells.
CELL = "td[role=gridcell][aria-colindex='{column}'][data-testid$='-{row}']"


def editor(page, key_prefix):
    """The table whose key begins with `key_prefix`."""
    return page.locator(f"[class*='st-key-{key_prefix}']").get_by_test_id("stDataFrame")


def set_cell(page, table, row, column, value):
    """Type a value into a cell and wait for the page to have followed."""
    select_cell(page, table, row, column)
    page.keyboard.press("Enter")
    field = page.locator(OVERLAY).first
    field.wait_for(state="visible", timeout=WAIT_MS)
    field.fill(str(value))
    page.keyboard.press("Enter")
    field.wait_for(state="hidden", timeout=WAIT_MS)
    wait_idle(page)


def clear_cell(page, table, row, column):
    """Empty a cell with the Delete key."""
    select_cell(page, table, row, column)
    page.keyboard.press("Delete")
    wait_idle(page)


def toggle_cell(page, table, row, column):
    """Turn a checkbox over with the space bar."""
    select_cell(page, table, row, column)
    page.keyboard.press("Space")
    wait_idle(page)


def paste_block(page, table, row, column, block):
    """Paste rows of values, as copied from a spreadsheet, with its first cell here.

    Parameters
    ----------
    block : list of list, or str
        The values, or the text of the clipboard as it is.
    """
    if not isinstance(block, str):
        block = "\n".join("\t".join(str(value) for value in line) for line in block)
    select_cell(page, table, row, column)
    page.evaluate("text => navigator.clipboard.writeText(text)", block)
    page.keyboard.press("ControlOrMeta+V")
    wait_idle(page)


def read_cell(page, table, row, column):
    """Text of a cell: a number with all its digits, ``true`` or ``false``, nothing if empty."""
    # From a neighbour, so that the selection moves even if it stands here already.
    column = _column(page, table, column)
    _move_to(page, table, row, 1 if column > 1 else 2)
    return _move_to(page, table, row, column).inner_text()


def select_cell(page, table, row, column):
    """Select a cell, scrolled into view or not yet."""
    return _move_to(page, table, row, _column(page, table, column))


def _column(page, table, column):
    """Number of a column as the cell table counts it, from 1."""
    if isinstance(column, int):
        return column + 1
    for key in [None, FIRST_CELL, LAST_CELL]:
        if key:
            _press(page, table, [key])
            page.wait_for_timeout(LAG_MS)
        heads = _numbers_of_heads(table)
        if column in heads:
            return heads[column]
    raise LookupError(f"No column {column!r} at either end of the table; last seen: {list(heads)}.")


def _numbers_of_heads(table):
    heads = table.locator("th[role=columnheader]")
    heads.first.wait_for(state="attached")
    return dict(heads.evaluate_all("all => all.map(h => [h.textContent, Number(h.ariaColIndex)])"))


def _move_to(page, table, row, column):
    cell = table.locator(CELL.format(column=column, row=row))
    keys = [FIRST_CELL, *["ArrowDown"] * row, *["ArrowRight"] * (column - 1)]
    for _ in range(TRIES):
        wait_idle(page, quiet=0)
        _press(page, table, keys)
        with contextlib.suppress(PlaywrightTimeout):
            cell.and_(table.locator("[aria-selected=true]")).wait_for(
                state="attached", timeout=WAIT_MS
            )
            return cell
    raise LookupError(f"No cell in row {row} of column {column} (from 1) could be selected.")


def _press(page, table, keys):
    canvas = table.get_by_test_id("data-grid-canvas").first
    canvas.scroll_into_view_if_needed()
    # The table takes no selection, not even by keyboard, while the mouse was last seen elsewhere.
    corner = canvas.bounding_box()
    page.mouse.move(corner["x"] + 8, corner["y"] + 8)
    for key in keys:
        # Each time: the focus sits on a cell that is gone once the table has scrolled.
        canvas.evaluate("canvas => canvas.focus()")
        page.keyboard.press(key)
