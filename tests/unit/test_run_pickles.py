"""Pickles are told and refused; the lines that export them write what is read here."""

import io
import pickle
import sys
import types
import zipfile

import numpy as np
import pytest

from pages._ui.runs.pickles import EXPORTS, is_pickle, refusal
from tests.unit.token_files import npz, opened, read
from tests.unit.token_files import refusal as refused

LINES = {row.key: row for row in EXPORTS}


def torch_zip():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("rollout_3/data.pkl", b"\x80\x02}q\x00.")
        archive.writestr("rollout_3/version", b"3")
    return buffer.getvalue()


def object_npy():
    buffer = io.BytesIO()
    np.save(buffer, np.array([[1], [1, 2]], dtype=object), allow_pickle=True)
    return buffer.getvalue()


class TestIsPickle:
    @pytest.mark.parametrize("name", ["a.pt", "a.pth", "A.PKL", "x/a.pickle", "a.bin"])
    def test_by_name(self, name):
        assert is_pickle(name, b"")

    @pytest.mark.parametrize("protocol", [2, 3, 4, 5])
    def test_by_how_it_begins(self, protocol):
        assert is_pickle("a.json", pickle.dumps({"a": 1}, protocol))

    def test_what_torch_saves(self):
        assert is_pickle("a", torch_zip())

    def test_an_array_of_objects(self):
        assert is_pickle("a.npy", object_npy())

    @pytest.mark.parametrize(
        ("name", "head"),
        [
            ("a.npz", npz(a=np.zeros(2))),
            ("a.npz", npz(a=np.array([{}], dtype=object))),  # its other arrays can be read
            ("a.jsonl", b'{"a": 1}'),
            ("a.parquet", b"PAR1"),
            ("data.pkl.txt", b"words"),
            ("empty", b""),
            ("a.zip", b"PK\x03\x04"),
        ],
    )
    def test_other_files_are_none(self, name, head):
        assert not is_pickle(name, head)


class TestRefusal:
    @pytest.mark.parametrize(
        ("name", "key"),
        [
            ("dumps/train_3.pt", "slime_train"),
            ("dumps/rollout_3.pt", "slime_rollout"),
            ("x/global_step_4_training_input.pkl", "skyrl"),
            ("a.npz", "object_npz"),
        ],
    )
    def test_it_names_the_file_and_the_lines_that_help(self, name, key):
        message = refusal(name)
        assert message.startswith(name)
        assert LINES[key].label in message

    def test_a_pickle_of_nobody_known_is_refused_as_well(self):
        assert "never opened" in refusal("weights.bin")

    def test_nothing_in_it_is_run(self):
        class Trap:
            def __reduce__(self):
                return (sys.exit, ("it was run",))

        data = pickle.dumps(Trap())
        message = refused(opened, ("train.pkl", data))
        assert "never opened" in message
        assert "never opened" in refused(opened, ("train.jsonl", data))

    def test_a_pickle_among_good_files_is_left_out_with_a_note(self):
        good = npz(rewards=np.eye(2), prompts=np.array(["p", "q"]))
        found = opened(("a.npz", good), ("b.pt", b"\x80\x02}."))
        assert any("b.pt is a pickle" in note for note in found.notes)


class Tensor:
    """As much of a torch tensor as the lines use; NumPy refuses it, as it does on a GPU."""

    __array__ = None

    def __init__(self, values):
        self.values = np.asarray(values)

    def detach(self):
        return self

    cpu = detach

    def float(self):
        return Tensor(self.values.astype(np.float32))

    def is_floating_point(self):
        return self.values.dtype.kind == "f"

    def numpy(self):
        return self.values

    def tolist(self):
        return self.values.tolist()

    def __float__(self):
        return float(self.values)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, where):
        return Tensor(self.values[where])

    def __mul__(self, other):
        return Tensor(self.values * other.values)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run an export's lines in an empty folder, with modules that stand for the frameworks."""
    monkeypatch.chdir(tmp_path)

    def executed(key, **modules):
        for name, module in modules.items():
            parts = name.split("__")
            for end in range(1, len(parts) + 1):
                last = module if end == len(parts) else types.ModuleType(parts[end - 1])
                monkeypatch.setitem(sys.modules, ".".join(parts[:end]), last)
                if end > 1:
                    setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], last)
        names = {"__name__": "export"}
        exec(compile(LINES[key].code, key, "exec"), names)
        return names

    return executed


