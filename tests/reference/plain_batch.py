"""What is done to all tokens of a batch, which of them stay, and what they weigh, in plain numbers.

For `plain_loops`. A batch is a dictionary from cell (p, g) to its valid tokens, each a dictionary
of numbers by position. Shares no code with the core.
"""

import math

from .plain_tokens import clamped


def each(batch):
    """Every valid token."""
    return [token for tokens in batch.values() for token in tokens.values()]


def _unwhitened(values, taken, limit):
    return [clamped(value, limit) - less for value, less in zip(values, taken, strict=True)]


def _whitened(values, taken, ddof, eps, guard, count_eps, before, limit):
    values = _unwhitened(values, taken, before)
    n = len(values)
    if n == 0 or min(values) == max(values):
        return [0.0] * n
    middle = math.fsum(values) / (n + count_eps)
    variance = math.fsum((v - middle) ** 2 for v in values) / (n + count_eps) * n / (n - ddof)
    divisor = math.sqrt(variance + eps if guard == "added" else max(variance, eps))
    return [clamped((v - middle) / divisor, limit) for v in values]


# (advantages of all tokens, what the KL in the returns takes off each) -> advantages
WHITENINGS = {"none": _unwhitened, "tokens": _whitened}


# (whether the group is tied, token, whether the completion was cut) -> (stays, counts)
TRUNCATED = {
    "keep": lambda tied, token, cut: (True, True),
    "drop": lambda tied, token, cut: (not cut, not cut),
}


def _drop_tied(tied, token, cut, denominator):
    return not tied, not tied or denominator == "counted"


def _drop_zero(tied, token, cut):
    stays = abs(token["judged"]) > 1e-12  # less is rounding of what stands here
    return stays, stays


TIED = {"keep": lambda tied, token, cut: (True, True), "drop": _drop_tied, "zero": _drop_zero}


def _entropy(batch, tokens, t, share):
    """As NumPy's default quantile: between the two nearest of the ordered entropies."""
    ordered = sorted(token["entropy"] for token in each(batch))
    at = (1 - share) * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    threshold = ordered[below] + (at - below) * (ordered[above] - ordered[below])
    return float(tokens[t]["entropy"] >= threshold - 1e-12)


def _on_policy(batch, tokens, t, threshold):
    steps = [token["sampler"] - token["new_held"] for token in tokens.values()]
    far = math.fsum(step for step in steps if not math.isnan(step)) / len(steps)
    return float(tokens[t]["A"] >= 0 or far <= threshold)


def _entropy_on_policy(batch, tokens, t, share, threshold):
    return _entropy(batch, tokens, t, share) * _on_policy(batch, tokens, t, threshold)


SELECTIONS = {  # (batch, tokens of the completion, token, options) -> factor
    "all": lambda batch, tokens, t: 1.0,
    "entropy": _entropy,
    "on_policy": _on_policy,
    "entropy_on_policy": _entropy_on_policy,
}


def _sampler(tokens, t, level, mode, low, high, clamp):
    steps = {u: token["old"] - token["sampler"] for u, token in tokens.items()}
    steps = {u: 0.0 if math.isnan(step) else step for u, step in steps.items()}
    whole = math.fsum(steps.values())
    judged = {"token": steps[t], "sequence": whole}.get(level, whole / len(steps))
    ratio, high = math.exp(clamped(judged, clamp)), high or math.inf
    inside = low <= ratio <= high
    if level == "sequence_filter" and mode == "mask":
        return math.exp(steps[t]) if inside else 0.0
    if level == "sequence_filter":
        return math.exp(steps[t])
    if mode == "mask":
        return ratio if inside else 0.0
    return min(max(ratio, low), high)


def _given(tokens, t, level):
    if level == "token":
        return tokens[t]["sampler_weight"]
    logs = math.fsum(math.log(token["sampler_weight"] + 1e-10) for token in tokens.values())
    return math.exp(logs / (len(tokens) + 1e-8))


CORRECTIONS = {"none": lambda tokens, t: 1.0, "sampler": _sampler, "given": _given}

ENTROPIES = {
    "none": lambda token: 0.0,
    "bonus": lambda token, coefficient: coefficient * token["entropy"],
}


# From here on ``counts`` are the counted tokens of each present completion, by cell.


def _completions(counts, empty, given=0.0):
    return given or len([n for n in counts.values() if n or empty == "count"])


def _completion_mean(counts, cell, L, empty, count_eps, completions):
    return 1 / _completions(counts, empty, completions) / (counts[cell] + count_eps)


def _token_mean(counts, cell, L, tokens):
    return 1 / (tokens or sum(counts.values()))


def _constant(counts, cell, L, length, empty, completions):
    return 1 / _completions(counts, empty, completions) / (length or L)


def _completion_sum(counts, cell, L, empty, completions):
    return 1 / _completions(counts, empty, completions)


def _prompt_mean(counts, cell, L, inner):
    prompts = {p for (p, g), n in counts.items() if n}
    own = [n for (p, g), n in counts.items() if p == cell[0]]
    within = sum(own) if inner == "tokens" else counts[cell] * len([n for n in own if n])
    return 1 / len(prompts) / within


AGGREGATIONS = {  # (counts, cell, width, options) -> weight of each of its tokens
    "completion_mean": _completion_mean,
    "token_mean": _token_mean,
    "constant": _constant,
    "length_only": lambda counts, cell, L, length: 1 / (length or L),
    "completion_sum": _completion_sum,
    "token_sum": lambda counts, cell, L: 1.0,
    "prompt_mean": _prompt_mean,
}
ACCUMULATIONS = {"factor": lambda factor: factor}
