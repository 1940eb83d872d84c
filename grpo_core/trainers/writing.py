"""Conventions to a trainer's settings, with a sentence for all that it cannot do."""

from ..idle import without_idle
from ..stages import STAGES
from ..variants import OneOf
from ..words import count
from .alike import near, telling_differences, wordings
from .quiet import QUIET, felt
from .reading import read
from .settings import UNSET, Cannot, Setting


def write(dialect, conventions, scenario=None):
    """A trainer's lines for conventions.

    Parameters
    ----------
    dialect : Dialect
    conventions : Conventions
    scenario : Scenario, optional
        Gives the group size, the weights of the terms, the padded width, and says which
        differences make none in its batch.

    Returns
    -------
    Setting
        ``cannot`` holds every option that would not come back if the lines were read.
    """
    conventions = _sized(dialect, without_idle(conventions), scenario)
    settings, notes = _settings(dialect, conventions)
    back = read(dialect, settings).conventions
    lost = telling_differences(conventions, back)
    if back != conventions:
        settings = _fewer(dialect, conventions, settings, lost)
    if scenario is not None:
        _add_sizes(dialect, conventions, settings, scenario)
        notes += _notes(dialect, settings, scenario)
    plain = {
        key: value
        for key, value in settings.items()
        if key in dialect.always or value != dialect.default(key, settings)
    }
    cannot = [
        _cannot(dialect, conventions, each, here)
        for each, here in zip(
            lost, _matters(dialect, conventions, back, lost, scenario), strict=True
        )
    ]
    return Setting(
        name=dialect.name,
        lines=tuple(dialect.lines(plain)),
        cannot=(*cannot, *_done_otherwise(dialect, conventions, cannot, scenario)),
        notes=tuple(dict.fromkeys(notes)),
    )


def _settings(dialect, conventions):
    """Values of all keys of the closest rows, and the notes of these rows."""
    settings, notes = {}, []
    for axis in dialect.axes:
        rows = [row for row in axis if row.written and _holds(dialect, row.when, settings)]
        row = min(rows, key=lambda row: _misses(row, conventions))  # the first of equals
        settings.update(row.keys)
        for key, link in row.links.items():
            value = _written(row, link, conventions)
            if value is not UNSET:
                settings[key] = value
        if row.note:
            notes.append(row.note)
    return settings, notes


def _fewer(dialect, conventions, settings, lost):
    """Settings without those that change nothing, such as an estimator of a KL of weight 0."""
    kept = dict(settings)
    for key in settings:
        if key in dialect.always or key == dialect.weights_key:
            continue
        rest = {other: value for other, value in kept.items() if other != key}
        if telling_differences(conventions, read(dialect, rest).conventions) == lost:
            kept = rest
    return kept


def _holds(dialect, when, settings):
    return all(dialect.value(key, settings) == value for key, value in when.items())


_FAR = 99  # how far a variant is that is not even near


def _wording(row, stage, conventions):
    """The choice of a stage in the words of a row, or None; and how far these are from it.

    0 if they are the same, else the place among the near ones.
    """
    choice, variant = conventions[stage], row.choices[stage].variant
    same = [each for each in wordings(stage, choice) if each.variant == variant]
    if same:
        return min(same, key=lambda each: _unlike(row, stage, each)), 0
    others = enumerate(near(stage, choice), 1)
    return next(((each, far) for far, each in others if each.variant == variant), (None, _FAR))


def _unlike(row, stage, wanted):
    """How many options of a choice a row has otherwise."""
    return sum(
        wanted.options[key] != value
        for key, value in row.choices[stage].options.items()
        if f"{stage}.{key}" not in row.linked
    )


def _misses(row, conventions):
    """How far a row is from conventions: variants in order of weight, then options."""
    variants, options = [], 0
    for stage in row.choices:
        wanted, far = _wording(row, stage, conventions)
        variants.append(far)
        if wanted is not None:
            options += _unlike(row, stage, wanted)
    # Of rows that all miss the stage that matters most, the options of the others say little.
    return (*variants, 0 if variants[0] == _FAR else options)


