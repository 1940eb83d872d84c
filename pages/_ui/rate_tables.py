"""Kinds of prompts as a table to edit: how often each value of the reward comes up.

With the values 0 and 1 a kind is a success rate, one column. Graded rewards have a column for
each value.
"""

import numpy as np
import pandas as pd

from grpo_core import ARRAYS, ScenarioError
from grpo_core.arrays import OWN_AXES
from grpo_core.prompt_rewards import prompts_from_table
from grpo_core.silent import tied_groups
from grpo_core.trials import binomial

from .numbers import count, number

RATES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)  # where an example has none
RATE = "success rate"
GROUP_SIZE = ARRAYS["group_size"].default
_KINDS, _VALUES = OWN_AXES["N"], OWN_AXES["M"]


def with_kinds(scenario):
    """The scenario with kinds of prompts: its own, or nine success rates if it has none.

    Returns
    -------
    Scenario
        The same object if nothing is missing.
    """
    there = [key in scenario for key in ("reward_chances", "reward_values")]
    if all(there):
        return scenario
    if there[0]:
        steps = np.linspace(0.0, 1.0, scenario["reward_chances"].shape[1])
        return scenario.replace(reward_values=steps)
    if there[1]:
        size = len(scenario["reward_values"]) - 1
        return scenario.replace(reward_chances=np.stack([binomial(size, rate) for rate in RATES]))
    return _right_or_wrong(scenario, np.array(RATES))


def _right_or_wrong(scenario, rates):
    # 1 - 0.99 in full would make a link twice as long.
    chances = np.column_stack([np.round(1 - rates, 15), rates])
    return scenario.replace(reward_chances=chances, reward_values=np.array([0.0, 1.0]))


def prompts_of(scenario):
    """`Prompts` of a scenario with kinds."""
    return prompts_from_kinds(scenario["reward_chances"], scenario["reward_values"])


def prompts_from_kinds(chances, values):
    """`Prompts` of chances (N, M) of values (M,); a kind without any always scores the first."""
    chances = chances.astype(np.float64)
    chances[:, 0] += np.sum(chances, axis=1) == 0
    return prompts_from_table(values.astype(np.float64), chances)


def group_size(scenario):
    """Completions per prompt of the closed forms."""
    return int(scenario.arrays.get("group_size", GROUP_SIZE))


def is_graded(scenario):
    """Whether rewards have other values than 0 and 1."""
    return with_kinds(scenario)["reward_values"].tolist() != [0.0, 1.0]


def kinds_frame(scenario):
    """The table: a column of success rates, or a column of chances for each value."""
    scenario = with_kinds(scenario)
    chances = scenario["reward_chances"].astype(np.float64)
    if is_graded(scenario):
        return pd.DataFrame(chances.copy(), columns=[str(m) for m in range(chances.shape[1])])
    return pd.DataFrame({RATE: prompts_of(scenario).rates})


def value_labels(scenario):
    """Headers of the columns of graded rewards."""
    values = with_kinds(scenario)["reward_values"].tolist()
    return {str(m): number(value) for m, value in enumerate(values)}


def kinds_note(scenario):
    """How the table is read."""
    if is_graded(scenario):
        return "A row a kind, a column a reward: how often it comes up. Sums count as 1."
    return "A row a kind: how often an answer to it is right."


def frame_to_kinds(scenario, frame):
    """The scenario with an edited table put in; the same object if nothing was changed.

    Raises
    ------
    ScenarioError
        Names row and column: a blank beside numbers, a number outside of 0 to 1 or below 0, a
        row without any chance, too few or too many rows. Rows that are all blank are left out.
    """
    before = kinds_frame(scenario)
    if list(frame.columns) != list(before.columns):  # another edit made it graded, or no longer
        raise ScenarioError(
            "Kinds of prompts: the rewards have changed; type it into the new table"
        )
    cells = frame[list(before.columns)].to_numpy(dtype=np.float64)
    given = np.flatnonzero(~np.all(np.isnan(cells), axis=1))
    cells = cells[given]
    _check_rows(cells, given, is_graded(scenario), value_labels(scenario))
    if cells.shape == before.shape and cells.tobytes() == before.to_numpy().tobytes():
        return scenario
    if is_graded(scenario):
        return with_kinds(scenario).replace(reward_chances=cells)
    return _right_or_wrong(scenario, cells[:, 0])


