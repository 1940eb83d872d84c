"""What a trainer's settings are here: rows that pair its keys with choices of the core.

A `Dialect` describes one configuration of one trainer in axes. The rows of an axis are the
ways that the trainer can compute some stages; exactly one of them holds. A row serves both
directions: conventions are written with the closest row, keys are read with the first row
that they fit.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..stages import Conventions

UNSET = object()  # written by a link that leaves its key at the trainer's default


@dataclass(frozen=True, kw_only=True)
class Link:
    """How options of the core, each ``"stage.option"``, become one key's value, and back.

    ``read`` gives one value for each option, and raises a ValueError that says what is wanted.
    """

    options: tuple[str, ...]
    write: Callable = lambda value: value
    read: Callable = lambda value: (value,)


def _first_weight(weights):
    if weights is None:
        return (1.0,)
    if not isinstance(weights, (list, tuple)) or not weights:
        raise ValueError("wanted a list of numbers")
    return (weights[0],)


# The first of a list of reward weights; those of the terms come from the scenario.
TASK_WEIGHT = Link(
    options=("rewards.task_weight",),
    write=lambda weight: None if weight == 1 else [weight],
    read=_first_weight,
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One way of computing the stages of an axis.

    Parameters
    ----------
    choices : mapping
        Stage to variant, or to (variant, fixed options); options that are neither fixed nor
        linked stand at the core's default. The earlier a stage, the more it weighs when no row
        fits.
    keys : mapping
        Values of keys that select the row.
    links : mapping
        Key to `Link`, or to the one ``"stage.option"`` that it holds as it is.
    when : mapping
        Values of keys of earlier axes with which the row holds.
    note : str
        What a reader of the written lines should know.
    written : bool
        False for another spelling of a row above, which is only read.
    """

    choices: Mapping
    keys: Mapping = field(default_factory=dict)
    links: Mapping = field(default_factory=dict)
    when: Mapping = field(default_factory=dict)
    note: str = ""
    written: bool = True

    def __post_init__(self):
        links = {
            key: Link(options=(link,)) if isinstance(link, str) else link
            for key, link in self.links.items()
        }
        object.__setattr__(self, "links", links)
        pairs = {
            stage: (choice, {}) if isinstance(choice, str) else choice
            for stage, choice in self.choices.items()
        }
        complete = Conventions.of(**pairs)
        object.__setattr__(self, "choices", {stage: complete[stage] for stage in pairs})

    @property
    def linked(self):
        """The options that keys hold."""
        return {option for link in self.links.values() for option in link.options}


# What trainers that know no missing reward make of one.
SPREADING_NAN = {"rewards.missing": "one makes the advantages of its whole group NaN"}


def fixed(**choices):
    """Axes of stages that a trainer has no key for: a variant of each stage, in this order."""
    return tuple((Row(choices={stage: variant}),) for stage, variant in choices.items())


@dataclass(frozen=True, kw_only=True)
class Derived:
    """The default of a key that stands for the value of another one."""

    key: str
    of: Callable = lambda value: value


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One configuration of one trainer, at a version.

    Parameters
    ----------
    key, name : str
    axes : tuple of tuple of Row
        Together they choose every stage once.
    defaults : mapping
        Key to the trainer's default, or to a `Derived`: all keys that are known.
    lines : callable
        Settings that differ from the defaults, to lines of text.
    group_key : str
        The key that holds the number of completions per prompt.
    weights_key : str
        The key of the reward weights: task first, then the terms; '' where there is none.
    old_names : mapping
        Another spelling of a key to the key.
    spellings : mapping
        Key to pairs (another spelling of a value, the value).
    always : mapping
        Keys that are written whatever their value, and what is said where one is not given.
    alike : frozenset of str
        Last parts of other settings of the trainer that are no misspelt known ones.
    scale : mapping
        ``"stage.option"`` that reads 0 as a size of the batch, to the axis of that size.
    hints : mapping
        A key that is not of these stages, to what to do about it here.
    other : mapping
        ``"stage.option"`` of which the trainer does none of the values, to what it does.
    """

    key: str
    name: str
    axes: tuple[tuple[Row, ...], ...]
    defaults: Mapping
    lines: Callable
    group_key: str
    weights_key: str = ""
    old_names: Mapping = field(default_factory=dict)
    spellings: Mapping = field(default_factory=dict)
    always: Mapping = field(default_factory=dict)
    alike: frozenset = frozenset()
    scale: Mapping = field(default_factory=dict)
    hints: Mapping = field(default_factory=dict)
    other: Mapping = field(default_factory=dict)

    def default(self, key, settings):
        """A key's default beside the other settings."""
        default = self.defaults[key]
        if not isinstance(default, Derived):
            return default
        return default.of(settings.get(default.key, self.defaults[default.key]))

    def value(self, key, settings):
        """What a key holds. None under a derived default means that default."""
        value = settings.get(key, UNSET)
        stands_for_another = value is None and isinstance(self.defaults[key], Derived)
        return self.default(key, settings) if value is UNSET or stands_for_another else value

    def stages(self):
        """The stages that the axes choose, in order."""
        return [stage for axis in self.axes for stage in axis[0].choices]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One setting that was given: its key, its value, the line that it stands on (0: none)."""

    key: str
    value: object
    line: int = 0

    def __str__(self):
        place = f"line {self.line}: " if self.line else ""
        return f"{place}{shorten(self.key)} = {shorten(self.value)}"


@dataclass(frozen=True, kw_only=True)
class Cannot:
    """What a trainer cannot compute: the stage, the option ('' for the variant), a sentence.

    ``here`` is False where it makes no difference to the batch at hand.
    """

    stage: str
    option: str
    sentence: str
    here: bool = True


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Conventions in a trainer's words: lines to copy, what they cannot say, what to know."""

    name: str
    lines: tuple[str, ...]
    cannot: tuple[Cannot, ...]
    notes: tuple[str, ...] = ()

    @property
    def text(self):
        """The lines as one text."""
        return "\n".join(self.lines)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Conventions read from a trainer's settings, and what became of each setting.

    ``taken`` are the entries that say something; ``not_understood``, ``no_counterpart`` and
    ``no_effect`` are sentences, one an entry. ``weights`` are reward weights, task first.
    """

    name: str
    conventions: Conventions
    taken: tuple[Entry, ...] = ()
    not_understood: tuple[str, ...] = ()
    no_counterpart: tuple[str, ...] = ()
    no_effect: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    group_size: int | None = None


def shorten(value, most=60):
    """A value as text of bounded length, for a sentence."""
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
