"""OpenRLHF 0.11: flags of train_ppo_ray."""

from .settings import SPREADING_NAN, Derived, Dialect, Link, Row, fixed

_COUNT = {"empty": "drop", "count_eps": 1e-8}
_LARGE = 1_000_000  # a bound that nothing reaches


def _pair(value):
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError("wanted two numbers")
    return tuple(value)


_BAND = {
    "actor.eps_clip_low_high": Link(
        options=("surrogate.epsilon_low", "surrogate.epsilon_high"),
        write=lambda low, high: [low, high],
        read=_pair,
    )
}
_DUAL = {**_BAND, "actor.dual_clip": "surrogate.dual_clip"}
_TYPES = {
    "ppo": (("token", {"clamp": 20.0}), "token_mean"),
    "gspo": ("sequence", ("completion_mean", _COUNT)),
}
_LOSSES = tuple(
    Row(
        choices={"surrogate": surrogate, "ratio": ratio, "aggregation": aggregation},
        keys={"actor.policy_loss_type": kind, **keys},
        links=links,
    )
    for kind, (ratio, aggregation) in _TYPES.items()
    for surrogate, links, keys in (
        ("clip", _BAND, {"actor.dual_clip": None}),
        ("dual_clip", _DUAL, {}),
    )
)


def _within(value):
    """A range from -x to x as x; wide enough for anything is 0, not held."""
    low, high = _pair(value)
    if isinstance(high, bool) or not isinstance(high, (int, float)) or low != -high:
        raise ValueError("wanted a range from -x to x")
    return (0.0 if high >= _LARGE else high,)


def _held(option):
    """Judged rewards are held within a range before the KL is taken off and before whitening."""
    link = Link(
        options=(option,),
        write=lambda limit: [-(limit or _LARGE), limit or _LARGE],
        read=_within,
    )
    return {"reward.clip_range": link}


_TOKENS = ("tokens", {"ddof": 0, "eps": 1e-8, "guard": "floor"})
_ESTIMATOR, _NO_STD = "algo.advantage.estimator", "algo.advantage.no_std_norm"


def _judged(estimator, advantage):
    return Row(
        choices={"advantage": advantage, "rewards": "outcome", "whitening": "none"},
        keys={_ESTIMATOR: estimator},
        links=_held("whitening.limit"),
    )


def _whitened(estimator, advantage, links):
    return Row(
        choices={"advantage": advantage, "rewards": "outcome", "whitening": _TOKENS},
        keys={_ESTIMATOR: estimator, _NO_STD: False},
        links={**links, **_held("whitening.before")},
    )


_ADVANTAGES = (
    _judged("group_norm", ("mean_std", {"ddof": 1, "eps": 1e-9})),
    _judged("dr_grpo", "mean_only"),
    _judged("rloo", "leave_one_out"),
    _whitened("reinforce_baseline", "mean_only", {}),
    _whitened("reinforce", "returns", {"algo.advantage.gamma": "advantage.gamma"}),
)
_KL = tuple(
    Row(
        choices={"kl": (row, {"place": place, "clamp_out": 10.0})},
        keys={"algo.kl.estimator": row, "algo.kl.use_loss": place == "objective"},
        links={"algo.kl.init_coef": "kl.beta"},
    )
    for place in ("returns", "objective")
    for row in ("k1", "k2", "k3")
)
_TIED = (
    Row(choices={"tied": "keep"}, keys={"algo.dynamic_filtering_enable": False}),
    Row(
        choices={"tied": "drop"},
        keys={"algo.dynamic_filtering_enable": True},
        note="Dynamic filtering keeps groups with a mean score inside dynamic_filtering_range, "
        "0 to 1, and samples others.",
    ),
)
_BOUNDS = {
    "algo.advantage.is_correction_threshold": Link(
        options=("correction.low", "correction.high"),
        write=lambda low, high: [low, high or _LARGE],
        read=lambda value: (_pair(value)[0], 0.0 if _pair(value)[1] == _LARGE else _pair(value)[1]),
    )
}
_ENABLED = "algo.advantage.is_correction_enable"
_KINDS = {
    "tis": {"level": "token", "mode": "truncate"},
    "icepop": {"level": "token", "mode": "mask"},
    "seq-mask-tis": {"level": "sequence_filter", "mode": "mask"},
}
_CORRECTIONS = (
    Row(choices={"correction": "none"}, keys={_ENABLED: False}),
    *(
        Row(
            choices={"correction": ("sampler", options)},
            keys={_ENABLED: True, "algo.advantage.is_correction_type": kind},
            links=_BOUNDS,
        )
        for kind, options in _KINDS.items()
    ),
)
_ENTROPY = (
    Row(choices={"entropy": "none"}, keys={"actor.entropy_coef": None}),
    Row(choices={"entropy": "bonus"}, links={"actor.entropy_coef": "entropy.coefficient"}),
)
_FIXED = fixed(truncated="keep", selection="all", accumulation="factor")


def _lines(settings):
    for key, value in settings.items():
        if value is True:
            yield f"--{key}"
        elif isinstance(value, (list, tuple)):
            yield f"--{key} {' '.join(str(each) for each in value)}"
        else:
            yield f"--{key} {value}"


OPENRLHF = Dialect(
    key="openrlhf",
    name="OpenRLHF 0.11",
    axes=(_LOSSES, _ADVANTAGES, _KL, _TIED, _CORRECTIONS, _ENTROPY, *_FIXED),
    defaults={
        _ESTIMATOR: "group_norm",
        _NO_STD: False,
        "algo.advantage.gamma": 1.0,
        "actor.policy_loss_type": "ppo",
        "actor.eps_clip": 0.2,
        "actor.eps_clip_low_high": Derived(key="actor.eps_clip", of=lambda bound: [bound, bound]),
        "actor.dual_clip": None,
        "actor.entropy_coef": None,
        "algo.kl.init_coef": 0.01,
        "algo.kl.estimator": "k1",
        "algo.kl.use_loss": False,
        "algo.dynamic_filtering_enable": False,
        _ENABLED: False,
        "algo.advantage.is_correction_type": "tis",
        "algo.advantage.is_correction_threshold": [0.5, 5.0],
        "reward.clip_range": [-10, 10],
        "rollout.n_samples_per_prompt": 1,
    },
    lines=_lines,
    other=SPREADING_NAN,
    group_key="rollout.n_samples_per_prompt",
    old_names={
        "advantage_estimator": _ESTIMATOR,
        "init_kl_coef": "algo.kl.init_coef",
        "use_kl_loss": "algo.kl.use_loss",
        "kl_estimator": "algo.kl.estimator",
        "reward_clip_range": "reward.clip_range",
        "entropy_loss_coef": "actor.entropy_coef",
        "dynamic_filtering": "algo.dynamic_filtering_enable",
        "no_advantage_std_norm": _NO_STD,
    },
    always={
        _ESTIMATOR: "algo.advantage.estimator is not given: OpenRLHF's default, gae, needs a value "
        "network, so group_norm is taken."
    },
)
