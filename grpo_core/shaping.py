"""Shaped rewards by themselves, for use without a scenario."""

from dataclasses import dataclass, replace

import numpy as np

from .arrays import ARRAYS, as_array, check_cells, check_shape
from .attribution import spread_shares
from .batch import prepare
from .errors import ScenarioError
from .inputs import checked_array
from .shaping_parts import WEIGHT
from .stages import STAGES, Conventions
from .terms import TermValues
from .variants import Choice

_SCALES = {"std": ("mean_std", ("ddof", "eps")), "none": ("mean_only", ())}


@dataclass(frozen=True, eq=False)
class Shaped:
    """A shaped reward, the advantages that follow, and what each component has in them.

    Components C are the task and the terms, in this order.

    Attributes
    ----------
    rewards : ndarray, (P, G)
        Weighted sum of task and terms, terms per token summed; 0 where nothing is known.
    advantages : ndarray, (P, G)
    token_advantages : ndarray, (P, G, L)
        L is 1 where neither a term per token nor a mask was given.
    parts : ndarray, (C, P, G)
        They add up to the advantages.
    shares : ndarray, (C, P)
        Share of each component in the spread of its group; they sum to 1, or are all 0 in a
        group whose advantages are equal.
    """

    rewards: np.ndarray
    advantages: np.ndarray
    token_advantages: np.ndarray
    parts: np.ndarray
    shares: np.ndarray


def shaped_rewards(
    task,
    terms,
    weights,
    *,
    combine="sum_then_normalize",
    mask=None,
    missing="leave_out",
    tokens="to_go",
    task_weight=1.0,
    scale="std",
    ddof=0,
    eps=1e-8,
    batch_scale="none",
    batch_eps=1e-4,
):
    """Combine task rewards with shaping terms, and say which of them drives the update.

    Parameters
    ----------
    task : array-like, shape (P, G)
        Task reward of each completion; NaN is missing.
    terms : sequence of array-like, each (P, G) or (P, G, L)
        Values of each term per completion, NaN where it does not apply, or per token.
    weights : sequence of float
        One for each term.
    combine : {'sum_then_normalize', 'normalize_then_sum', 'add_after'}
        A row of ``STAGES['rewards']`` that takes terms.
    mask : array-like of 0/1, shape (P, G, L), optional
        Tokens that count; needed for terms per token and for ``batch_scale='token'``.
    missing : {'leave_out', 'as_zero'}
    tokens : {'to_go', 'sum'}
        Terms per token as returns to go, or summed over the completion.
    task_weight : float
    scale : {'std', 'none'}
        Divide by std + eps, or by nothing.
    ddof, eps
        Of the standard deviation.
    batch_scale, batch_eps
        Second normalisation of 'normalize_then_sum'.

    Returns
    -------
    Shaped

    Raises
    ------
    ScenarioError
        Unlike shapes, text, infinities, another number of weights than of terms, an unknown
        way of combining.

    Notes
    -----
    Summed before normalisation a term's part of an advantage is ``w_k (r_k - its group mean)
    / (std of the sum + eps)``, and its share of the group's spread is ``cov(w_k r_k, sum) /
    var(sum)``, which can be negative. TRL: ``multi_objective_aggregation``; verl's
    ``gdpo`` is 'normalize_then_sum' with ``batch_scale='token'``.

    Examples
    --------
    >>> shaped = shaped_rewards([[1, 1, 1, 1]], [[[1, 0, 0, 0]]], [0.01])
    >>> shaped.advantages.round(3).tolist()
    [[1.732, -0.577, -0.577, -0.577]]
    """
    task = _checked("task", task, ARRAYS["rewards"])
    known = [key for key, row in STAGES["rewards"].variants.items() if key != "outcome"]
    if combine not in known:
        raise ScenarioError(
            f"combine is {combine!r}; wanted one of {', '.join(known)}", field="combine"
        )
    if scale not in _SCALES:
        raise ScenarioError(f"scale is {scale!r}; wanted 'std' or 'none'", field="scale")
    arrays = [_term(k, term) for k, term in enumerate(terms)]
    valid = _mask(mask, task, arrays)
    for k, array in enumerate(arrays):
        like = "task" if array.ndim == 2 else "mask"
        spec = ARRAYS["rewards" if array.ndim == 2 else "token_rewards"]
        check_shape(f"term {k}", array, valid.shape[: array.ndim], like, spec)
        check_cells(f"term {k}", array, spec, valid if array.ndim == 3 else np.True_)
    options = {
        "task_weight": task_weight,
        "missing": missing,
        "tokens": tokens,
        "batch_scale": batch_scale,
        "batch_eps": batch_eps,
    }
    taken = {option.key for option in STAGES["rewards"].variants[combine].options}
    variant, keys = _SCALES[scale]
    conventions = Conventions(
        {
            "rewards": Choice(combine, {key: options[key] for key in options if key in taken}),
            "advantage": Choice(variant, {key: {"ddof": ddof, "eps": eps}[key] for key in keys}),
        }
    )
    batch = _batch(task, valid, arrays, _weights(weights, len(arrays)))
    scores = conventions.run("rewards", batch, np.zeros(valid.shape))
    result = conventions.run("advantage", batch, scores)
    return Shaped(
        rewards=scores.scores,
        advantages=result.advantages,
        token_advantages=result.token_advantages,
        parts=result.parts,
        shares=spread_shares(result.parts, scores.scored),
    )


def _batch(task, valid, terms, weights):
    """A `Batch` in which only rewards and terms matter: new, old and reference policy agree."""
    nothing = np.zeros(valid.shape)
    batch = prepare(
        rewards=task,
        mask=valid,
        present=np.ones(task.shape, bool),
        logp_new=nothing,
        logp_old=nothing,
        logp_ref=nothing,
    )
    columns = tuple(
        TermValues(f"term {k}", weight, np.where(valid, term, 0.0) if term.ndim == 3 else term)
        for k, (weight, term) in enumerate(zip(weights, terms, strict=True))
    )
    return replace(batch, terms=columns)


def _checked(name, value, spec):
    array = as_array(name, value, spec)
    if array.size == 0:
        raise ScenarioError(f"{name} has shape {array.shape}; wanted no empty axis", field=name)
    check_cells(name, array, spec, np.ones(array.shape, bool))
    return array


def _term(k, value):
    """One term per completion, or per token where it is nested one deeper."""
    try:
        deep = np.ndim(value) == 3
    except ValueError:  # ragged: the shallower reading names the row
        deep = False
    spec = ARRAYS["token_rewards"] if deep else ARRAYS["rewards"]
    return as_array(f"term {k}", value, spec)


def _mask(mask, task, terms):
    per_token = next((term for term in terms if term.ndim == 3), None)
    if mask is None and per_token is None:
        return np.ones((*task.shape, 1), bool)
    if mask is None:
        raise ScenarioError("a term per token needs the mask of its tokens", field="mask")
    mask = as_array("mask", mask, ARRAYS["mask"])
    check_shape("mask", mask, (*task.shape, mask.shape[-1]), "task and its tokens", ARRAYS["mask"])
    return mask


def _weights(weights, count):
    none = isinstance(weights, (list, tuple)) and not weights
    values = np.zeros(0) if none else checked_array("weights", weights, "S", WEIGHT)
    if len(values) != count:
        raise ScenarioError(
            f"there are {len(values)} weights for {count} terms; wanted one for each",
            field="weights",
        )
    return values.tolist()
