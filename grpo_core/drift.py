"""Drift: how far the new policy has gone along its way, written in, or given a direction."""

from dataclasses import replace

import numpy as np

from .scenario import effective_logp_new

_STEP = 0.1  # nats, standard deviation: a drift of 2 or 3 brings some tokens to a bound of 0.2


def with_drift(scenario, drift):
    """A copy with another drift."""
    return replace(scenario, drift=drift)


def keep_drift(scenario):
    """Write the drifted log-probabilities into ``logp_new`` and set the drift to 1.

    Returns
    -------
    Scenario
        With the same evaluation, bit for bit, but for ``held``. What stands at positions
        that do not count stays; at drift 1 the scenario itself.
    """
    if scenario.drift == 1.0:
        return scenario
    effective, _ = effective_logp_new(scenario)
    stored = scenario["logp_new"]
    kept = np.where(scenario.valid, effective.astype(stored.dtype), stored)
    return replace(scenario.replace(logp_new=kept), drift=1.0)


def unmoved(scenario):
    """Valid tokens with a stored ``logp_new`` equal to ``logp_old``, which no drift moves.

    Returns
    -------
    ndarray of bool, shape (P, G, L)
        Tokens at -inf are not among them: no step leads away from there.
    """
    new, old = scenario["logp_new"], scenario["logp_old"]
    return scenario.valid & np.equal(new, old) & np.isfinite(old)


def seeded_direction(scenario, seed=0):
    """Move the unmoved tokens by a small random step, so that the drift has somewhere to go.

    Parameters
    ----------
    scenario : Scenario
    seed : int
        The same seed gives the same steps to every batch of the same shape.

    Returns
    -------
    Scenario
        ``logp_new = logp_old + step`` with steps of 0.1 nats (standard deviation) at the
        `unmoved` tokens; a step that would lead above 0 goes the other way. All other
        tokens and the drift are as they were.
    """
    new, old = scenario["logp_new"], scenario["logp_old"]
    step = np.random.default_rng(seed).normal(0.0, _STEP, new.shape).astype(new.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        moved = np.where(old + step > 0, old - np.abs(step), old + step)
    return scenario.replace(logp_new=np.where(unmoved(scenario), moved.astype(new.dtype), new))
