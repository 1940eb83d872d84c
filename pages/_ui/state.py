"""What a session holds: the scenario, the view, and their way into the address and back.

This is the only module that touches the query string, and the keeper of the session's store.
Everything that changes the scenario happens before the first thing is drawn: the link is read,
then the edits of tables that were on the screen are applied; widgets call back before the run.
A page then draws from top to bottom what is in the store.
"""

from dataclasses import dataclass, field, replace

import streamlit as st

from grpo_core import Scenario, ScenarioError, evaluate
from grpo_core.findings import find

from .examples import load_examples
from .link import LIMIT, LinkError, decode, encode
from .view import View

_STORE = "store"
_LINK = "s"
_REMEMBERED = 8  # replaced links


@dataclass
class Store:
    """The state of one visitor's session.

    ``former`` is the scenario before the last edit, drawn as a ghost. ``version`` counts
    replacements of the whole scenario; tables carry it in their key, so that a replaced
    scenario gets fresh tables. ``link`` is the one last written or read; ``replaced``
    holds those before it. ``touched`` says that a widget was worked since the last run.
    """

    scenario: Scenario
    view: View = field(default_factory=View)
    former: Scenario | None = None
    version: int = 0
    link: str = ""
    link_of: tuple | None = None
    replaced: tuple = ()
    overridden: dict = field(default_factory=dict)
    touched: bool = False
    fresh: bool = True
    begun_from: str | None = None
    too_large: bool = False
    message: str = ""
    note: str = ""
    errors: dict = field(default_factory=dict)
    refused: set = field(default_factory=set)
    tables: dict = field(default_factory=dict)
    evaluations: list = field(default_factory=list)
    pasted_line: list | None = None


@st.cache_resource(show_spinner=False)
def examples():
    """The shipped examples, read once for all sessions."""
    return load_examples()


def default_scenario():
    """The example that opens first."""
    return next(iter(examples().values())).scenario


def store():
    """This session's store; a fresh one holds the default example."""
    if _STORE not in st.session_state:
        st.session_state[_STORE] = Store(default_scenario())
    return st.session_state[_STORE]


def touch():
    """Callback of every widget that has no other: it tells a run of its from the browser's Back.

    What was refused before has been read by now: the field shows the value that holds.
    """
    here = store()
    here.touched = True
    for place in here.refused:
        here.errors.pop(place, None)
    here.refused.clear()


def edit(scenario):
    """Take an edited scenario; the one before it stays as the ghost."""
    here = store()
    here.former, here.scenario = here.scenario, scenario
    here.touched = True
    here.message = here.note = ""
    _keep_selection_inside(here)


def load(scenario, view=None):
    """Take a whole other scenario: an example, a file, a link, a resize."""
    here = store()
    same_sizes = scenario.sizes == here.scenario.sizes
    here.former = here.scenario if same_sizes else None
    here.scenario = scenario
    if view is not None:
        here.view = view
    here.version += 1
    here.touched = True
    here.errors.clear()
    here.tables.clear()
    here.message = here.note = ""
    _keep_selection_inside(here)


def select(p, g, t):
    """Select a token."""
    here = store()
    here.view = replace(here.view, selected=(int(p), int(g), int(t)))
    here.touched = True
    _keep_selection_inside(here)


def choose(page, choices):
    """Keep what the reader chose to see on a page; it goes into the link."""
    here = store()
    here.view = here.view.choosing(page, choices)
    here.touched = True


def pin(scenario):
    """Pin a scenario as A, or None to unpin."""
    here = store()
    here.view = replace(here.view, pinned=scenario)
    here.touched = True


def attempt(change, place):
    """Run a change; a refusal becomes the message of one place, and the state stays."""
    here = store()
    try:
        change()
    except ScenarioError as error:
        here.errors[place] = str(error)
        here.refused.add(place)
    else:
        here.errors.pop(place, None)


def guarded(change, place):
    """A callback that attempts a change."""
    return lambda: attempt(change, place)


def _keep_selection_inside(here):
    sizes = here.scenario.sizes
    limits = (sizes["P"], sizes["G"], sizes["L"])
    inside = tuple(
        min(max(at, 0), size - 1) for at, size in zip(here.view.selected, limits, strict=True)
    )
    here.view = replace(here.view, selected=inside)


def evaluation_of(scenario):
    """Evaluate once a scenario: the present, the former and the pinned one are remembered."""
    kept = store().evaluations
    for entry in kept:
        if entry.scenario is scenario:
            return entry
    kept.append(evaluate(scenario))
    del kept[:-4]
    return kept[-1]


def findings(evaluation):
    """What the numbers of an evaluation say; computed once."""
    remembered = st.session_state.get("findings")
    if remembered is None or remembered[0] is not evaluation:
        remembered = (evaluation, find(evaluation))
        st.session_state["findings"] = remembered
    return remembered[1]


def read_link(editing):
    """Address -> store, if the address differs from the link last written or read.

    Back and Forward of the browser arrive here: undo and redo. No link at all is the
    default example, so that Back reaches the first state too.

    Parameters
    ----------
    editing : bool
        True if a table was edited since the last run.
    """
    given, here = st.query_params.get(_LINK, ""), store()
    if given == here.link or _overtaken(here, given, editing):
        return
    here.link, here.link_of = given, None
    try:
        scenario, view = decode(given, examples()) if given else (default_scenario(), View())
    except LinkError as error:
        load(default_scenario(), View())
        here.message = f"{error} You see the default example instead."
        return
    load(scenario, view)
    if here.fresh:
        here.former = None  # nobody has seen the default example that stood here for a moment
    here.link_of = (here.scenario, here.view)


def _overtaken(here, given, editing):
    """True if the address is only older than the store, not gone back to.

    A click or an edit that follows another within a third of a second is sent with the address
    from before the first one's link arrived. What tells it from Back: a widget was worked.
    """
    return given in here.replaced and (here.touched or editing)


def write_link():
    """Store -> address, if something changed; every write is a step in the browser's history."""
    here = store()
    here.touched = here.fresh = False
    present = (here.scenario, here.view)
    if here.link_of is not None and all(a is b for a, b in zip(here.link_of, present, strict=True)):
        return
    here.link_of = present
    try:
        link = _encoded(here)
    except LinkError:  # beyond any link, and not only beyond this address
        link = None
    here.too_large = link is None or len(address(link)) > LIMIT
    if here.too_large:
        link = ""
    if link != here.link:
        here.replaced = (*here.replaced, here.link)[-_REMEMBERED:]
        here.link = link
        if link:
            st.query_params[_LINK] = link
        elif _LINK in st.query_params:
            del st.query_params[_LINK]


def _encoded(here):
    """The default example needs no link; nor does an address that still says what it said."""
    view, plain = here.view, View()
    untouched = here.scenario is default_scenario() and view.pinned is None and not view.choices
    if untouched and view.selected == plain.selected:
        return ""
    return encode(here.scenario, here.view, examples())


def address(link=None):
    """The whole address of this page with a link, for sharing."""
    link = store().link if link is None else link
    here = st.context.url or ""
    return f"{here}?{_LINK}={link}" if link else here


def link_parameters():
    """Query parameters that carry the present state to another page."""
    link = store().link
    return {_LINK: link} if link else {}


def dark():
    """True if the reader's theme is dark."""
    return st.context.theme.type == "dark"
