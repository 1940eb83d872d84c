"""The trainer's log beside a run."""

import json

import numpy as np
import pytest

from tests.unit.run_files import opened, trl_run, uploaded, written


def run_with(document, name="trainer_state.json"):
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return uploaded(trl_run() | {name: data})


LOG = [
    {"loss": 0.5, "kl": 0.1, "step": 1, "note": "text"},
    {"eval_loss": 0.75, "eval_reward": [2.0], "step": 1},
    {"loss": float("nan"), "step": 2},
    {"train_runtime": 3.0, "train_loss": 0.3, "step": 2},
]


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("trainer_state.json", {"global_step": 2, "log_history": LOG}),
        ("log_history.json", LOG),
        ("any.json", {"log_history": LOG}),
        ("any.json", [record | {"epoch": 1.0} for record in LOG]),
    ],
)
def test_a_state_or_a_bare_list(name, document):
    log = run_with(document, name).log
    assert log.steps.tolist() == [1, 1, 2]
    np.testing.assert_array_equal(log.values["loss"], [0.5, np.nan, np.nan])
    np.testing.assert_array_equal(log.values["eval_loss"], [np.nan, 0.75, np.nan])
    np.testing.assert_array_equal(log.values["eval_reward"], [np.nan, 2, np.nan])
    assert "train_runtime" not in log
    assert "train_loss" not in log
    assert "note" not in log


def test_of_several_checkpoints_the_last_one_counts(tmp_path):
    files = trl_run()
    for step in (9, 10):
        state = {"log_history": [{"loss": float(step), "step": step}]}
        files[f"checkpoint-{step}/trainer_state.json"] = json.dumps(state).encode()
    assert opened(written(tmp_path, files)).log.steps.tolist() == [10]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b'{"log_history": [', "not JSON: line 1"),
        ({"log_history": []}, "no record with a step"),
        ({"log_history": 3}, "no list of logged records"),
        ([{"loss": 1.0}], "no record with a step"),
        ([{"step": 1.5}, {"step": None}, {"step": 1e300}, 3], "no record with a step"),
    ],
    ids=str,
)
def test_a_broken_log_is_said_and_the_rest_is_read(document, words):
    run = run_with(document)
    assert run.log is None
    assert run.run.present.all()
    assert any(words in note and "trainer_state.json" in note for note in run.notes)


def test_a_log_alone_says_what_is_missing():
    with pytest.raises(ValueError, match="a log without completions"):
        uploaded({"trainer_state.json": json.dumps({"log_history": LOG}).encode()})
