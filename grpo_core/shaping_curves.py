"""What the weight of a shaping term does to the advantages of one group."""

from dataclasses import dataclass

import numpy as np

from .group_statistics import group_statistics
from .inputs import checked_number
from .shaping_parts import (
    COMBINE,
    checked,
    in_units,
    known,
    own_advantages,
    read,
    read_line,
    weighted_sum,
)
from .variants import Number

# Where curves over the weight are drawn.
WEIGHTS = np.geomspace(1e-8, 1.0, 161)
WEIGHTS.setflags(write=False)


@dataclass(frozen=True, eq=False)
class TiedGroup:
    """Advantages in a group of equal task rewards where some completions have a bonus.

    ``having`` and ``lacking`` (W,) are those of completions with and without it, at each
    weight; ``limits`` the two that a positive weight far above eps leads to, whatever it
    is. At the weight ``takeover`` they are half of that; None if eps is 0 or if all or none
    have the bonus.
    """

    having: np.ndarray
    lacking: np.ndarray
    limits: tuple[float, float]
    takeover: float | None


def tied_group(size, bonuses, weights=WEIGHTS, *, ddof=0, eps=1e-8):
    """Closed form of a tied group in which a few completions have a bonus.

    Parameters
    ----------
    size : int
        Completions in the group, G.
    bonuses : int
        How many of them have the bonus, k.
    weights : array-like, shape (W,)
        Weights w of the bonus; may be negative.
    ddof : {0, 1}
    eps : float
        Added to the standard deviation.

    Returns
    -------
    TiedGroup

    Raises
    ------
    ScenarioError
        Sizes that are no whole numbers with 0 <= k <= G, weights that are not finite.

    Notes
    -----
    ``A = (f - k/G) / (s + eps/w)`` with ``s`` the standard deviation of the bonus f, which
    is 0 or 1: mean and std are both linear in w, so that it cancels but for eps. The limits
    are ``sqrt((G-k)/k)`` and ``-sqrt(k/(G-k))``, times ``sqrt((G-1)/G)`` for ddof 1.

    Examples
    --------
    >>> tied_group(8, 4, [1e-4, 1e-2], ddof=1, eps=1e-4).having.round(3).tolist()
    [0.326, 0.918]
    """
    options = checked(ddof=ddof, eps=eps)
    size = checked_number("size", size, Number(low=1, integer=True))
    bonuses = checked_number("bonuses", bonuses, Number(low=0, high=size, integer=True))
    weights = read_line("weights", weights)
    if bonuses in (0, size):
        nothing = np.zeros(weights.shape)
        return TiedGroup(nothing, nothing.copy(), (0.0, 0.0), None)
    share = bonuses / size
    std = np.sqrt(bonuses * (size - bonuses) / (size * (size - options["ddof"])))
    divisor = np.abs(weights) * std + options["eps"]
    reached = np.divide(weights, divisor, out=np.zeros(weights.shape), where=divisor > 0)
    limits = float((1 - share) / std), float(-share / std)
    takeover = options["eps"] / float(std) if options["eps"] else None
    return TiedGroup((1 - share) * reached, -share * reached, limits, takeover)


def takeover_weight(bonus, *, ddof=0, eps=1e-8):
    """The weight at which eps is as large as the spread that a term gives to a tied group.

    Parameters
    ----------
    bonus : array-like, shape (P, G)
        Values of the term, NaN where it does not apply.
    ddof : {0, 1}
    eps : float

    Returns
    -------
    ndarray, shape (P,)
        ``eps / std``: there advantages are half as large as they can be. NaN in a group in
        which the term has no spread.
    """
    options = checked(ddof=ddof, eps=eps)
    bonus = read("bonus", bonus, "PG", missing=True)
    std = group_statistics(bonus, ~np.isnan(bonus), options["ddof"]).std
    with np.errstate(over="ignore", under="ignore"):
        return np.divide(options["eps"], std, out=np.full(std.shape, np.nan), where=std > 0)


def advantage_against_weight(
    task, bonus, weights=WEIGHTS, *, combine="sum_then_normalize", scale="std", ddof=0, eps=1e-8
):
    """Advantages of one group at each weight of a term.

    Parameters
    ----------
    task, bonus : array-like, shape (G,)
        Task rewards and the term's values. NaN is a value that is missing: it adds nothing,
        and a completion without either has advantage 0.
    weights : array-like, shape (W,)
    combine : {'sum_then_normalize', 'normalize_then_sum', 'add_after'}
        Advantage of ``task + w bonus``; advantage of each, summed with weights; advantage of
        the task, with ``w bonus`` added to it.
    scale : {'std', 'none'}
        Whether an advantage divides by the group's standard deviation.
    ddof : {0, 1}
    eps : float

    Returns
    -------
    ndarray of float64, shape (W, G)

    Raises
    ------
    ScenarioError
        Unlike sizes, values that are infinite or too large to be added, unknown options.

    Examples
    --------
    >>> advantage_against_weight([1, 1, 1, 1], [1, 0, 0, 0], [0.01, 1], eps=0).round(3).tolist()
    [[1.732, -0.577, -0.577, -0.577], [1.732, -0.577, -0.577, -0.577]]
    """
    options = checked(combine=combine, scale=scale, ddof=ddof, eps=eps)
    task = read("task", task, "G", missing=True)
    bonus = read("bonus", bonus, "G", missing=True, shape=task.shape)
    weights = read_line("weights", weights)
    own_task, own_bonus = in_units(task[None], bonus[None, None], **options)
    combined = weighted_sum(own_task, own_bonus, weights[:, None, None])  # (W, 1, G)
    if not COMBINE[options["combine"]].total:
        return combined[:, 0]
    scored = np.broadcast_to(known(task, bonus[None]), combined[:, 0].shape)
    return own_advantages(combined[:, 0], scored, options["scale"], options["ddof"], options["eps"])
