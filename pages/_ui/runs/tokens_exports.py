"""Lines of Python that people run on their own machine, to write files that are read here.

They are shown and copied as text; nothing here runs them.
"""

SLIME_ROLLOUT = """\
# A rollout dump of slime: --save-debug-rollout-data rollout_{rollout_id}.pt
import json
import torch

PATH = "rollout_3.pt"
REWARD_KEY = None  # what --reward-key names, where a reward is a table

# weights_only: plain values and tensors alone are read; nothing in the file can run.
dump = torch.load(PATH, map_location="cpu", weights_only=True)
samples = dump["samples"]


def plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


def reward(sample):
    value = sample["reward"]
    return plain(value[REWARD_KEY] if REWARD_KEY else value)


lengths = [sample["response_length"] for sample in samples]
batch = {
    "step": dump["rollout_id"],
    "group": [sample["group_index"] for sample in samples],
    "prompts": [str(sample["prompt"]) for sample in samples],
    "completions": [sample["response"] for sample in samples],
    "rewards": [reward(sample) for sample in samples],
    "token_ids": [plain(s["tokens"])[-n:] if n else [] for s, n in zip(samples, lengths)],
    "mask": [plain(s.get("loss_mask")) or [1] * n for s, n in zip(samples, lengths)],
    # Of the engine that sampled; the trainer's own are in the train dump.
    "logp_sampler": [plain(sample["rollout_log_probs"]) for sample in samples],
}
with open("rollout_3.json", "w", encoding="utf-8") as file:
    json.dump(batch, file)
"""

SLIME_TRAIN = """\
# A train dump of slime, format_version 2: --save-debug-train-data train_{rollout_id}.pt
import json
import torch

PATH, STEP = "train_3.pt", 3

# weights_only: plain values and tensors alone are read; nothing in the file can run.
dump = torch.load(PATH, map_location="cpu", weights_only=True)
samples = dump["samples"]
NAMES = {
    "logp_old": "log_probs",
    "logp_ref": "ref_log_probs",
    "logp_sampler": "rollout_log_probs",
    "mask": "loss_masks",
    "advantages": "advantages",
    "entropy": "entropy",
}


def plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


batch = {"step": STEP}
for ours, theirs in NAMES.items():
    if all(sample.get(theirs) is not None for sample in samples):
        batch[ours] = [plain(sample[theirs]) for sample in samples]
lengths = [len(mask) for mask in batch["mask"]]
tokens = [plain(sample["tokens"]) for sample in samples]
batch["token_ids"] = [row[-n:] if n else [] for row, n in zip(tokens, lengths)]
# A group is what answers one prompt; the dump has no other name for it.
batch["group"] = [" ".join(map(str, row[: len(row) - n])) for row, n in zip(tokens, lengths)]
# "rewards" of a sample are normalised already; raw_reward is what the reward function gave.
raw = plain(dump.get("raw_reward"))
if raw is not None and len(raw) == len(samples):
    batch["rewards"] = [raw[sample["rollout_position"]] for sample in samples]
else:
    batch["rewards"] = [plain(sample["rewards"]) for sample in samples]
with open("train_3.json", "w", encoding="utf-8") as file:
    json.dump(batch, file)
"""

SKYRL = """\
# A batch of SkyRL: {export_path}/dumped_data/global_step_{N}_training_input.pkl
# Run it where SkyRL is installed, and only on a file that you wrote yourself: opening a
# pickle runs whatever code is in it.
import pickle
import numpy as np

STEP = 3
with open(f"global_step_{STEP}_training_input.pkl", "rb") as file:
    batch = pickle.load(file)

NAMES = {
    "logp_old": "action_log_probs",
    "logp_ref": "base_action_log_probs",
    "logp_sampler": "rollout_logprobs",
    "mask": "loss_mask",
    "advantages": "advantages",
    "rewards": "rewards",  # left out of the file by some versions
}


def numbers(tensor):
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


known = set(batch.keys())
arrays = {
    ours: numbers(batch[theirs])
    for ours, theirs in NAMES.items()
    if theirs in known and batch[theirs] is not None
}
if "rewards" in arrays and arrays["rewards"].ndim == 2:
    arrays["rewards"] = arrays["rewards"].sum(axis=-1)
sequences, width = numbers(batch["sequences"]), arrays["mask"].shape[1]
arrays["token_ids"] = sequences[:, -width:]
# A group is what answers one prompt: the tokens before the response are equal.
prompts = sequences[:, :-width]
arrays["group"] = np.unique(prompts, axis=0, return_inverse=True)[1].reshape(-1)
np.savez_compressed(f"skyrl_{STEP}.npz", step=STEP, **arrays)
"""

