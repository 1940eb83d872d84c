"""Scenario: one example, whole. Arrays, conventions, texts and drift, checked once."""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from types import MappingProxyType

import numpy as np

from .arrays import ARRAYS, as_array, check_cells, check_shape, check_vocabulary
from .batch import prepare
from .errors import ScenarioError
from .numerics import difference, floating
from .stages import DEFAULT_CONVENTIONS, Conventions
from .variants import Number

SIZES = {"P": "prompts", "G": "completions per prompt", "L": "token positions"}

_SIZE = Number(low=1, integer=True)
_DRIFT = Number(low=-np.inf)


@dataclass(frozen=True)
class Texts:
    """What prompts and tokens read, for the eye only.

    ``prompts`` holds P strings or none. ``tokens[p][g][t]`` is the text of one position;
    either may be empty where nothing is known.
    """

    prompts: tuple[str, ...] = ()
    tokens: tuple[tuple[tuple[str, ...], ...], ...] = ()

    def prompt(self, p):
        """Text of a prompt, '' if unknown."""
        return self.prompts[p] if p < len(self.prompts) else ""

    def token(self, p, g, t):
        """Text of a token, '' if unknown."""
        try:
            return self.tokens[p][g][t]
        except IndexError:
            return ""

    def completion(self, p, g):
        """Text of a completion: its tokens in a row."""
        try:
            return "".join(self.tokens[p][g])
        except IndexError:
            return ""


@dataclass(frozen=True, eq=False)
class Scenario:
    """An example that can be evaluated, linked, saved and exported.

    Parameters
    ----------
    arrays : mapping from key of `ARRAYS` to array-like
        All required ones. What stands at cells that do not count (padding, absent
        completions) is kept but never read.
    conventions : Conventions
    texts : Texts
    drift : float
        The effective new log-probability is ``logp_old + drift (logp_new - logp_old)``.

    Raises
    ------
    ScenarioError
        Missing or unknown arrays, wrong shapes, a cell that counts and is not valid, texts of
        what is not there.
    """

    arrays: Mapping[str, np.ndarray]
    conventions: Conventions = DEFAULT_CONVENTIONS
    texts: Texts = field(default_factory=Texts)
    drift: float = 1.0

    def __post_init__(self):
        _refuse_unknown(self.arrays)
        arrays = {}
        for key, spec in ARRAYS.items():
            value = self.arrays.get(key)
            if value is None and spec.required:
                raise ScenarioError(f"{key} is missing", field=key)
            if value is not None:
                arrays[key] = as_array(key, value, spec)
        _check_shapes(arrays)
        _check_values(arrays)
        _check_texts(self.texts, arrays["mask"].shape)
        for array in arrays.values():
            array.setflags(write=False)
        for stage in self.conventions.choices:
            for key in self.conventions.variant(stage).needs:
                if key not in arrays:
                    raise ScenarioError(
                        f"{stage} is set to "
                        f"{self.conventions[stage].variant!r}, which needs the array {key!r}",
                        field=key,
                    )
        drift = _DRIFT.coerce(self.drift)
        if drift not in _DRIFT:
            raise ScenarioError(f"drift is {self.drift!r}; wanted a finite number", field="drift")
        object.__setattr__(self, "arrays", MappingProxyType(arrays))
        object.__setattr__(self, "drift", drift)

    def __getitem__(self, key):
        return self.arrays[key]

    def __contains__(self, key):
        return key in self.arrays

    @property
    def sizes(self):
        """``{'P': prompts, 'G': completions per prompt, 'L': token positions}``."""
        return dict(zip("PGL", self.arrays["mask"].shape, strict=True))

    @property
    def valid(self):
        """Positions that count: unmasked tokens of completions that are present; (P, G, L)."""
        return self.arrays["mask"] & self.arrays["present"][..., None]

    def replace(self, **arrays):
        """A copy with other arrays; None takes an optional one out."""
        return replace_fields(self, arrays={**self.arrays, **arrays})

    def choose(self, stage, variant=None, **options):
        """A copy with another variant or other options in one stage."""
        return replace_fields(self, conventions=self.conventions.replace(stage, variant, **options))

    def with_conventions(self, conventions):
        """A copy under other conventions."""
        return replace_fields(self, conventions=conventions)

    def with_texts(self, texts):
        """A copy with other texts."""
        return replace_fields(self, texts=texts)


