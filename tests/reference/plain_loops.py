"""GRPO written out token by token with Python's own floats: slow, and easy to check by eye.

Shares no code with the core. Each table below names the rows of one stage; a test compares the
names with STAGES, so that a new row without its plain version is noticed.
"""

import math
from functools import partial

from .plain_advantages import ADVANTAGES, REWARDS, case


def _k1(d):
    return -d, 1.0


def _k2(d):
    return d * d / 2, -d


def _k3(d):
    return math.exp(d) - d - 1, 1 - math.exp(d)


KLS = {"k1": _k1, "k2": _k2, "k3": _k3}  # d -> (value, derivative by logp_new)


def _token(log_ratios, t):
    return math.exp(log_ratios[t]), {t: 1.0}


def _sequence(log_ratios, t):
    return math.exp(math.fsum(log_ratios.values()) / len(log_ratios)), {
        u: 1 / len(log_ratios) for u in log_ratios
    }


RATIOS = {"token": _token, "sequence": _sequence}  # -> (ratio, {token: dlog ratio/dlogp_new})


def _clip(ratio, A, epsilon_low, epsilon_high):
    low, high = 1 - epsilon_low, 1 + epsilon_high
    clipped = min(max(ratio, low), high)
    if ratio * A <= clipped * A:
        return ratio * A, A
    return clipped * A, 0.0


def _dual_clip(ratio, A, epsilon_low, epsilon_high, dual_clip):
    value, derivative = _clip(ratio, A, epsilon_low, epsilon_high)
    if A < 0 and value < dual_clip * A:
        return dual_clip * A, 0.0
    return value, derivative


SURROGATES = {"clip": _clip, "dual_clip": _dual_clip}  # -> (value, derivative by ratio)


def _completion_mean(tokens, lengths, L, empty):
    counted = len([n for n in lengths if n > 0 or empty == "count"])
    return 1 / counted / tokens


def _token_mean(tokens, lengths, L):
    return 1 / sum(lengths)


def _constant(tokens, lengths, L, length):
    return 1 / len(lengths) / (length or L)


AGGREGATIONS = {  # (tokens of this completion, lengths of all present ones, width) -> weight
    "completion_mean": _completion_mean,
    "token_mean": _token_mean,
    "constant": _constant,
}

TABLES = {
    "kl": KLS,
    "rewards": REWARDS,
    "advantage": ADVANTAGES,
    "ratio": RATIOS,
    "surrogate": SURROGATES,
    "aggregation": AGGREGATIONS,
}
# Options of the rewards stage that say what a component is; the others go to the row.
COMPONENT_OPTIONS = ("task_weight", "missing", "tokens")


def evaluate(scenario):
    """All per-completion and per-token numbers, as {name: {index: number}}, and the sums."""
    options = {key: dict(scenario.conventions[key].options) for key in TABLES}
    functions = {
        key: partial(table[scenario.conventions[key].variant], **options[key])
        for key, table in TABLES.items()
        if key not in ("kl", "rewards", "advantage")
    }
    kl = KLS[scenario.conventions["kl"].variant]
    beta, place = options["kl"]["beta"], options["kl"]["place"]
    arrays = {key: array.tolist() for key, array in scenario.arrays.items()}

    def difference(left, right, p, g, t):
        return arrays[left][p][g][t] - arrays[right][p][g][t]

    def penalty(p, g, tokens):
        if place != "reward":
            return 0.0
        return math.fsum(beta * kl(difference("logp_ref", "logp_old", p, g, t))[0] for t in tokens)

    batch, advantage = _advantages(scenario, arrays, penalty, options)
    lengths = list(batch["lengths"].values())
    out = {key: {} for key in NAMES}
    gradient = {(*cell, t): 0.0 for cell, tokens in batch["valid"].items() for t in tokens}
    for (p, g), tokens in batch["valid"].items():
        out["advantages"][p, g] = advantage((p, g), None)
        log_ratios = {t: difference("logp_new", "logp_old", p, g, t) for t in tokens}
        weight = (
            functions["aggregation"](len(tokens), lengths, scenario.sizes["L"]) if tokens else 0
        )
        for t in tokens:
            A = advantage((p, g), t)
            ratio, share = functions["ratio"](log_ratios, t)
            value, d_ratio = functions["surrogate"](ratio, A)
            policy = "logp_old" if place == "reward" else "logp_new"
            k, d_k = kl(difference("logp_ref", policy, p, g, t))
            in_objective = beta if place == "objective" else 0.0
            per_token = value - in_objective * k
            numbers = (A, k, ratio, value, per_token, weight, weight * per_token)
            for key, number in zip(NAMES[1:], numbers, strict=True):
                out[key][p, g, t] = number
            for u, part in share.items():
                gradient[p, g, u] += weight * d_ratio * ratio * part
            gradient[p, g, t] -= weight * in_objective * d_k
    out["gradient"] = gradient
    sums = {
        "objective": math.fsum(out["contribution"].values()),
        "mean_kl": math.fsum(out["weight"][cell] * out["kl"][cell] for cell in out["kl"]),
    }
    return out, sums


NAMES = (
    *("advantages", "token_advantages", "kl", "ratio"),
    *("surrogate", "per_token", "weight", "contribution"),
)


def _advantages(scenario, arrays, penalty, options):
    """The batch as the plain advantages read it, and what they give for a cell and a token."""
    chosen = {key: scenario.conventions[key].variant for key in ("rewards", "advantage")}
    of_parts = {k: v for k, v in options["rewards"].items() if k in COMPONENT_OPTIONS}
    of_row = {k: v for k, v in options["rewards"].items() if k not in COMPONENT_OPTIONS}
    sizes = [scenario.sizes[axis] for axis in "PGL"]
    batch = case(arrays, sizes, scenario.terms, penalty, **of_parts)
    combine = partial(REWARDS[chosen["rewards"]], **of_row)
    return batch, ADVANTAGES[chosen["advantage"]](batch, combine, **options["advantage"])
