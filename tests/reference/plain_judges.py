"""How a score is judged among others, in plain numbers: for `plain_advantages`.

A judge takes a `Seat` and gives the advantage, and what one more unit of the score would change
in it while mean and spread stay. Shares no code with the core.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Seat:
    """A score and what it is compared with.

    ``group`` are the known scores of its group in order, ``at`` its own place there, ``lengths``
    the tokens of each of them, ``batch`` all known scores.
    """

    group: list
    at: int
    lengths: list
    batch: list

    @property
    def value(self):
        return self.group[self.at]

    @property
    def others(self):
        return self.group[: self.at] + self.group[self.at + 1 :]


def mean(values):
    return math.fsum(values) / len(values)


def std(values, ddof):
    if len(values) <= ddof or min(values) == max(values):
        return 0.0
    middle = mean(values)
    return math.sqrt(math.fsum((v - middle) ** 2 for v in values) / (len(values) - ddof))


ALONE = {"zero": 0.0, "reward": 1.0}  # how much of it the only score of a group is worth


def _alone(seat, alone, slope, eps=0.0):
    share = ALONE.get(alone, 1 / (1 + eps))
    return seat.value * share, share or slope


def _deviation(seat):
    return seat.value - mean(seat.group)


def mean_std(seat, ddof, eps, floor=0.0, alone="zero"):
    if len(seat.group) == 1:
        return _alone(seat, alone, 0.0, eps)
    spread = std(seat.group, ddof)
    if spread == 0:
        return 0.0, 0.0
    divisor = max(spread, floor) + eps
    return _deviation(seat) / divisor, 1 / divisor


def mean_only(seat, alone="zero"):
    if len(seat.group) == 1:
        return _alone(seat, alone, 1.0)
    return _deviation(seat), 1.0


def batch_std(seat, ddof, eps):
    spread = std(seat.batch, ddof)
    if spread == 0:
        return 0.0, 0.0
    return _deviation(seat) / (spread + eps), 1 / (spread + eps)


def leave_one_out(seat, alone):
    if not seat.others:
        return _alone(seat, alone, 0.0)
    return seat.value - mean(seat.others), len(seat.group) / len(seat.others)


def leave_one_out_std(seat, eps):
    if not seat.others:
        return 0.0, 0.0
    spread = std(seat.others, 1)
    divisor = spread + eps if spread > 0 else 1.0
    share = len(seat.group) / len(seat.others)
    return (seat.value - mean(seat.others)) / divisor, share / divisor


def uncompared(seat):
    return seat.value, 1.0


def length_weighted(seat, alone):
    if not seat.others:
        return _alone(seat, alone, 1.0)
    weighted = math.fsum(n * r for n, r in zip(seat.lengths, seat.group, strict=True))
    return seat.value - weighted / sum(seat.lengths), 1.0


def over_mean(seat, eps):
    middle = mean(seat.group)
    if middle <= 0:
        return 0.0, 0.0
    return _deviation(seat) / (middle + eps), 1 / (middle + eps)


def nonzero_scaled(seat, f_norm, alone):
    nonzero = len([r for r in seat.batch if r != 0])
    alpha = (len(seat.batch) / nonzero if nonzero else 1.0) / f_norm
    if not seat.others:
        value, slope = _alone(seat, alone, 1.0)
        return alpha * value, alpha * slope
    return alpha * _deviation(seat), alpha


def best_over_second(seat, ddof, eps, divide):
    divisor = std(seat.group, ddof) + eps if divide == "std" else 1.0
    if divisor == 0:
        return 0.0, 0.0
    wins = seat.others and seat.at == seat.group.index(max(seat.group))
    return (seat.value - max(seat.others)) / divisor if wins else 0.0, 1 / divisor


def pass_at_k(seat, k, eps, right_above):
    n, right = len(seat.group), len([r for r in seat.group if r > right_above])
    if n < k:
        return 0.0, 0.0
    missed = math.comb(n - right, k) / math.comb(n, k)
    spread = math.sqrt(missed * (1 - missed))
    if spread == 0:
        return 0.0, 0.0
    value = missed
    if seat.value <= right_above:
        value -= math.comb(n - right - 1, k - 1) / math.comb(n - 1, k - 1)
    return value / (spread + eps), 1 / (spread + eps)


JUDGES = {
    "mean_std": mean_std,
    "mean_only": mean_only,
    "batch_std": batch_std,
    "leave_one_out": leave_one_out,
    "leave_one_out_std": leave_one_out_std,
    "uncompared": uncompared,
    "length_weighted": length_weighted,
    "over_mean": over_mean,
    "nonzero_scaled": nonzero_scaled,
    "best_over_second": best_over_second,
    "pass_at_k": pass_at_k,
}
