"""Conventions in the words of TRL, verl and OpenRLHF, and settings of theirs as conventions."""

from .applied import applied
from .openrlhf import OPENRLHF
from .reading import full_key, read
from .settings import Cannot, Dialect, Entry, Reading, Setting
from .spelling import keys_of, openrlhf_flags
from .trl import GMPO, GRPO, RLOO
from .verl import VERL
from .writing import write

DIALECTS = (GRPO, GMPO, RLOO, VERL, OPENRLHF)
_CALLS = {"GRPOConfig": GRPO, "GMPOConfig": GMPO, "RLOOConfig": RLOO}


def to_trl(conventions, scenario=None):
    """A ``GRPOConfig(...)`` of TRL 1.16, or its GMPOConfig or RLOOConfig where that is closer.

    Parameters
    ----------
    conventions : Conventions
    scenario : Scenario, optional
        Gives the number of generations, the weights of terms, and the padded width.

    Returns
    -------
    Setting
        Only what differs from TRL's defaults; what TRL cannot do is in ``cannot``.
    """
    settings = [write(dialect, conventions, scenario) for dialect in _CALLS.values()]
    return min(settings, key=lambda setting: (_another_method(setting), len(setting.cannot)))


def _another_method(setting):
    """How many of advantage and surrogate are computed otherwise."""
    return sum(
        each.stage in ("advantage", "surrogate") and not each.option for each in setting.cannot
    )


def to_verl(conventions, scenario=None):
    """Override lines of verl 0.9.1; otherwise as `to_trl`."""
    return write(VERL, conventions, scenario)


def to_openrlhf(conventions, scenario=None):
    """Flags of OpenRLHF 0.11; otherwise as `to_trl`."""
    return write(OPENRLHF, conventions, scenario)


def from_trl(entries, call="GRPOConfig"):
    """Conventions of the arguments of a TRL configuration.

    Parameters
    ----------
    entries : mapping of key to value, or iterable of Entry
    call : {'GRPOConfig', 'GMPOConfig', 'RLOOConfig'}

    Returns
    -------
    Reading
    """
    return read(_CALLS[call], entries)


def from_verl(entries):
    """Conventions of verl's configuration, keys with dots; otherwise as `from_trl`."""
    return read(VERL, entries)


def from_openrlhf(entries):
    """Conventions of OpenRLHF's flags; otherwise as `from_trl`."""
    return read(OPENRLHF, entries)


def recognised(entries):
    """The dialect that knows most of the keys, its own spelling first; None if none does."""
    scores = [_score(dialect, entries) for dialect in (GRPO, VERL, OPENRLHF)]
    best = max(scores)
    return (GRPO, VERL, OPENRLHF)[scores.index(best)] if best else None


def _score(dialect, entries):
    whole = sum(entry.key in dialect.defaults for entry in entries)
    return 2 * whole + sum(full_key(dialect, entry.key) is not None for entry in entries)


__all__ = [
    "DIALECTS",
    "Cannot",
    "Dialect",
    "Entry",
    "Reading",
    "Setting",
    "applied",
    "from_openrlhf",
    "from_trl",
    "from_verl",
    "keys_of",
    "openrlhf_flags",
    "recognised",
    "to_openrlhf",
    "to_trl",
    "to_verl",
]
