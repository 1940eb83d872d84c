"""ARRAYS: every array that a scenario may hold, one row each.

Editors, paste, the link codec, files and error messages read this table.
"""

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .errors import ScenarioError, place
from .variants import table

# Log-softmax in float32 can end up above 0 by rounding alone; more than this is an error.
LOGP_ROUNDING = 1e-4
# Tokens of a vocabulary small enough to edit by hand and to sum over exactly.
VOCABULARY = (2, 8)
LARGEST_SEED = 999_999


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a valid cell may hold, in words and as a test over an array."""

    words: str
    holds: Callable


@dataclass(frozen=True, kw_only=True)
class ArraySpec:
    """One array: its axes (of P, G, L; '' is a single number), cell type, filler and rule.

    An array over ``V``, the tokens of a small vocabulary, has a size of its own and stands
    beside the batch. ``default`` fills the cells that a resize adds. ``required`` arrays are
    always there; the others may be absent from a scenario.
    """

    key: str
    axes: str
    kind: str  # 'float' or 'bool'
    default: float | bool
    label: str
    rule: Rule
    help: str
    required: bool = True


_REWARD = Rule(
    words="a finite number, or blank for a missing score",
    holds=lambda values: np.isfinite(values) | np.isnan(values),
)
_LOGP = Rule(
    words="a log-probability: a number of at most 0, or -inf",
    holds=lambda values: np.less_equal(values, LOGP_ROUNDING),  # False for NaN
)
_FINITE = Rule(words="a finite number", holds=np.isfinite)
_PROBABILITY = Rule(
    words="a probability or a weight: a finite number of at least 0",
    holds=lambda values: np.isfinite(values) & np.greater_equal(values, 0),
)
_SEED = Rule(
    words=f"a whole number from 0 to {LARGEST_SEED:,}",
    holds=lambda values: (
        np.greater_equal(values, 0)
        & np.less_equal(values, LARGEST_SEED)
        & np.equal(np.trunc(values), values)
    ),
)
_FLAG = Rule(words="true or false", holds=lambda values: np.ones(np.shape(values), bool))

ARRAYS = table(
    ArraySpec(
        key="rewards",
        axes="PG",
        kind="float",
        default=0.0,
        label="Rewards",
        rule=_REWARD,
        help="One score per completion. Blank means that it was not scored.",
    ),
    ArraySpec(
        key="logp_new",
        axes="PGL",
        kind="float",
        default=-1.0,
        label="Log-probabilities, new policy",
        rule=_LOGP,
        help="Of each sampled token under the policy being trained.",
    ),
    ArraySpec(
        key="logp_old",
        axes="PGL",
        kind="float",
        default=-1.0,
        label="Log-probabilities, old policy",
        rule=_LOGP,
        help="Of each sampled token under the policy that sampled it.",
    ),
    ArraySpec(
        key="logp_ref",
        axes="PGL",
        kind="float",
        default=-1.0,
        label="Log-probabilities, reference policy",
        rule=_LOGP,
        help="Of each sampled token under the frozen reference policy.",
    ),
    ArraySpec(
        key="mask",
        axes="PGL",
        kind="bool",
        default=True,
        label="Mask",
        rule=_FLAG,
        help="Which token positions count. Padding, tool output and the like do not.",
    ),
    ArraySpec(
        key="present",
        axes="PG",
        kind="bool",
        default=True,
        label="Present",
        rule=_FLAG,
        help="Off for completions that are not there, where groups are of unequal size.",
    ),
    ArraySpec(
        key="advantages",
        axes="PG",
        kind="float",
        default=0.0,
        label="Advantages, given",
        rule=_FINITE,
        help="Advantages computed elsewhere, e.g. logged by a trainer.",
        required=False,
    ),
    ArraySpec(
        key="logged_loss",
        axes="",
        kind="float",
        default=0.0,
        label="Loss, logged",
        rule=_FINITE,
        help="The loss that a trainer reported for this batch, to compare with.",
        required=False,
    ),
    ArraySpec(
        key="dist_new",
        axes="V",
        kind="float",
        default=0.0,
        label="Distribution, policy",
        rule=_PROBABILITY,
        help="Probability of each token of a small vocabulary under the policy.",
        required=False,
    ),
    ArraySpec(
        key="dist_ref",
        axes="V",
        kind="float",
        default=0.0,
        label="Distribution, reference",
        rule=_PROBABILITY,
        help="Probability of each token of a small vocabulary under the reference policy.",
        required=False,
    ),
    ArraySpec(
        key="seed",
        axes="",
        kind="float",
        default=0.0,
        label="Seed",
        rule=_SEED,
        help="Chooses the tokens that are sampled from the distribution of the policy.",
        required=False,
    ),
)


def as_array(name, value, spec):
    """Turn nested lists into an array of a row's type and number of axes.

    Parameters
    ----------
    name : str
        What to call it in messages.
    value : array-like
        float32 arrays stay float32; None in a list is NaN.
    spec : ArraySpec

    Returns
    -------
    ndarray
        A copy; the caller's array is never shared.

    Raises
    ------
    ScenarioError
        Ragged rows, text, complex numbers, or another number of axes.
    """
    try:
        array = _numbers(np.array(value))
    except (TypeError, ValueError, OverflowError):
        _refuse_ragged(name, value, spec)
        raise _no_number(name, value, spec) from None
    if array.ndim != len(spec.axes):
        axes = ", ".join(spec.axes)
        raise ScenarioError(
            f"{name} has {array.ndim} axes, shape {array.shape}; expected {len(spec.axes)}"
            f" axes ({axes})",
            field=spec.key,
        )
    if spec.kind == "float":
        return array
    _refuse(name, array, (array != 0) & (array != 1), spec)
    return array.astype(bool)


def _numbers(array):
    """The array as float32 if it is that, else as float64; None becomes NaN."""
    if array.dtype == np.float32:
        return array
    # NumPy would read "1.5" in a list that also holds None, but nowhere else.
    cells = array.flat if array.dtype.kind == "O" else ()
    if array.dtype.kind not in "biufO" or any(isinstance(cell, (str, bytes)) for cell in cells):
        raise TypeError(array.dtype)
    with np.errstate(over="ignore"):
        return array.astype(np.float64)


def _no_number(name, value, spec):
    """The error for a value that is not made of numbers, naming its first such cell."""
    where, cell = _first_non_number(value, len(spec.axes)) or ((), value)
    spot = f" at {place(where, spec.axes)}" if where else ""
    return ScenarioError(
        f"{name}{spot} is {reprlib.repr(cell)}; wanted {spec.rule.words}",
        field=spec.key,
        where=where,
    )


def _first_non_number(value, depth, where=()):
    if _is_row(value) and len(where) < depth:
        found = (_first_non_number(row, depth, (*where, i)) for i, row in enumerate(value))
        return next((hit for hit in found if hit), None)
    is_number = not _is_row(value) and np.asarray(value).dtype.kind in "biuf"
    return None if value is None or is_number else (where, value)


def _refuse_ragged(name, value, spec, where=()):
    """Name the first row whose length differs from its sisters'; NumPy only says that one does."""
    if isinstance(value, np.ndarray) or not _is_row(value) or len(where) > len(spec.axes):
        return
    rows = [_is_row(row) for row in value]
    if not any(rows):
        return
    lengths = [len(row) if is_row else None for row, is_row in zip(value, rows, strict=True)]
    for index, length in enumerate(lengths):
        if length != lengths[0]:
            spot = place((*where, index), spec.axes) or f"row {index}"
            found = "a single value" if length is None else f"{length} values"
            wanted = "a single value" if lengths[0] is None else f"{lengths[0]}"
            raise ScenarioError(
                f"{name}: {spot} has {found}; expected {wanted} like the first row",
                field=spec.key,
                where=(*where, index),
            )
    for index, row in enumerate(value):
        _refuse_ragged(name, row, spec, (*where, index))


