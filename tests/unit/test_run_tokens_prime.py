"""prime-rl's token exports: aligned columns, nulls, no rewards, a file for each rank."""

import json

import numpy as np
import pytest

from tests.unit.token_files import columns_of, json_lines, opened, read, refusal

NAME = "out/token_exports/step_3/rank_0.jsonl"


def sequence(**changes):
    """One token of prompt, two of response."""
    return {
        "schema_version": 1,
        "step": 3,
        "rank": 0,
        "env_name": "math",
        "token_ids": [11, 40, 41],
        "loss_mask": [False, True, True],
        "advantages": [None, 0.5, 0.5],
        "inference_logprobs": [None, -0.25, -1.0],
        "trainer_logprobs": [0.0, -0.5, -2.0],
        "entropy": [0.1, 0.9, 0.8],
        "importance_ratio": [1.0, 0.9, 0.8],
        "is_masked": [False, False, False],
        **changes,
    }


class TestWhatIsRead:
    def test_advantages_and_tokens(self):
        found = read(NAME, json_lines(sequence(), sequence(advantages=[0, -0.5, -0.5])))
        assert found.step.tolist() == [3, 3]
        assert found.numbers["advantage (logged)"].tolist() == [0.5, -0.5]
        assert found.lengths.tolist() == [2, 2]
        row = found.tokens(0)
        assert row.arrays["logp_new"].tolist() == row.arrays["logp_old"].tolist() == [-0.5, -2]
        assert row.arrays["logp_sampler"].tolist() == [-0.25, -1]
        assert row.arrays["entropy"].tolist() == [0.9, 0.8]
        assert row.arrays["token_ids"].tolist() == [40, 41]
        assert found.texts([0, 1]) == [("", "")] * 2

    def test_the_advantage_stands_for_the_reward_and_this_is_said(self):
        row, columns = columns_of(NAME, json_lines(sequence()))
        assert row.key == "prime_tokens"
        assert "advantages" not in columns
        assert columns["advantage (logged)"].role == "term"
        assert any("hold no rewards" in note for note in read(NAME, json_lines(sequence())).notes)

    def test_the_step_of_a_line_counts_before_that_of_the_folder(self):
        line = sequence(step=7)
        del (other := sequence())["step"]
        assert read(NAME, json_lines(line, other)).step.tolist() == [7, 3]
        assert read("rank_0.jsonl", json_lines(other)).step.tolist() == [0]

    def test_a_group_is_an_equal_prompt_over_all_ranks_of_a_step(self):
        files = [
            (
                f"token_exports/step_{step}/rank_{rank}.jsonl",
                json_lines(
                    sequence(step=step, advantages=[0, rank + step, rank + step]),
                    sequence(step=step, token_ids=[12, 1, 2], advantages=[0, -1 - rank, -1]),
                ),
            )
            for step in (3, 4)
            for rank in (0, 1)
        ]
        found = opened(*files)
        assert found.run.names == ("advantage (logged)",)
        assert found.stand_ins
        assert found.run.advantages is None
        assert found.run.totals is None
        assert found.run.steps.tolist() == [3, 3, 4, 4]
        assert found.run.terms[0, :, 0].tolist() == [3, 4]
        assert found.run.sizes.tolist() == [2] * 4
        assert found.tokens(0)[0].arrays["logp_new"].shape == (2, 2)

    def test_advantages_that_differ_among_tokens_are_kept_and_averaged(self):
        found = read(NAME, json_lines(sequence(advantages=[0, 1, 2])))
        assert found.numbers["advantage (logged)"].tolist() == [1.5]
        assert found.tokens(0).arrays["token_advantages"].tolist() == [1, 2]


class TestBadInput:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"step": -1}, "-1 for 'step'; wanted a whole number of at least 0"),
            ({"step": 1.5}, "1.5 for 'step'"),
            ({"step": "x"}, "'x' for 'step'"),
            ({"loss_mask": None}, "no 'loss_mask'"),
            ({"loss_mask": [True, None, True]}, "no 'loss_mask', or a blank in it"),
            ({"token_ids": []}, "no 'token_ids'"),
            ({"entropy": [0.1]}, "1 values in 'entropy' and 3 in 'token_ids'"),
            ({"trainer_logprobs": [0, "x", 0]}, "'x' at position 1 of 'trainer_logprobs'"),
        ],
        ids=str,
    )
    def test_a_line_that_cannot_be_read_is_left_out(self, changes, words):
        found = read(NAME, json_lines(sequence(), sequence(**changes)))
        assert len(found.step) == 1
        assert any(f"line 2 has {words}" in note for note in found.notes)

    def test_null_where_the_trainer_was_not_finite_hides_the_tokens(self):
        found = read(NAME, json_lines(sequence(), sequence(trainer_logprobs=[0, None, -1])))
        assert found.tokens(1) is None
        assert found.numbers["advantage (logged)"].tolist() == [0.5, 0.5]
        assert any("no usable logp_new" in note and "line 2" in note for note in found.notes)

    def test_null_of_the_sampler_is_blank(self):
        found = read(NAME, json_lines(sequence(inference_logprobs=[0, None, -1])))
        assert np.isnan(found.tokens(0).arrays["logp_sampler"][0])

    def test_null_entropy_or_advantages_leave_only_these_out(self):
        line = sequence(entropy=[0, None, 1], advantages=[0, None, None])
        row = read(NAME, json_lines(line)).tokens(0)
        assert "entropy" not in row.arrays
        assert "token_advantages" not in row.arrays
        assert "logp_new" in row.arrays

    def test_a_file_cut_off_in_its_last_line_is_read_up_to_it(self):
        data = json_lines(*[sequence()] * 3)
        found = read(NAME, data[:-20])
        assert len(found.step) == 2
        assert any("line 3" in note and "cut off" in note for note in found.notes)

    def test_nothing_usable_is_an_error(self):
        line = json.dumps(sequence(loss_mask=None))
        assert "no 'loss_mask'" in refusal(read, NAME, line.encode() + b"\n")
