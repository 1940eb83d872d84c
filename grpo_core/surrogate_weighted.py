"""Surrogates that are a log-probability times a weight without gradient."""

import numpy as np

from .numerics import cast, difference, exp, times, total
from .surrogate_base import HIGH, SurrogateRow, unclipped
from .variants import Number, OneOf, Option


def _weighted(batch, weight, token_advantages):
    """``weight * A * logp_new``, the weight a constant of the update."""
    slope = np.where(batch.valid, times(weight, token_advantages), batch.dtype.type(0))
    slope = cast(slope, batch.dtype)
    return unclipped(times(slope, batch.logp_new), np.zeros_like(slope), slope)


def reinforce(batch, ratio, token_advantages):
    """``A logp_new``, without any ratio [Williams 1992; GPG, arXiv 2504.02546]."""
    return _weighted(batch, np.ones_like(ratio.ratio), token_advantages)


def cispo(batch, ratio, token_advantages, *, epsilon_low, epsilon_high, bound):
    """``clip(ratio) A logp_new``, the clipped ratio without gradient [CISPO, 2506.13585].

    No token loses its gradient: only the weight of what it pushes with is bounded.
    """
    value_type = batch.dtype.type
    low, high = cispo_bounds(epsilon_low, epsilon_high, bound)
    weight = np.clip(ratio.ratio, value_type(low), value_type(high))
    return _weighted(batch, weight, token_advantages)


def cispo_bounds(epsilon_low, epsilon_high, bound):
    """Lower and upper bound of the weight from the options of `cispo`."""
    return 1 - epsilon_low, epsilon_high if bound == "absolute" else 1 + epsilon_high


def vespo(batch, ratio, token_advantages, *, k_up, lambda_up, k_down, lambda_down, sampler):
    """``phi A logp_new`` with ``phi = w^k exp(lambda (1 - w))``, w the completion's ratio.

    w is the product of the token ratios, each log-ratio held within 20, log w within
    [log 1e-8, 20]. k and lambda depend on the sign of the advantage [VESPO, 2602.10693].
    Weights of the sampler may enter w, as in TRL, instead of multiplying the result.
    """
    log_ratio = np.clip(difference(batch.logp_new, batch.logp_old), -20.0, 20.0)
    if sampler == "inside" and batch.sampler_weights is not None:
        with np.errstate(divide="ignore"):
            log_ratio = log_ratio + np.clip(np.log(batch.sampler_weights), -20.0, 20.0)
    summed = total(np.where(batch.valid, log_ratio, 0), axis=-1)[..., None]
    log_w = np.clip(summed, np.log(1e-8), 20.0)
    up = token_advantages >= 0
    k, rate = np.where(up, k_up, k_down), np.where(up, lambda_up, lambda_down)
    phi = exp(rate + k * log_w - rate * np.exp(log_w))
    return _weighted(batch, np.nan_to_num(phi, nan=0.0, posinf=0.0), token_advantages)


def dro(batch, ratio, token_advantages, *, dro_beta):
    """``A logp_new - beta / 2 (logp_new - logp_old)^2`` [DRO, arXiv 2405.19107]."""
    base = reinforce(batch, ratio, token_advantages)
    step = difference(batch.logp_new, batch.logp_old)
    step = np.where(batch.valid, step, batch.dtype.type(0))
    rate = batch.dtype.type(dro_beta)
    with np.errstate(over="ignore", invalid="ignore"):
        value = base.value - times(rate / 2, step * step)
        slope = base.d_logp - times(rate, step)
    return unclipped(np.nan_to_num(value, nan=-np.inf, neginf=-np.inf), base.d_ratio, slope)


def _rate(key, default, label, text, trl, *, high=1e3):
    return Option(
        key=key,
        default=default,
        domain=Number(low=0.0, high=high),
        label=label,
        help=text,
        trl=trl,
        verl="not offered",
    )


