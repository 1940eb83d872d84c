"""SNIPPETS: each variant of each stage as straight-line NumPy, for scripts and notebooks.

The code is written for a reader. It holds the chosen options as named numbers and nothing
about the others. Where a batch holds infinities (a log-probability of -inf, a ratio that
overflows), the same lines are written with the helpers of `CAREFUL` instead of operators.
"""

from collections.abc import Callable
from dataclasses import dataclass

CAREFUL = '''\
# This batch holds infinities or comes near them, and 0 * inf and inf - inf would be NaN.
np.seterr(over="ignore", invalid="ignore")


def times(left, right):
    """Product in which 0 * inf is 0."""
    return np.where((left == 0) | (right == 0), 0.0, left * right)


def plus(left, right):
    """Sum in which inf - inf is -inf."""
    return np.nan_to_num(left + right, nan=-np.inf, posinf=np.inf, neginf=-np.inf)


def minus(left, right):
    """Difference of log-probabilities: two equal infinities differ by 0."""
    return np.where(left == right, 0.0, left - right)


def summed(values, **axis):
    """Sum in which inf - inf is -inf."""
    return np.nan_to_num(values.sum(**axis), nan=-np.inf, posinf=np.inf, neginf=-np.inf)'''


@dataclass(frozen=True)
class Plain:
    """How arithmetic is spelled where every number is finite."""

    def times(self, left, right):
        return f"{left} * {right}"

    def plus(self, left, right):
        return f"{left} + {right}"

    def minus(self, left, right):
        return f"{left} - {right}"

    def less(self, left, right):
        return f"{left} - {right}"

    def summed(self, values, axis=""):
        return f"{values}.sum({axis})"

    def summed_of(self, values, axis=""):
        return f"({values}).sum({axis})"


@dataclass(frozen=True)
class Careful(Plain):
    """How arithmetic is spelled where infinities occur."""

    def times(self, left, right):
        return f"times({left}, {right})"

    def plus(self, left, right):
        return f"plus({left}, {right})"

    def minus(self, left, right):
        return f"minus({left}, {right})"

    def less(self, left, right):
        return f"plus({left}, -{right})"

    def summed(self, values, axis=""):
        return f"summed({values}{', ' + axis if axis else ''})"

    summed_of = summed


@dataclass(frozen=True, kw_only=True)
class Writing:
    """What a snippet needs to know: its options, the spelling, and facts about the batch."""

    options: dict
    spelling: Plain
    in_reward: bool
    single: bool  # float32 arrays: stay in float32, as trainers do
    extreme: bool  # scores so large or small that their squares leave double range
    endless: bool  # infinite scores, from a KL penalty in the reward


@dataclass(frozen=True)
class Snippet:
    """Title and code of one variant; ``back`` is the gradient that flows through it."""

    title: str
    code: Callable
    back: Callable | None = None


def _kl(value, derivative):
    def code(w):
        s = w.spelling
        policy = "logp_old" if w.in_reward else "logp_new"
        lines = [
            f"beta = {w.options['beta']!r}",
            f"d = {s.minus('logp_ref', policy)}",
            *value(s),
        ]
        if w.in_reward:
            lines += [
                "# in the reward: a constant of the update, without a gradient of its own",
                f"reward_penalty = {s.times('beta', 'kl')}",
            ]
        return lines

    def back(w):
        s = w.spelling
        return [
            f"d_kl = {derivative}",
            f"kl_gradient = -{s.times('weight', s.times('beta', 'd_kl'))}",
        ]

    return code, back


def _k3(s):
    far = "np.expm1(d) - d"
    if isinstance(s, Careful):
        far = "np.where(d == np.inf, np.inf, np.expm1(d) - d)"
    return [
        "# exp(d) - d - 1. Near 0 that loses its digits: its power series there",
        "near = np.where(np.abs(d) < 0.03, d, 0.0)",
        "series = 1 + near / 5 * (1 + near / 6 * (1 + near / 7))",
        "series = near * near / 2 * (1 + near / 3 * (1 + near / 4 * series))",
        f"kl = np.where(np.abs(d) < 0.03, series, {far})",
    ]


