"""Roles of columns: what a name says, and where it says too little to be sure."""

import re
from dataclasses import replace

from .heads import Column
from .needed import listed

# role: the names that mean it, in small letters. The first column that fits has the role.
NAMES = {
    "step": ("step", "global_step", "training_step", "iteration"),
    "group": ("group", "group_id", "group_index", "problem_id", "prompt_id", "uid", "task_id"),
    "prompt": ("prompt", "prompts", "input", "question", "problem", "query", "instruction"),
    "completion": (
        "completion",
        "completions",
        "output",
        "response",
        "answer",
        "reply",
        "generation",
    ),
    "advantage": ("advantage", "advantages"),
    "length": ("num_output_tokens", "completion_length", "response_length", "completion_tokens"),
    "total": ("reward", "rewards", "score", "total", "total_reward", "reward_total"),
}
WORDS = ("prompt", "completion", "step", "group")  # roles of columns that may be texts
TERM = re.compile(r"reward|penalty|bonus", re.IGNORECASE)
INDEX = re.compile(r"__index_level_\d+__|Unnamed: \d+|")  # the rows' numbers, as pandas names them
EXAMPLE_CHARACTERS = 60


def guessed(names_and_kinds, other="term", ask=True, known=None):
    """Columns with the role that their names suggest.

    Parameters
    ----------
    names_and_kinds : sequence of (name, kind)
    other : str
        Role of numbers whose name says nothing.
    ask : bool
        Whether numbers that no name explains are for a person to decide. Where unknown numbers
        are no terms, a name with reward in it is no explanation either.
    known : mapping from name to (kind, role), optional
        What the format itself says of its columns. Where it knows the reward, no other column
        is taken for one by its name.

    Returns
    -------
    tuple of Column
    """
    named = {name: known[name][1] for name, _ in names_and_kinds if name in (known or {})}
    rewarded = "term" in named.values()
    taken = {*named.values(), "total"} if rewarded else set(named.values())
    named |= {
        name: role
        for name, role in _by_name(names_and_kinds).items()
        if name not in named and role not in taken
    }
    columns = tuple(
        Column(name, kind, named[name])
        if name in named
        else Column(name, kind, *_by_looks(name, kind, other, ask, rewarded))
        for name, kind in names_and_kinds
    )
    return total_alone_is_a_term(columns)


def total_alone_is_a_term(columns):
    """The only reward of a file is the one term of its total."""
    if any(column.role == "term" for column in columns):
        return columns
    return tuple(
        replace(column, role="term") if column.role == "total" else column for column in columns
    )


def with_examples(columns, first):
    """The columns, each with its value in the first record as a short text."""
    return tuple(
        replace(column, example=short_text(first[column.name])) if column.name in first else column
        for column in columns
    )


def left_out_columns(columns):
    """Sentences about columns that could have been rewards and are not read, and why."""
    out = [column for column in columns if column.role == "ignore"]
    blank = [column.name for column in out if column.kind == "blank" and column.asked]
    named = [column.name for column in out if column.kind != "number" and TERM.search(column.name)]
    said = {
        "blank wherever it was looked at": blank,
        "texts or lists, not numbers": [name for name in named if name not in blank],
    }
    return tuple(
        f"Left out as {why}: {'column' if len(names) == 1 else 'columns'} {listed(names)}."
        for why, names in said.items()
        if names
    )


def short_text(value):
    """A value as one short line of text."""
    if isinstance(value, (list, tuple)) and len(value) == 1:
        return short_text(value[0])
    text = "" if value is None else str(value)[: 4 * EXAMPLE_CHARACTERS]
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= EXAMPLE_CHARACTERS else text[: EXAMPLE_CHARACTERS - 1] + "…"


def _by_name(names_and_kinds):
    """Column -> role, a column for each role at most."""
    found = {}
    small = {}
    for name, kind in names_and_kinds:
        small.setdefault(name.strip().lower(), (name, kind))
    for role, words in NAMES.items():
        for word in words:
            name, kind = small.get(word, ("", "other"))
            if name and name not in found and _can_be(role, kind):
                found[name] = role
                break
    return found


def _can_be(role, kind):
    return kind == "number" or (kind == "text" and role in WORDS)


def _by_looks(name, kind, other, ask, rewarded):
    if kind == "number" and INDEX.fullmatch(name):
        return "ignore", ask
    if kind != "number":
        return "ignore", ask and kind == "blank"
    if TERM.search(name) and not rewarded:
        return "term", ask and other != "term"
    return other, ask