ROWS = (
    SurrogateRow(
        key="cispo",
        clip_fraction="bounds",
        label="CISPO",
        function=cispo,
        formula=r"\operatorname{sg}\big[\operatorname{clip}(\rho)\big]\,A\,\log\pi_{\mathrm{new}}",
        source="CISPO: MiniMax-M1 (arXiv 2506.13585); absolute bound: ScaleRL (arXiv 2510.13786)",
        trl='loss_type="cispo" (epsilon_high is the bound itself)',
        verl='policy_loss.loss_mode="cispo" (bounds 1 - low, 1 + high)',
        choose_when="No token should lose its gradient, however far its ratio has moved.",
        options=(
            Option(
                key="epsilon_low",
                default=1.0,
                domain=Number(low=0.0, high=1.0),
                label="epsilon low",
                help="The weight is at least 1 - epsilon_low; with 1 it has no lower bound.",
                trl="not used",
                verl="clip_ratio_low=0.2",
            ),
            HIGH,
            Option(
                key="bound",
                default="offset",
                domain=OneOf({"offset": "1 + epsilon high", "absolute": "epsilon high itself"}),
                label="Upper bound",
                help="In TRL the number is the bound itself: its default of 0.2 holds every "
                "weight at 0.2. ScaleRL sets 5.",
                trl="epsilon high itself",
                verl="1 + epsilon high",
            ),
        ),
    ),
    SurrogateRow(
        key="vespo",
        reads_ratio=False,
        label="VESPO",
        function=vespo,
        formula=r"\operatorname{sg}\big[w^{k} e^{\lambda (1 - w)}\big]\,A\,"
        r"\log\pi_{\mathrm{new}},\quad w = \prod_t\rho_t",
        source="VESPO (arXiv 2602.10693)",
        trl='loss_type="vespo"',
        verl="not offered",
        choose_when="Completions are off-policy as a whole, and far ones should fade smoothly.",
        options=(
            _rate("k_up", 2.0, "k, A >= 0", "Power of the ratio.", "vespo_k_pos=2.0"),
            _rate("lambda_up", 3.0, "lambda, A >= 0", "Rate of the fall.", "vespo_lambda_pos=3.0"),
            _rate("k_down", 3.0, "k, A < 0", "Power of the ratio.", "vespo_k_neg=3.0"),
            _rate("lambda_down", 2.0, "lambda, A < 0", "Rate of the fall.", "vespo_lambda_neg=2.0"),
            Option(
                key="sampler",
                default="apart",
                domain=OneOf(
                    {"apart": "left to the correction", "inside": "inside w, where given"}
                ),
                label="Sampler weights",
                help="TRL puts them into w, token by token, and corrects nothing besides.",
                trl="inside w",
                verl="not offered",
            ),
        ),
    ),
    SurrogateRow(
        key="dro",
        reads_ratio=False,
        clip_fraction="",
        label="DRO",
        function=dro,
        formula=r"A\,\log\pi_{\mathrm{new}} - \tfrac{\beta_{\mathrm{dro}}}{2}"
        r"(\log\pi_{\mathrm{new}} - \log\pi_{\mathrm{old}})^2",
        source="DRO (arXiv 2405.19107); verl loss_mode dro",
        trl="not offered",
        verl='policy_loss.loss_mode="dro"',
        choose_when="Data is off-policy and a soft pull to the sampling policy will do.",
        options=(
            Option(
                key="dro_beta",
                default=0.1,
                domain=Number(low=0.0, high=1e3),
                label="DRO beta",
                help="Strength of the pull to the sampling policy.",
                trl="not offered",
                verl="policy_loss.dro_beta",
            ),
        ),
    ),
    SurrogateRow(
        key="reinforce",
        reads_ratio=False,
        clip_fraction="",
        label="REINFORCE (GPG)",
        function=reinforce,
        formula=r"A\,\log\pi_{\mathrm{new}}",
        source="Williams 1992; GPG (arXiv 2504.02546)",
        trl="not offered",
        verl='policy_loss.loss_mode="gpg"',
        choose_when="Every batch is used once, so that there is no ratio to correct for.",
    ),
)
