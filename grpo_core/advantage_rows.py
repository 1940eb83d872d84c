"""Ways of judging scores against their group: what is taken off, and what is divided by."""

import numpy as np

from .combination import Normalised, centred_on_mean
from .group_statistics import group_statistics, over_spread, standardised
from .numerics import plus, times, total


def _plain(statistics):
    """Deviations from the mean in reward units, (P, G)."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(statistics.centred, statistics.exponent)


def _by(advantages, scale, statistics):
    return Normalised(statistics.mean, statistics.std, advantages, scale)


def _count(scored):
    return np.sum(scored, axis=1, keepdims=True)


def _over(deviations, divisor, zero):
    """Deviations over a divisor (P, G) or (P, 1); 0 where `zero`."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scale = np.where(zero, 0.0, 1 / np.where(zero, 1.0, divisor))
        return np.nan_to_num(deviations * scale, nan=0.0), scale


def over_std(ddof, eps, floor=0.0, alone="zero"):
    """``(r - mean) / (std + eps)``, the std at least `floor`."""

    def normalise(scores, scored):
        statistics = group_statistics(scores, scored, ddof)
        tied = statistics.spread == 0
        with np.errstate(over="ignore"):
            divisor = np.maximum(statistics.std[:, None], floor) + eps
        # A std below the smallest normal number would have no inverse.
        divisor = np.where(tied, 1.0, np.maximum(divisor, np.finfo(np.float64).tiny))
        scale = np.where(tied, 0.0, 1 / divisor)
        if floor:
            advantages, scale = _over(_plain(statistics), divisor, tied)
        else:
            advantages = standardised(statistics, eps)
        return _alone(scores, scored, _by(advantages, scale, statistics), alone, eps)

    return normalise


def centred(alone="zero"):
    """``r - mean``."""

    def normalise(scores, scored):
        statistics = group_statistics(scores, scored, 0)
        result = _by(_plain(statistics), np.ones((len(scores), 1)), statistics)
        return _alone(scores, scored, result, alone)

    return normalise


# What the only score of a group is divided by; by infinity it is worth nothing.
ALONE = {
    "zero": lambda eps: np.inf,
    "reward": lambda eps: 1.0,
    "reward_over_1": lambda eps: 1 + eps,
}


def _alone(scores, scored, result, alone, eps=0.0, factor=1.0):
    """The result with the only score of a group at its own worth, times `factor`."""
    one, divisor = (_count(scored) == 1) & scored, ALONE[alone](eps)
    if not one.any() or np.isinf(divisor):
        return result

    def centre(values, known):
        return np.where(one, values, (result.centre or centred_on_mean)(values, known))

    worth = times(np.where(one, scores, 0.0), factor / divisor)
    return Normalised(
        result.mean,
        result.std,
        np.where(one, worth, result.advantages),
        np.where(one, factor / divisor, result.scale),
        centre,
    )


def over_batch_std(ddof, eps):
    """``(r - group mean) / (std of all scores of the batch + eps)`` [Lite PPO, 2508.08221]."""

    def normalise(scores, scored):
        statistics = group_statistics(scores, scored, ddof)
        whole = group_statistics(scores.reshape(1, -1), scored.reshape(1, -1), ddof)
        tied = whole.spread == 0
        advantages, scale = _over(_plain(statistics), whole.std[:, None] + eps, tied)
        std = np.broadcast_to(whole.std, statistics.std.shape)
        return Normalised(
            statistics.mean, std, advantages, np.broadcast_to(scale, (len(scores), 1))
        )

    return normalise


def leave_one_out(alone="reward"):
    """``r_i - mean of the others``, which is ``n / (n - 1) (r_i - mean)`` [RLOO, 2402.14740]."""

    def normalise(scores, scored):
        statistics = group_statistics(scores, scored, 0)
        n = _count(scored)
        scale = np.where(n > 1, n / np.maximum(n - 1, 1), 0.0)
        with np.errstate(over="ignore"):
            result = _by(_plain(statistics) * scale, scale, statistics)
        return _alone(scores, scored, result, alone)

    return normalise


def leave_one_out_std(eps):
    """Mean and sample std of the others; not divided where that std is 0 [NeMo-RL]."""

    def normalise(scores, scored):
        statistics = group_statistics(scores, scored, 0)
        n = _count(scored).astype(np.float64)
        others = np.maximum(n - 1, 1)
        own = np.where(scored, statistics.centred, 0.0)  # in units of 2**exponent
        mean = -own / others  # of the others, as deviations from the group's mean
        square = (np.sum(own * own, axis=1, keepdims=True) - own * own) / others - mean * mean
        # Rounding of the difference of squares, not spread: the others are equal.
        peak = np.max(np.abs(own), axis=1, keepdims=True)
        square = np.where(square <= 1e-15 * peak * peak, 0.0, square)
        spread = np.sqrt(square * others / np.maximum(others - 1, 1))
        quotient = over_spread(own - mean, spread, statistics.exponent, eps)
        with np.errstate(over="ignore", under="ignore"):
            std = np.ldexp(spread, statistics.exponent) + eps
            deviation = np.ldexp(own - mean, statistics.exponent)
            scale = np.where(spread > 0, 1 / np.maximum(std, np.finfo(np.float64).tiny), 1.0)
        advantages = np.where(spread > 0, quotient, deviation)
        advantages = np.where(scored & (n > 1), advantages, 0.0)
        return _by(advantages, np.where(scored, scale * n / others, 0.0), statistics)

    return normalise


