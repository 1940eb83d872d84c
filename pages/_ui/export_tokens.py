"""Code of what is done token by token: whitening, filters, corrections, entropy, and weights."""

from .computed import held_within
from .export_spelling import Snippet


def _single(w, name):
    return [f"{name} = {name}.astype(np.float32)"] if w.single else []


def _nothing(_w):
    return []


def returns_lines(w):
    """Lines that take the KL in the returns off the advantages of its token and all before it."""
    to_go = "np.flip(np.cumsum(np.flip(return_penalty, axis=-1), axis=-1, dtype=float), axis=-1)"
    less = w.spelling.less("token_advantages", "to_go")
    return [
        f"to_go = {to_go}",
        f"token_advantages = np.where(valid, {less}, 0.0)",
        *_single(w, "token_advantages"),
    ]


def hold_lines(w):
    """Lines that hold advantages within a limit, before a KL in the returns is taken off."""
    return _limit(w, held_within(w.scenario.conventions))


def _limit(w, limit):
    if not limit:
        return []
    return [
        f"limit = {limit!r}",
        "token_advantages = np.clip(token_advantages, -limit, limit)",
        *_single(w, "token_advantages"),
    ]


_GUARDS = {"added": "variance + eps", "floor": "np.maximum(variance, eps)"}


def _whitening(w):
    o = w.options
    count = f"(size + {o['count_eps']!r})" if o["count_eps"] else "size"
    left = f"(first + shift) * ({o['count_eps']!r} / {count})"
    name, scaled = "centred_tokens", w.spelling.times("centred_tokens", "(1 / divisor)")
    lines = [
        f"eps = {o['eps']!r}",
        *(["token_advantages = token_advantages.astype(np.float64)"] if w.single else []),
        "size = max(int(valid.sum()), 1)",
        "# measured from the first: exactly 0 where all advantages are equal",
        "first = token_advantages[valid][:1].sum()",
        f"{name} = np.where(valid, token_advantages - first, 0.0)",
        f"shift = {name}.sum() / size",
        f"{name} = np.where(valid, {name} - shift, 0.0)",
        f"equal = not {name}.any()",
        *([f"{name} = np.where(valid, {name} + {left}, 0.0)"] if o["count_eps"] else []),
        f"variance = ({name}**2).sum() / {count}",
        *([f"variance = variance * size / max(size - {o['ddof']}, 1)"] if o["ddof"] else []),
        f"divisor = np.sqrt({_GUARDS[o['guard']]})",
        f"token_advantages = np.zeros(valid.shape) if equal else {scaled}",
        *_single(w, "token_advantages"),
    ]
    return [*lines, *_limit(w, o["limit"])]


# ---- which tokens stay: lines that narrow ``kept`` and ``counted``, which begin as ``valid``


def _drop_truncated(_w):
    return [
        "# answers that were cut at the length limit leave the loss",
        "kept = kept & ~(truncated > 0)[..., None]",
        "counted = counted & ~(truncated > 0)[..., None]",
    ]


def _drop_tied(w):
    counted = w.options["denominator"] == "counted"
    return [
        *_tied(w),
        "kept = kept & ~tied[:, None, None]",
        *([] if counted else ["counted = counted & ~tied[:, None, None]"]),
    ]


def _tied(w):
    """Lines that assign ``tied`` (P,)."""
    if w.evaluation.step_advantages is not None:
        return [
            "# groups without an advantage leave the loss",
            "tied = ~own_advantages.any(axis=(1, 2))",
        ]
    lines = [
        "# groups whose scores are all equal leave the loss",
        "low = np.where(scored, scores, np.inf).min(axis=1)",
        "high = np.where(scored, scores, -np.inf).max(axis=1)",
        "tied = (scored.sum(axis=1) > 1) & (low == high)",
    ]
    if w.row("rewards") in _APART:
        lines += [
            "# each component counts on its own",
            "low = np.where(known, weighted, np.inf).min(axis=2)",
            "high = np.where(known, weighted, -np.inf).max(axis=2)",
            "tied = tied & (low >= high).all(axis=0)  # none known: nothing differs",
        ]
    return lines


