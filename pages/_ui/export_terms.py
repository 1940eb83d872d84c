"""Code of shaping terms: one line or a few for each row of the core's table of formulas."""

from grpo_core.scenario import as_batch

from .export_arrays import assignment
from .token_text import visible


def term_lines(w, k):
    """Lines that assign ``term_k`` (P, G), nan where it does not apply.

    A term per token also assigns ``tokens_k`` (P, G, L).
    """
    term = w.scenario.terms[k]
    name = visible(term.name).replace("␣", " ")[:60]
    snippet = TERM_SNIPPETS.get(term.formula.variant)
    lines = _recorded(w, k) if snippet is None else snippet(w, k, term.formula.options)
    return [f"# term {k}, “{name}”: {term.variant.label}", *lines]


def _named(options, *keys):
    """Options as named numbers on one line."""
    return f"{', '.join(keys)} = {', '.join(repr(options[key]) for key in keys)}"


def _given(_w, k, _options):
    return [f"term_{k} = term_values[..., {k}]"]


def _format_bonus(_w, k, options):
    return [
        _named(options, "bonus", "otherwise"),
        f"right = term_values[..., {k}]",
        f"term_{k} = np.where(np.isnan(right), nan, np.where(right != 0, bonus, otherwise))",
    ]


def _length_linear(_w, k, options):
    return [
        _named(options, "free", "per"),
        f"term_{k} = -np.maximum(lengths - free, 0) / per",
    ]


def _overlong(_w, k, options):
    lines = [
        _named(options, "limit", "buffer"),
        "over = np.maximum((lengths - (limit - buffer)) / buffer, 0.0)",
    ]
    if options["beyond"] == "held":
        return [*lines, f"term_{k} = -np.minimum(over, 1.0)  # held at -1 beyond the limit"]
    return [*lines, f"term_{k} = -over  # falls on beyond the limit"]


def _cosine_length(_w, k, options):
    progress = "lengths / limit"
    if options["beyond"] == "held":
        progress = "np.minimum(lengths / limit, 1.0)"
    return [
        _named(options, "limit", "right_above"),
        _named(options, "right_short", "right_long", "wrong_short", "wrong_long"),
        f"share = (1 + np.cos(np.pi * {progress})) / 2  # 1 at length 0, 0 at the limit",
        "short = np.where(rewards > right_above, right_short, wrong_short)",
        "long = np.where(rewards > right_above, right_long, wrong_long)",
        f"term_{k} = long + (short - long) * share",
    ]


def _repetition(_w, k, options):
    return [
        _named(options, "n"),
        f"term_{k} = np.zeros(rewards.shape)",
        "for place in np.ndindex(rewards.shape):",
        "    ids = token_ids[place][valid[place]].tolist()",
        "    grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]",
        "    if grams:",
        f"        term_{k}[place] = len(set(grams)) / len(grams) - 1",
    ]


def _per_token(w, k, _options):
    single = ".astype(np.float32)" if w.single else ""
    return [f"tokens_{k} = np.where(valid, token_rewards, 0.0){single}", _summed(k)]


def _summed(k):
    return f"term_{k} = tokens_{k}.sum(axis=-1, dtype=np.float64)"


def _recorded(w, k):
    """The values of a formula that has no code here."""
    values = as_batch(w.scenario)[0].terms[k].values
    note = "# no plain-NumPy transcription yet: the values that it gives for this batch"
    if values.ndim == 2:
        return [note, *assignment(f"term_{k}", values)]
    return [note, *assignment(f"tokens_{k}", values), _summed(k)]


# By the key of a row of `grpo_core.terms.TERMS`.
TERM_SNIPPETS = {
    "given": _given,
    "format_bonus": _format_bonus,
    "length_linear": _length_linear,
    "overlong": _overlong,
    "cosine_length": _cosine_length,
    "repetition": _repetition,
    "per_token": _per_token,
}
