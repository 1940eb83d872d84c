"""Tables of the length page: lengths and rewards to edit, what each recipe pays, what to do."""

import numpy as np
import pandas as pd

from grpo_core import ScenarioError
from grpo_core.breakdown import aggregations
from grpo_core.length_batches import with_lengths
from grpo_core.recipes import batch_pull

from . import tables
from .limits import CELLS, LARGEST, check_sizes
from .numbers import MISSING, number, percent

_TEXT = 12
_LENGTHS = (4, 12, 8, 16)  # of a batch that has none of its own to compare


def with_some_lengths(scenario):
    """A batch whose completions all have one token gets some lengths; any other stays as it is."""
    lengths = np.sum(scenario.valid, axis=2)
    P, G, L = scenario["mask"].shape
    if np.max(lengths, initial=0) > 1 or P * G * max(L, max(_LENGTHS)) > CELLS:
        return scenario
    wanted = np.where(lengths > 0, np.resize(_LENGTHS, (P, G)), np.nan)
    return scenario if np.all(np.isnan(wanted)) else with_lengths(scenario, wanted)


def lengths_frame(scenario, prompt):
    """Reward and number of tokens of each completion of a prompt; blank where there is none."""
    frame = tables.array_to_frame(scenario, "rewards", prompt)
    lengths = np.sum(scenario.valid[prompt], axis=1).astype(float)
    return frame.assign(tokens=np.where(scenario["present"][prompt], lengths, np.nan))


def short_texts(scenario, prompt):
    """Completions' texts to stand beside the table, cut so that its numbers stay in sight."""
    texts = tables.rewards_frame(scenario, prompt).drop(columns="rewards")
    return texts.map(lambda text: text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…")


def frame_to_lengths(scenario, frame, prompt):
    """The scenario with an edited table of `lengths_frame` put in; the same object if unchanged.

    A longer completion than all others widens the batch.

    Raises
    ------
    ScenarioError
        A number of tokens that is none, or too large; a reward that is none.
    """
    changed = tables.frame_to_array(scenario, "rewards", frame, prompt)
    present = changed["present"]
    now = np.where(present, np.sum(changed.valid, axis=2), np.nan)
    wanted = now.copy()
    wanted[prompt] = [
        _tokens(value, g, there)
        for g, (value, there) in enumerate(
            zip(frame["tokens"].tolist(), present[prompt].tolist(), strict=True)
        )
    ]
    if np.array_equal(wanted, now, equal_nan=True):
        return changed
    longest = max(int(np.nanmax(wanted)), changed.sizes["L"])
    check_sizes({**changed.sizes, "L": longest})
    return with_lengths(changed, wanted)


def _tokens(value, g, there):
    most = LARGEST["L"]
    blank = value is None or np.isnan(value)
    if not there:
        if blank:
            return np.nan
        raise ScenarioError(
            f"tokens, completion {g}: this completion is not there; switch it on in the table of "
            "present completions",
            field="present",
        )
    if blank or not (0 <= value <= most and float(value).is_integer()):
        found = "blank" if blank else f"{value:g}"
        raise ScenarioError(
            f"tokens, completion {g}: {found}; wanted a whole number from 0 to {most:,}",
            field="mask",
        )
    return float(value)


def recipes_frame(results, prompt):
    """What each recipe pays: shares of the whole update, and the batch's pull on length.

    Parameters
    ----------
    results : dict of str to grpo_core.recipes.RecipeResult
    prompt : int

    Returns
    -------
    DataFrame
        Shares are of the sum of all pushes, by size, since a learning rate makes up for the
        size of the step.
    """
    evaluation = next(iter(results.values())).evaluation
    ends = short_and_long(evaluation.lengths[prompt])
    rows = {}
    for result in results.values():
        row = {}
        if ends is not None:
            size = float(np.sum(np.abs(result.whole)))
            for name, g in zip(
                ("token of the shortest", "token of the longest"), ends, strict=True
            ):
                row[name] = _share(abs(result.push[prompt, g]), size)
            row["all of the longest"] = _share(abs(result.whole[prompt, ends[1]]), size)
        if len(evaluation.lengths) > 1:
            row[f"prompt {prompt}"] = percent(round(float(np.sum(result.share[prompt])), 9))
        pull = result.pull
        for name, value in (("right", pull.right), ("wrong", pull.wrong), ("all", pull.whole)):
            row[f"length, {name}"] = number(value, 3, signed=True)
        rows[result.recipe.label] = row
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("recipe")


def _share(part, size):
    return percent(round(part / size, 9)) if size > 0 else MISSING


def short_and_long(lengths):
    """Index of the shortest and of the longest completion that has tokens; None if none has."""
    (filled,) = np.nonzero(lengths > 0)
    if not filled.size:
        return None
    return int(filled[np.argmin(lengths[filled])]), int(filled[np.argmax(lengths[filled])])


def options_frame(evaluation, rows=None):
    """The batch under every aggregation: what each changes, in numbers."""
    rows = aggregations(evaluation) if rows is None else rows
    lengths = evaluation.lengths
    ends = short_and_long(lengths.ravel())
    return pd.DataFrame.from_dict(
        {f"{'● ' if row.chosen else ''}{row.label}": _option(row, ends, lengths) for row in rows},
        orient="index",
    ).rename_axis("aggregation")


def _option(row, ends, lengths):
    token, answer = long_over_short(row, ends, lengths)
    said = {
        "token: longest / shortest": number(token, 3),
        "answer: longest / shortest": number(answer, 3),
    }
    pull = batch_pull(row.evaluation)
    said["length of wrong answers"] = number(pull.wrong, 3, signed=True)
    said["gradient norm"] = number(row.evaluation.metrics["gradient_norm"], 3)
    return said


def long_over_short(row, ends, lengths):
    """What a token of the longest answer counts to one of the shortest, and the answers as wholes.

    NaN where there are no such answers, or the shortest counts nothing.
    """
    if ends is None:
        return np.nan, np.nan
    short, long = (float(row.first_weight.ravel()[end]) for end in ends)
    sizes = [float(lengths.ravel()[end]) for end in ends]
    if not short > 0:
        return np.nan, np.nan
    return long / short, long * sizes[1] / (short * sizes[0])
