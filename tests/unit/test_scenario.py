"""Scenario: checked once, never changed, never shared with its caller."""

from itertools import pairwise

import numpy as np
import pytest

from grpo_core import (
    Choice,
    Conventions,
    Scenario,
    ScenarioError,
    Term,
    Texts,
    build_scenario,
    effective_logp_new,
    evaluate,
    resize,
    same_scenario,
)

INF, NAN = np.inf, np.nan


def small(**more):
    """1 prompt, 2 completions, 2 tokens; the second completion has one token."""
    arrays = {
        "rewards": [[1.0, 0.0]],
        "logp_new": [[[-1.0, -2.0], [-1.5, NAN]]],
        "logp_old": [[[-1.5, -2.0], [-1.0, INF]]],
        "mask": [[[1, 1], [1, 0]]],
    }
    return build_scenario(**{**arrays, **more})


def test_missing_arrays_follow_from_the_others():
    scenario = build_scenario(rewards=[[1, 0, 0, 1]])
    assert scenario.sizes == {"P": 1, "G": 4, "L": 1}
    assert scenario.valid.all()
    np.testing.assert_array_equal(scenario["logp_old"], scenario["logp_new"])
    np.testing.assert_array_equal(scenario["logp_ref"], scenario["logp_new"])
    assert "advantages" not in scenario


@pytest.mark.parametrize("key", ["logp_new", "logp_old", "logp_ref", "mask"])
def test_any_array_per_token_gives_the_sizes(key):
    value = np.ones((1, 2, 3), bool) if key == "mask" else np.full((1, 2, 3), -1.0)
    assert build_scenario(rewards=[[1, 0]], **{key: value}).sizes == {"P": 1, "G": 2, "L": 3}


def test_advantages_alone_mean_that_nothing_was_scored():
    scenario = build_scenario(advantages=[[1, -1]])
    assert np.isnan(scenario["rewards"]).all()


def test_float32_alone_stays_float32():
    scenario = build_scenario(rewards=np.ones((1, 2), np.float32))
    assert scenario["logp_new"].dtype == np.float32
    mixed = build_scenario(rewards=np.ones((1, 2), np.float32), logp_new=[[[-1], [-1]]])
    assert evaluate(mixed).advantages.dtype == np.float64


def test_callers_arrays_are_neither_shared_nor_frozen():
    new = np.full((1, 2, 1), -1.0)
    scenario = build_scenario(rewards=[[1, 0]], logp_new=new)
    new[0, 0, 0] = -9.0
    assert scenario["logp_new"][0, 0, 0] == -1.0
    arrays = [scenario[key] for key in ("logp_new", "logp_old", "logp_ref")]
    assert not any(np.shares_memory(a, b) for a, b in pairwise(arrays))


def test_a_scenario_cannot_be_changed_in_place():
    scenario = small()
    with pytest.raises(ValueError, match="read-only"):
        scenario["rewards"][0, 0] = 2.0
    with pytest.raises(TypeError):
        scenario.arrays["rewards"] = None
    with pytest.raises(AttributeError):
        scenario.drift = 0.5


def test_replace_makes_another_and_none_takes_an_optional_array_out():
    scenario = small(advantages=[[1, -1]])
    other = scenario.replace(advantages=None, rewards=[[0, 1]])
    assert "advantages" not in other
    assert "advantages" in scenario
    assert scenario["rewards"][0, 0] == 1


