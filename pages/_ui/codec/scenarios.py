"""One scenario as a header and packed arrays, whole or as what differs from a base.

Behind the header stand, one after another: the mask and the presence, then one table for
each set of axes, with a column for each array and, in the token table, one for the numbers
of the texts. Only cells that count are in a table; the others are at their default.
"""

import json
import zlib
from types import SimpleNamespace

import numpy as np

from grpo_core import ARRAYS, STAGES, Choice, Conventions, Scenario, Texts
from grpo_core.arrays import OWN_AXES, own_sizes
from grpo_core.scenario import SIZES, counting_cells
from grpo_core.terms import Term

from ..limits import check_sizes, within
from .integers import Damaged, TooLarge, Writer, plan_integers, read_integers, write_integers
from .tables import read_flags, read_table, write_flags, write_table
from .texts import describe_texts, restore_texts

_TOKEN_AXES = ARRAYS["mask"].axes


class Changed(ValueError):
    """A base that is not there, or not what it was; the message is for the page."""


def describe(scenario, base=None):
    """Header entries and packed arrays of a scenario, or of what differs from a base.

    Arrays of a base of other sizes are of no use; its conventions, terms and texts are.

    Raises
    ------
    TooLarge
        More than `restore` takes.
    """
    if not within({**scenario.sizes, **scenario.own_sizes}):
        raise TooLarge("the batch is too large")
    header, writer = {}, Writer()
    cells = plain_arrays(scenario)
    known = {}
    if base is not None and base.sizes == scenario.sizes:
        known = plain_arrays(base)
    else:
        header["size"] = list(scenario.sizes.values())
    dropped = [key for key in known if key not in cells]
    sizes = _sizes(cells["mask"].shape, cells)
    known = _of_size(known, sizes)
    changed = [key for key in _order(cells) if not _equal(cells, known, key)]
    header |= own_sizes({key: cells[key] for key in changed})
    named = {
        "set": changed,
        "f4": [key for key in changed if cells[key].dtype == np.float32],
        "drop": dropped,
    }
    header |= {name: keys for name, keys in named.items() if keys}
    numbers = _describe_rest(header, scenario, base)
    _write_arrays(writer, cells, known, sizes, changed, None if "all" in header else numbers)
    if "all" in header:
        write_integers(writer, plan_integers(numbers))
    return header, writer


def restore(header, reader, base=None):
    """The reverse of `describe`; the arrays are checked by `Scenario`."""
    if base is not None and not header.keys() - {"base", "mark", "view", "pinned"}:
        return base
    known = plain_arrays(base) if "size" not in header and base is not None else {}
    shape = known["mask"].shape if known else _shape(header["size"])
    changed, dropped = header.get("set", []), header.get("drop", [])
    if any(key not in ARRAYS for key in (*changed, *dropped)) or len(set(changed)) < len(changed):
        raise Damaged("an array is unknown or comes twice")
    single = header.get("f4", [])
    dtypes = {key: np.float32 if key in single else np.float64 for key in changed}
    along = "words" in header and "all" not in header
    sizes = _sizes(shape, known)
    sizes |= {axis: _own_size(axis, header[axis]) for axis in OWN_AXES if axis in header}
    check_sizes(sizes)
    known = _of_size(known, sizes)
    cells = {key: array for key, array in known.items() if key not in dropped}
    numbers = _read_arrays(reader, cells, known, sizes, dtypes, along)
    if "all" in header:
        numbers = read_integers(reader, cells["mask"].size)
    return _restore_rest(header, base, cells, numbers)


