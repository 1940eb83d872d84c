"""Code of surrogates: the value of each token, and its derivative."""

from .export_spelling import Snippet


def _clip(w):
    return [*_clipped(w), *_slope("clipped_high | clipped_low")]


def _clipped(w):
    s = w.spelling
    free, bound = s.times("ratio", "token_advantages"), s.times("bounded", "token_advantages")
    return [
        _bounds(w),
        "bounded = np.clip(ratio, 1 - epsilon_low, 1 + epsilon_high)",
        f"surrogate = np.minimum({free}, {bound})",
        "clipped_high = (token_advantages > 0) & (ratio > 1 + epsilon_high)",
        "clipped_low = (token_advantages < 0) & (ratio < 1 - epsilon_low)",
    ]


def _bounds(w):
    low, high = w.options["epsilon_low"], w.options["epsilon_high"]
    return f"epsilon_low, epsilon_high = {low!r}, {high!r}"


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


def _two_sided(w):
    s = w.spelling
    free = s.times("np.minimum(ratio, delta)", "token_advantages")
    return [
        _bounds(w),
        f"delta = {w.options['delta']!r}",
        "bounded = np.clip(ratio, 1 - epsilon_low, 1 + epsilon_high)",
        f"free = {free}",
        f"surrogate = np.minimum(free, {s.times('bounded', 'token_advantages')})",
        "top, floor = min(delta, 1 + epsilon_high), max(delta, 1 + epsilon_high)",
        "clipped_high = (token_advantages > 0) & (ratio > top)",
        "clipped_low = (token_advantages < 0) & (ratio < 1 - epsilon_low)",
        "dual_clipped = (token_advantages < 0) & (ratio > floor)",
        *_slope("clipped_high | clipped_low | dual_clipped"),
    ]


_UNCLIPPED = [
    "clipped_high = np.zeros(valid.shape, dtype=bool)  # nothing is clipped",
    "clipped_low = clipped_high",
]


def _single(w, name):
    return [f"{name} = {name}.astype(np.float32)"] if w.single else []


def _weighted(w, weight):
    """Lines of a weight, a constant of the update, times the log-probability."""
    s = w.spelling
    slope = "token_advantages" if weight is None else s.times(weight, "token_advantages")
    return [
        "# derivative by logp_new: what it is weighted with, a constant of the update",
        f"d_logp = np.where(valid, {slope}, 0.0)",
        *_single(w, "d_logp"),
        f"surrogate = {s.times('d_logp', 'logp_new')}",
    ]


def _direct_back(w, pull):
    """The gradient of a row that has ``d_logp``: past the ratio."""
    return [f"policy_gradient = {w.spelling.times(pull, 'd_logp')}"]


def _reinforce(w):
    return [*_weighted(w, None), *_UNCLIPPED]


def _cispo(w):
    high = {"offset": "1 + epsilon_high", "absolute": "epsilon_high"}[w.options["bound"]]
    return [
        _bounds(w),
        f"coefficient = np.clip(ratio, 1 - epsilon_low, {high})",
        *_weighted(w, "coefficient"),
        *_UNCLIPPED,
    ]


def _vespo(w):
    s, o = w.spelling, w.options
    inside = o["sampler"] == "inside" and "sampler_weights" in w.scenario
    log = "np.log(np.where(sampler_weights > 0, sampler_weights, 1e-9))"
    return [
        f"k_up, lambda_up, k_down, lambda_down = "
        f"{o['k_up']!r}, {o['lambda_up']!r}, {o['k_down']!r}, {o['lambda_down']!r}",
        f"steps = np.clip({s.minus('logp_new', 'logp_old')}, -20.0, 20.0)",
        *([f"steps = steps + np.clip({log}, -20.0, 20.0)"] if inside else []),
        "# log of the completion's ratio, held within [log 1e-8, 20]",
        "log_sum = np.where(valid, steps, 0.0).sum(axis=-1, keepdims=True, dtype=np.float64)",
        "log_w = np.clip(log_sum, np.log(1e-8), 20.0)",
        "k = np.where(token_advantages >= 0, k_up, k_down)",
        "rate = np.where(token_advantages >= 0, lambda_up, lambda_down)",
        "with np.errstate(under='ignore', over='ignore'):",
        "    phi = np.exp(rate + k * log_w - rate * np.exp(log_w))",
        "phi = np.where(np.isfinite(phi), phi, 0.0)",
        *_weighted(w, "phi"),
        *_UNCLIPPED,
    ]


def _dro(w):
    s = w.spelling
    pull = s.times("dro_beta / 2", s.times("steps", "steps"))
    return [
        f"dro_beta = {w.options['dro_beta']!r}",
        f"steps = {s.minus('logp_new', 'logp_old')}",
        f"surrogate = {s.less(s.times('token_advantages', 'logp_new'), pull)}",
        f"d_logp = {s.less('token_advantages', s.times('dro_beta', 'steps'))}",
        *_UNCLIPPED,
    ]