# What a missing reward counts as: a comment, which completions are scored, and their rewards.
_MISSING = {
    "leave_out": (
        "# a missing reward is left out of its group",
        "scored = present & ~np.isnan(rewards)",
        "rewards",
    ),
    "as_zero": (
        "# a missing reward counts as 0",
        "scored = present",
        "np.where(np.isnan(rewards), 0.0, rewards)",
    ),
}


def _outcome(w):
    comment, scored, scores = _MISSING[w.options["missing"]]
    if w.in_reward:
        scores += f" - {w.spelling.summed('reward_penalty', 'axis=-1')}"
    return [comment, scored, f"scores = np.where(scored, {scores}, 0.0)"]


def _statistics(w, ddof):
    scores = "scaled" if w.extreme else "scores"
    divisor = f"np.maximum(count - {ddof}, 1)" if ddof else "count"
    return [
        "count = np.maximum(scored.sum(axis=1, keepdims=True), 1)  # (P, 1)",
        *(["scores = scores.astype(np.float64)"] if w.single else []),
        *(_scaled(w) if w.extreme else []),
        "# measured from the group's first score: exactly 0 in a group of equal scores",
        f"first = np.take_along_axis({scores}, np.argmax(scored, axis=1)[:, None], axis=1)",
        f"shifted = np.where(scored, {scores} - first, 0.0)",
        "shift = shifted.sum(axis=1, keepdims=True) / count",
        "deviation = np.where(scored, shifted - shift, 0.0)  # score - mean",
        f"spread = np.sqrt((deviation**2).sum(axis=1, keepdims=True) / {divisor})",
        *(["spread = np.where(count > 1, spread, 0.0)"] if ddof else []),
        f"mean = {_unscaled(w, 'first + shift')}[:, 0]",
        f"std = {_unscaled(w, 'spread')}[:, 0]",
    ]


def _scaled(w):
    finite = "scores / unit"
    if w.endless:
        finite = "np.where(np.isinf(scores), np.sign(scores), scores / unit)"
    return [
        "# in units of a power of two near each group's largest score: squares stay in range",
        "peak = np.max(np.abs(scores), axis=1, keepdims=True)",
        "unit = 2.0 ** np.floor(np.log2(np.where(peak > 0, peak, 1.0)))",
        f"scaled = {finite}",
    ]


def _unscaled(w, name):
    if w.extreme:
        return w.spelling.times(name, "unit")
    return f"({name})" if " " in name else name


def _mean_std(w):
    ddof = w.options["ddof"]
    eps = "eps / unit" if w.extreme else "eps"
    kind = {0: "population std, divided by n", 1: "sample std, divided by n - 1"}[ddof]
    return [
        f"# (score - mean) / (std + eps), with the {kind}",
        f"eps = {w.options['eps']!r}",
        *_statistics(w, ddof),
        "tied = spread == 0  # nothing to tell apart: advantage 0",
        f"advantages = np.where(tied, 0.0, deviation / np.where(tied, 1.0, spread + {eps}))",
        *_to_tokens(w),
    ]


def _mean_only(w):
    return [
        "# score - mean",
        *_statistics(w, 0),
        f"advantages = {_unscaled(w, 'deviation')}",
        *_to_tokens(w),
    ]


def _given(w):
    return [
        "# given, not computed; mean and std are for reading",
        *_statistics(w, 0),
        "advantages = np.where(present, advantages, 0.0)",
        *_to_tokens(w),
    ]


def _to_tokens(w):
    single = ["advantages = advantages.astype(np.float32)"] if w.single else []
    return [*single, "token_advantages = np.where(valid, advantages[..., None], 0.0)"]


def _token(w):
    return [
        f"log_ratio = {w.spelling.minus('logp_new', 'logp_old')}",
        "ratio = np.where(valid, np.exp(log_ratio), 0.0)",
    ]


def _token_back(w):
    return [f"policy_gradient = {w.spelling.times('pull', 'ratio')}"]


