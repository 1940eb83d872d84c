"""ARRAYS: every array that a scenario may hold, one row each.

Editors, paste, the link codec, files and error messages read this table.
"""

from dataclasses import dataclass

import numpy as np

from .array_rules import (
    BUDGET,
    CHANCE,
    FINITE,
    FLAG,
    GROUP,
    HUNCH,
    LOGP,
    POSITION,
    PROBABILITY,
    REWARD,
    SAMPLED,
    SEED,
    STEP_REWARD,
    TERM,
    TOKEN_ID,
    WEIGHT,
    ZERO_ONE,
    Rule,
)
from .variants import table


@dataclass(frozen=True, kw_only=True)
class OwnAxis:
    """An axis that is no size of the batch: its arrays agree among themselves on its length."""

    noun: str
    low: int
    high: int


# V: small enough to edit by hand and to sum over exactly.
OWN_AXES = {
    "V": OwnAxis(noun="tokens", low=2, high=8),
    "S": OwnAxis(noun="steps", low=1, high=256),
    "K": OwnAxis(noun="terms", low=1, high=16),
    "B": OwnAxis(noun="arms", low=2, high=2),
    "F": OwnAxis(noun="potentials", low=3, high=3),
    "N": OwnAxis(noun="kinds of prompts", low=1, high=64),
    "M": OwnAxis(noun="values of the reward", low=2, high=16),
    "Q": OwnAxis(noun="prompts of the small policy", low=1, high=64),
    "A": OwnAxis(noun="answers", low=2, high=12),
    "T": OwnAxis(noun="places to stop", low=1, high=32),
}


@dataclass(frozen=True, kw_only=True)
class ArraySpec:
    """One array: its axes, cell type, filler and rule.

    ``axes`` are of P, G and L, the sizes of the batch, and of `OWN_AXES`: V, the tokens of a
    small vocabulary; S, steps of a completion; K, terms of a shaped reward; B, the two arms of
    a bandit; F, the states of a task of two steps; N, kinds of prompts, whatever the batch
    holds; M, values that a reward can take; Q and A, prompts and answers of a small policy; T,
    tokens after which a small policy may stop. '' is a single number. ``default`` fills the
    cells that a resize adds. ``required`` arrays are always there; the others may be absent.
    """

    key: str
    axes: str
    kind: str  # 'float' or 'bool'
    default: float | bool
    label: str
    rule: Rule
    help: str
    required: bool = True


def _optional(key, axes, label, rule, text, default=0.0):
    """A row of an array of numbers that a scenario may do without."""
    return ArraySpec(
        key=key,
        axes=axes,
        kind="float",
        default=default,
        label=label,
        rule=rule,
        help=text,
        required=False,
    )


