"""What a paste says it did besides putting numbers in."""

import numpy as np

from grpo_core import Texts, build_scenario
from pages._ui.paste_notes import paste_notes, without_stale_texts
from pages._ui.tables import paste_array

BEFORE = build_scenario(
    rewards=[[1, 0]],
    logp_new=[[[-0.1, -0.2], [-0.3, -0.4]]],
    texts=Texts(("2+2=",)),
)


def pasted(key, text):
    after = without_stale_texts(BEFORE, paste_array(BEFORE, key, text, 0))
    return after, paste_notes(BEFORE, after, key)


def test_a_paste_of_the_same_size_says_nothing_and_keeps_the_texts():
    after, notes = pasted("logp_old", "[[-1, -2], [-3, -4]]")
    assert notes == ()
    assert after.texts == BEFORE.texts


def test_a_larger_paste_names_the_sizes_the_texts_and_the_fillers():
    after, notes = pasted("rewards", "[1, 0, 1]")
    assert after.texts == Texts()
    assert notes[0] == (
        "The example has new sizes: 1 prompt, 3 completions per prompt, 2 token positions. "
        "Its texts were dropped."
    )
    assert "logp_new, logp_old and logp_ref hold their filler -1" in notes[1]


def test_a_smaller_paste_leaves_no_fillers():
    _, notes = pasted("rewards", "[1]")
    assert len(notes) == 1


def test_a_short_row_takes_its_positions_out_of_the_mask():
    after, notes = pasted("logp_old", "[[-1, -2], [-3]]")
    assert after["mask"].tolist() == [[[True, True], [True, False]]]
    assert notes == ("1 position without a pasted number left the mask.",)


def test_steps_at_positions_that_are_gone_are_named():
    ends, rewards = [[[0, 1], [1, np.nan]]], [[[1, 0], [1, np.nan]]]
    stepped = BEFORE.replace(step_ends=ends, step_rewards=rewards)
    after = paste_array(stepped, "logp_old", "[[-1], [-2]]", 0)
    assert np.nansum(after["step_ends"] == 0) == 1
    assert "2 steps went with the positions that are gone." in paste_notes(
        stepped, after, "logp_old"
    )
    same = paste_array(stepped, "logp_old", "[[-1, -2], [-3, -4]]", 0)
    assert paste_notes(stepped, same, "logp_old") == ()


def test_an_array_that_was_not_there_is_no_change_of_anything_else():
    for key in ("token_ids", "token_rewards"):
        after = paste_array(BEFORE, key, "[[1, 2], [3, 4]]", 0)
        assert paste_notes(BEFORE, after, key) == ()
        grown = paste_array(BEFORE, key, "[[1, 2, 1], [3, 4, 1]]", 0)
        assert "logp_new, logp_old and logp_ref hold" in paste_notes(BEFORE, grown, key)[1]


def test_a_number_pasted_where_the_mask_is_off_is_named():
    masked = BEFORE.replace(mask=[[[1, 1], [1, 0]]])
    after = paste_array(masked, "logp_old", "[[-1, -2], [-3, -4]]", 0)
    assert paste_notes(masked, after, "logp_old")[0].startswith("1 pasted number at positions")
