"""A column of a table that sums to zero in each group is the advantage, whatever it is called."""

import json

import numpy as np
import pytest

from pages._ui.runs import advantage_guess
from tests.unit.run_files import lines, parquet, roles_of, uploaded

NAMES = ("judged", "solved", "tidy")


def table(count=12, size=4, seed=0, **columns):
    """Columns of groups one below the other, ``judged`` being the advantage."""
    random = np.random.default_rng(seed)
    solved = random.integers(0, 2, (count, size)).astype(float)
    tidy = random.random((count, size)).round(2)
    total = solved + tidy
    spread = total.std(axis=1, ddof=1, keepdims=True) + 1e-4
    return {
        "question": np.repeat([f"q{at}" for at in range(count)], size).tolist(),
        "reply": [f"r{at}" for at in range(count * size)],
        "judged": ((total - total.mean(axis=1, keepdims=True)) / spread).round(4).ravel().tolist(),
        "solved": solved.ravel().tolist(),
        "tidy": tidy.ravel().tolist(),
    } | columns


def records(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def csv(columns, separator=","):
    rows = [columns, *zip(*columns.values(), strict=True)]
    return "".join(separator.join(str(cell) for cell in row) + "\n" for row in rows).encode()


KINDS = {
    "a.csv": csv,
    "a.tsv": lambda columns: csv(columns, "\t"),
    "a.parquet": parquet,
    "b.parquet": lambda columns: parquet(columns, row_group_size=10),
    "a.jsonl": lambda columns: lines(records(columns)),
    "a.json": lambda columns: json.dumps(records(columns)).encode(),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_it_is_found_in_every_kind_of_table(name, seed):
    run = uploaded({name: KINDS[name](table(seed=seed))})
    assert run.run.names == ("solved", "tidy")
    assert run.roles["judged"] == "advantage"
    assert run.run.advantages.shape == (12, 4)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_it_is_still_asked_and_a_choice_wins(name):
    files = {name: KINDS[name](table())}
    assert all(column.asked for column in uploaded(files).columns)
    run = uploaded(files, {"judged": "term"})
    assert set(run.run.names) == set(NAMES)
    assert run.run.advantages is None


def test_a_known_name_comes_first():
    found = roles_of({"a.csv": csv(table(advantage=table(seed=1)["judged"]))})
    assert found["advantage"] == "advantage"
    assert found["judged"] != "advantage"


def test_the_only_reward_stays_one():
    columns = table()
    assert roles_of({"a.csv": csv({name: columns[name] for name in ("question", "judged")})}) == {
        "question": "prompt",
        "judged": "term",
    }


@pytest.mark.parametrize(
    "judged",
    [
        [1.0, -1.0] * 24,  # of one size
        [0.0] * 48,
        [1.0, 0.0, 0.0, 0.0] * 12,
        np.random.default_rng(0).normal(size=48).tolist(),
        [np.nan] * 48,
    ],
    ids=["signs", "zeros", "positive", "noise", "blank"],
)
def test_other_numbers_are_none(judged):
    found = roles_of({"a.parquet": parquet(table(judged=judged))})
    assert found["judged"] == ("advantage" if judged[:4] == [1, -1, 1, -1] else "term")


def test_two_groups_are_too_few_to_tell():
    assert roles_of({"a.csv": csv(table(count=2))})["judged"] == "term"


def test_only_the_first_rows_are_looked_at(monkeypatch):
    monkeypatch.setattr(advantage_guess, "ROWS", 20)
    columns = table()
    columns["judged"][24:] = [1.0] * 24
    assert roles_of({"a.csv": csv(columns)})["judged"] == "advantage"


def test_wrong_values_are_told_when_the_table_is_read_not_before():
    columns = table(count=60)
    columns["judged"] = ["much", *columns["judged"][1:]]
    assert roles_of({"a.csv": csv(columns)})["judged"] == "advantage"
    assert roles_of({"a.parquet": parquet(table(step=[0.5] * 48))})["judged"] == "term"
