"""Whether a figure can be drawn: what Plotly's own check and a browser would refuse."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest


def check_drawable(chart):
    """Known properties, strict JSON, axes of two finite ends, markers and bars of finite numbers.

    Lines may have gaps. No text says "nan".
    """
    go.Figure(chart.to_dict())  # checks every property
    sent = json.loads(chart.to_json(), parse_constant=pytest.fail)
    for name, axis in sent["layout"].items():
        if name.startswith(("xaxis", "yaxis")):
            low, high = axis["range"]
            assert np.isfinite([low, high, high - low]).all(), name
            assert low != high, name
    for trace in chart.data:
        for coordinate in ("x", "y"):
            values = np.asarray(getattr(trace, coordinate), dtype=float)
            assert np.isfinite(values).all() or trace.mode == "lines", (trace.name, coordinate)
        for name in ("text", "hovertext", "customdata"):
            texts = np.ravel(getattr(trace, name, None) or "").tolist()
            assert not [text for text in texts if str(text).lower() == "nan"], (trace.name, name)
    assert "nan" not in chart.layout.meta["alt"].lower().split()
