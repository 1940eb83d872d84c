"""The runs of a session: which are open, how they are read, which step and group is looked at.

Uploads belong to the session; what ships, and what the command line names, is read once for all.
"""

import sys
from dataclasses import dataclass, field, replace

import streamlit as st

from grpo_core import DEFAULT_CONVENTIONS, ScenarioError
from grpo_core.presets import PRESETS
from grpo_core.runs.explain import Explained, explain, say

from . import run_words, state
from .run_bundled import BUNDLED, PRESET_OF, opened_path, path_of
from .runs.opening import OpenedRun, Survey, asking_all, look, open_run, sources_of_uploads
from .runs.records import RolesNeeded, RunFileError
from .trainer_text import read_settings

_STORE, _PAGE = "runs", "Your_run"
_UPLOADS = 2  # runs of one's own that a session keeps: each holds its files in memory
_STEPS = 16  # whose prompts are kept
PATH = "path"  # the key of the run that the command line names


@dataclass
class Held:
    """One open run: what was read, and the reader's choices about it.

    ``path`` is where it lies on the server, '' of an upload. ``roles`` are the choices that
    differ from the guesses, ``weights`` those typed in. What follows from all of it is kept in
    ``made`` until a choice changes. ``jumps`` counts how often another group was shown without
    a click into the table of groups, which then starts anew.
    """

    key: str
    label: str
    survey: Survey
    opened: OpenedRun
    path: str = ""
    settings: str = ""
    roles: dict = field(default_factory=dict)
    weights: tuple[float, ...] | None = None
    task: str | None = None
    step: int | None = None
    group: int | None = None
    jumps: int = 0
    error: str = ""
    settings_error: str = ""
    made: tuple | None = None
    prompts: dict[int, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Pending:
    """Files whose columns have to be named before they are a run, and what is asked."""

    key: str
    label: str
    survey: Survey
    path: str
    asked: str


@dataclass
class Runs:
    """The open runs by key, which one is shown, and which beside it."""

    held: dict[str, Held] = field(default_factory=dict)
    shown: str = next(iter(BUNDLED))
    beside: str = ""  # '' is none
    error: str = ""
    pending: Pending | None = None
    uploads: int = 0
    linked: dict[str, str] = field(default_factory=dict)
    quantity: str = "advantage"


def runs():
    """This session's runs."""
    if _STORE not in st.session_state:
        here = Runs()
        if path_of(sys.argv) is not None:
            here.shown = PATH
        st.session_state[_STORE] = here
    return st.session_state[_STORE]


@st.cache_resource(show_spinner="Reading the run …", max_entries=8)
def _read_path(path):
    """A run on the server's disk, read once for all sessions."""
    return opened_path(path)


def named_on_start():
    """True once a session, where the command line names a run and the address nothing else."""
    asked = path_of(sys.argv) is not None and not st.query_params
    first = asked and _STORE not in st.session_state
    runs()
    return first


def read_again():
    """Forget what was read from the command line's path, which may have grown since."""
    path = path_of(sys.argv)
    _read_path.clear(path)
    _explained_path.clear(path)
    here = runs()
    here.held.pop(PATH, None)
    here.error, here.pending = "", None


def labels():
    """Key -> label of every run that can be shown."""
    here, path = runs(), path_of(sys.argv)
    named = {} if path is None else {PATH: path}
    own = {key: held.label for key, held in here.held.items() if key.startswith("upload")}
    return {**named, **own, **{key: row.label for key, row in BUNDLED.items()}}


def held(key):
    """The open run of a key; None where it cannot be read, with the reason in ``runs().error``."""
    here = runs()
    if key not in here.held:
        row = BUNDLED.get(key)
        path = path_of(sys.argv) if row is None else row.path
        try:
            survey, opened = _read_path(path)
        except RunFileError as error:
            here.error = str(error)
            return None
        if isinstance(opened, RolesNeeded):
            here.pending = Pending(key, labels()[key], asking_all(survey), path, str(opened))
            return None
        settings = "" if row is None else row.settings
        here.held[key] = Held(key, labels()[key], survey, opened, path, settings)
    return here.held[key]


def take_uploads(files):
    """Open uploaded files as one run and show it; a refusal becomes the message."""
    here = runs()
    here.error, here.pending = "", None
    here.uploads += 1
    key, label = f"upload {here.uploads}", "Yours"
    try:
        survey = look(sources_of_uploads(files))
        label = f"Yours: {survey.name}"
        _show_upload(Held(key, label, survey, open_run(survey)))
    except RolesNeeded as asked:
        here.pending = Pending(key, label, asking_all(survey), "", str(asked))
    except RunFileError as error:
        here.error = str(error)


def answer(roles):
    """Open what was waiting for roles; what is still missing is asked again."""
    here = runs()
    waiting = here.pending
    try:
        opened = open_run(waiting.survey, roles)
    except RunFileError as error:
        here.pending = replace(waiting, asked=str(error))
        return
    here.pending = None
    run = Held(waiting.key, waiting.label, waiting.survey, opened, waiting.path, roles=dict(roles))
    if waiting.path:
        here.held[waiting.key] = run
    else:
        _show_upload(run)


def _show_upload(run):
    here, key = runs(), run.key
    here.held[key] = run
    own = [each for each in here.held if each.startswith("upload")]
    for old in own[:-_UPLOADS]:
        del here.held[old]
        if here.beside == old:
            here.beside = ""
    here.shown = key
    if here.beside == key:
        here.beside = ""


def take_roles(run, roles):
    """Read a run again with other roles; the ones before stay where that does not work."""
    try:
        opened = open_run(run.survey, roles)
    except RunFileError as error:
        run.error = str(error)
        return
    run.opened, run.roles, run.error = opened, roles, ""
    run.weights = run.task = run.group = run.made = None
    run.prompts = {}


def explained(run) -> Explained:
    """What was found out about a run under the present choices; computed once."""
    names = (*run.opened.run.names, *run.opened.run.measures)
    task = run.task if run.task in names else None
    choices = (id(run.opened), run.weights, task)
    if run.made is None or run.made[0] != choices:
        found = _explained(run, task)
        run.made = (choices, *found)
    return run.made[1]


def said(run):
    """What a run says, gravest first."""
    explained(run)
    return run.made[2]


def _explained(run, task):
    """Shared between sessions for a run on the server that is read as it was guessed."""
    if run.path and not run.roles and run.weights is None and task is None:
        return _explained_path(run.path, run.label)
    return _made(run.opened, run.label, run.weights, task)


def _made(opened, label, weights, task):
    found = explain(
        opened.run, opened.log, name=label, weights=weights, task=task,
        stand_ins=opened.stand_ins,
    )  # fmt: skip
    return found, say(found)


@st.cache_resource(show_spinner=False, max_entries=8)
def _explained_path(path, _label):
    return _made(_read_path(path)[1], _label, None, None)


def prompts_of(run, step):
    """Prompts of a step's groups, read once as long as few other steps are looked at."""
    if step not in run.prompts:
        groups = run.opened.run.at(step).tolist()
        read = [next((prompt for prompt, _ in run.opened.texts(q) if prompt), "") for q in groups]
        run.prompts = {**dict(list(run.prompts.items())[-_STEPS + 1 :]), step: read}
    return run.prompts[step]


def conventions(run):
    """(conventions of the run's settings, where they come from): what advantages do not tell."""
    run.settings_error = ""
    if run.settings.strip():
        try:
            pasted = read_settings(run.settings)
        except ScenarioError as error:
            run.settings_error = f"The settings were not read: {error}"
        else:
            return pasted.reading.conventions, f"the settings given ({pasted.reading.name})"
    key = PRESET_OF.get(run.opened.format.key)
    if key is None:
        return DEFAULT_CONVENTIONS, "the defaults of this app"
    return PRESETS[key].conventions, f"the defaults of {PRESETS[key].label}"


def follow_link():
    """Link -> runs, where it says something else than it did: a run that ships, step, group."""
    here, given = runs(), state.store().view.chosen(_PAGE)
    if given == here.linked:
        return
    here.linked = given
    here.shown = given.get("run") if given.get("run") in BUNDLED else next(iter(labels()))
    here.beside = given.get("beside") if given.get("beside") in BUNDLED else ""
    run = held(here.shown)
    if run is not None:
        run.step, run.group = _whole(given.get("step")), None
        groups = [] if run.step is None else run.opened.run.at(run.step).tolist()
        at = _whole(given.get("group"))
        run.group = groups[at] if at is not None and at < len(groups) else None
        run.jumps += 1


def _whole(text):
    """A number of the link that was written here, else None."""
    fits = isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if fits else None


def note_link(run, found):
    """Runs -> link: what is looked at, of a run that ships; one's own files are in no link."""
    here, choices = runs(), {}
    if run.key in BUNDLED:
        at = run.opened.run.at(run.step).tolist()
        own = run_words.first_group(found, run.step)
        choices = {
            "run": run.key if run.key != next(iter(BUNDLED)) else None,
            "beside": here.beside if here.beside in BUNDLED else None,
            "step": str(run.step) if run.step != run_words.first_step(found) else None,
            "group": str(at.index(run.group)) if run.group in at and run.group != own else None,
        }
        choices = {name: value for name, value in choices.items() if value is not None}
    if choices != here.linked:
        here.linked = choices
        state.choose(_PAGE, choices)


def show_step(step):
    """Callback: look at a step."""
    run = runs().held[runs().shown]
    run.step, run.group = int(step), None
    run.jumps += 1


def show_group(q):
    """Callback: look at a group and its step."""
    run = runs().held[runs().shown]
    run.group, run.step = int(q), int(run.opened.run.steps[q])
    run.jumps += 1
