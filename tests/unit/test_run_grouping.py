"""Which rows are one group, and which batch stands twice in the files."""

import numpy as np
import pytest

from pages._ui.runs import bounds
from pages._ui.runs.grouping import grouped
from pages._ui.runs.records import RunFileError
from tests.unit.run_files import cells, parquet, trl, trl_name, trl_run, uploaded


def normalised(rewards, scale=True):
    """Advantages as TRL logs them, of rewards (groups, G)."""
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    spread = rewards.std(axis=1, ddof=1, keepdims=True) + 1e-4
    return (centred / spread if scale else centred).astype(np.float32).astype(float)


def groups(prompts, block=True, step=None, place=None):
    """Rows of each group, of prompts given as a text with a letter for each row."""
    count = len(prompts)
    found = grouped(
        np.zeros(count, dtype=np.int64) if step is None else np.array(step),
        np.array([ord(prompt) for prompt in prompts], dtype=np.uint64),
        block,
        np.zeros(count, dtype=np.int64) if place is None else np.array(place),
        "run",
    )
    return [row[row >= 0].tolist() for row in found.rows], found


class TestBlocks:
    def test_a_block_is_a_group(self):
        assert groups("aabbcc")[0] == [[0, 1], [2, 3], [4, 5]]

    def test_a_prompt_drawn_twice_in_a_row_is_two_groups(self):
        assert groups("aabbbbcc")[0] == [[0, 1], [2, 3], [4, 5], [6, 7]]
        assert groups("aaccbbbbbb")[0] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]

    def test_a_prompt_drawn_again_later_is_another_group(self):
        assert groups("aabbaa")[0] == [[0, 1], [2, 3], [4, 5]]

    def test_unequal_groups_are_padded(self):
        rows, found = groups("aaabcc")
        assert rows == [[0, 1, 2], [3], [4, 5]]
        assert found.rows.shape == (3, 3)
        assert "1 of 3 groups hold one completion" in found.notes[0]

    def test_scattered_rows_are_put_together_by_prompt_and_said(self):
        rows, found = groups("abcabcabc")
        assert rows == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
        assert "Rows of 3 prompts are scattered" in found.notes[0]

    def test_some_scattered_rows_among_blocks(self):
        rows, _ = groups("aaaabbbbcccceddeedde")
        assert rows[3:] == [[12, 15, 16, 19], [13, 14, 17, 18]]

    def test_groups_of_one_stay(self):
        rows, found = groups("abcd")
        assert rows == [[0], [1], [2], [3]]
        assert "4 of 4 groups" in found.notes[0]

    def test_one_prompt_alone_is_one_group(self):
        assert groups("aaaa")[0] == [[0, 1, 2, 3]]

    def test_steps_part_groups_and_come_in_order(self):
        rows, found = groups("aaaabb", step=[2, 2, 1, 1, 1, 1])
        assert rows == [[2, 3], [4, 5], [0, 1]]
        assert found.steps.tolist() == [1, 1, 2]

    def test_files_of_one_step_part_blocks(self):
        assert groups("aaaa", place=[0, 0, 1, 1])[0] == [[0, 1], [2, 3]]


