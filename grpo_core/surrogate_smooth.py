"""Surrogates that bound the ratio smoothly, per completion, or by probabilities."""

import numpy as np

from .numerics import cast, difference, exp, row_count, times, total
from .surrogate_base import HIGH, LOW, SurrogateRow, unclipped
from .variants import Number, OneOf, Option


def sapo(batch, ratio, token_advantages, *, tau_up, tau_down):
    """``A sigmoid(tau (ratio - 1)) 4 / tau``: a gate whose slope at 1 is that of the ratio.

    At ratio 1 the value is ``2 A / tau``, so that the loss of a first step is not 0 where
    the two temperatures differ [SAPO, arXiv 2511.20347].
    """
    tau = np.where(token_advantages > 0, tau_up, tau_down)
    with np.errstate(over="ignore"):
        gate = _sigmoid(tau * (ratio.ratio - 1.0))
        scaled = gate * 4 / tau
    value = np.where(batch.valid, times(token_advantages, scaled), 0)
    slope = np.where(batch.valid, times(token_advantages, 4 * gate * (1 - gate)), 0)
    return unclipped(cast(value, batch.dtype), cast(slope, batch.dtype))


def _sigmoid(x):
    """1 / (1 + exp(-x)) without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def gmpo(batch, ratio, token_advantages, *, log_low, log_high, count_eps):
    """A times the geometric mean of token ratios clipped in log space [GMPO, 2507.20673].

    A log-ratio is held at ``log_high`` where A > 0, and at ``-log_low`` where A < 0. The
    value stands at every token of the completion; its derivative reaches the tokens that
    were not held.
    """
    step = np.where(batch.valid, difference(batch.logp_new, batch.logp_old), 0)
    high = (token_advantages > 0) & (step > log_high)
    low = (token_advantages < 0) & (step < -log_low)
    held = np.where(high, log_high, np.where(low, -log_low, step))
    count = np.maximum(row_count(batch.valid), 1)
    length = count + count_eps
    mean = exp(total(held, axis=-1)[..., None] / length) * (count / length)  # A is a mean, too
    value = cast(np.where(batch.valid, times(mean, token_advantages), 0), batch.dtype)
    moves = batch.valid & ~(high | low)

    def backward(gradient):
        whole = total(times(gradient, value), axis=-1)[..., None]
        return cast(np.where(moves, whole / length, 0.0), batch.dtype)

    return unclipped(value, np.zeros_like(value), low=low, high=high, backward=backward)


def _dppo(drops):
    """A row's function from a rule: (advantage, p_new, p_old, low, high) -> dropped, by side.

    verl and prime-rl drop tokens of advantage 0 like negative ones; they have nothing to lose.
    """

    def function(batch, ratio, token_advantages, *, epsilon_low, epsilon_high, form, truncate):
        new, old = exp(batch.logp_new), exp(batch.logp_old)
        high, low = drops(token_advantages, new, old, epsilon_low, epsilon_high)
        high, low = high & batch.valid, low & batch.valid
        keep = batch.valid & ~(high | low)
        kept = np.where(keep, token_advantages, batch.dtype.type(0))
        if form == "ratio":
            return unclipped(times(kept, ratio.ratio), kept, low=low, high=high)
        weight = np.minimum(ratio.ratio, batch.dtype.type(truncate))
        slope = times(weight, kept)
        value = times(slope, batch.logp_new)
        return unclipped(value, np.zeros_like(slope), slope, low=low, high=high)

    return function


def _beyond_tv(A, new, old, low, high):
    step = new - old
    return (A > 0) & (step > high), (A < 0) & (step < -low)


def _beyond_kl(A, new, old, low, high):
    far = _bernoulli_kl(old, new)
    return (A > 0) & (new > old) & (far > high), (A < 0) & (new < old) & (far > low)


def _bernoulli_kl(p, q):
    """KL of two coins, p to q; chances are kept off 0 and 1 as verl does."""
    # In single precision 1 - 1e-8 would be 1.
    p, q = (np.clip(x.astype(np.float64), 1e-8, 1 - 1e-8) for x in (p, q))
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


_FORM = Option(
    key="form",
    default="detached",
    domain=OneOf(
        {
            "detached": "truncated ratio as a weight, times log-probability",
            "ratio": "ratio times advantage",
        }
    ),
    label="What is kept of a token",
    help="verl weights the log-probability by the truncated ratio without gradient; prime-rl "
    "keeps the ratio itself.",
    trl="not offered",
    verl="truncated ratio as a weight",
)
_TRUNCATE = Option(
    key="truncate",
    default=3.0,
    domain=Number(low=0.0, high=1e6, exclusive=True),
    label="Ratio truncated at",
    help="The weight of a token is at most this.",
    trl="not offered",
    verl="clip_ratio_c (actor.yaml sets 3.0)",
)


def _tau(key, default, label, trl):
    return Option(
        key=key,
        default=default,
        domain=Number(low=0.0, high=1e3, exclusive=True),
        label=label,
        help="Steepness of the gate.",
        trl=trl,
        verl=key.replace("up", "pos").replace("down", "neg"),
    )


def _log_bound(key, label, text):
    return Option(
        key=key,
        default=0.4,
        domain=Number(low=0.0, high=1e3),
        label=label,
        help=text,
        trl="GMPOConfig(epsilon=0.4)",
        verl="clip_ratio_low, clip_ratio_high, taken as bounds of the logarithm",
    )


# What DPPO keeps of a token, in verl's form and in prime-rl's.
_KEPT = (
    r"\operatorname{sg}[\min(\rho, c)]\,A\,\log\pi_{\mathrm{new}}\ \text{or}\ \rho A,\ "
    r"\text{unless}\ "
)

ROWS = (
    SurrogateRow(
        key="sapo",
        label="SAPO",
        function=sapo,
        formula=r"\tfrac{4}{\tau}\,\sigma\big(\tau(\rho - 1)\big)\,A",
        source="SAPO (arXiv 2511.20347)",
        trl='loss_type="sapo"',
        verl='policy_loss.loss_mode="sapo"',
        choose_when="The band should have no edge.",
        options=(
            _tau("tau_up", 1.0, "tau, A > 0", "sapo_temperature_pos=1.0"),
            _tau("tau_down", 1.05, "tau, A <= 0", "sapo_temperature_neg=1.05"),
        ),
    ),
    SurrogateRow(
        key="gmpo",
        stops="another bound",
        reads_ratio=False,
        clip_fraction="log bounds",
        label="GMPO",
        function=gmpo,
        formula=r"A\,\exp\Big(\tfrac1T\sum_t\operatorname{clip}_A(\log\rho_t)\Big)",
        source="GMPO (arXiv 2507.20673)",
        trl="GMPOConfig (experimental)",
        verl='policy_loss.loss_mode="geo_mean"',
        choose_when="Single tokens have wild ratios that should not carry a completion.",
        options=(
            _log_bound("log_low", "log bound low", "Log-ratios below minus this are held, A < 0."),
            _log_bound("log_high", "log bound high", "Log-ratios above this are held, A > 0."),
            Option(
                key="count_eps",
                default=0.0,
                domain=Number(low=0.0, high=1.0),
                label="Added to token counts",
                help="A guard against division by 0; changes the eighth digit.",
                trl="none",
                verl="1e-8",
            ),
        ),
    ),
    SurrogateRow(
        key="dppo_tv",
        stops="another bound",
        label="DPPO, total variation",
        function=_dppo(_beyond_tv),
        formula=_KEPT + r"\pi_{\mathrm{new}} - \pi_{\mathrm{old}} >"
        r"\varepsilon_{\mathrm{high}}\ (A>0)\ \text{or}\ <-\varepsilon_{\mathrm{low}}\ (A<0)",
        source="DPPO (arXiv 2602.04879); verl loss_mode dppo_tv, prime-rl's default loss",
        trl="not offered",
        verl='policy_loss.loss_mode="dppo_tv"',
        choose_when="Rare tokens should not be stopped for a ratio that hardly moves probability.",
        options=(LOW, HIGH, _FORM, _TRUNCATE),
    ),
    SurrogateRow(
        key="dppo_kl",
        stops="another bound",
        label="DPPO, KL",
        function=_dppo(_beyond_kl),
        formula=_KEPT + r"\mathrm{KL}_{\mathrm{Bernoulli}}(\pi_{\mathrm{old}}\,\|\,"
        r"\pi_{\mathrm{new}}) > \varepsilon_{\mathrm{high}}\ (A>0,\ \pi_{\mathrm{new}} >"
        r"\pi_{\mathrm{old}})\ \text{or}\ > \varepsilon_{\mathrm{low}}\ (A<0,\ "
        r"\pi_{\mathrm{new}} < \pi_{\mathrm{old}})",
        source="DPPO (arXiv 2602.04879); verl loss_mode dppo_kl",
        trl="not offered",
        verl='policy_loss.loss_mode="dppo_kl"',
        choose_when="As total variation, with a bound in nats.",
        options=(LOW, HIGH, _FORM, _TRUNCATE),
    ),
)
