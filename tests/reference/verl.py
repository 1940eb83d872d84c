"""Cases of verl: which options of the core a call's arguments are."""

import numpy as np

from grpo_core import Conventions
from grpo_core.aggregation import AGGREGATIONS
from tests.reference.recorded import Groups, Unsupported, run

_COUNT = {"empty": "drop", "count_eps": 1e-8}
_AGGREGATIONS = {
    "token-mean": ("token_mean", {}),
    "seq-mean-token-mean": ("completion_mean", _COUNT),
    "seq-mean-token-sum": ("completion_sum", {"empty": "drop"}),
    "seq-mean-token-sum-norm": ("constant", {"empty": "drop"}),
    "token-sum": ("token_sum", {}),
}
# What verl calls the sizes of the whole batch, and whether ranks share it.
_SIZES = {
    "tokens": ("batch_num_tokens", True),
    "completions": ("global_batch_size", True),
    "length": ("loss_scale_factor", False),
}


def _factor(mode, sizes):
    """A sum over ranks of which each takes the mean counts every rank's whole."""
    return {"factor": sizes.get("dp_size", 1) if mode == "token-sum" else 1.0}


def _aggregation(mode, sizes):
    """Aggregation row of a mode; `sizes` holds what is known of the whole batch."""
    row, options = _AGGREGATIONS[mode]
    known = {option.key for option in AGGREGATIONS[row].options}
    options, ranks = dict(options), sizes.get("dp_size", 1)
    for key, (name, shared) in _SIZES.items():
        if key in known and sizes.get(name) is not None:
            options[key] = sizes[name] / ranks if shared else sizes[name]
    return row, options


def _rewards(case):
    """A completion's reward: its token rewards, summed over all positions."""
    return np.sum(case.array("token_level_rewards"), axis=-1)


def _estimate(case, row, *, rewards="outcome", whitening="none", scores=None, terms=()):
    mask = case.array("response_mask")
    groups = Groups.of(case.inputs["index"])
    evaluation = run(
        Conventions.of(rewards=rewards, advantage=row, whitening=whitening, kl=("k3", {"beta": 0})),
        groups,
        mask=mask,
        rewards=_rewards(case) if scores is None else scores,
        terms=terms,
    )
    yield case.check("advantages", groups.down(evaluation.token_advantages))


def _eps(case):
    return case.option("epsilon", case.kwargs["epsilon_default"])


def _normalised(case, key="norm_adv_by_std_in_grpo", **options):
    if not case.option(key, True):
        return "mean_only", {"alone": "reward"}
    return "mean_std", {
        "ddof": 1, "eps": _eps(case), "alone": "reward_over_1", **options,
    }  # fmt: skip


def grpo(case):
    """Group mean and std."""
    yield from _estimate(case, _normalised(case))


def grpo_vectorized(case):
    """The same with a floor under the variance."""
    row, options = _normalised(case)
    if row == "mean_std":
        options |= {"floor": np.sqrt(_eps(case))}
    yield from _estimate(case, (row, options))


def grpo_passk(case):
    """Best minus second best."""
    divide = "std" if case.option("norm_adv_by_std_in_grpo", True) else "nothing"
    options = {"ddof": 1, "eps": _eps(case), "divide": divide}
    yield from _estimate(case, ("best_over_second", options))


def rloo(case):
    """Mean of the others; a group of one keeps its score."""
    yield from _estimate(case, ("leave_one_out", {"alone": "reward"}))


def rloo_vectorized(case):
    """Mean of the others; a group of one gets 0."""
    yield from _estimate(case, ("leave_one_out", {"alone": "zero"}))


def opo(case):
    """Length-weighted mean."""
    yield from _estimate(case, "length_weighted")


def gpg(case):
    """Group mean, scaled by the share of scores that are not 0."""
    yield from _estimate(case, ("nonzero_scaled", {"f_norm": case.option("f_norm", 1.0)}))


