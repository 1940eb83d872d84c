"""The menu: one row a page. A page that is not in this table does not exist."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page's place in the menu, its address, and the question it answers.

    ``key`` is its address without the slash; findings name pages by it. ``arrays`` can be
    edited there: the first, or the first ``at_top``, in tables at the top, the others in the
    tables at the foot. ``example`` is False for a page that is not about the shared example.
    """

    key: str
    group: str
    label: str
    file: str
    icon: str
    question: str
    arrays: tuple[str, ...]
    at_top: int = 1
    example: bool = True

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
    Page(
        key="Process_rewards",
        group="Reward design",
        label="Process rewards",
        file="pages/Process_rewards.py",
        icon=":material/stairs:",
        question="Which step earned the credit?",
        arrays=("rewards", "mask", "present"),
        at_top=0,
    ),
    Page(
        key="Shaping",
        group="Reward design",
        label="Shaping",
        file="pages/Shaping.py",
        icon=":material/tune:",
        question="What does the bonus really train?",
        arrays=("token_rewards", "token_ids", "mask", "present"),
        at_top=0,
    ),
    Page(
        key="Conventions",
        group="Choose",
        label="Conventions",
        file="pages/Conventions.py",
        icon=":material/rule:",
        question="Which trainer computes what?",
        arrays=("rewards", "logp_new", "logp_old", "logp_ref", "mask", "present"),
    ),
    Page(
        key="Difficulty",
        group="Choose",
        label="Difficulty",
        file="pages/Difficulty.py",
        icon=":material/speed:",
        question="Which prompts does the scale favour?",
        arrays=("rewards",),
    ),
    Page(
        key="Silent_groups",
        group="Choose",
        label="Silent groups",
        file="pages/Silent_groups.py",
        icon=":material/volume_off:",
        question="What does a tied group contribute?",
        arrays=("rewards", "mask", "present", "logp_new", "logp_ref"),
    ),
    Page(
        key="Group_size",
        group="Choose",
        label="Group size",
        file="pages/Group_size.py",
        icon=":material/groups:",
        question="How large a group?",
        arrays=("answer_logits", "answer_rewards", "rewards", "present"),
        at_top=2,
    ),
    Page(
        key="Length",
        group="Choose",
        label="Length",
        file="pages/Length.py",
        icon=":material/straighten:",
        question="How does length count?",
        arrays=("rewards", "stop_logits", "present"),
        at_top=2,
    ),
    Page(
        key="Your_run",
        group="Train and inspect",
        label="Your run",
        file="pages/Your_run.py",
        icon=":material/folder_open:",
        question="What does your reward really train?",
        arrays=(),
        at_top=0,
        example=False,
    ),
)

MENU: Mapping[str, Page] = MappingProxyType({page.key: page for page in _ROWS})
GROUPS = tuple(dict.fromkeys(page.group for page in _ROWS))
