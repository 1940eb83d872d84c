"""Made-up rows: one more variant of each stage, which nothing but the table knows of.

Each takes the place of what a later contributor adds. None has a writer or a snippet.
"""

import numpy as np

from grpo_core import STAGES
from grpo_core.advantages import Advantages
from grpo_core.filters import Kept
from grpo_core.kl import KL
from grpo_core.numerics import times
from grpo_core.ratio import Ratio
from grpo_core.rewards import Scores
from grpo_core.surrogate_base import Surrogate, SurrogateRow
from grpo_core.variants import Number, Option, Variant, table


def add(monkeypatch, stage, row):
    """Append a row to a stage's table, until the test ends."""
    rows = table(*STAGES[stage].variants.values(), row)
    monkeypatch.setitem(vars(STAGES[stage]), "variants", rows)


def _kl(batch, ratio, *, gamma):
    """``gamma d^4 / 4`` in the objective; the weight is not called beta, and there is no place."""
    d = batch.logp_ref - batch.logp_new
    with np.errstate(over="ignore", invalid="ignore"):
        value = np.where(batch.valid, np.nan_to_num(d**4, nan=0.0, posinf=np.inf) / 4, 0)
        slope = np.where(batch.valid, np.nan_to_num(-(d**3), nan=0.0), 0)
    return _pull(value, penalty=times(gamma, value), derivative=times(gamma, slope))


def _pull(value, **parts):
    """A `KL` whose parts are 0 save those named."""
    zero = np.zeros_like(value)
    names = ("penalty", "derivative", "d_ratio", "reward_penalty", "return_penalty")
    return KL(value, **{**dict.fromkeys(names, zero), **parts})


def _kl_in_the_reward(batch, ratio):
    """``(logp_old - logp_ref) / 10`` as a penalty of the reward, with no option at all."""
    value = np.where(batch.valid, batch.logp_old - batch.logp_ref, 0)
    return _pull(value, reward_penalty=value / 10)


def _kl_in_the_returns(batch, ratio):
    """``(logp_old - logp_ref)^2 / 5``, taken off the advantages of a token and all before it."""
    value = np.where(batch.valid, np.square(batch.logp_old - batch.logp_ref), 0)
    return _pull(value, return_penalty=value / 5)


def _kl_by_the_ratio(batch, ratio):
    """``ratio / 20``, with no gradient but that of the ratio."""
    value = np.where(batch.valid, ratio.ratio, 0)
    return _pull(value, penalty=value / 20, d_ratio=np.where(batch.valid, 0.05, 0.0))


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


def _weighted(batch, ratio, token_advantages):
    """``A logp_new / 2``: a derivative that does not go by way of the ratio."""
    no = np.zeros_like(batch.valid)
    value = times(token_advantages, batch.logp_new) / 2
    return Surrogate(value, np.zeros_like(value), no, no, no, d_logp=token_advantages / 2)


def _coupled(batch, ratio, token_advantages):
    """A times the mean of the completion's logp_new, with a way back of its own."""
    no = np.zeros_like(batch.valid)
    share = batch.valid / np.maximum(np.sum(batch.valid, axis=-1, keepdims=True), 1)
    mean = np.sum(batch.logp_new * share, axis=-1, keepdims=True)

    def backward(gradient):
        return share * np.sum(times(gradient, token_advantages), axis=-1, keepdims=True)

    value = times(token_advantages, mean)
    return Surrogate(value, np.zeros_like(value), no, no, no, backward=backward)


def _whitening(batch, token_advantages, taken):
    """Half of it, and a little more at the batch's first prompt."""
    return np.where(batch.valid, (token_advantages - taken) / 2, 0) + _at_first(batch) / 10


def _at_first(batch):
    return batch.valid & (np.arange(len(batch.valid)) == 0)[:, None, None]


def _without_last(batch, scores, advantages):
    """The last position of the batch leaves the loss, and is still counted."""
    stays = batch.valid & (np.arange(batch.valid.shape[-1]) < batch.valid.shape[-1] - 1)
    return Kept(stays, batch.valid)


def _without_best(batch, scores, advantages):
    """Completions of a score above 0.9 leave the loss."""
    stays = batch.valid & ~(scores.scores > 0.9)[..., None]
    return Kept(stays, stays)


def _selection(batch, token_advantages):
    """Every other position doubled, the others left out."""
    return np.where(batch.valid & (np.arange(batch.valid.shape[-1]) % 2 == 0), 2.0, 0.0)


def _correction(batch):
    """``exp(logp_old / 4)``."""
    return np.where(batch.valid, np.exp(batch.logp_old / 4), 0)


def _entropy(batch):
    """A hundredth of what is improbable."""
    return np.where(batch.valid, -batch.logp_old / 100, 0)


def _accumulation(batch):
    """A third."""
    return 1 / 3


def _aggregation(batch):
    """Later tokens count more."""
    return np.where(batch.valid, 0.01 * (1 + np.arange(batch.valid.shape[-1])), 0)


def _row(key, function, formula, kind=Variant, **more):
    words = {"source": "made up", "trl": "-", "verl": "-", "choose_when": "Never."}
    return kind(
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
    ("kl", _row("in_returns", _kl_in_the_returns, r"d^2 / 5")),
    ("kl", _row("by_ratio", _kl_by_the_ratio, r"\rho / 20")),
    ("rewards", _row("doubled", _rewards, r"R_i = 2\,r_i - \tfrac12\sum_t p_{i,t}")),
    ("advantage", _row("growing", _advantage, r"A_{i,t} = (t-1)\,(R_i + \tfrac14)")),
    ("ratio", _row("root", _ratio, r"\sqrt{\rho_t}")),
    ("surrogate", _row("plain", _surrogate, r"\rho\,A", kind=SurrogateRow)),
    ("surrogate", _row("bent", _bent, r"\sin(\rho)\,A", kind=SurrogateRow)),
    (
        "surrogate",
        _row("weighted", _weighted, r"\tfrac12 A\,\log\pi_{\mathrm{new}}", kind=SurrogateRow),
    ),
    (
        "surrogate",
        _row("coupled", _coupled, r"A\,\tfrac1T\sum_t\log\pi_{\mathrm{new}}", kind=SurrogateRow),
    ),
    ("whitening", _row("halved", _whitening, r"\tfrac12 A_{i,t}")),
    ("truncated", _row("without_last", _without_last, r"t < L - 1")),
    ("tied", _row("without_best", _without_best, r"R_i \le 0.9")),
    ("selection", _row("every_other", _selection, r"2\cdot 1[t\ \text{even}]")),
    ("correction", _row("root", _correction, r"\pi_{\mathrm{old}}^{1/4}")),
    ("entropy", _row("rare", _entropy, r"-\log\pi_{\mathrm{old}} / 100")),
    ("accumulation", _row("third", _accumulation, r"\tfrac13")),
    ("aggregation", _row("late", _aggregation, r"\frac{1+t}{100}")),
)
NAMES = [f"{stage}-{row.key}" for stage, row in ROWS]
