"""The two functions by the paper's names, for use without a scenario."""

import numpy as np

from .arrays import ARRAYS, as_array, check_cells, check_shape
from .batch import prepare
from .errors import ScenarioError
from .evaluation import evaluate_batch
from .group_statistics import group_statistics, standardised
from .numerics import floating
from .stages import Conventions
from .variants import Choice


def group_advantages(rewards, eps=1e-8):
    """Advantages of completions within their groups, with the population standard deviation.

    Parameters
    ----------
    rewards : array-like, shape (B, G)
        One reward per completion, one row per prompt. NaN is a missing score: it is left
        out of its group's mean and std and gets advantage 0.
    eps : float, default 1e-8
        Added to the standard deviation; reward units.

    Returns
    -------
    ndarray, shape (B, G)
        ``(r - mean) / (std + eps)``; exactly 0 in a group of identical rewards. float32 in
        gives float32 out, everything else float64.

    Raises
    ------
    ValueError
        Not two axes, ragged rows, text, infinite rewards, or a negative `eps`.

    Notes
    -----
    DeepSeekMath (arXiv 2402.03300), section 4.1.2, which says neither which std nor eps.
    TRL, verl and OpenRLHF divide by the sample standard deviation and add 1e-4, 1e-6 and
    1e-9: see `STAGES['advantage']`.

    Examples
    --------
    >>> group_advantages([[1, 0, 0, 1]]).round(6).tolist()
    [[1.0, -1.0, -1.0, 1.0]]
    """
    eps = _non_negative("eps", eps)
    rewards = as_array("rewards", rewards, ARRAYS["rewards"])
    _not_empty("rewards", rewards)
    check_cells("rewards", rewards, ARRAYS["rewards"], np.ones(rewards.shape, bool))
    statistics = group_statistics(rewards, ~np.isnan(rewards), 0)
    return standardised(statistics, eps).astype(floating(rewards))


def grpo_objective(logp, old_logp, ref_logp, rewards, mask, epsilon=0.2, beta=0.04, eps=1e-8):
    """The GRPO objective of a batch, as in DeepSeekMath.

    Parameters
    ----------
    logp, old_logp, ref_logp : array-like, shape (B, G, L)
        Log-probabilities of the sampled tokens under the new, old and reference policy.
    rewards : array-like, shape (B, G)
    mask : array-like of 0/1, shape (B, G, L)
        1 where a token counts. What stands elsewhere is never read.
    epsilon : float, default 0.2
        The ratio is clipped to [1 - epsilon, 1 + epsilon].
    beta : float, default 0.04
        Weight of the k3 KL penalty.
    eps : float, default 1e-8
        Added to each group's population standard deviation.

    Returns
    -------
    dict
        ``'advantages'``, ndarray (B, G); ``'objective'``, ``'loss'`` (= -objective) and
        ``'mean_kl'`` as Python floats. Infinite where the exact result is beyond the
        number type, never NaN.

    Raises
    ------
    ValueError
        Wrong or ragged shapes, text, NaN or +inf at a position that counts, options out of
        range.

    Notes
    -----
    Per token ``min(ratio A, clip(ratio, 1-epsilon, 1+epsilon) A) - beta kl``, with ``kl =
    exp(d) - d - 1`` and ``d = ref_logp - logp``, averaged over each completion's valid
    tokens and then over all completions [DeepSeekMath, arXiv 2402.03300, equations 3 and
    4]. A completion without valid tokens counts as 0, as in TRL; verl leaves it out.

    Examples
    --------
    >>> grpo_objective([[[0.], [0.]]], [[[-1.], [0.]]], [[[0.], [0.]]], [[1., 0.]],
    ...                [[[1], [1]]], epsilon=.2, beta=0.)["objective"].__round__(6)
    0.1
    """
    epsilon = _non_negative("epsilon", epsilon)
    if epsilon > 1:
        raise ScenarioError(f"epsilon is {epsilon!r}; wanted at most 1", field="epsilon")
    conventions = Conventions(
        {
            "kl": Choice("k3", {"beta": _non_negative("beta", beta)}),
            "advantage": Choice("mean_std", {"eps": _non_negative("eps", eps)}),
            "surrogate": Choice("clip", {"epsilon_low": epsilon, "epsilon_high": epsilon}),
        }
    )
    evaluation = evaluate_batch(
        _checked_batch(logp, old_logp, ref_logp, rewards, mask), conventions
    )
    return {
        "advantages": evaluation.advantages,
        "objective": evaluation.objective,
        "loss": evaluation.loss,
        "mean_kl": evaluation.mean_kl,
    }


def _checked_batch(logp, old_logp, ref_logp, rewards, mask):
    given = {
        "logp": (logp, ARRAYS["logp_new"]),
        "old_logp": (old_logp, ARRAYS["logp_old"]),
        "ref_logp": (ref_logp, ARRAYS["logp_ref"]),
    }
    arrays = {name: as_array(name, *pair) for name, pair in given.items()}
    mask = as_array("mask", mask, ARRAYS["mask"])
    rewards = as_array("rewards", rewards, ARRAYS["rewards"])
    _not_empty("logp", arrays["logp"])
    for name, array in arrays.items():
        check_shape(name, array, arrays["logp"].shape, "logp", given[name][1])
    check_shape("mask", mask, arrays["logp"].shape, "logp", ARRAYS["mask"])
    check_shape("rewards", rewards, mask.shape[:2], "the first two axes of logp", ARRAYS["rewards"])
    check_cells("rewards", rewards, ARRAYS["rewards"], np.ones(rewards.shape, bool))
    for name, array in arrays.items():
        _refuse_undefined(name, array, mask, given[name][1])
    return prepare(
        rewards=rewards,
        mask=mask,
        present=np.ones(rewards.shape, bool),
        logp_new=arrays["logp"],
        logp_old=arrays["old_logp"],
        logp_ref=arrays["ref_logp"],
    )


def _refuse_undefined(name, array, mask, spec):
    """NaN and +inf stop here; values above 0 do not: the formula is defined for them."""
    bad = mask & (np.isnan(array) | (array == np.inf))
    if np.any(bad):
        b, g, t = (int(index) for index in np.argwhere(bad)[0])
        raise ScenarioError(
            f"{name} at prompt {b}, completion {g}, token {t} is {array[b, g, t].item()!r};"
            " wanted a number or -inf where the mask is 1",
            field=spec.key,
            where=(b, g, t),
        )


def _not_empty(name, array):
    if array.size == 0:
        raise ScenarioError(f"{name} has shape {array.shape}; wanted no empty axis", field=name)


def _non_negative(name, value):
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not (np.isfinite(number) and number >= 0):
        raise ScenarioError(
            f"{name} is {value!r}; wanted a finite number of at least 0", field=name
        )
    return number
