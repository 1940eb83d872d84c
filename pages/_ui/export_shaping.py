"""Code of scores that are combined from a task reward and shaping terms."""

from dataclasses import replace

from grpo_core.scenario import as_batch

from .export_judging import extreme, read_from
from .export_spelling import Snippet
from .export_terms import term_lines

# What a missing value counts as: a comment, and which values take part.
_MISSING = {
    "leave_out": ("# a missing value is left out", "known = present & ~np.isnan(components)"),
    "as_zero": (
        "# a missing value counts as 0",
        "known = np.broadcast_to(present, components.shape)",
    ),
}


def _scores(w):
    """Components, their weights and their sum."""
    s, terms = w.spelling, w.scenario.terms
    comment, known = _MISSING[w.options["missing"]]
    names = ", ".join(["rewards", *(_name(w, k) for k in range(len(terms)))])
    weights = ", ".join(["task_weight", *(repr(term.weight) for term in terms)])
    double = ".astype(np.float64)" if w.single else ""
    lines = ["lengths = valid.sum(axis=-1)  # (P, G)"]
    for k in range(len(terms)):
        lines += ["", *term_lines(w, k)]
    lines += [
        "",
        "# task first, then the terms: (C, P, G)",
        f"components = np.stack({_folded(names)}){double}",
        f"task_weight = {w.options['task_weight']!r}",
        f"weights = np.array({_folded(weights)})[:, None, None]",
        comment,
        known,
        "components = np.where(np.isnan(components), 0.0, components)",
        f"weighted = np.where(known, {s.times('weights', 'components')}, 0.0)",
        "scored = known.any(axis=0)",
    ]
    if w.in_reward:
        less = s.less_summed("weighted[0]", "reward_penalty", "axis=-1")
        lines.append(f"weighted[0] = np.where(scored, {less}, 0.0)")
    return [*lines, f"scores = {s.summed('weighted', 'axis=0')}"]


def _name(w, k):
    """A term, in single precision where the batch is; sums over tokens are in double there."""
    per_token = as_batch(w.scenario)[0].terms[k].values.ndim == 3
    return f"np.float32(term_{k})" if w.single and not per_token else f"term_{k}"


def _folded(listed):
    """A list in brackets, on lines of its own where it is long."""
    items = listed.split(", ")
    if len(listed) < 60:
        return f"[{listed}]"
    rows = [", ".join(items[i : i + 5]) for i in range(0, len(items), 5)]
    return "[\n" + "".join(f"    {row},\n" for row in rows) + "]"


def wide(w):
    """What a snippet needs to know where components are judged one by one."""
    batch, _ = as_batch(w.scenario)
    given = [batch.rewards, *(term.values for term in batch.terms)]
    return replace(w, extreme=w.extreme or extreme(*given))


def _sum_then_normalize(w, judge, defined=False):
    s, to_go = w.spelling, _to_go(w)
    if defined:
        judged = [*read_from("scores", "scored"), "advantages, scale = found[2:]"]
    else:
        judged = [*judge.lines(w), *judge.scales(w)]
    slopes = [s.times("scale[..., None]", f"weights[{k + 1}]") for k in to_go]
    return [
        *judged,
        *_parts(w, s.times("scale", "centred(weighted, scored)")),
        *_at_tokens(w, to_go, slopes),
        *_shares(w),
    ]


def _normalize_then_sum(w, judge, defined=False):
    w = wide(w)
    s, to_go = w.spelling, _to_go(w)
    less = s.less_summed("components[0]", "reward_penalty", "axis=-1")
    own = s.times("weights", "np.stack([advantages for _, _, advantages, _ in each])")
    lines = [
        *([] if defined else judge.function(w)),
        "# mean and std of the weighted sum, to read",
        *read_from("scores", "scored"),
        "# each component by its own mean and std",
        *([f"components[0] = {less}"] if w.in_reward else []),
        "values = np.where(known, components, 0.0)",
        "each = [judged(value, there) for value, there in zip(values, known)]",
        f"parts = {own}  # (C, P, G)",
        f"advantages = {s.summed('parts', 'axis=0')}",
    ]
    scale = w.option("rewards", "batch_scale")
    scaled = scale != "none"
    if scaled:
        lines += _over_batch(w, scale)
    if to_go:
        slopes = s.times("weights", "np.stack([scale for *_, scale in each])")
        slopes = s.times("factor", slopes) if scaled else slopes
        lines.append(f"slopes = {slopes}  # (C, P, 1)")
    slopes = [f"slopes[{k + 1}][..., None]" for k in to_go]
    return [*lines, *_at_tokens(w, to_go, slopes), *_shares(w)]


# What the second normalisation counts, and its divisor.
_BATCH = {
    "completion": ("np.where(scored, 1.0, 0.0)", "(np.sqrt(variance) + batch_eps)"),
    "token": ("np.where(scored, lengths, 0.0)", "np.hypot(np.sqrt(variance), batch_eps)"),
}


