"""What clipping does to each token: the six cases, how many tokens, how much of the gradient."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .batch import prepare
from .numerics import exp, plus, times, total
from .ratio import Ratio
from .scenario import as_batch
from .surrogate_weighted import cispo_bounds
from .variants import table


@dataclass(frozen=True, kw_only=True)
class Case:
    """One fate of a token. ``stopped`` tokens get no gradient from the surrogate."""

    key: str
    label: str
    help: str
    stopped: bool = False


# A token's case is the first whose flag is set, see `cases_of`; the order here is for reading.
CASES = table(
    Case(key="inside", label="inside the band", help="inside the band: the gradient stays"),
    Case(
        key="outside",
        label="outside, kept",
        help="outside the band on the side that its advantage leaves open: the gradient stays",
    ),
    Case(
        key="clipped_high",
        label="clipped high",
        help="A > 0 and the ratio above the band: no gradient",
        stopped=True,
    ),
    Case(
        key="clipped_low",
        label="clipped low",
        help="A < 0 and the ratio below the band: no gradient",
        stopped=True,
    ),
    Case(
        key="dual_clipped",
        label="dual-clipped",
        help="A < 0 and the ratio beyond the dual clip: no gradient",
        stopped=True,
    ),
    Case(key="no_advantage", label="A = 0", help="A = 0: nothing to clip, and no gradient"),
)


@dataclass(frozen=True, kw_only=True)
class CaseCount:
    """How many tokens share one case.

    Attributes
    ----------
    case : Case
    tokens : int
    share : float
        Of the valid tokens counted, 0 if there are none.
    gradient : float
        Of the policy gradient's size as it would be without clipping: the sum over tokens of
        `unclipped_pull`. What the stopped cases have of it is lost. 0 if there is none.
    where : tuple of int or None
        The token with the largest such gradient; of equal ones the first.
    """

    case: Case
    tokens: int
    share: float
    gradient: float
    where: tuple | None


# Bands of rows whose bounds are not offsets from a ratio of 1; None bounds something else.
_BANDS = {
    ("dppo_tv", None): lambda options: None,
    ("dppo_kl", None): lambda options: None,
    ("cispo", "absolute"): lambda options: cispo_bounds(**options),
    ("gmpo", None): lambda options: exp([-options["log_low"], options["log_high"]]),
}


def clip_band(conventions, dtype=np.float64):
    """Edges (low, high) of the clip band in one number type; None where there is no band."""
    choice = conventions["surrogate"]
    band = _BANDS.get((choice.variant, choice.options.get("bound")), _offsets)(choice.options)
    return None if band is None else tuple(np.dtype(dtype).type(edge) for edge in band)


def _offsets(options):
    if "epsilon_low" not in options or "epsilon_high" not in options:
        return None
    return 1 - options["epsilon_low"], 1 + options["epsilon_high"]


def cases_of(flags, ratio, token_advantages, band):
    """Case of each token as its position in `CASES`.

    Parameters
    ----------
    flags : Surrogate or Evaluation
        Has ``clipped_low``, ``clipped_high`` and ``dual_clipped``.
    ratio, token_advantages : ndarray, any shape
    band : (float, float) or None

    Returns
    -------
    ndarray of int, that shape
    """
    low, high = (-np.inf, np.inf) if band is None else band
    first = {
        "no_advantage": np.equal(token_advantages, 0),
        "dual_clipped": flags.dual_clipped,
        "clipped_high": flags.clipped_high,
        "clipped_low": flags.clipped_low,
        "outside": (ratio < low) | (ratio > high),
    }
    keys = list(CASES)
    found = np.select(
        list(first.values()), [keys.index(key) for key in first], keys.index("inside")
    )
    return found.astype(np.int8)


def clip_cases(evaluation, prompts=None):
    """Count the tokens of every case; the counts sum to the valid tokens.

    Parameters
    ----------
    evaluation : Evaluation
        Of a scenario.
    prompts : int, sequence of int, or None
        Which prompts to count; None is all.

    Returns
    -------
    tuple of CaseCount
        One for each row of `CASES`, in its order.

    Notes
    -----
    The share of tokens that is clipped is not the share of the gradient that is lost: low
    clipping counts many tokens with small ratios, high clipping few with large ones.
    """
    counted = np.zeros_like(evaluation.valid)
    chosen = slice(None) if prompts is None else prompts
    counted[chosen] = evaluation.valid[chosen]
    pull = np.where(counted, times(unclipped_pull(evaluation), evaluation.factor), 0)
    band = clip_band(evaluation.scenario.conventions, evaluation.ratio.dtype)
    case = cases_of(evaluation, evaluation.ratio, evaluation.token_advantages, band)
    tokens, size = int(np.sum(counted)), float(total(pull))
    return tuple(
        _count(row, counted & (case == index), pull, tokens, size)
        for index, row in enumerate(CASES.values())
    )


def _count(row, among, pull, tokens, size):
    n = int(np.sum(among))
    largest = np.argmax(np.where(among, pull, -1.0))
    return CaseCount(
        case=row,
        tokens=n,
        share=n / tokens if tokens else 0.0,
        gradient=float(total(np.where(among, pull, 0))) / size if size else 0.0,
        where=tuple(int(i) for i in np.unravel_index(largest, among.shape)) if n else None,
    )


def unclipped_pull(evaluation):
    """Size of each token's policy gradient without clipping, against the largest of them.

    ``weight * abs(A) * ratio`` (P, G, L), by way of logarithms: ratios may be beyond any number.
    Where a row's slope is another than A, a token that is not stopped counts with its own. The
    factor of selection and correction is not in it.
    """
    size = np.abs(evaluation.token_advantages).astype(np.float64)
    own = _own_slope(evaluation)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        log_slope = plus(np.log(size), evaluation.log_ratio)  # log(0) = -inf
        if own is not None:
            log_slope = np.where(_stopped(evaluation), log_slope, np.log(own))
        log_pull = plus(np.log(evaluation.weight.astype(np.float64)), log_slope)
        top = np.max(log_pull, initial=-np.inf)
        relative = np.where(log_pull == top, 0.0, log_pull - top)  # inf - inf would be NaN
        return np.where(evaluation.valid & (size > 0), np.exp(relative), 0.0)


def _stopped(evaluation):
    return evaluation.clipped_low | evaluation.clipped_high | evaluation.dual_clipped


def _own_slope(evaluation):
    """Size of each token's derivative by logp_new; None where it is ``A * ratio`` or 0."""
    conventions = evaluation.scenario.conventions
    if follows_ratio(conventions):
        return None
    batch, _ = as_batch(evaluation.scenario)
    ratio = conventions.run("ratio", batch)
    surrogate = conventions.run("surrogate", batch, ratio, evaluation.token_advantages)
    slope = times(surrogate.d_ratio, ratio.ratio).astype(np.float64)
    return np.abs(slope if surrogate.d_logp is None else plus(slope, surrogate.d_logp))


def follows_ratio(conventions):
    """Whether the slope by the ratio is A or 0; a row that couples tokens itself counts as such."""
    probe = _probe(conventions)
    return probe.d_logp is None and probe.d_ratio.item() in (0.0, 1.0)


def weights_log_probability(conventions):
    """Whether the surrogate is a log-probability times a weight, and no function of the ratio."""
    return _probe(conventions).d_logp is not None


@lru_cache(maxsize=256)
def _probe(conventions):
    """The surrogate of one token of advantage 1 and a ratio near 1."""
    ratios, old = np.full((1, 1, 1), 1.01), np.full((1, 1, 1), -1.0)
    batch = prepare(
        rewards=np.ones((1, 1)), mask=np.ones((1, 1, 1), bool), present=np.ones((1, 1), bool),
        logp_new=old + np.log(ratios), logp_old=old, logp_ref=old,
    )  # fmt: skip
    ratio = Ratio(np.log(ratios), ratios, lambda gradient: times(gradient, ratios))
    return conventions.run("surrogate", batch, ratio, np.ones((1, 1, 1)))
