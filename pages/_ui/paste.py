"""Numbers pasted as text, in whatever form people have them; and arrays as NumPy code.

Nothing is evaluated: brackets, numbers and a handful of words are all that is understood.
"""

import re

import numpy as np

from grpo_core import ARRAYS, ScenarioError
from grpo_core.arrays import as_array, check_cells

from .limits import check_sizes, check_table

MAX_CHARACTERS = 200_000
_MAX_DEPTH = 4
_SPECS = {
    "PG": ARRAYS["rewards"],
    "PGL": ARRAYS["logp_new"],
    "PGS": ARRAYS["step_rewards"],
    "PGK": ARRAYS["term_values"],
}
_RAGGED = "LS"  # axes along which rows may have unequal lengths
_SEPARATORS = " ,;\t\r\n"
_WORDS = {
    "none": np.nan, "null": np.nan, "nan": np.nan, "na": np.nan, "inf": np.inf,
    "infinity": np.inf, "true": 1.0, "false": 0.0,
}  # fmt: skip
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_SIGNED_WORD = re.compile(r"([+-]?)(?:np\.|numpy\.|math\.)?([a-z]+)", re.IGNORECASE)
_WRAPPER = re.compile(r"\s*(?:np\.|numpy\.|torch\.|jnp\.)?(?:array|asarray|tensor)\s*\(")
_TOKEN = re.compile(r"\s+|[\[\](),]|[^\s\[\](),]+")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")


def parse_numbers(text, axes):
    """Read pasted numbers into an array.

    Parameters
    ----------
    text : str
        A nested list (JSON, Python, as NumPy or PyTorch print it), a block from a
        spreadsheet, or a line of numbers separated by blanks, commas or semicolons. None,
        null, nan and empty spreadsheet cells are NaN; true and false are 1 and 0.
    axes : str
        ``'G'``, ``'GL'``, ``'PG'``, ``'PGL'``, ``'PGS'`` or ``'PGK'``. Missing leading axes
        have length 1: a flat list is one prompt's group, and a table is one prompt's
        completions by tokens, steps or terms.

    Returns
    -------
    ndarray of float64
        Rows of unequal length along L or S are filled up with NaN.

    Raises
    ------
    ScenarioError
        One sentence with the place: what cannot be read, what is ambiguous, ragged rows.
    """
    if len(text) > MAX_CHARACTERS:
        raise ScenarioError(
            f"the pasted text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read"
        )
    text = text.replace("−", "-").strip().strip("\ufeff")
    if not text:
        raise ScenarioError("nothing was pasted; paste a list or a block of numbers")
    bracketed = text[0] in "[(" or _WRAPPER.match(text)
    nested = _read_brackets(text) if bracketed else _read_block(text)
    return _as_axes(nested, axes)


def parse_rewards(text):
    """One pasted group of rewards, each of them valid; (G,).

    Raises
    ------
    ScenarioError
        As `parse_numbers`; more rewards than a group may have, or an infinite one.
    """
    values = parse_numbers(text, "G")
    check_sizes({"G": values.size})
    check_cells("the pasted line", values[None], _SPECS["PG"], True)
    return values


def _read_brackets(text):
    """Nested lists by a stack, so that depth is bounded and every error has its place."""
    wrapper = _WRAPPER.match(text)
    position = wrapper.end() if wrapper else 0
    stack, after_comma = [], True
    for match in _TOKEN.finditer(text, position):
        piece = match.group()
        if piece.isspace():
            continue
        spot = _spot(text, match.start())
        if piece in "[(":
            if len(stack) >= _MAX_DEPTH:
                raise ScenarioError(f"{spot}: lists more than {_MAX_DEPTH} deep are not read")
            stack.append([])
            after_comma = True
        elif not stack:
            raise ScenarioError(f"{spot}: wanted a list that starts with '['")
        elif piece == ",":
            if after_comma:
                raise ScenarioError(f"{spot}: a value is missing before this comma")
            after_comma = True
        elif piece in "])":
            done = stack.pop()
            if not stack:
                _refuse_rest(text, match.end(), wrapper)
                return done
            stack[-1].append(done)
            after_comma = False
        else:
            stack[-1].append(_value(piece, spot))
            after_comma = False
    raise ScenarioError(f"{_spot(text, len(text))}: the list is not closed, a ']' is missing")


def _refuse_rest(text, end, wrapper):
    rest = text[end:].strip()
    if wrapper:  # array(..., dtype=float32), tensor(..., device='cuda:0', grad_fn=<...>)
        rest = "" if re.fullmatch(r"(,\s*\w+\s*=.*)?\)", rest, re.DOTALL) else rest
    if rest.strip(",;"):
        raise ScenarioError(f"{_spot(text, end)}: more text follows the list; paste one list")


def _spot(text, position):
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return f"line {line}, character {column}" if "\n" in text else f"character {column}"


def _value(piece, spot):
    number = _NUMBER.fullmatch(piece)
    if number:
        value = float(piece)
        if np.isinf(value):
            raise ScenarioError(f"{spot}: {_quoted(piece)} is beyond the range of a number")
        return value
    word = _SIGNED_WORD.fullmatch(piece)
    if word and word.group(2).lower() in _WORDS:
        value = _WORDS[word.group(2).lower()]
        return -value if word.group(1) == "-" else value
    if "..." in piece:
        raise ScenarioError(
            f"{spot}: the list was shortened with '...' when it was printed; print it whole"
        )
    raise ScenarioError(f"{spot}: {_quoted(piece)} is not a number")


def _quoted(piece):
    return repr(piece if len(piece) <= 24 else piece[:23] + "…")


