"""Presets of trainers, each at the version that it was read in."""

from .preset_type import NO_KL, Preset, clip, sample

_VERL_RATIO = ("token", {"clamp": 20.0})
_VERL_KL_OFF = ("k3", {"beta": 0.0, "clamp_in": 20.0, "clamp_out": 10.0})
_VERL_DUAL = ("dual_clip", {"epsilon_low": 0.2, "epsilon_high": 0.2, "dual_clip": 3.0})
_VERL_GROUP = sample(1e-6, alone="reward_over_1")


_TRL = {
    "kl": ("k3", {"beta": 0.0, "weight": "ratio"}),
    "advantage": sample(1e-4),
    "rewards": "sum_then_normalize",
    "aggregation": "token_mean",
}
_VERL = {
    "kl": _VERL_KL_OFF,
    "advantage": _VERL_GROUP,
    "ratio": _VERL_RATIO,
    "surrogate": _VERL_DUAL,
    "aggregation": "token_mean",
}
_OPENRLHF = {
    "kl": ("k1", {"beta": 0.01, "place": "returns", "clamp_out": 10.0}),
    "ratio": _VERL_RATIO,
    "surrogate": clip(0.2),
    "aggregation": "token_mean",
    "whitening": ("none", {"limit": 10.0}),
}

