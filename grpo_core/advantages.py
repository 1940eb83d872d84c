"""Stage *advantage*: each completion judged against its own group."""

from dataclasses import dataclass

import numpy as np

from .numerics import cast
from .variants import Number, OneOf, Option, Variant, table

# Power of two beyond every double: the unit of a group that holds an infinite score.
_BEYOND = 4096


@dataclass(frozen=True, eq=False)
class Advantages:
    """Mean and std of each group (P,), advantages (P, G) and per token (P, G, L)."""

    mean: np.ndarray
    std: np.ndarray
    advantages: np.ndarray
    token_advantages: np.ndarray


@dataclass(frozen=True, eq=False)
class GroupStatistics:
    """Exact-at-the-edges statistics of each group, in units of ``2**exponent``.

    ``centred`` (P, G) and ``spread`` (P, 1) are scaled so that squares neither overflow
    nor vanish; ``exponent`` (P, 1) undoes it.
    """

    mean: np.ndarray
    centred: np.ndarray
    spread: np.ndarray
    exponent: np.ndarray

    @property
    def std(self):
        """Standard deviation in reward units, shape (P,)."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self.spread, self.exponent)[:, 0]


def group_statistics(scores, scored, ddof):
    """Mean, deviations and standard deviation of each group over its scored completions.

    Parameters
    ----------
    scores : ndarray, shape (P, G)
        Not NaN where scored. Beside an infinite score (a KL penalty in the reward can be
        infinite) finite ones count as 0, the limit that the formulas approach.
    scored : ndarray of bool, shape (P, G)
    ddof : {0, 1}
        0 divides by n (population), 1 by n - 1 (sample).

    Returns
    -------
    GroupStatistics
        A group of equal scores has deviations and spread of exactly 0, whatever the score:
        deviations are taken from the group's first score, which is exact for equal ones,
        where ``0.1 + 0.1 + 0.1`` over 3 is not 0.1. A group with ``n - ddof <= 0`` has
        spread 0.
    """
    scores = np.where(scored, scores, 0).astype(np.float64)
    count = np.maximum(np.sum(scored, axis=1, keepdims=True), 1)  # (P, 1)
    unit, exponent = _units(scores)
    first = np.take_along_axis(unit, np.argmax(scored, axis=1)[:, None], axis=1)
    shifted = np.where(scored, unit - first, 0.0)
    mean_shift = np.sum(shifted, axis=1, keepdims=True) / count
    centred = np.where(scored, shifted - mean_shift, 0.0)
    with np.errstate(over="ignore", under="ignore"):
        squares = np.sum(centred * centred, axis=1, keepdims=True)
        spread = np.sqrt(squares / np.maximum(count - ddof, 1))
        mean = np.ldexp(first + mean_shift, exponent)[:, 0]
    return GroupStatistics(mean, centred, spread, exponent)


def _units(scores):
    """Scores as multiples, within [-1, 1], of a power of two: (P, G) and its exponent (P, 1)."""
    peak = np.max(np.abs(scores), axis=1, keepdims=True)
    endless = np.isinf(peak)
    exponent = np.where(endless, _BEYOND, np.frexp(np.where(endless, 0.0, peak))[1])
    with np.errstate(under="ignore"):
        return np.where(np.isinf(scores), np.sign(scores), np.ldexp(scores, -exponent)), exponent


def standardised(statistics, eps):
    """``(r - mean) / (std + eps)``, 0 where the std is 0, without leaving double range.

    Both sides of the fraction are taken in the larger unit, the group's or that of eps.
    """
    own = statistics.exponent  # (P, 1)
    unit = np.maximum(own, np.frexp(eps)[1]) if eps else own
    tied = statistics.spread == 0
    with np.errstate(under="ignore"):
        denominator = np.ldexp(statistics.spread, own - unit) + np.ldexp(eps, -unit)
        centred = np.ldexp(statistics.centred, own - unit)
        return np.where(tied, 0.0, centred / np.where(tied, 1.0, denominator))


def per_token(advantages, valid):
    """Give every valid token its completion's advantage; shape (P, G, L)."""
    return np.where(valid, advantages[..., None], advantages.dtype.type(0))


def _result(batch, statistics, advantages):
    advantages = cast(advantages, batch.dtype)
    return Advantages(
        statistics.mean, statistics.std, advantages, per_token(advantages, batch.valid)
    )


def mean_std(batch, scores, *, ddof, eps):
    """``(r - mean) / (std + eps)`` within each group [DeepSeekMath, section 4.1.2]."""
    statistics = group_statistics(scores.scores, scores.scored, ddof)
    return _result(batch, statistics, standardised(statistics, eps))


def mean_only(batch, scores):
    """``r - mean`` within each group [Dr. GRPO, arXiv 2503.20783]."""
    statistics = group_statistics(scores.scores, scores.scored, 0)
    with np.errstate(over="ignore", under="ignore"):
        centred = np.ldexp(statistics.centred, statistics.exponent)
    return _result(batch, statistics, centred)


def given(batch, scores):
    """Advantages as they came; mean and std (population) of the scores are for reading."""
    return _result(batch, group_statistics(scores.scores, scores.scored, 0), batch.advantages)


_DDOF = Option(
    key="ddof",
    default=0,
    domain=OneOf({0: "population (n)", 1: "sample (n - 1)"}),
    label="Standard deviation",
    help="The paper writes only 'std'. NumPy's default is the population formula; every "
    "trainer uses the sample one, which gives smaller advantages in small groups.",
    trl="sample, fixed",
    verl="sample, fixed",
)
_EPS = Option(
    key="eps",
    default=1e-8,
    domain=Number(low=0.0, high=1e6),
    label="eps (added to the std)",
    help="Matters only in groups whose rewards are nearly equal, where it decides how far "
    "tiny differences are blown up.",
    trl="1e-4, fixed",
    verl="epsilon=1e-6",
)

ADVANTAGES = table(
    Variant(
        key="mean_std",
        label="minus mean, over std (GRPO)",
        function=mean_std,
        formula=r"A_i = \frac{R_i - \operatorname{mean}(R)}{\operatorname{std}(R) + \mathrm{eps}}",
        source="DeepSeekMath (arXiv 2402.03300) section 4.1.2",
        trl='scale_rewards="group"',
        verl="adv_estimator=grpo",
        choose_when="You want every group to push equally hard, however small its spread.",
        options=(_DDOF, _EPS),
        unit="in standard deviations of the group",
    ),
    Variant(
        key="mean_only",
        label="minus mean (Dr. GRPO)",
        function=mean_only,
        formula=r"A_i = R_i - \operatorname{mean}(R)",
        source="Dr. GRPO (arXiv 2503.20783) section 3.2",
        trl='scale_rewards="none"',
        verl="norm_adv_by_std_in_grpo=False",
        choose_when="Rewards have a scale you trust and hard prompts must not be up-weighted.",
        unit="in reward units",
    ),
    Variant(
        key="given",
        label="given, not computed",
        function=given,
        formula=r"A_i = \text{as given}",
        source="the array 'advantages', e.g. logged by a trainer",
        trl="the advantage column of a completions file",
        verl="advantages",
        choose_when="You want to reproduce a recorded batch, or you compute advantages elsewhere.",
        needs=("advantages",),
        unit="as given",
    ),
)
