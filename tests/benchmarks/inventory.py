"""Record what stands on a page of the app, and build a bare site that shows the same widgets."""

import base64
import json
import shutil
from pathlib import Path

import numpy as np

from pages._ui.menu import MENU
from tests.app import driver

HERE = Path(__file__).parent
FIELDS = {
    "title": {"text": "body"},
    "subheader": {"text": "body"},
    "caption": {"text": "body"},
    "markdown": {"text": "body"},
    "html": {"text": "body"},
    "code": {"text": "code_text"},
    "button": {"label": "label"},
    "download_button": {"label": "label"},
    "number_input": {"label": "label", "format": "format"},
    "text_input": {"label": "label"},
    "file_uploader": {"label": "label"},
    "page_link": {"label": "label", "icon": "icon"},
}


def build_site(root, cells):
    """Write a bare site to a folder: a file and a recording at the place of each page of ours.

    Parameters
    ----------
    root : Path
    cells : mapping of str to str
        Column of the cell that is edited in the first row, for each page's key.
    """
    shutil.copytree(driver.ROOT / ".streamlit", root / ".streamlit")
    app = driver.start()
    for row in MENU.values():  # the menu links to all of them, measured or not
        (root / row.file).parent.mkdir(exist_ok=True)
        (root / row.file).touch()
    for key, column in cells.items():
        app = driver.visit(app, MENU[key])
        place = root / MENU[key].file
        shutil.copy(HERE / "bare_page.py", place)
        text = json.dumps(record(app, column))
        place.with_suffix(".json").write_text(text, encoding="utf-8")


def record(app, column):
    """The page as nested items that `bare_page` draws."""
    main, sidebar, event = (app._tree[index] for index in (0, 1, 2))
    items = [*_items(event, column), *_items(main, column)]
    return [*items, {"kind": "sidebar", "inside": [_items(sidebar, column)]}]


def _items(block, column):
    items = []
    for child in block.children.values():
        if getattr(child, "type", None) == "empty":
            continue
        if not hasattr(child, "children"):
            items.append(_element(child, column))
        elif child.type == "flex_container" and _all(child, "column"):
            items.append(_columns(child, column))
        else:
            items.append(_box(child, column))
    return items


def _all(block, kind):
    return bool(block.children) and all(c.type == kind for c in block.children.values())


def _columns(block, column):
    weights = [child.proto.weight for child in block.children.values()]
    gap = "large" if block.proto.flex_container.gap_config.gap_size == 3 else "small"
    inside = [_items(child, column) for child in block.children.values()]
    return {"kind": "columns", "weights": weights, "gap": gap, "inside": inside}


def _box(block, column):
    proto, key = block.proto, _key(block.proto.id)
    if block.type == "tab_container":
        tabs = list(block.children.values())
        labels = [tab.proto.label for tab in tabs]
        return {"kind": "tabs", "labels": labels, "inside": [_items(tab, column) for tab in tabs]}
    inside = [_items(block, column)]
    if block.type == "popover":
        row = proto.popover
        return {"kind": "popover", "label": row.label, "icon": row.icon, "inside": inside}
    if block.type == "expander":
        row = block.proto
        return {"kind": "expander", "label": row.label, "open": row.expanded,
                "key": _key(row.id), "inside": inside}  # fmt: skip
    flex = proto.flex_container
    how = {"gap": {1: "small", 2: "medium", 3: "large"}.get(flex.gap_config.gap_size)}
    if flex.direction == flex.HORIZONTAL:
        bottom = flex.align == flex.ALIGN_END
        how |= {"horizontal": True, "vertical_alignment": "bottom" if bottom else "top"}
    if proto.width_config.use_content:
        how["width"] = "content"
    return {"kind": "container", "key": key, "how": how, "inside": inside}


def _key(identity):
    """The key that a widget or box was given, or None."""
    key = identity.split("-", 2)[-1]
    return None if key in ("", "None") else key


def _element(element, column):
    kind, proto = element.type, element.proto
    item = {"kind": kind, "key": _key(getattr(proto, "id", ""))}
    if kind in FIELDS:
        item |= {name: getattr(proto, field) for name, field in FIELDS[kind].items()}
        if kind == "number_input":
            number = int if proto.format == "%d" else float
            item |= {"value": number(proto.value), "step": number(proto.step)}
        if kind == "page_link":
            item["file"] = f"pages/{proto.page}.py" if proto.page else "app.py"
        return item
    if kind == "selectbox":
        chosen = element.proto.default if element.value is not None else None
        return item | {"label": proto.label, "options": list(proto.options), "index": chosen}
    if kind == "dataframe" and proto.editing_mode:
        kind = "data_editor"
    return item | READERS[kind](proto, element, column)


def _figure(proto, _element, _column):
    spec = json.loads(proto.spec)
    data = [_listed(trace) for trace in spec["data"]]
    return {"data": data, "layout": spec["layout"], "config": json.loads(proto.config)}


def _listed(trace):
    """A trace with its packed arrays as lists, and the dtypes that pack them again."""
    dtypes = {}
    trace = dict(trace)
    for name, value in trace.items():
        if isinstance(value, dict) and "bdata" in value:
            array = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
            if "shape" in value:
                array = array.reshape([int(size) for size in value["shape"].split(",")])
            trace[name], dtypes[name] = array.tolist(), value["dtype"]
    return {**trace, "dtypes": dtypes}


def _table(_proto, element, _column):
    frame = element.value
    return {"frame": frame.to_dict("split")}


def _editor(proto, element, column):
    columns = json.loads(proto.columns)
    disabled = [name for name, row in columns.items() if row.get("disabled")]
    return {"kind": "data_editor", **_table(proto, element, column), "columns": columns,
            "disabled": disabled, "cell": column}  # fmt: skip


READERS = {"plotly_chart": _figure, "dataframe": _table, "data_editor": _editor}