def mark(scenario):
    """A checksum of what a scenario holds, by which a link knows its base again.

    What stands at its default adds nothing, so that an array or a stage that a later version
    adds does not spoil links.
    """
    plain = Conventions({})
    content = [
        [stage, choice.variant, _marked(scenario.conventions.variant(stage), choice)]
        for stage, choice in sorted(
            scenario.conventions.choices.items(), key=lambda item: _place_of(item[0])
        )
        if choice != plain[stage]
    ]
    texts = [scenario.texts.prompts, scenario.texts.tokens]
    head = [list(scenario.sizes.values()), content, texts, scenario.drift]
    if scenario.terms:
        head.append([_described(term) for term in scenario.terms])
    checksum = zlib.crc32(json.dumps(head).encode())
    for key, array in plain_arrays(scenario).items():
        if not _at_default(array, ARRAYS[key].default):
            checksum = zlib.crc32(f"{key} {array.dtype.str}".encode(), checksum)
            checksum = zlib.crc32(np.ascontiguousarray(array), checksum)
    return checksum


# Options and stages that marks have always held, in their order. Later ones count only where
# they are not at their default, so that the marks of older links stay.
_FIRST_OPTIONS = {
    *("beta", "place", "missing", "ddof", "eps", "epsilon_low", "epsilon_high", "dual_clip"),
    *("empty", "length"),
}
_FIRST_STAGES = ("kl", "rewards", "advantage", "ratio", "surrogate", "aggregation")


def _marked(variant, choice):
    return sorted(
        (key, value)
        for key, value in choice.options.items()
        if key in _FIRST_OPTIONS or value != variant.option(key).default
    )


def _place_of(stage):
    known = stage in _FIRST_STAGES
    return (0, _FIRST_STAGES.index(stage)) if known else (1, list(STAGES).index(stage))


def resemblance(scenario, base):
    """How many cells two scenarios have in common, conventions as one; -1 for other sizes."""
    if scenario is base:
        return np.inf
    if scenario.sizes != base.sizes:
        return -1
    return int(scenario.conventions == base.conventions) + sum(
        int((scenario[key] == base[key]).sum())
        for key in scenario.arrays
        if key in base and scenario[key].shape == base[key].shape
    )


def _describe_rest(header, scenario, base):
    """What is no array into the header; returns the numbers of the token texts."""
    chosen = {
        stage: [choice.variant, dict(choice.options)]
        for stage, choice in scenario.conventions.choices.items()
        if base is None or choice != base.conventions[stage]
    }
    if chosen:
        header["conventions" if base is None else "choices"] = chosen
    if scenario.terms != (() if base is None else base.terms):
        header["terms"] = [_described(term) for term in scenario.terms]
    if scenario.drift != (1.0 if base is None else base.drift):
        header["drift"] = scenario.drift
    if scenario.texts == (Texts() if base is None else base.texts):
        return None
    texts, numbers = describe_texts(scenario.texts, scenario.valid)
    header.update(texts)
    return numbers


def _restore_rest(header, base, cells, numbers):
    conventions = base.conventions if base is not None else None
    if "conventions" in header:
        named = header["conventions"].items()
        conventions = Conventions({stage: Choice(*choice) for stage, choice in named})
    if "choices" in header and conventions is not None:  # those that differ from the base's
        named = {stage: Choice(*choice) for stage, choice in header["choices"].items()}
        conventions = Conventions({**conventions.choices, **named})
    texts = Texts() if base is None else base.texts
    if "prompts" in header:
        valid = cells["mask"] & cells["present"][..., None]
        texts = restore_texts(header, numbers, valid)
    drift = header.get("drift", 1.0 if base is None else base.drift)
    if conventions is None or type(drift) not in (int, float):
        raise Damaged("conventions are missing, or the drift is not a number")
    terms = () if base is None else base.terms
    if "terms" in header:
        terms = _restored_terms(header["terms"])
    return Scenario(cells, conventions, texts, drift, terms)


def _described(term):
    return [term.name, term.weight, term.formula.variant, dict(term.formula.options)]


def _restored_terms(described):
    """The reverse of `_described` for each term; what they hold is checked by `Term`."""
    if not isinstance(described, list) or len(described) > OWN_AXES["K"].high:
        raise Damaged("the terms are no list, or too many")
    terms = [Term(name, weight, Choice(*formula)) for name, weight, *formula in described]
    for term in terms:
        term.name.encode()  # refuses half a surrogate pair
    return tuple(terms)


