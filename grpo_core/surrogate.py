"""Stage *surrogate*: what a token is worth, and where its gradient stops."""

from dataclasses import dataclass

import numpy as np

from .numerics import times
from .variants import Number, Option, Variant, table


@dataclass(frozen=True, eq=False)
class Surrogate:
    """Value and derivative with respect to the ratio, both (P, G, L), and which side stopped it.

    ``clipped_low`` and ``clipped_high`` know the sign of the advantage: a ratio above the
    band with a negative advantage is not clipped. ``dual_clipped`` marks the lower bound
    that dual clip puts on the value.
    """

    value: np.ndarray
    d_ratio: np.ndarray
    clipped_low: np.ndarray
    clipped_high: np.ndarray
    dual_clipped: np.ndarray


def clip(batch, ratio, token_advantages, *, epsilon_low, epsilon_high):
    """``min(ratio A, clip(ratio, 1 - epsilon_low, 1 + epsilon_high) A)``.

    Computed as A times the ratio bounded on the side that the sign of A selects, which is
    the same and keeps an overflowing ratio with a positive advantage finite. On the edge
    of the band the derivative is that of the inside.
    """
    value_type = batch.dtype.type
    high, low = value_type(1 + epsilon_high), value_type(1 - epsilon_low)
    up, down = token_advantages > 0, token_advantages < 0
    clipped_high = up & (ratio.ratio > high)
    clipped_low = down & (ratio.ratio < low)
    bounded = np.where(clipped_high, high, np.where(clipped_low, low, ratio.ratio))
    stopped = clipped_high | clipped_low
    return Surrogate(
        value=times(bounded, token_advantages),
        d_ratio=np.where(stopped, value_type(0), token_advantages),
        clipped_low=clipped_low,
        clipped_high=clipped_high,
        dual_clipped=np.zeros_like(stopped),
    )


def dual_clip(batch, ratio, token_advantages, *, epsilon_low, epsilon_high, dual_clip):
    """The clipped surrogate, for negative advantages not below ``dual_clip * A``.

    Source: Ye et al., arXiv 1912.09729, section on dual-clip PPO.
    """
    base = clip(batch, ratio, token_advantages, epsilon_low=epsilon_low, epsilon_high=epsilon_high)
    bound = batch.dtype.type(dual_clip)
    beyond = (token_advantages < 0) & (ratio.ratio > bound)
    return Surrogate(
        value=np.where(beyond, times(bound, token_advantages), base.value),
        d_ratio=np.where(beyond, batch.dtype.type(0), base.d_ratio),
        clipped_low=base.clipped_low,
        clipped_high=base.clipped_high,
        dual_clipped=beyond,
    )


_LOW = Option(
    key="epsilon_low",
    default=0.2,
    domain=Number(low=0.0, high=1.0),
    label="epsilon low",
    help="The band starts at 1 - epsilon_low. It stops tokens with a negative advantage.",
    trl="epsilon=0.2",
    verl="clip_ratio_low=0.2",
)
_HIGH = Option(
    key="epsilon_high",
    default=0.2,
    domain=Number(low=0.0, high=1e6),
    label="epsilon high",
    help="The band ends at 1 + epsilon_high. It stops tokens with a positive advantage.",
    trl="epsilon_high=None (as epsilon)",
    verl="clip_ratio_high=0.2",
)

SURROGATES = table(
    Variant(
        key="clip",
        label="clip",
        function=clip,
        formula=r"\min\big(\rho A,\ \operatorname{clip}(\rho,\,1-\varepsilon_{\mathrm{low}},\,"
        r"1+\varepsilon_{\mathrm{high}})\,A\big)",
        source="PPO (arXiv 1707.06347) equation 7; two bounds: DAPO (arXiv 2503.14476) equation 10",
        trl="the default",
        verl='policy_loss.loss_mode="vanilla" with a large clip_ratio_c',
        choose_when="The standard choice.",
        options=(_LOW, _HIGH),
    ),
    Variant(
        key="dual_clip",
        label="dual clip",
        function=dual_clip,
        formula=r"A<0:\ \max\big(\min(\rho A,\ \operatorname{clip}(\rho)\,A),\ c\,A\big)",
        source="Ye et al. (arXiv 1912.09729), dual-clip PPO",
        trl="delta (the same bound, set on the ratio)",
        verl='policy_loss.loss_mode="vanilla" (on by default)',
        choose_when="Ratios may explode on tokens with a negative advantage, e.g. off-policy data.",
        options=(
            _LOW,
            _HIGH,
            Option(
                key="dual_clip",
                default=3.0,
                domain=Number(low=1.0, high=1e6, exclusive=True),
                label="dual clip c",
                help="Above this ratio a token with a negative advantage gets no gradient.",
                trl="delta=None",
                verl="clip_ratio_c=3.0",
            ),
        ),
    ),
)
