"""JSON Lines of verl, ms-swift and AReaL, and lists of records of any names."""

import json

import numpy as np
import pytest

from pages._ui.runs import first_values
from pages._ui.runs.opening import look, sources_of_uploads
from pages._ui.runs.records import RunFileError
from tests.unit.run_files import cells, lines, opened, roles_of, uploaded, written


def verl(step, prompts="abab", **columns):
    """Records of one step as verl's older trainer writes them: the rows of a prompt apart."""
    return [
        {
            "input": prompt,
            "output": f"{prompt}{at}" + "!" * (step - 1),
            "gts": [1],
            "score": float(at),
            "step": step,
        }
        | {name: values[at] for name, values in columns.items()}
        for at, prompt in enumerate(prompts)
    ]


def swift(step, **columns):
    return {
        "step": [str(step)] * 4,
        "prompt": ["a", "a", "b", "b"],
        "completion": [f"{step}.{at}" for at in range(4)],
        "Accuracy": [1.0, 0.0, None, float("nan")],
        "advantages": [0.7, -0.7, 0.0, 0.0],
    } | columns


def refusal(files):
    with pytest.raises(RunFileError) as error:
        uploaded(files)
    return str(error.value)


class TestVerl:
    def test_a_folder_of_steps(self, tmp_path):
        files = {f"rollout/{step}.jsonl": lines(verl(step)) for step in (1, 12)}
        run = opened(written(tmp_path, files))
        assert run.format.key == "verl"
        assert run.run.steps.tolist() == [1, 1, 12, 12]
        assert cells(run)[0] == ["a0", "a2"]
        assert run.run.names == ("score",)
        assert run.run.totals is None
        assert run.run.terms[1, :, 0].tolist() == [1, 3]
        assert run.run.lengths[0].tolist() == [2, 2]
        assert run.run.unit == "characters"

    def test_the_newer_trainer_writes_the_group_into_the_uid(self):
        uids = ["s_1_0_0", "s_1_1_0", "s_2_0_0", "s_2_1_0"]
        run = uploaded({"1.jsonl": lines(verl(1, prompts="aaaa", uid=uids))})
        assert cells(run) == [["a0", "a1"], ["a2", "a3"]]

    def test_the_score_is_the_whole_reward_and_what_verl_adds_is_followed_and_asked(self):
        extra = {"acc": [True, False] * 2, "overlong_reward": [0.0, -1] * 2, "pred": ["7"] * 4}
        extra |= {"format": [1, 1, 0, 1], "reward": [9.0] * 4}
        files = {"1.jsonl": lines(verl(1, **extra))}
        found = look(sources_of_uploads(list(files.items()))).columns
        about = {column.name: (column.role, column.asked) for column in found}
        assert about["acc"] == ("measure", True)
        assert about["score"] == ("term", False)
        for name in ("overlong_reward", "format", "reward"):
            assert about[name] == ("measure", True), name
        assert about["pred"] == ("ignore", False)
        run = uploaded(files)
        assert run.run.names == ("score",)
        assert run.run.totals is None
        assert run.run.terms[..., 0].tolist() == [[0, 2], [1, 3]]
        assert run.run.measures["acc"].tolist() == [[1, 1], [0, 0]]
        assert run.run.measures["overlong_reward"].tolist() == [[0, 0], [-1, -1]]

    def test_bare_words_for_what_is_no_number(self):
        records = verl(1)
        records[0]["score"], records[1]["score"] = float("nan"), float("inf")
        run = uploaded({"1.jsonl": lines(records)})
        np.testing.assert_array_equal(run.run.terms[..., 0], [[np.nan, 2], [np.nan, 3]])
        assert "row 1 is inf" in run.notes[0]

    @pytest.mark.parametrize("value", [None, "four", 4, [1, [2]], {"a": 1}])
    def test_the_right_answer_may_be_anything(self, value):
        assert uploaded({"1.jsonl": lines(verl(1, gts=[value] * 4))}).run.present.all()

    def test_scalars_may_be_lists_of_one(self):
        records = [record | {"score": [1.5], "step": [3]} for record in verl(1)]
        run = uploaded({"1.jsonl": lines(records)})
        assert run.run.terms[..., 0].tolist() == [[1.5, 1.5]] * 2
        assert run.run.every_step.tolist() == [3]

    def test_the_name_gives_the_step_where_no_record_does(self):
        records = [{k: v for k, v in record.items() if k != "step"} for record in verl(1)]
        assert uploaded({"12.jsonl": lines(records)}).run.every_step.tolist() == [12]

    def test_training_is_read_and_validation_named(self, tmp_path):
        files = {f"rollout/{step}.jsonl": lines(verl(step)) for step in (1, 2)}
        files |= {f"validation/{step}.jsonl": lines(verl(step)) for step in (0, 1, 2)}
        run = opened(written(tmp_path, files))
        assert run.run.every_step.tolist() == [1, 2]
        assert "validation/0.jsonl and 2 like it (verl rollouts) were left out" in run.notes[0]

    def test_a_validation_folder_by_itself_is_read(self, tmp_path):
        folder = written(tmp_path / "validation", {"0.jsonl": lines(verl(0))})
        assert opened(folder).run.every_step.tolist() == [0]

    def test_a_broken_line_is_named_and_the_others_are_read(self):
        data = lines(verl(1)) + b'{"input": "a", "outp\n' + lines([{"input": "c"}])
        run = uploaded({"1.jsonl": data})
        assert run.run.present.sum() == 5
        assert "1.jsonl: line 5 is not JSON" in run.notes[0]

    def test_a_text_for_a_reward_is_named(self):
        records = verl(1)
        records[2]["score"] = "good"
        run = uploaded({"1.jsonl": lines(records)})
        assert "line 3 has 'good' for 'score'; wanted a number" in run.notes[0]
        assert run.run.present.sum() == 3

    def test_a_byte_order_mark_and_blank_lines(self):
        data = b"\xef\xbb\xbf" + lines(verl(1)).replace(b"\n", b"\r\n\r\n")
        run = uploaded({"1.jsonl": data})
        assert run.notes == ()
        assert cells(run)[0] == ["a0", "a2"]

    def test_halves_of_characters_are_shown_as_such(self):
        records = verl(1)
        records[0]["output"] = "\ud800 half"
        run = uploaded({"1.jsonl": lines(records)})
        cells(run)[0][0].encode("utf-8")
        assert cells(run)[0][0].endswith(" half")


