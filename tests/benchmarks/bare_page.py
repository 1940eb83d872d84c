"""A bare page: the widgets of a page of ours, as recorded, with no arithmetic behind them.

`inventory.build_site` copies this file to the place of each page, a recording beside it. Every
picture moves a little with the first cell of the table, so that an edit redraws it. Texts stand
still: what our changing texts cost counts against us.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

RECORDING = Path(__file__).with_suffix(".json")


@st.cache_resource(show_spinner=False)
def recorded(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def draw(items):
    for item in items:
        if item["kind"] in BOXES:
            for box, inside in zip(BOXES[item["kind"]](item), item["inside"], strict=True):
                with box:
                    draw(inside)
        else:
            ELEMENTS[item["kind"]](item)


def frame(item):
    return pd.DataFrame(**item["frame"])


def editor(item):
    edited = st.data_editor(
        frame(item),
        key=item["key"],
        column_config=item["columns"],
        disabled=item["disabled"],
        height="content",
        placeholder="",
    )
    st.session_state["typed"] = float(edited[item["cell"]].iloc[0])


def picture(item):
    figure = go.Figure(data=[moved(trace) for trace in item["data"]], layout=item["layout"])
    st.plotly_chart(
        figure,
        key=item["key"],
        theme=None,
        config=item["config"],
        on_select=lambda: None,
        selection_mode="points",
    )


def moved(trace):
    """A trace with what it draws moved by the typed number."""
    key = "z" if "z" in trace else "x"
    dtypes = trace.get("dtypes", {})
    arrays = {name: np.array(trace[name], dtype=dtype) for name, dtype in dtypes.items()}
    if key in arrays:
        arrays[key] = arrays[key] + np.asarray(st.session_state["typed"] / 100, dtypes[key])
    return {**{name: value for name, value in trace.items() if name != "dtypes"}, **arrays}


BOXES = {
    "container": lambda i: [st.container(key=i["key"], **i["how"])],
    "columns": lambda i: st.columns(i["weights"], gap=i["gap"]),
    "popover": lambda i: [st.popover(i["label"], icon=i["icon"])],
    "tabs": lambda i: st.tabs(i["labels"]),
    "expander": lambda i: [st.expander(i["label"], expanded=i["open"], key=i["key"])],
    "sidebar": lambda i: [st.sidebar],
}
ELEMENTS = {
    "title": lambda i: st.title(i["text"], anchor=False),
    "subheader": lambda i: st.subheader(i["text"], anchor=False),
    "caption": lambda i: st.caption(i["text"]),
    "markdown": lambda i: st.markdown(i["text"]),
    "html": lambda i: st.html(i["text"]),
    "code": lambda i: st.code(i["text"], language=None, wrap_lines=True, height=160),
    "button": lambda i: st.button(i["label"], key=i["key"], type="tertiary"),
    "download_button": lambda i: st.download_button(
        i["label"], lambda: "", key=i["key"], on_click="ignore", width="stretch"
    ),
    "selectbox": lambda i: st.selectbox(i["label"], i["options"], i["index"], key=i["key"]),
    "number_input": lambda i: st.number_input(
        i["label"], value=i["value"], step=i["step"], format=i["format"], key=i["key"]
    ),
    "text_input": lambda i: st.text_input(i["label"], key=i["key"]),
    "file_uploader": lambda i: st.file_uploader(i["label"], type=["json", "npz"]),
    "page_link": lambda i: st.page_link(i["file"], label=i["label"], icon=i["icon"]),
    "data_editor": editor,
    "dataframe": lambda i: st.dataframe(frame(i), height="content"),
    "plotly_chart": picture,
}

page = recorded(str(RECORDING))
st.set_page_config(page_title="Bare", layout="wide")
draw(page)
