"""SCALES: what a group's deviations from its mean are divided by, and what that leads to."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .advantage_variants import ADVANTAGES
from .group_statistics import group_statistics, standardised
from .prompt_rewards import checked_rewards
from .variants import Choice, Stage, Variant, complete_choice, table


@dataclass(frozen=True, kw_only=True)
class Scale(Variant):
    """One rule. ``function`` takes rewards (B, P, G), NaN where missing, to advantages.

    Attributes
    ----------
    limit : callable
        ``(prompts, beside, **options) -> (P,)``: the weight of each prompt as G grows without
        end, 1 over the divisor. ``beside`` are the other prompts in each one's batch; None
        for the prompts themselves.
    peak : callable
        ``(span, P, G) -> float``: no advantage is larger.
    per_group : bool
        Whether a group's advantages depend on its own rewards only.
    """

    limit: Callable
    peak: Callable
    per_group: bool = True


def _by_group(rewards, ddof):
    flat = rewards.reshape(-1, rewards.shape[-1])
    return group_statistics(flat, ~np.isnan(flat), ddof)


def _centred(rewards):
    statistics = _by_group(rewards, 0)
    return np.ldexp(statistics.centred, statistics.exponent).reshape(rewards.shape)


def undivided(rewards):
    """``r - mean`` [Dr. GRPO, arXiv 2503.20783]."""
    return _centred(rewards)


def leave_one_out(rewards):
    """``r - mean of the others``, which is ``(r - mean) n / (n - 1)`` [RLOO, arXiv 2402.14740]."""
    n = np.sum(~np.isnan(rewards), axis=-1, keepdims=True)
    with np.errstate(over="ignore"):
        return _centred(rewards) * (n / np.maximum(n - 1, 1))


def over_group(rewards, *, ddof, eps):
    """``(r - mean) / (std + eps)``, std of the group [DeepSeekMath, section 4.1.2]."""
    return standardised(_by_group(rewards, ddof), eps).reshape(rewards.shape)


def over_batch(rewards, *, ddof, eps):
    """``(r - mean of the group) / (std + eps)``, std of all rewards [arXiv 2508.08221]."""
    batch = rewards.reshape(len(rewards), -1)
    std = group_statistics(batch, ~np.isnan(batch), ddof).std[:, None, None]
    tied = std == 0
    return np.where(tied, 0.0, _centred(rewards) / np.where(tied, 1.0, std + eps))


def _one(prompts, beside):
    return np.ones(len(prompts))


def _inverse(divisor):
    with np.errstate(divide="ignore"):
        return 1 / divisor


def _group_limit(prompts, beside, *, ddof, eps):
    return _inverse(np.sqrt(prompts.variance) + eps)


def _batch_limit(prompts, beside, *, ddof, eps):
    # Law of total variance: within prompts, and between their means.
    within, between = (_in_batch(prompts, beside, key) for key in ("variance", "mean"))
    std = np.sqrt(np.mean(within, axis=1) + np.var(between, axis=1))
    return np.broadcast_to(_inverse(std + eps), len(prompts))


def _in_batch(prompts, beside, key):
    """A property of all prompts of each one's batch: a row for all, or one for each."""
    own = getattr(prompts, key)
    if beside is None:
        return own[None]
    others = getattr(beside, key)
    return np.column_stack([np.broadcast_to(others, (len(own), len(others))), own])


_DIVIDING = tuple(ADVANTAGES["mean_std"].option(key) for key in ("ddof", "eps"))

SCALING = Stage(
    key="scale",
    label="Divide by",
    contract="(rewards (B, P, G), **options) -> advantages (B, P, G)",
    variants=table(
        Scale(
            key="group",
            label="std of the group (GRPO)",
            function=over_group,
            formula=r"\frac{R_i - \operatorname{mean}(R)}{\operatorname{std}(R) + \mathrm{eps}}",
            source="DeepSeekMath (arXiv 2402.03300) section 4.1.2",
            trl='scale_rewards="group"',
            verl="norm_adv_by_std_in_grpo=True",
            choose_when="You want every group to push equally hard, however small its spread.",
            options=_DIVIDING,
            limit=_group_limit,
            peak=lambda span, P, G: np.sqrt(G - 1),
        ),
        Scale(
            key="none",
            label="nothing (Dr. GRPO)",
            function=undivided,
            formula=r"R_i - \operatorname{mean}(R)",
            source="Dr. GRPO (arXiv 2503.20783) section 3.2",
            trl='scale_rewards="none"',
            verl="norm_adv_by_std_in_grpo=False",
            choose_when="Rewards have a scale you trust and no prompt must weigh more.",
            limit=_one,
            peak=lambda span, P, G: span,
        ),
        Scale(
            key="batch",
            label="std of the batch",
            function=over_batch,
            formula=r"\frac{R_i - \operatorname{mean}(R)}{\operatorname{std}(\text{batch}) "
            r"+ \mathrm{eps}}",
            source="Lite PPO (arXiv 2508.08221)",
            trl='scale_rewards="batch"',
            verl="not offered for grpo",
            choose_when="You want advantages of about size 1 and every prompt weighed alike.",
            options=_DIVIDING,
            limit=_batch_limit,
            peak=lambda span, P, G: np.sqrt(P * G),
            per_group=False,
        ),
        Scale(
            key="leave_one_out",
            label="nothing, mean of the others (RLOO)",
            function=leave_one_out,
            formula=r"R_i - \operatorname{mean}(R_{j \neq i})",
            source="RLOO (arXiv 2402.14740)",
            trl="RLOOTrainer",
            verl="adv_estimator=rloo",
            choose_when="You want the gradient of the mean reward itself, at every group size.",
            limit=_one,
            peak=lambda span, P, G: span,
        ),
    ),
)
SCALES = SCALING.variants


def chosen_scale(scale, options):
    """A row of `SCALES` and its options, filled in and checked."""
    choice = complete_choice(SCALING, Choice(scale, options))
    return SCALES[choice.variant], choice.options


def scaled_advantages(rewards, scale="group", **options):
    """Advantages of one batch under a row of `SCALES`.

    Parameters
    ----------
    rewards : array-like, shape (P, G)
        NaN is a missing score: left out, advantage 0.
    scale : str
        Key of the row.
    options
        Of the row: ``ddof``, ``eps``.

    Returns
    -------
    ndarray, shape (P, G)
        Exactly 0 in a tied group, under every row.

    Raises
    ------
    ScenarioError
        Other shapes, infinite rewards, unknown row or option.
    """
    row, options = chosen_scale(scale, options)
    return row.function(checked_rewards(rewards)[None], **options)[0]
