"""What a trainer calls a variant or an option, read off the rows of its dialect."""

from ..stages import Conventions
from .alike import wordings
from .openrlhf import OPENRLHF
from .settings import UNSET, Derived


def keys_of(dialect, stage, variant, option=""):
    """Keys of a dialect that choose a variant, or that hold an option of it.

    Parameters
    ----------
    dialect : Dialect
    stage, variant : str
        Keys of `STAGES` and of a row there.
    option : str, optional
        An option of the variant.

    Returns
    -------
    dict or None
        Key to the values that it may have there, an empty tuple where it holds any number.
        Empty where the trainer always does so; None where it does not offer it.
    """
    axis = next(axis for axis in dialect.axes if stage in axis[0].choices)
    rows = [row for row in axis if row.choices[stage].variant == variant]
    if option:
        return _linked(rows, f"{stage}.{option}") or _deciding(rows, stage, option) or None
    others = [row for row in axis if row not in rows]
    if not others or (not rows and _in_other_words(stage, variant, others)):
        return {}
    if not rows:
        return None
    return _telling(rows, others) or dict.fromkeys(_links(rows) - _links(others), ())


def openrlhf_flags(stage, variant, option=""):
    """Flags of OpenRLHF as `keys_of` finds them, in words; None where it offers none.

    Examples
    --------
    >>> openrlhf_flags("kl", "k3"), openrlhf_flags("kl", "k3", "beta")
    ('--algo.kl.estimator k3', '--algo.kl.init_coef')
    """
    keys = keys_of(OPENRLHF, stage, variant, option)
    if keys is None:
        return None
    return ", ".join(_flag(key, values) for key, values in keys.items()) or "the default"


def _flag(key, values):
    default, named = OPENRLHF.defaults[key], [each for each in values if each not in (None, False)]
    if values and not named:
        return f"without --{key}"
    if named and named != [True]:
        return f"--{key} {' or '.join(map(str, named))}"
    return f"--{default.key} or --{key}" if isinstance(default, Derived) else f"--{key}"


def _in_other_words(stage, variant, rows):
    """Whether all rows do what the variant does, as with one reward that is a sum."""
    same = {each.variant for each in wordings(stage, Conventions.of(**{stage: variant})[stage])}
    return {row.choices[stage].variant for row in rows} <= same


def _links(rows):
    return {key for row in rows for key in row.links}


def _linked(rows, name):
    """Keys whose values become an option."""
    links = [(key, link) for row in rows for key, link in row.links.items()]
    return {key: () for key, link in links if name in link.options}


def _values(rows, key):
    """What a key selects rows by, in order; UNSET in rows that leave it open."""
    return list(dict.fromkeys(row.keys.get(key, UNSET) for row in rows))


def _telling(rows, others):
    """Keys by which rows are told from others, with the values in these rows."""
    keys = dict.fromkeys(key for row in rows for key in row.keys)
    found = {key: _values(rows, key) for key in keys}
    return {
        key: tuple(value for value in values if value is not UNSET)
        for key, values in found.items()
        if set(values) != set(_values(others, key))
    }


def _deciding(rows, stage, option):
    """Keys of which each value stands for one value of an option that has several."""
    values = {row.choices[stage].options[option] for row in rows}
    if len(values) < 2:
        return {}
    found = {}
    for key in dict.fromkeys(key for row in rows for key in row.keys):
        pairs = {(row.keys.get(key, UNSET), row.choices[stage].options[option]) for row in rows}
        given = _values(rows, key)
        if len(pairs) == len(given) > 1:
            found[key] = tuple(value for value in given if value is not UNSET)
    return found