def _sequence(w):
    s = w.spelling
    steps = s.summed_of(s.minus("logp_new", "logp_old"), "axis=-1, keepdims=True")
    return [
        "# the geometric mean over a completion's tokens, the same at each of them",
        "tokens = np.maximum(valid.sum(axis=-1, keepdims=True), 1)  # (P, G, 1)",
        f"log_ratio = np.where(valid, {steps} / tokens, 0.0){_single(w)}",
        "ratio = np.where(valid, np.exp(log_ratio), 0.0)",
    ]


def _sequence_back(w):
    s = w.spelling
    pulls = s.summed("pull", "axis=-1, keepdims=True")
    return [
        "# every log-probability moves the ratio of all tokens of its completion",
        f"policy_gradient = {s.times(f'{pulls} / tokens', 'ratio')}",
    ]


def _single(w):
    return ".astype(np.float32)" if w.single else ""


def _clip(w):
    s = w.spelling
    low, high = w.options["epsilon_low"], w.options["epsilon_high"]
    free, bound = s.times("ratio", "token_advantages"), s.times("held", "token_advantages")
    return [
        f"epsilon_low, epsilon_high = {low!r}, {high!r}",
        "held = np.clip(ratio, 1 - epsilon_low, 1 + epsilon_high)",
        f"surrogate = np.minimum({free}, {bound})",
        "clipped_high = (token_advantages > 0) & (ratio > 1 + epsilon_high)",
        "clipped_low = (token_advantages < 0) & (ratio < 1 - epsilon_low)",
        "stopped = clipped_high | clipped_low",
    ]


def _dual_clip(w):
    floor = w.spelling.times("dual_clip", "token_advantages")
    return [
        *_clip(w)[:-1],
        f"dual_clip = {w.options['dual_clip']!r}",
        "dual_clipped = (token_advantages < 0) & (ratio > dual_clip)",
        f"surrogate = np.where(dual_clipped, {floor}, surrogate)",
        "stopped = clipped_high | clipped_low | dual_clipped",
    ]


def _spread_weight(denominator, w):
    return [f"weight = np.where(valid, 1 / np.maximum({denominator}, 1), 0.0){_single(w)}"]


def _completion_mean(w):
    counted = {"count": "present.sum()", "drop": "(present & valid.any(axis=-1)).sum()"}
    return [
        f"completions = {counted[w.options['empty']]}",
        "length = valid.sum(axis=-1, keepdims=True)  # (P, G, 1)",
        *_spread_weight("completions * length", w),
    ]


def _token_mean(w):
    return _spread_weight("valid.sum()", w)


def _constant(w):
    length = w.options["length"] or "valid.shape[-1]"
    return [f"constant_length = {length}", *_spread_weight("present.sum() * constant_length", w)]


SNIPPETS = {
    ("kl", "k3"): Snippet("KL per token", *_kl(_k3, "-np.expm1(d)")),
    ("kl", "k2"): Snippet("KL per token", *_kl(lambda s: ["kl = d * d / 2"], "-d")),
    ("kl", "k1"): Snippet("KL per token", *_kl(lambda s: ["kl = 0.0 - d"], "np.ones_like(d)")),
    ("rewards", "outcome"): Snippet("Scores", _outcome),
    ("advantage", "mean_std"): Snippet("Advantages", _mean_std),
    ("advantage", "mean_only"): Snippet("Advantages", _mean_only),
    ("advantage", "given"): Snippet("Advantages", _given),
    ("ratio", "token"): Snippet("Ratio of new to old policy", _token, _token_back),
    ("ratio", "sequence"): Snippet("Ratio of new to old policy", _sequence, _sequence_back),
    ("surrogate", "clip"): Snippet("Clipped surrogate", _clip),
    ("surrogate", "dual_clip"): Snippet("Clipped surrogate", _dual_clip),
    ("aggregation", "completion_mean"): Snippet("Weight of each token", _completion_mean),
    ("aggregation", "token_mean"): Snippet("Weight of each token", _token_mean),
    ("aggregation", "constant"): Snippet("Weight of each token", _constant),
}
