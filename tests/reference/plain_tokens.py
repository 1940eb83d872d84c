"""KL, ratios and surrogates of a completion's tokens in plain numbers: for `plain_loops`.

A token is a dictionary of its numbers. ``new`` is its log-probability under the new policy, and
``new_held`` the same where it is a constant of the update: moving ``new`` alone moves only what
carries a gradient. Shares no code with the core.
"""

import math


def clamped(value, bound):
    return min(max(value, -bound), bound) if bound else value


ESTIMATES = {
    "k1": lambda d: -d,
    "abs": abs,
    "k2": lambda d: d * d / 2,
    "k3": lambda d: math.exp(d) - d - 1,
}


def _kl(estimate):
    def value(policy, ref, held, ratio, *, clamp_in, clamp_out, weight, gradient, **where):
        """The KL itself, and as it enters the objective, where it does."""

        def clamp(d):
            return clamped(estimate(clamped(d, clamp_in)), clamp_out)

        plain = clamp(ref - policy)
        pull = plain
        if gradient == "k2":  # the value stays, and moves as that of k2
            pull = clamp(ref - held) + (ref - policy) ** 2 / 2 - (ref - held) ** 2 / 2
        return plain, pull * WEIGHTS[weight](policy - held, ratio)

    return value


WEIGHTS = {
    "none": lambda step, ratio: 1.0,
    "ratio": lambda step, ratio: ratio,
    "score": lambda step, ratio: math.exp(step),
}
KLS = {key: _kl(estimate) for key, estimate in ESTIMATES.items()}


def _token(tokens, t, clamp):
    return math.exp(clamped(tokens[t]["new"] - tokens[t]["old"], clamp))


def _whole(tokens, clamp, new="new", mean=True):
    log = math.fsum(token[new] - token["old"] for token in tokens.values())
    log = log / len(tokens) if mean else log
    return min(log, clamp) if clamp else log


def _sequence_token(tokens, t, clamp):
    whole = _whole(tokens, 0.0, "new_held")
    if clamp and whole > clamp:
        return math.exp(clamp)
    return math.exp(whole + tokens[t]["new"] - tokens[t]["new_held"])


RATIOS = {  # (tokens of the completion, token, options) -> ratio
    "token": _token,
    "sequence": lambda tokens, t, clamp: math.exp(_whole(tokens, clamp)),
    "sequence_token": _sequence_token,
    "sequence_product": lambda tokens, t, clamp: math.exp(_whole(tokens, clamp, mean=False)),
}


def _clip(tokens, t, epsilon_low, epsilon_high):
    ratio, A = tokens[t]["ratio"], tokens[t]["A"]
    return min(ratio * A, min(max(ratio, 1 - epsilon_low), 1 + epsilon_high) * A)


def _dual_clip(tokens, t, epsilon_low, epsilon_high, dual_clip):
    value, A = _clip(tokens, t, epsilon_low, epsilon_high), tokens[t]["A"]
    return max(value, dual_clip * A) if A < 0 else value


def _two_sided(tokens, t, epsilon_low, epsilon_high, delta):
    ratio, A = tokens[t]["ratio"], tokens[t]["A"]
    return min(min(ratio, delta) * A, min(max(ratio, 1 - epsilon_low), 1 + epsilon_high) * A)


def _cispo(tokens, t, epsilon_low, epsilon_high, bound):
    token = tokens[t]
    low, high = 1 - epsilon_low, 1 + epsilon_high
    if bound == "absolute":
        high = epsilon_high
    return min(max(token["ratio_held"], low), high) * token["A"] * token["new"]


def _vespo(tokens, t, k_up, lambda_up, k_down, lambda_down, sampler):
    A = tokens[t]["A"]
    k, rate = (k_up, lambda_up) if A >= 0 else (k_down, lambda_down)
    logs = [clamped(token["new_held"] - token["old"], 20) for token in tokens.values()]
    if sampler == "inside":
        given = [token["sampler_weight"] for token in tokens.values()]
        logs += [clamped(math.log(weight) if weight else -math.inf, 20) for weight in given]
    log_w = min(max(math.fsum(logs), math.log(1e-8)), 20)
    w = math.exp(log_w)
    return w**k * math.exp(rate * (1 - w)) * A * tokens[t]["new"]


def _dro(tokens, t, dro_beta):
    token = tokens[t]
    return token["A"] * token["new"] - dro_beta / 2 * (token["new"] - token["old"]) ** 2


def _sapo(tokens, t, tau_up, tau_down):
    A, ratio = tokens[t]["A"], tokens[t]["ratio"]
    tau = tau_up if A > 0 else tau_down
    return A * 4 / tau / (1 + math.exp(-tau * (ratio - 1)))


def _gmpo(tokens, t, log_low, log_high, count_eps):
    def held(token):
        log = token["new"] - token["old"]
        return min(log, log_high) if token["A"] > 0 else max(log, -log_low) if token["A"] else log

    n = len(tokens)
    logs = math.fsum(held(token) for token in tokens.values())
    return tokens[t]["A"] * math.exp(logs / (n + count_eps)) * n / (n + count_eps)


def _dppo(stopped):
    def value(tokens, t, epsilon_low, epsilon_high, form, truncate):
        token = tokens[t]
        new, old = math.exp(token["new_held"]), math.exp(token["old"])
        far = stopped(new, old)
        up = token["A"] > 0
        bound = epsilon_high if up else epsilon_low
        if (new > old) == up and far > bound:
            return 0.0
        if form == "ratio":
            return token["A"] * token["ratio"]
        return token["A"] * min(token["ratio_held"], truncate) * token["new"]

    return value


def _coins(q, p):
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


SURROGATES = {  # (tokens of the completion, token, options) -> value
    "clip": _clip,
    "dual_clip": _dual_clip,
    "two_sided": _two_sided,
    "cispo": _cispo,
    "vespo": _vespo,
    "dro": _dro,
    "reinforce": lambda tokens, t: tokens[t]["A"] * tokens[t]["new"],
    "sapo": _sapo,
    "gmpo": _gmpo,
    "dppo_tv": _dppo(lambda new, old: abs(new - old)),
    "dppo_kl": _dppo(_coins),
}
