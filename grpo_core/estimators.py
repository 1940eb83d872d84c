"""The KL estimators against the exact KL, over two distributions small enough to sum over.

x is sampled from the policy. Values, moments and gradients are exact sums over the
vocabulary; the samples show what a trainer sees of them. Schulman, "Approximating KL
divergence" (2020).
"""

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from .kl_curves import kl_curve
from .numerics import difference, times, total
from .stages import STAGES

# Pairs worth a look, policy and reference. The first stands where an example has none.
PAIRS = MappingProxyType(
    {
        "Two tokens": ((0.5, 0.5), (0.9, 0.1)),
        "Near the reference": ((0.5, 0.3, 0.2), (0.4, 0.4, 0.2)),
        "Far from the reference": ((0.9, 0.099, 0.001), (0.2, 0.3, 0.5)),
        "A token that the policy gave up": ((0.7, 0.3, 0.0), (0.4, 0.4, 0.2)),
        "A token that the reference never gives": ((0.6, 0.3, 0.1), (0.5, 0.5, 0.0)),
    }
)
_KEYS = ("dist_new", "dist_ref")
RUNS, MOST = 200, 1024  # repeats, and samples in each
POINTS = 48
TAILS = (0.05, 0.95)
_SAME = 1e-9  # gradients this close are the same
_ROUNDING = 1e-14  # of what was added up; a smaller sum is 0


