"""Stage *aggregation*: how much each token counts. The objective is sum(weight * per token).

``batch.valid`` are the tokens that take part; of a completion or prompt none of whose tokens
does, each mode says whether it is still counted.
"""

import numpy as np

from .numerics import cast, row_count
from .variants import Number, OneOf, Option, Variant, table


def _spread(valid, denominator, dtype):
    with np.errstate(over="ignore"):  # of a given number that is as good as 0
        weight = 1.0 / np.where(denominator > 0, denominator, np.inf)
    return cast(np.where(valid, weight, 0.0), dtype)


def _completions(batch, empty, given=0.0):
    """How many completions the sum is divided by: a given number, or those that count."""
    if given:
        return np.float64(given)
    counted = batch.present if empty == "count" else batch.present & np.any(batch.valid, axis=-1)
    return np.sum(counted, dtype=np.float64)


def completion_mean(batch, *, empty, count_eps, completions):
    """Mean over a completion's valid tokens, then over the completions of the batch."""
    length = row_count(batch.valid)  # (P, G, 1)
    length = np.where(length > 0, length + count_eps, 0.0)
    return _spread(batch.valid, length * _completions(batch, empty, completions), batch.dtype)


def token_mean(batch, *, tokens):
    """Sum over all valid tokens, divided by their number or by a given one."""
    count = tokens or np.sum(batch.valid, dtype=np.float64)
    return _spread(batch.valid, np.float64(count), batch.dtype)


def constant(batch, *, length, empty, completions):
    """Sum over tokens, divided by completions times one constant length (0: padded width)."""
    width = length or batch.valid.shape[-1]
    return _spread(batch.valid, _completions(batch, empty, completions) * width, batch.dtype)


def length_only(batch, *, length):
    """Sum over tokens, divided by one constant length alone: grows with the batch."""
    return _spread(batch.valid, float(length or batch.valid.shape[-1]), batch.dtype)


def completion_sum(batch, *, empty, completions):
    """Sum over a completion's tokens, then the mean over completions."""
    return _spread(batch.valid, _completions(batch, empty, completions), batch.dtype)


def token_sum(batch):
    """Sum over all tokens."""
    return _spread(batch.valid, np.float64(1.0), batch.dtype)


def prompt_mean(batch, *, inner):
    """Mean over prompts of a mean within each prompt: over its tokens, or its completions."""
    length = row_count(batch.valid)  # (P, G, 1)
    per_prompt = _INNER[inner](batch, length)
    prompts = np.sum(np.any(batch.valid, axis=(1, 2)), dtype=np.float64)
    return _spread(batch.valid, per_prompt * prompts, batch.dtype)


# What a token of a prompt is divided by, (P, G, 1) or (P, 1, 1).
_INNER = {
    "tokens": lambda batch, length: np.sum(length, axis=1, keepdims=True),
    "completions": lambda batch, length: (
        length * np.sum(length > 0, axis=1, keepdims=True, dtype=np.float64)
    ),
}

_EMPTY = Option(
    key="empty",
    default="count",
    domain=OneOf({"count": "counted as 0", "drop": "left out of the mean"}),
    label="Completion without tokens",
    help="Whether a completion whose tokens are all masked stays in the number of completions "
    "that the sum is divided by.",
    trl="counted",
    verl="left out",
)

_COMPLETIONS = Option(
    key="completions",
    default=0.0,
    domain=Number(low=0.0, high=1e12),
    label="Completions of the whole batch (0: those here)",
    help="What the sum is divided by, where this is a part of a larger batch that is averaged "
    "as one.",
    trl="those here",
    verl="global_batch_size / dp_size",
)


def _length(trl, verl):
    return Option(
        key="length",
        default=0,
        domain=Number(low=0, high=10_000_000, integer=True),
        label="Constant length (0: padded width)",
        help="The length that every completion is divided by.",
        trl=trl,
        verl=verl,
    )


