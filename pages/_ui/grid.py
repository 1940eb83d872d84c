"""Grid: the cells of a token heatmap, cut out of an Evaluation and reduced if there are many."""

from dataclasses import dataclass

import numpy as np

from .quantities import present

MAX_ROWS, MAX_COLUMNS = 512, 512
MAX_CELLS = 64 * 512


@dataclass(frozen=True, eq=False, kw_only=True)
class Grid:
    """Rows are completions, columns token positions; R rows, C columns, step (rows, columns).

    Attributes
    ----------
    values : ndarray, (R, C)
        NaN where nothing counts. Of a block of cells, the entry of largest magnitude.
    marks, changed : ndarray of bool, (R, C)
        Any cell of the block marked; any cell different from the former state.
    former : ndarray, (R, C), or None
        Former values, where the grid is not reduced.
    rows : ndarray of int, (R, 2)
        (prompt, completion) of each row, of a block its first.
    start : int
        Token position of the first column.
    step : tuple of int
        Completions and tokens in a block; (1, 1) if nothing was reduced.
    """

    values: np.ndarray
    marks: np.ndarray
    changed: np.ndarray
    former: np.ndarray | None
    rows: np.ndarray
    start: int
    step: tuple[int, int]

    @property
    def reduced(self):
        """Whether a cell stands for more than one token."""
        return self.step != (1, 1)


def build_grid(evaluation, quantity, *, prompts, window=None, former=None):
    """Cut prompts and a window of token positions out of one quantity.

    Parameters
    ----------
    evaluation : Evaluation
    quantity : Quantity
    prompts : sequence of int
        Those that the evaluation does not have are left out.
    window : (int, int) or None
        First token position and the one after the last; all of them if none is inside.
    former : Evaluation or None
        Compared cell by cell where its shape is the same.
    """
    P, G, L = evaluation.valid.shape
    chosen = np.array([p for p in prompts if 0 <= p < P], dtype=int)
    start, stop = (0, L) if window is None else (max(window[0], 0), min(window[1], L))
    if start >= stop:
        start, stop = 0, L

    def cut(array):
        return array[chosen, :, start:stop].reshape(len(chosen) * G, stop - start)

    valid = cut(evaluation.valid)
    values = _blanked(cut(quantity.values(evaluation)), valid)
    marks = cut(quantity.marks(evaluation)) & valid if quantity.marks else np.zeros_like(valid)
    earlier = _former_values(evaluation, quantity, former, cut)
    with np.errstate(invalid="ignore"):
        same = values == (values if earlier is None else earlier)
    changed = ~(same | (np.isnan(values) & np.isnan(values if earlier is None else earlier)))
    rows = np.stack(np.meshgrid(chosen, np.arange(G), indexing="ij"), axis=-1).reshape(-1, 2)
    step = reduction(*values.shape)
    if step != (1, 1):
        values, marks, changed = _reduce(values, marks, changed, step)
        earlier, rows = None, rows[:: step[0]]
    return Grid(
        values=values, marks=marks, changed=changed, former=earlier,
        rows=rows, start=start, step=step,
    )  # fmt: skip


def _former_values(evaluation, quantity, former, cut):
    if former is None or former.valid.shape != evaluation.valid.shape:
        return None
    return _blanked(cut(quantity.values(former)), cut(former.valid))


def _blanked(values, valid):
    """NaN where nothing counts, in the values' own type: float32 is shown with its digits."""
    return np.where(valid, values, values.dtype.type(np.nan))


def reduction(rows, columns):
    """How many completions and tokens one drawn cell must stand for."""
    row_step = max(-(-rows // MAX_ROWS), 1)
    drawn = max(-(-rows // row_step), 1)
    allowed = min(MAX_COLUMNS, max(MAX_CELLS // drawn, 1))
    return row_step, max(-(-columns // allowed), 1)


def _reduce(values, marks, changed, step):
    """Per block the entry of largest magnitude: an average would hide the single extreme token."""
    blocks = _blocks(values, step, np.nan)  # (R, C, cells of a block)
    size = np.where(np.isnan(blocks), -1.0, np.abs(blocks))
    winner = np.argmax(size, axis=-1)[..., None]
    return (
        np.take_along_axis(blocks, winner, axis=-1)[..., 0],
        _blocks(marks, step, False).any(axis=-1),
        _blocks(changed, step, False).any(axis=-1),
    )


def _blocks(array, step, filler):
    (rows, columns), (down, across) = array.shape, step
    R, C = -(-rows // down), -(-columns // across)
    padded = np.full((R * down, C * across), filler, dtype=array.dtype)
    padded[:rows, :columns] = array
    return padded.reshape(R, down, C, across).swapaxes(1, 2).reshape(R, C, down * across)


def drawn_prompts(evaluation, prompts):
    """The prompts to draw: all of them, or one, or several that have a completion."""
    P = evaluation.valid.shape[0]
    if prompts is None:
        there = present(evaluation).any(axis=1)
        return [p for p in range(P) if there[p]]
    return [prompts] if isinstance(prompts, (int, np.integer)) else list(prompts)