@dataclass(frozen=True, eq=False)
class Estimator:
    """One estimator over a vocabulary of V tokens.

    ``values`` (V,) are its values at each token, 0 where the policy never samples it.
    ``expected`` and ``std`` are those of one sample, ``bias`` is the distance of the former
    from the exact KL. ``gradient`` (V,) is the expected gradient by the policy's logits
    with the sampling held fixed, None if it is infinite. ``gradient_of`` names the KL
    whose gradient that is: ``reverse``, ``forward``, ``both``, or ``neither``.
    """

    key: str
    label: str
    values: np.ndarray
    expected: float
    bias: float
    std: float
    gradient: np.ndarray | None
    gradient_of: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two distributions, their exact KL both ways, and the estimators beside it.

    ``new`` and ``ref`` (V,) add up to 1; ``sums`` are what they added up to as given.
    ``reverse`` is KL(new || ref), ``forward`` KL(ref || new); their gradients by the
    policy's logits are None where they are infinite. ``missing`` is the reference's mass
    on tokens that the policy never samples.
    """

    new: np.ndarray
    ref: np.ndarray
    sums: tuple[float, float]
    reverse: float
    forward: float
    reverse_gradient: np.ndarray | None
    forward_gradient: np.ndarray | None
    missing: float
    estimators: dict[str, Estimator]


@dataclass(frozen=True, eq=False)
class Samples:
    """Means of one estimator over the first n of many samples, C counts n.

    ``running`` (C,) is that of the first run; ``low`` and ``high`` (C,) are the 5% and 95%
    quantiles over all runs, ``mean`` and ``std`` (C,) their mean and standard deviation.
    """

    counts: np.ndarray
    running: np.ndarray
    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    std: np.ndarray


def with_distributions(scenario):
    """The scenario with both distributions in it, the default ones if it holds neither.

    One that stands alone is compared with the uniform distribution.
    """
    held = [key for key in _KEYS if key in scenario]
    if len(held) == 2:
        return scenario
    if not held:
        return scenario.replace(**dict(zip(_KEYS, PAIRS["Two tokens"], strict=True)))
    (other,) = set(_KEYS) - set(held)
    size = scenario[held[0]].size
    return scenario.replace(**{other: np.full(size, 1 / size)})


def resize_distributions(scenario, size):
    """Both distributions cut or filled up with tokens of probability 0."""
    whole = with_distributions(scenario)
    kept = {key: whole[key][:size] for key in _KEYS}
    return whole.replace(
        **{key: np.pad(array, (0, size - array.size)) for key, array in kept.items()}
    )


def seed_of(scenario):
    """The seed that an example is sampled with; 0 if it holds none."""
    return int(scenario["seed"]) if "seed" in scenario else 0


def compare(scenario):
    """Exact KL of a scenario's two distributions, and every KL row as its estimator.

    Returns
    -------
    Comparison
    """
    whole = with_distributions(scenario)
    new, ref = _normalised(whole["dist_new"]), _normalised(whole["dist_ref"])
    reverse, forward = exact_kl(new, ref), exact_kl(ref, new)
    targets = {
        "reverse": _centred(new, -_log_ratio(new, ref)) if np.isfinite(reverse) else None,
        "forward": new - ref if np.isfinite(forward) else None,
    }
    return Comparison(
        new=new,
        ref=ref,
        sums=tuple(float(total(whole[key])) for key in _KEYS),
        reverse=reverse,
        forward=forward,
        reverse_gradient=targets["reverse"],
        forward_gradient=targets["forward"],
        missing=float(total(ref[new == 0])),
        estimators={
            key: _estimator(row, new, ref, reverse, targets)
            for key, row in STAGES["kl"].variants.items()
        },
    )


def exact_kl(p, q):
    """KL(p || q) of two distributions (V,); infinite where q is 0 and p is not."""
    return max(float(total(times(p, -_log_ratio(p, q)))), 0.0)


def _normalised(weights):
    weights = weights.astype(np.float64)
    weights = weights / np.max(weights)  # so that the sum stays in range
    return weights / np.sum(weights)


def _log_ratio(p, q):
    """log(q / p) where p has mass, else 0."""
    with np.errstate(divide="ignore"):
        log_p, log_q = np.log(p), np.log(q)
    return np.where(p > 0, difference(log_q, log_p), 0.0)


def _centred(new, slope):
    """``new (slope - E slope)``: the expected gradient by the logits of a slope by log new."""
    if not np.all(np.isfinite(slope)):
        return None
    gradient = new * (slope - np.sum(new * slope))
    # What rounding can leave of each entry, judged by what it is made of: a rare token with a
    # steep slope must not hide the others.
    rounding = _ROUNDING * new * (np.abs(slope) + np.sum(new * np.abs(slope)))
    return np.where(np.abs(gradient) <= rounding, 0.0, gradient)


def _estimator(row, new, ref, kl, targets):
    value, slope = kl_curve(row.key, _log_ratio(new, ref))
    sampled = new > 0
    value, slope = np.where(sampled, value, 0.0), np.where(sampled, slope, 0.0)
    expected = float(total(times(new, value)))
    deviation = value - expected if np.isfinite(expected) else np.where(sampled, np.inf, 0)
    with np.errstate(over="ignore"):
        spread = np.square(deviation)
    bias = float(difference(np.float64(expected), np.float64(kl)))
    gradient = _centred(new, slope)
    return Estimator(
        key=row.key,
        label=row.label,
        values=value,
        expected=expected,
        bias=0.0 if abs(bias) <= _ROUNDING * max(abs(expected), 1.0) else bias,
        std=float(np.sqrt(total(times(new, spread)))),
        gradient=gradient,
        gradient_of=_whose(gradient, targets),
    )


def _whose(gradient, targets):
    """Which of the two KLs has this gradient."""
    if gradient is None:
        return "neither"
    same = [
        name
        for name, target in targets.items()
        if target is not None and np.allclose(gradient, target, rtol=_SAME, atol=_SAME)
    ]
    return "both" if len(same) == 2 else same[0] if same else "neither"


def sample(comparison, seed=0):
    """Draw tokens from the policy, many times over, and average each estimator.

    Parameters
    ----------
    comparison : Comparison
    seed : int

    Returns
    -------
    dict of str to Samples
        For each estimator; all of them see the same tokens.
    """
    counts = np.unique(np.rint(np.geomspace(1, MOST, POINTS)).astype(int))
    uniform = np.random.default_rng(int(seed)).random((RUNS, MOST))
    (there,) = np.nonzero(comparison.new)
    edges = np.cumsum(comparison.new[there])[:-1]
    tokens = there[np.searchsorted(edges, uniform, side="right")]
    return {
        key: _averages(row.values[tokens], counts) for key, row in comparison.estimators.items()
    }


def _averages(values, counts):
    starts = np.concatenate([[0], counts[:-1]])
    means = np.cumsum(np.add.reduceat(values, starts, axis=1), axis=1) / counts
    # No interpolation between runs: some may be infinite.
    low, high = np.quantile(means, TAILS, axis=0, method="nearest")
    finite = np.all(np.isfinite(means), axis=0)
    std = np.std(np.where(finite, means, 0.0), axis=0)
    return Samples(
        counts=counts,
        running=means[0],
        low=low,
        high=high,
        mean=np.mean(means, axis=0),
        std=np.where(finite, std, np.inf),
    )
