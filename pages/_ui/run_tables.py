"""The numbers of a run as tables, nothing rounded, and as CSV that a spreadsheet may open."""

import io
import re
import zipfile

import numpy as np
import pandas as pd

from grpo_core.attribution import spread_shares
from grpo_core.runs.fit import TOLERANCE
from grpo_core.runs.run import total_rewards

from .numbers import number

# A spreadsheet takes a cell that begins so for a formula.
_FORMULA_STARTS = ("=", "+", "-", "@")
# Read with another separator, or badly, a text falls apart behind these.
_SEPARATORS = re.compile(r"(?<=[;,\t\r\n])")
_BLANKS = ' \t\r\n"'
_UNKNOWN = "?"


def steps_table(shown):
    """One row for each scored step: everything that is recounted.

    Parameters
    ----------
    shown : Explained

    Returns
    -------
    DataFrame
    """
    series, names = shown.series, shown.run.names
    columns = [
        ("step", series.steps),
        ("groups", series.groups),
        ("completions", series.completions),
        ("total reward", series.reward),
        *((f"mean of {name}", series.terms[:, k]) for k, name in enumerate(names)),
        (f"task: {shown.task}", series.task),
        ("standard error of the task", series.task_error),
        ("tied groups", series.tied),
        ("groups decided by shaping alone", series.shaped_only),
        *((f"share of {name}", series.shares[:, k]) for k, name in enumerate(names)),
        ("correlation with the task", series.correlation),
        *_lengths(shown.run, series),
    ]
    return _frame(columns)


def _lengths(run, series):
    if run.lengths is None:
        return []
    return [
        (f"length ({run.unit})", series.length),
        ("length above the middle of the task", series.length_right),
        ("length below", series.length_wrong),
    ]


def log_table(log):
    """What the trainer logged, a row a step under its own names; no rows without a log."""
    if log is None:
        return pd.DataFrame({"step": np.zeros(0, dtype=np.int64)})
    return _frame([("step", log.steps), *log.values.items()])


def tried_table(fit):
    """Every rule that was tried, the best first, with what suits it best.

    Weights are text of six digits, in the order of the terms; ``?`` stands for one that no
    advantage tells.
    """
    rows = [
        {
            "rule": each.rule.label,
            "weights": ", ".join(
                number(weight, 6) if fixed else _UNKNOWN
                for weight, fixed in zip(each.weights.tolist(), each.fixed.tolist(), strict=True)
            ),
            "eps": float(each.eps),
            "error": float(each.error),
            "fits": bool(each.error <= TOLERANCE),
        }
        for each in fit.tried
    ]
    return pd.DataFrame(rows, columns=["rule", "weights", "eps", "error", "fits"])


def misfit_table(shown, limit):
    """Groups whose logged advantages the rule does not give, the worst first, at most so many."""
    table = _groups(shown, shown.fit.misfits[:limit])
    return table.drop(columns=["tied"])


def groups_table(shown, step):
    """The groups of one step.

    Parameters
    ----------
    shown : Explained
    step : int

    Returns
    -------
    DataFrame
        ``group`` is the index in the run. ``std`` is that of the sample; NaN of one completion.
        ``decided by`` is what has the largest share of the spread: ``task``, the name of
        another term, or ``nothing`` in a tied group. ``off`` is the largest difference between
        logged and recomputed advantages.
    """
    return _groups(shown, shown.run.at(step)).drop(columns=["step"])


def _groups(shown, chosen):
    """Some groups, (N,) indices, as a table."""
    run, fit, q = shown.run, shown.fit, np.asarray(chosen, dtype=np.int64)
    totals = total_rewards(run, fit.weights)[q]
    scored = np.isfinite(totals) & run.present[q]
    scores = scored.sum(axis=1)
    mean = _over(np.sum(np.where(scored, totals, 0.0), axis=1), scores)
    apart = np.where(scored, totals - mean[:, None], 0.0)
    std = np.where(fit.tied[q], 0.0, np.sqrt(_over(np.sum(apart**2, axis=1), scores - 1)))
    columns = [
        ("group", q),
        ("step", run.steps[q]),
        ("completions", run.sizes[q]),
        ("mean", mean),
        ("std", np.where(scores > 1, std, np.nan)),
        ("tied", fit.tied[q]),
        ("decided by", _decided_by(shown, q)),
    ]
    if run.advantages is not None:
        known = np.isfinite(run.advantages[q]) & run.present[q]
        largest = np.max(np.where(known, np.abs(run.advantages[q]), 0.0), axis=1)
        largest = np.where(known.any(axis=1), largest, np.nan)
        columns += [("largest advantage logged", largest), ("off", fit.off[q])]
    return _frame(columns)


