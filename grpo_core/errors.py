"""The one error of the core: what is wrong, in which array, at which cell."""


class ScenarioError(ValueError):
    """Bad input, with the place where it stands.

    Parameters
    ----------
    message : str
        Names the argument, what came, what is wanted and where.
    field : str or None
        Key of the array or ``stage.option`` at fault, for a page that points at it.
    where : tuple of int
        Leading indices of the cell: (prompt, completion, token), as far as known.
    """

    def __init__(self, message, *, field=None, where=()):
        super().__init__(message)
        self.field = field
        self.where = tuple(int(index) for index in where)


_AXIS_NAMES = {
    "P": "prompt",
    "G": "completion",
    "L": "token",
    "V": "token",
    "S": "step",
    "K": "term",
    "B": "arm",
    "F": "state",
    "N": "kind of prompt",
    "M": "value of the reward",
    "Q": "prompt of the small policy",
    "A": "answer",
    "T": "place to stop",
}


def place(where, axes="PGL"):
    """Spell a cell's indices, e.g. ``(0, 2)`` as ``prompt 0, completion 2``."""
    return ", ".join(
        f"{_AXIS_NAMES[axis]} {index}" for axis, index in zip(axes, where, strict=False)
    )
