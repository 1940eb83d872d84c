"""The tables of an evaluation as CSV, safe to open in a spreadsheet."""

import csv
import io
import re
import zipfile

import numpy as np

from .computed import per_token

# A spreadsheet takes a cell that begins so for a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
# Read with ; or tab as the separator, a text falls apart there and at its line ends. The whole
# run before a sign is matched, with a sign or without, so that the search takes one pass.
_RUN = re.compile(r"""([;\s"]+)([=+\-@]?)""")
_BREAK = re.compile(r"[;\t\r\n]")


def tables_csv(evaluation):
    """The numbers of a batch as three CSV tables, every digit kept.

    Parameters
    ----------
    evaluation : Evaluation
        Of a scenario, whose rewards and texts are written beside the results.

    Returns
    -------
    dict of str
        ``groups.csv``, one row a prompt; ``completions.csv``, one row a completion that is
        present; ``tokens.csv``, one row a position that counts. Texts that a spreadsheet
        would take for a formula get an apostrophe before it.
    """
    return {
        "groups.csv": _csv(_groups(evaluation)),
        "completions.csv": _csv(_completions(evaluation)),
        "tokens.csv": _csv(_tokens(evaluation)),
    }


def tables_zip(evaluation):
    """The tables of `tables_csv` in one zip file; the same bytes for the same numbers."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in tables_csv(evaluation).items():
            # A fixed date: the clock has no place in the file.
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    return buffer.getvalue()


def _csv(rows):
    buffer = io.StringIO()
    writer = csv.writer(buffer)  # its own line ends, \r\n: it then quotes either in a text
    writer.writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def _cell(value):
    if isinstance(value, str):
        return ("'" if value.startswith(_FORMULA_STARTS) else "") + _RUN.sub(_defused, value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)) and np.isnan(value):
        return ""
    return str(value)


def _defused(run):
    """Blanks and separators, with an apostrophe where a formula would begin behind them."""
    between, sign = run.groups()
    return f"{between}'{sign}" if sign and _BREAK.search(between) else run.group()


def _groups(evaluation):
    yield (
        "prompt", "text", "completions", "scored", "tokens", "mean", "std", "tied", "contribution"
    )  # fmt: skip
    scenario = evaluation.scenario
    for p in range(len(evaluation.mean)):
        yield (
            p,
            scenario.texts.prompt(p),
            np.sum(scenario["present"][p]),
            np.sum(evaluation.scored[p]),
            np.sum(evaluation.lengths[p]),
            evaluation.mean[p],
            evaluation.std[p],
            evaluation.tied[p],
            np.sum(evaluation.contribution[p]),
        )


def _completions(evaluation):
    yield (
        "prompt", "completion", "text", "reward", "score", "advantage", "length", "contribution"
    )  # fmt: skip
    scenario = evaluation.scenario
    for p, g in np.argwhere(scenario["present"]):
        yield (
            p,
            g,
            scenario.texts.completion(p, g),
            scenario["rewards"][p, g],
            evaluation.scores[p, g] if evaluation.scored[p, g] else np.nan,
            evaluation.advantages[p, g],
            evaluation.lengths[p, g],
            np.sum(evaluation.contribution[p, g]),
        )


def _tokens(evaluation):
    names = per_token(evaluation)
    yield ("prompt", "completion", "token", "text", *names)
    arrays = [getattr(evaluation, name) for name in names]
    for where in map(tuple, np.argwhere(evaluation.valid).tolist()):
        yield (*where, evaluation.scenario.texts.token(*where), *(array[where] for array in arrays))
