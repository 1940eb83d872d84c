"""Kinds of prompts as a table: what is shown, what an edit does, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import ScenarioError, build_scenario
from grpo_core.silent import tied_groups
from pages._ui.link import decode, encode
from pages._ui.rate_tables import (
    RATE,
    RATES,
    batch_rewards,
    frame_to_kinds,
    from_batch_note,
    group_size,
    is_graded,
    kinds_frame,
    kinds_from_batch,
    prompts_of,
    tie_group,
    to_graded,
    to_right_or_wrong,
    value_labels,
    with_kinds,
    with_values,
)

NAN = np.nan
PLAIN = build_scenario(rewards=[[1, 0, 0, 1], [1, 1, 1, 1]])


def graded():
    return PLAIN.replace(
        reward_chances=np.array([[0.5, 0.25, 0.25], [0, 0, 1]]),
        reward_values=np.array([0, 0.5, 2]),
    )


def typed(rows, columns=(RATE,)):
    return pd.DataFrame(np.array(rows, dtype=float).reshape(len(rows), -1), columns=list(columns))


def test_without_kinds_there_are_nine_rates_and_groups_of_eight():
    assert_array_equal(prompts_of(with_kinds(PLAIN)).rates, RATES)
    assert kinds_frame(PLAIN)[RATE].tolist() == list(RATES)
    assert group_size(PLAIN) == 8
    assert not is_graded(PLAIN)


def test_own_kinds_stay_the_same_object():
    scenario = with_kinds(PLAIN)
    assert with_kinds(scenario) is scenario


def test_chances_without_values_get_values_from_0_to_1():
    given = PLAIN.replace(reward_chances=np.array([[0.2, 0.3, 0.5]]))
    assert with_kinds(given)["reward_values"].tolist() == [0, 0.5, 1]


def test_values_without_chances_get_kinds_of_the_usual_relative_means():
    given = with_kinds(PLAIN.replace(reward_values=np.array([0.0, 2.0, 4.0])))
    assert_allclose(prompts_of(given).mean / 4, RATES)


def test_a_kind_without_a_chance_is_refused_by_its_place():
    chances = np.array([[0.5, 0.5], [0.0, 0.0]])
    with pytest.raises(ScenarioError, match="kind of prompt 1 is 0 at all values of the reward"):
        PLAIN.replace(reward_chances=chances, reward_values=np.array([0.0, 1.0]))


# --- edits -------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", [PLAIN, with_kinds(PLAIN), graded()])
def test_an_unchanged_table_gives_back_the_same_object(scenario):
    assert frame_to_kinds(scenario, kinds_frame(scenario)) is scenario


def test_a_typed_rate_is_stored_with_its_complement():
    changed = frame_to_kinds(PLAIN, typed([0.99, 0.3]))
    assert changed["reward_chances"].tolist() == [[0.01, 0.99], [0.7, 0.3]]
    assert kinds_frame(changed)[RATE].tolist() == [0.99, 0.3]


def test_blank_rows_are_left_out():
    assert len(kinds_frame(frame_to_kinds(PLAIN, typed([0.2, NAN, 0.4])))) == 2


def test_graded_chances_are_stored_as_typed_and_read_as_shares():
    changed = frame_to_kinds(graded(), typed([[2, 1, 1], [0, 0, 3]], ["0", "1", "2"]))
    assert changed["reward_chances"].tolist() == [[2, 1, 1], [0, 0, 3]]
    # half 0, a quarter 0.5, a quarter 2: mean 0.625
    assert_allclose(prompts_of(changed).mean, [0.625, 2])
    assert value_labels(changed) == {"0": "0", "1": "0.5", "2": "2"}


@pytest.mark.parametrize(
    ("scenario", "frame", "words"),
    [
        (PLAIN, typed([0.5, 1.5]), "row 1, success rate: 1.5; wanted a number from 0 to 1"),
        (PLAIN, typed([-0.1]), "row 0, success rate: −0.1; wanted a number from 0 to 1"),
        (PLAIN, typed([NAN, NAN]), "0 rows; wanted 1 to 64"),
        (PLAIN, typed([0.5] * 65), "65 rows; wanted 1 to 64"),
        (graded(), typed([[1, NAN, 0]], "012"), "row 0, reward 0.5: blank; wanted a chance"),
        (graded(), typed([[1, np.inf, 0]], "012"), "row 0, reward 0.5: inf"),
        (graded(), typed([[1, 0, 0], [0, 0, 0]], "012"), "row 1 has no chance of any reward"),
        (graded(), typed([0.5]), "the rewards have changed"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_place(scenario, frame, words):
    with pytest.raises(ScenarioError) as caught:
        frame_to_kinds(scenario, frame)
    assert words in str(caught.value)


def test_the_row_of_a_message_counts_blank_rows():
    with pytest.raises(ScenarioError, match="row 2"):
        frame_to_kinds(PLAIN, typed([0.5, NAN, 7]))


# --- graded and back ---------------------------------------------------------------------


def test_graded_rewards_keep_the_mean_and_so_does_the_way_back():
    there = to_graded(with_kinds(PLAIN))
    assert there["reward_values"].tolist() == [0, 0.5, 1]
    assert_allclose(prompts_of(there).mean, RATES)
    assert_allclose(prompts_of(to_right_or_wrong(there)).rates, RATES)


def test_a_mean_between_lowest_and_highest_reward_becomes_the_rate():
    # (0.625 - 0) / (2 - 0) and the top
    assert_allclose(prompts_of(to_right_or_wrong(graded())).rates, [0.3125, 1])


def test_more_values_come_with_chance_0_and_fewer_lose_theirs():
    more = with_values(graded(), 5)
    assert more["reward_values"].tolist() == [0, 0.5, 2, 3, 4]
    assert_allclose(prompts_of(more).mean, prompts_of(graded()).mean)
    fewer = with_values(graded(), 2)
    assert fewer["reward_chances"].tolist() == [[0.5, 0.25], [1, 0]]


# --- from the batch ----------------------------------------------------------------------


def test_the_batch_gives_its_rates_and_its_size():
    taken = kinds_from_batch(PLAIN)
    assert prompts_of(taken).rates.tolist() == [0.5, 1]
    assert group_size(taken) == 4
    assert "one is tied" in from_batch_note(PLAIN)


def test_graded_batches_give_frequencies_of_each_reward():
    taken = kinds_from_batch(build_scenario(rewards=[[0, 0.5, 0.5, 2], [2, 2, NAN, NAN]]))
    assert taken["reward_values"].tolist() == [0, 0.5, 2]
    assert taken["reward_chances"].tolist() == [[0.25, 0.5, 0.25], [0, 0, 1]]


def test_prompts_without_a_score_and_absent_completions_do_not_count():
    scenario = build_scenario(rewards=[[NAN, NAN, NAN], [1, 0, 1]], present=[[1, 1, 1], [1, 1, 0]])
    assert prompts_of(kinds_from_batch(scenario)).rates.tolist() == [0.5]


def test_a_batch_of_one_reward_has_a_table_too():
    taken = kinds_from_batch(build_scenario(rewards=[[0.7, 0.7]]))
    assert taken["reward_values"][1] == 0.7
    assert prompts_of(taken).mean.tolist() == [0.7]


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        ([[NAN, NAN]], "no reward"),
        ([np.arange(17.0)], "17 values of the reward; the table holds at most 16"),
        (np.ones((65, 2)), "65 kinds of prompts; the table holds at most 64"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(rewards, words):
    with pytest.raises(ScenarioError, match=words):
        kinds_from_batch(build_scenario(rewards=rewards))


def test_tying_a_group_leaves_missing_scores_missing():
    tied = tie_group(build_scenario(rewards=[[NAN, 0, 1], [1, 0, 0]]), 0)
    assert_array_equal(tied["rewards"], [[NAN, 0, 0], [1, 0, 0]])
    assert tied_groups(batch_rewards(tied)).tolist() == [True, False]


@pytest.mark.parametrize("scenario", [with_kinds(PLAIN), graded(), kinds_from_batch(PLAIN)])
def test_kinds_are_in_the_link(scenario):
    opened = decode(encode(scenario))[0]
    for key in ("reward_chances", "reward_values"):
        assert_array_equal(opened[key], scenario[key])
