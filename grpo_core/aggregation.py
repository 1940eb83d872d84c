"""Stage *aggregation*: how much each token counts. The objective is sum(weight * per token)."""

import numpy as np

from .numerics import row_count
from .variants import Number, OneOf, Option, Variant, table


def _spread(valid, denominator, dtype):
    weight = 1.0 / np.where(denominator > 0, denominator, np.inf)
    return np.where(valid, weight, 0.0).astype(dtype)


def completion_mean(batch, *, empty):
    """Mean over a completion's valid tokens, then over the completions of the batch."""
    length = row_count(batch.valid)  # (P, G, 1)
    counted = batch.present if empty == "count" else batch.present & (length[..., 0] > 0)
    return _spread(batch.valid, length * np.sum(counted), batch.dtype)


def token_mean(batch):
    """Mean over all valid tokens of the batch."""
    return _spread(batch.valid, np.sum(batch.valid, dtype=np.float64), batch.dtype)


def constant(batch, *, length):
    """Sum over tokens, divided by completions times one constant length (0: padded width)."""
    width = length or batch.valid.shape[-1]
    return _spread(batch.valid, float(np.sum(batch.present)) * width, batch.dtype)


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
            Option(
                key="empty",
                default="count",
                domain=OneOf({"count": "counted as 0", "drop": "left out of the mean"}),
                label="Completion without tokens",
                help="Whether a completion whose tokens are all masked stays in the number "
                "of completions that the sum is divided by.",
                trl="counted",
                verl="left out",
            ),
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
            Option(
                key="length",
                default=0,
                domain=Number(low=0, high=10_000_000, integer=True),
                label="Constant length (0: padded width)",
                help="The length that every completion is divided by.",
                trl="max_completion_length",
                verl="loss_scale_factor (default: padded width)",
            ),
        ),
    ),
)
