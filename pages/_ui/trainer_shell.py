"""Settings on a command line: Hydra's override lines, and flags with their values."""

import re
import shlex
from dataclasses import dataclass

from grpo_core.trainers import Entry

from .scalars import scalar
from .trainer_yaml import without_comment

_FLAG = re.compile(r"--([A-Za-z][\w.-]*)(?:=(.*))?$", re.DOTALL)
_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_][\w.@/]*)=(.*)$", re.DOTALL)
# A line of its own with blanks around the sign: Python, TOML or INI.
_ASSIGNMENT = re.compile(r"\s*([A-Za-z_][\w.]*)(?:\s+=\s*|=\s+)(\S.*)")
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_SHELL = ("\\", "&&", ";", "export")
_LONGEST = 1_000  # characters of a value


def read_shell(text):
    """Settings of override lines and flags.

    Shell variables that the text sets itself (``high=0.28``, then ``clip=$high``) are put in.

    Returns
    -------
    entries : list of Entry
    unread : list of (int, str)
        The line of each piece that is no setting, and what is said of it.
    """
    pieces, unread = _pieces(text)
    found, stray = _settings(pieces)
    variables = _variables(found)
    entries = []
    for each in found:
        if each.key in variables and not each.flag:
            continue
        words = [_filled(word, variables) for word in each.words]
        missing = next((word for word in words if _VARIABLE.search(word)), None)
        if missing is None:
            entries.append(Entry(key=each.key, value=_value(each, words), line=each.line))
        else:
            why = f"{each.key} is {missing[:40]}, which the text does not set"
            unread.append((each.line, why))
    begins = min((entry.line for entry in entries), default=0)  # before it stands the command
    return entries, [*unread, *((line, why) for line, why in stray if line >= begins)]


@dataclass
class _Found:
    """A setting with the words of its value."""

    key: str
    words: list
    line: int
    flag: bool


def _pieces(text):
    """Words of all lines, quotes taken off, each with its line."""
    pieces, unread = [], []
    for number, line in enumerate(text.splitlines(), 1):
        assigned = _assigned(line)
        if assigned is not None:
            pieces.append((assigned, number))
            continue
        try:
            words = shlex.split(line.rstrip().removesuffix("\\"), comments=True)
        except ValueError:
            unread.append((number, "a quote is not closed"))
            continue
        pieces += [(word, number) for word in words]
    return pieces, unread


def _assigned(line):
    """``key=value`` of a line such as ``beta = 0.1,  # weak``; None if it is none."""
    match = _ASSIGNMENT.fullmatch(without_comment(line))
    if not match:
        return None
    key, value = match.group(1), match.group(2).rstrip().rstrip(",")
    return f"{key}={'null' if value == 'None' else value}"


def _settings(pieces):
    """Overrides and flags, and the words between them.

    A flag takes all words up to the next setting: one is its value, several are a list, and
    none makes it True. What stands before the first setting is the command.
    """
    found, stray, flag = [], [], None
    for word, line in pieces:
        match = _FLAG.match(word) or _OVERRIDE.match(word)
        if match:
            key, value = match.groups()
            words = [] if value is None else [value]
            found.append(_Found(key, words, line, word.startswith("--")))
            flag = found[-1] if value is None else None
        elif "$@" in word or word in _SHELL:
            flag = None
        elif flag is not None:
            flag.words.append(word)
        elif found:
            stray.append((line, f"“{word[:40]}” is no setting"))
    return found, stray


def _variables(found):
    """Plain names that are set beside keys with dots or flags are the shell's own."""
    if not any("." in each.key or each.flag for each in found):
        return {}
    return {each.key: each.words[0] for each in found if not each.flag and each.key.isidentifier()}


def _filled(word, variables):
    """The word with the variables that are known put in, once."""
    filled = _VARIABLE.sub(
        lambda match: variables.get(match.group(1) or match.group(2), match.group()), word
    )
    return filled[:_LONGEST]


def _value(found, words):
    if not words:
        return True
    values = [scalar(word if found.flag else word.rstrip(",")) for word in words]
    return values[0] if len(values) == 1 else values
