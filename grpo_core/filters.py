"""Stages *truncated*, *tied* and *selection*: which tokens take part in the loss.

A row of the first two says which tokens stay (P, G, L); what goes leaves the denominators
too, unless it says otherwise. A row of *selection* gives a factor of each token's surrogate.
"""

from dataclasses import dataclass

import numpy as np

from .numerics import difference, row_count, total
from .variants import Number, OneOf, Option, Variant, table


@dataclass(frozen=True, eq=False)
class Kept:
    """Tokens whose terms stay, and tokens that the denominators count; bool (P, G, L)."""

    tokens: np.ndarray
    counted: np.ndarray


def keep_all(batch, *inputs):
    """Every valid token."""
    return Kept(batch.valid, batch.valid)


def drop_truncated(batch, scores, advantages):
    """Completions that were cut at the length limit leave the loss; their rewards still count."""
    stays = batch.valid & ~(batch.truncated > 0)[..., None]
    return Kept(stays, stays)


def tied_groups(scores, advantages):
    """Groups in which nothing tells the completions apart, (P,).

    Those of two or more scores that are all equal, each component on its own where components
    are judged apart. Under process supervision steps and not scores are compared: there the
    groups in which no token has an advantage. A group of one score is not tied: it has nothing
    to be equal to, and an advantage row may give it a worth of its own.
    """
    if advantages.steps is not None:
        return ~np.any(advantages.token_advantages, axis=(1, 2))
    return scores.tied


def drop_tied(batch, scores, advantages, *, denominator):
    """All tokens of `tied_groups` leave the loss.

    With ``denominator='counted'`` they still count in what is divided by, so that the other
    groups weigh no more than they did; with ``'left_out'`` the loss is that of the others alone.
    """
    stays = batch.valid & ~tied_groups(scores, advantages)[:, None, None]
    return Kept(stays, batch.valid if denominator == "counted" else stays)


def drop_zero(batch, scores, advantages):
    """Tokens of advantage 0 leave the loss and its denominator.

    As they were judged: before whitening, and before a KL in the returns.
    """
    stays = batch.valid & (advantages.token_advantages != 0)
    return Kept(stays, stays)


def select_all(batch, token_advantages):
    """Every token with factor 1."""
    return batch.valid


def select_entropy(batch, token_advantages, *, share):
    """The share of tokens with the highest entropy, over the whole batch [80/20, 2506.01939]."""
    entropies = batch.entropy[batch.valid]
    if not entropies.size or share >= 1:
        return batch.valid
    threshold = np.quantile(entropies, 1 - share)
    return batch.valid & (batch.entropy >= threshold)


def select_on_policy(batch, token_advantages, *, threshold):
    """Completions that have moved little, and all with an advantage of at least 0.

    One with a negative advantage goes if the mean of ``logp_sampler - logp_new`` over its
    tokens is above the threshold [DeepSeek-V3.2, off-policy sequence masking]. Where the
    sampler's log-probability is unknown (NaN) the token counts as not having moved.
    """
    step = difference(batch.logp_sampler, batch.logp_new)
    step = np.where(batch.valid & ~np.isnan(step), step, 0)
    far = total(step, axis=-1)[..., None] / np.maximum(row_count(batch.valid), 1)
    return batch.valid & ((token_advantages >= 0) | (far <= threshold))


def select_both(batch, token_advantages, *, share, threshold):
    """Tokens that `select_entropy` and `select_on_policy` both select.

    The bar of the entropy is that of all valid tokens, also of completions that go.
    """
    near = select_on_policy(batch, token_advantages, threshold=threshold)
    return near & select_entropy(batch, token_advantages, share=share)


TRUNCATED = table(
    Variant(
        key="keep",
        label="stay in",
        function=keep_all,
        formula=r"\text{all tokens}",
        source="the default everywhere",
        trl="mask_truncated_completions=False",
        verl="the default",
        choose_when="Answers are hardly ever cut.",
    ),
    Variant(
        key="drop",
        label="leave the loss",
        function=drop_truncated,
        formula=r"m_{i,t} = 0\ \text{for cut answers}",
        source="DAPO (arXiv 2503.14476) section 3.4, overlong filtering",
        trl="mask_truncated_completions=True",
        verl="not offered (NeMo-RL: overlong_filtering)",
        choose_when="Cut answers get a bad reward for their length and not for what they say.",
        needs=("truncated",),
    ),
)