def counting_cells(arrays, spec):
    """Cells of one array that count, as a boolean array of its shape."""
    if spec.key in ("mask", "present") or spec.axes in ("", "V"):
        return np.ones(arrays[spec.key].shape, dtype=bool)
    if spec.axes == "PG":
        return arrays["present"]
    return arrays["mask"] & arrays["present"][..., None]


def _check_shapes(arrays):
    shape = arrays["mask"].shape
    for size, (letter, name) in zip(shape, SIZES.items(), strict=True):
        if size < 1:
            raise ScenarioError(
                f"mask has {size} {name} ({letter}); wanted at least 1", field="mask"
            )
    sizes = dict(zip("PGL", shape, strict=True))
    for key, array in arrays.items():
        if ARRAYS[key].axes == "V":
            continue  # a size of its own
        expected = tuple(sizes[axis] for axis in ARRAYS[key].axes)
        check_shape(key, array, expected, "mask", ARRAYS[key])


def _check_values(arrays):
    for key, array in arrays.items():
        check_cells(key, array, ARRAYS[key], counting_cells(arrays, ARRAYS[key]))
    check_vocabulary(arrays)


def _check_texts(texts, shape):
    """Refuse texts of prompts, completions or tokens that the batch does not have."""
    groups = texts.tokens
    found = (
        max(len(texts.prompts), len(groups)),
        max(map(len, groups), default=0),
        max((len(tokens) for group in groups for tokens in group), default=0),
    )
    for size, most, name in zip(found, shape, SIZES.values(), strict=True):
        if size > most:
            raise ScenarioError(f"texts have {size} {name}; the batch has {most}", field="texts")


def build_scenario(*, conventions=DEFAULT_CONVENTIONS, texts=None, drift=1.0, **arrays):
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
    _refuse_unknown(given)
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
    return Scenario(known, conventions, texts or Texts(), drift)


def _refuse_unknown(keys):
    unknown = [key for key in keys if key not in ARRAYS]
    if unknown:
        name = reprlib.repr(unknown[0])
        raise ScenarioError(f"unknown array {name}; known are {', '.join(ARRAYS)}")


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
        counts if the completion's last one did, so that padding stays padding.

    Raises
    ------
    ScenarioError
        Another letter than P, G, L, or a size that is not a whole number of at least 1.
    """
    wanted = {**scenario.sizes, **{axis: _checked_size(axis, n) for axis, n in sizes.items()}}
    arrays = {}
    for key, array in scenario.arrays.items():
        spec = ARRAYS[key]
        if spec.axes == "V":
            arrays[key] = array
            continue
        shape = tuple(wanted[axis] for axis in spec.axes)
        fresh = np.full(shape, spec.default, dtype=array.dtype)
        kept = tuple(slice(min(a, b)) for a, b in zip(array.shape, shape, strict=True))
        fresh[kept] = array[kept]
        arrays[key] = fresh
    P, G, L = (min(scenario.sizes[axis], wanted[axis]) for axis in "PGL")
    arrays["mask"][:P, :G, L:] = scenario["mask"][:P, :G, L - 1 : L]
    texts = _cut_texts(scenario.texts, wanted)
    return Scenario(arrays, scenario.conventions, texts, scenario.drift)


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
    names = ("rewards", "mask", "present", "logp_old", "logp_ref")
    arrays = {name: scenario[name] for name in names}
    return prepare(**arrays, logp_new=logp_new, advantages=scenario.arrays.get("advantages")), held


def same_scenario(left, right):
    """True if two scenarios hold the same bits in every cell that counts, and all else equal."""
    if (left.conventions, left.texts, left.drift) != (right.conventions, right.texts, right.drift):
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
