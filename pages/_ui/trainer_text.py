"""Pasted settings of a trainer: a GRPOConfig call, a YAML snippet, override lines or flags.

Nothing is executed: of a call only literal arguments are read, of the rest keys and scalars.
"""

import ast
import re
import warnings
from dataclasses import dataclass
from functools import partial

from grpo_core import ScenarioError
from grpo_core.trainers import (
    Entry,
    Reading,
    from_openrlhf,
    from_trl,
    from_verl,
    recognised,
)

from .trainer_shell import read_shell
from .trainer_yaml import read_yaml

MAX_CHARACTERS = 60_000
MAX_ENTRIES = 1_500
_CALL = re.compile(r"\b(GRPOConfig|GMPOConfig|RLOOConfig)\s*\(")
_FLAG = re.compile(
    r"(^|\s)--[A-Za-z][\w.-]*|(^|\s)['\"]?[+~]{0,2}[A-Za-z_][\w.@/]*=\S"
    r"|(^|\n)[ \t]*[A-Za-z_][\w.]*([ \t]+=[ \t]*|=[ \t]+)\S"
)
_YAML_LINE = re.compile(r"^\s*[\w.\"'-]+\s*:(\s|$)", re.MULTILINE)
_READERS = {"trl": from_trl, "verl": from_verl, "openrlhf": from_openrlhf}
_SIGNS = (ast.USub, ast.UAdd)
_CONSTANTS = (str, bool, int, float, type(None))
_DEEP = 4  # lists in lists of a literal
_BITS = 64  # of a whole number
_SHOWN = 60  # characters of a line that was not read
# What may stand before a call and after it on its own lines: a name that takes it, brackets.
_BEFORE = re.compile(r"\s*([A-Za-z_][\w.]*\s*(:\s*[\w.]+\s*)?=\s*)?([A-Za-z_]\w*\.)*")
_AFTER = re.compile(r"[\s),;]*(#.*)?")
_NOTHING = re.compile(r"\s*(#.*)?")


@dataclass(frozen=True, kw_only=True)
class Pasted:
    """What was pasted: which form, the conventions in it, and what could not be read.

    ``beside`` are the lines around a call, which are not looked at.
    """

    form: str
    reading: Reading
    unread: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def read_settings(text):
    """Read the pasted settings of a trainer.

    Parameters
    ----------
    text : str

    Returns
    -------
    Pasted

    Raises
    ------
    ScenarioError
        One sentence, with the line where there is one: too long, nothing that is a setting,
        a call that cannot be parsed.
    """
    if len(text) > MAX_CHARACTERS:
        raise ScenarioError(
            f"the pasted text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read"
        )
    if not text.strip():
        raise ScenarioError("nothing was pasted; paste a GRPOConfig call, YAML or override lines")
    form, read, entries, unread = _entries(text)
    if len(entries) > MAX_ENTRIES:
        raise ScenarioError(
            f"the pasted text has {len(entries):,} settings; at most {MAX_ENTRIES:,} are read"
        )
    if read is None:
        dialect = recognised(entries)
        if dialect is None:
            raise ScenarioError(_nothing_known(entries, unread))
        read = _READERS[dialect.key]
    sentences = tuple(f"line {line}: {why}" for line, why in sorted(unread))
    beside = _beside(text, {line for line, _ in unread})
    return Pasted(form=form, reading=read(entries), unread=sentences, beside=beside)


def _beside(text, known):
    """Lines before and after the call, where there is one; those in `known` are told already."""
    call = _CALL.search(text)
    if not call:
        return ()
    end = _end(text, call.end(), text.count("\n", 0, call.start()))
    before, after = text[: call.start()].split("\n"), text[end:].split("\n")
    last = text.count("\n", 0, end) + 1
    parts = [
        *((number, line, _NOTHING) for number, line in enumerate(before[:-1], 1)),
        (len(before), before[-1], _BEFORE),
        (last, after[0], _AFTER),
        *((number, line, _NOTHING) for number, line in enumerate(after[1:], last + 1)),
    ]
    return tuple(
        f"line {number}: “{line.strip()[:_SHOWN]}”"
        for number, line, harmless in parts
        if not harmless.fullmatch(line) and number not in known
    )


