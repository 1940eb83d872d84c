"""Stage *correction*: weights for what the sampler's engine and the trainer disagree about."""

import numpy as np

from .numerics import cast, difference, exp, row_count, total
from .variants import Number, OneOf, Option, Variant, table


def none(batch):
    """Weight 1 everywhere."""
    return np.where(batch.valid, batch.dtype.type(1), batch.dtype.type(0))


def given(batch, *, level):
    """Weights as they came, such as verl's rollout_is_weights, or their geometric mean.

    The mean over a completion is verl's in geo_mean: 1e-10 is added to the weights and 1e-8
    to the count.
    """
    weights = batch.sampler_weights
    if level == "sequence_mean":
        with np.errstate(divide="ignore"):
            logs = np.where(batch.valid, np.log(weights.astype(np.float64) + 1e-10), 0.0)
        weights = exp(total(logs, axis=-1)[..., None] / (row_count(batch.valid) + 1e-8))
    return cast(np.where(batch.valid, weights, 0.0), batch.dtype)


def sampler(batch, *, level, mode, low, high, clamp):
    """``exp(logp_old - logp_sampler)``, truncated or masked, without gradient.

    Per token; or one for each completion, the product or the geometric mean of its tokens'.
    Where the sampler's log-probability is unknown (NaN) the weight is 1.
    """
    step = difference(batch.logp_old, batch.logp_sampler)
    step = np.where(batch.valid & ~np.isnan(step), step, 0).astype(np.float64)
    count = row_count(batch.valid)
    judged = LEVELS[level](step, count)
    if clamp:
        judged = np.clip(judged, -clamp, clamp)
    weight = MODES[mode](exp(judged), low, high or np.inf)
    if level == "sequence_filter":  # tokens keep their own weight where the completion stays
        weight = np.where(weight > 0, exp(step), 0.0)
    return cast(np.where(batch.valid, weight, 0.0), batch.dtype)


LEVELS = {
    "token": lambda step, count: step,
    "sequence": lambda step, count: total(step, axis=-1)[..., None],
    "sequence_mean": lambda step, count: total(step, axis=-1)[..., None] / np.maximum(count, 1),
}
LEVELS["sequence_filter"] = LEVELS["sequence_mean"]
MODES = {
    "truncate": lambda ratio, low, high: np.clip(ratio, low, high),
    "mask": lambda ratio, low, high: np.where((ratio >= low) & (ratio <= high), ratio, 0.0),
}


def _bound(key, default, label, text, trl, verl):
    return Option(
        key=key,
        default=default,
        domain=Number(low=0.0, high=1e6),
        label=label,
        help=text,
        trl=trl,
        verl=verl,
    )


CORRECTIONS = table(
    Variant(
        key="none",
        label="none",
        function=none,
        formula=r"1",
        source="the default",
        trl="without vLLM",
        verl="rollout_correction.rollout_is=None",
        choose_when="The policy that sampled is the one whose log-probabilities are known.",
    ),
    Variant(
        key="sampler",
        label="trainer over sampler",
        function=sampler,
        formula=r"c = \frac{\pi_{\mathrm{old}}}{\pi_{\mathrm{sampler}}}\ "
        r"\text{truncated or masked}",
        source="TIS: Yao et al. 2025, Your efficient RL framework secretly brings you off-policy "
        "RL training; TRL vllm_importance_sampling_correction",
        trl='vllm_importance_sampling_mode="sequence_mask", the default with vLLM',
        verl="rollout_correction.rollout_is, rollout_is_threshold",
        choose_when="Another engine sampled than the one that trains, and they differ a little.",
        options=(
            Option(
                key="level",
                default="sequence",
                domain=OneOf(
                    {
                        "token": "per token",
                        "sequence": "per completion, product",
                        "sequence_mean": "per completion, geometric mean",
                        "sequence_filter": "per token, in completions whose mean is inside",
                    }
                ),
                label="Level",
                help="The product of a long completion leaves any bound soon.",
                trl="sequence, or token",
                verl="sequence, or token",
            ),
            Option(
                key="mode",
                default="mask",
                domain=OneOf({"truncate": "held at the bound", "mask": "0 beyond the bound"}),
                label="Beyond the bounds",
                help="Truncated weights stay at the bound; masked ones drop the token.",
                trl="mask, or truncate",
                verl="truncate",
            ),
            _bound("low", 0.0, "Lower bound", "0 is none.", "C_min=None", "none"),
            _bound("high", 3.0, "Upper bound (0: none)", "Of the weight.", "C_max=3.0", "2.0"),
            _bound(
                "clamp", 0.0, "Clamp of the log (0: none)", "Before the exponential.", "none", "20"
            ),
        ),
        needs=("logp_sampler",),
    ),
    Variant(
        key="given",
        label="given",
        function=given,
        formula=r"c = \text{as given}",
        source="the array 'sampler_weights', such as verl's rollout_is_weights",
        trl="importance_sampling_ratio",
        verl="rollout_is_weights",
        choose_when="The weights were computed elsewhere.",
        options=(
            Option(
                key="level",
                default="token",
                domain=OneOf(
                    {
                        "token": "per token, as given",
                        "sequence_mean": "their geometric mean over a completion",
                    }
                ),
                label="Level",
                help="verl's geo_mean loss weights whole completions.",
                trl="as given",
                verl="as given; geo_mean: geometric mean",
            ),
        ),
        needs=("sampler_weights",),
    ),
)
