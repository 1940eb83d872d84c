"""A trainer's settings to conventions, with a word on every setting that was given."""

from difflib import get_close_matches

from ..stages import STAGES, Conventions
from .settings import Derived, Entry, Reading, shorten

_IDLE = "says nothing beside the other settings, or cannot be combined with them here"
_ELSEWHERE = "has no counterpart here"
_LONGEST = 60  # characters of a name that are compared
_LIKE = 0.84  # how alike a name has to be to be taken for a slip of the pen


def read(dialect, entries):
    """Conventions of a trainer's settings; what is not given stands at the trainer's default.

    Parameters
    ----------
    dialect : Dialect
    entries : iterable of Entry, or mapping of key to value
        Of a key given twice the last one holds.

    Returns
    -------
    Reading
    """
    known, unknown, elsewhere, again = _sorted(dialect, _entries(entries))
    settings = {key: entry.value for key, entry in known.items()}
    wrong = {}
    _check_group(dialect, settings, wrong)
    rows, choices = _matched(dialect, settings, wrong)
    used = _used(dialect, rows, settings)
    spoken = [entry for key, entry in known.items() if key not in wrong]
    idle = [entry for entry in spoken if _idle(dialect, entry, known, used)]
    return Reading(
        name=dialect.name,
        conventions=Conventions.of(**{key: tuple(value) for key, value in choices.items()}),
        taken=tuple(entry for entry in spoken if entry not in idle),
        not_understood=(*(f"{known[key]}: {why}" for key, why in wrong.items()), *unknown),
        no_counterpart=tuple(elsewhere),
        no_effect=(*again, *(f"{entry}: {_IDLE}" for entry in idle)),
        notes=tuple(_notes(dialect, rows, known)),
        weights=_numbers(settings.get(dialect.weights_key)),
        group_size=_whole(settings.get(dialect.group_key)),
    )


def _check_group(dialect, settings, wrong):
    """A size that no group has is left out and named."""
    given = settings.get(dialect.group_key)
    if given is not None and not (_whole(given) or 0) >= 1:
        _drop(dialect, dialect.group_key, settings, wrong, "wanted a whole number of at least 1")


def full_key(dialect, name):
    """The key of a dialect that a name stands for: itself, an old name, or its last parts."""
    if name in dialect.defaults:
        return name
    if name in dialect.old_names:
        return dialect.old_names[name]
    last = name.rpartition(".")[2]
    if last in dialect.defaults:  # flat keys that stand in a section of a file
        return last
    ends = [key for key in dialect.defaults if key.endswith(f".{name}")]
    return ends[0] if len(ends) == 1 else None


def _entries(entries):
    if hasattr(entries, "items"):
        return [Entry(key=key, value=value) for key, value in entries.items()]
    return list(entries)


def _sorted(dialect, entries):
    """Entries by key with the dialect's spelling of values; sentences on all others."""
    known, unknown, elsewhere, again = {}, [], [], []
    for entry in entries:
        key = full_key(dialect, entry.key)
        if key is not None:
            spelt = dialect.spellings.get(key, ())
            value = next((new for old, new in spelt if _same(entry.value, old)), entry.value)
            if key in known:
                again.append(f"{known[key]}: is given again further down")
            known[key] = Entry(key=key, value=value, line=entry.line)
            continue
        meant = _meant(dialect, entry.key)
        if meant:
            unknown.append(f"{entry}: no setting of {dialect.name}; did you mean {meant}?")
        else:
            elsewhere.append(f"{entry}: {dialect.hints.get(entry.key, _ELSEWHERE)}")
    return known, unknown, elsewhere, again


def _meant(dialect, name):
    """The key that a slip of the pen in the name's last part may stand for, or None."""
    last = name.rpartition(".")[2]
    if last in dialect.alike:
        return None
    ends = {key.rpartition(".")[2]: key for key in dialect.defaults}
    found = get_close_matches(last[:_LONGEST], ends, 1, _LIKE)
    # num_generations_eval is a setting of its own, and no misspelt num_generations.
    return ends[found[0]] if found and found[0] not in last and last not in found[0] else None


