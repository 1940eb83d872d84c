"""How settings differ, in words: one choice, a list of them, and what a difference comes from."""

import numpy as np

from grpo_core.comparison import OWN, label_of, setting
from grpo_core.comparison_choices import apart
from grpo_core.errors import place
from grpo_core.presets import PRESETS
from grpo_core.stages import STAGES
from grpo_core.variants import OneOf
from grpo_core.words import listing

from .numbers import number, percent

_MANY = 12  # differences that are named in a line
_MOST = 0.5  # a choice explains most from this share on
NAN = "NaN"
SPOILT = "NaN in the trainer: it does not handle a missing reward"
SPOILT_SHORT = "NaN from a missing reward"
AVERAGED = {
    "completion_mean": "per completion",
    "token_mean": "over tokens",
    "constant": "by a constant",
    "length_only": "by a constant",
    "completion_sum": "summed, per completion",
    "token_sum": "summed",
    "prompt_mean": "per prompt",
}
_WEIGHTED = {"none": "", "ratio": " × ratio", "score": " × score"}
_INSIDE = {"reward": "taken off the rewards", "returns": "taken off the advantages"}


def choice_words(difference, left, right):
    """One difference of two conventions: ``eps: 1e-6 instead of 1e-4``."""
    stage = STAGES[difference.stage]
    if difference.option:
        option = stage.variants[right[stage.key].variant].option(difference.option)
        now, before = (_value(option, value) for value in (difference.right, difference.left))
        return f"{_name(stage, option)}: {now} instead of {before}"
    before = stage.variants[left[stage.key].variant].label
    named = {one.option for one in apart(left, right) if one.stage == stage.key}
    return f"{stage.label}: {_choice(stage, right, left, named)} instead of {before}"


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


def _choice(stage, conventions, other, named):
    """A variant, with those options that the other side has not got like this, nor are `named`."""
    choice, beside = conventions[stage.key], other[stage.key]
    variant = stage.variants[choice.variant]
    said = [
        f"{_label(option)}: {_value(option, choice.options[option.key])}"
        for option in variant.options
        if option.key not in named
        and choice.options[option.key] != beside.options.get(option.key, option.default)
    ]
    return f"{variant.label} ({', '.join(said)})" if said else variant.label


def differs_line(row, scenario, base):
    """In what a setting differs from the base, in one line."""
    name = label_of(base)
    if row.key == base:
        return f"{_named(row)} is the base."
    sides = setting(scenario, base), setting(scenario, row.key)
    if not row.differences:
        same = sides[0] == sides[1]
        how = "exactly as {} does" if same else "as {} does, but for options that nothing reads"
        return f"{_named(row)} chooses {how.format(name)}."
    said = [choice_words(one, *sides) for one in row.differences[:_MANY]]
    more = len(row.differences) - len(said)
    rest = f"; and {more} more" if more else ""
    return f"{_named(row)} differs from {name} in: {'; '.join(said)}{rest}."


def kl_words(conventions):
    """Which KL is meant by a mean of it: the estimator, and over what it is averaged."""
    estimator = conventions.variant("kl").label
    weight = conventions["kl"].options.get("weight", "none")
    row = conventions.variant("aggregation")
    return f"{estimator}{_WEIGHTED.get(weight, '')}, {AVERAGED.get(row.key, row.label)}"


def cause_line(row, scenario, base):
    """The largest difference to the base, where it is, and the one choice that causes it."""
    name = label_of(base)
    if row.lost or (row.largest != row.largest and row.key != base):
        return lost_line(row, base)
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


def lost_line(row, base):
    """Why a setting and the base cannot be compared."""
    if row.lost:
        return f"{_named(row)}: {SPOILT}."
    return f"{_named(row)}: nothing to compare with, since {label_of(base)} gives NaN here."


def gap_title(row, base):
    """Title and unit of the picture of a setting's difference to the base."""
    name, other = (_label_inside(key) for key in (row.key, base))
    return f"Gradient: {name} less {other}", "of each token, per nat of log π"


