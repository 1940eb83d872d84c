"""Cases of TRL: which options of the core a call's arguments are."""

import numpy as np

from grpo_core import Conventions
from tests.reference.recorded import Groups, run

METRIC = {"rtol": 1e-6, "atol": 1e-6}  # TRL's metrics are float32

_SCALES = {
    "group": ("mean_std", {"ddof": 1}),
    "batch": ("batch_std", {"ddof": 1}),
    "none": ("mean_only", {}),
}


def advantages(case):
    """Rewards per function to advantages."""
    table = case.array("rewards_per_func")  # (N, K)
    groups = Groups.blocks(len(table), case.kwargs["num_generations"])
    weights = case.option("reward_weights", [1.0] * table.shape[1])
    eps = case.kwargs["eps_in_code"]
    row, options = _SCALES[case.kwargs["scale_rewards"]]
    order = case.kwargs["multi_objective_aggregation"]
    combined = {"task_weight": weights[0], "missing": "leave_out"}
    if order == "normalize_then_sum":
        row, options = "mean_std", {"ddof": 1}
        combined |= {"batch_scale": "completion", "batch_eps": eps}
    if row != "mean_only":
        options = {**options, "eps": eps}
    evaluation = run(
        Conventions.of(rewards=(order, combined), advantage=(row, options)),
        groups,
        mask=np.ones((len(table), 1)),
        rewards=table[:, 0],
        terms=list(zip(weights[1:], table[:, 1:].T, strict=True)),
    )
    yield case.check("advantages", groups.down(evaluation.advantages))


_RATIOS = {"token": "token", "sequence": "sequence"}


def _aggregation(case, rows, L):
    """Aggregation row and the last factor of a loss type."""
    kind = case.kwargs["loss_type"]
    train = case.kwargs["mode"] == "train"
    steps = case.option("current_gradient_accumulation_steps", 1) if train else 1
    if kind in ("dapo", "cispo", "vespo"):
        count = case.kwargs["num_items_in_batch"]
        if train:
            count = count * steps / case.option("steps_per_generation", 1)
        return ("token_mean", {"tokens": float(count)}), 1.0
    row = {
        "grpo": ("completion_mean", {}),
        "sapo": ("completion_mean", {}),
        "bnpo": ("token_mean", {}),
        "dr_grpo": ("constant", {"length": case.kwargs["max_completion_length"]}),
        "luspo": ("completion_sum", {}),
    }[kind]
    return row, 1.0 / steps


def _surrogate(case):
    kind = case.kwargs["loss_type"]
    low, high = case.kwargs["epsilon_low"], case.kwargs["epsilon_high"]
    if kind == "cispo":
        return "cispo", {"epsilon_low": 1.0, "epsilon_high": high, "bound": "absolute"}
    if kind == "sapo":
        return "sapo", {
            "tau_up": case.option("sapo_temperature_pos", 1.0),
            "tau_down": case.option("sapo_temperature_neg", 1.05),
        }
    if kind == "vespo":
        return "vespo", {
            "k_up": case.option("vespo_k_pos", 2.0),
            "lambda_up": case.option("vespo_lambda_pos", 3.0),
            "k_down": case.option("vespo_k_neg", 3.0),
            "lambda_down": case.option("vespo_lambda_neg", 2.0),
            "sampler": "inside",
        }
    band = {"epsilon_low": low, "epsilon_high": high}
    delta = case.option("delta")
    return ("clip", band) if delta is None else ("two_sided", {**band, "delta": delta})


def _arrays(case):
    """Inputs by the core's names."""
    names = {
        "logp_new": "per_token_logps",
        "logp_old": "old_per_token_logps",
        "logp_ref": "ref_per_token_logps",
        "logp_sampler": "sampling_per_token_logps",
        "sampler_weights": "importance_sampling_ratio",
        "entropy": "entropies",
        "advantages": "advantages",
    }
    found = {key: case.array(name) for key, name in names.items()}
    if np.ndim(found["advantages"]) == 2:
        found["token_advantages"] = found.pop("advantages")
    return {key: array for key, array in found.items() if array is not None}


_SELECTIONS = {  # by the options that are given
    ("share",): "entropy",
    ("threshold",): "on_policy",
    ("share", "threshold"): "entropy_on_policy",
}


