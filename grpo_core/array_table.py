"""ARRAYS: every array that a scenario may hold, one row each.

Editors, paste, the link codec, files and error messages read this table.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .variants import table

# Log-softmax in float32 can end up above 0 by rounding alone; more than this is an error.
LOGP_ROUNDING = 1e-4
LARGEST_SEED = 999_999


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
class Rule:
    """What a valid cell may hold, in words and as a test over an array."""

    words: str
    holds: Callable


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


def _whole(values, most):
    """Whole numbers from 0 to `most`; False for NaN and infinities."""
    inside = np.isfinite(values) & np.greater_equal(values, 0) & np.less_equal(values, most)
    return inside & np.equal(np.trunc(values), values)


_REWARD = Rule(
    words="a finite number, or blank for a missing score",
    holds=lambda values: np.isfinite(values) | np.isnan(values),
)
_LOGP = Rule(
    words="a log-probability: a number of at most 0, or -inf",
    holds=lambda values: np.less_equal(values, LOGP_ROUNDING),  # False for NaN
)
_FINITE = Rule(words="a finite number", holds=np.isfinite)
_PROBABILITY = Rule(
    words="a probability or a weight: a finite number of at least 0",
    holds=lambda values: np.isfinite(values) & np.greater_equal(values, 0),
)
_SEED = Rule(
    words=f"a whole number from 0 to {LARGEST_SEED:,}",
    holds=lambda values: _whole(values, LARGEST_SEED),
)
_TERM = Rule(
    words="a finite number, or blank where the term does not apply",
    holds=lambda values: np.isfinite(values) | np.isnan(values),
)
_STEP_REWARD = Rule(
    words="a finite number, or blank where there is no step",
    holds=lambda values: np.isfinite(values) | np.isnan(values),
)
_POSITION = Rule(
    words="a token position: a whole number of at least 0, or blank for no step",
    holds=lambda values: np.isnan(values) | _whole(values, np.inf),
)
# The largest up to which float32 holds every whole number.
_TOKEN_ID = Rule(
    words="the id of a token: a whole number of at least 0",
    holds=lambda values: _whole(values, 2**24),
)
_CHANCE = Rule(
    words="a chance: a number from 0 to 1",
    holds=lambda values: np.greater_equal(values, 0) & np.less_equal(values, 1),
)
_GROUP = Rule(
    words="a whole number from 2 to 512",
    holds=lambda values: _whole(values, 512) & np.greater_equal(values, 2),
)
_BUDGET = Rule(
    words="a whole number from 4 to 65,536",
    holds=lambda values: _whole(values, 65_536) & np.greater_equal(values, 4),
)
_FLAG = Rule(words="true or false", holds=lambda values: np.ones(np.shape(values), bool))


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
        rule=_REWARD,
        help="One score per completion. Blank means that it was not scored.",
    ),
    ArraySpec(
        key="logp_new",
        axes="PGL",
        kind="float",
        default=-1.0,
        label="Log-probabilities, new policy",
        rule=_LOGP,
        help="Of each sampled token under the policy being trained.",
    ),
    ArraySpec(
        key="logp_old",
        axes="PGL",
        kind="float",
        default=-1.0,
        label="Log-probabilities, old policy",
        rule=_LOGP,
        help="Of each sampled token under the policy that sampled it.",
    ),
    ArraySpec(
        key="logp_ref",
        axes="PGL",
        kind="float",
        default=-1.0,
        label="Log-probabilities, reference policy",
        rule=_LOGP,
        help="Of each sampled token under the frozen reference policy.",
    ),
    ArraySpec(
        key="mask",
        axes="PGL",
        kind="bool",
        default=True,
        label="Mask",
        rule=_FLAG,
        help="Which token positions count. Padding, tool output and the like do not.",
    ),
    ArraySpec(
        key="present",
        axes="PG",
        kind="bool",
        default=True,
        label="Present",
        rule=_FLAG,
        help="Off for completions that are not there, where groups are of unequal size.",
    ),
    _optional(
        "advantages",
        "PG",
        "Advantages, given",
        _FINITE,
        "Advantages computed elsewhere, e.g. logged by a trainer.",
    ),
    _optional(
        "logged_loss",
        "",
        "Loss, logged",
        _FINITE,
        "The loss that a trainer reported for this batch, to compare with.",
    ),
    _optional(
        "dist_new",
        "V",
        "Distribution, policy",
        _PROBABILITY,
        "Probability of each token of a small vocabulary under the policy.",
    ),
    _optional(
        "dist_ref",
        "V",
        "Distribution, reference",
        _PROBABILITY,
        "Probability of each token of a small vocabulary under the reference policy.",
    ),
    _optional(
        "seed",
        "",
        "Seed",
        _SEED,
        "Chooses the tokens that are sampled from the distribution of the policy.",
    ),
    _optional(
        "step_ends",
        "PGS",
        "Step ends",
        _POSITION,
        "Position of the last token of each step, in order. Blank where there is no step.",
        default=np.nan,
    ),
    _optional(
        "step_rewards",
        "PGS",
        "Step rewards",
        _STEP_REWARD,
        "One score for each step of a completion.",
        default=np.nan,
    ),
    _optional(
        "term_values",
        "PGK",
        "Shaping terms",
        _TERM,
        "Value of each shaping term for each completion. Blank where it does not apply.",
        default=np.nan,
    ),
    _optional(
        "token_rewards",
        "PGL",
        "Rewards per token",
        _FINITE,
        "A reward for each token, read by shaping terms that are given per token.",
    ),
    _optional(
        "token_ids",
        "PGL",
        "Token ids",
        _TOKEN_ID,
        "Which token of the vocabulary each one is, read by the repetition term.",
    ),
    _optional(
        "arm_rates",
        "B",
        "Success rates of two arms",
        _CHANCE,
        "How often each of two answers is right.",
        default=0.5,
    ),
    _optional(
        "potential",
        "F",
        "Potential",
        _FINITE,
        "Of the start, of the middle and of the end of a task of two steps.",
    ),
    _optional(
        "reward_chances",
        "NM",
        "Chances of each reward",
        _PROBABILITY,
        "How often each value of the reward comes up, for each kind of prompt.",
    ),
    _optional(
        "reward_values",
        "M",
        "Values of the reward",
        _FINITE,
        "What an answer can be worth: 0 and 1, or graded.",
    ),
    _optional(
        "group_size",
        "",
        "Group size",
        _GROUP,
        "Completions for each prompt, in what is computed beside the batch.",
        default=8.0,
    ),
    _optional(
        "budget",
        "",
        "Budget",
        _BUDGET,
        "Completions that one update may cost: prompts times group size.",
        default=256.0,
    ),
    _optional(
        "answer_logits",
        "QA",
        "Logits of answers",
        _FINITE,
        "Of a small policy that gives one of a few answers to each kind of prompt.",
    ),
    _optional(
        "answer_rewards",
        "QA",
        "Rewards of answers",
        _FINITE,
        "What each answer of the small policy is worth.",
    ),
    _optional(
        "stop_logits",
        "T",
        "Logits of stopping",
        _FINITE,
        "Of a small policy that may stop after each token.",
    ),
)
