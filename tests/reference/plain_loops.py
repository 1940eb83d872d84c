"""GRPO written out token by token with Python's own floats: slow, and easy to check by eye.

Shares no code with the core. Each table below names the rows of one stage; a test compares the
names with STAGES, so that a new row without its plain version is noticed.
"""

import math


def _k1(d):
    return -d, 1.0


def _k2(d):
    return d * d / 2, -d


def _k3(d):
    return math.exp(d) - d - 1, 1 - math.exp(d)


KLS = {"k1": _k1, "k2": _k2, "k3": _k3}  # d -> (value, derivative by logp_new)


def _mean(values):
    return math.fsum(values) / len(values)


def _std(values, ddof):
    if len(values) <= ddof:
        return 0.0
    mean = _mean(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - ddof))


def _mean_std(score, scores, given, ddof, eps):
    std = _std(scores, ddof)
    return 0.0 if std == 0 else (score - _mean(scores)) / (std + eps)


def _mean_only(score, scores, given):
    return score - _mean(scores)


def _given(score, scores, given):
    return given


ADVANTAGES = {"mean_std": _mean_std, "mean_only": _mean_only, "given": _given}


def _outcome(reward, missing):
    if math.isnan(reward):
        return 0.0 if missing == "as_zero" else None
    return reward


REWARDS = {"outcome": _outcome}  # reward -> score, None where there is none


def _token(log_ratios, t):
    return math.exp(log_ratios[t]), {t: 1.0}


def _sequence(log_ratios, t):
    return math.exp(_mean(list(log_ratios.values()))), {u: 1 / len(log_ratios) for u in log_ratios}


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


def evaluate(scenario):
    """All per-completion and per-token numbers, as {name: {index: number}}, and the sums."""
    chosen = {key: scenario.conventions[key] for key in TABLES}
    functions = {key: TABLES[key][choice.variant] for key, choice in chosen.items()}
    options = {key: dict(choice.options) for key, choice in chosen.items()}
    beta, place = options["kl"].pop("beta"), options["kl"].pop("place")
    arrays = {key: array.tolist() for key, array in scenario.arrays.items()}
    P, G, L = (scenario.sizes[axis] for axis in "PGL")
    tokens = {
        (p, g): [t for t in range(L) if arrays["mask"][p][g][t]]
        for p in range(P)
        for g in range(G)
        if arrays["present"][p][g]
    }
    lengths = [len(valid) for valid in tokens.values()]
    names = ("advantages", "kl", "ratio", "surrogate", "per_token", "weight", "contribution")
    out = {key: {} for key in names}
    gradient = {(p, g, t): 0.0 for (p, g), valid in tokens.items() for t in valid}

    def log_difference(left, right, p, g, t):
        return arrays[left][p][g][t] - arrays[right][p][g][t]

    for p in range(P):
        scores = {}
        for g in range(G):
            if (p, g) not in tokens:
                continue
            score = functions["rewards"](arrays["rewards"][p][g], **options["rewards"])
            if score is not None and place == "reward":
                for t in tokens[p, g]:
                    d = log_difference("logp_ref", "logp_old", p, g, t)
                    score -= beta * functions["kl"](d)[0]
            if score is not None:
                scores[g] = score
        for g in range(G):
            if (p, g) not in tokens:
                continue
            given = arrays["advantages"][p][g]
            A = 0.0
            if g in scores or chosen["advantage"].variant == "given":
                A = functions["advantage"](
                    scores.get(g), list(scores.values()), given, **options["advantage"]
                )
            out["advantages"][p, g] = A
            log_ratios = {t: log_difference("logp_new", "logp_old", p, g, t) for t in tokens[p, g]}
            for t in tokens[p, g]:
                ratio, share = functions["ratio"](log_ratios, t)
                value, d_ratio = functions["surrogate"](ratio, A, **options["surrogate"])
                policy = "logp_old" if place == "reward" else "logp_new"
                kl, d_kl = functions["kl"](log_difference("logp_ref", policy, p, g, t))
                in_objective = beta if place == "objective" else 0.0
                weight = functions["aggregation"](
                    len(tokens[p, g]), lengths, L, **options["aggregation"]
                )
                per_token = value - in_objective * kl
                numbers = (kl, ratio, value, per_token, weight, weight * per_token)
                for key, number in zip(names[1:], numbers, strict=True):
                    out[key][p, g, t] = number
                for u, part in share.items():
                    gradient[p, g, u] += weight * d_ratio * ratio * part
                gradient[p, g, t] -= weight * in_objective * d_kl
    out["gradient"] = gradient
    sums = {
        "objective": math.fsum(out["contribution"].values()),
        "mean_kl": math.fsum(out["weight"][cell] * out["kl"][cell] for cell in out["kl"]),
    }
    return out, sums
