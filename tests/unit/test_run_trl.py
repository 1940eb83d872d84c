"""TRL's completions: what is one group, one batch, one reward, whatever version wrote them."""

import json

import numpy as np
import pyarrow as pa
import pytest

from pages._ui.runs.opening import look, sources_of_path, sources_of_uploads
from pages._ui.runs.records import RunFileError
from tests.unit.run_files import (
    cells,
    opened,
    parquet,
    roles_of,
    trl,
    trl_name,
    trl_run,
    uploaded,
    written,
    zipped,
)

LOG = [{"loss": 0.5, "step": 1}, {"loss": 0.25, "step": 2}, {"train_runtime": 3.0, "step": 2}]


def one(**columns):
    return uploaded({trl_name(1): parquet(trl(**columns))})


class TestThreeWaysToOpen:
    def files(self):
        return trl_run() | {"trainer_state.json": json.dumps({"log_history": LOG}).encode()}

    def check(self, run):
        assert run.format.key == "trl"
        assert run.run.steps.tolist() == [1, 1, 2, 2, 3, 3]
        assert run.run.names == ("accuracy_reward",)
        assert run.run.present.all()
        assert run.run.terms[..., 0].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1], [1, 0], [1, 0]]
        assert run.run.advantages[0].tolist() == [1, -1]
        assert run.texts(2) == (("a?", "answer 2.0"), ("a?", "answer 2.1"))
        assert run.log.values["loss"].tolist() == [0.5, 0.25]
        assert run.notes == ()

    def test_a_folder(self, tmp_path):
        self.check(opened(written(tmp_path / "my-run", self.files())))
        assert look(sources_of_path(str(tmp_path / "my-run"))).name == "my-run"

    def test_a_zip_on_disk(self, tmp_path):
        (tmp_path / "run.zip").write_bytes(zipped(self.files()))
        self.check(opened(tmp_path / "run.zip"))

    def test_a_zip_that_is_uploaded(self):
        self.check(uploaded({"run.zip": zipped(self.files())}))

    def test_several_files_that_are_uploaded(self):
        flat = {name.split("/")[-1]: data for name, data in self.files().items()}
        self.check(uploaded(flat))

    def test_one_file(self, tmp_path):
        written(tmp_path, trl_run(steps=[7]))
        assert opened(tmp_path / trl_name(7)).run.every_step.tolist() == [7]

    def test_files_are_in_the_order_of_their_numbers(self):
        run = uploaded({f"{step}.parquet": parquet(trl(step)) for step in (10, 9, 100)})
        assert run.run.steps.tolist() == [9, 9, 10, 10, 100, 100]


class TestTexts:
    MESSAGES = [[{"role": "user", "content": "a?"}]] * 2 + [[{"role": "user", "content": "b?"}]] * 2

    @pytest.mark.parametrize(
        "kind",
        [
            pa.string(),
            pa.large_string(),
            pa.string_view(),
            pa.dictionary(pa.int32(), pa.string()),
        ],
        ids=str,
    )
    def test_any_type_of_string(self, kind):
        run = one(completion=pa.array(["wide", "é", "", None], pa.string()).cast(kind))
        assert run.run.lengths[0].tolist() == [4, 1]
        assert run.run.lengths[1, 0] == 0
        assert np.isnan(run.run.lengths[1, 1])
        assert run.run.unit == "characters"
        assert cells(run) == [["wide", "é"], ["", ""]]

    def test_lists_of_messages_are_their_contents(self):
        answers = [
            [{"role": "assistant", "content": "yes"}],
            [{"role": "assistant", "content": "n"}, {"role": "user", "content": "o"}],
            [],
            None,
        ]
        run = one(prompt=self.MESSAGES, completion=answers)
        assert run.run.present.shape == (2, 2)
        assert run.texts(0) == (("a?", "yes"), ("a?", "n\no"))
        assert run.run.lengths[0].tolist() == [3, 3]
        assert run.texts(1) == (("b?", ""), ("b?", ""))

    def test_messages_of_parts_are_their_texts(self):
        content = [[{"type": "text", "text": "see"}, {"type": "text", "text": "here"}]]
        prompts = [[{"role": "user", "content": content[0]}]] * 4
        assert one(prompt=prompts).texts(0)[0][0] == "see\nhere"

    def test_messages_group_like_strings(self):
        assert one(prompt=self.MESSAGES).run.present.tolist() == one().run.present.tolist()

    def test_texts_of_rows_in_several_row_groups(self):
        data = parquet(trl(prompts=("a?", "b?", "c?"), size=4), row_group_size=5)
        run = uploaded({trl_name(1): data})
        assert cells(run)[1] == [f"answer 1.{at}" for at in (4, 5, 6, 7)]
        assert cells(run)[2] == [f"answer 1.{at}" for at in (8, 9, 10, 11)]

    def test_markup_and_control_characters_stay_as_they_are(self):
        strange = ["<script>alert(1)</script>", "\x00\x1b[31m", "$$x$$", "‮"]
        assert cells(one(completion=strange)) == [strange[:2], strange[2:]]


