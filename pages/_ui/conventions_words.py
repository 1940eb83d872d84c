"""How settings differ, in words: one choice, a list of them, and what a difference comes from."""

from grpo_core.comparison import OWN, label_of, setting
from grpo_core.errors import place
from grpo_core.presets import PRESETS
from grpo_core.stages import STAGES
from grpo_core.variants import OneOf
from grpo_core.words import listing

from .numbers import number, percent

_MANY = 12  # differences that are named in a line


def choice_words(difference, left, right):
    """One difference of two conventions: ``eps: 1e-6 instead of 1e-4``."""
    stage = STAGES[difference.stage]
    if difference.option:
        option = stage.variants[right[stage.key].variant].option(difference.option)
        now, before = (_value(option, value) for value in (difference.right, difference.left))
        return f"{_name(stage, option)}: {now} instead of {before}"
    before = stage.variants[left[stage.key].variant].label
    return f"{stage.label}: {_choice(stage, right, left)} instead of {before}"


def _name(stage, option):
    """An option by its label; with its stage, too, where the label does not say it."""
    label = _label(option)
    known = stage.label.lower() in label.lower() or stage.key == "advantage"
    return label if known else f"{stage.label}, {label}"


def _label(option):
    """An option's label without what explains it."""
    return option.label.split(" (")[0]


def _value(option, value):
    return option.domain.words[value] if isinstance(option.domain, OneOf) else number(value)


def _choice(stage, conventions, other):
    """A variant, with those of its options that the other side has not got like this."""
    choice, beside = conventions[stage.key], other[stage.key]
    variant = stage.variants[choice.variant]
    said = [
        f"{_label(option)}: {_value(option, choice.options[option.key])}"
        for option in variant.options
        if choice.options[option.key] != beside.options.get(option.key, option.default)
    ]
    return f"{variant.label} ({', '.join(said)})" if said else variant.label


def differs_line(row, scenario, base):
    """In what a setting differs from the base, in one line."""
    name = label_of(base)
    if row.key == base:
        return f"{_named(row)} is the base."
    if not row.differences:
        return f"{_named(row)} chooses exactly as {name} does."
    sides = setting(scenario, base), setting(scenario, row.key)
    said = [choice_words(one, *sides) for one in row.differences[:_MANY]]
    more = len(row.differences) - len(said)
    rest = f"; and {more} more" if more else ""
    return f"{_named(row)} differs from {name} in: {'; '.join(said)}{rest}."


def cause_line(row, scenario, base):
    """The largest difference to the base, where it is, and the one choice that causes it."""
    name = label_of(base)
    if row.key == base:
        return f"{_named(row)}: the base of the comparison."
    if row.where is None:
        several = len(row.differences)
        why = (
            f"though {several} {'choice differs' if several == 1 else 'choices differ'}"
            if several else "since nothing is chosen otherwise"
        )  # fmt: skip
        return f"{_named(row)}: the same gradient as {name} on this batch, {why}."
    share = (
        f", {percent(row.largest / row.base_largest)} of {name}'s largest gradient"
        if 0 < row.base_largest <= 1e300 else ""
    )  # fmt: skip
    return (
        f"{_named(row)}: up to {number(row.largest)} away from {name}{share} "
        f"({place(row.where)}). {_caused(row, scenario, base)}"
    )


def farthest_line(row, scenario, base):
    """What is farthest from the base, and why."""
    if row is None:
        return f"All of these give the gradient of {label_of(base)} on this batch."
    line = cause_line(row, scenario, base)
    return f"Farthest from the base is {row.label}{line.removeprefix(_named(row))}"


def switched_line(all_of_them):
    """Which settings' choices were switched one by one, where it was not all."""
    if all_of_them:
        return ""
    return (
        "This batch is large: choices are switched one by one only for the farthest setting and "
        "for the one below."
    )


def _caused(row, scenario, base):
    if not row.causes:
        return "No single choice, made alone in the base, brings it nearer: they act together."
    sides = setting(scenario, base), setting(scenario, row.key)
    (first, share), *more = row.causes
    said = choice_words(first, *sides)
    if share > 1 - 1e-6:
        return f"All of it comes from one choice. {said}."
    text = f"The one choice that explains most, {percent(share)}: {said}."
    if more:
        others = listing([f"“{choice_words(one, *sides)}”" for one, _ in more])
        text += f" With {others} {percent(more[-1][1])} is explained."
    return text


def short_cause(row):
    """The stage of the choice that causes the difference, and its share: for a table."""
    if not row.causes:
        return ""
    cause, share = row.causes[0]
    stage = STAGES[cause.stage]
    if not cause.option:
        name = stage.label if stage.label.isupper() else stage.label.lower()
        return f"{name} ({percent(share)})"
    option = next(
        option
        for variant in stage.variants.values()
        for option in variant.options
        if option.key == cause.option
    )
    return f"{_label(option)} ({percent(share)})"


def source_line(key):
    """Where a preset's defaults come from, and what it does besides."""
    if key not in PRESETS:
        return "The conventions of the example, as they stand on all pages."
    preset = PRESETS[key]
    size = f" Its groups have {preset.group_size}." if preset.group_size else ""
    beside = f" Not in these numbers: {preset.beside}" if preset.beside else ""
    return f"From {preset.source}.{size}{beside}"


def advantages_line(rows, prompt):
    """How far apart the settings judge the best of the group."""
    values = {row.label: row.advantages[prompt] for row in rows.values()}
    tops = {name: max((v for v in array.tolist() if v == v), default=None)
            for name, array in values.items()}  # fmt: skip
    tops = {name: top for name, top in tops.items() if top is not None}
    if not tops:
        return "No completion of this group has a score."
    low, high = min(tops, key=tops.get), max(tops, key=tops.get)
    if number(tops[low], 5) == number(tops[high], 5):
        return f"The best of this group gets {number(tops[low], 5)} under every setting shown."
    return (
        f"The best of this group gets {number(tops[high], 5)} under {high} and "
        f"{number(tops[low], 5)} under {low}: the same rewards, other conventions."
    )


def _named(row):
    """The setting at the start of a sentence; names of trainers keep their own spelling."""
    return "As chosen here" if row.key == OWN else row.label