def _sapo(w):
    s, o = w.spelling, w.options
    scaled = s.times("token_advantages", "(gate * 4 / tau)")
    slope = s.times("token_advantages", "(4 * gate * (1 - gate))")
    return [
        f"tau_up, tau_down = {o['tau_up']!r}, {o['tau_down']!r}",
        "tau = np.where(token_advantages > 0, tau_up, tau_down)",
        "# a sigmoid, written so that neither side overflows",
        "x = tau * (ratio - 1.0)",
        "with np.errstate(under='ignore'):",
        "    small = np.exp(-np.abs(x))",
        "gate = np.where(x >= 0, 1 / (1 + small), small / (1 + small))",
        f"surrogate = {scaled}",
        "# derivative of the surrogate by the ratio",
        f"d_ratio = {slope}",
        *_single(w, "surrogate"),
        *_single(w, "d_ratio"),
        *_UNCLIPPED,
    ]


def _dppo(far):
    """A DPPO row: lines that say which tokens are dropped, on which side."""

    def code(w):
        s = w.spelling
        lines = [
            _bounds(w),
            "new, old = np.exp(logp_new), np.exp(logp_old)",
            *far,
            "clipped_high, clipped_low = clipped_high & valid, clipped_low & valid",
            "left = np.where(clipped_high | clipped_low, 0.0, token_advantages)",
        ]
        if w.options["form"] == "ratio":
            return [*lines, f"surrogate = {s.times('ratio', 'left')}", "d_ratio = left"]
        return [
            *lines,
            f"truncate = {w.options['truncate']!r}",
            f"d_logp = {s.times('np.minimum(ratio, truncate)', 'left')}",
            *_single(w, "d_logp"),
            f"surrogate = {s.times('d_logp', 'logp_new')}",
        ]

    return Snippet(code, _dppo_back)


def _dppo_back(w, pull):
    return _direct_back(w, pull) if w.option("surrogate", "form") == "detached" else None


_TV = [
    "# a token is dropped once its probability has moved too far",
    "clipped_high = (token_advantages > 0) & (new - old > epsilon_high)",
    "clipped_low = (token_advantages < 0) & (new - old < -epsilon_low)",
]
_BERNOULLI = [
    "# KL of two coins, old to new; a token is dropped once it is too large",
    "p, q = (np.clip(x.astype(np.float64), 1e-8, 1 - 1e-8) for x in (old, new))",
    "far = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))",
    "clipped_high = (token_advantages > 0) & (new > old) & (far > epsilon_high)",
    "clipped_low = (token_advantages < 0) & (new < old) & (far > epsilon_low)",
]


def _gmpo(w):
    s, o = w.spelling, w.options
    eps = f" + {o['count_eps']!r}" if o["count_eps"] else ""
    share = " * (count / own_length)" if eps else ""
    return [
        f"log_low, log_high = {o['log_low']!r}, {o['log_high']!r}",
        f"steps = {s.minus('logp_new', 'logp_old')}",
        "clipped_high = (token_advantages > 0) & (steps > log_high)",
        "clipped_low = (token_advantages < 0) & (steps < -log_low)",
        "steps = np.where(clipped_high, log_high, np.where(clipped_low, -log_low, steps))",
        "count = np.maximum(valid.sum(axis=-1, keepdims=True), 1)  # (P, G, 1)",
        f"own_length = count{eps}",
        f"log_sum = {s.summed('steps', 'axis=-1, keepdims=True, dtype=np.float64')}",
        f"average = np.exp(log_sum / own_length){share}  # geometric mean of the ratios",
        f"surrogate = np.where(valid, {s.times('average', 'token_advantages')}, 0.0)",
        *_single(w, "surrogate"),
        "own_surrogate = surrogate",
    ]


def _gmpo_back(w, pull):
    s = w.spelling
    summed = s.summed_of(s.times(pull, "own_surrogate"), "axis=-1, keepdims=True")
    return [
        "# every log-probability that is not held moves the mean of its completion",
        "moves = valid & ~(clipped_high | clipped_low)",
        f"pulls = {summed}",
        "policy_gradient = np.where(moves, pulls / own_length, 0.0)",
    ]


SURROGATE_SNIPPETS = {
    ("surrogate", "clip"): Snippet(_clip),
    ("surrogate", "dual_clip"): Snippet(_dual_clip),
    ("surrogate", "two_sided"): Snippet(_two_sided),
    ("surrogate", "reinforce"): Snippet(_reinforce, _direct_back),
    ("surrogate", "cispo"): Snippet(_cispo, _direct_back),
    ("surrogate", "vespo"): Snippet(_vespo, _direct_back),
    ("surrogate", "dro"): Snippet(_dro, _direct_back),
    ("surrogate", "sapo"): Snippet(_sapo),
    ("surrogate", "gmpo"): Snippet(_gmpo, _gmpo_back),
    ("surrogate", "dppo_tv"): _dppo(_TV),
    ("surrogate", "dppo_kl"): _dppo(_BERNOULLI),
}
