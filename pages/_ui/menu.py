"""The menu: one row a page. A page that is not in this table does not exist."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page's place in the menu, its address, and the question it answers.

    ``key`` is its address without the slash; findings name pages by it. ``arrays`` can be
    edited there: the first, or the first ``at_top``, in tables at the top, the others in the
    tables at the foot.
    """

    key: str
    group: str
    label: str
    file: str
    icon: str
    question: str
    arrays: tuple[str, ...]
    at_top: int = 1

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
    Page(
        key="Clipping",
        group="Compute",
        label="Clipping",
        file="pages/Clipping.py",
        icon=":material/content_cut:",
        question="Which tokens still get a gradient?",
        arrays=("logp_new", "rewards", "mask", "present", "advantages"),
    ),
    Page(
        key="KL",
        group="Compute",
        label="KL",
        file="pages/KL.py",
        icon=":material/compare_arrows:",
        question="How far from the reference?",
        arrays=("logp_new", "logp_ref", "logp_old", "mask", "present", "rewards", "advantages"),
        at_top=2,
    ),
    Page(
        key="Objective",
        group="Compute",
        label="Objective",
        file="pages/Objective.py",
        icon=":material/functions:",
        question="How do tokens become one loss?",
        arrays=(
            "mask",
            "logp_new",
            "logp_old",
            "logp_ref",
            "rewards",
            "present",
            "advantages",
        ),
    ),
)

MENU: Mapping[str, Page] = MappingProxyType({page.key: page for page in _ROWS})
GROUPS = tuple(dict.fromkeys(page.group for page in _ROWS))
