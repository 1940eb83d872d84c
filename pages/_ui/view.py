"""View: what is looked at. It goes into the link and holds no numbers of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from grpo_core import Scenario


@dataclass(frozen=True, eq=False)
class View:
    """Selected token (prompt, completion, position) and the state pinned as A, if any.

    ``choices`` are what the reader chose to see on a page, where it is not what the page shows
    by itself: key of the page -> name -> a text or a tuple of texts.
    """

    selected: tuple[int, int, int] = (0, 0, 0)
    pinned: Scenario | None = None
    choices: Mapping[str, Mapping[str, str | tuple[str, ...]]] = field(default_factory=dict)

    @property
    def prompt(self):
        """The prompt whose group is shown."""
        return self.selected[0]

    def chosen(self, page):
        """The choices of one page, by name."""
        return dict(self.choices.get(page, {}))

    def choosing(self, page, choices):
        """A copy with other choices of one page; none of them is told from no page at all."""
        others = {key: value for key, value in self.choices.items() if key != page}
        return replace(self, choices={**others, page: dict(choices)} if choices else others)