OBJECT_NPZ = """\
# An npz file that holds objects: rows of unequal length saved as one array.
# Only on a file that you wrote yourself: opening a pickle runs whatever code is in it.
import json
import numpy as np

with np.load("batch.npz", allow_pickle=True) as file:
    batch = {name: file[name].tolist() for name in file}
with open("batch.json", "w", encoding="utf-8") as file:
    json.dump(batch, file, default=lambda value: value.tolist())
"""

TRL = '''\
# TRL writes no log-probabilities. This trainer does, a file for each loss it computes.
# Written for TRL 1.16; the methods with a leading underscore move between versions.
import itertools
import os
import numpy as np
from trl import GRPOTrainer


def numbers(tensor):
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


class RecordingTrainer(GRPOTrainer):
    """GRPOTrainer that writes the numbers of every token. Not with use_liger_kernel."""

    folder = "tokens"
    counter = itertools.count()

    def _calculate_rewards(self, *args, **kwargs):
        self.scored = super()._calculate_rewards(*args, **kwargs)  # of all processes
        return self.scored

    def _generate_and_score_completions(self, inputs):
        output = super()._generate_and_score_completions(inputs)
        rows = len(output["completion_ids"])
        first = self.accelerator.process_index * rows
        # Among the batch's own tensors: TRL shuffles and splits them together.
        output["recorded_rewards"] = self.scored[first : first + rows]
        return output

    def _get_per_token_logps_and_entropies(self, *args, **kwargs):
        self.computed = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        return self.computed

    def _compute_loss(self, model, inputs):
        loss = super()._compute_loss(model, inputs)
        if model.training:
            self.record(inputs, loss)
        return loss

    def record(self, inputs, loss):
        logp_new, entropy = self.computed[:2]
        mask = inputs["completion_mask"]
        tensors = {
            "logp_new": logp_new,
            "logp_old": inputs.get("old_per_token_logps"),
            "logp_ref": inputs.get("ref_per_token_logps"),
            "logp_sampler": inputs.get("sampling_per_token_logps"),
            "entropy": entropy,
            "mask": mask * inputs["tool_mask"] if "tool_mask" in inputs else mask,
            "advantages": inputs["advantages"],
            "completion_ids": inputs["completion_ids"],
            "rewards_per_term": inputs.get("recorded_rewards"),
        }
        arrays = {key: numbers(of) for key, of in tensors.items() if of is not None}
        # TRL leaves the old ones out where they are the new ones.
        arrays.setdefault("logp_old", arrays["logp_new"])
        texts = self.processing_class.batch_decode
        # Counted from 1, as in the names of completions_00001.parquet.
        step = self.state.global_step + 1
        process = self.accelerator.process_index
        os.makedirs(self.folder, exist_ok=True)
        np.savez_compressed(
            f"{self.folder}/step_{step:06d}_{next(self.counter):06d}_{process}.npz",
            step=step,
            loss=float(loss.detach()),
            term_names=np.array(self.reward_func_names),
            prompts=np.array(texts(inputs["prompt_ids"], skip_special_tokens=True)),
            completions=np.array(texts(inputs["completion_ids"], skip_special_tokens=True)),
            **arrays,
        )
'''

VERL = """\
# verl writes no log-probabilities. These lines do, a file a step. Put them into your copy of
# main_ppo.py, into the process that calls trainer.fit(), before that call.
# Written for the trainer in ray_trainer.py; its names move between versions.
import itertools
import os
import numpy as np
import verl.trainer.ppo.ray_trainer as ray_trainer

FOLDER = "tokens"
NAMES = {
    "logp_old": "old_log_probs",
    "logp_ref": "ref_log_prob",
    "logp_sampler": "rollout_log_probs",
    "mask": "response_mask",
    "advantages": "advantages",
    "token_ids": "responses",
}
compute_advantage = ray_trainer.compute_advantage
steps = itertools.count(1)  # after a resume: count from the next step


def numbers(tensor):
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


def recorded(data, *args, **kwargs):
    data = compute_advantage(data, *args, **kwargs)
    batch, step = data.batch, next(steps)
    known = set(batch.keys())
    arrays = {ours: numbers(batch[theirs]) for ours, theirs in NAMES.items() if theirs in known}
    os.makedirs(FOLDER, exist_ok=True)
    np.savez_compressed(
        f"{FOLDER}/step_{step:06d}.npz",
        step=step,
        rewards=numbers(batch["token_level_scores"]).sum(axis=-1),
        group=data.non_tensor_batch["uid"].astype(str),
        **arrays,
    )
    return data


ray_trainer.compute_advantage = recorded
"""