ARRAYS = table(
    ArraySpec(
        key="rewards",
        axes="PG",
        kind="float",
        default=0.0,
        label="Rewards",
        rule=REWARD,
        help="One score per completion. Blank means that it was not scored.",
    ),
    ArraySpec(
        key="logp_new",
        axes="PGL",
        kind="float",
        default=-1.0,
        label="Log-probabilities, new policy",
        rule=LOGP,
        help="Of each sampled token under the policy being trained.",
    ),
    ArraySpec(
        key="logp_old",
        axes="PGL",
        kind="float",
        default=-1.0,
        label="Log-probabilities, old policy",
        rule=LOGP,
        help="Of each sampled token under the policy that sampled it.",
    ),
    ArraySpec(
        key="logp_ref",
        axes="PGL",
        kind="float",
        default=-1.0,
        label="Log-probabilities, reference policy",
        rule=LOGP,
        help="Of each sampled token under the frozen reference policy.",
    ),
    ArraySpec(
        key="mask",
        axes="PGL",
        kind="bool",
        default=True,
        label="Mask",
        rule=FLAG,
        help="Which token positions count. Padding, tool output and the like do not.",
    ),
    ArraySpec(
        key="present",
        axes="PG",
        kind="bool",
        default=True,
        label="Present",
        rule=FLAG,
        help="Off for completions that are not there, where groups are of unequal size.",
    ),
    _optional(
        "advantages",
        "PG",
        "Advantages, given",
        FINITE,
        "Advantages computed elsewhere, e.g. logged by a trainer.",
    ),
    _optional(
        "token_advantages",
        "PGL",
        "Advantages per token, given",
        FINITE,
        "Advantages of single tokens, computed elsewhere.",
    ),
    _optional(
        "logged_loss",
        "",
        "Loss, logged",
        FINITE,
        "The loss that a trainer reported for this batch, to compare with.",
    ),
    _optional(
        "dist_new",
        "V",
        "Distribution, policy",
        PROBABILITY,
        "Probability of each token of a small vocabulary under the policy.",
    ),
    _optional(
        "dist_ref",
        "V",
        "Distribution, reference",
        PROBABILITY,
        "Probability of each token of a small vocabulary under the reference policy.",
    ),
    _optional(
        "seed",
        "",
        "Seed",
        SEED,
        "Chooses the tokens that are sampled from the distribution of the policy.",
    ),
    _optional(
        "step_ends",
        "PGS",
        "Step ends",
        POSITION,
        "Position of the last token of each step, in order. Blank where there is no step.",
        default=np.nan,
    ),
    _optional(
        "step_rewards",
        "PGS",
        "Step rewards",
        STEP_REWARD,
        "One score for each step of a completion.",
        default=np.nan,
    ),
    _optional(
        "term_values",
        "PGK",
        "Shaping terms",
        TERM,
        "Value of each shaping term for each completion. Blank where it does not apply.",
        default=np.nan,
    ),
    _optional(
        "token_rewards",
        "PGL",
        "Rewards per token",
        FINITE,
        "A reward for each token, read by shaping terms that are given per token.",
    ),
    _optional(
        "token_ids",
        "PGL",
        "Token ids",
        TOKEN_ID,
        "Which token of the vocabulary each one is, read by the repetition term.",
    ),
    _optional(
        "logp_sampler",
        "PGL",
        "Log-probabilities, sampler",
        SAMPLED,
        "As the engine that sampled reported them. Blank where it reported none.",
        default=np.nan,
    ),
    _optional(
        "sampler_weights",
        "PGL",
        "Sampler weights, given",
        WEIGHT,
        "Weights for the mismatch of sampler and trainer, computed elsewhere.",
        default=1.0,
    ),
    _optional(
        "entropy",
        "PGL",
        "Entropy",
        WEIGHT,
        "Of the policy's distribution at each token, in nats.",
    ),
    _optional(
        "truncated",
        "PG",
        "Truncated",
        ZERO_ONE,
        "1 for a completion that was cut at the length limit, else 0.",
    ),
    _optional(
        "arm_rates",
        "B",
        "Success rates of two arms",
        CHANCE,
        "How often each of two answers is right.",
        default=0.5,
    ),
    _optional(
        "potential",
        "F",
        "Potential",
        FINITE,
        "Of the start, of the middle and of the end of a task of two steps.",
    ),
    _optional(
        "reward_chances",
        "NM",
        "Chances of each reward",
        PROBABILITY,
        "How often each value of the reward comes up, for each kind of prompt.",
    ),
    _optional(
        "reward_values",
        "M",
        "Values of the reward",
        FINITE,
        "What an answer can be worth: 0 and 1, or graded.",
    ),
    _optional(
        "group_size",
        "",
        "Group size",
        GROUP,
        "Completions for each prompt, in what is computed beside the batch.",
        default=8.0,
    ),
    _optional(
        "budget",
        "",
        "Budget",
        BUDGET,
        "Completions that one update may cost: prompts times group size.",
        default=256.0,
    ),
    _optional(
        "answer_logits",
        "QA",
        "Logits of answers",
        FINITE,
        "Of a small policy that gives one of a few answers to each kind of prompt.",
    ),
    _optional(
        "answer_rewards",
        "QA",
        "Rewards of answers",
        FINITE,
        "What each answer of the small policy is worth.",
    ),
    _optional(
        "stop_logits",
        "T",
        "Logits of stopping",
        FINITE,
        "Of a small policy that may stop after each token.",
    ),
    _optional(
        "hunch",
        "",
        "Accuracy of the hunch",
        HUNCH,
        "How often the small policy is right about whether its answer is wrong. At 0.5 it knows "
        "nothing.",
        default=0.9,
    ),
    _optional(
        "bonus_weight",
        "",
        "Weight of the bonus",
        FINITE,
        "Of a bonus that breaks ties, where the example has no shaping term of its own.",
        default=0.1,
    ),
)
