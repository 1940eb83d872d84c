"""The menu: one row a page. A page that is not in this table does not exist."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page's place in the menu, its address, and the question it answers.

    ``key`` is its address without the slash; findings name pages by it. ``arrays`` can be
    edited there: the first in the table at the top, the others in the tables at the foot.
    """

    key: str
    group: str
    label: str
    file: str
    icon: str
    question: str
    arrays: tuple[str, ...]

    @property
    def address(self):
        """Path after the host."""
        return "/" if self.key == "Overview" else f"/{self.key}"


_ROWS = (
    Page(
        key="Overview",
        group="Compute",
        label="Overview",
        file="app.py",
        icon=":material/home:",
        question="What does one reward change?",
        arrays=(
            "rewards",
            "logp_new",
            "logp_old",
            "logp_ref",
            "mask",
            "present",
            "advantages",
        ),
    ),
    Page(
        key="Advantages",
        group="Compute",
        label="Advantages",
        file="pages/Advantages.py",
        icon=":material/bar_chart:",
        question="Who did better than their group?",
        arrays=("rewards", "mask", "present", "advantages"),
    ),
)

MENU: Mapping[str, Page] = MappingProxyType({page.key: page for page in _ROWS})
GROUPS = tuple(dict.fromkeys(page.group for page in _ROWS))