@pytest.mark.parametrize(
    ("arrays", "words", "field", "where"),
    [
        ({"rewards": [[1, INF]]}, "rewards at prompt 0, completion 1 is inf", "rewards", (0, 1)),
        ({"rewards": [[1, "x"]]}, "rewards at prompt 0, completion 1 is 'x'", "rewards", (0, 1)),
        ({"rewards": [[1, 0, 1]]}, r"rewards has shape \(1, 3\); expected \(1, 2\)", "rewards", ()),
        ({"mask": [[[1, 1]]]}, "has shape", "rewards", ()),
        (
            {"logp_new": [[[-1, NAN], [-1, 0]]]},
            "logp_new at prompt 0, completion 0, token 1 is nan",
            "logp_new",
            (0, 0, 1),
        ),
        ({"logp_old": [[[-1, INF], [-1, 0]]]}, "token 1 is inf", "logp_old", (0, 0, 1)),
        ({"logp_ref": [[[-1, 0.5], [-1, 0]]]}, "token 1 is 0.5", "logp_ref", (0, 0, 1)),
        ({"advantages": [[1, NAN]]}, "advantages at prompt 0, completion 1", "advantages", (0, 1)),
        ({"logged_loss": INF}, "logged_loss is inf; wanted a finite number", "logged_loss", ()),
        ({"logged_loss": [1]}, "logged_loss has 1 axes", "logged_loss", ()),
        ({"reward": [[1, 0]]}, "unknown array 'reward'; known are rewards", None, ()),
        ({"drift": NAN}, "drift is nan; wanted a finite number", "drift", ()),
        ({"drift": "x"}, "drift is 'x'; wanted a finite number", "drift", ()),
        ({"drift": None}, "drift is None; wanted a finite number", "drift", ()),
    ],
)
def test_bad_input_names_the_place(arrays, words, field, where):
    with pytest.raises(ScenarioError, match=words) as caught:
        small(**arrays)
    assert caught.value.field == field
    assert caught.value.where == where


def test_no_array_at_all_says_what_is_wanted():
    with pytest.raises(ScenarioError, match="wanted at least rewards"):
        build_scenario()


def test_empty_axis_is_named():
    with pytest.raises(ScenarioError, match=r"0 prompts \(P\); wanted at least 1"):
        build_scenario(rewards=np.zeros((0, 3)))


def test_missing_required_array_is_named():
    arrays = {key: array for key, array in small().arrays.items() if key != "logp_ref"}
    with pytest.raises(ScenarioError, match="logp_ref is missing"):
        Scenario(arrays)


def test_a_variant_that_needs_an_array_says_so():
    with pytest.raises(ScenarioError, match="advantage is set to 'given', which needs the array"):
        small(conventions=Conventions.of(advantage="given"))


def test_what_does_not_count_may_hold_anything():
    scenario = small(
        rewards=[[1.0, INF]],
        present=[[1, 0]],
        logp_new=[[[-1, -2], [NAN, INF]]],
        advantages=[[1, NAN]],
    )
    assert scenario.valid.tolist() == [[[True, True], [False, False]]]


def test_resize_keeps_what_is_there_and_keeps_padding_padding():
    scenario = resize(small(), P=2, G=3, L=4)
    assert scenario.sizes == {"P": 2, "G": 3, "L": 4}
    assert scenario["mask"][0].tolist() == [[True] * 4, [True] + [False] * 3, [True] * 4]
    assert scenario["logp_new"][0, 0].tolist() == [-1.0, -2.0, -1.0, -1.0]
    assert same_scenario(resize(scenario, P=1, G=2, L=2), small())


def test_resize_cuts_texts():
    scenario = small(texts=Texts(("a",), ((("x", "y"), ("z", "")),)))
    texts = resize(scenario, G=1, L=1).texts
    assert (texts.prompt(0), texts.tokens) == ("a", ((("x",),),))
    assert (texts.prompt(5), texts.token(0, 1, 0), texts.completion(3, 0)) == ("", "", "")


@pytest.mark.parametrize("sizes", [{"P": 0}, {"G": -1}, {"L": 1.5}, {"L": "2"}, {"P": None}])
def test_resize_refuses_impossible_sizes(sizes):
    with pytest.raises(ScenarioError, match="wanted a whole number of at least 1"):
        resize(small(), **sizes)
    with pytest.raises(ScenarioError, match="unknown size 'Q'; the sizes are P, G, L"):
        resize(small(), Q=1)