def _check_rows(cells, rows, graded, labels):
    def refuse(row, problem):
        message = f"Kinds of prompts, row {rows[row]}{problem}"
        raise ScenarioError(message, field="reward_chances", where=(int(row),))

    if not _KINDS.low <= len(cells) <= _KINDS.high:
        raise ScenarioError(
            f"Kinds of prompts: the table has {count(len(cells), 'row')}; wanted {_KINDS.low} to "
            f"{_KINDS.high}",
            field="reward_chances",
        )
    inside = (cells >= 0) & (np.isfinite(cells) if graded else cells <= 1)
    if not np.all(inside):
        row, column = np.argwhere(~inside)[0].tolist()
        found = "blank" if np.isnan(cells[row, column]) else number(cells[row, column])
        name = f"reward {labels[str(column)]}" if graded else RATE
        wanted = "a chance of at least 0" if graded else "a number from 0 to 1"
        refuse(row, f", {name}: {found}; wanted {wanted}")
    never = np.flatnonzero(np.sum(cells, axis=1) == 0)
    if graded and never.size:
        refuse(never[0], " has no chance of any reward; wanted at least one above 0")


def to_graded(scenario):
    """Kinds with the rewards 0, 0.5 and 1, each with the mean reward that it had.

    A kind of mean m scores as the mean of two answers of success rate m would.
    """
    chances = np.stack([binomial(2, rate) for rate in _relative_means(scenario)])
    return scenario.replace(reward_chances=chances, reward_values=np.array([0.0, 0.5, 1.0]))


def to_right_or_wrong(scenario):
    """Kinds with the rewards 0 and 1; the mean of each between lowest and highest is its rate."""
    return _right_or_wrong(scenario, _relative_means(scenario))


def _relative_means(scenario):
    """Mean reward of each kind, 0 at the lowest value and 1 at the highest."""
    prompts = prompts_of(with_kinds(scenario))
    low, span = np.min(prompts.values), prompts.span
    return np.clip((prompts.mean - low) / span if span > 0 else 0 * prompts.mean, 0.0, 1.0)


def with_values(scenario, size):
    """Kinds with another number of values: new ones at the end with chance 0, or the last gone.

    A kind that loses all its chances always scores the first value.
    """
    scenario = with_kinds(scenario)
    values, chances = scenario["reward_values"], scenario["reward_chances"]
    new = np.max(values) + np.arange(1, max(size - len(values), 0) + 1)
    values = np.concatenate([values, new])[:size]
    chances = np.pad(chances, ((0, 0), (0, len(new))))[:, :size].copy()
    chances[:, 0] += np.sum(chances, axis=1) == 0
    return scenario.replace(reward_values=values, reward_chances=chances)


def batch_rewards(scenario):
    """Task rewards of the batch, NaN where a completion is absent or has no score; (P, G)."""
    return np.where(scenario["present"], scenario["rewards"], np.nan).astype(np.float64)


def tie_group(scenario, prompt):
    """The scenario with one group's rewards all equal to its first one."""
    rewards = scenario["rewards"].copy()
    scored = scenario["present"][prompt] & ~np.isnan(rewards[prompt])
    rewards[prompt, scored] = rewards[prompt, scored][:1]
    return scenario.replace(rewards=rewards)


def kinds_from_batch(scenario):
    """Kinds that score as the batch's groups did, and groups of its size.

    Returns
    -------
    Scenario
        A kind for each prompt with a score: the frequencies of its rewards.

    Raises
    ------
    ScenarioError
        No score at all, or more prompts or different rewards than the table holds.
    """
    rewards = batch_rewards(scenario)
    rewards = rewards[np.any(~np.isnan(rewards), axis=1)]
    values = np.unique(rewards[~np.isnan(rewards)])
    if not values.size:
        raise ScenarioError("The batch has no reward to take a rate from.", field="rewards")
    if set(values.tolist()) <= {0.0, 1.0}:
        values = np.array([0.0, 1.0])
    elif values.size == 1:
        values = np.array([values[0] - 1, values[0]])
    for found, axis, most in (
        (len(rewards), _KINDS, _KINDS.high), (values.size, _VALUES, _VALUES.high),
    ):  # fmt: skip
        if found > most:
            raise ScenarioError(
                f"The batch has {found} {axis.noun}; the table holds at most {most}. Take a "
                "smaller batch or round its rewards.",
                field="rewards",
            )
    counts = np.sum(rewards[:, :, None] == values, axis=1)
    size = max(int(np.max(np.sum(~np.isnan(rewards), axis=1))), 2)
    return scenario.replace(
        reward_chances=counts / np.sum(counts, axis=1, keepdims=True),
        reward_values=values,
        group_size=float(size),
    )


def from_batch_note(scenario):
    """What rates taken from a batch say that they should not."""
    rewards = batch_rewards(scenario)
    tied, scored = int(np.sum(tied_groups(rewards))), ~np.isnan(rewards)
    text = (
        f"The rates are what {count(int(np.sum(np.any(scored, axis=1))), 'group')} of at most "
        f"{int(np.max(np.sum(scored, axis=1)))} happened to score, so they are rough."
    )
    if tied:
        kinds = "one is" if tied == 1 else f"{tied} are"
        text += (
            f" Of these {kinds} tied: such a prompt now counts as one that always ties, which its "
            "true rate need not do."
        )
    return text