def _is_row(value):
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def check_shape(name, array, shape, like, spec):
    """Refuse an array whose shape is not the one its batch has."""
    if array.shape != shape:
        raise ScenarioError(
            f"{name} has shape {array.shape}; expected {shape} like {like}", field=spec.key
        )


def check_vocabulary(arrays):
    """Refuse distributions of unlike or unusable sizes, and such as add up to 0."""
    present = {key: array for key, array in arrays.items() if ARRAYS[key].axes == "V"}
    low, high = VOCABULARY
    for key, array in present.items():
        first, size = next(iter(present)), array.size
        if not low <= size <= high:
            raise ScenarioError(f"{key} has {size} tokens; wanted {low} to {high}", field=key)
        if size != present[first].size:
            raise ScenarioError(
                f"{key} has {size} tokens; expected {present[first].size} like {first}", field=key
            )
        if not np.any(array):
            raise ScenarioError(
                f"{key} is 0 at every token; wanted at least one above 0", field=key
            )


def check_cells(name, array, spec, counts):
    """Refuse the first cell that counts and breaks its row's rule, naming its place."""
    _refuse(name, array, counts & ~spec.rule.holds(array), spec)


def _refuse(name, array, bad, spec):
    if np.any(bad):
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        spot = f" at {place(where, spec.axes)}" if where else ""
        raise ScenarioError(
            f"{name}{spot} is {array[where].item()!r}; wanted {spec.rule.words}",
            field=spec.key,
            where=where,
        )


__all__ = [
    "ARRAYS",
    "LOGP_ROUNDING",
    "ArraySpec",
    "Rule",
    "as_array",
    "check_cells",
    "check_shape",
    "check_vocabulary",
]
