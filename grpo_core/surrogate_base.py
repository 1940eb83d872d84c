"""What a surrogate row returns, and the options that several rows share."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .variants import Number, Option, Variant


@dataclass(frozen=True, eq=False)
class Surrogate:
    """Value and derivatives (P, G, L), and which side stopped a token.

    ``d_ratio`` is the derivative by the ratio; ``d_logp`` that by the token's own logp_new
    besides the ratio, None for 0. A row that couples the tokens of a completion otherwise
    than by the ratio gives ``backward`` instead: dJ/dvalue -> dJ/dlogp_new.

    ``clipped_low`` and ``clipped_high`` know the sign of the advantage: a ratio above the
    band with a negative advantage is not clipped. ``dual_clipped`` marks the lower bound
    that dual clip puts on the value. All of these get no gradient from the surrogate.
    """

    value: np.ndarray
    d_ratio: np.ndarray
    clipped_low: np.ndarray
    clipped_high: np.ndarray
    dual_clipped: np.ndarray
    d_logp: np.ndarray | None = None
    backward: Callable | None = None


@dataclass(frozen=True, kw_only=True)
class SurrogateRow(Variant):
    """A row of the stage *surrogate*, with what others have to know of it.

    ``stops`` says beyond what a token loses its gradient: the ``"band"`` of ratios from
    ``epsilon_low`` to ``epsilon_high``, ``"another bound"``, or ``""``: never.
    ``reads_ratio`` is False where no ratio of the stage before stands in the value.
    ``clip_fraction`` names what verl logs as one, see `metrics_verl`; ``""`` where it logs none.
    """

    stops: str = ""
    reads_ratio: bool = True
    clip_fraction: str = "stopped"


def unclipped(value, d_ratio, d_logp=None, *, low=None, high=None, backward=None):
    """A `Surrogate` in which nothing is stopped, save where ``low`` and ``high`` say so."""
    return Surrogate(
        value=value,
        d_ratio=d_ratio,
        clipped_low=np.zeros(value.shape, dtype=bool) if low is None else low,
        clipped_high=np.zeros(value.shape, dtype=bool) if high is None else high,
        dual_clipped=np.zeros(value.shape, dtype=bool),
        d_logp=d_logp,
        backward=backward,
    )


LOW = Option(
    key="epsilon_low",
    default=0.2,
    domain=Number(low=0.0, high=1.0),
    label="epsilon low",
    help="The band starts at 1 - epsilon_low. It stops tokens with a negative advantage.",
    trl="epsilon=0.2",
    verl="clip_ratio_low=0.2",
)
HIGH = Option(
    key="epsilon_high",
    default=0.2,
    domain=Number(low=0.0, high=1e6),
    label="epsilon high",
    help="The band ends at 1 + epsilon_high. It stops tokens with a positive advantage.",
    trl="epsilon_high=None (as epsilon)",
    verl="clip_ratio_high=0.2",
)