class TestColumns:
    def test_rewards_that_are_not_called_so_are_asked(self):
        found = look(
            sources_of_uploads(
                [(trl_name(1), parquet(trl(brevity=[1, 2, 3, 4], solution=["x"] * 4)))]
            )
        ).columns
        about = {column.name: (column.role, column.asked) for column in found}
        assert about["accuracy_reward"] == ("term", False)
        assert about["brevity"] == ("term", True)
        assert about["solution"] == ("ignore", False)
        assert about["prompt"] == ("prompt", False)

    def test_roles_that_are_chosen_win(self):
        columns = trl(brevity=[1, 2, 3, 4])
        run = uploaded({trl_name(1): parquet(columns)}, {"brevity": "measure"})
        assert run.run.names == ("accuracy_reward",)
        assert run.run.measures["brevity"].tolist() == [[1, 2], [3, 4]]
        assert run.roles["brevity"] == "measure"

    def test_what_is_ignored_is_not_read(self):
        columns = trl(brevity=[1, 2, 3, 4])
        run = uploaded({trl_name(1): parquet(columns)}, {"brevity": "ignore"})
        assert "brevity" not in run.rows.numbers

    def test_a_total_beside_terms_is_the_total(self):
        run = one(reward=[1.5, 0.5, 2, 1])
        assert run.run.names == ("accuracy_reward",)
        assert run.run.totals.tolist() == [[1.5, 0.5], [2, 1]]

    def test_old_files_have_a_reward_and_no_advantage(self):
        run = one(accuracy_reward=None, advantage=None, reward=[1, 0, 1, 0])
        assert run.run.names == ("reward",)
        assert run.run.totals is None
        assert run.run.advantages is None

    def test_advantages_may_be_plural(self):
        run = one(advantage=None, advantages=[1, -1, 1, -1])
        assert run.run.advantages.tolist() == [[1, -1], [1, -1]]

    def test_a_blank_reward_is_a_missing_score(self):
        run = one(accuracy_reward=[1.0, None, float("nan"), 0.0])
        np.testing.assert_array_equal(run.run.terms[..., 0], [[1, np.nan], [np.nan, 0]])
        assert run.run.present.all()

    @pytest.mark.parametrize(
        "values",
        [
            pa.array([True, False, True, False]),
            pa.array([[1.0], [0.0], [1.0], [0.0]]),
            pa.array(["1", "0", "1.0", " 0 "]),
            pa.array([1, 0, 1, 0], pa.int8()),
            pa.array([1, 0, 1, 0], pa.float16()),
            pa.array([1, 0, 1, 0]).cast(pa.decimal128(24, 3)),
        ],
        ids=lambda values: str(values.type),
    )
    def test_a_reward_may_be_of_any_kind_of_number(self, values):
        columns = trl(accuracy_reward=values)
        run = uploaded({trl_name(1): parquet(columns)}, {"accuracy_reward": "term"})
        assert run.run.terms[..., 0].tolist() == [[1, 0], [1, 0]]

    def test_columns_of_several_files_come_together(self):
        files = {
            trl_name(1): parquet(trl(1)),
            trl_name(2): parquet(trl(2, format_reward=[1, 2, 3, 4])),
        }
        run = uploaded(files)
        assert run.run.names == ("accuracy_reward", "format_reward")
        assert np.isnan(run.run.terms[:2, :, 1]).all()
        assert run.run.terms[2:, :, 1].tolist() == [[1, 2], [3, 4]]

    def test_an_infinite_reward_counts_as_blank_and_is_named(self):
        run = one(accuracy_reward=[1.0, float("inf"), 0.0, float("-inf")])
        np.testing.assert_array_equal(run.run.terms[..., 0], [[1, np.nan], [0, np.nan]])
        (note,) = run.notes
        assert trl_name(1) in note
        assert "row 1 is inf; 2 such cells" in note

    @pytest.mark.parametrize("value", [1.7e308, -1.7e308, 1.1e100])
    @pytest.mark.parametrize("column", ["accuracy_reward", "advantage"])
    def test_so_does_one_that_nothing_can_be_computed_from(self, value, column):
        run = one(**{column: [1.0, value, 0.0, 1e100]})
        found = run.run.terms[..., 0] if column == "accuracy_reward" else run.run.advantages
        np.testing.assert_array_equal(found, [[1, np.nan], [0, 1e100]])
        (note,) = run.notes
        assert f"column {column!r}, row 1 is {value:g}; it counts as blank" in note


class TestSteps:
    def test_a_step_in_quotes(self):
        assert one(step=["5"] * 4).run.every_step.tolist() == [5]

    def test_several_steps_in_one_file(self):
        run = one(step=[3, 3, 4, 4], prompt=["a?"] * 4)
        assert run.run.steps.tolist() == [3, 4]

    def test_without_a_column_the_name_of_the_file_says_it(self):
        run = uploaded({trl_name(30): parquet(trl(step=None))})
        assert run.run.every_step.tolist() == [30]
        assert run.notes == ()

    def test_without_a_name_it_is_zero_and_said(self):
        run = uploaded({"mine.parquet": parquet(trl(step=None))})
        assert run.run.every_step.tolist() == [0]
        assert "names no step" in run.notes[0]

    @pytest.mark.parametrize(
        ("value", "words"), [(1.5, "row 1 is 1.5"), (None, "row 1 is missing"), (1e300, "1e+300")]
    )
    def test_a_step_that_is_no_whole_number_is_refused(self, value, words):
        with pytest.raises(RunFileError) as error:
            one(step=pa.array([1.0, value, 1.0, 1.0]))
        assert words in str(error.value)
        assert trl_name(1) in str(error.value)


class TestGuesses:
    def test_of_a_plain_file(self):
        assert roles_of(trl_run()) == {
            "step": "step",
            "prompt": "prompt",
            "completion": "completion",
            "accuracy_reward": "term",
            "advantage": "advantage",
        }

    def test_an_example_is_shown_for_each_column(self):
        found = look(sources_of_uploads(list(trl_run().items()))).columns
        examples = {column.name: column.example for column in found}
        assert examples["prompt"] == "a?"
        assert examples["accuracy_reward"] == "1.0"
