"""The vocabulary of conventions: options, variants, stages, and a choice of each."""

import reprlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .errors import ScenarioError


def _plain(value):
    """The Python object in a NumPy scalar; anything else as it came."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


@dataclass(frozen=True, kw_only=True)
class Number:
    """A range of numbers; ``integer`` ones are whole, ``exclusive`` leaves out the lower end."""

    low: float = 0.0
    high: float = float("inf")
    integer: bool = False
    exclusive: bool = False

    def __contains__(self, value):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        if not abs(value) <= sys.float_info.max:  # NaN, infinite, or a longer integer
            return False
        if self.integer and value != int(value):
            return False
        above = value > self.low if self.exclusive else value >= self.low
        return above and value <= self.high

    def __str__(self):
        kind = "a whole number" if self.integer else "a number"
        above = "above" if self.exclusive else "of at least"
        upto = "" if self.high == float("inf") else f" and at most {self.high:,.10g}"
        return f"{kind} {above} {self.low:,.10g}{upto}"

    def coerce(self, value):
        """A plain int or float, whatever numeric type came; what is outside stays as it is."""
        value = _plain(value)
        if value not in self:
            return value
        return int(value) if self.integer else float(value)


@dataclass(frozen=True)
class OneOf:
    """A few values by name; the words for the reader stand beside each."""

    words: Mapping[object, str]

    def __contains__(self, value):
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            return False
        return value in self.words

    def __str__(self):
        return "one of " + ", ".join(repr(value) for value in self.words)

    def coerce(self, value):
        """The table's own object (0 for 0.0); what is not one of them stays as it is."""
        value = _plain(value)
        return next(own for own in self.words if own == value) if value in self else value


@dataclass(frozen=True, kw_only=True)
class Option:
    """One setting of a variant: its default, what it may be, and what trainers call it."""

    key: str
    default: object
    domain: Number | OneOf
    label: str
    help: str
    trl: str
    verl: str


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way of computing a stage.

    ``function`` returns the value and its derivative together, see the stage's contract.
    ``formula`` is LaTeX; ``source`` names paper and equation, or the code it comes from;
    ``unit`` says what the value is measured in, where that differs between variants.
    """

    key: str
    label: str
    function: Callable
    formula: str
    source: str
    trl: str
    verl: str
    choose_when: str
    options: tuple[Option, ...] = ()
    needs: tuple[str, ...] = ()
    unit: str = ""

    def option(self, key):
        """The row of one option."""
        return next(option for option in self.options if option.key == key)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step of the computation and all ways of doing it, default first."""

    key: str
    label: str
    contract: str
    variants: Mapping[str, Variant]

    @property
    def default(self):
        """Key of the default variant."""
        return next(iter(self.variants))


def table(*rows):
    """Read-only mapping from each row's key to the row, in the order given."""
    return MappingProxyType({row.key: row for row in rows})


@dataclass(frozen=True)
class Choice:
    """A variant of one stage with all of its options filled in."""

    variant: str
    options: Mapping[str, object] = field(default_factory=dict)

    def __hash__(self):
        return hash((self.variant, tuple(sorted(self.options.items()))))


def complete_choice(stage, choice):
    """Fill in the options that a choice leaves open; refuse what the stage does not know.

    Raises
    ------
    ScenarioError
        Unknown variant or option, or a value outside its domain; the message lists what
        is allowed.
    """
    if not isinstance(choice.variant, str) or choice.variant not in stage.variants:
        known = ", ".join(stage.variants)
        raise ScenarioError(
            f"{stage.key}: unknown variant {reprlib.repr(choice.variant)}; choose one of {known}",
            field=stage.key,
        )
    variant = stage.variants[choice.variant]
    known = {option.key: option for option in variant.options}
    for key in choice.options:
        if key not in known:
            listing = ", ".join(known) or "no options"
            raise ScenarioError(
                f"{stage.key}.{variant.key} has no option {reprlib.repr(key)}; it has {listing}",
                field=f"{stage.key}.{key}",
            )
    options = {}
    for key, option in known.items():
        value = option.domain.coerce(choice.options.get(key, option.default))
        if value not in option.domain:
            raise ScenarioError(
                f"{stage.key}.{key} is {reprlib.repr(value)}; wanted {option.domain}",
                field=f"{stage.key}.{key}",
            )
        options[key] = value
    return Choice(variant.key, MappingProxyType(options))