def only_file(folder):
    (path,) = [p for p in sorted(folder.rglob("*")) if p.suffix in (".json", ".npz")]
    return path.name, path.read_bytes()


@pytest.mark.parametrize("row", EXPORTS, ids=lambda row: row.key)
def test_the_lines_are_python_and_short(row):
    compile(row.code, row.key, "exec")
    assert all(len(line) <= 100 for line in row.code.splitlines())
    assert row.label
    assert row.when.endswith(".")


def test_keys_of_exports_are_all_different():
    assert len(LINES) == len(EXPORTS)


def test_weights_only_is_asked_of_torch():
    for key in ("slime_train", "slime_rollout"):
        assert "weights_only=True" in LINES[key].code


def test_slime_rollout_dump(run, tmp_path):
    samples = [
        {
            "group_index": group,
            "prompt": f"p{group}",
            "tokens": [9, 9, *range(size)],
            "response": "ab"[:size],
            "response_length": size,
            "reward": float(size),
            "loss_mask": None if size else [],
            "rollout_log_probs": [-0.5] * size,
        }
        for group, size in ((0, 2), (0, 1), (1, 0), (1, 2))
    ]
    (tmp_path / "rollout_3.pt").write_bytes(torch_zip())
    module = types.SimpleNamespace(load=lambda *_, **__: {"rollout_id": 3, "samples": samples})
    run("slime_rollout", torch=module)
    found = read(*only_file(tmp_path))
    assert found.step.tolist() == [3] * 4
    assert found.lengths.tolist() == [2, 1, 0, 2]
    assert found.numbers["rewards"].tolist() == [2, 1, 0, 2]
    assert found.group[0] == found.group[1] != found.group[2] == found.group[3]
    assert found.texts([3]) == [("p1", "ab")]
    row = found.tokens(0)
    assert row.arrays["logp_sampler"].tolist() == [-0.5, -0.5]
    assert row.pieces == ("a", "b")


