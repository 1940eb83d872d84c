"""Written-out arithmetic: formulas whose shown, rounded numbers recombine to the last digit.

A formula is a small tree that can be evaluated and written as LaTeX or as plain text. A
`Number` that is the result of one line and an operand of the next is one object, so it reads
the same in both. `settle` gives the numbers as many digits as it takes.
"""

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext

# Wide enough that what is computed here counts as exact beside double precision.
_DIGITS = 60
_CONTEXT = Context(
    prec=_DIGITS, rounding=ROUND_HALF_EVEN, Emax=10**15, Emin=-(10**15), capitals=0, traps=[]
)
_INFINITY = Decimal("inf")
_SHORT = 6  # a number of at most so many digits is shown whole
_ROUNDED = 4  # the others start with so many
_UNBROKEN = 24.0  # em: what is squared stays on one line up to this width


def working():
    """Context manager in which formulas are evaluated."""
    return localcontext(_CONTEXT)


@dataclass(frozen=True)
class Piece:
    """A bit of LaTeX, its width in em, and whether a line may break before it."""

    latex: str
    width: float
    breaks: bool = False


class Term:
    """Part of a formula; the usual operators build larger ones.

    Every term has ``evaluate(read)``, its value where ``read`` gives that of a `Number`;
    ``numbers()``, all numbers in it; ``text()``, as Python reads it; and ``latex(names,
    linear)``, a list of `Piece`, with symbols for numbers and without fractions if asked.
    """

    tight = 4  # how tightly it binds: 0 sum, 1 product, 3 power, 4 needs no parentheses

    def __add__(self, other):
        return Sum((self, 1), (other, 1))

    def __sub__(self, other):
        return Sum((self, 1), (other, -1))

    def __mul__(self, other):
        return Product(self, other)

    def __truediv__(self, other):
        return Quotient(self, other)

    def __neg__(self):
        return Sum((self, -1))


class Number(Term):
    """A number with as many digits shown as needed; ``symbol`` stands for it in formulas."""

    def __init__(self, value, symbol=""):
        self.value = value if isinstance(value, Decimal) else Decimal(str(value))
        self.symbol = symbol
        whole = _CONTEXT.create_decimal(self.value).normalize(Context(prec=_DIGITS - 10))
        self._whole = whole
        self.places = None  # exponent of the last shown digit; None shows all of them
        if whole.is_finite() and whole and len(whole.as_tuple().digits) > _SHORT:
            size = whole.normalize(Context(prec=_ROUNDED)).adjusted()
            self.places = size + 1 - _ROUNDED if size >= 7 else min(size + 1 - _ROUNDED, 0)

    @property
    def shown(self):
        """The number as a reader sees it."""
        if self.places is None:
            return self._whole
        return self._whole.quantize(Decimal((0, (1,), self.places)), context=_CONTEXT)

    def refine(self):
        """Show one digit more."""
        self.places -= 1
        if self.places <= self._whole.as_tuple().exponent:
            self.places = None

    @property
    def tight(self):
        """A minus sign or a power of ten wants parentheses where a bare number does not."""
        return 0 if self.shown < 0 else 4

    def evaluate(self, read):
        return read(self)

    def numbers(self):
        yield self

    def text(self):
        """Digits with a decimal point or an e, as Python reads them."""
        shown = self.shown
        if not shown.is_finite():
            return "-inf" if shown < 0 else "inf"
        if not shown:
            return "0"
        if -5 < shown.adjusted() < 7:
            return format(shown, "f")
        digits = "".join(map(str, shown.as_tuple().digits))
        digits = digits.rstrip("0") or "0" if self.places is None else digits
        sign = "-" if shown < 0 else ""
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{shown.adjusted()}"

    def latex(self, names=False, linear=False):
        if names and self.symbol:
            return [Piece(self.symbol, symbol_width(self.symbol))]
        text = self.text()
        width = 0.5 * len(text) + (0.3 if text.startswith("-") else 0)
        if "inf" in text:
            return [Piece(text.replace("inf", r"\infty"), 1.5)]
        mantissa, e, power = text.partition("e")
        if e:
            ten = f"10^{{{power}}}"
            times = "" if mantissa == "1" else mantissa + r"\times "
            text = ("-" + ten) if mantissa == "-1" else times + ten
            width += 1.5
        return [Piece(text, width)]


class Sum(Term):
    """Terms added or subtracted; infinities of opposite sign make -inf, as in the core."""

    tight = 0

    def __init__(self, *signed):
        self.signed = signed

    def __add__(self, other):
        return Sum(*self.signed, (other, 1))

    def __sub__(self, other):
        return Sum(*self.signed, (other, -1))

    def evaluate(self, read):
        total = sum((sign * term.evaluate(read) for term, sign in self.signed), Decimal(0))
        return -_INFINITY if total.is_nan() else total

    def numbers(self):
        for term, _ in self.signed:
            yield from term.numbers()

    def text(self):
        words = ""
        for index, (term, sign) in enumerate(self.signed):
            lone = index == 0 and sign > 0
            part = term.text() if lone else _text_in(term, 1)
            words += part if lone else (" + " if sign > 0 else " - " if index else "-") + part
        return words

    def latex(self, names=False, linear=False):
        pieces = []
        for index, (term, sign) in enumerate(self.signed):
            lone = index == 0 and sign > 0
            inner = term.latex(names, linear) if lone else _latex_in(term, 1, names, linear)
            if not lone:
                pieces.append(Piece("+" if sign > 0 else "-", 1.2 if index else 0.8, index > 0))
            pieces += inner
        return pieces


