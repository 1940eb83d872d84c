"""NeMo-RL's sample files: padded rows of tokens, numbers in lists of one, prompts as ids."""

import json

import numpy as np
import pytest

from pages._ui.runs.bounds import BOUNDS
from pages._ui.runs.format_nemo import ROWS
from tests.unit.token_files import (
    columns_of,
    json_lines,
    on_disk,
    opened,
    read,
    read_source,
    refusal,
)

NAME = "logs/train_data_step3.jsonl"


def sample(**changes):
    """Two tokens of prompt, two of response, one of padding."""
    return {
        "content": ["2+2=?", "4."],
        "rewards": 1.0,
        "input_lengths": 4,
        "token_ids": [11, 12, 40, 41, 0],
        "token_loss_mask": [0, 0, 1, 1, 0],
        "sample_loss_mask": 1.0,
        "advantages": [0.0, 0.0, 0.5, 0.5, 0.5],
        "generation_logprobs": [0.0, 0.0, -0.25, -1.0, 0.0],
        "prev_logprobs": [0.0, 0.0, -0.5, -2.0, 0.0],
        "idx": 0,
        **changes,
    }


def sliced(record):
    """As the writer slices its batch: every value in a list of one."""
    return {key: value if key == "idx" else [value] for key, value in record.items()}