def test_slime_train_dump(run, tmp_path):
    samples = [
        {
            "rollout_position": 3 - i,
            "tokens": Tensor([7 + i // 2, 8, *range(size)]),
            "loss_masks": Tensor([1] * size),
            "log_probs": Tensor(np.full(size, -1.0)),
            "ref_log_probs": Tensor(np.full(size, -2.0)),
            "rollout_log_probs": Tensor(np.full(size, -0.5)),
            "advantages": Tensor(np.full(size, i - 1.5)),
            "rewards": 0.7,
            "entropy": None,
        }
        for i, size in enumerate((2, 3, 1, 2))
    ]
    dump = {"samples": samples, "raw_reward": [0, 1, 2, 3], "dp_shards": []}
    run("slime_train", torch=types.SimpleNamespace(load=lambda *_, **__: dump))
    found = read(*only_file(tmp_path))
    assert found.numbers["rewards"].tolist() == [3, 2, 1, 0]
    assert found.numbers["advantages"].tolist() == [-1.5, -0.5, 0.5, 1.5]
    assert found.group[0] == found.group[1] != found.group[2] == found.group[3]
    row = found.tokens(1)
    assert row.arrays["logp_old"].tolist() == [-1] * 3
    assert row.arrays["logp_ref"].tolist() == [-2] * 3
    assert row.arrays["token_ids"].tolist() == [0, 1, 2]


def test_skyrl_batch(run, tmp_path):
    class Batch(dict):
        pass

    batch = Batch(
        action_log_probs=Tensor(np.full((2, 3), -1.0)),
        base_action_log_probs=None,
        loss_mask=Tensor([[1, 1, 0], [1, 1, 1]]),
        advantages=Tensor([[0.5, 0.5, 0], [-0.5, -0.5, -0.5]]),
        rewards=Tensor([[0, 1.0, 0], [0, 0, 0.25]]),
        sequences=Tensor([[0, 7, 1, 2, 0], [0, 7, 1, 2, 3]]),
    )
    (tmp_path / "global_step_3_training_input.pkl").write_bytes(b"")
    run("skyrl", pickle=types.SimpleNamespace(load=lambda file: batch))
    found = read(*only_file(tmp_path))
    assert found.step.tolist() == [3, 3]
    assert found.numbers["rewards"].tolist() == [1, 0.25]
    assert found.numbers["advantages"].tolist() == [0.5, -0.5]
    assert found.group[0] == found.group[1]
    assert found.lengths.tolist() == [2, 3]


def test_npz_of_objects(run, tmp_path):
    rows = np.empty(2, dtype=object)
    rows[:] = [[-1.0], np.array([-2.0, -3.0])]
    data = npz(logp_new=rows, rewards=np.array([1.0, 0.0]), group=np.array([0, 0]), step=4)
    (tmp_path / "batch.npz").write_bytes(data)
    assert "object" in refused(read, "batch.npz", data)
    run("object_npz")
    (tmp_path / "batch.npz").unlink()
    found = read(*only_file(tmp_path))
    assert found.step.tolist() == [4, 4]
    assert found.tokens(1).arrays["logp_new"].tolist() == [-2, -3]


def test_verl_hook(run, tmp_path):
    data = types.SimpleNamespace(
        batch={
            "old_log_probs": Tensor(np.full((2, 2), -1.0)),
            "response_mask": Tensor([[1, 0], [1, 1]]),
            "token_level_scores": Tensor([[1.0, 0.0], [0.0, 0.5]]),
            "responses": Tensor([[5, 0], [5, 6]]),
        },
        non_tensor_batch={"uid": np.array(["u", "u"], dtype=object)},
    )

    def compute_advantage(data, how):
        data.batch["advantages"] = Tensor([[0.5, 0], [-0.5, -0.5]])
        return data

    trainer = types.SimpleNamespace(compute_advantage=compute_advantage)
    run("verl", verl__trainer__ppo__ray_trainer=trainer)
    assert trainer.compute_advantage(data, how="grpo") is data
    found = read(*only_file(tmp_path))
    assert found.step.tolist() == [1, 1]
    assert found.numbers["rewards"].tolist() == [1, 0.5]
    assert found.numbers["advantages"].tolist() == [0.5, -0.5]
    assert found.group[0] == found.group[1]
    assert found.tokens(1).arrays["token_ids"].tolist() == [5, 6]


class Trainer:
    """As much of TRL's trainer as the recording one calls."""

    def __init__(self):
        self.accelerator = types.SimpleNamespace(process_index=0)
        self.state = types.SimpleNamespace(global_step=0)
        self.reward_func_names = ["right", "form"]
        self.processing_class = types.SimpleNamespace(
            batch_decode=lambda ids, **_: ["".join("_abc"[i] for i in row) for row in ids.tolist()]
        )

    def _calculate_rewards(self, inputs):
        return Tensor([[1.0, 0.5], [0.0, np.nan]])

    def _generate_and_score_completions(self, inputs):
        self._calculate_rewards(inputs)
        self._get_per_token_logps_and_entropies("reference")
        return dict(inputs)

    def _get_per_token_logps_and_entropies(self, model):
        return Tensor(np.full((2, 3), -0.5 if model == "policy" else -9)), Tensor(np.ones((2, 3)))

    def _compute_loss(self, model, inputs):
        self._get_per_token_logps_and_entropies("policy")
        return Tensor(0.125)


def test_trl_trainer(run, tmp_path):
    names = run("trl", trl=types.SimpleNamespace(GRPOTrainer=Trainer))
    trainer = names["RecordingTrainer"]()
    inputs = trainer._generate_and_score_completions(
        {
            "prompt_ids": Tensor([[1, 1], [1, 1]]),
            "completion_ids": Tensor([[1, 2, 0], [3, 2, 1]]),
            "completion_mask": Tensor([[1, 1, 0], [1, 1, 1]]),
            "advantages": Tensor([0.5, -0.5]),
            "ref_per_token_logps": Tensor(np.full((2, 3), -2.0)),
            "tool_mask": Tensor([[1, 1, 1], [1, 0, 1]]),
        }
    )
    loss = trainer._compute_loss(types.SimpleNamespace(training=True), inputs)
    assert float(loss) == 0.125
    trainer._compute_loss(types.SimpleNamespace(training=False), inputs)
    found = read(*only_file(tmp_path / "tokens"))
    assert found.step.tolist() == [1, 1]
    assert found.numbers["right"].tolist() == [1, 0]
    assert np.isnan(found.numbers["form"][1])
    assert found.group[0] == found.group[1]
    assert found.lengths.tolist() == [2, 2]
    row = found.tokens(1)
    assert row.loss == 0.125
    assert row.arrays["logp_new"].tolist() == row.arrays["logp_old"].tolist() == [-0.5, -0.5]
    assert row.arrays["logp_ref"].tolist() == [-2, -2]
    assert row.arrays["token_ids"].tolist() == [3, 1]