def _nothing_known(entries, unread):
    if entries:
        return f"no setting among {len(entries):,} is one that TRL, verl or OpenRLHF has for GRPO"
    first = " (line {}: {})".format(*min(unread)) if unread else ""
    return f"the pasted text holds no settings{first}; paste a GRPOConfig call, YAML or flags"


def _entries(text):
    """Form, reader where the form tells it, entries and what was not read."""
    call = _CALL.search(text)
    if call:
        entries, unread = _read_call(text, call)
        return f"a {call.group(1)} call", partial(from_trl, call=call.group(1)), entries, unread
    shell, lines = len(_FLAG.findall(text)), len(_YAML_LINE.findall(text))
    if shell > lines:
        return "override lines or flags", None, *read_shell(text)
    return "YAML", None, *read_yaml(text)


def _read_call(text, call):
    """The keyword arguments of the first call of a configuration."""
    first = text.count("\n", 0, call.start())
    tree = _parsed(text[call.start() : _end(text, call.end(), first)], first)
    entries, unread = [], []
    if tree.args:
        unread.append((first + tree.args[0].lineno, "arguments without a name are not read"))
    for argument in tree.keywords:
        line = first + argument.value.lineno
        if argument.arg is None:
            unread.append((line, "what stands behind ** is not read"))
            continue
        try:
            entries.append(Entry(key=argument.arg, value=_literal(argument.value), line=line))
        except ValueError as error:
            unread.append((line, f"{argument.arg} is {error}; write it as a value"))
    second = _CALL.search(text, call.end())
    if second:
        line = text.count("\n", 0, second.start()) + 1
        unread.append((line, f"a second call, {second.group(1)}, is not read"))
    return entries, unread


def _end(text, start, first):
    """Where the call's closing bracket stands; strings and comments are passed over."""
    depth, position = 1, start
    for match in _PIECES.finditer(text, start):
        piece = match.group()
        depth += (piece in "([{") - (piece in ")]}")
        position = match.end()
        if depth == 0:
            return position
    raise ScenarioError(f"line {first + 1}: the call is not closed, a ')' is missing")


_PIECES = re.compile(
    r"#[^\n]*|'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|[()\[\]{}]",
    re.DOTALL,
)


def _parsed(code, first):
    """The call as a syntax tree, parsed and never run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in a string that is not used
            return ast.parse(code, mode="eval").body
    except SyntaxError as error:
        line = first + (error.lineno or 1)
        if "digits" in error.msg:  # what Python says of it names a function of its own
            raise ScenarioError(f"line {line}: a number that is too long") from None
        raise ScenarioError(f"line {line}: this is not valid Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise ScenarioError(f"line {first + 1}: the call cannot be read") from None


def _literal(node, depth=0):
    """A constant, a number with a sign, or a list of them.

    Raises
    ------
    ValueError
        Anything else; the message says what it is.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, _CONSTANTS):
        if type(node.value) is int and node.value.bit_length() > _BITS:
            raise ValueError("a number that is too long")
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)) and depth < _DEEP:
        return [_literal(item, depth + 1) for item in node.elts]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, _SIGNS) and depth < _DEEP:
        number = _literal(node.operand, depth + 1)
        if type(number) in (int, float):
            return -number if isinstance(node.op, ast.USub) else number
    raise ValueError(_KINDS.get(type(node), "computed"))


_KINDS = {
    ast.Name: "a name",
    ast.Attribute: "a name",
    ast.Call: "a call",
    ast.Dict: "a dictionary",
    ast.JoinedStr: "a computed string",
}
