"""View: what is looked at. It goes into the link and holds no numbers of its own."""

from dataclasses import dataclass

from grpo_core import Scenario


@dataclass(frozen=True, eq=False)
class View:
    """Selected token (prompt, completion, position) and the state pinned as A, if any."""

    selected: tuple[int, int, int] = (0, 0, 0)
    pinned: Scenario | None = None

    @property
    def prompt(self):
        """The prompt whose group is shown."""
        return self.selected[0]
