"""The noise of the policy gradient under each baseline, exactly.

A baseline is what an answer's reward is compared with. The policies are small enough to sum
over every answer, see `grpo_core.answer_policies`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .answer_policies import REWARD
from .inputs import checked_number
from .reward_classes import standardised_moments
from .stages import Conventions
from .trials import judge_groups
from .variants import Number, table

GROUP = Number(low=2, high=1024, integer=True)


@dataclass(frozen=True, kw_only=True)
class BaselineOptions:
    """``constant`` is the constant baseline; ``ddof`` and ``eps`` belong to the std."""

    constant: float = 0.5
    ddof: int = 0
    eps: float = 1e-8

    def __post_init__(self):
        constant = checked_number("constant", self.constant, REWARD)
        ddof = checked_number("ddof", self.ddof, Number(low=0, high=1, integer=True))
        eps = checked_number("eps", self.eps, Number(low=0.0, high=1e6))
        for name, value in (("constant", constant), ("ddof", ddof), ("eps", eps)):
            object.__setattr__(self, name, value)

    def conventions(self):
        """The advantage convention that divides by the group's std with these options."""
        return Conventions.of(advantage=("mean_std", {"ddof": self.ddof, "eps": self.eps}))


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """One way of judging the answers of a group.

    ``level(policy, G, options)`` gives the expected baseline and its mean squared distance
    from the true value, both (P,). ``moments(policy, G, options)`` gives mean (P, D) and
    variance (P,) of a group's gradient. ``advantages(rewards (N, P, G), policy, options)``
    judges sampled groups. ``needs_value`` marks what nobody knows while training.
    """

    key: str
    label: str
    help: str
    level: Callable
    moments: Callable
    advantages: Callable
    needs_value: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Noise:
    """The gradient of one group, ``(1/G) sum A_i S_i``, under one baseline. Exact.

    Attributes
    ----------
    row : Baseline
    level, error : ndarray, (P,)
        Expected baseline, and its mean squared distance from the prompt's true value.
    mean : ndarray, (P, D)
    factor : ndarray, (P,)
        Mean over the true gradient, along it: 1 for an unbiased estimator, (G - 1)/G for
        the group mean with the answer itself in it. 0 where the true gradient is 0.
    variance, per_sample : ndarray, (P,)
        Trace of the covariance, of a group's gradient and times G.
    signal : ndarray, (P,)
        ``|mean|^2 / (G variance)``: signal to noise of one sample, the same for every scale
        of the advantages. Infinite without noise, 0 without a mean.
    """

    row: Baseline
    level: np.ndarray
    error: np.ndarray
    mean: np.ndarray
    factor: np.ndarray
    variance: np.ndarray
    per_sample: np.ndarray
    signal: np.ndarray


def gradient_noise(policy, G, options=None):
    """Mean and variance of a group's gradient under every baseline, exactly.

    Parameters
    ----------
    policy : AnswerPolicy
    G : int
        Samples in the group, at least 2.
    options : BaselineOptions, optional

    Returns
    -------
    dict of str to Noise
        A row of `BASELINES` each.

    Notes
    -----
    With ``W = E[(R - value)^2 |S|^2] - |g|^2``, leaving the answer itself out costs
    ``(Var R E|S|^2 + |g|^2) / (G - 1)`` per sample on top of W: the price of having no value
    network. That is the variance of a sample covariance, since ``sum (R_i - mean) S_i`` over
    G - 1 is one. Source: RLOO (arXiv 2402.14740) for the baseline; derived here.
    """
    G, options = checked_number("G", G, GROUP), options or BaselineOptions()
    return {key: _noise(row, policy, G, options) for key, row in BASELINES.items()}


def _noise(row, policy, G, options):
    level, error = row.level(policy, G, options)
    mean, variance = row.moments(policy, G, options)
    length = np.sum(policy.gradient**2, axis=1)
    along = np.sum(mean * policy.gradient, axis=1)
    size = np.sum(mean**2, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        signal = np.where(size > 0, size / (G * variance), 0.0)
        factor = np.where(length > 0, along / length, 0.0)
    return Noise(
        row=row,
        level=level,
        error=error,
        mean=mean,
        factor=factor,
        variance=variance,
        per_sample=G * variance,
        signal=signal,
    )


def _fixed(of):
    """Level, moments and advantages of a baseline ``of(policy, options)`` that reads no sample."""

    def level(policy, G, options):
        b = of(policy, options)
        return b, (b - policy.value) ** 2

    def moments(policy, G, options):
        return policy.gradient, policy.noise_about(of(policy, options)) / G

    def advantages(rewards, policy, options):
        return rewards - of(policy, options)[None, :, None]

    return {"level": level, "moments": moments, "advantages": advantages}


def leave_one_out_variance(policy, G):
    """``(1/G) [W + V / (G - 1)]``, see `gradient_noise`; G may be an array that broadcasts."""
    return (policy.noise_about(policy.value) + group_price(policy) / (G - 1)) / G


def group_price(policy):
    """``Var R E|S|^2 + |g|^2`` of each prompt, what a group of two pays for its baseline; (P,)."""
    squared = np.sum(policy.gradient**2, axis=1)
    return policy.reward_variance * policy.score_square + squared


def _group(own):
    """Of the group mean, with the answer itself in it or without."""

    def share(G):
        return (G - 1) / G if own else 1.0

    def level(policy, G, options):
        return policy.value, policy.reward_variance / (G if own else G - 1)

    def moments(policy, G, options):
        variance = leave_one_out_variance(policy, G)
        return share(G) * policy.gradient, share(G) ** 2 * variance

    def advantages(rewards, policy, options):
        G = rewards.shape[2]
        centred = judge_groups(rewards, Conventions.of(advantage="mean_only"))
        return centred * (share(G) * G / (G - 1))

    return {"level": level, "moments": moments, "advantages": advantages}


def _over_std():
    def moments(policy, G, options):
        return standardised_moments(policy, G, options.ddof, options.eps)

    def advantages(rewards, policy, options):
        return judge_groups(rewards, options.conventions())

    return {**_group(own=True), "moments": moments, "advantages": advantages}


BASELINES = table(
    Baseline(
        key="none",
        label="no baseline",
        help="The reward itself. Every right answer is pushed up, no wrong one down.",
        **_fixed(lambda policy, options: np.zeros_like(policy.value)),
    ),
    Baseline(
        key="constant",
        label="one constant",
        help="The same number for every prompt.",
        **_fixed(lambda policy, options: np.full_like(policy.value, options.constant)),
    ),
    Baseline(
        key="own_included",
        label="group mean (GRPO without std)",
        help="The mean of the group, the answer itself in it: leave-one-out times (G - 1)/G.",
        **_group(own=True),
    ),
    Baseline(
        key="leave_one_out",
        label="leave-one-out (RLOO)",
        help="The mean of the group's other answers.",
        **_group(own=False),
    ),
    Baseline(
        key="over_std",
        label="group mean, over std (GRPO)",
        help="Also divided by the group's std. It aims at another target, see the factor.",
        **_over_std(),
    ),
    Baseline(
        key="true_value",
        label="true value",
        help="The prompt's expected reward: a perfect value network.",
        needs_value=True,
        **_fixed(lambda policy, options: policy.value),
    ),
    Baseline(
        key="best_constant",
        label="best constant",
        help="The number with the least noise for each prompt. It is not the true value.",
        needs_value=True,
        **_fixed(lambda policy, options: policy.best_constant),
    ),
)