ROWS = (
    Preset(
        key="trl-1.16",
        label="TRL 1.16",
        kind="framework",
        choices=_TRL,
        source="trl 1.16.0, GRPOConfig defaults: beta 0, loss_type dapo, scale_rewards group",
        group_size=8,
        beside="With vLLM also a correction: sequence_mask, C_max 3.",
    ),
    Preset(
        key="trl-jul26",
        label="TRL, July 2026",
        kind="framework",
        choices={**_TRL, "kl": NO_KL},
        source="trl 1.10.0.dev0: use_bias_correction_kl was False",
        group_size=8,
        beside="With vLLM also a correction: sequence_mask, C_max 3.",
    ),
    Preset(
        key="trl-classic",
        label="TRL, early 2025",
        kind="framework",
        choices={**_TRL, "kl": ("k3", {"beta": 0.04}), "aggregation": "completion_mean"},
        source="trl of early 2025: beta 0.04, loss averaged per completion",
        group_size=8,
    ),
    Preset(
        key="trl-rloo-1.16",
        label="TRL RLOOTrainer 1.16",
        kind="framework",
        choices={
            "kl": ("k1", {"beta": 0.05, "place": "reward"}),
            "rewards": "sum_then_normalize",
            "advantage": "leave_one_out",
            "ratio": "sequence_product",
            "aggregation": "completion_mean",
        },
        source="trl 1.16.0, RLOOConfig defaults",
        group_size=2,
    ),
    Preset(
        key="verl-0.9.1-grpo",
        label="verl 0.9.1, grpo",
        kind="framework",
        missing="nan",
        choices=_VERL,
        source="verl 0.9.1, adv_estimator=grpo, actor.yaml",
    ),
    Preset(
        key="verl-script-grpo",
        label="verl, example scripts",
        kind="framework",
        missing="nan",
        choices={**_VERL, "kl": ("k3", {"beta": 0.001, "clamp_in": 20.0, "clamp_out": 10.0})},
        source="verl examples: use_kl_loss with kl_loss_coef 0.001, low_var_kl",
    ),
    Preset(
        key="verl-drgrpo",
        label="verl, Dr. GRPO",
        kind="framework",
        missing="nan",
        choices={
            **_VERL,
            "advantage": ("mean_only", {"alone": "reward"}),
            "aggregation": ("constant", {"empty": "drop"}),
        },
        source="verl docs/algo/grpo.md: norm_adv_by_std_in_grpo=False, seq-mean-token-sum-norm",
    ),
    Preset(
        key="verl-dapo",
        label="verl, DAPO",
        kind="framework",
        missing="nan",
        choices={
            **_VERL,
            "surrogate": (
                "dual_clip",
                {"epsilon_low": 0.2, "epsilon_high": 0.28, "dual_clip": 3.0},
            ),
            "tied": "drop",
        },
        source="verl recipe/dapo: clip_ratio_high 0.28, filter_groups, overlong buffer",
        group_size=16,
        beside="Dropped groups are sampled anew; scripts often set clip_ratio_c to 10.",
    ),
    Preset(
        key="openrlhf-0.11-group_norm",
        label="OpenRLHF 0.11, group_norm",
        kind="framework",
        missing="nan",
        choices={**_OPENRLHF, "advantage": sample(1e-9)},
        source="OpenRLHF 0.11.0, --algo.advantage.estimator group_norm",
    ),
    Preset(
        key="openrlhf-dr_grpo",
        label="OpenRLHF, dr_grpo",
        kind="framework",
        missing="nan",
        choices={**_OPENRLHF, "advantage": "mean_only"},
        source="OpenRLHF 0.11.0, --algo.advantage.estimator dr_grpo",
    ),
    Preset(
        key="slime-grpo",
        label="slime, grpo",
        kind="framework",
        missing="nan",
        choices={
            "kl": ("k1", {"beta": 0.0}),
            "advantage": sample(1e-6),
            "surrogate": clip(0.2),
            "aggregation": "completion_mean",
        },
        source="slime of August 2026: kl_loss_coef 0, positional groups",
        group_size=1,
    ),
    Preset(
        key="nemo-rl-grpo",
        label="NeMo-RL, grpo",
        kind="framework",
        missing="nan",
        choices={
            "kl": ("k3", {"beta": 0.01, "clamp_in": 20.0, "clamp_out": 10.0, "weight": "score"}),
            "advantage": ("leave_one_out_std", {"eps": 1e-6}),
            "surrogate": clip(0.2),
            "aggregation": "token_mean",
        },
        source="NeMo-RL of August 2026, grpo_math_1B.yaml",
        group_size=16,
    ),
    Preset(
        key="prime-rl-grpo",
        label="prime-rl, grpo",
        kind="framework",
        missing="nan",
        choices={
            "kl": NO_KL,
            "advantage": "mean_only",
            "surrogate": ("dppo_tv", {"form": "ratio"}),
            "aggregation": "token_mean",
            "tied": "zero",
        },
        source="prime-rl of August 2026: DPPO mask of 0.2, zero advantages filtered",
        beside="The ratio is taken to the sampler, with a further 0.001 log(ratio)^2 in the loss.",
    ),
    Preset(
        key="skyrl-grpo",
        label="SkyRL, grpo",
        kind="framework",
        missing="nan",
        choices={
            "kl": ("k3", {"beta": 0.001, "clamp_in": 20.0, "clamp_out": 10.0}),
            "advantage": _VERL_GROUP,
            "surrogate": clip(0.2),
            "aggregation": "token_mean",
        },
        source="SkyRL of August 2026, ppo_base_config.yaml",
    ),
    Preset(
        key="areal-default",
        label="AReaL, default",
        kind="framework",
        missing="nan",
        choices={
            "kl": ("k1", {"beta": 0.1, "place": "returns", "clamp_out": 10.0}),
            "advantage": "uncompared",
            "surrogate": clip(0.2),
            "aggregation": "token_mean",
            "whitening": ("none", {"limit": 20.0}),  # its reward_clip, of rewards as they are
        },
        source="AReaL of May 2026: reward_norm and adv_norm None, kl_ctl 0.1, reward_clip 20",
    ),
    Preset(
        key="swift-grpo",
        label="ms-swift, grpo",
        kind="framework",
        choices={
            "kl": ("k3", {"beta": 0.04}),
            "rewards": ("sum_then_normalize", {"missing": "as_zero"}),
            "advantage": sample(1e-4),
            "aggregation": "completion_mean",
        },
        source="ms-swift of August 2026, rlhf_args.py",
        group_size=8,
    ),
)
