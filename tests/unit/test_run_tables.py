"""Tables of a run: what stands in them is what was counted, and a spreadsheet runs nothing."""

import csv
import io
import zipfile

import numpy as np
import pytest

from grpo_core.runs.run import total_rewards
from pages._ui.run_tables import (
    completions_table,
    every_table,
    groups_table,
    log_table,
    misfit_table,
    steps_table,
    tables_csv,
    tried_table,
)
from tests.unit.made_runs import awkward, hacked, made, made_log, shown

RUNS = awkward()
every_run = pytest.mark.parametrize("name", list(RUNS))


def opened(data):
    """Name -> rows of each CSV in a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {
            name: list(csv.reader(io.StringIO(archive.read(name).decode(), newline="")))
            for name in archive.namelist()
        }


@every_run
def test_every_table_of_every_run_has_columns_of_different_names(name):
    for table in every_table(RUNS[name]).values():
        assert table.columns.is_unique
        assert len(table)


@every_run
def test_every_group_and_completion_stands_in_its_table_once(name):
    run = RUNS[name].run
    tables = every_table(RUNS[name])
    assert tables["groups"]["group"].tolist() == list(range(len(run.steps)))
    assert len(tables["completions"]) == run.present.sum()
    assert tables["steps"]["step"].tolist() == run.every_step.tolist()


def test_nothing_is_rounded():
    run = shown(log=made_log([0, 1], reward=[0.1 + 0.2, 1 / 3]))
    assert np.array_equal(steps_table(run)["total reward"], run.series.reward)
    assert log_table(run.log)["reward"].tolist() == [0.1 + 0.2, 1 / 3]
    read = opened(tables_csv(run))["log.csv"]
    at = read[0].index("reward")
    assert [float(row[at]) for row in read[1:]] == [0.1 + 0.2, 1 / 3]


def test_without_a_log_its_table_is_empty():
    assert len(log_table(None)) == 0
    assert "log" not in every_table(shown())


def test_the_rule_that_fits_stands_first_and_only_it_fits():
    table = tried_table(shown(log=made_log([0])).fit)
    assert table["fits"].tolist()[0]
    assert "sample standard deviation" in table["rule"][0]
    assert table["weights"][0] == "1, 0.25"
    assert np.all(np.diff(table["error"][~table["fits"]]) >= 0)
    assert tried_table(RUNS["no advantages, no lengths"].fit).columns.tolist() == [
        "rule", "weights", "eps", "error", "fits"
    ]  # fmt: skip


def test_a_weight_that_nothing_tells_is_a_question_mark():
    terms = made().terms.copy()
    terms[..., 1] = 1.0
    assert tried_table(shown(made(terms=terms)).fit)["weights"][0].endswith("?")


def test_misfits_stand_worst_first_and_no_more_than_asked_for():
    advantages = made().advantages.copy()
    advantages[3, 0] += 1.0
    advantages[8, 0] += 2.0
    run = shown(made(advantages=advantages))
    assert misfit_table(run, 50)["group"].tolist() == [8, 3]
    assert misfit_table(run, 1)["group"].tolist() == [8]
    assert misfit_table(run, 50)["off"].tolist() == pytest.approx([2, 1], abs=1e-3)


def test_a_group_is_summed_up_as_a_trainer_does():
    run = shown()
    table = groups_table(run, 4)
    assert table["group"].tolist() == [8, 9]
    totals = total_rewards(run.run, run.fit.weights)[8:10]
    assert np.allclose(table["mean"], totals.mean(axis=1))
    assert np.allclose(table["std"], totals.std(axis=1, ddof=1))
    largest = np.abs(run.run.advantages[8:10]).max(axis=1)
    assert np.array_equal(table["largest advantage logged"], largest)


def test_what_decides_a_group_is_what_has_the_largest_share():
    run = hacked()
    table = every_table(run)["groups"]
    for q in range(len(table)):
        parts = run.run.terms[q] * run.fit.weights
        apart = parts.sum(axis=1) - parts.sum(axis=1).mean()
        wanted = ("task", "bonus")[int(np.argmax(apart @ parts))]  # largest covariance
        said = "nothing" if run.fit.tied[q] else wanted
        assert table["decided by"][q] == said
    assert set(table["decided by"]) >= {"task", "bonus"}


def test_a_tied_group_is_decided_by_nothing():
    table = every_table(RUNS["all but one tied"])["groups"]
    assert table["decided by"].tolist()[1:] == ["nothing"] * 23
    assert table["std"].tolist()[1:] == [0.0] * 23


def test_a_group_of_one_has_no_std():
    assert np.isnan(every_table(RUNS["groups of one"])["groups"]["std"]).all()


def test_completions_stand_with_all_that_is_known_of_them():
    run = RUNS["ragged"]
    table = completions_table(run, 0)
    assert table["completion"].tolist() == [0, 1, 2]
    assert table.columns.tolist() == [
        "completion", "correct", "format", "total", "logged advantage", "recomputed advantage",
        "length",
    ]  # fmt: skip
    assert np.array_equal(table["correct"], run.run.terms[0, :3, 0])
    assert "acc" in completions_table(RUNS["a measure is the task"], 0)
    assert "length" not in completions_table(RUNS["no advantages, no lengths"], 0)


def test_a_term_that_is_called_like_a_column_keeps_a_column_of_its_own():
    table = completions_table(RUNS["names of columns"], 0)
    assert {"completion", "completion (2)", "total", "total (2)"} <= set(table.columns)


def test_prompts_stand_beside_the_groups():
    run = shown()
    table = every_table(run, [f"prompt {q}" for q in range(24)])["groups"]
    assert table["prompt"][23] == "prompt 23"


FORMULAS = (
    *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", '"=1', "a;=1", "a\n=1", "a,=1"),
    *("=cmd|' /C calc'!A0", "a\r\n\t =1", ";;=1"),
)


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula_whatever_separates_cells(text):
    run = shown()
    data = tables_csv(run, [text] * 24).replace(b"\0", b"\0")
    rows = opened(data)["groups.csv"]
    cell = rows[1][rows[0].index("prompt")]
    for separator in ";,\t\r\n":
        cells = cell.replace(separator, "\0").split("\0")
        assert not [part for part in cells if part.strip(' "').startswith(("=", "+", "-", "@"))]
    assert cell.replace("'", "") == text.replace("'", "")


def test_headings_are_made_safe_and_numbers_stay_numbers():
    rows = opened(tables_csv(RUNS["hostile names"]))["completions.csv"]
    assert "'=cmd" in rows[0]
    at = rows[0].index("logged advantage")
    assert min(float(row[at]) for row in rows[1:]) < 0


def test_a_lone_surrogate_can_be_written():
    rows = opened(tables_csv(shown(), ["\ud800"] * 24))["groups.csv"]
    assert rows[1][1] == "\\ud800"


def test_the_same_numbers_give_the_same_bytes():
    assert tables_csv(shown()) == tables_csv(shown())
