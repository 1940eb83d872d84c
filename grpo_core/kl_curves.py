"""Curves of the KL rows: value and slope against d, computed by the rows themselves."""

import numpy as np

from .batch import Batch
from .evaluation import evaluate
from .numerics import difference, nested_total, times
from .ratio import Ratio
from .stages import STAGES
from .variants import Choice, complete_choice


def kl_curve(variant, d, options=None):
    """Estimate and derivative of one KL row, before any weighting by beta.

    Parameters
    ----------
    variant : str
        Key of a row of the KL stage.
    d : array-like
        ``logp_ref - logp_new`` of the sampled token; may be infinite.
    options : mapping, optional
        Options of the row; beta, place and weight are set here, and what the row does not
        know is left out.

    Returns
    -------
    value, derivative : ndarray, shaped like `d`
        The estimate and its derivative by ``logp_new``.

    Examples
    --------
    >>> value, derivative = kl_curve("k2", [0.5])
    >>> value.item(), derivative.item()
    (0.125, -0.5)
    """
    stage = STAGES["kl"]
    row = stage.variants[variant]
    known = {option.key for option in row.options}
    wanted = {**(options or {}), "beta": 1.0, "place": "objective", "weight": "none"}
    choice = complete_choice(
        stage, Choice(variant, {key: value for key, value in wanted.items() if key in known})
    )
    d = np.asarray(d)
    batch = _batch(d)
    one = np.ones_like(batch.logp_new)
    kl = row.function(batch, Ratio(one - 1, one, lambda gradient: gradient), **choice.options)
    return kl.value.reshape(d.shape), kl.derivative.reshape(d.shape)


def _batch(d):
    """One completion whose tokens have these d: the policy is sure of each, log 1 = 0."""
    d = d if d.dtype == np.float32 else d.astype(np.float64)
    zero = np.zeros((1, 1, d.size), dtype=d.dtype)
    return Batch(
        rewards=np.zeros((1, 1), dtype=d.dtype),
        present=np.ones((1, 1), dtype=bool),
        valid=np.ones((1, 1, d.size), dtype=bool),
        logp_new=zero,
        logp_old=zero,
        logp_ref=d.reshape(1, 1, -1),
    )


def kl_distance(evaluation):
    """The d of every token as its KL reads it, 0 where nothing counts; (P, G, L).

    ``logp_ref - logp_new``, or ``logp_ref - logp_old`` where the KL enters the reward.
    """
    place = evaluation.scenario.conventions["kl"].options.get("place", "objective")
    policy = evaluation.logp_new if place == "objective" else evaluation.logp_old
    return np.where(evaluation.valid, difference(evaluation.logp_ref, policy), 0)


def mean_estimates(evaluation):
    """What each KL row gives as the mean KL of the same tokens under the same weights.

    Returns
    -------
    dict of str to float
        By the row's key; the chosen row's is `Evaluation.mean_kl`.
    """
    d = kl_distance(evaluation)
    options = evaluation.scenario.conventions["kl"].options
    by_ratio = options.get("weight") == "ratio" and options.get("place") == "objective"

    def mean(key):
        value = kl_curve(key, d, options)[0]
        value = times(evaluation.ratio, value) if by_ratio else value
        return nested_total(times(evaluation.weight, value))

    return {key: mean(key) for key in STAGES["kl"].variants}


def place_words(scenario):
    """Where the chosen KL row's penalty may enter, in words; empty if there is no choice."""
    rows = scenario.conventions.variant("kl").options
    return next((row.domain.words for row in rows if row.key == "place"), {})


def in_each_place(evaluation):
    """The same batch with its penalty in each place that the KL row offers.

    Returns
    -------
    dict of str to Evaluation
        By the value of the option ``place``; the present one is `evaluation` itself.
    """
    scenario = evaluation.scenario
    present = scenario.conventions["kl"].options.get("place")
    return {
        place: evaluation if place == present else evaluate(scenario.choose("kl", place=place))
        for place in place_words(scenario)
    }
