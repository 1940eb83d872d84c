"""From what a caller hands over to arrays, or to a sentence that names the place."""

import numpy as np
import pytest

from grpo_core import ARRAYS, ScenarioError
from grpo_core.arrays import (
    LOGP_ROUNDING,
    OWN_AXES,
    as_array,
    check_cells,
    check_own_axes,
    check_shape,
    own_sizes,
)

REWARDS, MASK, LOGP = ARRAYS["rewards"], ARRAYS["mask"], ARRAYS["logp_new"]


def refusal(value, spec=REWARDS, name=None):
    with pytest.raises(ScenarioError) as caught:
        as_array(name or spec.key, value, spec)
    assert caught.value.field == spec.key
    return str(caught.value), caught.value.where


@pytest.mark.parametrize("spec", ARRAYS.values(), ids=lambda spec: spec.key)
def test_each_row_is_complete_and_its_default_obeys_its_rule(spec):
    assert spec.label
    assert spec.help.endswith(".")
    assert spec.rule.words
    assert set(spec.axes) <= {*"PGL", *OWN_AXES}
    assert len(set(spec.axes)) == len(spec.axes)
    # Prompts, completions and tokens come in this order, and axes of its own after them.
    assert "PGL".startswith(spec.axes.rstrip("".join(OWN_AXES)))
    assert spec.kind in ("float", "bool")
    assert np.all(spec.rule.holds(np.array(spec.default)))


def test_lists_become_double_and_float32_stays():
    assert as_array("r", [[1, 0]], REWARDS).dtype == np.float64
    assert as_array("r", np.ones((1, 2), np.float16), REWARDS).dtype == np.float64
    assert as_array("r", np.ones((1, 2), np.float32), REWARDS).dtype == np.float32
    assert as_array("r", np.ones((1, 2), ">f8"), REWARDS).dtype == np.float64


def test_none_is_a_missing_value():
    np.testing.assert_array_equal(as_array("r", [[1, None]], REWARDS), [[1, np.nan]])


def test_result_is_a_copy():
    for dtype in (np.float32, np.float64):
        given = np.ones((1, 2), dtype)
        assert not np.shares_memory(as_array("r", given, REWARDS), given)


@pytest.mark.parametrize(
    "mask", [[[[1, 0]]], [[[True, False]]], np.array([[[1.0, 0.0]]], np.float32)]
)
def test_mask_may_be_numbers(mask):
    np.testing.assert_array_equal(as_array("m", mask, MASK), [[[True, False]]], strict=True)


@pytest.mark.parametrize(("bad", "shown"), [(2, "2.0"), (0.5, "0.5"), (None, "nan")])
def test_mask_other_than_0_and_1_is_named(bad, shown):
    message, where = refusal([[[1, 1], [1, bad]]], MASK)
    assert message == f"mask at prompt 0, completion 1, token 1 is {shown}; wanted true or false"
    assert where == (0, 1, 1)


@pytest.mark.parametrize(
    ("bad", "shown"),
    [
        ("a", "'a'"),
        ("1.5", "'1.5'"),
        (b"1", "b'1'"),
        (1j, "1j"),
        ({}, "{}"),
        (10**400, "1000"),
        ("x" * 10_000, "'xxxx"),
    ],
)
def test_a_cell_that_is_no_number_is_named(bad, shown):
    for good in (1.0, None):  # a None makes NumPy try harder: "1.5" must not slip through
        message, where = refusal([[good, 2], [3, bad]])
        assert message.startswith(f"rewards at prompt 1, completion 1 is {shown}")
        assert message.endswith("; wanted a finite number, or blank for a missing score")
        assert len(message) < 200
        assert where == (1, 1)


def test_an_array_of_text_is_refused_too():
    message, _ = refusal(np.array([["1", "2"]]))
    assert message.startswith("rewards at prompt 0, completion 0 is ")
    refusal(np.array([[1j]]))


def test_text_or_a_mapping_instead_of_an_array_is_shown():
    assert refusal("1 2 3")[0].startswith("rewards is '1 2 3'; wanted")
    assert refusal({"a": 1})[0].startswith("rewards is {'a': 1}; wanted")


@pytest.mark.parametrize(
    ("ragged", "message", "where"),
    [
        ([[1, 2], [3]], "rewards: prompt 1 has 1 values; expected 2 like the first row", (1,)),
        ([[1], 2], "rewards: prompt 1 has a single value; expected 1 like the first row", (1,)),
        (
            [1, [2]],
            "rewards: prompt 1 has 1 values; expected a single value like the first row",
            (1,),
        ),
        ([[], [1]], "rewards: prompt 1 has 1 values; expected 0 like the first row", (1,)),
    ],
)
def test_ragged_rows_are_named(ragged, message, where):
    assert refusal(ragged) == (message, where)


def test_ragged_tokens_are_named():
    message, where = refusal([[[-1, -1], [-1]]], LOGP)
    assert message == "logp_new: prompt 0, completion 1 has 1 values; expected 2 like the first row"
    assert where == (0, 1)


def test_rows_may_be_arrays_and_cells_scalars_of_numpy():
    np.testing.assert_array_equal(as_array("r", [np.ones(2), (1, 1)], REWARDS), np.ones((2, 2)))
    np.testing.assert_array_equal(
        as_array("r", [[np.array(1.0), np.float32(2)]], REWARDS), [[1, 2]]
    )