def test_drift_scales_the_step_from_old_to_new():
    # Step of the first token -1.5 -> -1.0, halved: -1.25. The second did not move.
    logp, held = effective_logp_new(small(drift=0.5))
    assert logp[0, 0].tolist() == [-1.25, -2.0]
    assert not held.any()
    assert effective_logp_new(small(drift=0))[0][0].tolist() == [[-1.5, -2.0], [-1.0, 0.0]]


def test_drift_of_one_is_the_stored_array_bit_for_bit():
    scenario = small()
    assert effective_logp_new(scenario)[0] is scenario["logp_new"]


def test_drift_above_zero_is_held_there_and_said():
    logp, held = effective_logp_new(small(drift=4))  # -1.5 + 4 * 0.5 = 0.5
    assert logp[0, 0].tolist() == [0.0, -2.0]
    assert held[0].tolist() == [[True, False], [False, False]]


def test_drift_does_not_hold_what_was_above_zero_by_rounding_already():
    above = [[[5e-5, -2.0], [-1.5, 0.0]]]
    logp, held = effective_logp_new(small(logp_new=above, logp_old=above, drift=0.5))
    assert logp[0, 0, 0] == 5e-5
    assert not held.any()


@pytest.mark.parametrize("drift", [-1e308, -1, 0, 0.5, 0.50001, 1, 2, 1e308])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_drift_never_gives_nan_nor_values_above_zero(drift, dtype):
    ends = np.array([0.0, -1.0, -INF, -1e308 if dtype is np.float64 else -3e38], dtype)
    new, old = (grid.reshape(1, 2, 8) for grid in np.meshgrid(ends, ends))
    scenario = build_scenario(
        rewards=np.zeros((1, 2), dtype), logp_new=new, logp_old=old, drift=drift
    )
    logp, _ = effective_logp_new(scenario)
    assert (logp <= 0).all()  # False for NaN
    assert logp.dtype == dtype


def test_drift_towards_minus_infinity_takes_the_nearer_end():
    scenario = small(logp_new=[[[-INF, -2.0], [-1.5, 0.0]]], drift=0.4)
    assert effective_logp_new(scenario)[0][0, 0, 0] == -1.5
    assert effective_logp_new(scenario.replace())[0][0, 0, 1] == -2.0


def test_same_scenario_looks_only_at_cells_that_count():
    assert same_scenario(small(), small(logp_new=[[[-1.0, -2.0], [-1.5, 7.0]]]))
    assert not same_scenario(small(), small(rewards=[[1.0, -0.0]]))  # bits, not values
    assert not same_scenario(small(), small(drift=0.5))
    assert not same_scenario(small(), small().choose("kl", "k1"))
    assert not same_scenario(small(), small(advantages=[[1, 1]]))
    assert not same_scenario(small(), small(rewards=np.array([[1, 0]], np.float32)))
    one, other = ([Term("a", weight, Choice("length_linear"))] for weight in (0.5, 0.25))
    assert same_scenario(small(terms=one), small(terms=one))
    assert not same_scenario(small(), small(terms=one))
    assert not same_scenario(small(terms=one), small(terms=other))


def with_columns(columns, *terms):
    """`small` with so many columns of term values and these terms."""
    return small(term_values=np.ones((1, 2, columns)), terms=terms)


@pytest.mark.parametrize(
    ("arguments", "words", "field"),
    [
        (
            (2, Term("a"), Term("a")),
            "two terms are called 'a'; give each its own name",
            "terms",
        ),
        (
            (1, Term("a"), Term("b")),
            "term_values has 1 columns; wanted one for each of the 2 terms",
            "term_values",
        ),
        ((2,), "term_values has 2 columns; wanted one for each of the 0 terms", "term_values"),
        (
            (1, *(Term(str(k)) for k in range(17))),
            "there are 17 terms; wanted at most 16",
            "terms",
        ),
        ((17,), "term_values has 17 terms; wanted 1 to 16", "term_values"),
    ],
)
def test_terms_that_do_not_fit_are_named(arguments, words, field):
    with pytest.raises(ScenarioError) as caught:
        with_columns(*arguments)
    assert str(caught.value) == words
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("formula", "array"),
    [
        ("given", "term_values"),
        ("format_bonus", "term_values"),
        ("repetition", "token_ids"),
        ("per_token", "token_rewards"),
    ],
)
def test_a_term_that_needs_an_array_says_so(formula, array):
    words = f"the term 'a' is set to '{formula}', which needs the array '{array}'"
    with pytest.raises(ScenarioError, match=words) as caught:
        small(terms=[Term("a", 1.0, Choice(formula))])
    assert caught.value.field == array