def _written(row, link, conventions):
    """Value of a key, or UNSET where the chosen variant has no such option."""
    values = []
    for name in link.options:
        stage, key = name.split(".")
        wanted, _ = _wording(row, stage, conventions)
        if wanted is None:
            return UNSET
        values.append(wanted.options[key])
    return link.write(*values)


def _sized(dialect, conventions, scenario):
    """Sizes that are those of the batch, written out as numbers."""
    if scenario is None:
        return conventions
    for name, axis in dialect.scale.items():
        stage, key = name.split(".")
        if conventions[stage].options.get(key) == 0:
            conventions = conventions.replace(stage, **{key: scenario.sizes[axis]})
    return conventions


def _add_sizes(dialect, conventions, settings, scenario):
    if scenario.sizes["G"] > 1:
        settings[dialect.group_key] = scenario.sizes["G"]
    weight = conventions["rewards"].options.get("task_weight", 1.0)
    weights = [weight, *(term.weight for term in scenario.terms)]
    if dialect.weights_key in settings and len(weights) > 1:
        settings[dialect.weights_key] = None if set(weights) == {1.0} else weights


def _notes(dialect, settings, scenario):
    notes, terms = [], len(scenario.terms)
    if scenario.sizes["G"] == 1:
        notes.append("Groups of one completion have nothing to be compared with.")
    if terms and dialect.weights_key in settings:
        notes.append(
            f"Weights: the task first, then the {count(terms, 'term')} in the order of the table; "
            "each is a reward function of its own."
        )
    elif terms:
        notes.append("Terms: let the reward function return the weighted sum of task and terms.")
    return notes


def _matters(dialect, conventions, back, lost, scenario):
    """Which of the lost differences the batch feels.

    What a trainer does otherwise than any choice here cannot be tried out: its rule tells.
    """
    otherwise = [f"{each.stage}.{each.option}" in dialect.other for each in lost]
    found = felt(scenario, conventions, back, lost)
    return [
        here or (other and not QUIET[f"{each.stage}.{each.option}"](scenario, each))
        for each, other, here in zip(lost, otherwise, found, strict=True)
    ]


def _cannot(dialect, conventions, difference, here):
    stage, option = difference.stage, difference.option
    row, label = STAGES[stage], STAGES[stage].label
    if not option:
        wanted, instead = (row.variants[key].label for key in (difference.left, difference.right))
        sentence = f"{label}: {dialect.name} has no “{wanted}”; these lines give “{instead}”."
    elif f"{stage}.{option}" in dialect.other:
        sentence = _otherwise(dialect, conventions, stage, option)
    else:
        given = _option(row, conventions, option, difference)
        left, right = (_words(given, value) for value in (difference.left, difference.right))
        sentence = f"{label}: {given.label} is {left} here, and {right} in {dialect.name}."
    return Cannot(stage=stage, option=option, sentence=sentence, here=here)


def _otherwise(dialect, conventions, stage, option):
    """A sentence on an option of which a trainer does none of the values."""
    given = conventions.variant(stage).option(option)
    here = _words(given, conventions[stage].options[option])
    does = dialect.other[f"{stage}.{option}"]
    return f"{STAGES[stage].label}: {given.label} is {here} here; in {dialect.name} {does}."


def _done_otherwise(dialect, conventions, said, scenario):
    """Such options that are no difference of conventions, where they matter in the batch."""
    for name in dialect.other:
        stage, option = name.split(".")
        known = any((each.stage, each.option) == (stage, option) for each in said)
        quiet = scenario is None or QUIET[name](scenario, None)
        if not known and not quiet and option in conventions[stage].options:
            sentence = _otherwise(dialect, conventions, stage, option)
            yield Cannot(stage=stage, option=option, sentence=sentence)


def _option(stage, conventions, key, difference):
    """The row of an option that one of the stage's variants has."""
    chosen = conventions.variant(stage.key)
    variants = (chosen, *stage.variants.values())
    found = (option for variant in variants for option in variant.options if option.key == key)
    return next(option for option in found if difference.left in option.domain)


def _words(option, value):
    domain = option.domain
    return f"“{domain.words[value]}”" if isinstance(domain, OneOf) else f"{value:.6g}"
