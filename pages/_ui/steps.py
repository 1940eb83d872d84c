"""Steps of a written-out computation: symbol = formula = numbers = value, set within a width."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from .arithmetic import Number, Piece, Term, symbol_width

# Pixels that an em of a formula takes, as measured: KaTeX's size in Streamlit.
_EM = 19.3
WIDTH = 560
_EQUALS = 1.4
# Without it the numerator of a fraction at the top is cut off.
_STRUT = r"\rule{0pt}{2.2em}"
_TALL = (r"\frac", r"\sqrt", r"\sum")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One line of a computation, ready to be shown.

    Attributes
    ----------
    stage : str
        The part of the computation it belongs to.
    label : str
        What is computed, in words.
    name : str
        Its symbol as plain text.
    text : str
        The line as plain text, e.g. ``A = (1 - 0.5) / 0.5 = 1``; the middle is Python.
    latex : str
        The same for `st.latex`, broken into lines of a width; '' where there is only a note.
    operands : tuple of str
        The numbers of the formula, as shown.
    value : str
        The result as shown.
    note : str
        A sentence for the reader, or ''.
    written : bool
        False where there is nothing to recombine: the value is given, or comes from more
        numbers than can be written out.
    """

    stage: str
    label: str
    name: str = ""
    text: str = ""
    latex: str = ""
    operands: tuple[str, ...] = ()
    value: str = ""
    note: str = ""
    written: bool = False


@dataclass(kw_only=True, eq=False)
class Line:
    """A step in the making, while digits are not settled.

    ``general`` is the formula as LaTeX where its own symbols are not what should be read.
    ``fit`` maps what is computed to the range of the core's number type; a line with a
    formula has one.
    """

    stage: str
    label: str
    name: str
    result: Number
    formula: Term | None = None
    general: str = ""
    note: str = ""
    fit: Callable | None = None

    def operands(self):
        """The numbers of the formula."""
        return () if self.formula is None else tuple(self.formula.numbers())

    def recombines(self):
        """True if the shown operands give the shown result in its last digit.

        Operands shown in full give it by construction.
        """
        if not self._rounded():
            return True
        found, shown = self._found(lambda number: number.shown), self.result.shown
        if not (found.is_finite() and shown.is_finite()):
            return found == shown
        last = Decimal((0, (1,), self._last()))
        return found.quantize(last) == shown.quantize(last)

    def loosest(self):
        """The operand whose rounding moves the result most."""
        shown = self._found(lambda number: number.shown)

        def harm(number):
            found = self._found(lambda other: other.value if other is number else other.shown)
            moved = abs(found - shown)
            return moved if moved.is_finite() else Decimal("inf")

        return max(self._rounded(), key=harm)

    def _rounded(self):
        return [number for number in self.operands() if number.places is not None]

    def _found(self, read):
        return self.fit(self.formula.evaluate(read))

    def _last(self):
        """Exponent of the last digit that has to agree: at least the fourth."""
        if self.result.places is not None:
            return self.result.places
        if self.result.value:
            return min(self.result.shown.adjusted() - 3, self.result.shown.as_tuple().exponent)
        sizes = [n.value.adjusted() for n in self.operands() if n.value and n.value.is_finite()]
        return max(sizes, default=0) - 4

    def step(self, width):
        """The line with the digits that it has now, set within a width in pixels."""
        value = self.result.text()
        middle = "" if self.formula is None else self.formula.text()
        return Step(
            stage=self.stage,
            label=self.label,
            name=self.name,
            text=f"{self.name} = {value}"
            if middle in ("", value)
            else f"{self.name} = {middle} = {value}",
            latex=typeset(self.result.symbol, self._parts(), width),
            operands=tuple(number.text() for number in self.operands()),
            value=value,
            note=self.note,
            written=self.formula is not None,
        )

    def _parts(self):
        """What stands between the equals signs: the formula in symbols, in numbers, the value."""
        parts = [_both(self.result)]
        if self.formula is not None:
            parts.insert(0, _both(self.formula))
        if self.general:
            parts.insert(0, ((Piece(self.general, symbol_width(self.general)),),) * 2)
        elif self.formula is not None:
            parts.insert(0, _both(self.formula, names=True))
        seen, kept = {_bare(self.result.symbol)}, []
        for part in parts:
            if _bare(joined(part[0])) not in seen:
                kept.append(part)
            seen.add(_bare(joined(part[0])))
        return tuple(kept)


def settle(lines):
    """Give every number the digits that make each line recombine from what is shown.

    Parameters
    ----------
    lines : sequence of Line
        In the order in which they are computed. This ends because operands at full length
        give the result by construction.
    """
    numbers = [line.result for line in lines] + [n for line in lines for n in line.operands()]
    while loose := next((line for line in reversed(lines) if not line.recombines()), None):
        refined = loose.loosest()
        refined.refine()
        for twin in numbers:  # the same number reads the same under another name
            if twin.value == refined.value:
                twin.places = refined.places


def _both(term, names=False):
    """A term with fractions, and in one line for where those are too wide."""
    return tuple(term.latex(names)), tuple(term.latex(names, linear=True))


def _bare(latex):
    return re.sub(r"[\\, ]", "", latex)


def _ems(pieces):
    """Estimated width in em."""
    return sum(piece.width for piece in pieces)


def joined(pieces):
    """One line of LaTeX."""
    return " ".join(piece.latex for piece in pieces)


def typeset(symbol, parts, width=WIDTH):
    """``symbol = part = part`` within a width, the equals signs under each other.

    A part goes on a new line where it would not fit behind the one before; a part wider
    than a line is broken.
    """
    first, *rest = _lines(parts, width / _EM - _EQUALS - symbol_width(symbol))
    lines = [f"{symbol} {first}", *rest]
    if not rest:
        return strutted(lines[0].replace("&= ", "= ", 1))
    lines[0] = strutted(lines[0])
    gap = r" \\[0.7em] " if any(map(_is_tall, lines)) else r" \\[0.4em] "
    return rf"\begin{{aligned}} {gap.join(lines)} \end{{aligned}}"


def strutted(latex):
    """A line of LaTeX with room above it where it is taller than letters are."""
    return f"{_STRUT} {latex}" if _is_tall(latex) else latex


def _is_tall(latex):
    return any(command in latex for command in _TALL)


def _lines(parts, room):
    lines, used = [], room
    for spacious, linear in parts:
        pieces = spacious if _ems(spacious) <= room else linear
        if lines and used + _EQUALS + _ems(pieces) <= room:
            lines[-1] += f" = {joined(pieces)}"
            used += _EQUALS + _ems(pieces)
            continue
        wrapped = _wrapped(pieces, room)
        lines += [f"&= {joined(wrapped[0])}", *(rf"&\quad {joined(row)}" for row in wrapped[1:])]
        used = _ems(wrapped[-1])
    return lines


def _wrapped(pieces, room):
    """Break a row of pieces at the places where it may be broken."""
    units = []
    for piece in pieces:  # what may not be broken apart stays together
        if piece.breaks or not units:
            units.append([piece])
        else:
            units[-1].append(piece)
    rows = [[]]
    for unit in units:
        if rows[-1] and _ems(rows[-1]) + _ems(unit) > room:
            rows.append([])
        rows[-1] += unit
    return rows
