"""Returns to go: what is still earned from a token on."""

import numpy as np

from .numerics import plus, times


def returns_to_go(rewards, valid, gamma=1.0):
    """``sum over u >= t of gamma^(steps from t to u) r_u``; masked tokens are no steps.

    Parameters
    ----------
    rewards : ndarray, shape (P, G, L)
        0 where not valid.
    valid : ndarray of bool, shape (P, G, L)
    gamma : float

    Returns
    -------
    ndarray of float64, shape (P, G, L)
        0 where not valid.
    """
    order = np.argsort(~valid, axis=-1, kind="stable")  # valid tokens first, in their order
    summed = np.take_along_axis(rewards, order, axis=-1).astype(np.float64)
    sums = _to_go(summed, gamma)
    if not np.all(np.isfinite(sums)):
        # As in `total`: a sum within range is right also where a part of it is not.
        with np.errstate(over="ignore", under="ignore"):
            again = np.ldexp(_to_go(np.ldexp(summed, -64), gamma), 64)
        sums = np.where(np.isfinite(sums), sums, again)
    result = np.zeros_like(summed)
    np.put_along_axis(result, order, sums, axis=-1)
    return np.where(valid, result, 0.0)


def _to_go(rewards, gamma):
    """The sums without masked tokens between; infinities of both signs give -inf."""
    reach, discount, summed = 1, float(gamma), rewards
    # After each pass an entry sums twice as many steps; powers of gamma may vanish, not grow.
    while reach < summed.shape[-1] and discount:
        later = np.zeros_like(summed)
        later[..., :-reach] = summed[..., reach:]
        summed = plus(summed, times(discount, later))
        reach, discount = 2 * reach, discount * discount
    return summed
