"""Groups: which rows are answers to one drawing of a prompt, and where they stand in the grid."""

from dataclasses import dataclass

import numpy as np

from .bounds import check_bound
from .chunks import group_size


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows in a grid of Q groups and G completions.

    ``rows`` (Q, G): index of the row, -1 where none is; ``steps`` (Q,), never falling;
    ``notes``: what was doubtful.
    """

    rows: np.ndarray
    steps: np.ndarray
    notes: tuple[str, ...]


def grouped(step, group, block, place, name, advantages=None):
    """Put rows into groups.

    Parameters
    ----------
    step : ndarray of int, (N,)
    group : ndarray of uint64, (N,)
        What tells the groups of a step apart.
    block : bool
        Whether a group is a block of following rows: a prompt that was drawn twice in a step
        then is two blocks, or one of twice the usual size.
    place : ndarray of int, (N,)
        The file of each row: a block does not go on from one file to the next.
    name : str
        For the message when the grid becomes too large.
    advantages : ndarray, (N,), optional
        As logged: they tell a block of several groups from one large group.

    Returns
    -------
    Groups
    """
    order = np.argsort(step, kind="stable")
    step, group, place = step[order], group[order], place[order]
    prompt = _numbered(step, group)
    label, scattered, doubt = prompt, 0, ""
    if block:
        advantages = None if advantages is None else advantages[order]
        label, scattered, doubt = _of_blocks(prompt, place, advantages)
    inner = np.argsort(label, kind="stable")
    starts, sizes = _runs(label[inner])
    check_bound("grid", len(sizes) * int(sizes.max()), name)
    first = inner[starts]  # the row that a group begins with: its place among the groups
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    rows = np.full((len(sizes), int(sizes.max())), -1, dtype=np.int64)
    within = np.arange(len(inner)) - np.repeat(starts, sizes)
    rows[np.repeat(rank, sizes), within] = order[inner]
    return Groups(rows, step[np.sort(first)], _notes(sizes, scattered, doubt))


def _numbered(step, group):
    """A number for each (step, group) pair, (N,)."""
    _, step_number = np.unique(step, return_inverse=True)
    _, group_number = np.unique(group, return_inverse=True)
    pairs = step_number.astype(np.int64) * (int(group_number.max()) + 1) + group_number
    return np.unique(pairs, return_inverse=True)[1]


def _of_blocks(prompt, place, advantages):
    """(a number for each group where groups are blocks, scattered prompts, a doubt or '').

    Rows of a prompt in blocks that are whole multiples of the usual size are split into groups
    of that size. Other rows of a prompt are one group, wherever they stand.
    """
    block, sizes = _blocks(prompt, place)
    of_block = prompt[np.concatenate([[0], np.cumsum(sizes)[:-1]])]
    counts = np.bincount(prompt)
    usual, doubt = _usual(sizes), ""
    if usual:
        usual, doubt = group_size(block, sizes, usual, advantages)
    # So large that nothing is split where no size is usual.
    usual = usual or _usual(counts) or int(counts.max()) + 1
    blocks = np.bincount(of_block, minlength=len(counts))
    odd = np.zeros(len(counts), dtype=bool)
    odd[of_block[sizes % usual != 0]] = True
    scattered = odd & (blocks > 1)
    together = np.where(scattered[prompt], prompt, len(counts) + block)
    within, total = _within(together)
    part = np.where(total % usual == 0, within // usual, 0)
    label = np.unique(together * (int(part.max()) + 1) + part, return_inverse=True)[1]
    return label, int(np.sum(scattered)), doubt


def _usual(sizes):
    """The size of more than half of what is counted; 0 where none is, or it is 1."""
    size = int(np.argmax(np.bincount(sizes)))
    return size if size > 1 and np.sum(sizes == size) * 2 > len(sizes) else 0


def _blocks(prompt, place):
    """(block of each row, size of each block) of following rows with one prompt."""
    begins = np.ones(len(prompt), dtype=bool)
    begins[1:] = (prompt[1:] != prompt[:-1]) | (place[1:] != place[:-1])
    block = np.cumsum(begins) - 1
    return block, np.bincount(block)


def _within(label):
    """(how many rows of the same label stand before, how many there are) for each row."""
    label = np.unique(label, return_inverse=True)[1]
    inner = np.argsort(label, kind="stable")
    starts, sizes = _runs(label[inner])
    within = np.empty(len(label), dtype=np.int64)
    within[inner] = np.arange(len(label)) - np.repeat(starts, sizes)
    return within, sizes[label]


def _runs(rising):
    """(start, length) of each run of equal numbers."""
    starts = np.nonzero(np.concatenate([[True], rising[1:] != rising[:-1]]))[0]
    return starts, np.diff(np.append(starts, len(rising)))


def _notes(sizes, scattered, doubt):
    alone = int(np.sum(sizes == 1))
    said = {
        doubt: doubt,
        f"Rows of {scattered:,} prompts are scattered within a step; they were put together by "
        "prompt.": scattered,
        f"{alone:,} of {len(sizes):,} groups hold one completion, which has nothing to be "
        "compared with.": alone,
    }
    return tuple(note for note, count in said.items() if count)
