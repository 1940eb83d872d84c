"""Stage *KL*: the pull towards the reference policy.

All estimators read the sampled token only. With d = logp_ref - logp they are, for samples
of the policy itself, estimates of KL(policy || reference): Schulman, "Approximating KL
divergence" (2020); k3 is DeepSeekMath (arXiv 2402.03300) equation 4.
"""

from dataclasses import dataclass

import numpy as np

from .numerics import cast, difference, expm1, k3, plus, times
from .variants import Number, OneOf, Option, Variant, table


@dataclass(frozen=True, eq=False)
class KL:
    """KL per token and where its penalty goes; all arrays (P, G, L).

    ``penalty`` is subtracted from the per-token objective; its gradient by logp_new is the
    direct ``derivative`` plus what flows through the ratio from ``d_ratio``.
    ``reward_penalty`` is subtracted from the reward before the advantage, and
    ``return_penalty`` from the advantages of a token and all before it; both are constants
    of the update. Only one of the three is not 0.
    """

    value: np.ndarray
    penalty: np.ndarray
    derivative: np.ndarray
    d_ratio: np.ndarray
    reward_penalty: np.ndarray
    return_penalty: np.ndarray


def _k1(d):
    return 0 - d, np.ones_like(d)  # not -d, which would show -0.0


def _absolute(d):
    return np.abs(d), -np.sign(d)


def _k2(d):
    with np.errstate(over="ignore", under="ignore"):
        return d * (d / 2), -d


def _k3(d):
    return k3(d), -expm1(d)


def _estimate(estimator, d, clamp_in, clamp_out, gradient):
    """Value and derivative by logp of a clamped estimator; where a clamp holds it is 0."""
    kind = d.dtype.type
    inside = np.clip(d, -kind(clamp_in), kind(clamp_in)) if clamp_in else d
    value, derivative = estimator(inside)
    derivative = np.where(inside == d, derivative, kind(0))
    if clamp_out:
        held = np.clip(value, -kind(clamp_out), kind(clamp_out))
        derivative = np.where(held == value, derivative, kind(0))
        value = held
    return value, (-d if gradient == "k2" else derivative)


def _penalty(estimator):
    """A row's function from an estimator: d -> (value, derivative by logp)."""

    def function(batch, ratio, *, beta, place, clamp_in, clamp_out, weight, gradient):
        # In the reward the KL is that of the policy that sampled, and a constant.
        policy = batch.logp_new if place == "objective" else batch.logp_old
        d = difference(batch.logp_ref, policy)
        value, derivative = _estimate(estimator, d, clamp_in, clamp_out, gradient)
        zero = np.zeros_like(value)
        value = np.where(batch.valid, value, zero)
        d_ratio = zero
        if place == "objective":
            value, derivative, d_ratio = _WEIGHTS[weight](value, derivative, ratio)
        beta = batch.dtype.type(beta)

        def scaled(array):
            return cast(np.where(batch.valid, times(beta, array), zero), batch.dtype)

        penalty = scaled(value)
        return KL(
            value=cast(np.where(batch.valid, value, zero), batch.dtype),
            penalty=penalty if place == "objective" else zero,
            derivative=scaled(derivative) if place == "objective" else zero,
            d_ratio=scaled(d_ratio) if place == "objective" else zero,
            reward_penalty=penalty if place == "reward" else zero.copy(),
            return_penalty=penalty if place == "returns" else zero,
        )

    return function


# What each weighting makes of (value, derivative by logp, derivative by the ratio).
_WEIGHTS = {
    "none": lambda value, derivative, ratio: (value, derivative, np.zeros_like(value)),
    "ratio": lambda value, derivative, ratio: (
        times(ratio.ratio, value), times(ratio.ratio, derivative), value,
    ),
    # exp(logp - sg[logp]): 1 in value, the score function in the gradient
    "score": lambda value, derivative, ratio: (
        value,
        plus(derivative, value),
        np.zeros_like(value),
    ),
}  # fmt: skip

