"""Scenarios made, resized, compared, and as the batch that the stages read."""

from dataclasses import replace as replace_fields

import numpy as np

from .arrays import ARRAYS, as_array
from .batch import prepare
from .errors import ScenarioError
from .numerics import difference, floating
from .scenario_checks import SIZES, counting_cells, refuse_unknown
from .scenario_type import Scenario, Texts
from .stages import DEFAULT_CONVENTIONS
from .terms import term_values
from .variants import Number

_COMPARED = ("conventions", "texts", "drift", "terms")
_SIZE = Number(low=1, integer=True)


def build_scenario(*, conventions=DEFAULT_CONVENTIONS, texts=None, drift=1.0, terms=(), **arrays):
    """A scenario from as few arrays as there are; what is missing follows from the rest.

    Without ``mask`` every position counts; without ``logp_old`` or ``logp_ref`` they equal
    ``logp_new``; without any per-token array there is one token per completion. What is
    added is float32 if all that was given is.

    Raises
    ------
    ScenarioError
        No array at all, an unknown one, or any error of `Scenario`.

    Examples
    --------
    >>> build_scenario(rewards=[[1, 0, 0, 1]]).sizes
    {'P': 1, 'G': 4, 'L': 1}
    """
    given = {key: value for key, value in arrays.items() if value is not None}
    refuse_unknown(given)
    known = {key: as_array(key, value, ARRAYS[key]) for key, value in given.items()}
    sizes = _sizes(known)
    dtype = floating(*known.values())
    known.setdefault("logp_new", known.get("logp_old", _filled("logp_new", sizes, dtype)))
    known.setdefault("logp_old", known["logp_new"])
    known.setdefault("logp_ref", known["logp_new"])
    if "rewards" not in known and "advantages" in known:  # nothing was scored here
        known["rewards"] = np.full_like(known["advantages"], np.nan)
    for key, spec in ARRAYS.items():
        if spec.required:
            known.setdefault(key, _filled(key, sizes, dtype))
    return Scenario(known, conventions, texts or Texts(), drift, terms)


def _sizes(arrays):
    """P, G and L from the first array that has them; L is 1 if none has."""
    for axes, tail in (("PGL", ()), ("PG", (1,))):
        for key, array in arrays.items():
            if ARRAYS[key].axes == axes:
                return dict(zip("PGL", array.shape + tail, strict=True))
    raise ScenarioError("there is no array; wanted at least rewards")


def _filled(key, sizes, dtype):
    spec = ARRAYS[key]
    dtype = bool if spec.kind == "bool" else dtype
    return np.full(tuple(sizes[axis] for axis in spec.axes), spec.default, dtype=dtype)


def resize(scenario, **sizes):
    """Cut off or add prompts, completions and token positions.

    Parameters
    ----------
    scenario : Scenario
    sizes : int
        Any of ``P``, ``G``, ``L``; at least 1.

    Returns
    -------
    Scenario
        Added cells hold their array's default. A token position added to a completion
        counts if the completion's last one did, so that padding stays padding. Steps that
        end at a position that was cut off are gone.

    Raises
    ------
    ScenarioError
        Another letter than P, G, L, or a size that is not a whole number of at least 1.
    """
    wanted = {**scenario.sizes, **{axis: _checked_size(axis, n) for axis, n in sizes.items()}}
    every = {**scenario.own_sizes, **wanted}
    arrays = {}
    for key, array in scenario.arrays.items():
        spec = ARRAYS[key]
        shape = tuple(every[axis] for axis in spec.axes)
        fresh = np.full(shape, spec.default, dtype=array.dtype)
        kept = tuple(slice(min(a, b)) for a, b in zip(array.shape, shape, strict=True))
        fresh[kept] = array[kept]
        arrays[key] = fresh
    P, G, L = (min(scenario.sizes[axis], wanted[axis]) for axis in "PGL")
    arrays["mask"][:P, :G, L:] = scenario["mask"][:P, :G, L - 1 : L]
    if "step_ends" in arrays:  # a step that ends where nothing is left is gone, too
        gone = ~(arrays["step_ends"] < wanted["L"])
        for key in ("step_ends", "step_rewards"):
            arrays[key][gone] = np.nan
    texts = _cut_texts(scenario.texts, wanted)
    return replace_fields(scenario, arrays=arrays, texts=texts)


def _checked_size(axis, size):
    if axis not in SIZES:
        raise ScenarioError(f"unknown size {axis!r}; the sizes are {', '.join(SIZES)}")
    size = _SIZE.coerce(size)
    if size not in _SIZE:
        raise ScenarioError(f"{SIZES[axis]} ({axis}) is {size!r}; wanted {_SIZE}", field=axis)
    return size


def _cut_texts(texts, sizes):
    return Texts(
        texts.prompts[: sizes["P"]],
        tuple(
            tuple(tuple(tokens[: sizes["L"]]) for tokens in group[: sizes["G"]])
            for group in texts.tokens[: sizes["P"]]
        ),
    )


def effective_logp_new(scenario):
    """New log-probabilities with the drift applied, and where they had to be held at 0.

    Returns
    -------
    logp : ndarray, shape (P, G, L)
        ``logp_old + drift (logp_new - logp_old)``, at most 0; `logp_new` itself at drift 1.
    held : ndarray of bool, shape (P, G, L)
        Valid positions whose drifted value was above 0, which no log-probability is.
    """
    new, old = scenario["logp_new"], scenario["logp_old"]
    if scenario.drift == 1.0:
        return new, np.zeros(new.shape, dtype=bool)
    valid = scenario.valid
    new, old = np.where(valid, new, new.dtype.type(0)), np.where(valid, old, old.dtype.type(0))
    step = difference(new, old)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        drifted = old + new.dtype.type(scenario.drift) * step
    # -inf in one of the two: no line leads there, so the drift takes the nearer end.
    nearer = new if scenario.drift > 0.5 else old
    drifted = np.where(np.isnan(drifted) | np.isinf(step), nearer, drifted)
    held = valid & (drifted > 0) & (drifted > np.maximum(new, old))
    return np.where(held, drifted.dtype.type(0), drifted), held


def as_batch(scenario):
    """The arrays of a scenario as the stages read them, and where the drift was held at 0."""
    logp_new, held = effective_logp_new(scenario)
    arrays = {
        key: array
        for key, array in scenario.arrays.items()
        if ARRAYS[key].axes.startswith("PG") and key != "logp_new"
    }
    batch = prepare(**arrays, logp_new=logp_new)
    return replace_fields(batch, terms=term_values(batch, scenario.terms)), held


def same_scenario(left, right):
    """True if two scenarios hold the same bits in every cell that counts, and all else equal."""
    if any(getattr(left, name) != getattr(right, name) for name in _COMPARED):
        return False
    if left.arrays.keys() != right.arrays.keys() or left.sizes != right.sizes:
        return False
    return all(_same_cells(left, right, key) for key in left.arrays)


def _same_cells(left, right, key):
    counts = counting_cells(left.arrays, ARRAYS[key])
    a, b = left[key], right[key]
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a[counts].tobytes() == b[counts].tobytes()


__all__ = [
    "SIZES",
    "Scenario",
    "Texts",
    "as_batch",
    "build_scenario",
    "counting_cells",
    "effective_logp_new",
    "resize",
    "same_scenario",
]
