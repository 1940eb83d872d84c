"""What the numbers say about group size and the pull on length."""

import numpy as np
import pytest

from grpo_core import build_scenario, evaluate
from grpo_core.findings.pull import ROWS as PULL
from grpo_core.findings.size import ROWS as SIZE
from pages._ui.examples import load_examples
from tests.length_batches import length_scenario

(too_small, _), (length_pull,) = SIZE, PULL
EXAMPLES = load_examples()


def one_right(P, G):
    rewards = np.zeros((P, G))
    rewards[0, 0] = 1
    return evaluate(build_scenario(rewards=rewards))


def test_a_rare_success_asks_for_larger_groups():
    # One of 32 is right: 1 - (31/32)^8 - (1/32)^8 = 22.4%; one half is reached at G = 22.
    found = too_small.find(one_right(4, 8))
    assert found["chance"] == pytest.approx(1 - (31 / 32) ** 8 - (1 / 32) ** 8)
    assert found["needed"] == 22
    assert found["mixed"] == 1
    assert found["places"] == ((1,), (2,), (3,))
    assert "It takes groups of 22 for one half" in too_small.sentence(found)


@pytest.mark.parametrize(
    "rewards",
    [
        [[1, 0, 0, 1], [0, 0, 1, 0]],  # half of the groups and more are mixed at 3 of 8
        [[0, 0, 0, 0], [0, 0, 0, 0]],  # of a rate of 0 nothing is known
        [[0, 0, 0, 0.5], [0, 0, 0, 1]],  # graded
        [[1], [0]],
    ],
)
def test_large_enough_groups_graded_scores_and_single_ones_say_nothing(rewards):
    assert too_small.find(evaluate(build_scenario(rewards=rewards))) is None


def test_advantages_that_are_given_have_no_rate():
    scenario = EXAMPLES["recorded-batch"].scenario
    assert scenario.conventions["advantage"].variant == "given"
    assert too_small.find(evaluate(scenario)) is None


def test_short_and_long_wrong_answers_are_made_longer_by_1_over_length():
    found = length_pull.find(evaluate(EXAMPLES["long-against-short"].scenario))
    assert found["wrong"] > 0 > found["right"]
    assert found["places"] == ((0, 3),)
    assert "makes wrong ones longer (+" in length_pull.sentence(found)


def test_wrong_answers_that_are_longer_than_most_are_made_shorter_all_the_same():
    found = length_pull.find(evaluate(EXAMPLES["long-wrong-answers"].scenario))
    assert found["wrong"] < 0
    assert "makes wrong ones shorter" in length_pull.sentence(found)


@pytest.mark.parametrize(
    ("lengths", "rewards"),
    [([[5, 5]], [[1, 0]]), ([[5, 20]], [[1, 1]]), ([[0, 0]], [[1, 0]])],
)
def test_equal_lengths_and_tied_groups_pull_at_nothing(lengths, rewards):
    assert length_pull.find(evaluate(length_scenario(lengths, rewards))) is None


@pytest.mark.parametrize("key", EXAMPLES)
def test_every_example_has_sentences_without_undefined_numbers(key):
    found = evaluate(EXAMPLES[key].scenario)
    for row in (*SIZE, *PULL):
        figures = row.find(found)
        if figures is not None:
            assert "undefined" not in row.sentence(figures)
            assert "nan" not in row.sentence(figures)
