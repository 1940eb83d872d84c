"""verl 0.9.1: override lines of its configuration."""

from .settings import SPREADING_NAN, TASK_WEIGHT, UNSET, Dialect, Link, Row, fixed

_ACTOR = "actor_rollout_ref.actor."
_LOSS = f"{_ACTOR}policy_loss.loss_mode"
_AGGREGATION = f"{_ACTOR}loss_agg_mode"
_ESTIMATOR = "algorithm.adv_estimator"
_BY_STD = "algorithm.norm_adv_by_std_in_grpo"
_UNBOUNDED = 1_000_000  # a bound of dual clip that no ratio reaches

_COUNT = {"empty": "drop", "count_eps": 1e-8}
_LENGTH = {
    f"{_ACTOR}loss_scale_factor": Link(
        options=("aggregation.length",),
        write=lambda length: length or None,
        read=lambda length: (length or 0,),
    )
}
# loss_agg_mode -> aggregation and its links.
_MODES = {
    "token-mean": ("token_mean", {}),
    "seq-mean-token-mean": (("completion_mean", _COUNT), {}),
    "seq-mean-token-sum": (("completion_sum", {"empty": "drop"}), {}),
    "seq-mean-token-sum-norm": (("constant", {"empty": "drop"}), _LENGTH),
    "token-sum": ("token_sum", {}),
}
_HELD = ("token", {"clamp": 20.0})
_LOW, _HIGH, _C = (f"{_ACTOR}clip_ratio_{end}" for end in ("low", "high", "c"))
_BAND = {_LOW: "surrogate.epsilon_low", _HIGH: "surrogate.epsilon_high"}
_TRUNCATED_RATIO = {**_BAND, _C: "surrogate.truncate"}
_DRO_BETA = Link(
    options=("surrogate.dro_beta",), read=lambda beta: (0.1 if beta is None else beta,)
)

_NO_DUAL = "A clip_ratio_c that no ratio reaches takes dual clip out, which verl has on by default."

# loss_mode -> surrogate, ratio, links, further keys; the default first.
_FREE = (
    ("vanilla", "clip", _HELD, _BAND, {_C: _UNBOUNDED}),
    ("vanilla", "dual_clip", _HELD, {**_BAND, _C: "surrogate.dual_clip"}, {}),
    ("gspo", "clip", ("sequence_token", {"clamp": 10.0}), _BAND, {}),
    ("cispo", ("cispo", {"bound": "offset"}), _HELD, _BAND, {}),
    ("gpg", "reinforce", "token", {}, {}),
    ("dppo_tv", "dppo_tv", _HELD, _TRUNCATED_RATIO, {}),
    ("dppo_kl", "dppo_kl", _HELD, _TRUNCATED_RATIO, {}),
    ("dro", "dro", "token", {f"{_ACTOR}policy_loss.dro_beta": _DRO_BETA}, {}),
)
_LOSSES = (
    *(
        Row(
            choices={"surrogate": surrogate, "ratio": ratio, "aggregation": aggregation},
            keys={_LOSS: loss, _AGGREGATION: mode, **keys},
            links={**links, **more},
            note=_NO_DUAL if surrogate == "clip" and keys else "",
        )
        for loss, surrogate, ratio, links, keys in _FREE
        for mode, (aggregation, more) in _MODES.items()
    ),
    Row(
        choices={
            "surrogate": "sapo",
            "ratio": _HELD,
            "aggregation": ("completion_mean", _COUNT),
        },
        keys={_LOSS: "sapo"},
        links={f"{_ACTOR}tau_pos": "surrogate.tau_up", f"{_ACTOR}tau_neg": "surrogate.tau_down"},
        note="sapo averages per completion, whatever loss_agg_mode is.",
    ),
    Row(
        choices={
            "surrogate": ("gmpo", {"count_eps": 1e-8}),
            "ratio": "token",
            "aggregation": "completion_mean",
        },
        keys={_LOSS: "geo_mean"},
        links={_LOW: "surrogate.log_low", _HIGH: "surrogate.log_high"},
        note="In geo_mean, clip_ratio_low and clip_ratio_high bound the logarithm of the ratio.",
    ),
)

_NAMES = {"low_var_kl": "k3", "kl": "k1", "mse": "k2", "abs": "abs"}


