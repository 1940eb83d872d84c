"""Records: what every reader makes of one file, a row for each completion."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

# What a column of a file can be. 'term': a reward that goes into the total with a weight;
# 'total': the total itself; 'measure': another number worth following, such as accuracy.
ROLES = (
    "step",
    "group",
    "prompt",
    "completion",
    "term",
    "total",
    "advantage",
    "length",
    "measure",
    "ignore",
)


class RunFileError(ValueError):
    """A file that cannot be read: its name, the line or column, what is wrong, the remedy."""


class RolesNeeded(RunFileError):
    """A file that could be read if its columns were given other roles."""


@dataclass(frozen=True, eq=False)
class Source:
    """One file: of a folder, an upload, or a member of an archive.

    ``name`` is its path within what was opened, ``size`` its bytes once unpacked (checked
    against the limits before), ``read`` gives them. ``path`` is set where it lies on disk.
    """

    name: str
    size: int
    read: Callable[[], bytes]
    path: str | None = None

    def open(self):
        """The bytes as a file; from the disk no more than what is then read of it."""
        try:
            return open(self.path, "rb") if self.path else io.BytesIO(self.read())
        except OSError:
            raise RunFileError(f"{self.name} may not be read. Ask for permission.") from None

    @property
    def base(self):
        """The file's own name, without folders."""
        return self.name.replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def suffix(self):
        """What its name ends in, small letters, with the dot; '' if nothing."""
        return "." + self.base.rsplit(".", 1)[1].lower() if "." in self.base else ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Records:
    """The completions of one file, N of them, in the file's order.

    Attributes
    ----------
    step : ndarray of int, (N,)
    group : ndarray of uint64, (N,)
        What tells groups of one step apart: a digest of the prompt, or of the group's id.
    block : bool
        True where a group is a block of following rows (TRL, ms-swift), so that a prompt drawn
        twice in one step shows as a block of twice the size.
    numbers : mapping from column to ndarray of float, (N,)
        Columns that can be a term, a total, a measure or an advantage; NaN where blank.
    lengths : ndarray of float or None, (N,)
    unit : {'tokens', 'characters'}
    texts : callable
        ``texts(rows)`` gives a list of (prompt, completion), read again from the file.
    tokens : callable or None
        ``tokens(row)`` gives a `TokenRow`, or None where the row has none.
    notes : tuple of str
        What was left out or doubted, a sentence each.
    """

    step: np.ndarray
    group: np.ndarray
    block: bool
    numbers: Mapping[str, np.ndarray]
    lengths: np.ndarray | None = None
    unit: str = "characters"
    texts: Callable
    tokens: Callable | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class TokenRow:
    """Per-token arrays of one completion, T of its own tokens in order, no prompt, no padding.

    ``arrays`` has keys of `grpo_core.ARRAYS` with axes PGL, each (T,), ``mask`` among them;
    ``pieces`` is what each token reads, '' where unknown; ``step`` the training step it was
    recorded at, which for a batch that is used twice is later than that of its group; ``loss``
    what the trainer itself reported for the batch that the row was recorded with.
    """

    step: int
    arrays: Mapping[str, np.ndarray]
    pieces: tuple[str, ...] = field(default=())
    loss: float | None = None
