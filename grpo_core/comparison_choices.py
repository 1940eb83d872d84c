"""Settings put to a batch: what a preset means for it, and how two settings differ, one by one."""

import numpy as np

from .idle import unread
from .presets import PRESETS, Difference, differences
from .stages import STAGES, Conventions
from .variants import Choice

OWN = "own"  # the key of the scenario's own conventions
GIVEN = frozenset(
    {"outcome", "sum_then_normalize"}
)  # of the rewards: one number is judged, whatever it is made of
_ALONE = ("uncompared", "returns")  # advantages that do not look at the others of a group
_OVER_THE_BATCH = ("batch_std",)


def label_of(key):
    """What a setting is called."""
    return "as chosen here" if key == OWN else PRESETS[key].label


def setting(scenario, key):
    """Conventions of a preset as they apply to a batch; its own for `OWN`.

    One reward and a weighted sum are the same to a trainer: what it is given. On a batch with
    terms either stands for the sum, with the scenario's weight of the task; for the task alone
    where the scenario itself leaves its terms out.
    """
    own = scenario.conventions
    if key == OWN:
        return own
    conventions = PRESETS[key].conventions
    choice = conventions["rewards"]
    if not scenario.terms:
        return conventions
    missing = choice.options["missing"]
    if own["rewards"].variant == "outcome":
        alone = choice.variant in GIVEN
        return conventions.replace("rewards", "outcome", missing=missing) if alone else conventions
    variant = "sum_then_normalize" if choice.variant in GIVEN else choice.variant
    same = {option: own["rewards"].options[option] for option in ("task_weight", "tokens")}
    return conventions.replace("rewards", variant, **{**choice.options, **same})


def apart(left, right):
    """In which stages and options two conventions differ, variants apart from their options.

    Where two unlike variants share an option, by its key and with both values allowed in both,
    it is a difference of its own: a wider band is not blamed on the rule that has it. What
    nothing reads on either side is none, such as how a KL without a weight is estimated.

    Returns
    -------
    tuple of Difference
    """
    found = []
    for one in differences(left, right):
        found.append(one)
        if not one.option:
            found += _of_shared_options(one.stage, left[one.stage], right[one.stage])
    return tuple(each for each in found if not unread(each, left, right))


def _of_shared_options(stage, left, right):
    return [
        Difference(stage=stage, option=key, left=left.options[key], right=right.options[key])
        for key in _shared(stage, left, right)
        if left.options[key] != right.options[key]
    ]


def _shared(stage, left, right):
    """Keys of options that two choices of a stage both have, either's value allowed in both."""
    sides = [STAGES[stage].variants[choice.variant] for choice in (left, right)]
    keys = [key for key in left.options if key in right.options]
    return [
        key
        for key in keys
        if all(
            choice.options[key] in side.option(key).domain
            for choice in (left, right)
            for side in sides
        )
    ]


def applied(reference, difference, conventions):
    """Conventions with one difference taken over from others.

    Of another variant the options come along, save those that both have: these stay.
    """
    stage = difference.stage
    if difference.option:
        return reference.replace(stage, **{difference.option: difference.right})
    mine, other = reference[stage], conventions[stage]
    stays = {key: mine.options[key] for key in _shared(stage, mine, other)}
    choice = Choice(other.variant, {**other.options, **stays})
    return Conventions({**reference.choices, stage: choice})


def missing_rewards(scenario):
    """Completions of which a reward or a given term is missing; bool (P, G)."""
    missing = np.isnan(scenario["rewards"])
    if "term_values" in scenario:
        missing = missing | np.any(np.isnan(scenario["term_values"]), axis=-1)
    return missing & scenario["present"]


def spoilt_by_missing(scenario, key):
    """Completions whose advantage is NaN in a trainer that handles no missing reward.

    Returns
    -------
    ndarray of bool, (P, G)
        All False for a setting that says what a missing reward counts as.
    """
    missing = missing_rewards(scenario)
    if key == OWN or PRESETS[key].missing != "nan" or not missing.any():
        return np.zeros_like(missing)
    chosen = PRESETS[key].conventions
    if chosen["whitening"].variant != "none" or chosen["advantage"].variant in _OVER_THE_BATCH:
        return scenario["present"].copy()
    if chosen["advantage"].variant in _ALONE:
        return missing
    return scenario["present"] & np.any(missing, axis=1, keepdims=True)
