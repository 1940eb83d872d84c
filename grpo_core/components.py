"""Components of a score: the task reward and the shaping terms, each with its weight."""

from dataclasses import dataclass

import numpy as np

from .numerics import plus, times, total


@dataclass(frozen=True, eq=False)
class Components:
    """What a score is made of, task first: C components of P x G completions.

    Attributes
    ----------
    names : tuple of str, (C,)
    weights : ndarray, (C,)
    values : ndarray, (C, P, G)
        Unweighted, a term per token summed over its completion; NaN where it is missing.
    known : ndarray of bool, (C, P, G)
        Which values take part: with ``missing='as_zero'`` also those that are NaN.
    weighted : ndarray, (C, P, G)
        Weight times value, 0 where not known; the task's less the KL penalty in the reward,
        which comes off every score.
    penalty : ndarray, (P, G)
        What the KL in the reward adds to the score: at most 0 as a rule; 0 where not scored.
    past : mapping from component to ndarray, (P, G, L)
        Of terms that enter as returns to go: what was earned before each token, unweighted.
    """

    names: tuple[str, ...]
    weights: np.ndarray
    values: np.ndarray
    known: np.ndarray
    weighted: np.ndarray
    penalty: np.ndarray
    past: dict

    @property
    def scored(self):
        """Completions of which at least one component is known, (P, G)."""
        return np.any(self.known, axis=0)


def components(batch, reward_penalty, *, task_weight, missing, tokens):
    """Task reward and terms of a batch as components of its scores.

    Parameters
    ----------
    batch : Batch
    reward_penalty : ndarray, shape (P, G, L)
    task_weight : float
    missing : {'leave_out', 'as_zero'}
    tokens : {'to_go', 'sum'}
        How terms per token enter.

    Returns
    -------
    Components
    """
    per_token = {k: term.values for k, term in enumerate(batch.terms, 1) if term.values.ndim == 3}
    summed = [
        total(term.values, axis=-1) if term.values.ndim == 3 else term.values
        for term in batch.terms
    ]
    values = np.stack([batch.rewards, *summed]).astype(np.float64)
    weights = np.array([task_weight, *(term.weight for term in batch.terms)])
    known = batch.present & (~np.isnan(values) | (missing == "as_zero"))
    finite = np.where(known & ~np.isnan(values), values, 0.0)
    with np.errstate(over="ignore"):
        weighted = times(weights[:, None, None], finite)
        # Negated before the sum, as in the row 'outcome': infinities of both signs give -inf.
        penalty = total(-reward_penalty, axis=-1)
        penalty = np.where(np.any(known, axis=0), penalty, 0.0)
        weighted[0] = plus(weighted[0], penalty)
    return Components(
        names=("task", *(term.name for term in batch.terms)),
        weights=weights,
        values=np.where(batch.present, values, np.nan),
        known=known,
        weighted=weighted,
        penalty=penalty,
        past={k: _before(array) for k, array in per_token.items()} if tokens == "to_go" else {},
    )


def _before(rewards):
    """Sum of the rewards of the tokens before each token, (P, G, L)."""
    earlier = np.concatenate([np.zeros_like(rewards[..., :1]), rewards[..., :-1]], axis=-1)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        sums = np.cumsum(earlier, axis=-1, dtype=np.float64)
        # As in `total`: a sum within range is right also where a part of it is not.
        units = np.cumsum(np.ldexp(earlier.astype(np.float64), -64), axis=-1)
        return np.where(np.isfinite(sums), sums, np.ldexp(units, 64))
