"""Stage *advantage*: each completion judged against its own group."""

from dataclasses import dataclass

import numpy as np

from .combination import Normalised
from .group_statistics import group_statistics, standardised
from .numerics import cast, plus, times
from .process import step_advantages
from .variants import Number, OneOf, Option, Variant, table


@dataclass(frozen=True, eq=False)
class Advantages:
    """Mean and std of each group (P,), advantages (P, G) and per token (P, G, L).

    ``parts`` (C, P, G) are what each component of a combined score has in the advantages,
    None where there are no components or the advantages do not come from the scores.
    ``steps`` (P, G, S) are normalised step rewards, None without process supervision.
    """

    mean: np.ndarray
    std: np.ndarray
    advantages: np.ndarray
    token_advantages: np.ndarray
    parts: np.ndarray | None = None
    steps: np.ndarray | None = None


def per_token(advantages, valid):
    """Give every valid token its completion's advantage; shape (P, G, L)."""
    return np.where(valid, advantages[..., None], advantages.dtype.type(0))


def _result(batch, mean, std, advantages):
    advantages = cast(advantages, batch.dtype)
    return Advantages(mean, std, advantages, per_token(advantages, batch.valid))


def _judged(batch, scores, normalise):
    """Scores, or the components that they are combined from, under one normaliser."""
    if scores.combine is None:
        whole = normalise(scores.scores, scores.scored)
        return _result(batch, whole.mean, whole.std, whole.advantages)
    whole = scores.combine(batch, normalise)
    advantages = cast(whole.advantages, batch.dtype)
    past = cast(whole.past, batch.dtype)
    token_advantages = plus(per_token(advantages, batch.valid), -past)
    return Advantages(whole.mean, whole.std, advantages, token_advantages, whole.parts)


def over_std(ddof, eps):
    """A normaliser: ``(r - mean) / (std + eps)``."""

    def normalise(scores, scored):
        statistics = group_statistics(scores, scored, ddof)
        tied = statistics.spread == 0
        with np.errstate(over="ignore"):
            # One over less than the least normal double would be infinite.
            divisor = np.maximum(statistics.std[:, None] + eps, np.finfo(np.float64).tiny)
        advantages = standardised(statistics, eps)
        return Normalised(
            statistics.mean, statistics.std, advantages, np.where(tied, 0.0, 1 / divisor)
        )

    return normalise


def centred(scores, scored):
    """A normaliser: ``r - mean``."""
    statistics = group_statistics(scores, scored, 0)
    with np.errstate(over="ignore", under="ignore"):
        deviations = np.ldexp(statistics.centred, statistics.exponent)
    return Normalised(statistics.mean, statistics.std, deviations, np.ones((len(scores), 1)))


def mean_std(batch, scores, *, ddof, eps):
    """``(r - mean) / (std + eps)`` within each group [DeepSeekMath, section 4.1.2]."""
    return _judged(batch, scores, over_std(ddof, eps))


def mean_only(batch, scores):
    """``r - mean`` within each group [Dr. GRPO, arXiv 2503.20783]."""
    return _judged(batch, scores, centred)


def given(batch, scores):
    """Advantages as they came; mean and std (population) of the scores are for reading."""
    read = centred(scores.scores, scores.scored)
    return _result(batch, read.mean, read.std, batch.advantages)


def process(batch, scores, *, ddof, eps, over, outcome_weight):
    """Normalised step rewards summed from each token on [DeepSeekMath, section 4.1.3].

    The outcome's advantage, by the same formula, is added with ``outcome_weight``. The
    completion's advantage is the sum over all of its steps, which its first token carries.
    """
    outcome = _judged(batch, scores, over_std(ddof, eps))
    steps, to_go = step_advantages(
        batch.step_rewards, batch.step_ends, batch.valid, ddof=ddof, eps=eps, over=over
    )
    weight = batch.dtype.type(outcome_weight)
    summed = cast(np.sum(steps, axis=-1), batch.dtype)
    return Advantages(
        outcome.mean,
        outcome.std,
        plus(summed, times(weight, outcome.advantages)),
        plus(cast(to_go, batch.dtype), times(weight, outcome.token_advantages)),
        steps=steps,
    )


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
    Variant(
        key="process",
        label="step rewards (process supervision)",
        function=process,
        formula=r"A_{i,t} = \sum_{j:\, e_{i,j} \ge t} "
        r"\frac{r_{i,j} - \operatorname{mean}(r)}{\operatorname{std}(r) + \mathrm{eps}}",
        source="DeepSeekMath (arXiv 2402.03300) section 4.1.3; mean and std over all steps of "
        "the group, e is where a step ends",
        trl="not implemented",
        verl="not implemented: grpo sums token rewards to one score first",
        choose_when="A verifier or reward model scores each step of the answer.",
        options=(
            _DDOF,
            _EPS,
            Option(
                key="over",
                default="group",
                domain=OneOf(
                    {"group": "all steps of the group", "completion": "each completion's own"}
                ),
                label="Mean and std over",
                help="The paper pools the steps of the whole group. Within each completion "
                "a step is only compared with its neighbours.",
                trl="not implemented",
                verl="not implemented",
            ),
            Option(
                key="outcome_weight",
                default=0.0,
                domain=Number(low=-1e6, high=1e6),
                label="Weight of the outcome",
                help="Adds the advantage of the whole answer's reward, by the same formula, "
                "times this. 0 leaves it out.",
                trl="not implemented",
                verl="not implemented",
            ),
        ),
        needs=("step_ends", "step_rewards"),
        unit="in standard deviations of the group's steps",
    ),
)