def _read_block(text):
    """Lines of cells. One separator for all, else a decimal comma could turn 1,5 into 15."""
    if not text.strip(_SEPARATORS):
        raise ScenarioError("the pasted text holds separators but no number")
    lines = [line for line in text.splitlines() if line.strip()]
    split = _separator(lines)
    rows = []
    for r, line in enumerate(lines):
        cells = split(line)
        rows.append([
            _cell(cell, f"row {r}, column {c}" if len(lines) > 1 else f"value {c}")
            for c, cell in enumerate(cells)
        ])  # fmt: skip
    width = max(len(row) for row in rows)
    check_table(len(rows), width)
    if "\t" in text:  # a spreadsheet leaves off nothing, but editors strip tabs at line ends
        rows = [row + [np.nan] * (width - len(row)) for row in rows]
    if width == 1:  # a column of a spreadsheet is a group, as a line is
        return [row[0] for row in rows]
    return rows[0] if len(rows) == 1 else rows


def _separator(lines):
    text = "\n".join(lines)
    if "\t" in text:
        return lambda line: [_point(cell.strip()) for cell in line.split("\t")]
    if ";" in text:
        _refuse_decimal_comma(lines, lambda line: line.split(";"))
        return lambda line: line.rstrip(" ;").split(";")
    if "," in text:
        spaced = re.search(r",\s", text) is not None
        _refuse_decimal_comma(lines, lambda line: re.split(r",\s+" if spaced else r"\s+", line))
        return lambda line: line.rstrip(" ,").split(",")
    return str.split


def _refuse_decimal_comma(lines, split):
    """Refuse commas that stand inside what another separator delimits; see `_read_block`."""
    for r, line in enumerate(lines):
        cells = split(line.strip().rstrip(",;"))
        for cell in cells:
            if "," in cell and len(cells) > 1:
                spot = f"row {r}: " if len(lines) > 1 else ""
                raise ScenarioError(
                    f"{spot}{_quoted(cell.strip())} could be one number with a decimal comma or "
                    "several numbers; write decimals with a point"
                )


def _point(cell):
    """A spreadsheet cell's decimal comma as a point, unless it may separate thousands."""
    if not _DECIMAL_COMMA.fullmatch(cell):
        return cell
    if _THOUSANDS.fullmatch(cell):
        raise ScenarioError(
            f"{_quoted(cell)} could be {cell.replace(',', '.')} or {cell.replace(',', '')}; "
            "write decimals with a point and thousands without a separator"
        )
    return cell.replace(",", ".")


def _cell(cell, spot):
    cell = cell.strip()
    return _value(cell, spot) if cell else np.nan


def _as_axes(nested, axes):
    depth = _depth(nested)
    if axes == "G" and depth == 2:
        nested, depth = _as_one_row(nested), 1
    if depth > len(axes):
        raise ScenarioError(
            f"the pasted list is nested {depth} deep; wanted {len(axes)} ({', '.join(axes)})"
        )
    whole = next(each for each in _SPECS if each.endswith(axes))
    for _ in range(len(whole) - depth):
        nested = [nested]
    if whole[-1] in _RAGGED:
        # Lists without a step each are a group without steps; one empty list is nothing.
        nested = _filled_up(nested, whole[-1], least=int(whole[-1] == "S" and depth > 1))
    array = as_array("the pasted list", nested, _SPECS[whole])
    if array.size == 0:
        raise ScenarioError("the pasted list is empty; paste at least one number")
    return array[0] if len(axes) < len(whole) else array


def _as_one_row(rows):
    """A group pasted as the one row of a table or as its one column."""
    if len(rows) > 1 and any(isinstance(row, list) and len(row) != 1 for row in rows):
        raise ScenarioError(
            f"the pasted text has {len(rows)} rows; wanted one group, as one row or one column"
        )
    return [value for row in rows for value in (row if isinstance(row, list) else [row])]


def _filled_up(nested, axis, least):
    """Rows along an axis filled up with NaN to the length of the longest."""
    rows = [row for group in nested if isinstance(group, list) for row in group]
    width = max((len(row) for row in rows if isinstance(row, list)), default=0)
    width = max(width, least)
    largest = max((len(group) for group in nested if isinstance(group, list)), default=0)
    check_sizes({"P": len(nested), "G": largest, axis: width})
    return [
        [row + [np.nan] * (width - len(row)) if isinstance(row, list) else row for row in group]
        if isinstance(group, list)
        else group
        for group in nested
    ]


def _depth(nested):
    depth = 0
    while isinstance(nested, list):
        depth, nested = depth + 1, nested[0] if nested else None
    return depth


def array_to_code(array, name=None):
    """NumPy code that rebuilds an array exactly: values, shape and type.

    Examples
    --------
    >>> array_to_code(np.array([[1.0, np.nan], [0.1, -np.inf]]))
    'np.array([\\n    [1.0, np.nan],\\n    [0.1, -np.inf],\\n])'
    """
    array = np.asarray(array)
    kind = {"float64": "", "bool": ""}.get(str(array.dtype), f", dtype=np.{array.dtype}")
    if array.size == 0:
        code = f"np.zeros({array.shape}, dtype=np.{array.dtype})"
    else:
        code = f"np.array({_literal(array, 0)}{kind})"
    return code if name is None else f"{name} = {code}"


def _literal(array, indent):
    if array.ndim == 0:
        text = str(array[()])  # NumPy prints the shortest digits that give the number back
        return re.sub(r"nan|inf", lambda word: f"np.{word.group()}", text)
    items = [_literal(item, indent + 4) for item in array]
    if array.ndim == 1:
        return f"[{', '.join(items)}]"
    pad = " " * (indent + 4)
    return "[\n" + "".join(f"{pad}{item},\n" for item in items) + " " * indent + "]"