class Product(Term):
    """Factors multiplied; zero times infinity is zero, as in the core."""

    tight = 1

    def __init__(self, *factors):
        self.factors = factors

    def __mul__(self, other):
        return Product(*self.factors, other)

    def evaluate(self, read):
        values = [factor.evaluate(read) for factor in self.factors]
        result = Decimal(1)
        for value in values:
            result *= value
        return Decimal(0) if any(value == 0 for value in values) else result

    def numbers(self):
        for factor in self.factors:
            yield from factor.numbers()

    def text(self):
        return " * ".join(_text_in(factor, 1) for factor in self.factors)

    def latex(self, names=False, linear=False):
        pieces = []
        for index, factor in enumerate(self.factors):
            if index:
                pieces.append(Piece(r"\,", 0.2) if names else Piece(r"\cdot", 0.8, linear))
            pieces += _latex_in(factor, 1, names, linear)
        return pieces


class Quotient(Term):
    """A fraction; a slash where a fraction would be too wide."""

    tight = 1

    def __init__(self, above, below):
        self.above, self.below = above, below

    def evaluate(self, read):
        return self.above.evaluate(read) / self.below.evaluate(read)

    def numbers(self):
        yield from self.above.numbers()
        yield from self.below.numbers()

    def text(self):
        return f"{_text_in(self.above, 1)} / {_text_in(self.below, 3)}"

    def latex(self, names=False, linear=False):
        if linear:
            below = _latex_in(self.below, 3, names, linear)
            return [*_latex_in(self.above, 1, names, linear), Piece(r"\,/\,", 0.8), *below]
        above, below = self.above.latex(names), self.below.latex(names)
        width = max(_width(above), _width(below)) + 0.3
        return [Piece(rf"\frac{{{_join(above)}}}{{{_join(below)}}}", width)]


class Square(Term):
    """A term squared."""

    tight = 3

    def __init__(self, base):
        self.base = base

    def evaluate(self, read):
        value = self.base.evaluate(read)
        return value * value

    def numbers(self):
        yield from self.base.numbers()

    def text(self):
        return _text_in(self.base, 4) + "**2"

    def latex(self, names=False, linear=False):
        base = _latex_in(self.base, 4, names, linear)
        if _width(base) <= _UNBROKEN:
            base = [Piece(p.latex, p.width) for p in base]
        powers = (r"\times", "^")  # a number with a power of ten, or one that is one
        if isinstance(self.base, Number) and any(mark in base[0].latex for mark in powers):
            base = _parenthesised(base)
        return [*base[:-1], Piece(base[-1].latex + "^2", base[-1].width + 0.4, base[-1].breaks)]


class Call(Term):
    """A function of one or more terms."""

    def __init__(self, name, function, *arguments):
        self.name, self.function, self.arguments = name, function, arguments

    def evaluate(self, read):
        return self.function(*(argument.evaluate(read) for argument in self.arguments))

    def numbers(self):
        for argument in self.arguments:
            yield from argument.numbers()

    def text(self):
        return f"{self.name}({', '.join(argument.text() for argument in self.arguments)})"

    def latex(self, names=False, linear=False):
        inner = [argument.latex(names, linear) for argument in self.arguments]
        if self.name == "exp":
            return [Piece(f"e^{{{_join(inner[0])}}}", 0.5 + 0.7 * _width(inner[0]))]
        if self.name == "sqrt":
            return [Piece(rf"\sqrt{{{_join(inner[0])}}}", 1 + _width(inner[0]))]
        pieces = [Piece(rf"\operatorname{{{self.name}}}(", 0.5 * len(self.name) + 0.4)]
        for index, argument in enumerate(inner):
            if index:
                pieces.append(Piece(r",\ ", 0.7))
                argument = [Piece(argument[0].latex, argument[0].width, True), *argument[1:]]
            pieces += argument
        return [*pieces, Piece(")", 0.4)]


def exp(term):
    """``e**term``."""
    return Call("exp", lambda value: value.exp(), term)


def sqrt(term):
    """Square root."""
    return Call("sqrt", lambda value: value.sqrt(), term)


def smaller(left, right):
    """The smaller of two."""
    return Call("min", min, left, right)


def larger(left, right):
    """The larger of two."""
    return Call("max", max, left, right)


def clip(term, low, high):
    """The term, held between two bounds."""
    return Call("clip", lambda value, low, high: min(max(value, low), high), term, low, high)


def total(terms):
    """The sum of a list of terms."""
    return Sum(*((term, 1) for term in terms))


def _text_in(term, tight):
    text = term.text()
    return text if term.tight >= tight else f"({text})"


def _latex_in(term, tight, names, linear):
    pieces = term.latex(names, linear)
    if names and isinstance(term, Number) and term.symbol:
        return pieces if "-" not in term.symbol else _parenthesised(pieces)
    return pieces if term.tight >= tight else _parenthesised(pieces)


def _parenthesised(pieces):
    return [Piece("(", 0.4), *pieces, Piece(")", 0.4)]


def _width(pieces):
    return sum(piece.width for piece in pieces)


def _join(pieces):
    return " ".join(piece.latex for piece in pieces)


def symbol_width(symbol):
    """Rough width of a symbol in em: a command counts as two letters, braces as none."""
    plain = re.sub(r"\\(mathrm|textstyle|operatorname)", "", symbol)
    return 0.5 * len(re.sub(r"[{}_^\\ ]", "", re.sub(r"\\[a-zA-Z]+", "xx", plain)))
