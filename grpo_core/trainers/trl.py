"""TRL 1.16: GRPOConfig, with GMPOConfig and RLOOConfig beside it."""

import json

from .settings import TASK_WEIGHT, UNSET, Derived, Dialect, Link, Row, fixed

_BAND = {"epsilon": "surrogate.epsilon_low", "epsilon_high": "surrogate.epsilon_high"}
_LENGTH = {
    "max_completion_length": Link(
        options=("aggregation.length",), write=lambda length: length or UNSET
    )
}
# loss_type -> aggregation and its links, for the losses that clip. bnpo divides by the tokens
# of each micro-batch: it is dapo where that is the whole batch.
_CLIPPED = {
    "dapo": ("token_mean", {}),
    "grpo": ("completion_mean", {}),
    "bnpo": ("token_mean", {}),
    "dr_grpo": ("constant", _LENGTH),
    "luspo": ("completion_sum", {}),
}


def _clipped():
    for kind, (aggregation, links) in _CLIPPED.items():
        yield Row(
            choices={"surrogate": "clip", "aggregation": aggregation},
            keys={"loss_type": kind, "delta": None},
            links={**_BAND, **links},
            written=kind != "bnpo",
        )
        yield Row(
            choices={"surrogate": "two_sided", "aggregation": aggregation},
            keys={"loss_type": kind},
            links={**_BAND, **links, "delta": "surrogate.delta"},
            written=kind != "bnpo",
        )


_LOSSES = (
    *_clipped(),
    Row(
        choices={
            "surrogate": ("cispo", {"epsilon_low": 1.0, "bound": "absolute"}),
            "aggregation": "token_mean",
        },
        keys={"loss_type": "cispo"},
        links={"epsilon_high": "surrogate.epsilon_high"},
        note="In cispo, epsilon_high is the bound of the weight itself.",
    ),
    Row(
        choices={"surrogate": "sapo", "aggregation": "completion_mean"},
        keys={"loss_type": "sapo"},
        links={
            "sapo_temperature_pos": "surrogate.tau_up",
            "sapo_temperature_neg": "surrogate.tau_down",
        },
    ),
    Row(
        choices={"surrogate": ("vespo", {"sampler": "inside"}), "aggregation": "token_mean"},
        keys={"loss_type": "vespo"},
        links={
            "vespo_k_pos": "surrogate.k_up",
            "vespo_lambda_pos": "surrogate.lambda_up",
            "vespo_k_neg": "surrogate.k_down",
            "vespo_lambda_neg": "surrogate.lambda_down",
        },
    ),
)
_RATIOS = (
    Row(choices={"ratio": "token"}, keys={"importance_sampling_level": "token"}),
    Row(choices={"ratio": "sequence"}, keys={"importance_sampling_level": "sequence"}),
)
_KLS = tuple(
    Row(
        choices={"kl": ("k3", {"weight": weight})},
        keys={"use_bias_correction_kl": weight == "ratio"},
        links={"beta": "kl.beta"},
    )
    for weight in ("ratio", "none")
)
_STD = ("mean_std", {"ddof": 1, "eps": 1e-4})
_SCALES = {
    "group": _STD,
    "none": "mean_only",
    "batch": ("batch_std", {"ddof": 1, "eps": 1e-4}),
}
_REWARDS = (
    *(
        Row(
            choices={"advantage": advantage, "rewards": "sum_then_normalize"},
            keys={"multi_objective_aggregation": "sum_then_normalize", "scale_rewards": scale},
            links={"reward_weights": TASK_WEIGHT},
        )
        for scale, advantage in _SCALES.items()
    ),
    Row(
        choices={
            "advantage": _STD,
            "rewards": ("normalize_then_sum", {"batch_scale": "completion", "batch_eps": 1e-4}),
        },
        keys={"multi_objective_aggregation": "normalize_then_sum"},
        links={"reward_weights": TASK_WEIGHT},
    ),
)
_TRUNCATED = tuple(
    Row(choices={"truncated": row}, keys={"mask_truncated_completions": row == "drop"})
    for row in ("keep", "drop")
)
_SELECTIONS = (
    Row(
        choices={"selection": "all"},
        keys={"top_entropy_quantile": 1.0, "off_policy_mask_threshold": None},
    ),
    Row(
        choices={"selection": "on_policy"},
        keys={"top_entropy_quantile": 1.0},
        links={"off_policy_mask_threshold": "selection.threshold"},
    ),
    Row(
        choices={"selection": "entropy"},
        keys={"off_policy_mask_threshold": None},
        links={"top_entropy_quantile": "selection.share"},
    ),
    Row(
        choices={"selection": "entropy_on_policy"},
        links={
            "top_entropy_quantile": "selection.share",
            "off_policy_mask_threshold": "selection.threshold",
        },
    ),
)


def _none_is_0(option):
    return Link(
        options=(option,),
        write=lambda bound: bound or None,
        read=lambda bound: (0.0 if bound is None else bound,),
    )


