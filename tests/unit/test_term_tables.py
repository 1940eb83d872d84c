"""The table of task rewards and terms: what is typed arrives, what is computed is only read."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from grpo_core import Choice, ScenarioError, Term, Texts, build_scenario, evaluate
from pages._ui.term_tables import TASK, frame_to_terms, term_labels, terms_to_frame, terms_to_read

NAN = np.nan


def scenario():
    """A computed term between two given ones, two prompts, one absent completion."""
    terms = (
        Term("format", 0.5),
        Term("length", -0.25, Choice("length_linear", {"per": 2.0})),
        Term("judge", 1.0),
    )
    values = [[[1, NAN, 0.5], [0, NAN, NAN]], [[1, NAN, 1], [7, NAN, 7]]]
    built = build_scenario(
        rewards=[[1, NAN], [0, 9]],
        mask=np.ones((2, 2, 4)),
        present=[[1, 1], [1, 0]],
        texts=Texts(tokens=(((" a\n", "b"), ("<b>", "c")),)),
    )
    return built.with_terms(terms, values).choose("rewards", "sum_then_normalize")


def test_the_task_and_each_given_term_have_a_column():
    frame = terms_to_frame(scenario(), 0)
    assert list(frame.columns) == [TASK, "0", "2"]
    assert_array_equal(frame.to_numpy(), [[1, 1, 0.5], [NAN, 0, NAN]])


def test_what_does_not_count_is_blank():
    assert_array_equal(terms_to_frame(scenario(), 1).to_numpy(), [[0, 1, 1], [NAN, NAN, NAN]])


@pytest.mark.parametrize("prompt", [0, 1])
def test_putting_the_table_back_changes_nothing(prompt):
    given = scenario()
    assert frame_to_terms(given, terms_to_frame(given, prompt), prompt) is given


def test_what_is_typed_arrives_and_nothing_else():
    given = scenario()
    frame = terms_to_frame(given, 0)
    frame.loc["1", TASK], frame.loc["0", "2"] = 0.25, NAN
    changed = frame_to_terms(given, frame, 0)
    assert_array_equal(changed["rewards"], [[1, 0.25], [0, 9]])
    assert_array_equal(changed["term_values"][0], [[1, NAN, NAN], [0, NAN, NAN]])
    assert_array_equal(changed["term_values"][1], given["term_values"][1])


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [("2", np.inf, "judge, prompt 0, completion 1"), (TASK, np.inf, "rewards")],
)
def test_a_bad_cell_is_named(column, value, words):
    given = scenario()
    frame = terms_to_frame(given, 0)
    frame.loc["1", column] = value
    with pytest.raises(ScenarioError, match=words):
        frame_to_terms(given, frame, 0)


def test_headers_say_name_and_weight():
    assert term_labels(scenario()) == {
        "0": "format × 0.5", "1": "length × −0.25", "2": "judge × 1",
    }  # fmt: skip


def test_texts_and_computed_terms_stand_beside():
    beside = terms_to_read(evaluate(scenario()), 0)
    assert list(beside.columns) == ["text", "length × −0.25"]
    assert beside["length × −0.25"].tolist() == ["−2", "−2"]  # 4 tokens, 1 for every 2
    assert beside["text"].tolist() == ["␣a↵b", "<b>c"]


def test_nothing_stands_beside_given_terms_without_texts():
    plain = build_scenario(rewards=[[1, 0]]).with_terms((Term("x"),), [[[1], [0]]])
    assert terms_to_read(evaluate(plain.choose("rewards", "add_after")), 0).shape == (2, 0)
