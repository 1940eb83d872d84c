"""The page frame: what every page does first and last, in the order that keeps links right.

Link to store, edits to store, then the page draws, then store to link, and the menu at the
very end: its links carry the state just written. A menu drawn earlier would hand the next
page a stale link and lose the last edit.
"""

import gc
import itertools
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from grpo_core import Evaluation, Scenario, evaluate

from . import editors, share, state
from .literal import literal
from .menu import GROUPS, MENU
from .palette import PALETTES, Palette

_ASSETS = Path(__file__).parents[2] / "assets"
_WARM = 4  # runs after which all that a page needs has been imported


@dataclass(frozen=True, eq=False)
class Shown:
    """What a page draws: the present evaluation, the ghost, the pinned one, and the look."""

    page: str
    scenario: Scenario
    evaluation: Evaluation
    former: Evaluation | None
    pinned: Evaluation | None
    selected: tuple[int, int, int]
    palette: Palette

    def under(self, change):
        """What is shown with every state changed alike, e.g. judged by its steps.

        ``change`` takes a scenario; where it gives back the same object nothing is computed.
        """

        def changed(evaluation):
            if evaluation is None:
                return None
            scenario = change(evaluation.scenario)
            return evaluation if scenario is evaluation.scenario else evaluate(scenario)

        now = changed(self.evaluation)
        return replace(
            self,
            scenario=now.scenario,
            evaluation=now,
            former=changed(self.former),
            pinned=changed(self.pinned),
        )

    @property
    def where(self):
        """Prefix of the page's widget keys."""
        return self.page.lower()

    @property
    def prompt(self):
        """The prompt whose group is shown."""
        return self.selected[0]

    @property
    def looks(self):
        """What every chart takes besides its numbers."""
        return {
            "palette": self.palette,
            "former": self.former,
            "pinned": self.pinned,
            "selected": self.selected,
        }


@contextmanager
def frame(key):
    """Open a page by its key in the menu; gives what it shows.

    Examples
    --------
    >>> with frame("Advantages") as shown:  # doctest: +SKIP
    ...     draw(shown.evaluation)
    """
    row = MENU[key]
    st.set_page_config(
        page_title=f"{row.label} · GRPO Explorer",
        page_icon=str(_ASSETS / "icon.svg"),
        layout="wide",
    )
    st.html(f"<style>{_style()}</style>")
    state.read_link(editors.editing())
    editors.apply_edits()
    with st.container(horizontal=True, vertical_alignment="bottom", key="head"):
        st.title(row.question, anchor=False)
        head = st.container(
            horizontal=True, width="content", vertical_alignment="bottom", key="head_tools"
        )
    # Slots that are always there: an element that comes or goes would make all below it anew.
    notice = st.empty()
    with st.container(key="message"):
        if state.store().message:
            st.warning(literal(state.store().message), icon=":material/warning:")
        elif state.store().note:
            st.info(literal(state.store().note), icon=":material/info:")
    with st.container(key="lesson"):
        if row.example:
            share.lesson()
    yield _shown(key)
    state.write_link()
    if state.store().too_large and row.example:
        notice.caption(
            "This example is too large for a link: the address does not hold it, and reloading the "
            "page loses it. Save it as a file: Share, Export."
        )
    with head:
        if row.example:
            share.tools()
    if not st.context.is_embedded:
        _menu(row)
    _spare_the_collector()


def _shown(key):
    here = state.store()
    evaluation = state.evaluation_of(here.scenario)

    def comparable(scenario):
        """Only a state of the same sizes can be laid over the present one."""
        if scenario is None or scenario.sizes != here.scenario.sizes:
            return None
        return state.evaluation_of(scenario)

    return Shown(
        page=key,
        scenario=here.scenario,
        evaluation=evaluation,
        former=comparable(here.former),
        pinned=comparable(here.view.pinned),
        selected=here.view.selected,
        palette=PALETTES["dark" if state.dark() else "light"],
    )


def _spare_the_collector():
    """Once a process, take what was imported out of Python's garbage collection.

    Streamlit collects after every run, holding up the messages of that run, and mostly looks
    through the modules of Plotly and pandas. What is frozen can still be freed, save by the
    collector: of the few sessions open at that moment, cycles stay. Nothing later is frozen, so
    memory does not grow with time.
    """
    if next(_finished_runs()) == _WARM:
        gc.collect()
        gc.freeze()


@st.cache_resource(show_spinner=False)
def _finished_runs():
    return itertools.count(1)


@st.cache_resource(show_spinner=False)
def _style():
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(_ASSETS.glob("*.css")))


def _menu(present):
    """Grouped links; the first group and the present page's are open."""
    with st.sidebar:
        st.markdown("**GRPO Explorer**")
        for group in GROUPS:
            pages = [page for page in MENU.values() if page.group == group]
            opened = group in (GROUPS[0], present.group)
            with st.expander(group, expanded=opened, key=f"menu_{group}"):
                for page in pages:
                    st.page_link(
                        page.file,
                        label=page.label,
                        icon=page.icon,
                        query_params=state.link_parameters(),
                    )
