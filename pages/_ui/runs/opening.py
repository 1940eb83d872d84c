"""Opening: files of any trainer become one `Run`, its log, and its texts and tokens on demand."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from grpo_core.runs.run import Run, RunLog

from .archive import sources_of_path, sources_of_uploads
from .bounds import check_bound
from .grouping import grouped
from .heads import Column, Format
from .joining import Uses, joined, own_uses
from .log import read_log
from .needed import NUMBERS, is_lacking, listed
from .records import RolesNeeded, RunFileError
from .repeats import repeats
from .rows import Rows, gathered
from .survey import Survey, asking_all, first_few, look
from .unusual import unusual_batches
from .vocabulary import read_vocabulary

__all__ = [
    "OpenedRun",
    "Survey",
    "asking_all",
    "look",
    "open_run",
    "sources_of_path",
    "sources_of_uploads",
]

LARGEST = 1e100  # of a reward or an advantage: squares of larger ones overflow


@dataclass(frozen=True, eq=False, kw_only=True)
class OpenedRun:
    """A run as it was read, with roles as they were chosen.

    Attributes
    ----------
    name : str
    format : heads.Format
        Has ``key`` and ``label``.
    run : grpo_core.runs.run.Run
    log : grpo_core.runs.run.RunLog or None
    columns : tuple of heads.Column
    roles : mapping from column to one of `records.ROLES`
    notes : tuple of str
        What was left out, recognised or doubted.
    rows : rows.Rows
        All records; ``run.rows`` points into them.
    uses : joining.Uses
    stand_ins : bool
        True where the files hold no rewards and logged advantages stand in for them: what would
        be said of totals and conventions would be said of the advantages themselves.
    """

    name: str
    format: Format
    run: Run
    log: RunLog | None
    columns: tuple[Column, ...]
    roles: Mapping[str, str]
    notes: tuple[str, ...]
    rows: Rows
    uses: Uses
    stand_ins: bool = False

    def texts(self, q):
        """(prompt, completion) of each completion of group `q`, read again; '' where absent."""
        return self.rows.texts(self.run.rows[q])

    def tokens(self, q):
        """A `TokenGroup` for each use of group `q` that has tokens, in the order of steps."""
        return self.uses.of(self.run.rows[q])


def open_run(survey, roles=None):
    """Read a run.

    Parameters
    ----------
    survey : Survey
        Of `look`.
    roles : mapping from column to one of `records.ROLES`, optional
        Where they differ from the guesses in ``survey.columns``.

    Returns
    -------
    OpenedRun

    Raises
    ------
    RunFileError
        Nothing can be read, or there is too much of it; `RolesNeeded` where another choice of
        roles could help: no prompt, no reward, a column that does not hold what its role needs.
    """
    roles = {column.name: column.role for column in survey.columns} | dict(roles or {})
    check_roles(roles, survey)
    rows, problems = _read(survey.heads, survey.format, roles, survey.name)
    again = repeats(rows)
    kept = np.nonzero(again.kept == np.arange(len(rows.step)))[0]
    groups = _groups(rows, kept, roles, survey.name)
    at = np.where(groups.rows >= 0, kept[groups.rows], -1)
    run, doubts = _run(rows, at, groups.steps, roles, survey.name)
    log, log_notes = _or_note(read_log, survey.log_source)
    words, word_notes = _or_note(read_vocabulary, survey.vocabulary_source)
    uses, join_notes = _uses(survey, rows, again)
    read = (note for records in rows.files for note in records.notes)
    notes = [*survey.notes, *problems, *first_few(list(dict.fromkeys(read)))]
    notes += [*_repeat_notes(again), *groups.notes, *doubts, *log_notes, *word_notes, *join_notes]
    notes += unusual_batches(rows, kept, run) if rows.block else ()
    return OpenedRun(
        name=survey.name,
        format=survey.format,
        run=run,
        log=log,
        columns=survey.columns,
        roles=roles,
        notes=tuple(notes),
        rows=rows,
        uses=replace(uses, vocabulary=words or {}),
        stand_ins=survey.format.stand_in in run.names,
    )


def check_roles(roles, survey):
    """Refuse a choice of roles that makes no run.

    Raises
    ------
    RolesNeeded
        No column has the role of a reward; a `RunFileError` if none could have it.
    """
    if is_lacking(roles, prompt=False):
        numbers = any(column.kind == "number" for column in survey.columns)
        raise (RolesNeeded if numbers else RunFileError)(
            f"{survey.name} has no column with a reward; its columns are {listed(tuple(roles))}. "
            "Say which of them is one."
        )


def _read(heads, row, roles, name):
    """(rows of all files that can be read, sentences about the others)."""
    files, names, problems = [], [], []
    total = 0
    for head in heads:
        try:
            records = row.read(head, roles)
        except RunFileError as error:
            problems.append(error)
            continue
        total += len(records.step)
        check_bound("rows", total, name)
        check_bound("numbers", total * max(len(records.numbers), 1), name)
        files.append(records)
        names.append(head.source.name)
    if not files:
        raise next((error for error in problems if isinstance(error, RolesNeeded)), problems[0])
    return gathered(files, names, name), first_few([str(error) for error in problems])


def _groups(rows, kept, roles, name):
    """The `Groups` of the rows that count."""
    logged = next((key for key in rows.numbers if roles.get(key) == "advantage"), None)
    advantages = None if logged is None else rows.numbers[logged][kept]
    return grouped(rows.step[kept], rows.group[kept], rows.block, rows.file[kept], name, advantages)


def _run(rows, at, steps, roles, name):
    """(Run, notes) of rows in a grid (Q, G)."""
    present = at >= 0
    check_bound("numbers", at.size * max(len(rows.numbers), 1), name)
    usable, notes = _usable(rows, roles)

    def grid(values):
        return np.where(present, values[at], np.nan)

    of = {role: [key for key in rows.numbers if roles.get(key) == role] for role in NUMBERS}
    names = of["term"] or of["total"]
    if not names:
        raise RolesNeeded(f"{name}: what could be read holds no reward. Choose another column.")
    terms = np.stack([grid(usable[key]) for key in names], axis=-1)
    if np.all(np.isnan(terms)):
        raise RolesNeeded(
            f"{name}: no completion has a score in {listed(names)}, every one is blank or NaN. "
            "Choose another column for the reward."
        )
    return Run(
        steps=steps,
        present=present,
        names=tuple(names),
        terms=terms,
        totals=grid(usable[of["total"][0]]) if of["total"] and of["term"] else None,
        measures={key: grid(rows.numbers[key]) for key in of["measure"]},
        advantages=grid(usable[of["advantage"][0]]) if of["advantage"] else None,
        lengths=None if rows.lengths is None else grid(rows.lengths),
        unit=rows.unit,
        rows=at,
    ), notes


def _usable(rows, roles):
    """(numbers with those blanked that nothing can be computed from, a note for each column)."""
    found, notes = {}, []
    for name, values in rows.numbers.items():
        wrong = np.abs(values) > LARGEST
        found[name] = np.where(wrong, np.nan, values) if wrong.any() else values
        if wrong.any() and roles.get(name) != "measure":
            row, count = int(np.argmax(wrong)), int(wrong.sum())
            cells = "it counts" if count == 1 else f"{count:,} such cells count"
            notes.append(
                f"{rows.names[rows.file[row]]}: column {name!r}, row {rows.row[row]} is "
                f"{values[row]:g}; {cells} as blank."
            )
    return found, notes


def _or_note(read, source):
    """(what a file beside the records holds, notes): it is left out if it cannot be read."""
    if source is None:
        return None, ()
    try:
        return read(source), ()
    except RunFileError as error:
        return None, (f"{error} It was left out.",)


def _uses(survey, rows, again):
    """(where the tokens of each row are, notes)."""
    if not survey.attached:
        return own_uses(rows, again), ()
    return joined(survey.attached, rows, again)


def _repeat_notes(again):
    said = {
        f"{again.batches:,} batches repeat an earlier one, as when each is used several times; "
        "each counts once, at its first step.": again.batches,
        f"{again.rows:,} rows at the start of a file repeat the end of the one before; they "
        "count once.": again.rows,
    }
    return tuple(note for note, count in said.items() if count)
