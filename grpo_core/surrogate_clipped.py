"""Surrogates that stop a token whose ratio has left a band: PPO's clip and its relatives."""

import numpy as np

from .numerics import times
from .surrogate_base import HIGH, LOW, Surrogate, SurrogateRow
from .variants import Number, Option


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


def two_sided(batch, ratio, token_advantages, *, epsilon_low, epsilon_high, delta):
    """``min(min(ratio, delta) A, clip(ratio) A)``: the bound on the ratio itself [INTELLECT-2].

    With ``delta`` above ``1 + epsilon_high`` this is dual clip. Below it, the band of a
    positive advantage ends at delta, and for a negative one the second branch goes on.
    """
    value_type = batch.dtype.type
    high, low = value_type(1 + epsilon_high), value_type(1 - epsilon_low)
    bound, rho = value_type(delta), ratio.ratio
    up, down = token_advantages > 0, token_advantages < 0
    top = np.minimum(bound, high)  # of a positive advantage
    floor = np.maximum(bound, high)  # of a negative one
    clipped_high, clipped_low, beyond = up & (rho > top), down & (rho < low), down & (rho > floor)
    bounded = np.where(clipped_high, top, np.where(clipped_low, low, rho))
    bounded = np.where(beyond, floor, bounded)
    stopped = clipped_high | clipped_low | beyond
    return Surrogate(
        value=times(bounded, token_advantages),
        d_ratio=np.where(stopped, value_type(0), token_advantages),
        clipped_low=clipped_low,
        clipped_high=clipped_high,
        dual_clipped=beyond,
    )


ROWS = (
    SurrogateRow(
        key="clip",
        stops="band",
        label="clip",
        function=clip,
        formula=r"\min\big(\rho A,\ \operatorname{clip}(\rho,\,1-\varepsilon_{\mathrm{low}},\,"
        r"1+\varepsilon_{\mathrm{high}})\,A\big)",
        source="PPO (arXiv 1707.06347) equation 7; two bounds: DAPO (arXiv 2503.14476) equation 10",
        trl="the default",
        verl='policy_loss.loss_mode="vanilla" with a large clip_ratio_c',
        choose_when="Samples are reused for a few steps, and none should leave the band.",
        options=(LOW, HIGH),
    ),
    SurrogateRow(
        key="dual_clip",
        stops="band",
        label="dual clip",
        function=dual_clip,
        formula=r"A<0:\ \max\big(\min(\rho A,\ \operatorname{clip}(\rho)\,A),\ c\,A\big)",
        source="Ye et al. (arXiv 1912.09729), dual-clip PPO",
        trl="delta (the same bound, set on the ratio)",
        verl='policy_loss.loss_mode="vanilla" (on by default)',
        choose_when="Ratios may explode on tokens with a negative advantage, e.g. off-policy data.",
        options=(
            LOW,
            HIGH,
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
    SurrogateRow(
        key="two_sided",
        stops="band",
        label="two-sided clip (delta)",
        function=two_sided,
        formula=r"\min\big(\min(\rho,\delta)\,A,\ \operatorname{clip}(\rho)\,A\big)",
        source="INTELLECT-2 (arXiv 2505.07291); TRL GRPOConfig.delta",
        trl="delta",
        verl="clip_ratio_c, where it is above 1 + clip_ratio_high",
        choose_when="As dual clip, in TRL's spelling.",
        options=(
            LOW,
            HIGH,
            Option(
                key="delta",
                default=4.0,
                domain=Number(low=0.0, high=1e6, exclusive=True),
                label="delta",
                help="The ratio is held at delta before it meets the advantage. TRL's clip "
                "metrics are taken after that.",
                trl="delta=None (INTELLECT-2: 4)",
                verl="clip_ratio_c=3.0",
            ),
        ),
    ),
)
