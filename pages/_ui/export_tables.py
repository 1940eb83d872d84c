"""The tables of an evaluation as CSV, safe to open in a spreadsheet."""

import csv
import io
import zipfile

import numpy as np

# A spreadsheet takes a cell that begins so for a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")

_PER_TOKEN = (
    "logp_new",
    "logp_old",
    "logp_ref",
    "token_advantages",
    "log_ratio",
    "ratio",
    "clipped_low",
    "clipped_high",
    "dual_clipped",
    "surrogate",
    "kl",
    "kl_penalty",
    "reward_penalty",
    "per_token",
    "weight",
    "contribution",
    "policy_gradient",
    "kl_gradient",
    "gradient",
)


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
        would take for a formula get a leading apostrophe.
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
        return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)) and np.isnan(value):
        return ""
    return str(value)


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
    yield ("prompt", "completion", "token", "text", *_PER_TOKEN)
    arrays = [getattr(evaluation, name) for name in _PER_TOKEN]
    for where in map(tuple, np.argwhere(evaluation.valid).tolist()):
        yield (*where, evaluation.scenario.texts.token(*where), *(array[where] for array in arrays))