class TestSwift:
    def test_a_step_a_line(self):
        run = uploaded({"completions.jsonl": lines([swift(10), swift(20)])})
        assert run.format.key == "swift"
        assert run.run.steps.tolist() == [10, 10, 20, 20]
        assert run.run.names == ("Accuracy",)
        np.testing.assert_array_equal(run.run.terms[0, :, 0], [1, 0])
        assert np.isnan(run.run.terms[1]).all()
        assert run.run.advantages[2].tolist() == [0.7, -0.7]
        assert cells(run)[3] == ["20.2", "20.3"]
        assert run.texts(3)[0][0] == "b"

    @pytest.mark.parametrize(
        "first", [[None, 0.5, 1.0, 0.5], [None] * 4, [], None, "missing"], ids=str
    )
    def test_a_reward_that_begins_with_blanks_is_a_reward(self, first):
        records = [swift(1, Format=first), swift(2, Format=[None, 1.0, 0.0, None])]
        if first == "missing":
            del records[0]["Format"]
        run = uploaded({"completions.jsonl": lines(records)})
        assert run.run.names == ("Accuracy", "Format")
        np.testing.assert_array_equal(run.run.terms[-2:, :, 1], [[np.nan, 1], [0, np.nan]])
        assert run.run.every_step.tolist() == [1, 2]

    def test_a_reward_that_is_blank_all_over_is_named(self):
        records = [swift(step, Format=[None] * 4) for step in (1, 2)]
        run = uploaded({"completions.jsonl": lines(records)})
        assert run.run.names == ("Accuracy",)
        assert run.notes == ("Left out as blank wherever it was looked at: column 'Format'.",)
        assert run.columns[-1].asked

    def test_lists_of_messages(self):
        prompts = [[{"role": "user", "content": text}] for text in "aabb"]
        run = uploaded({"completions.jsonl": lines([swift(1, prompt=prompts)])})
        assert run.texts(1)[0] == ("b", "1.2")

    def test_lists_of_unequal_length_are_named(self):
        data = lines([swift(1), swift(2, Accuracy=[1.0]), swift(3)])
        run = uploaded({"completions.jsonl": data})
        assert run.run.every_step.tolist() == [1, 3]
        assert "line 2 has 1 values in 'Accuracy' and 4 prompts" in run.notes[0]

    def test_a_step_for_all(self):
        run = uploaded(
            {"completions.jsonl": lines([swift(1) | {"step": [7]}, swift(1) | {"step": 8}])}
        )
        assert run.run.every_step.tolist() == [7]  # the second line repeats the first
        assert "repeat" in run.notes[0]

    def test_text_among_the_rewards(self):
        data = lines([swift(1), swift(2, Accuracy=[1.0, "x", 0, 0])])
        assert "line 2" in uploaded({"completions.jsonl": data}).notes[0]


