"""Which component of a combined score drives the update: parts of advantages, shares of spread."""

from dataclasses import dataclass

import numpy as np

from .group_statistics import group_statistics
from .numerics import total


@dataclass(frozen=True, eq=False)
class Attribution:
    """What each component, task first, has in the advantages; C components.

    Attributes
    ----------
    names : tuple of str, (C,)
    weights : ndarray, (C,)
    values : ndarray, (C, P, G)
        Unweighted; NaN where missing.
    weighted : ndarray, (C, P, G)
    parts : ndarray, (C, P, G)
        They add up to the advantages.
    shares : ndarray, (C, P)
        Share of the spread of each group's advantages, ``cov(part, A) / var(A)``. They sum
        to 1 and may be negative; all 0 in a group whose advantages are equal.
    """

    names: tuple[str, ...]
    weights: np.ndarray
    values: np.ndarray
    weighted: np.ndarray
    parts: np.ndarray
    shares: np.ndarray


def attribute(components, parts):
    """The `Attribution` of components and of the parts that a combination gave them."""
    return Attribution(
        components.names,
        components.weights,
        components.values,
        components.weighted,
        parts,
        spread_shares(parts, components.scored),
    )


def spread_shares(parts, scored):
    """Share of each part in the spread of their sum, (C, P); see `Attribution`.

    Centring by a group's mean and scaling by its std change no share, so that before
    normalisation they are ``cov(w_k r_k, total) / var(total)``.
    """
    parts = np.where(np.isfinite(parts), parts, 0.0)
    whole = group_statistics(total(np.moveaxis(parts, 0, -1), axis=-1), scored, 0)
    each = [group_statistics(part, scored, 0) for part in parts]
    variance = np.sum(np.square(whole.centred), axis=1)
    tied = whole.spread[:, 0] == 0
    with np.errstate(over="ignore", under="ignore"):
        products = np.stack(
            [
                np.ldexp(np.sum(part.centred * whole.centred, axis=1), _step(part, whole))
                for part in each
            ]
        )
        return np.where(tied, 0.0, products / np.where(tied, 1.0, variance))


def _step(part, whole):
    return (part.exponent - whole.exponent)[:, 0]
