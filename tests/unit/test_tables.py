"""Tables and paste: what is typed arrives, what is doubtful is refused with its place."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from grpo_core import (
    ARRAYS,
    Choice,
    Conventions,
    ScenarioError,
    Texts,
    build_scenario,
    evaluate,
    same_scenario,
)
from grpo_core.arrays import OWN_AXES
from grpo_core.terms import Term
from pages._ui import tables

NAN = np.nan


def scenario(**changes):
    """Two prompts, two completions, three tokens; completion 1 of prompt 0 has two tokens."""
    arrays = {
        "rewards": [[1.0, 0.0], [0.25, NAN]],
        "logp_new": -np.arange(1.0, 13.0).reshape(2, 2, 3) / 8,
        "logp_old": np.full((2, 2, 3), -1.0),
        "mask": [[[1, 1, 1], [1, 1, 0]], [[1, 1, 1], [1, 1, 1]]],
    }
    return build_scenario(**{**arrays, **changes})


def edited(key, prompt, row, column, value, start=None):
    start = start or scenario()
    frame = tables.array_to_frame(start, key, prompt).astype(object)
    frame.loc[row, column] = value
    return tables.frame_to_array(start, key, frame, prompt)


def test_padding_is_blank_and_positions_are_named_from_zero():
    frame = tables.array_to_frame(scenario(), "logp_new", 0)
    assert list(frame.columns) == ["0", "1", "2"]
    assert list(frame.index) == ["0", "1"]
    assert frame.index.name == "completion"
    assert_array_equal(frame.to_numpy(), [[-0.125, -0.25, -0.375], [-0.5, -0.625, NAN]])


def test_rewards_of_one_prompt_are_a_column_and_of_all_a_table():
    assert tables.array_to_frame(scenario(), "rewards", 1)["rewards"].tolist()[0] == 0.25
    whole = tables.array_to_frame(scenario(), "rewards")
    assert whole.index.name == "prompt"
    assert_array_equal(whole.to_numpy(), [[1.0, 0.0], [0.25, NAN]])


def test_flags_are_a_table_of_flags():
    frame = tables.array_to_frame(scenario(), "mask", 0)
    assert set(frame.dtypes) == {np.dtype(bool)}
    changed = edited("mask", 0, "0", "2", False)
    assert changed["mask"][0].tolist() == [[True, True, False], [True, True, False]]


def test_an_edit_changes_its_cell_and_nothing_else():
    start, changed = scenario(), edited("logp_new", 1, "0", "2", -0.75)
    expected = start["logp_new"].copy()
    expected[1, 0, 2] = -0.75
    assert_array_equal(changed["logp_new"], expected)


def test_an_unedited_table_is_the_same_scenario():
    start = scenario()
    frame = tables.array_to_frame(start, "rewards")
    assert tables.frame_to_array(start, "rewards", frame) is start


def test_a_blank_reward_is_a_missing_score():
    assert np.isnan(edited("rewards", 0, "1", "rewards", None)["rewards"][0, 1])


@pytest.mark.parametrize(
    ("key", "row", "column", "value", "message", "where"),
    [
        ("rewards", "1", "rewards", np.inf,
         "rewards, prompt 0, completion 1: inf; wanted a finite number", (0, 1)),
        ("rewards", "1", "rewards", "high",
         "rewards, prompt 0, completion 1: 'high' is not a number", (0, 1)),
        ("logp_new", "0", "2", 0.5,
         "logp_new, prompt 0, completion 0, token 2: 0.5; wanted a log-probability", (0, 0, 2)),
        ("logp_new", "0", "2", None,
         "logp_new, prompt 0, completion 0, token 2: blank; wanted a log-prob", (0, 0, 2)),
        ("logp_new", "1", "2", -1.0,
         "logp_new, prompt 0, completion 1, token 2: this position is padding", (0, 1, 2)),
    ],
)  # fmt: skip
def test_a_bad_cell_is_named_with_what_is_wanted(key, row, column, value, message, where):
    with pytest.raises(ScenarioError) as caught:
        edited(key, 0, row, column, value)
    assert str(caught.value).startswith(message)
    assert (caught.value.field, caught.value.where) == (key, where)


def test_a_value_for_an_absent_completion_says_how_to_bring_it_back():
    start = scenario(present=[[True, True], [True, False]])
    assert np.isnan(tables.array_to_frame(start, "rewards").loc["1", "1"])
    with pytest.raises(ScenarioError, match="switch it on in the table of present completions"):
        edited("rewards", 1, "1", "rewards", 1.0, start)


def test_a_table_of_another_size_is_refused():
    frame = tables.array_to_frame(scenario(), "rewards").iloc[:1]
    with pytest.raises(ScenarioError, match="change the size first"):
        tables.frame_to_array(scenario(), "rewards", frame)


def test_what_is_stored_in_padding_outlives_the_mask():
    off = edited("mask", 0, "0", "2", False)
    kept = edited("logp_new", 0, "0", "0", -3.0, off)
    back = edited("mask", 0, "0", "2", True, kept)
    assert back["logp_new"][0, 0].tolist() == [-3.0, -0.25, -0.375]


def test_a_position_switched_on_that_never_held_a_number_gets_the_default():
    logp = scenario()["logp_new"].copy()
    logp[0, 1, 2] = NAN
    back = edited("mask", 0, "1", "2", True, scenario(logp_new=logp))
    assert back["logp_new"][0, 1, 2] == -1.0


def test_float32_arrays_stay_float32():
    start = scenario(rewards=np.float32([[1, 0], [0.1, 0]]))
    frame = tables.array_to_frame(start, "rewards")
    assert tables.frame_to_array(start, "rewards", frame) is start
    assert edited("rewards", 0, "0", "rewards", 0.3, start)["rewards"].dtype == np.float32
    with pytest.raises(ScenarioError, match="completion 0: 1e\\+300; wanted a finite number"):
        edited("rewards", 0, "0", "rewards", 1e300, start)


def test_completions_stand_beside_their_rewards_and_do_not_disturb_them():
    start = scenario(texts=Texts(("1+1=", "2"), ((("2", "\n"), ("<b>", " x")), ((), ()))))
    frame = tables.rewards_frame(start, 0)
    assert frame["completion text"].tolist() == ["2↵", "<b> x"]
    assert tables.frame_to_array(start, "rewards", frame, 0) is start
    assert list(tables.rewards_frame(scenario(), 0).columns) == ["rewards"]


def test_group_table_counts_scores_and_names_ties():
    table = tables.group_table(evaluate(scenario()), prompts=[1, 0])
    assert list(table.index) == ["1", "0"]
    assert table["scored"].tolist() == [1, 2]
    assert table["mean"].tolist() == [0.25, 0.5]
    assert table["tied"].tolist() == [False, False]


def test_formulas_are_compared_on_the_same_rewards():
    # rewards 1 0 0 1: mean 1/2, population std 1/2, sample std sqrt(1/3)
    formulas = {
        "population": Conventions.of(advantage=("mean_std", {"eps": 0.0})),
        "sample": Conventions.of(advantage=("mean_std", {"ddof": 1, "eps": 0.0})),
    }
    compared = tables.compare_formulas([1, 0, 0, 1], formulas)
    frame = tables.comparison_frame([1, 0, 0, 1], compared)
    assert list(frame.columns) == ["reward", "population", "sample"]
    assert frame["population"].tolist() == [1.0, -1.0, -1.0, 1.0]
    assert frame["sample"].tolist() == pytest.approx([s * 3**0.5 / 2 for s in (1, -1, -1, 1)])


@pytest.mark.parametrize(
    ("text", "axes", "expected"),
    [
        ("1 0 0 1", "G", [1, 0, 0, 1]),
        ("1,0,0,1", "G", [1, 0, 0, 1]),
        ("1, 0.5, 0", "G", [1, 0.5, 0]),
        ("1; 0; .5", "G", [1, 0, 0.5]),
        ("1\n0\n1\n", "G", [1, 0, 1]),
        ("1\n0\n1\n", "PG", [[1, 0, 1]]),
        ("−1 +2e-3", "G", [-1, 0.002]),
        ("[1, None, true, NaN]", "G", [1, NAN, 1, NAN]),
        ("[null, false]", "G", [NAN, 0]),
        ("(1, 0)", "PG", [[1, 0]]),
        ("[[1, 0], [0, 1]]", "PG", [[1, 0], [0, 1]]),
        ("[[1. 0.]\n [0. 1.]]", "PG", [[1, 0], [0, 1]]),
        ("array([[1., nan],\n       [0., 1.]], dtype=float32)", "PG", [[1, NAN], [0, 1]]),
        ("np.array([1, -np.inf])", "G", [1, -np.inf]),
        ("tensor([[-0.5, -inf]], device='cuda:0', grad_fn=<X>)", "PG", [[-0.5, -np.inf]]),
        ("1\t0\n0\t1", "PG", [[1, 0], [0, 1]]),
        ("1\t\n\t1", "PG", [[1, NAN], [NAN, 1]]),
        ("1,5\t-0,25", "G", [1.5, -0.25]),
        ("1;2\r\n3;4", "PG", [[1, 2], [3, 4]]),
        ("[[[-1, -2], [-3]]]", "PGL", [[[-1, -2], [-3, NAN]]]),
        ("[[-1, -2], [-3]]", "PGL", [[[-1, -2], [-3, NAN]]]),
        ("[[3, 5, 5], [], [2]]", "PGS", [[[3, 5, 5], [NAN] * 3, [2, NAN, NAN]]]),
        ("[[[], [1]], [[2, 3], []]]", "PGS", [[[NAN, NAN], [1, NAN]], [[2, 3], [NAN, NAN]]]),
        ("[[], []]", "PGS", [[[NAN], [NAN]]]),
        ("3 5", "PGS", [[[3, 5]]]),
        ("[[1, null], [0, 1]]", "PGK", [[[1, NAN], [0, 1]]]),
        ("1\t0\n\t1", "PGK", [[[1, 0], [NAN, 1]]]),
    ],
)  # fmt: skip
def test_numbers_are_read_in_the_forms_that_people_have_them(text, axes, expected):
    assert_array_equal(tables.parse_numbers(text, axes), np.array(expected, dtype=float))


@pytest.mark.parametrize("text", ["1,5; 2,5", "1,5 2,5", "0,5, 1,0", "1,234\t5", "1,5;2\n2,5;3"])
def test_a_decimal_comma_that_could_be_something_else_is_refused(text):
    with pytest.raises(ScenarioError, match="write decimals with a point"):
        tables.parse_numbers(text, "PG")


@pytest.mark.parametrize(
    ("text", "axes", "message"),
    [
        ("", "G", "nothing was pasted"),
        ("  \n ", "G", "nothing was pasted"),
        ("[1, x]", "G", "character 5: 'x' is not a number"),
        ("[1,\n 2 3 y]", "G", "line 2, character 6: 'y' is not a number"),
        ("[1,,2]", "G", "character 4: a value is missing before this comma"),
        ("[1, 2", "G", "a ']' is missing"),
        ("[1]]", "G", "more text follows"),
        ("[1]; import os", "G", "more text follows"),
        ("__import__('os')", "G", "is not a number"),
        ("[1 2 ... 3]", "G", "print it whole"),
        ("1e999 1", "G", "value 0: '1e999' is beyond the range"),
        ("reward\n1", "G", "row 0, column 0: 'reward' is not a number"),
        ("50% 1", "G", "value 0: '50%' is not a number"),
        ("[]", "G", "the pasted list is empty"),
        ("[[1, 2], [3]]", "PG", "prompt 1 has 1 values; expected 2"),
        ("[[1], 2]", "PG", "prompt 1 has a single value"),
        ("[]", "PGS", "the pasted list is empty"),
        ("[[1], 2]", "PGS", "prompt 0, completion 1 has a single value"),
        ("[[1, 2], [3]]", "PGK", "prompt 0, completion 1 has 1 values; expected 2"),
        ("[[[1]]]", "PG", "nested 3 deep; wanted 2"),
        ("1 2\n3 4", "G", "2 rows; wanted one group"),
        ("[" * 100_000, "G", "lists more than 4 deep are not read"),
        ("1 " * 100_001, "G", "at most 200,000"),
        ("[1_000]", "G", "'1_000' is not a number"),
        ("[٣]", "G", "is not a number"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text, axes, message):
    with pytest.raises(ScenarioError) as caught:
        tables.parse_numbers(text, axes)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pasted_group_goes_into_its_prompt():
    changed = tables.paste_array(scenario(), "rewards", "0.5 0.75", 1)
    assert changed["rewards"].tolist() == [[1.0, 0.0], [0.5, 0.75]]


def test_a_pasted_group_of_another_size_is_refused_beside_other_prompts():
    with pytest.raises(ScenarioError, match="pasted 3 values; each prompt here has 2"):
        tables.paste_array(scenario(), "rewards", "1 2 3", 1)


def test_a_whole_pasted_array_resizes_the_scenario():
    changed = tables.paste_array(scenario(), "rewards", "[[1,2,3],[4,5,6],[7,8,9]]", 0)
    assert changed.sizes == {"P": 3, "G": 3, "L": 3}
    assert changed["rewards"].tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


def test_a_completion_whose_pasted_values_end_early_ends_there():
    changed = tables.paste_array(scenario(), "logp_new", "[[-1,-2],[-3]]", 0)
    assert changed["mask"][0].tolist() == [[True, True, False], [True, False, False]]
    assert changed["logp_new"][0].tolist() == [[-1.0, -2.0, -0.375], [-3.0, -0.625, -0.75]]
    assert changed["mask"][1].all()


def test_a_pasted_mask_must_be_zeros_and_ones():
    changed = tables.paste_array(scenario(), "mask", "1 1 0\n1 0 0", 0)
    assert changed["mask"][0].tolist() == [[True, True, False], [True, False, False]]
    with pytest.raises(ScenarioError, match="mask, prompt 0, completion 0, token 1: 2; wanted"):
        tables.paste_array(scenario(), "mask", "1 2 0\n1 0 0", 0)


def test_an_array_that_was_not_there_can_be_pasted():
    changed = tables.paste_array(scenario(), "advantages", "[[1,-1],[0.5,-0.5]]")
    assert changed["advantages"].tolist() == [[1, -1], [0.5, -0.5]]
    assert tables.paste_array(scenario(), "logged_loss", "0.25")["logged_loss"] == 0.25
    with pytest.raises(ScenarioError, match="logged_loss: pasted 2 values; wanted one"):
        tables.paste_array(scenario(), "logged_loss", "1 2")


def test_a_table_of_distributions_shows_the_default_and_an_edit_puts_both_in():
    start = scenario()
    frame = tables.array_to_frame(start, "dist_new")
    assert frame.index.name == "token"
    assert frame["dist_new"].tolist() == [0.5, 0.5]
    assert tables.frame_to_array(start, "dist_new", frame) is start
    frame.loc["1", "dist_new"] = 0.25
    changed = tables.frame_to_array(start, "dist_new", frame)
    assert changed["dist_new"].tolist() == [0.5, 0.25]
    assert changed["dist_ref"].tolist() == [0.9, 0.1]
    frame.loc["1", "dist_new"] = -1
    with pytest.raises(ScenarioError, match="dist_new, token 1: -1; wanted a probability"):
        tables.frame_to_array(start, "dist_new", frame)


def test_a_pasted_distribution_brings_its_own_number_of_tokens():
    changed = tables.paste_array(scenario(), "dist_ref", "[0.2, 0.3, 0.5]")
    assert changed["dist_ref"].tolist() == [0.2, 0.3, 0.5]
    assert changed["dist_new"].tolist() == [0.5, 0.5, 0]
    with pytest.raises(ScenarioError, match="dist_ref: pasted 9 tokens; wanted 2 to 8"):
        tables.paste_array(scenario(), "dist_ref", "1 1 1 1 1 1 1 1 1")
    assert tables.array_as_code(scenario(), "dist_ref") == "dist_ref = np.array([0.9, 0.1])"
    assert tables.paste_array(scenario(), "seed", "12")["seed"] == 12


TERMS = (Term("format", 0.1), Term("length", 1.0, Choice("length_linear")))
VALUES = [[[1, NAN], [0, -1]], [[0.5, 2], [NAN, NAN]]]
STEPS = {
    "step_ends": [[[0, 2], [1, NAN]], [[2, NAN], [NAN, NAN]]],
    "step_rewards": [[[1, 0], [0.5, NAN]], [[2, NAN], [NAN, NAN]]],
}


def test_the_values_of_terms_are_a_table_of_completions_by_terms():
    start = scenario().with_terms(TERMS, VALUES)
    frame = tables.array_to_frame(start, "term_values", 0)
    assert list(frame.columns) == ["0", "1"]
    assert frame.index.name == "completion"
    assert_array_equal(frame.to_numpy(), VALUES[0])
    assert tables.frame_to_array(start, "term_values", frame, 0) is start
    changed = edited("term_values", 0, "1", "0", None, start)
    assert_array_equal(changed["term_values"], [[[1, NAN], [NAN, -1]], VALUES[1]])
    with pytest.raises(ScenarioError, match="prompt 0, completion 1, term 1: inf; wanted a finite"):
        edited("term_values", 0, "1", "1", np.inf, start)


def test_terms_without_values_have_a_blank_table_and_an_edit_puts_it_in():
    start = scenario().with_terms(TERMS[1:])
    frame = tables.array_to_frame(start, "term_values", 1)
    assert frame.isna().all(axis=None)
    assert tables.frame_to_array(start, "term_values", frame, 1) is start
    changed = edited("term_values", 1, "0", "0", 3, start)
    assert_array_equal(changed["term_values"], [[[NAN], [NAN]], [[3], [NAN]]])


def test_pasted_values_of_terms_have_a_column_for_each():
    start = scenario().with_terms(TERMS, VALUES)
    whole = tables.paste_array(start, "term_values", "[[[1,2],[3,4],[5,6]]]")
    assert whole.sizes == {"P": 1, "G": 3, "L": 3}
    part = tables.paste_array(start, "term_values", "1\t\n3\t4", 1)
    assert_array_equal(part["term_values"], [VALUES[0], [[1, NAN], [3, 4]]])
    for text in ("1 2 3\n4 5 6", "[[[1],[2]]]"):
        with pytest.raises(ScenarioError, match="the example has 2 terms, and each needs one"):
            tables.paste_array(start, "term_values", text, 1)
    with pytest.raises(ScenarioError, match="pasted 2 columns; the example has 0 terms"):
        tables.paste_array(scenario(), "term_values", "1 2\n3 4", 1)
    with pytest.raises(ScenarioError, match="each prompt here has 2 x 2"):
        tables.paste_array(start, "term_values", "1 2\n3 4\n5 6", 1)


def test_values_of_the_only_term_may_be_pasted_as_a_line_of_completions():
    start = scenario().with_terms(TERMS[1:])
    for text in ("[1, 2]", "1\n2", "[[1], [2]]"):
        changed = tables.paste_array(start, "term_values", text, 0)
        assert_array_equal(changed["term_values"], [[[1], [2]], [[NAN], [NAN]]])


def test_one_prompt_s_steps_are_a_table_of_completions_by_steps():
    start = scenario(**STEPS)
    frame = tables.array_to_frame(start, "step_ends", 0)
    assert_array_equal(frame.to_numpy(), [[0, 2], [1, NAN]])
    assert tables.frame_to_array(start, "step_ends", frame, 0) is start
    assert edited("step_ends", 0, "0", "1", 1, start)["step_ends"][0, 0].tolist() == [0, 1]
    with pytest.raises(ScenarioError, match="completion 0, step 1: -1; wanted a token position"):
        edited("step_ends", 0, "0", "1", -1, start)
    with pytest.raises(ScenarioError, match="completion 1, step 1 is missing; wanted a finite"):
        edited("step_ends", 0, "1", "1", 1, start)


def test_flags_are_switched_with_steps_and_terms_there():
    start = scenario(**STEPS).with_terms(TERMS, VALUES)
    grown = edited("mask", 0, "1", "2", True, start)
    assert_array_equal(grown["step_ends"], STEPS["step_ends"])
    off = edited("present", 0, "1", "present", False, start)
    back = edited("present", 0, "1", "present", True, off)
    assert same_scenario(back, start)
    with pytest.raises(ScenarioError, match="completion 0, step 1 is 2; wanted a token that count"):
        edited("mask", 0, "0", "2", False, start)


def test_a_completion_that_comes_back_without_the_token_of_a_step_has_no_steps():
    off = edited("present", 0, "1", "present", False, scenario(**STEPS))
    shorter = edited("mask", 0, "1", "1", False, off)
    back = edited("present", 0, "1", "present", True, shorter)
    assert_array_equal(back["step_ends"], [[[0, 2], [NAN, NAN]], [[2, NAN], [NAN, NAN]]])
    assert_array_equal(back["step_rewards"][1], STEPS["step_rewards"][1])


def test_a_paste_that_resizes_keeps_steps_and_terms():
    start = scenario(**STEPS).with_terms(TERMS, VALUES)
    changed = tables.paste_array(start, "rewards", "[[1, 0, 1]]")
    assert_array_equal(changed["step_ends"], [[[0, 2], [1, NAN], [NAN, NAN]]])
    assert_array_equal(changed["term_values"], [[[1, NAN], [0, -1], [NAN, NAN]]])


@pytest.mark.parametrize("key", [k for k, spec in ARRAYS.items() if "P" not in spec.axes])
def test_an_array_beside_the_batch_can_be_pasted_shown_and_edited(key):
    spec = ARRAYS[key]
    shape = tuple(OWN_AXES[axis].low for axis in spec.axes)
    value = next(value for value in (0.5, 8) if spec.rule.holds(value))
    changed = tables.paste_array(scenario(), key, repr(np.full(shape, value).tolist()))
    assert_array_equal(changed[key], np.full(shape, value))
    frame = tables.array_to_frame(changed, key)
    assert frame.shape == (*shape, 1, 1)[:2]
    assert tables.frame_to_array(changed, key, frame) is changed
    if shape:
        many = np.full((*shape[:-1], OWN_AXES[spec.axes[-1]].high + 1), value)
        with pytest.raises(ScenarioError, match=f"{key}: pasted {many.shape[-1]} .*; wanted"):
            tables.paste_array(scenario(), key, repr(many.tolist()))


@pytest.mark.parametrize("key", ["rewards", "logp_new", "mask"])
def test_the_code_of_an_array_pasted_back_is_the_same_scenario(key):
    start = scenario()
    code = tables.array_to_code(start[key])
    assert same_scenario(tables.paste_array(start, key, code), start)


@pytest.mark.parametrize("array", [
    np.array([[1.0, NAN], [0.1, -np.inf]]), np.float32([0.1, 1e-45]), np.array([True, False]),
    np.array(0.1), np.array([[[1e300]], [[-0.0]]]), np.zeros((0, 3)),
])  # fmt: skip
def test_the_code_of_an_array_rebuilds_it_exactly(array):
    scope = {"np": np}
    exec(tables.array_to_code(array, "x"), scope)
    assert scope["x"].dtype == array.dtype
    assert scope["x"].shape == array.shape
    assert scope["x"].tobytes() == array.tobytes()
