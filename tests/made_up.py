"""Made-up rows: one more variant of each stage, which nothing but the table knows of.

Each takes the place of what a later contributor adds. None has a writer or a snippet.
"""

import numpy as np

from grpo_core import STAGES
from grpo_core.advantages import Advantages
from grpo_core.kl import KL
from grpo_core.numerics import times
from grpo_core.ratio import Ratio
from grpo_core.rewards import Scores
from grpo_core.surrogate import Surrogate
from grpo_core.variants import Number, Option, Variant, table


def add(monkeypatch, stage, row):
    """Append a row to a stage's table, until the test ends."""
    rows = table(*STAGES[stage].variants.values(), row)
    monkeypatch.setitem(vars(STAGES[stage]), "variants", rows)


def _kl(batch, *, gamma):
    """``gamma d^4 / 4`` in the objective; the weight is not called beta, and there is no place."""
    d = batch.logp_ref - batch.logp_new
    with np.errstate(over="ignore", invalid="ignore"):
        value = np.where(batch.valid, np.nan_to_num(d**4, nan=0.0, posinf=np.inf) / 4, 0)
        slope = np.where(batch.valid, np.nan_to_num(-(d**3), nan=0.0), 0)
    zero = np.zeros_like(value)
    return KL(value, times(gamma, value), times(gamma, slope), zero)


def _kl_in_the_reward(batch):
    """``(logp_old - logp_ref) / 10`` as a penalty of the reward, with no option at all."""
    value = np.where(batch.valid, batch.logp_old - batch.logp_ref, 0)
    zero = np.zeros_like(value)
    return KL(value, zero, zero, value / 10)


def _rewards(batch, reward_penalty):
    """Twice the reward, less half the penalty."""
    scored = batch.present & ~np.isnan(batch.rewards)
    scores = 2 * batch.rewards - np.sum(reward_penalty, axis=-1) / 2
    return Scores(np.where(scored, scores, 0), scored)


def _advantage(batch, scores):
    """The score, growing along the completion and changing its sign there."""
    growth = np.arange(batch.valid.shape[-1]) - 1.0
    advantages = np.where(scores.scored, scores.scores + 0.25, 0)
    tokens = np.where(batch.valid, advantages[..., None] * growth, 0)
    mean = np.sum(scores.scores, axis=1)
    return Advantages(mean, np.ones_like(mean), advantages, tokens)


def _ratio(batch):
    """The square root of the token's ratio."""
    log_ratio = (batch.logp_new - batch.logp_old) / 2
    ratio = np.where(batch.valid, np.exp(log_ratio), 0)
    return Ratio(log_ratio, ratio, lambda gradient: times(gradient, ratio / 2))


def _surrogate(batch, ratio, token_advantages):
    """``ratio A``, never clipped."""
    no = np.zeros_like(batch.valid)
    return Surrogate(times(ratio.ratio, token_advantages), token_advantages, no, no, no)


def _bent(batch, ratio, token_advantages):
    """``sin(ratio) A``: a derivative that is neither A nor 0, with flags that do not tell it."""
    flags = batch.valid & (ratio.ratio > 1.1)
    return Surrogate(
        times(np.sin(ratio.ratio), token_advantages),
        times(np.cos(ratio.ratio), token_advantages),
        np.zeros_like(flags),
        flags,
        np.zeros_like(flags),
    )


def _aggregation(batch):
    """Later tokens count more."""
    return np.where(batch.valid, 0.01 * (1 + np.arange(batch.valid.shape[-1])), 0)


def _row(key, function, formula, **more):
    words = {"source": "made up", "trl": "-", "verl": "-", "choose_when": "Never."}
    return Variant(
        key=key, label=f"made-up {key}", function=function, formula=formula, **words, **more
    )


_GAMMA = Option(
    key="gamma",
    default=0.5,
    domain=Number(high=10),
    label="gamma",
    help="Made up.",
    trl="-",
    verl="-",
)

# (stage, row). The bars of a formula would end the cell of a Markdown table.
ROWS = (
    ("kl", _row("quartic", _kl, r"\gamma\,|d|^4 / 4", options=(_GAMMA,))),
    ("kl", _row("in_reward", _kl_in_the_reward, r"-d / 10")),
    ("rewards", _row("doubled", _rewards, r"R_i = 2\,r_i - \tfrac12\sum_t p_{i,t}")),
    ("advantage", _row("growing", _advantage, r"A_{i,t} = (t-1)\,(R_i + \tfrac14)")),
    ("ratio", _row("root", _ratio, r"\sqrt{\rho_t}")),
    ("surrogate", _row("plain", _surrogate, r"\rho\,A")),
    ("surrogate", _row("bent", _bent, r"\sin(\rho)\,A")),
    ("aggregation", _row("late", _aggregation, r"\frac{1+t}{100}")),
)
NAMES = [f"{stage}-{row.key}" for stage, row in ROWS]