def doubled(rewards, parts, scale=True, **given):
    """Groups (Q, G) whose prompts each stand there `parts` times, one after the other."""
    count, size = rewards.shape
    advantages = normalised(rewards, scale).ravel() if "advantages" not in given else None
    return grouped(
        np.zeros(count * size, dtype=np.int64),
        np.repeat(np.arange(count // parts, dtype=np.uint64), parts * size),
        True,
        np.zeros(count * size, dtype=np.int64),
        "run",
        given.get("advantages", advantages),
    )


def drawn(kind, count, size, seed=0):
    """Rewards (count, size): real numbers, or right and wrong, some groups tied."""
    random = np.random.default_rng(seed)
    rewards = random.random((count, size))
    if kind == "binary":
        rewards = (rewards < random.random((count, 1))).astype(float)
    return rewards


class TestPromptsThatAllStandNextToThemselves:
    """Every prompt of the data stands there twice: the sizes of blocks cannot tell."""

    @pytest.mark.parametrize("kind", ["real", "binary"])
    @pytest.mark.parametrize("scale", [True, False])
    @pytest.mark.parametrize(("size", "parts"), [(8, 2), (4, 2), (8, 3), (4, 4), (3, 2), (16, 2)])
    def test_logged_advantages_tell_the_groups(self, kind, scale, size, parts):
        found = doubled(drawn(kind, 20 * parts, size), parts, scale)
        assert found.rows.shape == (20 * parts, size)
        assert found.rows.ravel().tolist() == list(range(20 * parts * size))
        assert found.notes == ()

    @pytest.mark.parametrize("kind", ["real", "binary"])
    @pytest.mark.parametrize("scale", [True, False])
    @pytest.mark.parametrize("size", [4, 6, 8, 16, 64])
    @pytest.mark.parametrize("count", [1, 2, 3, 40])
    def test_groups_that_were_normalised_together_stay(self, kind, scale, size, count):
        for seed in range(10):
            assert doubled(drawn(kind, count, size, seed), 1, scale).rows.shape == (count, size)

    def test_two_halves_of_real_numbers_that_each_sum_to_zero_are_no_chance(self):
        assert doubled(drawn("real", 6, 8), 2).rows.shape == (6, 8)

    def test_some_advantages_may_be_blank_and_rounded(self):
        advantages = normalised(drawn("real", 40, 8)).round(4)
        advantages[::5] = np.nan
        found = doubled(np.zeros((40, 8)), 2, advantages=advantages.ravel())
        assert found.rows.shape == (40, 8)

    def test_nothing_but_tied_groups_tells_nothing(self):
        found = doubled(np.ones((40, 8)), 2)
        assert found.rows.shape == (20, 16)

    def test_residues_of_tied_groups_are_no_advantages(self):
        advantages = normalised(drawn("real", 40, 8))
        advantages[::3] = 1e-3
        assert doubled(np.zeros((40, 8)), 2, advantages=advantages.ravel()).rows.shape == (40, 8)

    def test_few_rewards_that_could_be_either_are_kept_together_and_said(self):
        advantages = np.tile([1.0, -1.0, -1.0, 1.0], 2)
        found = doubled(np.zeros((2, 4)), 2, advantages=advantages)
        assert found.rows.shape == (1, 8)
        (note,) = found.notes
        assert "The 8 rows of a prompt may also be 4 groups of 2" in note

    @pytest.mark.parametrize("advantages", [None, np.full(64, np.nan)], ids=["none", "blank"])
    def test_without_advantages_they_are_kept_together_and_said(self, advantages):
        found = doubled(np.zeros((8, 8)), 2, advantages=advantages)
        assert found.rows.shape == (4, 16)
        (note,) = found.notes
        assert "cannot be told from one group of 16" in note

    def test_in_files_of_a_run(self):
        files = {}
        for step in (1, 2, 3):
            rewards = drawn("binary", 8, 4, seed=step)
            columns = trl(
                step,
                "aabbccdd",
                size=4,
                accuracy_reward=rewards.ravel().tolist(),
                advantage=normalised(rewards).ravel().tolist(),
            )
            files[trl_name(step)] = parquet(columns)
        run = uploaded(files)
        assert run.run.present.shape == (24, 4)
        assert run.notes == ()


class TestPrompts:
    def test_equal_prompts_of_a_step_are_a_group_wherever_they_stand(self):
        assert groups("abab", block=False)[0] == [[0, 2], [1, 3]]

    def test_over_all_files(self):
        assert groups("abab", block=False, place=[0, 0, 1, 1])[0] == [[0, 2], [1, 3]]


class TestEveryRowIsInOneGroup:
    @pytest.mark.parametrize("seed", range(20))
    @pytest.mark.parametrize("block", [True, False])
    def test_whatever_the_order(self, seed, block):
        random = np.random.default_rng(seed)
        count = int(random.integers(1, 60))
        step = random.integers(0, 4, count)
        group = random.integers(0, 5, count).astype(np.uint64)
        if seed % 2:
            group = np.sort(group)
        found = grouped(step, group, block, random.integers(0, 2, count), "run")
        present = found.rows >= 0
        assert sorted(found.rows[present].tolist()) == list(range(count))
        assert np.all(np.diff(found.steps) >= 0)
        for row, at in zip(found.rows, found.steps, strict=True):
            row = row[row >= 0]
            assert len(row)
            assert np.all(step[row] == at)
            assert len(set(group[row].tolist())) == 1
            assert np.all(np.diff(row) > 0)


def test_one_large_group_among_many_small_ones_is_refused(monkeypatch):
    monkeypatch.setitem(bounds.BOUNDS, "grid", (1000, "cells", "Open fewer steps"))
    with pytest.raises(RunFileError, match="run holds 9,500 cells; at most 1,000"):
        groups([chr(200 + at // 1) for at in range(94)] + ["a"] * 100)


class TestRepeats:
    def run(self, *batches):
        return uploaded({trl_name(step): parquet(columns) for step, columns in batches})

    def test_a_batch_used_twice_counts_once_at_its_first_step(self):
        one, two = trl(1), trl(3)
        run = self.run(
            (1, one), (2, one | {"step": [2] * 4}), (3, two), (4, two | {"step": [4] * 4})
        )
        assert run.run.steps.tolist() == [1, 1, 3, 3]
        assert "2 batches repeat" in run.notes[0]

    def test_a_batch_used_four_times(self):
        one = trl(1)
        run = self.run(*((step, one | {"step": [step] * 4}) for step in (1, 2, 3, 4)))
        assert run.run.steps.tolist() == [1, 1]
        assert "3 batches repeat" in run.notes[0]

    def test_other_texts_are_another_batch_even_if_all_numbers_agree(self):
        same = {"accuracy_reward": [1.0, 0, 1, 0], "advantage": [1.0, -1, 1, -1]}
        run = self.run((1, trl(1, **same)), (2, trl(2, **same)))
        assert run.run.every_step.tolist() == [1, 2]

    def test_the_same_batch_much_later_is_another_one(self):
        run = self.run((1, trl(1)), (2, trl(2)), (3, trl(1) | {"step": [3] * 4}))
        assert run.run.every_step.tolist() == [1, 2, 3]

    def test_rows_left_over_from_the_step_before_count_once(self):
        first = trl(1, prompts="abcd")
        second = trl(2, prompts="efgh")
        mixed = {name: first[name][4:] + second[name][:4] for name in first} | {"step": [2] * 8}
        run = self.run((1, first), (2, mixed))
        assert run.run.steps.tolist() == [1, 1, 1, 1, 2, 2]
        assert cells(run)[4:] == [["answer 2.0", "answer 2.1"], ["answer 2.2", "answer 2.3"]]
        assert "4 rows at the start of a file" in run.notes[0]

    def test_a_large_repeated_batch_is_known_by_its_numbers(self):
        values = np.random.default_rng(3).random(64)
        logged = normalised(values.reshape(8, 8)).ravel().tolist()
        prompts = [f"p{at}" for at in range(8)]
        one = trl(1, prompts, size=8, accuracy_reward=values.tolist(), advantage=logged)
        run = self.run((1, one), (2, one | {"step": [2] * 64}))
        assert run.run.present.shape == (8, 8)


class TestUnusualBatches:
    def test_a_file_of_another_size_is_named(self):
        files = trl_run(steps=range(1, 9))
        files[trl_name(5)] = parquet(trl(5, prompts=("x?", "y?", "z?")))
        (note,) = uploaded(files).notes
        assert note.startswith("Step 5: another number of completions and prompts of its own, ")
        assert "evaluation" in note

    def test_so_is_one_with_other_groups_or_other_prompts(self):
        files = trl_run(steps=range(1, 9))
        files[trl_name(5)] = parquet(trl(5, prompts=("a?",), size=3))
        (note,) = uploaded(files).notes
        assert note.startswith("Step 5: another number of completions and groups of another size,")

    def test_the_last_batch_may_be_smaller(self):
        files = trl_run(steps=range(1, 9))
        files[trl_name(8)] = parquet(trl(8, prompts=("a?",)))
        assert uploaded(files).notes == ()

    def test_prompts_that_are_all_new_are_nothing_unusual(self):
        files = {
            trl_name(step): parquet(trl(step, prompts=(f"{step}a", f"{step}b")))
            for step in range(1, 9)
        }
        assert uploaded(files).notes == ()
