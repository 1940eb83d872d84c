"""ms-swift's ``completions.jsonl``: a step a line, each column a list over its completions."""

import functools

import numpy as np

from .arrow_text import text_digest
from .bounds import check_bound
from .first_values import Late
from .heads import Format
from .needed import NUMBERS, by_role, check_texts
from .plain_text import kind_of, text_of
from .records import Records
from .roles import guessed, with_examples
from .steps_of import step_of_name
from .tokens_lines import BadLine, BadValue, Skipped, line_again, lines, record_of
from .tokens_values import numbers_of, step_of


def fits(head):
    """Whether prompts and completions are lists, with another list beside them as long."""
    sizes = {
        name: len(head.first[name]) for name in head.names if isinstance(head.first[name], list)
    }
    return (
        {"prompt", "completion"} <= set(sizes)
        and sizes["prompt"] == sizes["completion"]
        and list(sizes.values()).count(sizes["prompt"]) > 2
    )


def columns(head):
    """Columns of the first steps; an unknown number is a reward term, as in TRL."""
    first = {name: _first_value(value) for name, value in head.first.items()}
    kinds = [(name, kind_of(first[name])) for name in head.names]
    return with_examples(guessed(kinds), first)


def _first_value(value):
    """Of a list the first value that is not blank."""
    if not isinstance(value, list):
        return value
    return next((part for part in value if part is not None), None)


def read(head, roles):
    """The records of one file; steps that cannot be read are left out with a note."""
    one = by_role(roles)
    check_texts(one, head)
    wanted = [name for name, role in roles.items() if role in NUMBERS]
    skipped, late = Skipped(head.source.name), Late(head, roles)
    places, steps, count = [], [], 0
    for line, raw in lines(head.source):
        try:
            record = record_of(raw)
            late.see(record)
            found = _step(record, one, wanted, step_of_name(head.source) or 0)
        except BadLine as error:
            skipped.add(line, error)
            continue
        places.append((count, line))
        steps.append(found)
        count += len(found[0])
        check_bound("rows", count, head.source.name)
    if not count:
        raise skipped.nothing_left("completion that can be read")
    step, group, lengths, numbers = (np.concatenate(part) for part in zip(*steps, strict=True))
    return Records(
        step=step,
        group=group,
        block="group" not in one,
        numbers={name: numbers[:, at] for at, name in enumerate(wanted)},
        lengths=lengths,
        unit="tokens" if "length" in one else "characters",
        texts=functools.partial(_texts, head, places, one),
        notes=(*skipped.notes(), *late.notes()),
    )


def _step(record, one, wanted, named):
    """(steps, groups, lengths, numbers (N, K)) of one line."""
    key = one.get("prompt", one.get("group"))
    count = len(_list(record, key))
    group = [text_digest(text_of(value)) for value in _list(record, one.get("group", key), count)]
    numbers = np.full((count, len(wanted)), np.nan)
    for at, name in enumerate(wanted):
        if record.get(name) not in (None, []):
            numbers[:, at] = numbers_of(_list(record, name, count), name)
    if "length" in one:
        lengths = numbers_of(_list(record, one["length"], count), one["length"])
    else:
        completions = _list(record, one["completion"], count) if "completion" in one else []
        lengths = [len(text_of(value)) for value in completions] or [np.nan] * count
    step = [_step_of(value, named) for value in _steps(record, one, count)]
    return (
        np.array(step, dtype=np.int64),
        np.array(group, dtype=np.uint64),
        np.array(lengths, dtype=np.float64),
        numbers,
    )


def _list(record, name, count=None):
    value = record.get(name)
    if not isinstance(value, list):
        raise BadValue(f"has no list in {name!r}")
    if count is not None and len(value) != count:
        raise BadLine(f"has {len(value):,} values in {name!r} and {count:,} prompts")
    return value


def _steps(record, one, count):
    """The step of each completion: a list of them, or one for all."""
    value = record.get(one["step"]) if "step" in one else None
    if not isinstance(value, list) or len(value) == 1:
        return [value[0] if isinstance(value, list) else value] * count
    return _list(record, one["step"], count)


def _step_of(value, named):
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 16:
        return int(value)
    return step_of({"step": value}, "step", named)


def _texts(head, places, one, rows):
    starts = [start for start, _ in places]
    of = (np.searchsorted(starts, rows, side="right") - 1).tolist()
    read = {at: record_of(line_again(head.source, places[at][1])) for at in set(of)}
    names = (one.get("prompt"), one.get("completion"))
    return [
        tuple(text_of(read[at][name][row - starts[at]]) if name else "" for name in names)
        for at, row in zip(of, np.asarray(rows).tolist(), strict=True)
    ]


SWIFT = Format(
    key="swift",
    label="ms-swift completions",
    kinds=("lines",),
    fits=fits,
    columns=columns,
    read=read,
)