class TestWhatIsRead:
    def test_numbers_lengths_and_steps(self):
        found = read(NAME, json_lines(sample(), sample(rewards=0, advantages=-0.5)))
        assert found.step.tolist() == [3, 3]
        assert found.numbers["rewards"].tolist() == [1, 0]
        assert found.numbers["advantages"].tolist() == [0.5, -0.5]
        assert found.lengths.tolist() == [2, 2]
        assert (found.unit, found.block) == ("tokens", False)
        assert found.group[0] == found.group[1]

    def test_tokens_are_those_that_are_trained_on(self):
        row = read(NAME, json_lines(sample())).tokens(0)
        assert row.step == 3
        assert row.arrays["logp_old"].tolist() == row.arrays["logp_new"].tolist() == [-0.5, -2]
        assert row.arrays["logp_sampler"].tolist() == [-0.25, -1]
        assert row.arrays["token_ids"].tolist() == [40, 41]
        assert row.arrays["token_advantages"].tolist() == [0.5, 0.5]
        assert row.arrays["mask"].tolist() == [True, True]
        assert row.pieces == ("", "")

    def test_lists_of_one_read_the_same(self):
        plain, lists = (read(NAME, json_lines(line)) for line in (sample(), sliced(sample())))
        assert lists.numbers.keys() == plain.numbers.keys()
        for name, values in plain.numbers.items():
            assert np.array_equal(lists.numbers[name], values)
        assert lists.group[0] == plain.group[0]
        assert lists.texts([0]) == plain.texts([0]) == [("2+2=?", "4.")]
        for key, row in plain.tokens(0).arrays.items():
            assert np.array_equal(lists.tokens(0).arrays[key], row)

    def test_groups_are_equal_prompts_whatever_follows(self):
        other = sample(token_ids=[11, 13, 40, 41, 0])
        longer = sample(token_loss_mask=[0, 1, 1, 1, 0])
        found = read(NAME, json_lines(sample(), sample(token_ids=[11, 12, 7, 8, 9]), other, longer))
        assert found.group[0] == found.group[1]
        assert len(set(found.group.tolist())) == 3

    def test_holes_such_as_answers_of_an_environment_are_left_out(self):
        row = read(NAME, json_lines(sample(input_lengths=5, token_loss_mask=[0, 1, 0, 1, 1])))
        assert row.tokens(0).arrays["logp_old"].tolist() == [0, -2, 0]

    def test_that_the_policy_is_the_old_one_is_said(self):
        assert any("every ratio is 1" in note for note in read(NAME, json_lines(sample())).notes)

    def test_a_dropped_sample_is_kept_and_told(self):
        lines = json_lines(sample(), sample(sample_loss_mask=[0.0]))
        found = read(NAME, lines)
        assert len(found.step) == 2
        assert any("1 of 2 records, the first on line 2" in note for note in found.notes)

    def test_with_dynamic_sampling_the_filtered_rewards_are_the_term(self):
        line = sample(rewards=0.0, filtered_rewards=1.0)
        _, columns = columns_of(NAME, json_lines(line))
        assert columns["filtered_rewards"].role == "term"
        assert columns["rewards"].role == "ignore"
        found = read(NAME, json_lines(line))
        assert found.numbers["filtered_rewards"].tolist() == [1]
        assert any("dynamic sampling" in note for note in found.notes)

    def test_a_validation_is_another_format_of_texts_and_rewards(self):
        messages = [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "a"},
        ]
        line = {"content": [messages], "rewards": [1.0], "accuracy": [0.5], "idx": 0}
        row, columns = columns_of("val_data_step5.jsonl", json_lines(line))
        assert row.key == "nemo_validation"
        assert (columns["accuracy"].role, columns["accuracy"].asked) == ("measure", True)
        found = read("val_data_step5.jsonl", json_lines(line))
        assert found.texts([0]) == [("s\nq", "a")]
        assert found.step.tolist() == [5]
        assert found.tokens(0) is None
        assert np.isnan(found.lengths[0])

    @pytest.mark.parametrize(
        ("content", "texts"),
        [
            ("2+2=?4", ("", "2+2=?4")),
            (["2+2=?4"], ("", "2+2=?4")),
            (["s", "q", "a"], ("s\nq", "a")),
            ([["q", "a"]], ("q", "a")),
            ([{"role": "user", "content": "q"}, {"role": "assistant"}], ("q", "")),
            (None, ("", "")),
            ([], ("", "")),
            (7, ("", "")),
            ([1, {"content": 2}], ("", "")),
        ],
        ids=str,
    )
    def test_texts_of_every_shape(self, content, texts):
        assert read(NAME, json_lines(sample(content=content))).texts([0]) == [texts]

    def test_opens_as_a_run(self):
        files = [
            (f"train_data_step{step}.jsonl", json_lines(sample(rewards=step), sample(rewards=0)))
            for step in (2, 10, 1)
        ]
        found = opened(*files)
        assert found.format.key == "nemo"
        assert found.run.steps.tolist() == [1, 2, 10]
        assert found.run.names == ("rewards",)
        assert found.run.terms[..., 0].tolist() == [[1, 0], [2, 0], [10, 0]]
        group = found.tokens(1)[0]
        assert group.step == 2
        assert group.arrays["logp_old"].tolist() == [[-0.5, -2]] * 2

    def test_no_row_of_tokens_is_kept_and_one_line_is_read_again(self, tmp_path):
        path = tmp_path / "train_data_step3.jsonl"
        path.write_bytes(json_lines(*[sample(idx=i, rewards=i) for i in range(50)]))
        found = read_source(on_disk(path))
        rows = path.read_bytes().splitlines(keepends=True)
        changed = sample(prev_logprobs=[0, 0, -7, -7, 0])
        start = sum(map(len, rows[:20]))
        text = json.dumps(changed).encode()
        with path.open("r+b") as file:
            file.seek(start)
            file.write(text.ljust(len(rows[20]) - 1))
        assert found.tokens(19).arrays["logp_old"].tolist() == [-0.5, -2]
        assert found.tokens(20).arrays["logp_old"].tolist() == [-7, -7]


def left(record):
    """As `record`, with its padding before the prompt."""
    length = record["input_lengths"]
    rows = {key: row for key, row in record.items() if key != "content" and isinstance(row, list)}
    return record | {key: row[length:] + row[:length] for key, row in rows.items()}