@pytest.mark.parametrize("depth", [3, 40, 100, 5000])
def test_deep_nesting_is_refused_in_words(depth):
    value = 1.0
    for _ in range(depth):
        value = [value]
    message, _ = refusal(value)
    assert len(message) < 300


def test_wrong_number_of_axes_says_which_are_wanted():
    assert refusal([1, 2])[0] == "rewards has 1 axes, shape (2,); expected 2 axes (P, G)"


def test_the_callers_name_stands_in_the_message():
    assert refusal([["a"]], LOGP, name="old_logp")[0].startswith(
        "old_logp at prompt 0, completion 0"
    )


def test_shape_error_names_both_shapes():
    with pytest.raises(ScenarioError, match=r"logp has shape \(2, 1\); expected \(2, 2\) like m"):
        check_shape("logp", np.ones((2, 1)), (2, 2), "mask", LOGP)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e-3])
def test_log_probability_that_is_none_is_named(bad):
    values = np.full((1, 2, 2), -1.0)
    values[0, 1, 0] = bad
    with pytest.raises(ScenarioError, match=r"prompt 0, completion 1, token 0 is .*; wanted a "):
        check_cells("logp_new", values, LOGP, np.ones(values.shape, bool))
    check_cells("logp_new", values, LOGP, values < 0)  # where it does not count


def test_log_probability_may_be_minus_infinity_or_above_0_by_rounding():
    values = np.array([[[-np.inf, 0.0, LOGP_ROUNDING / 2, -1e308]]])
    check_cells("logp_new", values, LOGP, np.ones(values.shape, bool))


@pytest.mark.parametrize(
    ("key", "good", "bad", "words"),
    [
        ("step_ends", [0.0, 3.0, 2.0**40, np.nan], [-1.0, 0.5, np.inf], "a token position"),
        ("step_rewards", [-1e308, 0.0, np.nan], [np.inf, -np.inf], "a finite number, or blank"),
        ("term_values", [-1e308, 0.0, np.nan], [np.inf, -np.inf], "blank where the term does not"),
        ("token_rewards", [-1e308, 0.0], [np.nan, np.inf], "a finite number"),
        ("token_advantages", [-1e308, 0.0], [np.nan, np.inf], "a finite number"),
        ("logp_sampler", [-1e308, 0.0, -np.inf, np.nan], [1e-3, np.inf], "at most 0, -inf, or bl"),
        ("sampler_weights", [0.0, 1e308], [-1e-9, np.nan, np.inf], "a finite number of at least 0"),
        ("entropy", [0.0, 11.9], [-1e-9, np.nan, np.inf], "a finite number of at least 0"),
        ("token_ids", [0.0, 151643.0, 2.0**24], [-1.0, 0.5, 2.0**24 + 2, np.nan], "id of a token"),
    ],
)
def test_cells_of_steps_terms_and_tokens(key, good, bad, words):
    spec = ARRAYS[key]
    assert spec.rule.holds(np.array(good)).all()
    assert not spec.rule.holds(np.array(bad)).any()
    assert words in spec.rule.words
    last = {"S": "step 0", "K": "term 0", "L": "token 0"}[spec.axes[-1]]
    for value in bad:
        with pytest.raises(ScenarioError, match=f"{key} at prompt 0, completion 1, {last} is"):
            check_cells(key, np.array([[[good[0]], [value]]]), spec, np.ones((1, 2, 1), bool))


def test_truncated_is_0_or_1():
    rule = ARRAYS["truncated"].rule
    assert rule.holds(np.array([0.0, 1.0])).all()
    assert not rule.holds(np.array([0.5, -1.0, 2.0, np.nan, np.inf])).any()
    with pytest.raises(ScenarioError, match="truncated at prompt 0, completion 1 is 2.0; wanted 0"):
        check_cells("truncated", np.array([[1.0, 2.0]]), ARRAYS["truncated"], np.ones((1, 2), bool))


def test_arrays_agree_on_the_axes_of_their_own():
    arrays = {
        "step_ends": np.zeros((1, 2, 3)),
        "step_rewards": np.zeros((1, 2, 3)),
        "term_values": np.zeros((1, 2, 5)),
        "dist_new": np.ones(4),
    }
    check_own_axes(arrays)
    assert own_sizes(arrays) == {"S": 3, "K": 5, "V": 4}
    arrays["step_rewards"] = np.zeros((1, 2, 4))
    with pytest.raises(ScenarioError, match="step_rewards has 4 steps; expected 3 like step_ends"):
        check_own_axes(arrays)


@pytest.mark.parametrize(
    ("key", "size", "words"),
    [
        ("term_values", 0, "term_values has 0 terms; wanted 1 to 16"),
        ("term_values", 17, "term_values has 17 terms; wanted 1 to 16"),
        ("step_ends", 257, "step_ends has 257 steps; wanted 1 to 256"),
    ],
)
def test_axes_of_their_own_have_a_length_that_can_be_used(key, size, words):
    with pytest.raises(ScenarioError, match=words):
        check_own_axes({key: np.zeros((1, 2, size))})