_VLLM = ("use_vllm", "vllm_importance_sampling_correction")
_CORRECTIONS = (
    Row(choices={"correction": "none"}, keys={"use_vllm": False}),
    Row(
        choices={"correction": "none"},
        keys=dict(zip(_VLLM, (True, False), strict=True)),
        written=False,
    ),
    *(
        Row(
            choices={"correction": ("sampler", {"level": level, "mode": mode})},
            keys={
                **dict.fromkeys(_VLLM, True),
                "vllm_importance_sampling_mode": f"{level}_{mode}",
            },
            links={
                "vllm_importance_sampling_clip_min": _none_is_0("correction.low"),
                "vllm_importance_sampling_clip_max": _none_is_0("correction.high"),
            },
        )
        for level in ("sequence", "token")
        for mode in ("mask", "truncate")
    ),
)
_ENTROPY = (
    Row(choices={"entropy": "none"}, keys={"entropy_coef": 0.0}),
    Row(
        choices={"entropy": "bonus"},
        links={"entropy_coef": "entropy.coefficient"},
        note="TRL averages the entropy over tokens, whatever loss_type is; here it is averaged as "
        "the loss is, which is the same under dapo, bnpo, cispo and vespo.",
    ),
)
_FIXED = fixed(whitening="none", tied="keep", accumulation="factor")
_SHARED = {
    "epsilon": 0.2,
    "epsilon_high": Derived(key="epsilon"),
    "reward_weights": None,
    "mask_truncated_completions": False,
    "use_vllm": False,
    "vllm_importance_sampling_correction": True,
    "vllm_importance_sampling_mode": "sequence_mask",
    "vllm_importance_sampling_clip_min": None,
    "vllm_importance_sampling_clip_max": 3.0,
}
_DEFAULTS = {
    **_SHARED,
    "num_generations": 8,
    "max_completion_length": 512,
    "loss_type": "dapo",
    "delta": None,
    "beta": 0.0,
    "use_bias_correction_kl": True,
    "importance_sampling_level": "token",
    "scale_rewards": "group",
    "multi_objective_aggregation": "sum_then_normalize",
    "sapo_temperature_pos": 1.0,
    "sapo_temperature_neg": 1.05,
    "vespo_k_pos": 2.0,
    "vespo_lambda_pos": 3.0,
    "vespo_k_neg": 3.0,
    "vespo_lambda_neg": 2.0,
    "top_entropy_quantile": 1.0,
    "off_policy_mask_threshold": None,
    "entropy_coef": 0.0,
}
_SPELLINGS = {"scale_rewards": ((True, "group"), (False, "none"))}
_HINTS = {
    "gradient_accumulation_steps": "is not taken over; for one of its micro-batches set the "
    "factor of the loss, under Accumulation, to 1 over it, unless loss_type is dapo, cispo or vespo"
}
_OLD_NAMES = {"vllm_importance_sampling_cap": "vllm_importance_sampling_clip_max"}


def _call(module, name):
    """A function that writes settings as a call of a configuration class."""

    def lines(settings):
        yield f"from {module} import {name}"
        yield ""
        if not settings:
            yield f"config = {name}()  # all defaults"
            return
        yield f"config = {name}("
        for key, value in settings.items():
            yield f"    {key}={_literal(value)},"
        yield ")"

    return lines


def _literal(value):
    return json.dumps(value) if isinstance(value, str) else repr(value)


GRPO = Dialect(
    key="trl",
    name="TRL 1.16",
    axes=(
        *(_LOSSES, _RATIOS, _KLS, _REWARDS, _TRUNCATED),
        *(_SELECTIONS, _CORRECTIONS, _ENTROPY, *_FIXED),
    ),
    defaults=_DEFAULTS,
    lines=_call("trl", "GRPOConfig"),
    group_key="num_generations",
    weights_key="reward_weights",
    old_names=_OLD_NAMES,
    spellings=_SPELLINGS,
    scale={"aggregation.length": "L"},
    hints=_HINTS,
)
GMPO = Dialect(
    key="trl-gmpo",
    name="TRL 1.16 GMPOTrainer",
    axes=(
        (
            Row(
                choices={"surrogate": "gmpo", "aggregation": "completion_mean", "ratio": "token"},
                links={"epsilon": "surrogate.log_low", "epsilon_high": "surrogate.log_high"},
                note="In GMPO, epsilon bounds the logarithm of the ratio.",
            ),
        ),
        *GRPO.axes[2:],
    ),
    defaults={**_DEFAULTS, "epsilon": 0.4},
    lines=_call("trl.experimental.gmpo", "GMPOConfig"),
    group_key="num_generations",
    weights_key="reward_weights",
    old_names=_OLD_NAMES,
    spellings=_SPELLINGS,
)
RLOO = Dialect(
    key="trl-rloo",
    name="TRL 1.16 RLOOTrainer",
    axes=(
        (
            Row(
                choices={
                    "surrogate": "clip",
                    "ratio": "sequence_product",
                    "aggregation": "completion_mean",
                },
                links=_BAND,
            ),
        ),
        (Row(choices={"kl": ("k1", {"place": "reward"})}, links={"beta": "kl.beta"}),),
        (
            Row(
                choices={"advantage": "leave_one_out", "rewards": "sum_then_normalize"},
                keys={"normalize_advantages": False},
                links={"reward_weights": TASK_WEIGHT},
            ),
        ),
        _TRUNCATED,
        (Row(choices={"selection": "all"}),),
        (Row(choices={"correction": "none"}),),
        (Row(choices={"entropy": "none"}),),
        *_FIXED,
    ),
    defaults={
        **{key: value for key, value in _SHARED.items() if "vllm" not in key},
        "num_generations": 2,
        "beta": 0.05,
        "normalize_advantages": False,
    },
    lines=_call("trl", "RLOOConfig"),
    group_key="num_generations",
    weights_key="reward_weights",
)
