"""SNIPPETS: each variant of each stage as straight-line NumPy, for scripts and notebooks.

The code is written for a reader. It holds the chosen options as named numbers and nothing
about the others.
"""

from .export_process import PROCESS_SNIPPETS
from .export_scores import SCORE_SNIPPETS
from .export_shaping import SHAPING_SNIPPETS
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
    **SCORE_SNIPPETS,
    **SHAPING_SNIPPETS,
    **PROCESS_SNIPPETS,
    ("ratio", "token"): Snippet(_token, _token_back),
    ("ratio", "sequence"): Snippet(_sequence, _sequence_back),
    ("surrogate", "clip"): Snippet(_clip),
    ("surrogate", "dual_clip"): Snippet(_dual_clip),
    ("aggregation", "completion_mean"): Snippet(_completion_mean),
    ("aggregation", "token_mean"): Snippet(_token_mean),
    ("aggregation", "constant"): Snippet(_constant),
}
