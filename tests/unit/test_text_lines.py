"""Texts as lines: one completion a line, tokens separated by blanks, there and back."""

import pytest

from grpo_core import ScenarioError, Texts, build_scenario
from pages._ui.examples import load_examples
from pages._ui.text_lines import lines_of, with_lines

HOLE = build_scenario(rewards=[[1, 0]], mask=[[[1, 0, 1], [0, 1, 1]]])


def test_tokens_go_to_the_positions_that_count():
    texts = with_lines(HOLE, 0, "2+2=", "4 .\n5 !").texts
    assert texts.prompts == ("2+2=",)
    assert texts.tokens == ((("4", "", "."), ("", "5", "!")),)


def test_a_short_line_leaves_the_rest_blank_and_a_missing_one_all_of_it():
    texts = with_lines(HOLE, 0, "", "4").texts
    assert texts.tokens == ((("4", "", ""), ("", "", "")),)


def test_blanks_line_ends_and_tabs_inside_a_token_survive():
    texts = with_lines(HOLE, 0, "", "␣the↵ a⇥b").texts
    assert texts.tokens[0][0] == (" the\n", "", "a\tb")
    assert lines_of(HOLE.with_texts(texts), 0) == "␣the↵ a⇥b"


def test_a_token_without_a_text_keeps_its_place():
    texts = Texts((), ((("4", "", ""), ("", "", "!")),))
    assert lines_of(HOLE.with_texts(texts), 0) == "4\n∅ !"
    assert with_lines(HOLE, 0, "", "4\n∅ !").texts == texts


def test_no_text_at_all_is_no_texts():
    assert with_lines(HOLE, 0, "", "").texts == Texts()


@pytest.mark.parametrize("key", load_examples())
def test_what_is_read_back_is_what_was_there(key):
    scenario = load_examples()[key].scenario
    for p in range(scenario.sizes["P"]):
        again = with_lines(scenario, p, scenario.texts.prompt(p), lines_of(scenario, p))
        assert lines_of(again, p) == lines_of(scenario, p)
        assert again.texts.prompt(p) == scenario.texts.prompt(p)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a\nb\nc", "3 lines for 2 completions"),
        ("a b c", "completion 0 has 3 tokens in its line, and 2 positions"),
        ("a\n" + "x" * 201, "completion 1: a token is longer than 200"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(text, says):
    with pytest.raises(ScenarioError, match=says):
        with_lines(HOLE, 0, "", text)


def test_a_prompt_that_is_too_long_is_refused():
    with pytest.raises(ScenarioError, match="longer than 10,000"):
        with_lines(HOLE, 0, "x" * 10_001, "")
