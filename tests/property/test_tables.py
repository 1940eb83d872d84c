"""Laws of tables and paste that hold for every scenario."""

import json

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_array_equal

from grpo_core import ScenarioError, build_scenario, evaluate, same_scenario
from pages._ui import tables
from pages._ui.grid import build_grid
from pages._ui.quantities import QUANTITIES
from tests.property import drawn

shapes = arrays.array_shapes(min_dims=3, max_dims=3, max_side=4)
finite = st.floats(-1e9, 1e9)


@st.composite
def scenarios(draw):
    """Any masks, absent completions, missing scores, and what not in padding."""
    shape = draw(shapes)
    mask = draw(arrays.arrays(bool, shape))
    present = draw(arrays.arrays(bool, shape[:2]))
    valid = mask & present[..., None]
    width = draw(st.sampled_from([np.float32, np.float64]))

    def logp():
        good = draw(arrays.arrays(width, shape, elements=st.floats(-50, 0, width=32)))
        junk = draw(st.sampled_from([np.nan, np.inf, 7.0]))
        return np.where(valid, good, width(junk))

    scores = st.floats(-9, 9, width=32) | st.just(np.nan)
    held = draw(st.booleans())
    terms = draw(drawn.terms(["term_values"])) if held else ()
    values = (
        draw(arrays.arrays(width, (*shape[:2], len(terms)), elements=scores)) if terms else None
    )
    ends, given = draw(drawn.steps(mask, present, finite)) if held else (None, None)
    return build_scenario(
        terms=terms,
        term_values=values,
        step_ends=ends,
        step_rewards=given,
        rewards=draw(arrays.arrays(width, shape[:2], elements=scores)),
        logp_new=logp(),
        logp_old=logp(),
        logp_ref=logp(),
        mask=mask,
        present=present,
    )


def regions(scenario):
    """Every table that a page can draw: (key, prompt)."""
    for key in ("rewards", "present"):
        yield key, None
    own = [key for key in ("step_ends", "step_rewards", "term_values") if key in scenario]
    for key in ("rewards", "present", "logp_new", "logp_old", "logp_ref", "mask", *own):
        for prompt in range(scenario.sizes["P"]):
            yield key, prompt


@given(scenarios())
def test_a_table_put_back_unchanged_is_the_same_scenario(scenario):
    for key, prompt in regions(scenario):
        frame = tables.array_to_frame(scenario, key, prompt)
        assert tables.frame_to_array(scenario, key, frame, prompt) is scenario


@given(scenarios())
def test_a_table_that_went_through_objects_and_text_loses_nothing(scenario):
    for key, prompt in regions(scenario):
        frame = tables.array_to_frame(scenario, key, prompt)
        if key not in ("mask", "present"):
            frame = frame.map(lambda value: None if np.isnan(value) else repr(value))
        assert same_scenario(
            tables.frame_to_array(scenario, key, frame.astype(object), prompt), scenario
        )


@given(scenarios(), st.data())
def test_an_edit_of_one_cell_changes_only_that_cell(scenario, data):
    prompt = data.draw(st.integers(0, scenario.sizes["P"] - 1))
    cells = np.argwhere(scenario.valid[prompt])
    assume(len(cells))
    g, t = cells[data.draw(st.integers(0, len(cells) - 1))].tolist()
    frame = tables.array_to_frame(scenario, "logp_ref", prompt)
    frame.iloc[g, t] = -0.5
    changed = tables.frame_to_array(scenario, "logp_ref", frame, prompt)
    expected = scenario["logp_ref"].copy()
    expected[prompt, g, t] = -0.5
    assert_array_equal(changed["logp_ref"], expected)
    for key in scenario.arrays.keys() - {"logp_ref"}:
        assert_array_equal(changed[key], scenario[key], strict=True)


@given(arrays.arrays(np.float64, arrays.array_shapes(min_dims=1, max_dims=3, max_side=4),
                     elements=finite | st.just(np.nan) | st.just(-np.inf)))  # fmt: skip
def test_lists_json_and_code_are_read_back_bit_for_bit(values):
    axes = "PGL"[: values.ndim] if values.ndim > 1 else "G"
    texts = [tables.array_to_code(values), repr(values.tolist()), json.dumps(values.tolist())]
    for text in texts:
        assert_array_equal(tables.parse_numbers(text, axes), values, strict=True)


@given(st.lists(st.lists(finite, min_size=2, max_size=2), min_size=2, max_size=5))
def test_a_spreadsheet_block_is_read_back(rows):
    for separator in ("\t", ";", " ", ", "):
        text = "\n".join(separator.join(map(repr, row)) for row in rows)
        assert_array_equal(tables.parse_numbers(text, "PG"), rows)


@given(st.lists(st.sampled_from([0.5, 1.5, 2.25, 12.5]), min_size=2, max_size=4),
       st.sampled_from(["\t", "; ", " ", "\n", ", "]))  # fmt: skip
def test_a_decimal_comma_is_read_as_one_or_refused_but_never_dropped(numbers, separator):
    text = separator.join(str(number).replace(".", ",") for number in numbers)
    try:
        read = tables.parse_numbers(text, "PG")
    except ScenarioError:
        return
    halves = [[int(part) for part in str(number).split(".")] for number in numbers]
    assert read.tolist() in ([numbers], halves)


@given(st.text(max_size=60) | st.text("[](),;.-+ \t\n0123456789eNa", max_size=40),
       st.sampled_from(["G", "GL", "PG", "PGL", "PGS", "PGK"]))  # fmt: skip
def test_any_text_is_read_or_refused_in_one_sentence(text, axes):
    try:
        values = tables.parse_numbers(text, axes)
    except ScenarioError as error:
        message = str(error)
    else:
        assert values.dtype == np.float64
        assert values.ndim == len(axes)
        return
    assert message.strip()
    assert "\n" not in message


@given(scenarios())
def test_a_grid_keeps_the_largest_magnitude_and_blanks_all_padding(scenario):
    evaluation = evaluate(scenario)
    grid = build_grid(evaluation, QUANTITIES["gradient"], prompts=range(scenario.sizes["P"]))
    assert_array_equal(np.isnan(grid.values), ~scenario.valid.reshape(grid.values.shape))
    assert np.max(np.abs(evaluation.gradient)) == np.nanmax(np.abs(grid.values), initial=0)
