"""Code of ratios and KL estimates, and of the gradients that flow back through them."""

from .export_spelling import Careful, Snippet


def _single(w, name):
    return [f"{name} = {name}.astype(np.float32)"] if w.single else []


# ---- ratio: ``back(w, pull, name)`` assigns the gradient ``name`` from dJ/dratio ``pull``


def _token(w):
    clamp = w.options["clamp"]
    step = w.spelling.minus("logp_new", "logp_old")
    if not clamp:
        return [f"log_ratio = {step}", *_RATIO]
    return [
        f"ratio_clamp = {clamp!r}",
        f"free_log_ratio = {step}",
        "log_ratio = np.clip(free_log_ratio, -ratio_clamp, ratio_clamp)",
        *_single(w, "log_ratio"),
        "ratio_held = free_log_ratio != log_ratio  # held by the clamp: no gradient",
        *_RATIO,
    ]


_RATIO = ["ratio = np.where(valid, np.exp(log_ratio), 0.0)"]


def _completion(mean):
    def code(w):
        s, clamp = w.spelling, w.options["clamp"]
        steps = s.summed_of(s.minus("logp_new", "logp_old"), "axis=-1, keepdims=True")
        comment = "the geometric mean over" if mean else "the product over"
        lines = [f"# {comment} a completion's tokens, the same at each of them"]
        if mean:
            lines.append("tokens = np.maximum(valid.sum(axis=-1, keepdims=True), 1)  # (P, G, 1)")
            steps = f"{steps} / tokens"
        if clamp:
            lines += [
                f"ratio_clamp = {clamp!r}",
                f"free_log_ratio = {steps}",
                "ratio_held = free_log_ratio > ratio_clamp  # held by the clamp: no gradient",
            ]
            steps = "np.minimum(free_log_ratio, ratio_clamp)"
        lines.append(f"log_ratio = np.where(valid, {steps}, 0.0)")
        return [*lines, *_single(w, "log_ratio"), *_RATIO]

    return code


def _own_token(w, pull, name):
    return [f"{name} = {_unless_held(w, w.spelling.times(pull, 'ratio'))}"]


def _unless_held(w, gradient):
    return f"np.where(ratio_held, 0.0, {gradient})" if w.option("ratio", "clamp") else gradient


def _all_tokens(mean):
    def back(w, pull, name):
        s = w.spelling
        pulls = s.summed(pull, "axis=-1, keepdims=True")
        return [
            "# every log-probability moves the ratio of all tokens of its completion",
            f"shared = {f'{pulls} / tokens' if mean else pulls}",
            f"{name} = {_unless_held(w, s.times('shared', 'ratio'))}",
        ]

    return back


# ---- KL


def _kl(value, derivative):
    """A KL row: lines that assign ``kl`` from ``d``, and its derivative by the log-probability."""

    def code(w):
        s, options = w.spelling, w.options
        policy = "logp_new" if w.place == "objective" else "logp_old"
        lines = [f"beta = {options['beta']!r}", f"d = {s.minus('logp_ref', policy)}"]
        if options["clamp_in"]:
            lines += [
                f"clamp_in = {options['clamp_in']!r}",
                "free_d = d",
                "d = np.clip(free_d, -clamp_in, clamp_in)",
                *_single(w, "d"),
            ]
        lines += value(s)
        if options["clamp_out"]:
            lines += [
                f"clamp_out = {options['clamp_out']!r}",
                "free_kl = kl",
                "kl = np.clip(free_kl, -clamp_out, clamp_out)",
                *_single(w, "kl"),
            ]
        if w.place == "objective":
            lines += _weighted(w)
        penalty = s.times("beta", "kl")
        return [*lines, *_COMMENTS[w.place], f"{_NAMES[w.place]} = {penalty}"]

    return Snippet(code, lambda w, ratio: _kl_back(w, ratio, derivative))


_NAMES = {"objective": "kl_penalty", "reward": "reward_penalty", "returns": "return_penalty"}
_COMMENTS = {
    "objective": [],
    "reward": ["# in the reward: a constant of the update, without a gradient of its own"],
    "returns": ["# in the returns: a constant of the update, without a gradient of its own"],
}


def _weighted(w):
    if w.options["weight"] != "ratio":
        return []
    kl = w.spelling.times("ratio", "own_kl")
    return ["own_kl = kl", f"kl = {kl}  # weighted by the ratio"]


def _kl_back(w, ratio, derivative):
    """Lines that assign ``kl_gradient``; ``ratio`` is the snippet of the ratio row."""
    s, options = w.spelling, w.options
    if options["gradient"] == "k2":
        lines = [f"d_kl = -{'free_d' if options['clamp_in'] else 'd'}  # that of k2"]
    else:
        lines = [f"d_kl = {derivative}", *_held(options)]
    if options["weight"] == "score":
        lines.append(f"d_kl = {s.plus('d_kl', 'kl')}  # and the score function's")
    if options["weight"] == "ratio":
        lines.append(f"d_kl = {s.times('ratio', 'd_kl')}")
    direct = f"-{s.times('weight', s.times('beta', 'd_kl'))}"
    if options["weight"] != "ratio":
        return [*lines, f"kl_gradient = {direct}"]
    return [
        *lines,
        f"kl_direct = {direct}",
        f"kl_pull = -{s.times('weight', s.times('beta', 'own_kl'))}",
        *ratio.back(w, "kl_pull", "kl_through_ratio"),
        f"kl_gradient = {s.plus('kl_direct', 'kl_through_ratio')}",
    ]


def _held(options):
    """A clamp that holds leaves no gradient."""
    lines = []
    if options["clamp_in"]:
        lines.append("d_kl = np.where(free_d == d, d_kl, 0.0)  # held by the clamp: no gradient")
    if options["clamp_out"]:
        own = "own_kl" if options["weight"] == "ratio" else "kl"
        lines.append(f"d_kl = np.where(free_kl == {own}, d_kl, 0.0)  # held: no gradient")
    return lines


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


POLICY_SNIPPETS = {
    ("ratio", "token"): Snippet(_token, _own_token),
    ("ratio", "sequence"): Snippet(_completion(mean=True), _all_tokens(mean=True)),
    ("ratio", "sequence_token"): Snippet(_completion(mean=True), _own_token),
    ("ratio", "sequence_product"): Snippet(_completion(mean=False), _all_tokens(mean=False)),
    ("kl", "k3"): _kl(_k3, "-np.expm1(d)"),
    ("kl", "k2"): _kl(lambda s: ["kl = d * d / 2"], "-d"),
    ("kl", "k1"): _kl(lambda s: ["kl = 0.0 - d"], "np.ones_like(d)"),
    ("kl", "abs"): _kl(lambda s: ["kl = np.abs(d)"], "-np.sign(d)"),
}
