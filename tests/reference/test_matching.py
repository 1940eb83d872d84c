"""The recorded cases of trainers against the core, and that the judge of them can say no."""

import copy
import math
from pathlib import Path

import numpy as np
import pytest

from tests.reference import recorded_runs
from tests.reference.__main__ import files, judge, main
from tests.reference.recorded import Unsupported, cases, numbers
from tests.reference.sources import checks

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.json"))
CASES = [case for path in FILES for case in cases(path)]
BATCHES = sorted((HERE / "runs").glob("*.npz"))

# What the core does not compute, and how many cases of it there are.
UNSUPPORTED = {
    "compute_gae_advantage_return": 6,
    "compute_remax_outcome_advantage": 6,
    "compute_optimal_token_baseline_advantage": 12,
    "compute_policy_loss_clip_cov": 2,
    "compute_policy_loss_kl_cov": 2,
    "compute_policy_loss_bypass_mode": 8,
    "masked_normalize": 1,
}
# Outputs that no reader compares: metrics, and a step on the way to the advantages.
NOT_COMPARED = {"metrics", "ppo_kl", "clip_ratio", "vllm_kl", "normalized_step_rewards"}


def function_of(case):
    return case["source"].rsplit(".", 1)[-1]


def checked(case):
    """The checks of a case; none where it is unsupported."""
    try:
        with np.errstate(all="ignore"):
            return checks(case)
    except Unsupported:
        return []


def test_no_file_is_lost_or_cut_short():
    assert len(FILES) == 14
    assert len(CASES) == 861
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert len(BATCHES) == 2


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_case_passes_at_its_own_tolerance_or_is_listed(path):
    for case in cases(path):
        wanted = "unsupported" if function_of(case) in UNSUPPORTED else "passed"
        assert judge(case)[0] == wanted, f"{case['id']}: {judge(case)}"


def test_exactly_the_listed_functions_are_unsupported():
    found = [function_of(case) for case in CASES if judge(case)[0] == "unsupported"]
    assert {name: found.count(name) for name in found} == UNSUPPORTED


def test_every_output_is_compared_save_those_listed():
    for case in CASES:
        names = {check.name.split(".")[0] for check in checked(case)}
        naive = {key for key in case["outputs"] if key.startswith("naive_")}
        if names:
            assert set(case["outputs"]) - names - naive <= NOT_COMPARED, case["id"]


def off_by_a_little(value, rtol, atol):
    """Every finite number of nested lists beyond the tolerance, towards 0 if there is one."""
    if isinstance(value, list):
        return [off_by_a_little(item, rtol, atol) for item in value]
    number = numbers(value)
    if not math.isfinite(number):
        return value
    moved = number - math.copysign(3 * (atol + rtol * abs(number)), number)
    # Where the tolerance is less than the distance of two numbers, the next one.
    return moved if moved != number else math.nextafter(number, 0.0) or 1e-300


def spoiled(case, name, value):
    """A copy in which one output is another."""
    other = {**case, "outputs": copy.deepcopy(case["outputs"])}
    *path, last = name.split(".")
    target = other["outputs"]
    for key in path:
        target = target[key]
    target[last] = value
    return other


def recorded_value(case, name):
    value = case["outputs"]
    for key in name.split("."):
        value = value[key]
    return value


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_made_up_wrong_number_never_passes(path):
    for case in cases(path):
        for check in checked(case):
            value = recorded_value(case, check.name)
            wrong = off_by_a_little(value, check.rtol, check.atol)
            if wrong != value:  # of an output in which nothing is finite no number can be moved
                assert judge(spoiled(case, check.name, wrong))[0] == "failed", case["id"]
            for other in ("nan", 1e300, [], [1.5, 2.5]):
                verdict, _ = judge(spoiled(case, check.name, other))
                assert verdict == "failed", (case["id"], check.name, other)


def test_what_is_not_known_is_not_passed():
    case = next(case for case in CASES if function_of(case) == "_compute_loss")
    assert judge({**case, "source": "trl 9.9 elsewhere"})[0] == "unsupported"
    renamed = {**case, "source": case["source"].replace("_compute_loss", "_compute_losses")}
    assert judge(renamed)[0] == "unsupported"
    for key, value in (("loss_type", "made_up"), ("importance_sampling_level", "paragraph")):
        assert judge({**case, "kwargs": {**case["kwargs"], key: value}})[0] == "failed"
    assert judge({**case, "outputs": {}})[0] == "failed"
    assert judge({**case, "inputs": {}})[0] == "failed"


@pytest.mark.parametrize("path", BATCHES, ids=lambda path: path.stem)
def test_recorded_batches_pass(path):
    assert judge(path) == ("passed", "")
    loss, advantages, residue = recorded_runs.checks(path)
    assert loss.atol == 1e-6
    assert advantages.atol == 1e-5
    assert loss.distance < 1e-7  # the trainer computes in single precision
    assert residue.name == "loss without the residue of tied groups"


@pytest.mark.parametrize("path", BATCHES, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    ("key", "step"), [("loss", 2e-6), ("advantages", 5e-4), ("logp_new", -0.05), ("logp_ref", -1.0)]
)
def test_a_recorded_batch_with_another_number_fails(path, key, step, tmp_path):
    with np.load(path, allow_pickle=False) as recorded:
        arrays = {name: recorded[name] for name in recorded.files}
    apart = np.ptp(arrays["rewards"], axis=1) > 0  # a group that is not tied
    moved = arrays[key].astype(float)
    moved[(int(np.argmax(apart)), 0) if moved.ndim else ()] += step
    np.savez(tmp_path / "other.npz", **{**arrays, key: moved})
    assert judge(tmp_path / "other.npz")[0] == "failed"


def test_the_report_ends_with_the_counts_and_fails_where_a_case_does(tmp_path, capsys):
    assert main([str(HERE)]) == 0
    total = len(CASES) + len(BATCHES)
    unsupported = sum(UNSUPPORTED.values())
    words = f"{total - unsupported} passed, 0 failed, {unsupported} unsupported"
    assert capsys.readouterr().out.splitlines()[-1] == words
    assert set(files([HERE])) == {*FILES, *BATCHES}
    assert main([str(tmp_path)]) == 2  # nothing there is no success