LONGER = {
    "input_lengths": 5,
    "token_ids": [11, 12, 40, 41, 42, 0],
    "token_loss_mask": [0, 0, 1, 1, 1, 0],
    "advantages": [0.0, 0.0, 0.5, 0.5, 0.5, 0.0],
    "generation_logprobs": [0.0, 0.0, -0.25, -1.0, -2.0, 0.0],
    "prev_logprobs": [0.0, 0.0, -0.5, -2.0, -3.0, 0.0],
}


class TestPaddingOfEitherSide:
    @pytest.mark.parametrize("slice_too", [False, True])
    def test_the_same_numbers_tokens_and_groups(self, slice_too):
        whole = sample(
            **{
                key: [*row, row[-1]]
                for key, row in sample().items()
                if key in (*ROWS, "advantages")
            }
        )
        records = [whole, sample(**LONGER)]
        there = [sliced(left(row)) if slice_too else left(row) for row in records]
        one, two = read(NAME, json_lines(*records)), read(NAME, json_lines(*there))
        assert one.group.tolist() == two.group.tolist()
        assert one.group[0] == one.group[1]
        assert one.lengths.tolist() == two.lengths.tolist() == [2, 3]
        assert one.numbers["advantages"].tolist() == two.numbers["advantages"].tolist()
        for row in (0, 1):
            for key, values in one.tokens(row).arrays.items():
                assert np.array_equal(values, two.tokens(row).arrays[key]), key

    @pytest.mark.parametrize("side", [left, lambda record: record], ids=["left", "right"])
    @pytest.mark.parametrize(
        "mask", [[0, 0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0], [0] * 8], ids=str
    )
    def test_a_sequence_that_goes_on_after_its_last_trained_token(self, side, mask):
        ids = [11, 12, 13, 40, 41, 51, 0, 0]
        rows = {"generation_logprobs": [-0.5] * 8, "prev_logprobs": [-0.5] * 8}
        rows |= {"advantages": 1.0, "input_lengths": 6}
        record = side(sample(token_ids=ids, token_loss_mask=mask, **rows))
        plain = sample(token_ids=ids[:6], token_loss_mask=mask[:6], advantages=1.0, input_lengths=6)
        plain |= {key: row[:6] for key, row in rows.items() if isinstance(row, list)}
        found = read(NAME, json_lines(record, plain))
        assert found.group[0] == found.group[1]

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"token_loss_mask": [1, 0, 0, 0, 1]}, "marks tokens from 0 to 4 of 5"),
            ({"input_lengths": 1}, "has 1 for 'input_lengths', but"),
            ({"input_lengths": 6}, "has 6 for 'input_lengths' and 5 values in a row"),
            ({"input_lengths": -1}, "has -1 for 'input_lengths'"),
            ({"input_lengths": 0}, "has 0 for 'input_lengths', but"),
        ],
        ids=str,
    )
    def test_lengths_that_disagree_with_the_mask_are_refused(self, changes, words):
        assert words in refusal(read, NAME, json_lines(sample(**changes)))
        del (no_ids := sample(**changes))["token_ids"]
        assert words in refusal(read, NAME, json_lines(no_ids))


