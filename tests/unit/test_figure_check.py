"""Figures are built without Plotly's own check of each property; here it is made for all."""

import json

import plotly.graph_objects as go
import pytest

from grpo_core import evaluate
from pages._ui import charts, kl_charts, objective_charts
from pages._ui.examples import load_examples
from pages._ui.palette import PALETTES

EXAMPLES = load_examples()
EVALUATIONS = {key: evaluate(row.scenario) for key, row in EXAMPLES.items()}


def drawn(evaluation, palette):
    """Every figure of an example, with ghost, pin, selection and texts where there can be."""
    looks = {"palette": palette, "former": evaluation, "pinned": evaluation, "selected": (0, 0, 0)}
    for quantity in charts.QUANTITIES:
        yield charts.token_heatmap(evaluation, quantity, written=True, **looks)
        yield charts.token_heatmap(evaluation, quantity, prompts=0, compact=True, palette=palette)
    yield charts.advantage_bars(evaluation, 0, **looks)
    yield charts.group_strip(evaluation, 0, **looks)
    for sign in (1, -1):
        yield charts.surrogate_chart(evaluation, sign, **looks)
    yield charts.case_bars(evaluation, **looks)
    yield objective_charts.waterfall(evaluation, 0, **looks)
    yield kl_charts.kl_curves(evaluation, **looks)
    columns = {"a": [1.0, -1.0], "b": [0.5, -0.5]}
    yield charts.formula_bars(columns, palette=palette)


def telling(spec):
    """A specification without empty lists and tables, which Plotly's check leaves out."""
    if isinstance(spec, dict):
        inside = {key: telling(value) for key, value in spec.items()}
        return {key: value for key, value in inside.items() if value not in ({}, [], None)}
    return [telling(value) for value in spec] if isinstance(spec, list) else spec


@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
@pytest.mark.parametrize("key", EXAMPLES)
def test_plotly_takes_every_figure_and_would_send_the_same(key, palette):
    for figure in drawn(EVALUATIONS[key], palette):
        sent = json.loads(figure.to_json(validate=False))
        taken = json.loads(go.Figure(figure.to_dict()).to_json())  # a wrong property raises here
        assert telling(sent) == telling(taken)
