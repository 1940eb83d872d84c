"""From a grid of groups, or a list of completions, to one row for each completion."""

from dataclasses import dataclass
from itertools import chain

import numpy as np

from .bounds import check_bound
from .records import RunFileError
from .tokens_lines import BadLine
from .tokens_values import numbers_of, shown


@dataclass(frozen=True)
class Grid:
    """Which completions there are.

    ``sizes`` is the number of completions of each group, None where the completions stand in
    one list; ``count`` is all of them.
    """

    sizes: tuple[int, ...] | None
    count: int

    def place(self, row):
        """Where a completion is, in words."""
        if self.sizes is None:
            return f"row {row}"
        ends = np.cumsum(self.sizes)
        p = int(np.searchsorted(ends, row, side="right"))
        return f"prompt {p}, completion {row - int(ends[p]) + self.sizes[p]}"

    @property
    def depth(self):
        """How many axes lead to a completion."""
        return 1 if self.sizes is None else 2

    def is_per_token(self, value):
        """Whether an array has an axis of tokens beyond those of the completions."""
        return depth_of(value) > self.depth

    def rows(self, value, key, name):
        """What an array holds for each completion: a list, or an array with a first axis N.

        Raises
        ------
        RunFileError
            Another number of prompts or completions.
        """
        if isinstance(value, np.ndarray):
            shape = (self.count,) if self.sizes is None else self._shape()
            if value.shape[: self.depth] != shape:
                raise RunFileError(
                    f"{name}: {key} has shape {value.shape}; wanted {shape} first, one for each "
                    "completion."
                )
            return value.reshape(self.count, *value.shape[self.depth :])
        if not isinstance(value, list):
            raise RunFileError(f"{name}: {key} is {shown(value)}; wanted a list.")
        sizes = None if self.sizes is None else _sizes(value)
        count = len(value) if sizes is None else sum(sizes)
        if sizes != self.sizes or count != self.count:
            groups = "" if self.sizes is None else f", groups: {len(self.sizes):,}"
            raise RunFileError(
                f"{name}: {key} does not fit the other arrays (completions: {self.count:,}"
                f"{groups}); wanted one value or list for each completion."
            )
        if self.sizes is None:
            return value
        return list(chain.from_iterable(item for item in value if isinstance(item, list)))

    def _shape(self):
        return len(self.sizes), self.sizes[0]


def grid_of(value, key, inner, name):
    """The `Grid` of an array whose last `inner` axes are of one completion.

    Raises
    ------
    RunFileError
    """
    depth = depth_of(value)
    wanted = (1 + inner, 2 + inner)
    if depth not in wanted:
        axes = "(P, G, L) or (N, L)" if inner else "(P, G) or (N,)"
        raise RunFileError(f"{name}: {key} has {depth} axes; wanted {axes}.")
    grouped = depth == 2 + inner
    if isinstance(value, np.ndarray):
        shape = value.shape
        sizes = (shape[1],) * shape[0] if grouped else None
        count = shape[0] * shape[1] if grouped else shape[0]
    else:
        sizes = _sizes(value) if grouped else None
        count = sum(sizes or ()) if grouped else len(value)
    if not count:
        raise RunFileError(f"{name}: {key} is empty.")
    return Grid(sizes, count)


def depth_of(value, most=4):
    """How deeply lists are nested, by the first of them that is not empty."""
    if isinstance(value, np.ndarray):
        return value.ndim
    if not isinstance(value, list) or not most:
        return 0
    deepest = 1
    for item in value:
        deepest = max(deepest, 1 + depth_of(item, most - 1))
        if item is not None and item != []:
            break
    return deepest


def flat_tokens(value, key, grid, name):
    """An array per token as (N, L), and which of its cells a row really has.

    Arrays keep their type; lists become float64, padded with NaN.

    Raises
    ------
    RunFileError
    """
    rows = grid.rows(value, key, name)
    if isinstance(rows, np.ndarray):
        check_bound("values", rows.size, name)
        if rows.ndim != 2:
            raise RunFileError(f"{name}: {key} has no axis of tokens.")
        return rows, np.ones(rows.shape, dtype=bool)
    parts = [_row(row, key, grid.place(i), name) for i, row in enumerate(rows)]
    lengths = np.array([len(part) for part in parts])
    longest = int(lengths.max(initial=0))
    check_bound("values", longest * len(parts), name)
    filled = np.arange(longest) < lengths[:, None]
    padded = np.full(filled.shape, np.nan)
    padded[filled] = np.concatenate(parts) if parts else ()
    return padded, filled


def flat_lists(value, key, grid, name):
    """Several numbers for each completion as (N, K), equally many for all."""
    rows, filled = flat_tokens(value, key, grid, name)
    if not np.all(filled):
        row = int(np.argmin(np.all(filled, axis=1)))
        raise RunFileError(
            f"{name}: {key} at {grid.place(row)} has fewer values than that of other completions."
        )
    return rows.astype(np.float64)


def flat_numbers(value, key, grid, name):
    """A number for each completion as float64, (N,)."""
    rows = grid.rows(value, key, name)
    if isinstance(rows, np.ndarray):
        if rows.ndim != 1:
            raise RunFileError(
                f"{name}: {key} has shape {value.shape}; wanted one number for each completion."
            )
        return rows.astype(np.float64)
    try:
        return numbers_of(rows, key)
    except BadLine as error:
        raise RunFileError(f"{name} {error}.") from None


def flat_texts(value, key, grid, name):
    """A text, or an id, for each completion; those of a group may be given once."""
    if value is None:
        return None
    given = value.tolist() if isinstance(value, np.ndarray) else value
    if grid.sizes is not None and depth_of(value) == 1 and len(given) == len(grid.sizes):
        rows = [given[p] for p, size in enumerate(grid.sizes) for _ in range(size)]
    else:
        rows = grid.rows(value, key, name)
        rows = rows.tolist() if isinstance(rows, np.ndarray) else rows
    if not all(isinstance(row, (str, int, float)) or row is None for row in rows):
        raise RunFileError(f"{name}: {key} is not made of texts; wanted one for each completion.")
    return rows


def _sizes(value):
    return tuple(len(item) if isinstance(item, list) else 0 for item in value)


def _row(row, key, place, name):
    if row is None:
        return np.zeros(0)
    if not isinstance(row, list):
        raise RunFileError(f"{name}: {key} at {place} is {shown(row)}; wanted a list of numbers.")
    try:
        return numbers_of(row, key) if row else np.zeros(0)
    except BadLine as error:
        raise RunFileError(f"{name}, {place} {error}.") from None
