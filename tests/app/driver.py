"""Drive the app without a browser: pages, tables, widgets, and the JSON of its figures."""

import json
from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]
TIMEOUT = 60


def start(link=""):
    """A fresh session that opened the start page, with a link if one is given."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    if link:
        app.query_params["s"] = link
    return settled(app.run())


def visit(app, row):
    """Go to a page of the menu, with the address as its menu link would have it."""
    return settled(app.switch_page(row.file).run())


def settled(app):
    """The app after a run; a test fails with the exception if there was one."""
    assert not app.exception, app.exception[0].message
    return app


def figures(app):
    """JSON of every figure on the page, in order."""
    return [chart.proto.spec for chart in app.get("plotly_chart")]


def data(app):
    """What the figures draw, without what only says where they stand on the screen."""
    return [json.loads(spec)["data"] for spec in figures(app)]


def table_key(app, name):
    """Key of the table of one array; there must be exactly one."""
    keys = [table.key for table in app.data_editor if table.key.startswith(f"table_{name}_")]
    assert len(keys) == 1, [table.key for table in app.data_editor]
    return keys[0]


def type_cell(app, name, row, column, text):
    """Type into one cell of an array's table, earlier edits kept, and run."""
    key = table_key(app, name)
    edits = {int(at): dict(cells) for at, cells in app.session_state[key]["edited_rows"].items()}
    edits.setdefault(row, {})[column] = text
    app.session_state[key] = {"edited_rows": edits, "added_rows": [], "deleted_rows": []}
    return settled(app.run())


def open_table(app, where, label):
    """Open the tables at the foot of a page, at one tab."""
    app.session_state[f"{where}_arrays"] = True
    app.session_state[f"{where}_tabs"] = label
    return settled(app.run())


def scenario(app):
    """The scenario that the session holds."""
    return app.session_state["store"].scenario


def messages(app):
    """Every error and warning on the page, as it reads."""
    return [box.value.replace("\\", "") for box in (*app.error, *app.warning)]


def waiting(app):
    """What the page still waits for: cells that are only missing so far."""
    return [box.value.replace("\\", "") for box in app.info]