TIED = table(
    Variant(
        key="keep",
        label="stay in",
        function=keep_all,
        formula=r"\text{all groups}",
        source="the default",
        trl="the default (not offered)",
        verl="filter_groups.enable=False",
        choose_when="The KL should still pull on tied groups, and the loss keep its scale.",
    ),
    Variant(
        key="drop",
        label="leave the loss",
        function=drop_tied,
        formula=r"m_{i,t} = 0\ \text{where}\ \max R = \min R",
        source="DAPO (arXiv 2503.14476) section 3.2, without sampling anew",
        trl="not offered",
        verl="filter_groups.enable=True (which samples others instead)",
        choose_when="Tied groups should not dilute the mean, and need no pull of the KL.",
        options=(
            Option(
                key="denominator",
                default="left_out",
                domain=OneOf({"left_out": "not counted", "counted": "still counted"}),
                label="Tokens of dropped groups",
                help="Whether the loss is still divided by them.",
                trl="not offered",
                verl="not counted",
            ),
        ),
    ),
    Variant(
        key="zero",
        label="tokens of advantage 0 leave the loss",
        function=drop_zero,
        formula=r"m_{i,t} = 0\ \text{where}\ A_{i,t} = 0",
        source="prime-rl filter_zero_advantages",
        trl="not offered",
        verl="not offered",
        choose_when="Tokens that push nothing should not dilute the mean, also in groups of which "
        "others push.",
    ),
)

_SHARE = Option(
    key="share",
    default=0.2,
    domain=Number(low=0.0, high=1.0, exclusive=True),
    label="Share of tokens",
    help="Of all valid tokens; the denominators still count all of them.",
    trl="top_entropy_quantile=1.0",
    verl="not offered",
)
_THRESHOLD = Option(
    key="threshold",
    default=0.5,
    domain=Number(low=-1e6, high=1e6),
    label="Threshold (nats a token)",
    help="Mean drop of log-probability beyond which a bad answer goes.",
    trl="off_policy_mask_threshold=None",
    verl="not offered",
)
SELECTIONS = table(
    Variant(
        key="all",
        label="all tokens",
        function=select_all,
        formula=r"1",
        source="the default",
        trl="top_entropy_quantile=1.0, off_policy_mask_threshold=None",
        verl="the default",
        choose_when="Every token should learn from its advantage, sure or unsure, near or far.",
    ),
    Variant(
        key="entropy",
        label="tokens of high entropy (80/20)",
        function=select_entropy,
        formula=r"1[H_t \ge \text{quantile}_{1-\mathrm{share}}(H)]",
        source="Beyond the 80/20 rule (arXiv 2506.01939)",
        trl="top_entropy_quantile",
        verl="not offered",
        choose_when="Only the tokens at which the answer forks should learn.",
        options=(_SHARE,),
        needs=("entropy",),
    ),
    Variant(
        key="on_policy",
        label="completions that are not far off-policy",
        function=select_on_policy,
        formula=r"1\big[A \ge 0\ \text{or}\ \tfrac1T\sum_t(\log\pi_{\mathrm{sampler}} - "
        r"\log\pi_{\mathrm{new}}) \le \delta\big]",
        source="DeepSeek-V3.2 (arXiv 2512.02556), off-policy sequence masking",
        trl="off_policy_mask_threshold",
        verl="not offered (slime: --use-opsm)",
        choose_when="Bad answers of an old policy should not be pushed down any further.",
        options=(_THRESHOLD,),
        needs=("logp_sampler",),
    ),
    Variant(
        key="entropy_on_policy",
        label="high entropy (80/20), and not far off-policy",
        function=select_both,
        formula=r"1[H_t \ge \text{quantile}_{1-\mathrm{share}}(H)] \cdot 1\big[A \ge 0\ \text{or}\ "
        r"\tfrac1T\sum_t(\log\pi_{\mathrm{sampler}} - \log\pi_{\mathrm{new}}) \le \delta\big]",
        source="TRL 1.16, which multiplies the masks of arXiv 2506.01939 and arXiv 2512.02556",
        trl="top_entropy_quantile and off_policy_mask_threshold together",
        verl="not offered",
        choose_when="Only forking tokens should learn, and none in bad answers of an old policy.",
        options=(_SHARE, _THRESHOLD),
        needs=("entropy", "logp_sampler"),
    ),
)
