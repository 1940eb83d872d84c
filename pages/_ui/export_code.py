"""SNIPPETS: each variant of each stage as straight-line NumPy, for scripts and notebooks.

The code is written for a reader. It holds the chosen options as named numbers and nothing
about the others.
"""

from .export_spelling import Careful, Snippet


def _kl(value, derivative):
    def code(w):
        s = w.spelling
        policy = "logp_old" if w.in_reward else "logp_new"
        lines = [
            f"beta = {w.options['beta']!r}",
            f"d = {s.minus('logp_ref', policy)}",
            *value(s),
        ]
        penalty = s.times("beta", "kl")
        if not w.in_reward:
            return [*lines, f"kl_penalty = {penalty}"]
        return [
            *lines,
            "# in the reward: a constant of the update, without a gradient of its own",
            f"reward_penalty = {penalty}",
        ]

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
        scores = w.spelling.less_summed(scores, "reward_penalty", "axis=-1")
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
        "equal = spread == 0  # nothing to tell apart: advantage 0",
        f"advantages = np.where(equal, 0.0, deviation / np.where(equal, 1.0, spread + {eps}))",
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
        f"log_ratio = np.where(valid, {steps} / tokens, 0.0)",
        *(["log_ratio = log_ratio.astype(np.float32)"] if w.single else []),
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
    return [*_clipped(w), *_slope("clipped_high | clipped_low")]


def _clipped(w):
    s = w.spelling
    low, high = w.options["epsilon_low"], w.options["epsilon_high"]
    free, bound = s.times("ratio", "token_advantages"), s.times("bounded", "token_advantages")
    return [
        f"epsilon_low, epsilon_high = {low!r}, {high!r}",
        "bounded = np.clip(ratio, 1 - epsilon_low, 1 + epsilon_high)",
        f"surrogate = np.minimum({free}, {bound})",
        "clipped_high = (token_advantages > 0) & (ratio > 1 + epsilon_high)",
        "clipped_low = (token_advantages < 0) & (ratio < 1 - epsilon_low)",
    ]


def _slope(stopped):
    return [
        "# derivative of the surrogate by the ratio: a clipped token has none",
        f"d_ratio = np.where({stopped}, 0.0, token_advantages)",
    ]


def _dual_clip(w):
    floor = w.spelling.times("dual_clip", "token_advantages")
    return [
        *_clipped(w),
        f"dual_clip = {w.options['dual_clip']!r}",
        "dual_clipped = (token_advantages < 0) & (ratio > dual_clip)",
        f"surrogate = np.where(dual_clipped, {floor}, surrogate)",
        *_slope("clipped_high | clipped_low | dual_clipped"),
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
    ("kl", "k3"): Snippet(*_kl(_k3, "-np.expm1(d)")),
    ("kl", "k2"): Snippet(*_kl(lambda s: ["kl = d * d / 2"], "-d")),
    ("kl", "k1"): Snippet(*_kl(lambda s: ["kl = 0.0 - d"], "np.ones_like(d)")),
    ("rewards", "outcome"): Snippet(_outcome),
    ("advantage", "mean_std"): Snippet(_mean_std),
    ("advantage", "mean_only"): Snippet(_mean_only),
    ("advantage", "given"): Snippet(_given),
    ("ratio", "token"): Snippet(_token, _token_back),
    ("ratio", "sequence"): Snippet(_sequence, _sequence_back),
    ("surrogate", "clip"): Snippet(_clip),
    ("surrogate", "dual_clip"): Snippet(_dual_clip),
    ("aggregation", "completion_mean"): Snippet(_completion_mean),
    ("aggregation", "token_mean"): Snippet(_token_mean),
    ("aggregation", "constant"): Snippet(_constant),
}