def _over(sums, scores):
    return np.divide(sums, scores, out=np.full(len(sums), np.nan), where=scores > 0)


def _decided_by(shown, q):
    """What has the largest share of each group's spread."""
    if not q.size:
        return []
    terms = shown.run.terms[q]
    known = ~np.isnan(terms) & shown.run.present[q][..., None]
    parts = np.where(known, terms, 0.0) * shown.fit.weights
    shares = spread_shares(np.moveaxis(parts, -1, 0), known.any(axis=-1))
    names = ["task" if name == shown.task else _whole(name) for name in shown.run.names]
    tied = shown.fit.tied[q] | ~np.any(shares, axis=0)
    return [
        "nothing" if nothing else names[k]
        for nothing, k in zip(tied.tolist(), np.argmax(shares, axis=0).tolist(), strict=True)
    ]


def completions_table(shown, q):
    """The completions of one group: every term and measure, total, advantages, length."""
    return _completions(shown, np.array([q])).drop(columns=["step", "group"])


def _completions(shown, q):
    """The completions of some groups, in their order."""
    run, fit = shown.run, shown.fit
    at, g = np.nonzero(run.present[q])
    where = q[at], g
    columns = [
        ("step", run.steps[where[0]]),
        ("group", where[0]),
        ("completion", g),
        *((name, run.terms[..., k][where]) for k, name in enumerate(run.names)),
        *((name, values[where]) for name, values in run.measures.items()),
        ("total", total_rewards(run, fit.weights)[where]),
        ("logged advantage", run.advantages),
        ("recomputed advantage", fit.predicted),
        ("length", run.lengths),
    ]
    optional = ("logged advantage", "recomputed advantage", "length")
    return _frame(
        (name, values[where] if name in optional and np.ndim(values) == 2 else values)
        for name, values in columns
        if values is not None
    )


def _frame(columns):
    """A table of (name, values) pairs; a name that comes twice gets a number behind it."""
    table, names = {}, []
    for name, values in columns:
        names.append(_unused(_whole(name), table))
        table[names[-1]] = values
    return pd.DataFrame(table, columns=names)


def _whole(text):
    """A text without half characters, which no file can hold: they become their codes."""
    return str(text).encode("utf-8", "backslashreplace").decode()


def _unused(name, taken):
    at, found = 2, name
    while found in taken:
        found, at = f"{name} ({at})", at + 1
    return found


def every_table(shown, prompts=None):
    """All tables of a run: title -> frame.

    Parameters
    ----------
    shown : Explained
    prompts : sequence of str, (Q,), or None
        Put into the table of groups.
    """
    every = np.arange(len(shown.run.steps))
    groups = _groups(shown, every)
    if prompts is not None:
        groups.insert(1, "prompt", [_whole(prompt) for prompt in prompts])
    tables = {
        "steps": steps_table(shown),
        "log": log_table(shown.log),
        "rules": tried_table(shown.fit),
        "misfits": misfit_table(shown, len(every)),
        "groups": groups,
        "completions": _completions(shown, every),
    }
    return {name: table for name, table in tables.items() if len(table)}


def tables_csv(shown, prompts=None):
    """All tables of a run as a zip of CSV files, every digit kept; the same bytes each time.

    Texts that a spreadsheet would take for a formula get an apostrophe before it, in cells and
    in headings; numbers stay as they are.

    Returns
    -------
    bytes
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, table in every_table(shown, prompts).items():
            entry = zipfile.ZipInfo(f"{name}.csv")  # a fixed date: the clock has no place here
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, _csv(table).encode())
    return buffer.getvalue()


def _csv(table):
    safe = {
        name: column if column.dtype.kind in "biuf" else [_defused(cell) for cell in column]
        for name, column in table.items()
    }
    frame = pd.DataFrame(safe).rename(columns=_defused)
    return frame.to_csv(index=False, lineterminator="\r\n")


def _defused(cell):
    """A text that no spreadsheet runs: not at its start, nor behind a separator within it."""
    if not isinstance(cell, str):
        return cell
    return "".join(
        f"'{part}" if part.lstrip(_BLANKS).startswith(_FORMULA_STARTS) else part
        for part in _SEPARATORS.split(cell)
    )
