"""Cases of OpenRLHF: which options of the core a call's arguments are."""

import numpy as np

from grpo_core import Conventions
from tests.reference.recorded import Groups, run

_COUNT = {"empty": "drop", "count_eps": 1e-8}


def _aggregation(case, token_level):
    """Aggregation over the whole batch, where the case says how large that is."""
    ranks = case.option("dp_size", 1)
    if token_level:
        return "token_mean", {"tokens": case.option("batch_num_tokens", 0.0) / ranks}
    completions = case.option("global_batch_size", 0.0) / ranks
    return "completion_mean", {**_COUNT, "completions": completions}


def policy_loss(case):
    """The policy loss with its gradient."""
    mask = case.array("action_mask")
    groups = Groups.blocks(len(mask), 1)
    band = {
        "epsilon_low": case.kwargs["clip_eps_low"],
        "epsilon_high": case.kwargs["clip_eps_high"],
    }
    dual = case.option("dual_clip")
    surrogate = ("clip", band) if dual is None else ("dual_clip", {**band, "dual_clip": dual})
    whole = case.kwargs["policy_loss_type"] == "gspo"
    ratio = ("sequence", {}) if whole else ("token", {"clamp": 20.0})
    rows = {
        "logp_new": case.array("log_probs"),
        "logp_old": case.array("old_log_probs"),
        "token_advantages": case.array("advantages"),
    }
    correction = "none"
    kind = case.option("vllm_is_correction_type")
    if kind is not None:
        rows["logp_sampler"] = case.array("rollout_log_probs")
        low, high = case.kwargs["vllm_is_truncated_threshold"]
        correction = _CORRECTIONS[kind](low, high)
    evaluation = run(
        Conventions.of(
            advantage="given_per_token", surrogate=surrogate, ratio=ratio, correction=correction,
            aggregation=_aggregation(case, case.kwargs["token_level_loss"] and not whole),
            kl=("k3", {"beta": 0.0}),
        ),
        groups, mask=mask, **rows,
    )  # fmt: skip
    yield case.check("loss", evaluation.loss)
    yield case.check("grad_log_probs", -groups.down(evaluation.gradient))


def _sampler(level, mode, **more):
    return lambda low, high: (
        "sampler", {"level": level, "mode": mode, "low": low, "high": high, **more}
    )  # fmt: skip


_CORRECTIONS = {
    "tis": _sampler("token", "truncate"),
    "icepop": _sampler("token", "mask"),
    "seq-mask-tis": _sampler("sequence_filter", "mask"),
}


def approximate_kl(case):
    """KL estimates, held within 10, and the gradient of their sum."""
    new = case.array("log_probs")
    groups = Groups.blocks(len(new), 1)
    evaluation = run(
        Conventions.of(
            kl=(case.kwargs["kl_estimator"], {"beta": 1.0, "clamp_out": 10.0}),
            aggregation="token_sum", advantage="given",
        ),
        groups, mask=np.ones(new.shape), logp_new=new, logp_ref=case.array("log_probs_base"),
        advantages=np.zeros(len(new)),
    )  # fmt: skip
    yield case.check("kl", groups.down(evaluation.kl))
    yield case.check("grad_log_probs_of_sum", -groups.down(evaluation.kl_gradient))


def aggregate(case):
    """A matrix of losses to one number, and its gradient."""
    matrix, mask = case.array("loss"), case.array("loss_mask")
    groups = Groups.blocks(len(matrix), 1)
    evaluation = run(
        Conventions.of(
            advantage="given", surrogate="reinforce", kl=("k3", {"beta": 0.0}),
            aggregation=_aggregation(case, case.kwargs["token_level_loss"]),
        ),
        groups, mask=mask, logp_new=matrix, advantages=np.ones(len(matrix)),
    )  # fmt: skip
    yield case.check("loss", evaluation.objective)
    yield case.check("grad_loss", groups.down(evaluation.gradient))


def _grouped(eps):
    return "mean_std", {"ddof": 1, "eps": eps}


_ESTIMATORS = {
    "group_norm": (_grouped(1e-9), "none"),
    "dr_grpo": (("mean_only", {}), "none"),
    "rloo": (("leave_one_out", {}), "none"),
    "reinforce_baseline": (
        ("mean_only", {}),
        ("tokens", {"ddof": 0, "eps": 1e-8, "guard": "floor"}),
    ),
}


def advantages(case):
    """Group advantages, less the KL of each token in the returns."""
    mask, kl = case.array("action_mask"), case.array("kl")
    groups = Groups.blocks(len(mask), case.kwargs["n_samples_per_prompt"])
    row, whitening = _ESTIMATORS[case.kwargs["estimator"]]
    placed = ("k1", {"beta": case.kwargs["kl_coef"], "place": "returns"})
    rows = {"mask": mask, "rewards": case.array("rewards"), "logp_new": kl,
            "logp_ref": np.zeros(kl.shape)}  # fmt: skip
    plain = run(Conventions.of(advantage=row, kl=placed), groups, **rows)
    yield case.check("returns", groups.down(plain.token_advantages))
    evaluation = run(Conventions.of(advantage=row, kl=placed, whitening=whitening), groups, **rows)
    recorded = np.asarray(case.outputs["advantages"], dtype=float)
    computed = groups.down(evaluation.token_advantages)
    # reinforce_baseline leaves numbers in the padding, which says nothing.
    yield case.check("advantages", np.where(mask > 0, computed, recorded))