class TestColumnsThatBeginWithBlanks:
    def test_verl(self):
        acc = [None, True, False, None]
        run = uploaded({"1.jsonl": lines(verl(1, acc=acc)), "2.jsonl": lines(verl(2))})
        np.testing.assert_array_equal(run.run.measures["acc"][0], [np.nan, 0])

    def test_a_column_that_only_another_file_fills(self):
        files = {"1.jsonl": lines(verl(1, acc=[None] * 4)), "2.jsonl": lines(verl(2, acc=[1] * 4))}
        assert uploaded(files).run.measures["acc"][-1].tolist() == [1, 1]

    @pytest.mark.parametrize("name", ["mine.jsonl", "mine.json"])
    def test_records_of_any_names(self, name):
        records = [record | {"other": at or None} for at, record in enumerate(RECORDS)]
        data = lines(records) if name.endswith("l") else json.dumps(records).encode()
        run = uploaded({name: data}, {"other": "term", "correct": "ignore"})
        assert run.run.names == ("other",)
        assert np.nansum(run.run.terms) == 6

    def test_what_a_trainer_leaves_blank_is_not_told(self):
        assert uploaded({"1.jsonl": lines(verl(1, gts=[None] * 4))}).notes == ()

    def test_a_reward_that_is_no_number_is_named(self):
        extra = {"format_reward": [[1, 2]] * 4, "reward_model": [{"style": "rule"}] * 4}
        (note,) = uploaded({"1.jsonl": lines(verl(1, **extra))}).notes
        assert note == (
            "Left out as texts or lists, not numbers: columns 'format_reward', 'reward_model'."
        )

    def test_a_column_that_begins_below_all_that_was_looked_at_is_named(self):
        records = [*verl(1, "ab" * 60), *verl(1, "ab", late=[1, 0])]
        (note,) = uploaded({"1.jsonl": lines(records)}).notes
        assert note == "1.jsonl: left out a column that no earlier record has: 'late'."
        steps = [*(swift(step) for step in range(1, 61)), swift(61, Late=[1.0] * 4)]
        (note,) = uploaded({"completions.jsonl": lines(steps)}).notes
        assert "'Late'" in note

    def test_no_more_is_read_than_is_needed(self, monkeypatch):
        monkeypatch.setattr(first_values, "BYTES", 10_000)
        record = verl(1)[0] | {"acc": None}
        late = lines([record | {"output": "x" * 4000}] * 5 + [record | {"acc": 1.0}])
        run = uploaded({"1.jsonl": late})
        assert "acc" not in run.run.measures
        assert "blank wherever it was looked at: column 'acc'" in run.notes[0]


class TestAreal:
    def test_a_file_for_each_task_in_a_folder_for_each_version(self, tmp_path):
        files = {}
        for version in (6, 7):
            for task in (17, 18):
                files[f"rollout/{version}/{task}.jsonl"] = lines(
                    {
                        "task_id": task,
                        "sample_idx": at,
                        "seqlen": 10 + at,
                        "prompt_len": 3,
                        "head_version": version - 1,
                        "tail_version": version,
                        "reward": float(at),
                        "prompt": "p",
                        "completion": f"{task}.{at}",
                    }
                    for at in range(3)
                )
        run = opened(written(tmp_path, files))
        assert run.format.key == "areal"
        assert run.run.steps.tolist() == [6, 6, 7, 7]
        assert run.run.unit == "tokens"
        assert run.run.lengths[0].tolist() == [7, 8, 9]
        assert cells(run)[1] == ["18.0", "18.1", "18.2"]


RECORDS = [
    {"question": "a", "response": "x" * at, "correct": at % 2, "label": "l"} for at in range(4)
]


class TestRecordsOfAnyNames:
    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("mine.jsonl", lines(RECORDS)),
            ("mine.json", json.dumps(RECORDS, indent=1).encode()),
            ("mine.json", json.dumps(RECORDS).encode()),
        ],
    )
    def test_lines_or_one_list(self, name, data):
        run = uploaded({name: data})
        assert run.format.key == "table"
        assert run.run.names == ("correct",)
        assert cells(run) == [["", "x", "xx", "xxx"]]
        assert all(column.asked for column in run.columns)

    def test_roles_are_guessed(self):
        assert roles_of({"mine.jsonl": lines(RECORDS)}) == {
            "question": "prompt",
            "response": "completion",
            "correct": "term",
            "label": "ignore",
        }


class TestNothingToRead:
    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"", "is empty"),
            (b" \n \n", "nothing but blanks"),
            (b'{"input": ', "is not JSON"),
            (b'{"input": "a"}\n{"input": "b"}\n', "of no known format"),
            (b"[1, 2]\n", "no table"),
            (b'{"a":' * 100_000, "nested too deeply"),
            (b'{"a": ' + b"9" * 10_000 + b"}\n", "too many digits"),
            (lines([{"input": "a", "output": "b", "score": "good"}] * 2), "'good' for 'score'"),
            (b"\xff\xfe{\x00", "UTF-16"),
            (b'{"a": "\xff"}\n', "no UTF-8 text"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_says_why(self, data, words):
        said = refusal({"1.jsonl": data})
        assert "1.jsonl" in said
        assert words in said

    def test_all_scores_blank(self):
        assert "no completion has a score in 'score'" in refusal(
            {"1.jsonl": lines(verl(1, score=[None] * 4))}
        )
