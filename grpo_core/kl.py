"""Stage *KL*: the pull towards the reference policy.

All estimators read the sampled token only. With d = logp_ref - logp they are, for samples
of the policy itself, estimates of KL(policy || reference): Schulman, "Approximating KL
divergence" (2020); k3 is DeepSeekMath (arXiv 2402.03300) equation 4.
"""

from dataclasses import dataclass

import numpy as np

from .numerics import difference, expm1, k3, times
from .variants import Number, OneOf, Option, Variant, table


@dataclass(frozen=True, eq=False)
class KL:
    """KL per token and where its penalty goes; all arrays (P, G, L).

    ``penalty`` is subtracted from the per-token objective and has the ``derivative``
    dpenalty/dlogp_new; ``reward_penalty`` is subtracted from the reward before the
    advantage and is a constant of the update. One of the two is 0 everywhere.
    """

    value: np.ndarray
    penalty: np.ndarray
    derivative: np.ndarray
    reward_penalty: np.ndarray


def _k1(d):
    return 0 - d, np.ones_like(d)  # not -d, which would show -0.0


def _k2(d):
    with np.errstate(over="ignore", under="ignore"):
        return d * (d / 2), -d


def _k3(d):
    return k3(d), -expm1(d)


def _penalty(estimator):
    """A row's function from an estimator: d -> (value, derivative by logp)."""

    def function(batch, *, beta, place):
        # In the reward the KL is that of the policy that sampled, and a constant.
        in_reward = place == "reward"
        policy = batch.logp_old if in_reward else batch.logp_new
        value, derivative = estimator(difference(batch.logp_ref, policy))
        zero = np.zeros_like(value)
        beta = batch.dtype.type(beta)
        weighted = np.where(batch.valid, times(beta, value), zero)
        return KL(
            value=np.where(batch.valid, value, zero),
            penalty=zero if in_reward else weighted,
            derivative=zero if in_reward else np.where(batch.valid, times(beta, derivative), zero),
            reward_penalty=weighted if in_reward else zero,
        )

    return function


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
        domain=OneOf({"objective": "in the objective", "reward": "in the reward"}),
        label="Where the KL enters",
        help="In the objective it has a gradient of its own. In the reward it is subtracted "
        "before the group mean, is a constant, and acts through the advantage.",
        trl="objective (RLOOTrainer: reward)",
        verl="use_kl_loss, or use_kl_in_reward",
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
)