# Rows that judge task and terms on their own.
_APART = ("normalize_then_sum", "add_after")


def _drop_zero(_w):
    return [
        "# tokens without an advantage leave the loss",
        "kept = kept & (own_advantages != 0)",
        "counted = counted & (own_advantages != 0)",
    ]


# ---- factors of the surrogate: lines that assign ``selected`` or ``correction``


def _select_entropy(w):
    if w.options["share"] >= 1:
        return ["selected = np.where(valid, 1.0, 0.0)  # all tokens"]
    return [
        f"share = {w.options['share']!r}",
        "bar = np.quantile(entropy[valid], 1 - share) if valid.any() else 0.0",
        "selected = np.where(valid & (entropy >= bar), 1.0, 0.0)",
    ]


def _select_on_policy(w):
    s = w.spelling
    steps = s.minus("logp_sampler", "logp_new")
    return [
        f"threshold = {w.options['threshold']!r}",
        f"steps = np.where(valid & ~np.isnan(logp_sampler), {steps}, 0.0)",
        f"lost = {s.summed('steps', 'axis=-1, keepdims=True, dtype=np.float64')}",
        "lost = lost / np.maximum(valid.sum(axis=-1, keepdims=True), 1)",
        "near = (token_advantages >= 0) | (lost <= threshold)",
        "selected = np.where(valid & near, 1.0, 0.0)",
    ]


def _select_both(w):
    return [
        *_select_entropy(w),
        "forks = selected",
        *_select_on_policy(w),
        "selected = forks * selected",
    ]


def _given(w):
    if w.options["level"] == "token":
        return [
            "correction = np.where(valid, sampler_weights, 0.0)",
            *_single(w, "correction"),
        ]
    return [
        "# geometric mean over a completion; the small numbers are verl's",
        "logs = np.where(valid, np.log(np.abs(sampler_weights) + 1e-10), 0.0)",
        "count = valid.sum(axis=-1, keepdims=True) + 1e-8",
        "correction = np.exp(logs.sum(axis=-1, keepdims=True, dtype=np.float64) / count)",
        "correction = np.where(valid, correction, 0.0)",
        *_single(w, "correction"),
    ]


_LEVELS = {
    "token": "steps",
    "sequence": "{summed}",
    "sequence_mean": "{summed} / count",
    "sequence_filter": "{summed} / count",
}


def _sampler(w):
    o, s = w.options, w.spelling
    summed = s.summed("steps", "axis=-1, keepdims=True")
    high = repr(o["high"]) if o["high"] else "np.inf"
    lines = [
        "# trainer over sampler, without gradient; 1 where the sampler reported nothing",
        f"steps = {s.minus('logp_old', 'logp_sampler')}",
        "steps = np.where(valid & ~np.isnan(steps), steps, 0.0).astype(np.float64)",
        "count = np.maximum(valid.sum(axis=-1, keepdims=True), 1)",
        f"judged_log = {_LEVELS[o['level']].format(summed=summed)}",
    ]
    if o["clamp"]:
        lines.append(f"judged_log = np.clip(judged_log, -{o['clamp']!r}, {o['clamp']!r})")
    lines += ["correction = np.exp(judged_log)", f"low, high = {o['low']!r}, {high}"]
    if o["mode"] == "truncate":
        lines.append("correction = np.clip(correction, low, high)")
    else:
        inside = "(correction >= low) & (correction <= high)"
        lines.append(f"correction = np.where({inside}, correction, 0.0)")
    if o["level"] == "sequence_filter":
        lines.append("correction = np.where(correction > 0, np.exp(steps), 0.0)")
    return [*lines, "correction = np.where(valid, correction, 0.0)", *_single(w, "correction")]