def _matched(dialect, settings, wrong):
    """The row of each axis and its choices; a value that cannot be is left out and named."""
    while True:
        rows = [_row(dialect, axis, settings, wrong) for axis in dialect.axes]
        choices = {
            stage: [choice.variant, dict(choice.options)]
            for row in rows
            for stage, choice in row.choices.items()
        }
        links = [(key, link) for row in rows for key, link in row.links.items()]
        if all(_fill(dialect, key, link, settings, choices, wrong) for key, link in links):
            return rows, choices
        # Without the value another row may fit, so all is matched anew; each round drops one.


def _fits(dialect, row, settings):
    wanted = {**row.keys, **row.when}
    return all(_same(dialect.value(key, settings), value) for key, value in wanted.items())


def _same(given, wanted):
    """Equal, and both of a kind: 1 is not True, None is not False."""
    kinds = (isinstance(given, bool), isinstance(wanted, bool))
    return kinds[0] == kinds[1] and given == wanted


def _row(dialect, axis, settings, wrong):
    """The first row that the settings fit; values that fit none are named and left out."""
    fitting = _first(dialect, axis, settings)
    if fitting is not None:
        return fitting
    keys = dict.fromkeys(key for row in axis for key in row.keys)
    for key in keys:
        allowed = [row.keys[key] for row in axis if key in row.keys]
        linked = any(key in row.links for row in axis)
        given = settings.get(key)
        if key in settings and not linked and not any(_same(given, each) for each in allowed):
            _drop(dialect, key, settings, wrong, _among(allowed))
    fitting = _first(dialect, axis, settings)
    if fitting is None:
        for key in keys:
            if key in settings:
                _drop(dialect, key, settings, wrong, "this combination is not computed here")
        fitting = _first(dialect, axis, settings)
    return fitting


def _first(dialect, axis, settings):
    return next((row for row in axis if _fits(dialect, row, settings)), None)


def _among(values):
    names = ", ".join(dict.fromkeys(shorten(value) for value in values))
    return f"known here {'are' if ',' in names else 'is'} {names}"


def _drop(dialect, key, settings, wrong, why):
    del settings[key]
    wrong[key] = f"{why}; {shorten(dialect.value(key, settings))} is taken"


def _fill(dialect, key, link, settings, choices, wrong):
    """Put the value of a key into the options that it is linked to; False if it cannot be."""
    try:
        values = _domain_values(link, dialect.value(key, settings), choices)
    except ValueError as error:
        default = dialect.defaults[key]
        stands_for_another = settings.get(key) is None and isinstance(default, Derived)
        _drop(dialect, default.key if stands_for_another else key, settings, wrong, str(error))
        return False
    for name, value in zip(link.options, values, strict=True):
        stage, option = name.split(".")
        choices[stage][1][option] = value
    return True


def _domain_values(link, value, choices):
    found = []
    for name, part in zip(link.options, link.read(value), strict=True):
        stage, key = name.split(".")
        domain = STAGES[stage].variants[choices[stage][0]].option(key).domain
        part = domain.coerce(part)
        if part not in domain:
            raise ValueError(f"wanted {domain}")
        found.append(part)
    return found


def _notes(dialect, rows, known):
    """What is to be known of settings that are not given, and of rows that given ones chose."""
    yield from (note for key, note in dialect.always.items() if note and key not in known)
    chosen = (row for row in rows if any(key in known for key in (*row.keys, *row.links)))
    yield from dict.fromkeys(row.note for row in chosen if row.note)


def _used(dialect, rows, settings):
    """Keys that the matching rows read, with those that stand behind a derived default."""
    used = {key for row in rows for key in (*row.keys, *row.links, *row.when)}
    used |= {dialect.group_key, dialect.weights_key} & set(dialect.defaults)
    for key in list(used):
        default = dialect.defaults.get(key)
        if isinstance(default, Derived) and settings.get(key) is None:
            used.add(default.key)
    return used


def _idle(dialect, entry, known, used):
    rest = {key: each.value for key, each in known.items() if key != entry.key}
    return entry.key not in used and entry.value != dialect.default(entry.key, rest)


def _numbers(values):
    if not isinstance(values, (list, tuple)):
        return ()
    plain = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)
    return tuple(float(each) for each in values) if plain else ()


def _whole(value):
    return value if isinstance(value, int) and not isinstance(value, bool) else None