def _over_batch(w, scale):
    counts, divisor = _BATCH[scale]
    s = w.spelling
    return [
        f"# once more over the batch, each {scale} counts alike; sample std",
        f"batch_eps = {w.option('rewards', 'batch_eps')!r}",
        f"counts = {counts}",
        "size = counts.sum()",
        "compared, factor = advantages[counts > 0], 0.0",
        "if compared.size > 1 and np.ptp(compared) > 0:",
        "    rest = advantages - (counts * advantages).sum() / size",
        "    variance = (counts * rest**2).sum() / (size - 1)",
        f"    factor = 1 / {divisor}",
        "middle = (counts * parts).sum(axis=(1, 2), keepdims=True) / max(size, 1)",
        f"parts = np.where(scored, {s.times('factor', '(parts - middle)')}, 0.0)",
        f"advantages = {s.summed('parts', 'axis=0')}",
    ]


def _add_after(w, judge, defined=False):
    w = wide(w)
    s, to_go = w.spelling, _to_go(w)
    slopes = [f"weights[{k + 1}]" for k in to_go]
    return [
        *([] if defined else judge.function(w)),
        "# the task alone is judged; terms are added as they are",
        *read_from("np.where(known[0], weighted[0], 0.0)", "known[0]"),
        "parts = np.concatenate([found[2][None], weighted[1:]])  # (C, P, G)",
        f"advantages = {s.summed('parts', 'axis=0')}",
        *_at_tokens(w, to_go, slopes),
        *_shares(w),
    ]


def _to_go(w):
    """Terms per token that enter as returns to go."""
    if w.option("rewards", "tokens") != "to_go":
        return []
    terms = as_batch(w.scenario)[0].terms
    return [k for k, term in enumerate(terms) if term.values.ndim == 3]


def _at_tokens(w, to_go, slopes):
    """The advantage at each token: it answers for what terms as returns to go earn from it on."""
    if not to_go:
        return to_tokens(w)
    s = w.spelling
    lines = ["# returns to go: what was earned before a token is taken off there", "past = 0.0"]
    for k, slope in zip(to_go, slopes, strict=True):
        lines += [
            f"before_{k} = np.zeros(valid.shape)",
            f"before_{k}[..., 1:] = np.cumsum(tokens_{k}, axis=-1, dtype=np.float64)[..., :-1]",
            f"past = {s.plus('past', s.times(slope, f'before_{k}'))}",
        ]
    taken = s.less("advantages[..., None]", "past")
    return [*lines, *_single(w), f"token_advantages = np.where(valid, {taken}, 0.0)"]


def to_tokens(w):
    """Every token that counts receives its completion's advantage."""
    return [*_single(w), "token_advantages = np.where(valid, advantages[..., None], 0.0)"]


def _single(w):
    return ["advantages = advantages.astype(np.float32)"] if w.single else []


_CENTRED = [
    "",
    "",
    "def centred(values, there):",
    '    """Deviations from the mean of a group; exactly 0 where its values are equal."""',
    "    index = np.broadcast_to(np.argmax(there, axis=-1)[..., None], (*values.shape[:-1], 1))",
    "    shifted = np.where(there, values - np.take_along_axis(values, index, axis=-1), 0.0)",
    "    count = np.maximum(there.sum(axis=-1, keepdims=True), 1)",
    "    return np.where(there, shifted - shifted.sum(axis=-1, keepdims=True) / count, 0.0)",
    "",
    "",
]


def _parts(w, parts):
    """What each component has in the advantages."""
    return [*_CENTRED, f"parts = {parts}  # of each component, (C, P, G)"] if _told(w) else []


def _told(w):
    """Whether parts and shares are; only where a part is its deviation from the group's mean.

    Not where squares leave double range either.
    """
    own_mean = w.row("advantage") in _BY_MEAN and w.options.get("alone", "zero") == "zero"
    return own_mean and not w.extreme


_BY_MEAN = ("mean_std", "mean_only", "batch_std", "over_mean", "nonzero_scaled")


def _shares(w):
    """Share of each component in the spread."""
    if not _told(w):
        return []
    defined = w.row("rewards") == "sum_then_normalize"
    return [
        *([] if defined else _CENTRED),
        "# which component drives the update: cov(part, A) / var(A), which sums to 1",
        "own, whole = centred(parts, scored), centred(parts.sum(axis=0), scored)",
        "variance = (whole**2).sum(axis=-1)",
        "even = variance == 0  # nothing to share",
        "shares = (own * whole).sum(axis=-1) / np.where(even, 1.0, variance)",
        "shares = np.where(even, 0.0, shares)  # (C, P)",
    ]


COMBINED = {
    "sum_then_normalize": _sum_then_normalize,
    "normalize_then_sum": _normalize_then_sum,
    "add_after": _add_after,
}
SHAPING_SNIPPETS = {("rewards", key): Snippet(_scores) for key in COMBINED}
