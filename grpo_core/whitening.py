"""Stage *whitening*: what is done to the advantages of all tokens together.

A row also takes off them what a KL in the returns makes of each token, ``taken`` (P, G, L).
"""

from dataclasses import replace

import numpy as np

from .group_statistics import group_statistics, over_spread
from .numerics import cast, plus
from .variants import Number, OneOf, Option, Variant, table


def none(batch, token_advantages, taken, *, limit):
    """Advantages as they are, held within plus and minus `limit` (0: not held)."""
    return _less(_limited(batch, token_advantages, limit), taken)


def tokens(batch, token_advantages, taken, *, ddof, eps, guard, count_eps, before, limit):
    """``(A - mean) / sqrt(var + eps)`` over all valid tokens of the batch.

    Long completions weigh more. With ``guard='floor'`` the variance is at least eps instead.
    Where all are equal the result is exactly 0, as in a tied group. Before anything is taken
    off or whitened, advantages are held within `before`; what comes out within `limit`.
    """
    token_advantages = _less(_limited(batch, token_advantages, before), taken)
    row = batch.valid.reshape(1, -1)
    statistics = group_statistics(token_advantages.reshape(1, -1), row, 0)
    tied = statistics.spread == 0
    count = max(float(np.sum(row)), 1.0)
    # In units of the statistics, in which squares stay in range; a count above that of the
    # tokens leaves a part of their mean in.
    left = statistics.centre * (count_eps / (count + count_eps))
    deviation = np.where(row, statistics.centred + left, 0.0)
    square = np.sum(np.square(deviation), axis=1, keepdims=True) / (count + count_eps)
    spread = np.where(tied, 0.0, np.sqrt(square * count / max(count - ddof, 1.0)))
    guarded = GUARDS[guard]
    whitened = over_spread(deviation, spread, statistics.exponent, np.sqrt(eps), guarded)
    return _limited(batch, cast(whitened.reshape(batch.valid.shape), batch.dtype), limit)


# What the std and the root of eps make of the divisor: sqrt(var + eps), or sqrt(max(var, eps)).
GUARDS = {"added": np.hypot, "floor": np.maximum}


def _less(advantages, taken):
    return plus(advantages, -taken) if np.any(taken) else advantages


def _limited(batch, advantages, limit):
    if not limit:
        return advantages
    bound = batch.dtype.type(limit)
    return np.clip(advantages, -bound, bound)


_LIMIT = Option(
    key="limit",
    default=0.0,
    domain=Number(low=0.0, high=1e6),
    label="Advantages held within (0: not)",
    help="Advantages beyond plus and minus this are held there, before a KL in the returns is "
    "taken off.",
    trl="not held",
    verl="not held (OpenRLHF: reward.clip_range, 10)",
)

WHITENINGS = table(
    Variant(
        key="none",
        label="none",
        function=none,
        formula=r"A_{i,t}",
        source="DeepSeekMath (arXiv 2402.03300)",
        trl="the default",
        verl="the default",
        choose_when="GRPO's own: groups are all that is compared.",
        options=(_LIMIT,),
    ),
    Variant(
        key="tokens",
        label="over all tokens",
        function=tokens,
        formula=r"\frac{A_{i,t} - \operatorname{mean}(A)}{\sqrt{\operatorname{var}(A) + "
        r"\mathrm{eps}}}",
        source="REINFORCE++ (arXiv 2501.03262); verl masked_whiten",
        trl="not offered",
        verl="adv_estimator=reinforce_plus_plus, reinforce_plus_plus_baseline",
        choose_when="Advantages should have one scale over the batch, whatever the groups.",
        options=(
            Option(
                key="ddof",
                default=1,
                domain=OneOf({0: "population (n)", 1: "sample (n - 1)"}),
                label="Variance",
                help="verl divides by n - 1, OpenRLHF and NeMo-RL by n.",
                trl="not offered",
                verl="sample",
            ),
            Option(
                key="eps",
                default=1e-8,
                domain=Number(low=0.0, high=1.0),
                label="eps of the variance",
                help="A guard of the variance, not of the std.",
                trl="not offered",
                verl="1e-8",
            ),
            Option(
                key="guard",
                default="added",
                domain=OneOf({"added": "added", "floor": "as the least it can be"}),
                label="How eps enters",
                help="verl adds it, OpenRLHF and NeMo-RL take it as a floor.",
                trl="not offered",
                verl="added",
            ),
            Option(
                key="count_eps",
                default=0.0,
                domain=Number(low=0.0, high=1.0),
                label="Added to the token count",
                help="A guard against division by 0; changes the eighth digit.",
                trl="not offered",
                verl="1e-8",
            ),
            replace(_LIMIT, key="before", label="Before that held within (0: not)"),
            replace(
                _LIMIT,
                help="What comes out is held within plus and minus this.",
                verl="not held (NeMo-RL: advantage_clip_low and _high)",
            ),
        ),
    ),
)
