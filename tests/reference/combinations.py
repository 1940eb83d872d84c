"""Every combination of rows of STAGES, and a small batch that meets all the edges at once."""

from itertools import product

import numpy as np

from grpo_core import STAGES, Choice, Conventions, build_scenario
from grpo_core.variants import OneOf

# Numeric options that change which formula applies get a second value beside their default.
OTHER_VALUES = {("aggregation", "length"): [7], ("advantage", "eps"): [0.0]}


def option_values(stage, option):
    """Every value of a choice between names; of a number its default and `OTHER_VALUES`."""
    if isinstance(option.domain, OneOf):
        return list(option.domain.words)
    return [option.default, *OTHER_VALUES.get((stage.key, option.key), [])]


def choices(stage, with_options=True):
    """Every row of one stage, with every combination of its options' values or the defaults."""
    for variant in stage.variants.values():
        options = variant.options if with_options else ()
        for values in product(*(option_values(stage, option) for option in options)):
            keys = [option.key for option in options]
            yield Choice(variant.key, dict(zip(keys, values, strict=True)))


def combinations(with_options=()):
    """All conventions: the product of the rows of all stages.

    Stages named in `with_options` also run through their options, the others keep defaults.
    """
    rows = {key: list(choices(stage, key in with_options)) for key, stage in STAGES.items()}
    return [Conventions(dict(zip(rows, picked, strict=True))) for picked in product(*rows.values())]


def name(conventions):
    """Short id of a combination for the test report."""
    parts = []
    for key in STAGES:
        choice = conventions[key]
        named = [str(value) for value in choice.options.values() if isinstance(value, str)]
        parts.append("/".join([choice.variant, *named]))
    return "-".join(parts)


def edge_scenario(conventions=None, dtype=np.float64):
    """2 prompts x 4 completions x 4 tokens with all that makes batches irregular.

    A mask with a hole, left and right padding holding NaN and infinities, an absent completion, a
    present one without tokens, a missing reward, ratios on either side of every band.
    """
    rng = np.random.default_rng(20)
    shape = (2, 4, 4)
    mask = np.ones(shape, dtype=bool)
    mask[0, 0, 2:] = False  # right padding
    mask[0, 1, :1] = False  # left padding
    mask[0, 2, 1] = False  # a hole
    mask[1, 0] = False  # no tokens
    present = np.ones(shape[:2], dtype=bool)
    present[1, 3] = False
    old = -rng.uniform(1.7, 2.5, shape)
    new = (
        old + rng.choice([-1.5, -0.4, -0.1, 0.1, 0.4, 1.6], shape) + rng.uniform(-0.05, 0.05, shape)
    )
    ref = old + rng.uniform(-0.6, 0.6, shape)
    for array, garbage in ((new, np.nan), (old, np.inf), (ref, 1e308)):
        array[~mask] = garbage
        array[~present] = -garbage
    rewards = np.array([[1.0, 0.25, np.nan, -0.5], [0.3, 2.0, -1.0, np.inf]])
    advantages = np.array([[0.7, -1.1, 0.4, -0.2], [1.3, -0.6, 0.9, np.nan]])
    floats = {"rewards": rewards, "logp_new": new, "logp_old": old, "logp_ref": ref}
    with np.errstate(over="ignore"):
        arrays = {key: array.astype(dtype) for key, array in floats.items()}
        arrays["advantages"] = advantages.astype(dtype)
    return build_scenario(
        mask=mask, present=present, conventions=conventions or Conventions({}), **arrays
    )
