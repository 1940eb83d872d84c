"""Tokens recorded beside a run find the completions that they belong to."""

import io
import json

import numpy as np
import pytest

from grpo_core import ARRAYS
from tests.unit.run_files import opened, parquet, trl, trl_name, uploaded, written

LENGTHS = (2, 3, 1, 2)


def recorded(batch, step, order=(0, 1, 2, 3), **changes):
    """An npz file of a batch, of `trl`, recorded at a step; log-probabilities tell its rows."""
    mask = np.arange(3) < np.array([LENGTHS[at] for at in order])[:, None]
    logp = -np.array([at + 0.1 for at in order])[:, None] - 0.01 * np.arange(3)
    arrays = {
        "logp_new": logp.reshape(2, 2, 3),
        "logp_old": logp.reshape(2, 2, 3) - 0.001 * step,
        "mask": mask.reshape(2, 2, 3),
        "prompts": np.array([batch["prompt"][at] for at in order[::2]]),
        "completions": np.array([batch["completion"][at] for at in order]).reshape(2, 2),
        "step": step,
    } | changes
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{k: v for k, v in arrays.items() if v is not None})
    return buffer.getvalue()


def run_of(files, **recordings):
    """Two batches, each in two files as if used twice, and recordings: name -> bytes."""
    one, two = trl(1, prompts="ab"), trl(3, prompts="cd")
    named = {1: one, 2: one | {"step": [2] * 4}, 3: two, 4: two | {"step": [4] * 4}}
    return {trl_name(step): parquet(batch) for step, batch in named.items()} | files


ONE, TWO = trl(1, prompts="ab"), trl(3, prompts="cd")


def steps(run, q):
    return [use.step for use in run.tokens(q)]


@pytest.mark.parametrize("start", [0, 1], ids=["steps from 0", "steps from 1"])
def test_both_uses_of_a_batch_at_the_steps_of_the_trainer(start):
    files = {f"tensors/{at}.npz": recorded(ONE if at < 3 else TWO, at - 1 + start) for at in (1, 2)}
    files |= {f"tensors/{at}.npz": recorded(TWO, at - 1 + start) for at in (3, 4)}
    run = uploaded(run_of(files))
    assert run.run.steps.tolist() == [1, 1, 3, 3]
    assert [steps(run, q) for q in range(4)] == [[1, 2], [1, 2], [3, 4], [3, 4]]


def test_every_array_is_padded_to_the_longest_of_the_group():
    (use,) = uploaded(run_of({"t.npz": recorded(ONE, 1)})).tokens(0)
    assert use.arrays["mask"].tolist() == [[True, True, False], [True, True, True]]
    assert use.arrays["mask"].dtype == bool
    np.testing.assert_allclose(use.arrays["logp_new"][1], [-1.1, -1.11, -1.12])
    assert set(use.arrays) == {"logp_new", "logp_old", "mask"}
    assert all(ARRAYS[key].axes == "PGL" for key in use.arrays)
    assert use.arrays["logp_new"][0, 2] == ARRAYS["logp_new"].default


def test_rows_that_the_trainer_shuffled_go_to_their_own_completions():
    batch = trl(1, prompts="aa")
    files = {trl_name(1): parquet(batch), "t.npz": recorded(batch, 1, order=(2, 0, 3, 1))}
    run = uploaded(files)
    found = [run.tokens(q)[0].arrays["logp_new"][:, 0] for q in range(len(run.run.steps))]
    np.testing.assert_allclose(np.concatenate(found), [-0.1, -1.1, -2.1, -3.1])


def test_a_group_without_tokens_has_none():
    run = uploaded(run_of({"t.npz": recorded(ONE, 1)}))
    assert run.tokens(2) == ()


def test_a_wrong_step_is_no_hindrance_where_the_texts_agree():
    run = uploaded(run_of({"t.npz": recorded(TWO, 900)}))
    assert steps(run, 2) == [900]


def test_what_matches_nothing_is_named():
    strange = np.array([["w", "x"], ["y", "z"]])
    run = uploaded(run_of({"t.npz": recorded(ONE, 1, completions=strange)}))
    assert run.tokens(0) == ()
    assert any("t.npz: their tokens were left out" in note for note in run.notes)


def test_without_texts_nothing_can_be_matched():
    run = uploaded(run_of({"t.npz": recorded(ONE, 1, prompts=None, completions=None)}))
    assert run.tokens(0) == ()
    assert any("t.npz" in note for note in run.notes)


def test_a_damaged_file_of_tokens_is_named():
    bad = recorded(ONE, 1, logp_new=np.full((2, 2, 3), 5.0))
    run = uploaded(run_of({"good.npz": recorded(ONE, 1), "bad.npz": bad}))
    assert steps(run, 0) == [1]
    assert any("bad.npz" in note for note in run.notes)


def test_token_files_alone_are_a_run(tmp_path):
    rewards = np.array([[1.0, 0.0], [0.0, 1.0]])
    files = {f"{at}.npz": recorded(ONE, at, rewards=rewards) for at in (1, 2)}
    run = opened(written(tmp_path, files))
    assert run.format.attaches
    assert run.run.steps.tolist() == [1, 1]
    assert run.run.terms[..., 0].tolist() == rewards.tolist()
    assert run.run.unit == "tokens"
    assert steps(run, 1) == [1, 2]
    assert run.texts(0) == (("a", "answer 1.0"), ("a", "answer 1.1"))


IDS = np.arange(12).reshape(2, 2, 3)


class TestVocabulary:
    def files(self, words):
        npz = recorded(ONE, 1, completion_ids=IDS)
        return run_of({"t.npz": npz, "vocabulary.json": json.dumps(words).encode()})

    def test_a_file_beside_the_run_says_what_tokens_read(self):
        run = uploaded(self.files({str(at): f"<{at}>" for at in range(12)}))
        assert run.tokens(0)[0].pieces == (("<0>", "<1>"), ("<3>", "<4>", "<5>"))
        assert not any("vocabulary" in note for note in run.notes)

    def test_a_wrong_one_is_said_and_the_rest_is_read(self):
        run = uploaded(self.files({"a": 1}))
        assert steps(run, 0) == [1]
        assert any("vocabulary.json" in note and "left out" in note for note in run.notes)