def _bonus(w):
    product = w.spelling.times("coefficient", "entropy")
    return [
        f"coefficient = {w.options['coefficient']!r}",
        f"entropy_bonus = np.where(valid, {product}, 0.0)",
        *_single(w, "entropy_bonus"),
    ]


def _accumulation(w):
    factor = w.options["factor"]
    if factor == 1:
        return []
    return [f"weight = {factor!r} * weight", *_single(w, "weight")]


# ---- aggregation, over the tokens that denominators count


def _spread(w, denominator, lines=()):
    return [
        *lines,
        f"below = {denominator}",
        f"weight = np.where({w.kept}, 1 / np.where(below > 0, below, np.inf), 0.0)",
        *_single(w, "weight"),
    ]


def _completions(w):
    given = w.options["completions"]
    if given:
        return f"completions = {given!r}"
    if w.options["empty"] == "drop":
        return f"completions = (present & {w.counted}.any(axis=-1)).sum()"
    return "completions = present.sum()"


def _counts(w):
    return f"length = {w.counted}.sum(axis=-1, keepdims=True)  # (P, G, 1)"


def _completion_mean(w):
    eps = w.options["count_eps"]
    length = f"np.where(length > 0, length + {eps!r}, 0.0)" if eps else "length"
    return _spread(w, f"completions * {length}", [_completions(w), _counts(w)])


def _token_mean(w):
    given = w.options["tokens"]
    return _spread(w, repr(given) if given else f"{w.counted}.sum()")


def _constant_length(w):
    return f"constant_length = {w.options['length'] or 'valid.shape[-1]'}"


def _constant(w):
    lines = [_constant_length(w), _completions(w)]
    return _spread(w, "completions * constant_length", lines)


def _prompt_mean(w):
    per_prompt = {
        "tokens": "length.sum(axis=1, keepdims=True)",
        "completions": "(length > 0).sum(axis=1, keepdims=True) * length",
    }[w.options["inner"]]
    lines = [_counts(w), f"prompts = {w.counted}.any(axis=(1, 2)).sum()"]
    return _spread(w, f"prompts * {per_prompt}", lines)


TOKEN_SNIPPETS = {
    ("whitening", "none"): Snippet(_nothing),  # its limit is held before, by `hold_lines`
    ("whitening", "tokens"): Snippet(_whitening),
    ("truncated", "keep"): Snippet(_nothing),
    ("truncated", "drop"): Snippet(_drop_truncated),
    ("tied", "keep"): Snippet(_nothing),
    ("tied", "drop"): Snippet(_drop_tied),
    ("tied", "zero"): Snippet(_drop_zero),
    ("selection", "all"): Snippet(_nothing),
    ("selection", "entropy"): Snippet(_select_entropy),
    ("selection", "on_policy"): Snippet(_select_on_policy),
    ("selection", "entropy_on_policy"): Snippet(_select_both),
    ("correction", "none"): Snippet(_nothing),
    ("correction", "sampler"): Snippet(_sampler),
    ("correction", "given"): Snippet(_given),
    ("entropy", "none"): Snippet(_nothing),
    ("entropy", "bonus"): Snippet(_bonus),
    ("accumulation", "factor"): Snippet(_accumulation),
    ("aggregation", "completion_mean"): Snippet(_completion_mean),
    ("aggregation", "token_mean"): Snippet(_token_mean),
    ("aggregation", "constant"): Snippet(_constant),
    ("aggregation", "length_only"): Snippet(
        lambda w: _spread(w, "constant_length", [_constant_length(w)])
    ),
    ("aggregation", "completion_sum"): Snippet(
        lambda w: _spread(w, "completions", [_completions(w)])
    ),
    ("aggregation", "token_sum"): Snippet(
        lambda w: [f"weight = np.where({w.kept}, 1.0, 0.0)", *_single(w, "weight")]
    ),
    ("aggregation", "prompt_mean"): Snippet(_prompt_mean),
}
