"""Stage *ratio*: how far the new policy has moved from the one that sampled."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .numerics import cast, difference, exp, row_count, times, total
from .variants import Variant, table


@dataclass(frozen=True, eq=False)
class Ratio:
    """Log-ratio and ratio per token (P, G, L), and the way back for derivatives.

    ``backward`` turns dJ/dratio (P, G, L) into dJ/dlogp_new (P, G, L).
    """

    log_ratio: np.ndarray
    ratio: np.ndarray
    backward: Callable


def token(batch):
    """``exp(logp_new - logp_old)`` of each token [DeepSeekMath, equation 3]."""
    log_ratio = difference(batch.logp_new, batch.logp_old)
    ratio = np.where(batch.valid, exp(log_ratio), batch.dtype.type(0))
    return Ratio(log_ratio, ratio, lambda gradient: times(gradient, ratio))


def sequence(batch):
    """Geometric mean of a completion's token ratios, the same at each of its tokens.

    Its derivative couples the tokens: each logp_new moves the ratio of all of them, so
    dJ/dlogp_t = (ratio / length) * sum over tokens u of dJ/dratio_u.
    """
    length = np.maximum(row_count(batch.valid), 1)  # (P, G, 1)
    token_log_ratio = difference(batch.logp_new, batch.logp_old)
    mean = cast(total(token_log_ratio, axis=-1)[..., None] / length, batch.dtype)
    log_ratio = np.where(batch.valid, mean, batch.dtype.type(0))
    ratio = np.where(batch.valid, exp(log_ratio), batch.dtype.type(0))

    def backward(gradient):
        summed = total(gradient, axis=-1)[..., None]  # (P, G, 1)
        return cast(times(summed / length, ratio), batch.dtype)

    return Ratio(log_ratio, ratio, backward)


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
    ),
)