def test_terms_that_need_no_array_stand_alone():
    scenario = small(terms=[Term("a", 1.0, Choice("length_linear"))])
    assert "term_values" not in scenario
    assert isinstance(scenario.terms, tuple)


def test_a_row_that_needs_steps_says_so():
    with pytest.raises(ScenarioError, match="advantage is set to 'process', which needs the arr"):
        small(conventions=Conventions.of(advantage="process"))


@pytest.mark.parametrize(
    ("stage", "row", "array"),
    [
        ("advantage", "given_per_token", "token_advantages"),
        ("truncated", "drop", "truncated"),
        ("selection", "entropy", "entropy"),
        ("selection", "on_policy", "logp_sampler"),
        ("correction", "sampler", "logp_sampler"),
        ("correction", "given", "sampler_weights"),
        ("entropy", "bonus", "entropy"),
    ],
)
def test_rows_that_need_an_array_say_so_and_take_it(stage, row, array):
    words = f"{stage} is set to '{row}', which needs the array '{array}'"
    with pytest.raises(ScenarioError, match=words) as caught:
        small().choose(stage, row)
    assert caught.value.field == array
    shape = (1, 2) if array == "truncated" else (1, 2, 2)
    given = small(**{array: np.zeros(shape)}).choose(stage, row)
    assert not np.isnan(evaluate(given).loss)


def test_a_row_that_needs_two_arrays_asks_for_the_one_that_is_missing():
    half = small(entropy=np.zeros((1, 2, 2)))
    with pytest.raises(ScenarioError, match="needs the array 'logp_sampler'"):
        half.choose("selection", "entropy_on_policy")


@pytest.mark.parametrize("key", ["logp_sampler", "sampler_weights", "entropy", "token_advantages"])
def test_resize_fills_up_with_what_says_nothing(key):
    grown = resize(small(**{key: np.full((1, 2, 2), -0.0)}), L=3, G=3)
    added = {"logp_sampler": NAN, "sampler_weights": 1.0}.get(key, 0.0)
    np.testing.assert_array_equal(grown[key][0, 2], [added] * 3)
    np.testing.assert_array_equal(grown[key][0, 0], [0, 0, added])


def test_with_terms_replaces_terms_and_values_together():
    scenario = with_columns(1, Term("a"))
    other = scenario.with_terms([Term("b"), Term("c")], np.zeros((1, 2, 2)))
    assert [term.name for term in other.terms] == ["b", "c"]
    assert other["term_values"].shape == (1, 2, 2)
    without = scenario.with_terms(())
    assert (without.terms, "term_values" in without) == ((), False)
    assert scenario.own_sizes == {"K": 1}


def test_terms_stay_when_the_batch_is_resized():
    scenario = resize(with_columns(2, Term("a"), Term("b")), P=2, G=3, L=1)
    assert scenario["term_values"].shape == (2, 3, 2)
    assert np.isnan(scenario["term_values"][0, 2]).all()
    assert scenario["term_values"][0, :2].tolist() == [[1, 1], [1, 1]]
    assert [term.name for term in scenario.terms] == ["a", "b"]


def test_what_stands_at_cells_that_do_not_count_is_no_term_value():
    arrays = {
        "term_values": [[[1.0], [-INF]]],
        "token_ids": [[[1, 2], [NAN, -1]]],
        "token_rewards": [[[0.5, 1], [INF, NAN]]],
    }
    scenario = small(present=[[1, 0]], terms=[Term("a")], **arrays)
    assert same_scenario(scenario, scenario.replace(term_values=[[[1.0], [7.0]]]))