_WHITENED = ("tokens", {"ddof": 1, "eps": 1e-8, "guard": "added", "count_eps": 1e-8})


def reinforce_baseline(case):
    """Group mean, whitened over all tokens."""
    yield from _estimate(case, ("mean_only", {"alone": "reward"}), whitening=_WHITENED)


def reinforce(case):
    """Returns to go, whitened over all tokens."""
    mask, rewards = case.array("response_mask"), case.array("token_level_rewards")
    groups = Groups.blocks(len(mask), 1)
    conventions = {"advantage": ("returns", {"gamma": case.kwargs["gamma"]})}
    rows = {"mask": mask, "token_rewards": rewards, "rewards": np.zeros(len(mask))}
    plain = run(Conventions.of(**conventions), groups, **rows)
    yield case.check("returns", groups.down(plain.token_advantages))
    whitened = run(Conventions.of(**conventions, whitening=_WHITENED), groups, **rows)
    yield case.check("advantages", groups.down(whitened.token_advantages))


def gdpo(case):
    """Each reward component on its own, summed, whitened over all tokens."""
    row = _normalised(case)
    if "reward_components" not in case.inputs:
        yield from _estimate(case, row, whitening=_WHITENED)
        return
    columns = case.inputs["reward_components"]
    keys = case.kwargs["gdpo_reward_keys"]
    weights = case.option("gdpo_reward_weights", [1.0] * len(keys))
    values = [np.array(columns[key], dtype=float) for key in keys]
    options = {
        "task_weight": weights[0], "batch_scale": "token", "batch_eps": 1e-4,
    }  # fmt: skip
    yield from _estimate(
        case,
        row,
        rewards=("normalize_then_sum", options),
        scores=values[0],
        terms=list(zip(weights[1:], values[1:], strict=True)),
    )


def aggregate(case):
    """A matrix of losses to one number, and its gradient."""
    matrix, mask = case.array("loss_mat"), case.array("loss_mask")
    groups = Groups.blocks(len(matrix), 1)
    if not mask.any():
        raise Unsupported("everything masked")
    mode = case.kwargs["loss_agg_mode"]
    # With an advantage of 1 and REINFORCE, the objective is the aggregate of logp_new.
    evaluation = run(
        Conventions.of(
            advantage="given", surrogate="reinforce", aggregation=_aggregation(mode, case.kwargs),
            accumulation=("factor", _factor(mode, case.kwargs)),
            kl=("k3", {"beta": 0.0}),
        ),
        groups, mask=mask, logp_new=matrix, advantages=np.ones(len(matrix)),
    )  # fmt: skip
    yield case.check("loss", evaluation.objective)
    yield case.check("grad_loss_mat", groups.down(evaluation.gradient))


_KLS = {
    "kl": "k1", "k1": "k1", "abs": "abs", "mse": "k2", "k2": "k2", "low_var_kl": "k3", "k3": "k3",
}  # fmt: skip


def kl_penalty(case):
    """KL estimates and the gradient of their sum."""
    name = case.kwargs["kl_penalty"]
    row = _KLS[name.removesuffix("+")]
    clamps = {"clamp_in": 20.0, "clamp_out": 10.0} if row == "k3" else {}
    gradient = "k2" if name.endswith("+") else "own"
    new = case.array("logprob")
    groups = Groups.blocks(len(new), 1)
    evaluation = run(
        Conventions.of(
            kl=(row, {"beta": 1.0, "gradient": gradient, **clamps}), aggregation="token_sum",
            advantage="given",
        ),
        groups, mask=np.ones(new.shape), logp_new=new, logp_ref=case.array("ref_logprob"),
        advantages=np.zeros(len(new)),
    )  # fmt: skip
    yield case.check("kl", groups.down(evaluation.kl))
    yield case.check("grad_logprob_of_sum", -groups.down(evaluation.kl_gradient))


