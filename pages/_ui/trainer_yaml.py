"""A small reader of YAML: nested keys with scalars and lists, as trainers' files have them."""

import re

from grpo_core.trainers import Entry

from .scalars import scalar

_KEY = re.compile(r"([\w.@/-]+|\"[^\"]*\"|'[^']*')\s*:(?:\s+(.*))?$")
_COMMENT = re.compile(r"(^|\s)#.*$")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_BLOCK = re.compile(r"[|>][+-]?[0-9]?$")
_NOT_READ = {"&": "an anchor", "*": "an alias", "!": "a tag", "{": "a mapping in braces"}


def read_yaml(text):
    """Settings of a YAML text, their keys joined with dots.

    Returns
    -------
    entries : list of Entry
    unread : list of (int, str)
        The line of each that is beyond this reader, and what is said of it.
    """
    return _Reader().read(text)


class _Reader:
    """Walks the lines; ``path`` holds (indent, key) of the mappings that are open."""

    def __init__(self):
        self.path, self.entries, self.unread = [], [], []
        self.skipped = None  # indent of a key whose lines below are not read

    def read(self, text):
        for number, raw in enumerate(text.splitlines(), 1):
            line = without_comment(raw).rstrip()
            if line.strip() and line.strip() not in ("---", "..."):
                self._line(line, number)
        return self.entries, self.unread

    def _line(self, line, number):
        body = line.lstrip()
        white = line[: len(line) - len(body)]
        if self.skipped is not None and len(white) > self.skipped:
            return
        self.skipped = None
        if "\t" in white:
            self._miss(number, "YAML is indented with blanks, and here stands a tab")
        elif body == "-" or body.startswith("- "):
            self._item(body[1:].strip(), len(white), number)
        else:
            self._pair(body, len(white), number)

    def _pair(self, body, indent, number):
        match = _KEY.match(body)
        if not match:
            self._miss(number, f"“{body[:40]}” is no key with a value")
            return
        while self.path and self.path[-1][0] >= indent:
            self.path.pop()
        key, value = match.group(1).strip("\"'"), (match.group(2) or "").strip()
        if _BLOCK.match(value):
            self._skip(number, indent, f"{key} is a text of several lines, which is not read")
        elif value == "{}":
            return  # nothing is below this key
        elif value[:1] in _NOT_READ:
            self._skip(number, indent, f"{key} is {_NOT_READ[value[0]]}, which is not read")
        elif value:
            self._add(key, scalar(value), number)
        else:
            self.path.append((indent, key, number))

    def _item(self, body, indent, number):
        """An item of a list below a key: the list grows by one."""
        while self.path and self.path[-1][0] > indent:
            self.path.pop()
        if not self.path or _KEY.match(body) or body[:1] in _NOT_READ:
            self._skip(number, indent, "a list of anything but numbers and words is not read")
            return
        key = ".".join(name for _, name, _ in self.path)
        last = self.entries[-1] if self.entries else None
        items = []
        if last is not None and last.key == key and isinstance(last.value, list):
            items = self.entries.pop().value
        self.entries.append(Entry(key=key, value=[*items, scalar(body)], line=self.path[-1][2]))

    def _add(self, key, value, number):
        names = [name for _, name, _ in self.path]
        self.entries.append(Entry(key=".".join([*names, key]), value=value, line=number))

    def _skip(self, number, indent, why):
        self.skipped = indent
        self._miss(number, why)

    def _miss(self, number, why):
        self.unread.append((number, why))


def without_comment(line):
    """The line up to a '#' that stands outside quotes."""
    hidden = _QUOTED.sub(lambda quoted: "x" * len(quoted.group()), line)
    comment = _COMMENT.search(hidden)
    return line[: comment.start()] if comment else line
