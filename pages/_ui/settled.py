"""Sums without the noise of their rounding: what ought to be 0 is shown as 0."""

import numpy as np

_NOISE = 1e-15  # of the summed magnitudes: some units in the last place


def settled(value, magnitudes):
    """A sum, or 0 where it is no more than the rounding of its parts.

    Parameters
    ----------
    value : float or ndarray
    magnitudes : float or ndarray
        Sum of the sizes of all that was added up.

    Examples
    --------
    >>> float(settled(-5.551e-17, 1.0)), float(settled(-5.551e-17, 1e-15))
    (0.0, -5.551e-17)
    """
    noise = np.isfinite(magnitudes) & (np.abs(value) <= _NOISE * np.asarray(magnitudes))
    return np.where(noise, 0.0, value)


def loss_of(evaluation):
    """The loss to show."""
    return float(settled(evaluation.loss, size_of(evaluation.contribution)))


def mean_kl_of(evaluation):
    """The mean KL to show."""
    with np.errstate(all="ignore"):
        parts = np.where(evaluation.weight == 0, 0.0, evaluation.weight * evaluation.kl)
    return float(settled(evaluation.mean_kl, size_of(parts)))


@np.errstate(all="ignore")
def size_of(parts):
    """Summed magnitudes of what is added up."""
    return np.sum(np.abs(parts), dtype=np.float64)