def _kls():
    """Estimator by its name, alone and with the plus that stands for the gradient of k2."""
    for plus in ("", "+"):
        for name, row in _NAMES.items():
            options = {"gradient": "k2" if plus else "own"}
            if row == "k3":
                options |= {"clamp_in": 20.0, "clamp_out": 10.0}
            yield name + plus, row, options


_IN_LOSS, _IN_REWARD = f"{_ACTOR}use_kl_loss", "algorithm.use_kl_in_reward"
_IN_LOSS_TYPE, _IN_REWARD_TYPE = f"{_ACTOR}kl_loss_type", "algorithm.kl_penalty"


def _in_reward(place, when):
    for name, row, options in _kls():
        yield Row(
            choices={"kl": (row, {**options, "place": place})},
            keys={_IN_LOSS: False, _IN_REWARD: True, _IN_REWARD_TYPE: name},
            links={"algorithm.kl_ctrl.kl_coef": "kl.beta"},
            when=when,
        )


_KL = (
    *(
        Row(
            choices={"kl": (row, {**options, "beta": 0.0})},
            keys={_IN_LOSS: False, _IN_REWARD: False, _IN_LOSS_TYPE: name},
        )
        for name, row, options in _kls()
    ),
    *(
        Row(
            choices={"kl": (row, options)},
            keys={_IN_LOSS: True, _IN_LOSS_TYPE: name},
            links={f"{_ACTOR}kl_loss_coef": "kl.beta"},
        )
        for name, row, options in _kls()
    ),
    # REINFORCE++ keeps rewards per token, so that the KL acts from its token backwards.
    *_in_reward("returns", {_ESTIMATOR: "reinforce_plus_plus"}),
    *_in_reward("reward", {}),
)

_EPS = {"ddof": 1, "eps": 1e-6}
_STD = ("mean_std", {**_EPS, "alone": "reward_over_1"})
_FLOOR = ("mean_std", {**_EPS, "alone": "reward_over_1", "floor": 1e-3})
_MEAN = ("mean_only", {"alone": "reward"})
_TOKENS = ("tokens", {"ddof": 1, "eps": 1e-8, "guard": "added", "count_eps": 1e-8})


def _judged(advantage, whitening="none", rewards="outcome", links=None, note="", **keys):
    given = {_ESTIMATOR: keys.pop("estimator"), **({_BY_STD: keys["by_std"]} if keys else {})}
    return Row(
        choices={"advantage": advantage, "rewards": rewards, "whitening": whitening},
        keys=given,
        links=links or {},
        note=note,
    )


_GDPO = {
    "algorithm.gdpo_reward_weights": TASK_WEIGHT,
    "algorithm.gdpo_reward_keys": Link(options=(), write=lambda: UNSET, read=lambda keys: ()),
}
_GDPO_REWARDS = ("normalize_then_sum", {"batch_scale": "token", "batch_eps": 1e-4})
_GDPO_NOTE = "algorithm.gdpo_reward_keys has to name what the reward function returns."


def _second(divide):
    return "best_over_second", {**_EPS, "divide": divide}


_ADVANTAGES = (
    _judged(_STD, estimator="grpo", by_std=True),
    _judged(_MEAN, estimator="grpo", by_std=False),
    _judged(_FLOOR, estimator="grpo_vectorized", by_std=True),
    _judged(_MEAN, estimator="grpo_vectorized", by_std=False),
    _judged(_second("std"), estimator="grpo_passk", by_std=True),
    _judged(_second("nothing"), estimator="grpo_passk", by_std=False),
    _judged(("leave_one_out", {"alone": "reward"}), estimator="rloo"),
    _judged(("leave_one_out", {"alone": "zero"}), estimator="rloo_vectorized"),
    _judged("length_weighted", estimator="opo"),
    _judged("nonzero_scaled", estimator="gpg"),
    _judged(_MEAN, _TOKENS, estimator="reinforce_plus_plus_baseline"),
    _judged(
        "returns", _TOKENS, links={"algorithm.gamma": "advantage.gamma"},
        estimator="reinforce_plus_plus",
    ),
    _judged(_STD, "none", _GDPO_REWARDS, _GDPO, _GDPO_NOTE, estimator="gdpo", by_std=True),
    _judged(_MEAN, "none", _GDPO_REWARDS, _GDPO, _GDPO_NOTE, estimator="gdpo", by_std=False),
)  # fmt: skip
_TIED = (
    Row(choices={"tied": "keep"}, keys={"algorithm.filter_groups.enable": False}),
    Row(
        choices={"tied": "drop"},
        keys={"algorithm.filter_groups.enable": True},
        note="filter_groups samples other prompts in place of the dropped groups.",
    ),
)