def uncompared(scores, scored):
    """The score itself: no baseline."""
    statistics = group_statistics(scores, scored, 0)
    one = np.ones((len(scores), 1))
    return Normalised(statistics.mean, statistics.std, _known(scores, scored), one, _known)


def _known(values, scored):
    return np.where(scored, values, 0.0)


def over_mean(eps):
    """``(r - mean) / (mean + eps)``, 0 where the mean is not above 0 [MaxRL, 2602.02710]."""

    def normalise(scores, scored):
        statistics = group_statistics(scores, scored, 0)
        mean = statistics.mean[:, None]
        advantages, scale = _over(_plain(statistics), mean + eps, ~(mean > 0))
        return _by(advantages, scale, statistics)

    return normalise


def nonzero_scaled(f_norm, alone):
    """``alpha (r - mean) / f_norm``, alpha completions over those whose score is not 0 [GPG]."""

    def normalise(scores, scored):
        statistics = group_statistics(scores, scored, 0)
        nonzero = np.sum(scored & (scores != 0))
        with np.errstate(over="ignore"):
            alpha = np.float64(np.sum(scored) / nonzero if nonzero else 1.0) / f_norm
        advantages = times(_plain(statistics), alpha)
        result = _by(advantages, np.full((len(scores), 1), alpha), statistics)
        return _alone(scores, scored, result, alone, factor=alpha)

    return normalise


def best_over_second(ddof, eps, divide):
    """Only the best gets ``best - second best``, over std + eps or not [2503.19595]."""

    def normalise(scores, scored):
        statistics = group_statistics(scores, scored, ddof)
        values = np.where(scored, scores, -np.inf)
        best = np.argmax(values, axis=1)[:, None]
        # In units of 2**exponent, in which no difference leaves the range of doubles.
        ordered = -np.sort(-np.where(scored, statistics.centred, -np.inf), axis=1)
        enough = _count(scored) > 1
        second = ordered[:, 1:2] if scores.shape[1] > 1 else ordered
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            lead = np.where(enough, ordered[:, :1] - second, 0.0)
            whole = np.ldexp(lead, statistics.exponent)
            if divide == "std":
                divisor = statistics.std[:, None] + eps
                _, scale = _over(lead, divisor, divisor == 0)
                below = statistics.spread + np.ldexp(float(eps), -statistics.exponent)
                share, _ = _over(lead, below, below == 0)
            else:
                share, scale = whole, np.ones_like(lead)
        winner = np.arange(scores.shape[1]) == best
        return _by(np.where(winner & enough, share, 0.0), scale, statistics)

    return normalise


def pass_at_k(k, eps, right_above):
    """Analytic advantages of pass@k for 0/1 rewards [arXiv 2508.10751].

    Of n scores c are right. A set of k passes with chance ``p = 1 - C(n-c, k) / C(n, k)``,
    its std is ``s = sqrt(p (1 - p))``. A right score gets ``(1 - p) / (s + eps)``, a wrong one
    ``(1 - p - C(n-c-1, k-1) / C(n-1, k-1)) / (s + eps)``. 0 where s is 0.
    """

    def normalise(scores, scored):
        statistics = group_statistics(scores, scored, 0)
        n = _count(scored).astype(np.float64)
        right = scored & (scores > right_above)
        wrong = n - _count(right)
        none = _choose_share(wrong, n, k)  # all k of them wrong
        rest = _choose_share(wrong - 1, n - 1, k - 1)
        s = np.sqrt(none * (1 - none))
        value = np.where(right, none, none - rest)
        advantages, scale = _over(value, s + eps, s == 0)
        return _by(np.where(scored, advantages, 0.0), scale, statistics)

    return normalise


def _choose_share(few, n, k):
    """C(few, k) / C(n, k), as a product of k fractions; 0 where few < k."""
    i = np.arange(int(k))
    with np.errstate(divide="ignore", invalid="ignore"):
        fractions = np.clip((few[..., None] - i) / np.maximum(n[..., None] - i, 1), 0.0, 1.0)
    return np.prod(fractions, axis=-1)


def length_weighted(lengths, alone):
    """``r - sum(T r) / sum(T)``: the baseline of least variance if scores grow with length [OPO].

    The mean is read with the weights; ``lengths`` (P, G).
    """

    def normalise(scores, scored):
        statistics = group_statistics(scores, scored, 0)
        weight = np.where(scored, lengths, 0).astype(np.float64)
        size = np.sum(weight, axis=1, keepdims=True)
        share = weight / np.where(size > 0, size, 1.0)

        def shift(values, known):
            """How far the weighted mean is above the plain one, (P, 1)."""
            return total(times(share, centred_on_mean(values, known)), axis=1)[:, None]

        def centre(values, known):
            return _known(plus(centred_on_mean(values, known), -shift(values, known)), known)

        mean = plus(statistics.mean, shift(scores, scored)[:, 0])
        advantages, one = centre(scores, scored), np.ones((len(scores), 1))
        result = Normalised(mean, statistics.std, advantages, one, centre)
        return _alone(scores, scored, result, alone)

    return normalise