class TestBadInput:
    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("{", "is not JSON"),
            ('{"rewards": 1.0, "token_ids": [1, 2', "cut off"),
            ("[1, 2]", "is no table of names and values"),
            ("7", "is no table"),
            ("[" * 100_000, "is nested too deeply"),
            ('{"rewards": ' + "9" * 5000 + "}", "too many digits"),
            (json.dumps(sample(advantages=[1, 2])), "2 values in 'advantages' and 5 in 'token_id"),
            (json.dumps(sample(prev_logprobs=["a"] * 5)), "'a' at position 0 of 'prev_logprobs'"),
            (json.dumps(sample(prev_logprobs=[[1], [2]])), "[1] at position 0"),
            (json.dumps(sample(prev_logprobs={"a": 1})), "wanted a list of numbers"),
            (json.dumps(sample(prev_logprobs=[None, "1.5", 0, 0, 0])), "'1.5' at position 1"),
            (json.dumps(sample(prev_logprobs=[10**400] * 5)), "too large in 'prev_logprobs'"),
            (json.dumps(sample(rewards="high")), "'high' for 'rewards'; wanted a number"),
            (json.dumps(sample(rewards=[1, 2])), "[1, 2] for 'rewards'"),
            (json.dumps(sample(token_ids=[1, None, 3, 4, 5])), "a blank in 'token_ids'"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_a_line_that_cannot_be_read_is_named_and_the_others_are_read(self, line, words):
        data = json_lines(sample()) + line.encode() + b"\n\n" + json_lines(sample(rewards=0))
        found = read(NAME, data)
        assert found.numbers["rewards"].tolist() == [1, 0]
        note = next(note for note in found.notes if "left out" in note)
        assert "line 2 " in note
        assert words in note
        assert found.tokens(1).arrays["logp_old"].tolist() == [-0.5, -2]

    def test_text_of_another_encoding_is_a_line_that_cannot_be_read(self):
        good = json_lines(*[sample()] * 300)  # more than the first look sees
        found = read(NAME, good + b'{"content": "\xff"}\n')
        assert any("line 301 is not UTF-8 text" in note for note in found.notes)

    def test_many_bad_lines_are_one_note(self):
        found = read(NAME, json_lines(sample()) + b"{\n" * 500)
        assert sum("499 more lines" in note for note in found.notes) == 1

    def test_no_line_at_all_is_an_error_with_the_first_reason(self):
        bad = json_lines(sample(rewards="x"), sample(rewards="y"))
        assert "line 1 has 'x' for 'rewards'" in refusal(read, NAME, bad)

    def test_a_line_beyond_the_limit_is_refused_before_it_is_parsed(self, monkeypatch):
        monkeypatch.setitem(BOUNDS, "line bytes", (600, "bytes in one line", "Write less"))
        data = json_lines(sample(), sample(content="x" * 1000))
        assert "line 2: longer than 600 bytes" in refusal(read, NAME, data)

    @pytest.mark.parametrize("value", ["NaN", "Infinity", "null", "[]", "-Infinity", "1e999"])
    def test_a_reward_that_is_no_number_is_blank(self, value):
        line = json.dumps(sample()).replace('"rewards": 1.0', f'"rewards": {value}')
        assert np.isnan(read(NAME, line.encode() + b"\n").numbers["rewards"][0])

    @pytest.mark.parametrize("value", ["NaN", "Infinity", "null", "0.5"])
    def test_a_log_probability_that_is_none_hides_the_tokens_not_the_rewards(self, value):
        line = json.dumps(sample()).replace("-2.0", value)
        found = read(NAME, json_lines(sample()) + line.encode() + b"\n")
        assert found.numbers["rewards"].tolist() == [1, 1]
        assert found.tokens(0) is not None
        assert found.tokens(1) is None
        assert any("no usable logp_new" in note and "line 2" in note for note in found.notes)

    def test_what_stands_at_the_prompt_and_in_padding_is_nothing(self):
        line = sample(prev_logprobs=[None, 7, -0.5, -2, float("nan")])
        assert read(NAME, json_lines(line)).tokens(0).arrays["logp_old"].tolist() == [-0.5, -2]

    def test_a_sample_without_a_trained_token_has_no_advantage(self):
        found = read(NAME, json_lines(sample(token_loss_mask=[0] * 5)))
        assert found.lengths.tolist() == [0]
        assert np.isnan(found.numbers["advantages"][0])
        assert len(found.tokens(0).arrays["mask"]) == 0

    def test_texts_and_names_are_data(self):
        evil = "<script>alert(1)</script>\x1b[31m"
        assert read(NAME, json_lines(sample(content=["q", evil]))).texts([0]) == [("q", evil)]