AGGREGATIONS = table(
    Variant(
        key="completion_mean",
        label="mean per completion (GRPO)",
        function=completion_mean,
        formula=r"\frac1N\sum_i \frac1{T_i}\sum_t",
        source="DeepSeekMath (arXiv 2402.03300) equation 3",
        trl='loss_type="grpo"',
        verl='loss_agg_mode="seq-mean-token-mean"',
        choose_when="Every completion should count the same, so that a token of a short one "
        "counts more.",
        options=(
            _EMPTY,
            Option(
                key="count_eps",
                default=0.0,
                domain=Number(low=0.0, high=1.0),
                label="Added to token counts",
                help="A guard against division by 0; changes the eighth digit.",
                trl="none: at least 1",
                verl="1e-8",
            ),
            _COMPLETIONS,
        ),
    ),
    Variant(
        key="token_mean",
        label="mean over all tokens (DAPO)",
        function=token_mean,
        formula=r"\frac1{\sum_i T_i}\sum_i\sum_t",
        source="DAPO (arXiv 2503.14476) equation 12",
        trl='loss_type="dapo" (the default) or "bnpo"',
        verl='loss_agg_mode="token-mean" (the default)',
        choose_when="Every token should count the same, so that a long completion counts more.",
        options=(
            Option(
                key="tokens",
                default=0.0,
                domain=Number(low=0.0, high=1e12),
                label="Tokens of the whole batch (0: those here)",
                help="What the sum is divided by, where this is a part of a larger batch that "
                "is averaged as one.",
                trl="num_items_in_batch (dapo); those of the micro-batch (bnpo)",
                verl="batch_num_tokens",
            ),
        ),
    ),
    Variant(
        key="constant",
        label="constant length (Dr. GRPO)",
        function=constant,
        formula=r"\frac1{N\,L_{\mathrm{max}}}\sum_i\sum_t",
        source="Dr. GRPO (arXiv 2503.20783) section 3.2",
        trl='loss_type="dr_grpo" (max_completion_length)',
        verl='loss_agg_mode="seq-mean-token-sum-norm"',
        choose_when="Neither the completion's nor the batch's length should change what a token "
        "counts.",
        options=(
            _length("max_completion_length", "loss_scale_factor (default: padded width)"),
            _EMPTY,
            _COMPLETIONS,
        ),
    ),
    Variant(
        key="length_only",
        label="constant length, not per completion",
        function=length_only,
        formula=r"\frac1{L_{\mathrm{max}}}\sum_i\sum_t",
        source="verl before 0.9, seq-mean-token-sum-norm",
        trl="not offered",
        verl='loss_agg_mode="seq-mean-token-sum-norm" (January 2026)',
        choose_when="Only to reproduce an older run: the loss grows with the batch.",
        options=(_length("not offered", "padded width, fixed"),),
    ),
    Variant(
        key="completion_sum",
        label="sum per completion, mean over them",
        function=completion_sum,
        formula=r"\frac1N\sum_i\sum_t",
        source="verl agg_loss; LUSPO (arXiv 2602.05261) with a ratio per completion",
        trl='loss_type="luspo"',
        verl='loss_agg_mode="seq-mean-token-sum"',
        choose_when="A completion is one action, and its tokens add up.",
        options=(_EMPTY, _COMPLETIONS),
    ),
    Variant(
        key="token_sum",
        label="sum over all tokens",
        function=token_sum,
        formula=r"\sum_i\sum_t",
        source="verl agg_loss",
        trl="not offered",
        verl='loss_agg_mode="token-sum"',
        choose_when="The optimiser rescales gradients anyway, or to add micro-batches yourself.",
    ),
    Variant(
        key="prompt_mean",
        label="mean per prompt",
        function=prompt_mean,
        formula=r"\frac1P\sum_p \frac1{\sum_{i\in p} T_i}\sum_{i\in p}\sum_t\quad\text{or}\quad"
        r"\frac1P\sum_p \frac1{G_p}\sum_{i\in p}\frac1{T_i}\sum_t",
        source="DAPO (arXiv 2503.14476) equation 8, read as an expectation over prompts; SkyRL",
        trl="not offered",
        verl="not offered",
        choose_when="Every prompt should count the same, whatever its answers' lengths.",
        options=(
            Option(
                key="inner",
                default="tokens",
                domain=OneOf({"tokens": "over its tokens", "completions": "over its completions"}),
                label="Within a prompt",
                help="A mean over the prompt's tokens (SkyRL's prompt_mean), or over its "
                "completions of their token means, as in the equation of GRPO.",
                trl="not offered",
                verl="not offered",
            ),
        ),
    ),
)
