"""The strip of steps: where they end, what they are worth, and what is left away."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from grpo_core import Texts, evaluate
from pages._ui.palette import PALETTES
from pages._ui.step_chart import step_strip
from tests.unit.stepped import stepped

LIGHT = PALETTES["light"]


def strip(scenario, prompt=0, **looks):
    figure = step_strip(evaluate(scenario), prompt, palette=LIGHT, **looks)
    json.loads(figure.to_json(), parse_constant=pytest.fail)
    go.Figure(figure.to_dict())  # a wrong property raises here
    return figure


def bars(figure):
    """(token that it stands behind, completion) of each bar."""
    lines = [shape for shape in figure.layout.shapes if shape.type == "line"]
    assert all(line.x0 == line.x1 for line in lines)
    return [(line.x0 - 0.5, (line.y0 + line.y1) / 2) for line in lines]


def labels(figure):
    """(token, completion, text) of each reward that is written at a bar."""
    return [
        (note.x - 0.5, round(note.y + 0.49), note.text)
        for note in figure.layout.annotations
        if note.xanchor == "right" and note.yanchor == "top"
    ]


def cells(figure):
    return next(trace for trace in figure.data if trace.type == "heatmap").z


def test_a_bar_stands_behind_the_last_token_of_each_step_with_its_reward():
    figure = strip(stepped([[1, 0.25], [-1]], [[1, 3], [2]], lengths=[5, 3]))
    assert bars(figure) == [(1, 0), (3, 0), (2, 1)]
    assert labels(figure) == [(1, 0, "1"), (3, 0, "0.25"), (2, 1, "−1")]


def test_tokens_have_the_colour_of_their_step_and_none_after_the_last():
    z = cells(strip(stepped([[1, 0.25], [-1]], [[1, 3], [2]], lengths=[5, 3])))
    assert np.array_equal(
        np.float64(z),
        [[1, 1, 0.25, 0.25, np.nan], [-1, -1, -1, np.nan, np.nan]],
        equal_nan=True,
    )


def test_steps_with_one_end_share_a_bar_with_all_their_rewards():
    figure = strip(stepped([[1, 0], [1, 2, 3, 4]], [[3, 3], [0, 0, 0, 0]]))
    assert bars(figure) == [(3, 0), (0, 1)]
    assert labels(figure) == [(3, 0, "1, 0"), (0, 1, "1, 2, 3, …")]


def test_many_tokens_leave_no_room_for_rewards_but_for_bars():
    figure = strip(stepped([[1, 0]], [[10, 12]]))
    assert bars(figure) == [(10, 0), (12, 0)]
    assert labels(figure) == []


def test_more_bars_than_can_be_told_apart_are_cut():
    steps = list(range(200))
    figure = strip(stepped([[1.0] * 200] * 3, [steps] * 3))
    assert len(bars(figure)) == 400


def test_a_reduced_picture_has_no_bars():
    figure = strip(stepped([[1.0], [0.0]], [[3], [2]], lengths=[20_000, 20_000]))
    assert bars(figure) == []


EMPTY = {
    "no steps": stepped([[], []]),
    "absent": stepped([[1, 0], [0, 1]], present=[[0, 0]]),
    "empty mask": stepped([[], []], lengths=[0, 0]),
    "one completion": stepped([[[]]]),
}


@pytest.mark.parametrize("scenario", EMPTY.values(), ids=EMPTY)
def test_without_steps_the_strip_is_there_and_empty(scenario):
    figure = strip(scenario)
    assert bars(figure) == []
    assert np.isnan(np.float64(cells(figure))).all()


def test_an_absent_completion_keeps_its_row_and_has_no_bars():
    figure = strip(stepped([[1], [1], [0]], [[1], [1], [0]], present=[[1, 0, 1]]))
    assert bars(figure) == [(1, 0), (0, 2)]


def test_only_the_asked_prompt_is_drawn():
    both = stepped([[[1], [1]], [[0, 0], []]], [[[1], [1]], [[0, 1], []]])
    assert bars(strip(both, 1)) == [(0, 0), (1, 0)]


def test_tokens_read_as_their_texts():
    texts = Texts(("p",), ((("a", "+", "b", ";"),),))
    figure = strip(stepped([[1]], [[3]]).with_texts(texts))
    written = [str(text) for trace in figure.data for text in np.ravel(trace.text or [])]
    assert "+" in written


def test_the_alternative_text_says_what_range_the_rewards_have():
    figure = strip(stepped([[1, 0.25], [-1]]))
    assert "step rewards of 2 completions" in figure.layout.meta["alt"]
    assert "from −1 to 1" in figure.layout.meta["alt"]


@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_bars_are_in_the_colour_of_text_in_light_and_in_dark(palette):
    figure = step_strip(evaluate(stepped([[1]])), 0, palette=palette)
    lines = [shape for shape in figure.layout.shapes if shape.type == "line"]
    assert {line.line.color for line in lines} == {palette.text}


def test_extreme_rewards_can_be_drawn():
    top = np.finfo(float).max
    strip(stepped([[top, -top], [5e-324]]))