def _threshold(mode, low, high):
    """Verl masks where the threshold names two bounds, and else truncates at the one."""
    if not high:
        return UNSET
    return f"{low!r}_{high!r}" if mode == "mask" and low else high


def _bounds(threshold):
    low, _, high = str(threshold).rpartition("_")
    try:
        return ("mask", float(low), float(high)) if low else ("truncate", 0.0, float(high))
    except ValueError:
        raise ValueError("wanted a number, or two as in '0.5_2.0'") from None


_CORRECTION = "algorithm.rollout_correction."
_CORRECTIONS = (
    Row(choices={"correction": "none"}, keys={f"{_CORRECTION}rollout_is": None}),
    *(
        Row(
            choices={"correction": ("sampler", {"level": level, "clamp": 20.0})},
            keys={f"{_CORRECTION}rollout_is": level},
            links={
                f"{_CORRECTION}rollout_is_threshold": Link(
                    options=("correction.mode", "correction.low", "correction.high"),
                    write=_threshold,
                    read=_bounds,
                )
            },
        )
        for level in ("sequence", "token")
    ),
)
_ENTROPY = (
    Row(choices={"entropy": "none"}, keys={f"{_ACTOR}entropy_coeff": 0}),
    Row(choices={"entropy": "bonus"}, links={f"{_ACTOR}entropy_coeff": "entropy.coefficient"}),
)
_FIXED = fixed(truncated="keep", selection="all", accumulation="factor")


def _lines(settings):
    for key, value in settings.items():
        line = f"{key}={_scalar(value)}"
        yield f"'{line}'" if isinstance(value, (list, tuple)) else line


def _scalar(value):
    if value is None:
        return "null"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(_scalar(each) for each in value)}]"
    return str(value)


_TYPES = (("k3", "low_var_kl"), ("k1", "kl"), ("k2", "mse"))
_TYPES += tuple((f"{old}+", f"{new}+") for old, new in _TYPES)

VERL = Dialect(
    key="verl",
    name="verl 0.9.1",
    axes=(_LOSSES, _ADVANTAGES, _KL, _TIED, _CORRECTIONS, _ENTROPY, *_FIXED),
    defaults={
        _ESTIMATOR: "grpo",
        _BY_STD: True,
        _LOSS: "vanilla",
        _LOW: 0.2,
        _HIGH: 0.2,
        _C: 3.0,
        _AGGREGATION: "token-mean",
        f"{_ACTOR}loss_scale_factor": None,
        f"{_ACTOR}policy_loss.dro_beta": None,
        f"{_ACTOR}tau_pos": 1.0,
        f"{_ACTOR}tau_neg": 1.05,
        f"{_ACTOR}clip_ratio": 0.2,
        f"{_ACTOR}entropy_coeff": 0,
        _IN_LOSS: False,
        f"{_ACTOR}kl_loss_coef": 0.001,
        _IN_LOSS_TYPE: "low_var_kl",
        _IN_REWARD: False,
        _IN_REWARD_TYPE: "kl",
        "algorithm.kl_ctrl.kl_coef": 0.001,
        "algorithm.gamma": 1.0,
        "algorithm.gdpo_reward_keys": None,
        "algorithm.gdpo_reward_weights": None,
        "algorithm.filter_groups.enable": False,
        f"{_CORRECTION}rollout_is": None,
        f"{_CORRECTION}rollout_is_threshold": 2.0,
        "actor_rollout_ref.rollout.n": 1,
    },
    lines=_lines,
    other=SPREADING_NAN,
    group_key="actor_rollout_ref.rollout.n",
    weights_key="algorithm.gdpo_reward_weights",
    alike=frozenset({"rollout_n", "rollout_rs", "rollout_rs_threshold"}),
    spellings={_IN_LOSS_TYPE: _TYPES, _IN_REWARD_TYPE: _TYPES},
    always={
        _ESTIMATOR: "algorithm.adv_estimator is not given: verl's default, gae, needs a value "
        "network, so grpo is taken."
    },
)
