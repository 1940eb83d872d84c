"""Columns whose names say too little: the survey asks for every one, and a choice opens the run."""

import json

import pytest

from pages._ui.runs.opening import asking_all, look, open_run, sources_of_uploads
from pages._ui.runs.records import RolesNeeded, RunFileError
from tests.unit.run_files import lines, parquet, trl, trl_name, uploaded

# Names that say nothing: a step, a prompt, a completion, a reward, a text.
ROWS = [
    {
        "a": step,
        "b": prompt,
        "c": f"{prompt}{at}" + "!" * (step - 1),
        "d": float(at % 2),
        "e": "text",
    }
    for step in (1, 2)
    for prompt in "xy"
    for at in range(3)
]
KINDS = {
    "a.csv": "\n".join(
        [",".join(ROWS[0]), *(",".join(str(cell) for cell in row.values()) for row in ROWS)]
    ).encode(),
    "a.parquet": parquet({name: [row[name] for row in ROWS] for name in ROWS[0]}),
    "a.jsonl": lines(ROWS),
    "a.json": json.dumps(ROWS).encode(),
}
ROLES = {"a": "step", "b": "prompt", "c": "completion", "d": "term", "e": "ignore"}


def survey_of(files):
    return look(sources_of_uploads(list(files.items())))


@pytest.mark.parametrize("name", KINDS)
class TestNamesThatSayNothing:
    def test_every_column_is_asked_and_shown_with_an_example(self, name):
        columns = survey_of({name: KINDS[name]}).columns
        assert [column.name for column in columns] == list("abcde")
        assert all(column.asked for column in columns)
        assert [column.example for column in columns][1:3] == ["x", "x0"]

    def test_only_opening_refuses_and_says_that_roles_are_needed(self, name):
        with pytest.raises(RolesNeeded, match="no column with the prompt; its columns are 'a'"):
            open_run(survey_of({name: KINDS[name]}))

    def test_a_choice_opens_it(self, name):
        run = open_run(survey_of({name: KINDS[name]}), ROLES)
        assert run.run.steps.tolist() == [1, 1, 2, 2]
        assert run.run.names == ("d",)
        assert run.run.terms[..., 0].tolist() == [[0, 1, 0]] * 4
        assert run.texts(1)[0] == ("y", "y0")

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"d": "ignore"}, "no column with a reward"),
            ({"b": "ignore"}, "no column with the prompt"),
            ({"e": "term"}, "wanted a number"),
            ({"e": "advantage"}, "wanted a number"),
            ({"c": "step", "a": "ignore"}, "wanted a"),
        ],
        ids=str,
    )
    def test_a_choice_that_does_not_fit_can_be_mended(self, name, changes, words):
        with pytest.raises(RolesNeeded, match=words):
            open_run(survey_of({name: KINDS[name]}), ROLES | changes)


class TestTrainersFiles:
    @pytest.mark.parametrize(
        "columns",
        [
            trl(step=["step-1"] * 4),
            trl(accuracy_reward=["good"] * 4),
            trl(accuracy_reward=[[1.0, 2.0]] * 4),
            trl(accuracy_reward=[None] * 4),
            trl(accuracy_reward=None),
            trl(prompt=[[1, 2]] * 4),
        ],
        ids=["step", "text", "lists", "blank", "no reward", "no prompt"],
    )
    def test_what_another_choice_could_mend_is_told_apart(self, columns):
        with pytest.raises(RolesNeeded):
            uploaded({trl_name(1): parquet(columns)})

    def test_a_survey_can_ask_for_all_columns(self):
        survey = survey_of({trl_name(1): parquet(trl(step=["step-1"] * 4))})
        assert not any(column.asked for column in survey.columns)
        asked = asking_all(survey)
        assert all(column.asked for column in asked.columns)
        assert open_run(asked, {"step": "ignore"}).run.every_step.tolist() == [1]

    def test_one_file_that_can_be_read_is_enough(self):
        files = {trl_name(1): parquet(trl()), trl_name(2): parquet(trl(step=["x"] * 4))}
        assert uploaded(files).run.every_step.tolist() == [1]


class TestWhatNoChoiceMends:
    @pytest.mark.parametrize(
        "files",
        [
            {"a.csv": b"prompt,completion,label\nx,y,z\n"},
            {"a.jsonl": lines([{"loss": 1.0, "step": 2}])},
            {"a.json": json.dumps({"a": 1, "b": "x"}).encode()},
            {"a.parquet": parquet(trl())[:-9]},
            {"a.csv": b"a,b\n"},
        ],
        ids=["no number", "a log", "no records", "cut off", "no rows"],
    )
    def test_is_refused_as_before(self, files):
        with pytest.raises(RunFileError) as error:
            uploaded(files)
        assert not isinstance(error.value, RolesNeeded)

    def test_records_of_unknown_names_beside_a_run_stay_left_out(self):
        run = uploaded({trl_name(1): parquet(trl()), "other.jsonl": KINDS["a.jsonl"]})
        assert run.format.key == "trl"
        assert "other.jsonl is of no known format" in run.notes[0]


@pytest.mark.parametrize("name", ["__index_level_0__", "Unnamed: 0", ""])
def test_numbers_of_rows_that_pandas_wrote_are_no_reward(name):
    run = uploaded({trl_name(1): parquet(trl(**{name: [0, 1, 2, 3]}))})
    assert run.run.names == ("accuracy_reward",)
    assert run.roles[name] == "ignore"