_OPTIONS = (
    Option(
        key="beta",
        default=0.04,
        domain=Number(low=0.0, high=1e6),
        label="beta (KL weight)",
        help="0 switches the pull off; the KL is still shown.",
        trl="beta=0.0",
        verl="kl_loss_coef=0.001, or kl_ctrl.kl_coef in the reward",
    ),
    Option(
        key="place",
        default="objective",
        domain=OneOf(
            {
                "objective": "in the objective",
                "reward": "in the reward",
                "returns": "in the returns, after the advantage",
            }
        ),
        label="Where the KL enters",
        help="In the objective it has a gradient of its own. In the reward it is subtracted "
        "before the group mean, is a constant, and acts through the advantage. In the returns "
        "it is subtracted from the advantage of its token and of all before it (OpenRLHF).",
        trl="objective (RLOOTrainer: reward)",
        verl="use_kl_loss, or use_kl_in_reward",
    ),
    Option(
        key="clamp_in",
        default=0.0,
        domain=Number(low=0.0, high=1e3),
        label="Clamp of d (0: none)",
        help="The difference of log-probabilities is held within plus and minus this; where it "
        "is held the KL has no gradient.",
        trl="none",
        verl="20 (low_var_kl)",
    ),
    Option(
        key="clamp_out",
        default=0.0,
        domain=Number(low=0.0, high=1e6),
        label="Clamp of the KL (0: none)",
        help="The estimate is held within plus and minus this; where it is held it has no "
        "gradient.",
        trl="none",
        verl="10 (low_var_kl)",
    ),
    Option(
        key="weight",
        default="none",
        domain=OneOf(
            {
                "none": "not weighted",
                "ratio": "by the ratio",
                "score": "by 1, with its gradient",
            }
        ),
        label="KL weighted",
        help="By the ratio it is unbiased for the new policy where samples are old ones. By "
        "exp(log p - sg[log p]) the value stays and the score-function gradient is added "
        "(NeMo-RL).",
        trl="use_bias_correction_kl=True: by the ratio",
        verl="not weighted",
    ),
    Option(
        key="gradient",
        default="own",
        domain=OneOf({"own": "its own", "k2": "that of k2"}),
        label="Gradient of the KL",
        help="verl's names with a plus keep the value and take the gradient of k2, which is "
        "that of the reverse KL.",
        trl="its own",
        verl="its own; kl_loss_type k3+, kl+, ...: that of k2",
    ),
)

KLS = table(
    Variant(
        key="k3",
        label="k3",
        function=_penalty(_k3),
        formula=r"e^{d} - d - 1,\quad d = \log\pi_{\mathrm{ref}} - \log\pi_{\mathrm{new}}",
        source="DeepSeekMath (arXiv 2402.03300) equation 4",
        trl="the only one, with use_bias_correction_kl=False (1.16 weights it by the ratio)",
        verl='kl_loss_type="low_var_kl" (which also clamps)',
        choose_when="GRPO's own: never negative, low variance near 0. Its gradient is that of "
        "the forward KL(ref || new).",
        options=_OPTIONS,
    ),
    Variant(
        key="k2",
        label="k2",
        function=_penalty(_k2),
        formula=r"\tfrac12 d^2,\quad d = \log\pi_{\mathrm{ref}} - \log\pi_{\mathrm{new}}",
        source="Schulman, Approximating KL divergence (2020)",
        trl="-",
        verl='kl_loss_type="mse"',
        choose_when="In the loss, when the gradient should be that of the reverse KL(new || ref).",
        options=_OPTIONS,
    ),
    Variant(
        key="k1",
        label="k1",
        function=_penalty(_k1),
        formula=r"-d = \log\pi_{\mathrm{new}} - \log\pi_{\mathrm{ref}}",
        source="Schulman, Approximating KL divergence (2020)",
        trl="RLOOTrainer, in the reward",
        verl='kl_loss_type="kl", or kl_penalty="kl" in the reward',
        choose_when="In the reward. In the loss its gradient is 0 in expectation and only noise.",
        options=_OPTIONS,
    ),
    Variant(
        key="abs",
        label="absolute",
        function=_penalty(_absolute),
        formula=r"|d|,\quad d = \log\pi_{\mathrm{ref}} - \log\pi_{\mathrm{new}}",
        source="verl kl_penalty",
        trl="not offered",
        verl='kl_loss_type="abs"',
        choose_when="A pull of the same strength however far a token has moved.",
        options=_OPTIONS,
    ),
)
