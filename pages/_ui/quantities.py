"""QUANTITIES: what a token heatmap can show, one row each."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grpo_core.process_views import token_step_rewards
from grpo_core.variants import table


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A per-token array of an Evaluation and how to read it.

    ``signed`` quantities are drawn around zero. The others start at zero, unless a
    convention makes some of their values negative. ``marks`` are the tokens to cross out.
    """

    key: str
    title: str
    subtitle: str
    values: Callable
    signed: bool = True
    marks: Callable | None = None


def clipped(evaluation):
    """Tokens whose policy gradient is stopped, on whatever side; bool (P, G, L)."""
    return evaluation.clipped_low | evaluation.clipped_high | evaluation.dual_clipped


QUANTITIES = table(
    Quantity(
        key="token_advantages",
        title="Advantage",
        subtitle="",
        values=lambda evaluation: evaluation.token_advantages,
    ),
    Quantity(
        key="step_rewards",
        title="Step rewards",
        subtitle="of the step that a token belongs to; a bar where it ends",
        values=lambda evaluation: token_step_rewards(evaluation.scenario),
    ),
    Quantity(
        key="difference",
        title="Difference",
        subtitle="process less outcome alone",
        values=lambda evaluation: evaluation.token_advantages,
    ),
    Quantity(
        key="log_ratio",
        title="Log-ratio",
        subtitle="nats, new to old; × clipped",
        values=lambda evaluation: evaluation.log_ratio,
        marks=clipped,
    ),
    Quantity(
        key="surrogate",
        title="Surrogate",
        subtitle="ratio x advantage; × clipped",
        values=lambda evaluation: evaluation.surrogate,
        marks=clipped,
    ),
    Quantity(
        key="kl",
        title="KL to reference",
        subtitle="nats, estimated per token",
        values=lambda evaluation: evaluation.kl,
        signed=False,
    ),
    Quantity(
        key="per_token",
        title="Per token",
        subtitle="surrogate less KL penalty",
        values=lambda evaluation: evaluation.per_token,
    ),
    Quantity(
        key="weight",
        title="Weight",
        subtitle="share of the objective",
        values=lambda evaluation: evaluation.weight,
        signed=False,
    ),
    Quantity(
        key="contribution",
        title="Contribution",
        subtitle="sums to J over all prompts",
        values=lambda evaluation: evaluation.contribution,
    ),
    Quantity(
        key="policy_gradient",
        title="Gradient of the surrogate",
        subtitle="per nat of log π; × clipped",
        values=lambda evaluation: evaluation.policy_gradient,
        marks=clipped,
    ),
    Quantity(
        key="kl_gradient",
        title="Gradient of the KL",
        subtitle="per nat of log π",
        values=lambda evaluation: evaluation.kl_gradient,
    ),
    Quantity(
        key="gradient",
        title="Gradient",
        subtitle="per nat of log π; × clipped",
        values=lambda evaluation: evaluation.gradient,
        marks=clipped,
    ),
)

# From rewards to the update: the row of small pictures on the start page.
PIPELINE = ("token_advantages", "log_ratio", "kl", "contribution", "gradient")

# The gradient and what it is made of, with the words of a switch between them.
GRADIENT_PARTS = {"gradient": "whole", "policy_gradient": "policy part", "kl_gradient": "KL part"}


def advantage_title(evaluation):
    """Axis title of an advantage with the unit that its convention gives it."""
    unit = advantage_unit(evaluation)
    return f"advantage ({unit})" if unit else "advantage"


def advantage_unit(evaluation):
    """What an advantage is measured in, '' if the convention does not say."""
    if evaluation.scenario is None:
        return ""
    return evaluation.scenario.conventions.variant("advantage").unit


def present(evaluation):
    """Completions that are there, as opposed to fillers of a short group; bool (P, G)."""
    if evaluation.scenario is None:
        return np.ones(evaluation.lengths.shape, dtype=bool)
    return evaluation.scenario["present"]