def farthest_line(row, rows, scenario, base):
    """What is farthest from the base, and why."""
    name = label_of(base)
    lost = [_label_inside(each.key) for each in rows.values() if each.lost]
    beside = f" {SPOILT}: {listing(lost)}." if lost else ""
    if row is not None:
        line = cause_line(row, scenario, base)
        return f"Farthest from the base is {row.label}{line.removeprefix(_named(row))}{beside}"
    if any(each.largest != each.largest and not each.lost for each in rows.values()):
        return f"{name} gives NaN on this batch, so nothing can be compared with it.{beside}"
    which = "All the others" if lost else "All of these"
    return f"{which} give the gradient of {name} on this batch.{beside}"


def switched_line(all_of_them):
    """What is meant by explained; and which settings' choices were switched, if it was not all."""
    meant = (
        "Explained: how much of the largest difference is gone when one choice of that setting, "
        "and nothing else, is made in the base."
    )
    if all_of_them:
        return meant
    return (
        f"{meant} This batch is large: choices are switched one by one only for the farthest "
        "setting and for the one below."
    )


def _caused(row, scenario, base):
    if not row.causes:
        return "No single choice, made alone in the base, brings it nearer: they act together."
    sides = setting(scenario, base), setting(scenario, row.key)
    (first, share), *more = row.causes
    said = choice_words(first, *sides)
    if share > 1 - 1e-6:
        return f"All of it comes from one choice. {said}."
    most = share >= _MOST
    head = "One choice explains most of it" if most else "No single choice explains most of it"
    which = "" if most else "The best is: "
    text = f"{head}. {which}{said}. Alone it explains {percent(share)} of this difference"
    if not more:
        return f"{text}."
    others = listing([f"“{choice_words(one, *sides)}”" for one, _ in more])
    return f"{text}, and with {others} {percent(more[-1][1])}."


def short_cause(row):
    """The choice that explains most of the difference, and its share: for a table."""
    if not row.causes:
        return "none alone" if row.where else ""
    cause, share = row.causes[0]
    said = f"{_short_name(cause)} ({percent(share)})"
    return said if share >= _MOST else f"none alone; best: {said}"


def _short_name(cause):
    stage = STAGES[cause.stage]
    if not cause.option:
        return stage.label if stage.label.isupper() else stage.label.lower()
    return _label(
        next(
            option
            for variant in stage.variants.values()
            for option in variant.options
            if option.key == cause.option
        )
    )


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
    tops = {
        row.key: max((v for v in row.advantages[prompt].tolist() if v == v), default=None)
        for row in rows.values()
        if not np.any(row.spoilt[prompt])
    }
    tops = {key: top for key, top in tops.items() if top is not None}
    if not tops:
        return "No completion of this group has a score."
    low, high = min(tops, key=tops.get), max(tops, key=tops.get)
    if number(tops[low], 5) == number(tops[high], 5):
        return f"The best of this group gets {number(tops[low], 5)} under every setting shown."
    return (
        f"The best of this group gets {number(tops[high], 5)} {_under(high)} and "
        f"{number(tops[low], 5)} {_under(low)}: the same rewards, other conventions."
    )


def beside_line(rows, scenario, prompt):
    """What else the advantages hold, and where they are no numbers; '' where there is nothing."""
    said = []
    if scenario.terms:
        said.append(
            "Rewards and terms go to every trainer as they stand in the table, as a weighted sum."
        )
    for kl_place, words in _INSIDE.items():
        names = [_label_inside(row.key) for row in rows.values() if row.kl_inside == kl_place]
        if names:
            said.append(f"With the KL in them, {words}: {listing(names)}.")
    lost = [_label_inside(row.key) for row in rows.values() if np.any(row.spoilt[prompt])]
    if lost:
        said.append(f"{SPOILT}: {listing(lost)}.")
    return " ".join(said)


def _under(key):
    return label_of(key) if key == OWN else f"under {label_of(key)}"


def _label_inside(key):
    """A setting's name in a list whose items are parted by commas."""
    return label_of(key).replace(", ", " ")


def _named(row):
    """The setting at the start of a sentence; names of trainers keep their own spelling."""
    return "As chosen here" if row.key == OWN else row.label
