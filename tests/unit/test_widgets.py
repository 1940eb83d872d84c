"""Every widget calls back, so that a run of a widget can be told from the browser's Back.

A click that follows an edit at once is sent with the address from before that edit. The store
takes it for Back, and undoes the edit, unless a callback says that a widget was worked.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]
CALLBACKS = {
    "on_change": {
        "checkbox", "color_picker", "file_uploader", "multiselect", "number_input", "pills",
        "radio", "segmented_control", "select_slider", "selectbox", "slider", "text_area",
        "text_input", "toggle",
    },
    "on_click": {"button", "download_button"},
    "on_select": {"plotly_chart"},
}  # fmt: skip
WIDGETS = {name: callback for callback, names in CALLBACKS.items() for name in names}


def calls(path):
    """Calls of widgets in a file: name of the widget, its keywords, line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr, {word.arg: word.value for word in node.keywords}, node.lineno


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_widget_has_a_callback(path):
    for name, keywords, line in calls(path):
        if name in WIDGETS:
            assert WIDGETS[name] in keywords, f"{path.name}:{line}: st.{name} has no callback"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_reruns_without_calling_back(path):
    for name, keywords, line in calls(path):
        reruns = keywords.get("on_change") or keywords.get("on_select")
        plain = isinstance(reruns, ast.Constant) and reruns.value == "rerun"
        assert not plain, f"{path.name}:{line}: {name} reruns the page without a callback"
