"""Run: every completion of a training run, in groups, and what the trainer logged beside it.

Q groups of the whole run in the order of their steps, G completions in the largest group,
K reward terms; S logged steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from ..errors import ScenarioError
from ..numerics import total

_TIED = 1e-6  # spread of float32 sums, of the largest reward
UNITS = ("tokens", "characters")


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """Completions of a training run, padded to the largest group.

    Parameters
    ----------
    steps : array-like of int, (Q,)
        The training step in which each group was scored, never falling.
    present : array-like of bool, (Q, G)
        False where a group has fewer completions.
    names : sequence of str, (K,)
        Names of the reward terms, all different.
    terms : array-like, (Q, G, K)
        Unweighted rewards; NaN where a term gave no score.
    totals : array-like or None, (Q, G)
        Total rewards, where the file gives them itself.
    measures : mapping from name to array-like, (Q, G)
        Other numbers of a completion that no reward is made of, such as ``acc`` in verl.
    advantages : array-like or None, (Q, G)
        As logged; NaN where none was.
    lengths : array-like or None, (Q, G)
        Length of each completion in `unit`; NaN where unknown.
    unit : {'tokens', 'characters'}
    rows : array-like of int, (Q, G)
        Which record of the file each completion is; -1 where none is.

    Raises
    ------
    ScenarioError
        Shapes that do not fit, steps that fall, no term, two of one name.
    """

    steps: np.ndarray
    present: np.ndarray
    names: tuple[str, ...]
    terms: np.ndarray
    totals: np.ndarray | None = None
    measures: Mapping[str, np.ndarray] = field(default_factory=dict)
    advantages: np.ndarray | None = None
    lengths: np.ndarray | None = None
    unit: str = "tokens"
    rows: np.ndarray | None = None

    def __post_init__(self):
        present = np.asarray(self.present, dtype=bool)
        if present.ndim != 2 or not present.size:
            raise ScenarioError("The run holds no completion.", field="present")
        names = tuple(self.names)
        if not names:
            raise ScenarioError("The run holds no reward.", field="names")
        if len(set(names)) < len(names):
            raise ScenarioError("Two reward terms have one name.", field="names")
        if self.unit not in UNITS:
            raise ScenarioError(f"unit is {self.unit!r}; wanted one of {UNITS}", field="unit")
        steps = _shaped("steps", self.steps, present.shape[:1], np.int64)
        if np.any(np.diff(steps) < 0):
            raise ScenarioError("The groups are not in the order of their steps.", field="steps")
        rows = np.full(present.shape, -1) if self.rows is None else self.rows
        checked = {
            "steps": steps,
            "present": present,
            "names": names,
            "terms": _shaped("terms", self.terms, (*present.shape, len(names))),
            "rows": _shaped("rows", rows, present.shape, np.int64),
            "measures": MappingProxyType(
                {name: _shaped(name, of, present.shape) for name, of in self.measures.items()}
            ),
        }
        for name in ("totals", "advantages", "lengths"):
            value = getattr(self, name)
            checked[name] = None if value is None else _shaped(name, value, present.shape)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def sizes(self):
        """Completions of each group, (Q,)."""
        return np.sum(self.present, axis=1)

    @property
    def every_step(self):
        """The steps in which something was scored, rising."""
        return np.unique(self.steps)

    @property
    def step_index(self):
        """Which of `every_step` each group belongs to, (Q,)."""
        return np.searchsorted(self.every_step, self.steps)

    @property
    def known(self):
        """Which terms scored which completions, (Q, G, K)."""
        return ~np.isnan(self.terms) & self.present[..., None]

    @property
    def scored(self):
        """Completions that at least one term scored, (Q, G)."""
        return np.any(self.known, axis=-1)

    @property
    def largest_advantages(self):
        """Largest size among the logged advantages of each group, (Q,); NaN where none was."""
        if self.advantages is None:
            return np.full(len(self.steps), np.nan)
        logged = self.present & np.isfinite(self.advantages)
        sizes = np.max(np.where(logged, np.abs(self.advantages), 0.0), axis=1)
        return np.where(logged.any(axis=1), sizes, np.nan)

    def at(self, step):
        """Indices of the groups of one step."""
        return np.nonzero(self.steps == step)[0]


@dataclass(frozen=True, eq=False)
class RunLog:
    """What a trainer logged, a value a step under its own names.

    Parameters
    ----------
    steps : array-like of int, (S,)
    values : mapping from name to array-like, (S,)
        NaN where a step logged nothing under that name.
    """

    steps: np.ndarray
    values: Mapping[str, np.ndarray]

    def __post_init__(self):
        steps = np.asarray(self.steps, dtype=np.int64).reshape(-1)
        values = {name: _shaped(name, of, steps.shape) for name, of in self.values.items()}
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "values", MappingProxyType(values))

    def __contains__(self, name):
        return name in self.values

    @property
    def stride(self):
        """Steps from one record to the next, as a rule; above 1 a record averages over them."""
        gaps = np.diff(np.unique(self.steps))
        return int(np.median(gaps)) if gaps.size else 1

    def at(self, name, steps):
        """Values of one name at given steps, NaN where none was logged; the last one of a step."""
        found = np.full(np.shape(steps), np.nan)
        if name not in self.values:
            return found
        known = np.isfinite(self.values[name])
        order = np.argsort(self.steps[known], kind="stable")
        logged, values = self.steps[known][order], self.values[name][known][order]
        if not logged.size:
            return found
        at = np.searchsorted(logged, steps, side="right") - 1
        hit = (at >= 0) & (logged[np.maximum(at, 0)] == steps)
        return np.where(hit, values[np.maximum(at, 0)], np.nan)


def total_rewards(run, weights):
    """Total reward of each completion, (Q, G); NaN where nothing scored it.

    The weighted sum of the terms that gave a score, as TRL's nansum. Where the file gives
    totals itself, `weights` of None takes those.
    """
    if weights is None:
        if run.totals is None:
            raise ScenarioError("The run has no total reward of its own; weights are needed.")
        return np.where(run.present, run.totals, np.nan)
    weights = _shaped("weights", weights, (len(run.names),))
    weighted = np.where(run.known, run.terms, 0.0) * weights
    return np.where(np.any(run.known, axis=-1), total(weighted, axis=-1), np.nan)


def equal_sums(scored, parts):
    """Groups of two or more sums that are all equal to the precision of float32, (Q,).

    Parameters
    ----------
    scored : ndarray of bool, (Q, G)
    parts : ndarray, (Q, G, K)
        What is summed. It may be larger than the sum, and so may its rounding.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        totals = total(parts, axis=-1)
        low = np.min(np.where(scored, totals, np.inf), axis=1)
        high = np.max(np.where(scored, totals, -np.inf), axis=1)
        several = np.sum(scored, axis=1) > 1
        size = np.max(np.where(scored, np.sum(np.abs(parts), axis=-1), 0.0), axis=1)
        return several & (np.where(several, high - low, 0.0) <= _TIED * size)


def groups_of(run, keep):
    """A run with the groups only that a boolean or an index array keeps."""
    optional = {
        name: None if getattr(run, name) is None else getattr(run, name)[keep]
        for name in ("totals", "advantages", "lengths")
    }
    return replace(
        run,
        steps=run.steps[keep],
        present=run.present[keep],
        terms=run.terms[keep],
        rows=run.rows[keep],
        measures={name: of[keep] for name, of in run.measures.items()},
        **optional,
    )


def _shaped(name, value, shape, dtype=np.float64):
    array = np.array(value, dtype=dtype)
    if array.shape != shape:
        raise ScenarioError(
            f"{name} has shape {array.shape}; wanted {shape}: the same groups and completions "
            "as the others",
            field=name,
        )
    array.setflags(write=False)
    return array