def rewards_less_kl(case):
    """Token scores less the KL of each token."""
    old = case.array("old_log_prob")
    groups = Groups.blocks(len(old), 1)
    evaluation = run(
        Conventions.of(kl=("k1", {"beta": case.kwargs["kl_ratio"], "place": "reward"})),
        groups, mask=np.ones(old.shape), logp_new=old, logp_ref=case.array("ref_log_prob"),
    )  # fmt: skip
    scores = case.array("token_level_scores")
    yield case.check("rewards", scores - groups.down(evaluation.reward_penalty))


_RATIO = ("token", {"clamp": 20.0})


def _band(case):
    return {
        "epsilon_low": case.option("clip_ratio_low", case.option("clip_ratio", 0.2)),
        "epsilon_high": case.option("clip_ratio_high", case.option("clip_ratio", 0.2)),
    }


def _vanilla(case):
    return ("dual_clip", {**_band(case), "dual_clip": case.option("clip_ratio_c", 3.0)}), _RATIO


def _gspo(case):
    return ("clip", _band(case)), ("sequence_token", {"clamp": 10.0})


def _sapo(case):
    options = {"tau_up": case.kwargs["tau_pos"], "tau_down": case.kwargs["tau_neg"]}
    return ("sapo", options), _RATIO


def _cispo(case):
    return ("cispo", {**_band(case), "bound": "offset"}), _RATIO


def _geo_mean(case):
    band = _band(case)
    return (
        (
            "gmpo",
            {"log_low": band["epsilon_low"], "log_high": band["epsilon_high"], "count_eps": 1e-8},
        ),
        ("token", {}),
    )


def _gpg(case):
    return ("reinforce", {}), ("token", {})


def _dppo(row):
    def choices(case):
        options = {**_band(case), "form": "detached", "truncate": case.kwargs["clip_ratio_c"]}
        return (row, options), _RATIO

    return choices


def _dro(case):
    return ("dro", {"dro_beta": case.kwargs["policy_loss.dro_beta"]}), ("token", {})


# Surrogate and ratio of each loss; those that always average in one way name it.
LOSSES = {
    "vanilla": (_vanilla, None),
    "gspo": (_gspo, None),
    "sapo": (_sapo, ("completion_mean", _COUNT)),
    "cispo": (_cispo, None),
    "geo_mean": (_geo_mean, ("completion_mean", {"empty": "count"})),
    "gpg": (_gpg, None),
    "dppo_tv": (_dppo("dppo_tv"), None),
    "dppo_kl": (_dppo("dppo_kl"), None),
    "dro": (_dro, None),
    "reinforce": (_gpg, None),
}


def loss(kind):
    """The reader of one policy loss."""
    choices, fixed = LOSSES[kind]

    def read(case):
        mask = case.array("response_mask")
        groups = Groups.blocks(len(mask), 1)
        advantages = case.array("advantages")
        surrogate, ratio = choices(case)
        mode, sizes = case.kwargs["loss_agg_mode"], case.option("global_batch_info", {})
        aggregation = fixed or _aggregation(mode, sizes)
        rows = {
            "logp_new": case.array("log_prob"),
            "logp_old": case.array("old_log_prob", case.array("rollout_log_prob")),
            "token_advantages": advantages,
        }
        weights = case.array("rollout_is_weights")
        correction = "none"
        if weights is not None:
            level = "sequence_mean" if kind == "geo_mean" else "token"
            rows["sampler_weights"], correction = weights, ("given", {"level": level})
        evaluation = run(
            Conventions.of(
                advantage="given_per_token", surrogate=surrogate, ratio=ratio,
                aggregation=aggregation, correction=correction, kl=("k3", {"beta": 0.0}),
                accumulation=("factor", _factor(mode, sizes)),
            ),
            groups, mask=mask, **rows,
        )  # fmt: skip
        yield case.check("loss", evaluation.loss)
        yield case.check("grad_log_prob", -groups.down(evaluation.gradient))

    return read
