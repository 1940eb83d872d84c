"""What long and short completions count: the weight of a token under every aggregation."""

from dataclasses import dataclass, replace

import numpy as np

from .breakdown import aggregations
from .errors import ScenarioError
from .inputs import checked_array
from .numerics import times, total
from .scenario import as_batch
from .variants import Choice, Number

_POINTS = 60


@dataclass(frozen=True, eq=False, kw_only=True)
class LengthRow:
    """One aggregation on a batch.

    Attributes
    ----------
    choice : Choice
    label : str
    chosen : bool
        Whether the scenario's own conventions say so.
    token : ndarray, (P, G)
        Weight of one token of each completion; 0 without tokens.
    completion : ndarray, (P, G)
        Weight of all of its tokens together.
    push : ndarray, (P, G)
        ``token * advantage``: how hard one token is pushed, and which way.
    """

    choice: Choice
    label: str
    chosen: bool
    token: np.ndarray
    completion: np.ndarray
    push: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class LengthWeights:
    """Weights under every aggregation, completions of the same batch by their lengths.

    ``right`` and ``wrong`` (P, G) are those with an advantage above and below 0; with
    rewards of 0 and 1 the right and the wrong answers of groups that are not tied.
    """

    lengths: np.ndarray
    right: np.ndarray
    wrong: np.ndarray
    advantages: np.ndarray
    rows: tuple[LengthRow, ...]


def length_weights(evaluation):
    """Weight of a token and of a completion under every aggregation that there is.

    Parameters
    ----------
    evaluation : Evaluation
        Of a scenario.

    Returns
    -------
    LengthWeights
        Its rows are those of `grpo_core.breakdown.aggregations`.
    """
    advantages = evaluation.advantages
    rows = []
    for row in aggregations(evaluation):
        token = row.first_weight.astype(np.float64)
        rows.append(
            LengthRow(
                choice=row.choice,
                label=row.label,
                chosen=row.chosen,
                token=token,
                completion=total(row.evaluation.weight, axis=2),
                push=times(token, advantages),
            )
        )
    filled = evaluation.lengths > 0
    return LengthWeights(
        lengths=evaluation.lengths,
        right=(advantages > 0) & filled,
        wrong=(advantages < 0) & filled,
        advantages=advantages,
        rows=tuple(rows),
    )


def weight_curves(evaluation, where, lengths=None, among=None):
    """Weight of a token of one completion, if that had another length and all else stayed.

    Parameters
    ----------
    evaluation : Evaluation
        Of a scenario.
    where : (int, int)
        Prompt and completion.
    lengths : array-like of int, shape (N,), optional
        From 1 to the width L of the batch; default: up to 60 of them over that range.
    among : container of str, optional
        Keys of the aggregations that are wanted beside the chosen one; default: all.

    Returns
    -------
    lengths : ndarray of int, shape (N,)
    curves : dict of str to ndarray, shape (N,)
        By the label of a row of `length_weights`.

    Raises
    ------
    ScenarioError
        A length beyond the width: with `with_lengths` the batch can be widened.
    """
    scenario, batch = evaluation.scenario, as_batch(evaluation.scenario)[0]
    width = batch.valid.shape[2]
    where = _completion(where, batch.present)
    if lengths is None:
        lengths = np.unique(np.rint(np.geomspace(1, width, _POINTS)).astype(int))
    lengths = checked_array("lengths", lengths, "S", Number(low=1, high=width, integer=True))
    curves = {}
    for row in aggregations(evaluation):
        if among is not None and row.choice.variant not in among and not row.chosen:
            continue
        conventions = scenario.conventions.replace(
            "aggregation", row.choice.variant, **row.choice.options
        )
        curves[row.label] = np.array(
            [_first_weight(batch, conventions, where, n) for n in lengths.astype(int)]
        )
    return lengths.astype(int), curves


def _completion(where, present):
    p, g = (int(index) for index in where)
    if not (0 <= p < present.shape[0] and 0 <= g < present.shape[1] and present[p, g]):
        raise ScenarioError(
            f"there is no completion {g} of prompt {p}; wanted one that is present",
            field="where",
            where=(p, g),
        )
    return p, g


def _first_weight(batch, conventions, where, length):
    valid = batch.valid.copy()
    valid[where] = np.arange(valid.shape[2]) < length
    return float(conventions.run("aggregation", replace(batch, valid=valid))[where][0])
