"""What several rules ask of an evaluation."""

import numpy as np

from ..clip_cases import clip_band
from ..metric_readings import chosen, option
from ..numerics import times, total
from ..rewards import lowest_and_highest
from ..shaping_parts import COMBINE

NEGLIGIBLE = 1e-6  # of the sizes that were added up: float32 sums are no better
NAMED = 100  # tokens listed among the figures of a finding about tokens
ON_POLICY = 1e-9  # largest log-ratio that counts as none

# Advantages that are divided by the std of their own group, and those that compare with nothing.
OWN_STD = frozenset({"mean_std"})
UNCOMPARED = frozenset({"uncompared", "returns"})


def option_words(evaluation, stage, key, default=None):
    """The reader's words for the value of an option that is one of a few."""
    value = option(evaluation, stage, key)
    if value is None:
        return default
    return evaluation.scenario.conventions.variant(stage).option(key).domain.words[value]


def surrogate(evaluation):
    """The chosen row of the surrogates."""
    return evaluation.scenario.conventions.variant("surrogate")


def given(evaluation):
    """True if the advantages came from outside, of completions or of tokens."""
    return bool(
        {"advantages", "token_advantages"}
        & set(evaluation.scenario.conventions.variant("advantage").needs)
    )


def divisor(evaluation):
    """What each group's deviations are divided by, (P,); None where it is not their own std."""
    if chosen(evaluation, "advantage") not in OWN_STD:
        return None
    options = evaluation.scenario.conventions["advantage"].options
    return np.maximum(evaluation.std.astype(np.float64), options["floor"]) + options["eps"]


def band(evaluation):
    """Edges of the band of ratios outside of which tokens are stopped; None without one."""
    if surrogate(evaluation).stops != "band":
        return None
    return clip_band(evaluation.scenario.conventions, evaluation.ratio.dtype)


def in_loss(evaluation):
    """Tokens whose surrogate is in the loss: kept, and not multiplied by 0; (P, G, L)."""
    return evaluation.kept & (evaluation.factor != 0)


def stopped(evaluation):
    """Tokens in the loss that have an advantage and no policy gradient; (P, G, L)."""
    flags = evaluation.clipped_low | evaluation.clipped_high | evaluation.dual_clipped
    return flags & in_loss(evaluation) & (evaluation.token_advantages != 0)


def kl_in_objective(evaluation):
    """True unless the KL is a constant of the update, in the reward or in the returns."""
    return option(evaluation, "kl", "place", "objective") == "objective"


def combining(evaluation):
    """The row of `COMBINE` by which scores are combined, None where they are task rewards."""
    return COMBINE.get(evaluation.scenario.conventions["rewards"].variant)


def judged_as_one(evaluation):
    """True if each completion has one score that is judged against its group's."""
    row = combining(evaluation)
    return row is None or row.total


def by_steps(evaluation):
    """True under process supervision."""
    return evaluation.step_advantages is not None


def uses_scores(evaluation):
    """True if the advantages are computed from the scores, if only in part."""
    weight = option(evaluation, "advantage", "outcome_weight", 1.0)
    return weight != 0 and not given(evaluation)


def uniform(evaluation):
    """Groups whose tokens all have the advantage of their completion, (P,)."""
    same = evaluation.token_advantages == evaluation.advantages[..., None]
    return np.all(same | ~evaluation.valid, axis=(1, 2))


def first_token(evaluation):
    """Advantage of each completion's first token that counts, 0 without one; (P, G)."""
    first = np.argmax(evaluation.valid, axis=2)[..., None]
    return np.take_along_axis(evaluation.token_advantages, first, axis=2)[..., 0]


def alike(evaluation):
    """True if the tokens of every completion share one advantage, whichever that is."""
    same = evaluation.token_advantages == first_token(evaluation)[..., None]
    return bool(np.all(same | ~evaluation.valid))


def silent(evaluation):
    """Groups in which every advantage is 0, of completions and of tokens, (P,)."""
    largest = group_max(np.abs(evaluation.token_advantages))
    return (largest == 0) & (group_max(np.abs(evaluation.advantages)) == 0)


def tied(evaluation):
    """Groups that equal scores leave without a signal, (P,).

    Equal sums do not where task and terms are judged apart, where nothing is compared, or where
    advantages are changed afterwards, unless nothing comes of them. Steps do not care for
    scores at all. Given advantages may be anything.
    """
    if by_steps(evaluation) or chosen(evaluation, "advantage") in UNCOMPARED:
        return np.zeros_like(evaluation.tied)
    if given(evaluation):
        return evaluation.tied & judged_as_one(evaluation)
    return evaluation.tied & silent(evaluation)


def spread(values, among):
    """Largest less smallest over the flagged cells of the last axis; 0 if none is."""
    low = np.min(np.where(among, values, np.inf), axis=-1)
    high = np.max(np.where(among, values, -np.inf), axis=-1)
    return np.where(high > low, high - low, 0.0)


def component(names, k):
    """A component of a combined score by name; the first is the task."""
    return f"the term '{names[k]}'" if k else "the task reward"


def places(flags, limit=None):
    """Indices of the true cells, each a tuple, in reading order; at most `limit` of them."""
    first = np.unravel_index(np.flatnonzero(flags)[:limit], flags.shape)
    return tuple(zip(*(axis.tolist() for axis in first), strict=True))


def places_from(worst, flags):
    """Indices of the true cells, the most telling one first."""
    return (worst, *(where for where in places(flags) if where != worst))


def largest(values, among):
    """Index of the largest value among the flagged cells; at least one is flagged."""
    flat = np.argmax(np.where(among, values, -np.inf))
    best = np.unravel_index(flat, among.shape)
    return tuple(int(i) for i in best)


def group_max(values):
    """Largest value of each group, whatever axes follow it; shape (P,)."""
    return np.max(values.reshape(len(values), -1), axis=1)


def group_norm(values):
    """Euclidean norm over each group's cells, shape (P,)."""
    square = np.square(values, dtype=np.float64)
    return np.sqrt(total(square.reshape(len(values), -1), axis=1))


def worth_advantage(evaluation):
    """Surrogate that each token would have at ratio 1 without any gate or weight; (P, G, L)."""
    return times(evaluation.factor, evaluation.token_advantages)


def turnover(evaluation):
    """Sum of the sizes of all contributions: what the objective is small or large against."""
    return float(total(np.abs(evaluation.contribution)))


def on_policy(evaluation):
    """True if there are tokens and the ratio of each is 1."""
    moved = np.abs(np.where(evaluation.valid, evaluation.log_ratio, 0))
    return bool(evaluation.valid.any() and np.max(moved) <= ON_POLICY)


def score_range(evaluation):
    """Lowest and highest score of each group, 0 and 0 where nothing is scored; both (P,)."""
    return lowest_and_highest(evaluation.scores, evaluation.scored)
