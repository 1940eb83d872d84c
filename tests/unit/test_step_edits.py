"""Edits of steps: what each does to the arrays, and that nothing else moves."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from grpo_core import ScenarioError
from grpo_core.step_edits import (
    EDITS,
    append_step,
    drop_step,
    merge_steps,
    pack,
    split_step,
    swap_steps,
)

NAN = np.nan
# Prompt 0: steps that end at 1 and 3, a step at 4, none. Prompt 1: three steps, one, one.
ENDS = np.array(
    [
        [[1, 3, NAN], [4, NAN, NAN], [NAN, NAN, NAN]],
        [[0, 2, 2], [4, NAN, NAN], [1, NAN, NAN]],
    ]
)
REWARDS = np.array(
    [
        [[1, 0, NAN], [0.5, NAN, NAN], [NAN, NAN, NAN]],
        [[0, 1, -2], [1, NAN, NAN], [0, NAN, NAN]],
    ]
)
VALID = np.ones((2, 3, 5), dtype=bool)
VALID[0, 0, 4] = VALID[1, 0, 3:] = VALID[0, 1, 2] = False
VALID[1, 2] = [False, True, False, False, False]


def steps(arrays, p, g):
    """(end, reward) of each step of one completion."""
    ends, rewards = arrays[0][p, g], arrays[1][p, g]
    assert_array_equal(np.isnan(ends), np.isnan(rewards))
    return [(e, r) for e, r in zip(ends.tolist(), rewards.tolist(), strict=True) if e == e]


def test_pack_sorts_by_end_and_moves_blanks_to_the_right():
    ends = [[[NAN, 3, 1, 3]]]
    rewards = [[[NAN, 0.1, 0.2, 0.3]]]
    packed = pack(ends, rewards)
    assert steps(packed, 0, 0) == [(1, 0.2), (3, 0.1), (3, 0.3)]
    assert np.isnan(packed[0][0, 0, 3])


def test_a_split_ends_its_first_part_in_the_middle_of_the_steps_own_tokens():
    # Completion 0's first step has tokens 0 and 1: its parts end at 0 and at 1.
    edited = split_step(ENDS, REWARDS, VALID, (0, 0, 0))
    assert steps(edited, 0, 0) == [(0, 1), (1, 1), (3, 0)]
    # Completion 1's has tokens 0, 1, 3, 4, for 2 is masked: the second of four is 1.
    edited = split_step(ENDS, REWARDS, VALID, (0, 1, 0))
    assert steps(edited, 0, 1) == [(1, 0.5), (4, 0.5)]


def test_halves_keep_the_sum_of_rewards():
    edited = split_step(ENDS, REWARDS, VALID, (0, 1, 0), how="halves")
    assert steps(edited, 0, 1) == [(1, 0.25), (4, 0.25)]


@pytest.mark.parametrize(("step", "end"), [(0, 0), (2, 2)])
def test_a_step_of_one_token_or_of_none_is_split_where_it_ends(step, end):
    # Step 0 is token 0 alone; step 2 shares token 2 with step 1 and has no token of its own.
    edited = split_step(ENDS, REWARDS, VALID, (1, 0, step))
    assert [e for e, _ in steps(edited, 1, 0)] == sorted([0, 2, 2, end])


def test_an_appended_step_ends_at_the_last_token_that_counts():
    assert steps(append_step(ENDS, REWARDS, VALID, (0, 0)), 0, 0) == [(1, 1), (3, 0), (3, 1)]
    first = append_step(ENDS, REWARDS, VALID, (0, 2), reward=0.3)
    assert steps(first, 0, 2) == [(4, 0.3)]


def test_the_step_axis_grows_only_where_there_is_no_room():
    assert append_step(ENDS, REWARDS, VALID, (0, 0))[0].shape == (2, 3, 3)
    grown = append_step(ENDS, REWARDS, VALID, (1, 0))
    assert grown[0].shape == grown[1].shape == (2, 3, 4)
    assert steps(grown, 1, 0) == [(0, 0), (2, 1), (2, -2), (2, 1)]


def test_swapping_moves_rewards_and_leaves_ends():
    assert steps(swap_steps(ENDS, REWARDS, VALID, (1, 0, 1)), 1, 0) == [(0, 0), (2, -2), (2, 1)]


def test_merged_steps_end_where_the_later_one_did():
    assert steps(merge_steps(ENDS, REWARDS, VALID, (0, 0, 0)), 0, 0) == [(3, 0.5)]
    # The mean of 1 and -2.
    assert steps(merge_steps(ENDS, REWARDS, VALID, (1, 0, 1)), 1, 0) == [(0, 0), (2, -0.5)]


def test_a_dropped_step_leaves_a_blank():
    edited = drop_step(ENDS, REWARDS, VALID, (1, 0, 1))
    assert steps(edited, 1, 0) == [(0, 0), (2, -2)]
    assert edited[0].shape == ENDS.shape


def test_a_step_behind_a_gap_is_found_by_its_column():
    ends, rewards = np.array([[[0, NAN, 2, 3]]]), np.array([[[1, NAN, 0.5, 0]]])
    valid = np.ones((1, 1, 4), dtype=bool)
    assert steps(drop_step(ends, rewards, valid, (0, 0, 2)), 0, 0) == [(0, 1), (3, 0)]
    assert steps(swap_steps(ends, rewards, valid, (0, 0, 0)), 0, 0) == [(0, 0.5), (2, 1), (3, 0)]
    # Tokens 1 and 2 are its own: parts at 1 and 2.
    split = split_step(ends, rewards, valid, (0, 0, 2))
    assert steps(split, 0, 0) == [(0, 1), (1, 0.5), (2, 0.5), (3, 0)]
    with pytest.raises(ScenarioError, match=r"has no step 1; choose one of 0, 2, 3"):
        drop_step(ends, rewards, valid, (0, 0, 1))


@pytest.mark.parametrize("key", EDITS)
def test_every_button_edits_one_completion_and_keeps_its_input(key):
    edit = EDITS[key]
    kept = ENDS.copy(), REWARDS.copy()
    edited = edit.function(ENDS, REWARDS, VALID, (1, 0, 0))
    assert_array_equal(ENDS, kept[0])
    assert_array_equal(REWARDS, kept[1])
    assert steps(edited, 1, 0) != steps(kept, 1, 0)
    for p, g in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2)]:
        assert steps(edited, p, g) == steps(kept, p, g)
    assert not any(np.shares_memory(new, old) for new in edited for old in (ENDS, REWARDS))


@pytest.mark.parametrize("key", EDITS)
def test_every_button_says_what_it_does_and_when_it_pays_and_keeps_float32(key):
    edit = EDITS[key]
    assert edit.target in ("completion", "step", "pair")
    assert edit.does.endswith(".")
    assert edit.pays.endswith(".")
    small = np.float32(ENDS), np.float32(REWARDS)
    edited = edit.function(*small, VALID, (1, 0, 0))
    assert {array.dtype for array in edited} == {np.dtype(np.float32)}


@pytest.mark.parametrize("key", EDITS)
def test_a_button_needs_the_target_that_its_row_names(key):
    edit = EDITS[key]
    for target, where in [("completion", (0, 2, 0)), ("step", (0, 1, 0)), ("pair", (0, 0, 0))]:
        order = ["completion", "step", "pair"]
        if order.index(edit.target) > order.index(target):
            with pytest.raises(ScenarioError):
                edit.function(ENDS, REWARDS, VALID, where)
        else:
            edit.function(ENDS, REWARDS, VALID, where)


EMPTY = np.zeros_like(VALID)
BAD = {
    "no such prompt": (drop_step, VALID, (2, 0, 0), {}, "prompt 2, completion 0 is not in"),
    "no such completion": (append_step, VALID, (0, 3), {}, "wanted prompt 0 to 1 and completion"),
    "negative completion": (append_step, VALID, (0, -1), {}, "completion -1 is not in the batch"),
    "no such step": (split_step, VALID, (0, 0, 2), {}, "completion 0 has no step 2; choose one of"),
    "no steps": (drop_step, VALID, (0, 2, 0), {}, "has no step 0; it has none; append one first"),
    "step not named": (
        drop_step,
        VALID,
        (0, 0),
        {},
        "has steps to choose from; choose one of 0, 1",
    ),
    "no next step": (swap_steps, VALID, (0, 0, 1), {}, "completion 0, step 1 is the last one"),
    "nothing to merge": (merge_steps, VALID, (0, 1, 0), {}, "completion 1, step 0 is the last one"),
    "no token": (append_step, EMPTY, (0, 0), {}, "completion 0 has no token that counts"),
    "reward missing": (append_step, VALID, (0, 0), {"reward": NAN}, "step 2 is nan; wanted a fini"),
    "reward as text": (append_step, VALID, (0, 0), {"reward": "1"}, "step 2 is '1'; wanted a fini"),
    "split how": (split_step, VALID, (0, 0, 0), {"how": "x"}, "wanted 'copy' or 'halves'"),
}


@pytest.mark.parametrize(("edit", "valid", "where", "options", "says"), BAD.values(), ids=BAD)
def test_bad_input_names_the_completion_and_the_step(edit, valid, where, options, says):
    with pytest.raises(ScenarioError) as caught:
        edit(ENDS, REWARDS, valid, where, **options)
    assert says in str(caught.value)
