"""What dividing by a standard deviation does to easy and hard prompts, in closed form.

Expectations over groups of G independent answers, on policy, without clipping or KL. Nothing
is sampled here: every group that can come up is computed as the core computes a batch, and
weighed by its probability.
"""

from dataclasses import dataclass

import numpy as np

from .errors import ScenarioError
from .expectations import check_closed_form, moments_by_reward
from .numerics import times
from .prompt_rewards import Prompts, checked_group_size
from .scales import chosen_scale
from .variants import Choice

_FLAT = 1e-9  # weights this close are equal


@dataclass(frozen=True, eq=False, kw_only=True)
class Difficulty:
    """Expected advantages of P prompts, and the weight of each in the gradient.

    Attributes
    ----------
    prompts : Prompts
    G : int
    scale : Choice
        Row of `SCALES` with its options.
    expected_advantage : ndarray, (P, V)
        Of an answer, given its own reward; the other G - 1 are drawn. Tied groups count,
        with advantage 0. Defined at probability 0, too: as if such an answer came up.
    expected_size : ndarray, (P,)
        Mean of ``abs(A)`` over all answers.
    mean_square : ndarray, (P,)
        Mean of ``A**2``; with the group's population std and eps 0 the share of groups that
        are not tied.
    silent : ndarray, (P,)
        Probability of a tied group.
    prompt_weight : ndarray, (P,)
        The number c with ``E[(1/G) sum_i A_i grad log pi(o_i)] = c grad (mean reward)``,
        see `difficulty`. NaN where rewards cannot differ and no limit exists.
    limit : ndarray, (P,)
        Its limit for endless groups: 1 over the divisor.
    alignment : ndarray, (P,)
        Correlation of the expected advantage with the reward, 1 for two values. Below 1 the
        expected gradient of graded rewards is no multiple of the mean reward's.
    """

    prompts: Prompts
    G: int
    scale: Choice
    expected_advantage: np.ndarray
    expected_size: np.ndarray
    mean_square: np.ndarray
    silent: np.ndarray
    prompt_weight: np.ndarray
    limit: np.ndarray
    alignment: np.ndarray

    @property
    def right(self):
        """Expected advantage of an answer with the highest value, (P,)."""
        return self.expected_advantage[:, -1]

    @property
    def wrong(self):
        """Expected advantage of an answer with the lowest value, (P,)."""
        return self.expected_advantage[:, 0]

    @property
    def asymmetry(self):
        """Size of `right` against that of `wrong`, (P,).

        ``(1 - p) / p`` for 0/1 rewards under every scale: advantages of a group sum to 0, so
        ``p right + (1 - p) wrong = 0``. Infinite at p = 0.
        """
        return _ratio(self.right, np.abs(self.wrong))

    @property
    def speed(self):
        """``c variance``, (P,): how fast the mean reward itself rises, c p (1 - p) for 0/1.

        The gradient by the logit of a policy with one logit for right against wrong. It is
        largest at p = 1/2 where c is largest at the ends.
        """
        return times(self.prompt_weight, self.prompts.variance)


def difficulty(prompts, G, scale="group", *, beside=None, **options):
    """Exact expected advantages and prompt weights.

    Parameters
    ----------
    prompts : Prompts
    G : int
        At least 2.
    scale : str
        Key of a row of `SCALES`.
    beside : Prompts, optional
        For the std of the batch: the other prompts in each one's batch. Without it the
        prompts form one batch together.
    options
        Of the row: ``ddof``, ``eps``.

    Returns
    -------
    Difficulty

    Raises
    ------
    ScenarioError
        Unknown scale or option, G out of range, too many different groups to enumerate, or
        the std of a batch of graded rewards, which has no closed form here.

    Notes
    -----
    For 0/1 rewards let p be the success rate, q = 1 - p, K right answers of G and f = K/G.
    The score S = grad log pi(o) has ``E[S; right] = grad p = -E[S; wrong]``, and A depends on
    an answer through right or wrong only, so ``E[A S] = c grad p`` with

        c = E[A | right] - E[A | wrong] = E[f (1 - f) / divisor] / (p q).

    So every symmetric scale leaves the direction of one prompt's gradient alone. With nothing
    to divide by c = (G - 1)/G; with the group's population std ``E[sqrt(K (G - K))] / (G p
    q)``, which is 1 at G = 2, sqrt(2) at G = 3, and rises to ``1/sqrt(p q)`` only as ``G
    min(p, q)`` becomes large; it never exceeds sqrt(G - 1). [Dr. GRPO, arXiv 2503.20783,
    section 3.2, names the bias; the limit is in arXiv 2503.06639.]

    Graded: ``E[A S] = sum_v E[A | v] grad P(v)``; c is the slope of E[A | v] against v.
    """
    G = checked_group_size(G)
    row, options = chosen_scale(scale, options)
    moments = moments_by_reward(prompts, G, row, options, beside)
    expected = moments[0]
    chances = prompts.probabilities
    return Difficulty(
        prompts=prompts,
        G=G,
        scale=Choice(row.key, options),
        expected_advantage=expected,
        expected_size=np.sum(chances * moments[1], axis=1),
        mean_square=np.sum(chances * moments[2], axis=1),
        silent=np.sum(chances * prompts.same_reward ** (G - 1), axis=1),
        prompt_weight=_slope(prompts, expected),
        limit=row.limit(prompts, beside, **options),
        alignment=_alignment(prompts, expected),
    )


def can_enumerate(prompts, G, scale="group"):
    """Whether `difficulty` has a closed form for these prompts; else simulate them."""
    try:
        check_closed_form(prompts, checked_group_size(G), chosen_scale(scale, {})[0])
    except ScenarioError:
        return False
    return True


def largest(values):
    """Where values are largest, as a tuple of positions; empty if all are equal or NaN."""
    known = values[~np.isnan(values)]
    if not known.size or np.max(known) - np.min(known) <= _FLAT * np.max(np.abs(known)):
        return ()
    top = np.max(known)
    return tuple(np.flatnonzero(values >= top - _FLAT * abs(top)).tolist())


def _ratio(left, right):
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.divide(left, right)


def _slope(prompts, expected):
    """Expected advantage against value: the difference of two, or weighted least squares."""
    if prompts.values.shape[1] == 2:  # no need of a chance for both, so p may be 0 or 1
        return _ratio(expected[:, 1] - expected[:, 0], _finite_gap(prompts))
    deviation = prompts.values - prompts.mean[:, None]
    return _ratio(np.sum(prompts.probabilities * deviation * expected, axis=1), prompts.variance)


def _finite_gap(prompts):
    gap = prompts.values[:, 1] - prompts.values[:, 0]
    return np.where(gap > 0, gap, np.nan)


def _alignment(prompts, expected):
    chances, deviation = prompts.probabilities, prompts.values - prompts.mean[:, None]
    centred = expected - np.sum(chances * expected, axis=1, keepdims=True)
    spread = np.sum(chances * centred * centred, axis=1) * prompts.variance
    together = np.sum(chances * deviation * centred, axis=1)
    few = np.sum(chances > 0, axis=1) <= 2
    return np.where(few | (spread == 0), 1.0, np.minimum(_ratio(together, np.sqrt(spread)), 1.0))
