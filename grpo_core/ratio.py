"""Stage *ratio*: how far the new policy has moved from the one that sampled."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .numerics import cast, difference, exp, row_count, times, total
from .variants import Number, Option, Variant, table


@dataclass(frozen=True, eq=False)
class Ratio:
    """Log-ratio and ratio per token (P, G, L), and the way back for derivatives.

    ``backward`` turns dJ/dratio (P, G, L) into dJ/dlogp_new (P, G, L).
    """

    log_ratio: np.ndarray
    ratio: np.ndarray
    backward: Callable


def token(batch, *, clamp):
    """``exp(logp_new - logp_old)`` of each token [DeepSeekMath, equation 3]."""
    log_ratio, inside = _held(difference(batch.logp_new, batch.logp_old), clamp)
    ratio = np.where(batch.valid, exp(log_ratio), batch.dtype.type(0))
    return Ratio(log_ratio, ratio, lambda gradient: times(gradient, times(ratio, inside)))


def _held(log_ratio, clamp, *, both=True):
    """A log-ratio within plus and minus `clamp`, and where it is not held; 0 is no clamp."""
    if not clamp:
        return log_ratio, np.ones_like(log_ratio)
    bound = log_ratio.dtype.type(clamp)
    held = np.clip(log_ratio, -bound if both else None, bound)
    return held, (held == log_ratio).astype(log_ratio.dtype)


def sequence(batch, *, clamp):
    """Geometric mean of a completion's token ratios, the same at each of its tokens.

    Its derivative couples the tokens: each logp_new moves the ratio of all of them, so
    dJ/dlogp_t = (ratio / length) * sum over tokens u of dJ/dratio_u.
    """
    length = np.maximum(row_count(batch.valid), 1)  # (P, G, 1)
    return _completion(batch, length, clamp)


def sequence_product(batch, *, clamp):
    """Product of a completion's token ratios: how likely the whole of it has become."""
    return _completion(batch, np.ones((*batch.present.shape, 1)), clamp)


def _completion(batch, length, clamp):
    """One ratio per completion: exp of the summed log-ratios over `length` (P, G, 1)."""
    token_log_ratio = difference(batch.logp_new, batch.logp_old)
    mean = cast(total(token_log_ratio, axis=-1)[..., None] / length, batch.dtype)
    mean, inside = _held(mean, clamp, both=False)
    log_ratio = np.where(batch.valid, mean, batch.dtype.type(0))
    ratio = np.where(batch.valid, exp(log_ratio), batch.dtype.type(0))

    def backward(gradient):
        summed = total(gradient, axis=-1)[..., None]  # (P, G, 1)
        return cast(times(times(summed / length, inside), ratio), batch.dtype)

    return Ratio(log_ratio, ratio, backward)


def sequence_token(batch, *, clamp):
    """The value of `sequence`, with the gradient of each token's own [GSPO, equation 14].

    ``exp(sg[log s] + logp_new - sg[logp_new])``: a token answers for its own term only, with
    the completion's ratio in front. verl's gspo.
    """
    whole = sequence(batch, clamp=0.0)
    log_ratio, inside = _held(whole.log_ratio, clamp, both=False)
    ratio = np.where(batch.valid, exp(log_ratio), batch.dtype.type(0))
    return Ratio(log_ratio, ratio, lambda gradient: times(gradient, times(ratio, inside)))


def _clamp(default, text, verl):
    return Option(
        key="clamp",
        default=default,
        domain=Number(low=0.0, high=1e3),
        label="Clamp of the log-ratio (0: none)",
        help=text,
        trl="none",
        verl=verl,
    )


_BOTH = "The log-ratio is held within plus and minus this. A held token gets no gradient."
_ABOVE = "The completion's log-ratio is held at most at this."

RATIOS = table(
    Variant(
        key="token",
        label="per token",
        function=token,
        formula=r"\rho_t = e^{\log\pi_{\mathrm{new}} - \log\pi_{\mathrm{old}}}",
        source="DeepSeekMath (arXiv 2402.03300) equation 3",
        trl='importance_sampling_level="token"',
        verl='policy_loss.loss_mode="vanilla"',
        choose_when="The default everywhere; each token is clipped on its own.",
        options=(_clamp(0.0, _BOTH, "20, fixed"),),
    ),
    Variant(
        key="sequence",
        label="per completion (GSPO)",
        function=sequence,
        formula=r"s = e^{\frac1T\sum_t(\log\pi_{\mathrm{new}} - \log\pi_{\mathrm{old}})}",
        source="GSPO (arXiv 2507.18071) equation 7",
        trl='importance_sampling_level="sequence"',
        verl='policy_loss.loss_mode="gspo" (which takes the gradient per token)',
        choose_when="Rewards judge whole completions and single tokens clip erratically, as in "
        "mixture-of-experts models; use a far smaller clip range.",
        options=(_clamp(0.0, _ABOVE, "10, fixed"),),
    ),
    Variant(
        key="sequence_token",
        label="per completion, gradient per token",
        function=sequence_token,
        formula=r"s_t = \operatorname{sg}[s]\,\frac{\pi_{\mathrm{new}}}"
        r"{\operatorname{sg}[\pi_{\mathrm{new}}]}",
        source="GSPO (arXiv 2507.18071) section 4.3, GSPO-token",
        trl="experimental gspo_token",
        verl='policy_loss.loss_mode="gspo"',
        choose_when="Advantages differ within a completion, and the ratio should not.",
        options=(_clamp(0.0, _ABOVE, "10, fixed"),),
    ),
    Variant(
        key="sequence_product",
        label="per completion, product",
        function=sequence_product,
        formula=r"w = e^{\sum_t(\log\pi_{\mathrm{new}} - \log\pi_{\mathrm{old}})}",
        source="RLOO (arXiv 2402.14740); TRL RLOOTrainer",
        trl="RLOOTrainer",
        verl="not offered for the loss",
        choose_when="Completions are one action each, as in RLOO; long ones have wild ratios.",
        options=(_clamp(0.0, _ABOVE, "not offered"),),
    ),
)