def _write_arrays(writer, cells, known, sizes, changed, numbers):
    """Masks, then a table for each set of axes; `numbers` are those of the token texts."""
    for key in changed:
        if ARRAYS[key].kind == "bool":
            write_flags(writer, cells[key])
    for axes, keys in _tables(changed, numbers is not None):
        counts = _counts(cells, axes, sizes)
        near = {key: known[key][counts] for key in known if _is_column(key, axes)}
        columns = {key: cells[key][counts] for key in keys}
        write_table(writer, columns, near, numbers if axes == _TOKEN_AXES else None)


def _read_arrays(reader, cells, known, sizes, dtypes, texts):
    """The reverse, into `cells`; returns the numbers of the token texts if there are any."""
    for key in dtypes:
        if ARRAYS[key].kind == "bool":
            cells[key] = read_flags(reader, tuple(sizes[axis] for axis in ARRAYS[key].axes))
    numbers = None
    for axes, keys in _tables(dtypes, texts):
        counts = _counts(cells, axes, sizes)
        near = {key: known[key][counts] for key in known if _is_column(key, axes)}
        wanted = {key: dtypes[key] for key in keys}
        along = texts and axes == _TOKEN_AXES
        columns, found = read_table(reader, int(counts.sum()), wanted, near, along)
        numbers = found if along else numbers
        for key, values in columns.items():
            cells[key] = np.full(counts.shape, ARRAYS[key].default, dtype=values.dtype)
            cells[key][counts] = values
    return numbers


def _order(cells):
    """Masks first: they say which cells of the others count."""
    return sorted(cells, key=lambda key: ARRAYS[key].kind != "bool")


def _tables(keys, texts):
    """Which arrays stand together in one table: (axes, keys), the token table last."""
    floats = [key for key in keys if ARRAYS[key].kind != "bool"]
    axes = {ARRAYS[key].axes: None for key in floats} | ({_TOKEN_AXES: None} if texts else {})
    return [
        (each, [key for key in floats if ARRAYS[key].axes == each])
        for each in sorted(axes, key=lambda each: (len(each), each))
    ]


def _is_column(key, axes):
    return ARRAYS[key].axes == axes and ARRAYS[key].kind != "bool"


def _counts(cells, axes, sizes):
    """Cells that count in any array with these axes."""
    stand_in = np.broadcast_to(False, tuple(sizes[axis] for axis in axes))
    return counting_cells({**cells, "": stand_in}, SimpleNamespace(key="", axes=axes))


def _sizes(shape, cells):
    """Length of each axis, of those in `OWN_AXES` where there are any; `shape` is the mask's."""
    return {**dict(zip(SIZES, shape, strict=True)), **own_sizes(cells)}


def _of_size(known, sizes):
    """Arrays of a base, without those whose own axis has another length."""
    return {
        key: array
        for key, array in known.items()
        if own_sizes({key: array}).items() <= sizes.items()
    }


def _own_size(axis, size):
    own = OWN_AXES[axis]
    if type(size) is not int or not own.low <= size <= own.high:
        raise Damaged(f"there is no such number of {own.noun}")
    return size


def plain_arrays(scenario):
    """The arrays with their default wherever a cell does not count."""
    cells = {}
    for key, array in scenario.arrays.items():
        counts = counting_cells(scenario.arrays, ARRAYS[key])
        cells[key] = np.where(counts, array, array.dtype.type(ARRAYS[key].default))
    return cells


def _at_default(array, default):
    return bool(np.all((array == default) | (np.isnan(array) & np.isnan(default))))


def _equal(cells, known, key):
    if key not in known or known[key].dtype != cells[key].dtype:
        return False
    counts = counting_cells(cells, ARRAYS[key])
    return known[key][counts].tobytes() == cells[key][counts].tobytes()


def _shape(size):
    if len(size) != len(SIZES) or any(type(n) is not int or n < 1 for n in size):
        raise Damaged("the sizes are not whole numbers")
    check_sizes(dict(zip(SIZES, size, strict=True)))
    return tuple(size)