def loss(case):
    """A loss with its gradient."""
    arrays = _arrays(case)
    mask = case.array("completion_mask")
    if "tool_mask" in case.inputs:
        mask = mask * case.array("tool_mask")
    groups = Groups.blocks(len(mask), 1)
    if "sampler_weights" in arrays:
        weights = arrays["sampler_weights"]
        arrays["sampler_weights"] = np.broadcast_to(
            weights.reshape(len(mask), -1), mask.shape
        ).copy()
    choices = {
        "advantage": "given" if "advantages" in arrays else "given_per_token",
        "ratio": _RATIOS[case.kwargs["importance_sampling_level"]],
        "surrogate": _surrogate(case),
        "kl": (
            "k3",
            {
                "beta": case.kwargs["beta"],
                "weight": "ratio" if case.option("use_bias_correction_kl", False) else "none",
            },
        ),
    }
    choices["aggregation"], factor = _aggregation(case, len(mask), mask.shape[1])
    choices["accumulation"] = ("factor", {"factor": factor})
    if "sampler_weights" in arrays and case.kwargs["loss_type"] != "vespo":
        choices["correction"] = "given"
    quantile = case.option("top_entropy_quantile", 1.0)
    threshold = case.option("off_policy_mask_threshold")
    selection = {}
    if quantile < 1:
        selection["share"] = quantile
    if threshold is not None:
        selection["threshold"] = threshold
        arrays.setdefault("logp_sampler", arrays.get("logp_old"))
    if selection:
        choices["selection"] = (_SELECTIONS[tuple(selection)], selection)
    coefficient = case.option("entropy_coef", 0.0)
    if coefficient:
        choices["entropy"] = ("bonus", {"coefficient": coefficient})
    evaluation = run(Conventions.of(**choices), groups, mask=mask, **arrays)
    yield case.check("loss", evaluation.loss)
    yield case.check("grad_per_token_logps", -groups.down(evaluation.gradient))


def sampling_ratio(case):
    """The correction for what vLLM reports."""
    mask, old = case.array("completion_mask"), case.array("old_per_token_logps")
    level, mode = case.kwargs["vllm_importance_sampling_mode"].split("_")
    groups = Groups.blocks(len(mask), 1)
    conventions = Conventions.of(
        correction=(
            "sampler",
            {
                "level": level,
                "mode": mode,
                "low": case.option("clip_min", 0.0),
                "high": case.option("clip_max", 0.0),
            },
        )
    )
    evaluation = run(
        conventions, groups, mask=mask, logp_new=old,
        logp_sampler=case.array("sampling_per_token_logps"),
    )  # fmt: skip
    recorded = np.asarray(case.outputs["importance_sampling_ratio"])
    computed = groups.down(evaluation.factor)
    if recorded.shape[1] == 1:  # one a completion: where it has a token
        computed = np.max(computed, axis=1, keepdims=True)
        computed = np.where(mask.any(axis=1, keepdims=True), computed, 1.0)
    else:
        computed = np.where(mask > 0, computed, recorded)  # padding says nothing
    yield case.check("importance_sampling_ratio", computed)


def gamma_weights(case):
    """VESPO's weight of each completion."""
    mask, step = case.array("mask"), case.array("log_ratio_per_token")
    groups = Groups.blocks(len(mask), 1)
    options = {
        "k_up": case.kwargs["k_pos"],
        "lambda_up": case.kwargs["lambda_pos"],
        "k_down": case.kwargs["k_neg"],
        "lambda_down": case.kwargs["lambda_neg"],
    }
    advantages = case.array("advantages").reshape(len(mask))
    evaluation = run(
        Conventions.of(advantage="given", surrogate=("vespo", options), kl=("k3", {"beta": 0.0}),
                       aggregation="token_sum"),
        groups, mask=mask, logp_new=step, logp_old=np.zeros(step.shape), advantages=advantages,
    )  # fmt: skip
    first = np.argmax(mask > 0, axis=1)
    slope = groups.down(evaluation.policy_gradient)[np.arange(len(mask)), first]
    yield case.check("phi_seq", (slope / advantages)[:, None])


def off_policy_mask(case):
    """Which completions stay."""
    mask = case.array("mask")
    groups = Groups.blocks(len(mask), 1)
    advantages = case.array("advantages").reshape(len(mask))
    evaluation = run(
        Conventions.of(
            advantage="given",
            selection=("on_policy", {"threshold": case.kwargs["off_policy_threshold"]}),
        ),
        groups, mask=mask, advantages=advantages, logp_new=case.array("per_token_logps"),
        logp_sampler=case.array("sampling_per_token_logps"),
    )  # fmt: skip
    keep = np.max(groups.down(evaluation.factor), axis=1, keepdims=True)
    yield case.check("keep", keep)


def scored(case):
    """Two things that one function of TRL computes: advantages, and the sampler correction."""
    return advantages(case) if "rewards_per_func" in case.inputs else sampling_ratio(case)
