"""Scenarios drawn at random: every shape, convention, term and number type."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from grpo_core import STAGES, TERMS, Choice, Conventions, Term, build_scenario
from grpo_core.variants import OneOf

INF, NAN = np.inf, np.nan
# Sums of normalised terms that cancel up to rounding; a smaller eps would blow the rest up.
LEAST = {"batch_eps": 1e-3}
# What a sum is divided by; 0 stands for what the batch itself holds.
DIVISORS = ("tokens", "completions")


def values_of(option):
    """Any allowed value of an option, table names or numbers of a practical size."""
    domain = option.domain
    if isinstance(domain, OneOf):
        return st.sampled_from(list(domain.words))
    low = max(domain.low, LEAST.get(option.key, -20))
    high = min(domain.high, 20)
    if domain.integer:
        return st.integers(int(low), int(high))
    if option.key in DIVISORS:
        return st.just(0.0) | st.floats(0.5, high)
    return st.floats(low + 1e-3 if domain.exclusive else low, high)


def choice(draw, variants):
    """A row of a table with drawn options."""
    variant = variants[draw(st.sampled_from(list(variants)))]
    return Choice(variant.key, {option.key: draw(values_of(option)) for option in variant.options})


@st.composite
def conventions(draw, **fixed):
    """A row of every stage with drawn options; stages in `fixed` take the choice given."""
    drawn = {key: choice(draw, stage.variants) for key, stage in STAGES.items()}
    return Conventions({**drawn, **fixed})


@st.composite
def shaping_terms(draw, most=3):
    """So many terms or fewer, of any formula."""
    weight = st.floats(-5, 5)
    return tuple(
        Term(f"term {k}", draw(weight), choice(draw, TERMS))
        for k in range(draw(st.integers(0, most)))
    )


def logps(shape, dtype, low=-4.0):
    return npst.arrays(dtype, shape, elements=st.floats(low, 0, width=np.dtype(dtype).itemsize * 8))


def steps(draw, valid, real, dtype):
    """Ragged steps on tokens that count: their ends in order, and a reward for each."""
    P, G, L = valid.shape
    shape = (P, G, draw(st.integers(1, 4)))
    drawn = np.sort(draw(npst.arrays(int, shape, elements=st.integers(-1, L - 1))), axis=-1)
    there = (drawn >= 0) & np.take_along_axis(valid, np.maximum(drawn, 0), axis=-1)
    rewards = draw(npst.arrays(dtype, shape, elements=real))
    return {
        "step_ends": np.where(there, drawn, dtype(NAN)).astype(dtype),
        "step_rewards": np.where(there, rewards, dtype(NAN)),
    }


@st.composite
def scenarios(draw, extreme=False, **fixed):
    """Small batches with holes, padding, absent completions, missing rewards, terms and steps."""
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    shape = draw(st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4)))
    width = np.dtype(dtype).itemsize * 8
    big = float(np.finfo(dtype).max) if extreme else 10.0
    low = -INF if extreme else -4.0
    real = st.floats(-big, big, width=width)
    blank = real | st.just(NAN)
    terms = draw(shaping_terms())
    arrays = {
        "rewards": draw(npst.arrays(dtype, shape[:2], elements=blank)),
        "advantages": draw(npst.arrays(dtype, shape[:2], elements=real)),
        "mask": draw(npst.arrays(bool, shape)),
        "present": draw(npst.arrays(bool, shape[:2])),
        "token_rewards": draw(npst.arrays(dtype, shape, elements=real)),
        "token_ids": draw(npst.arrays(int, shape, elements=st.integers(0, 2))).astype(dtype),
    }
    above = st.floats(0, big, width=width)
    for key, elements in (
        ("token_advantages", real),
        ("sampler_weights", above),
        ("entropy", above),
        ("logp_sampler", st.floats(low, 0, width=width) | st.just(NAN)),
    ):
        arrays[key] = draw(npst.arrays(dtype, shape, elements=elements))
    arrays["truncated"] = draw(npst.arrays(bool, shape[:2])).astype(dtype)
    if terms:
        arrays["term_values"] = draw(npst.arrays(dtype, (*shape[:2], len(terms)), elements=blank))
    for key in ("logp_new", "logp_old", "logp_ref"):
        arrays[key] = draw(logps(shape, dtype, low))
    arrays |= steps(draw, arrays["mask"] & arrays["present"][..., None], real, dtype)
    return build_scenario(
        conventions=draw(conventions(**fixed)),
        drift=draw(st.sampled_from([1.0, 0.0, 0.3, 1.7, -1.0])),
        terms=terms,
        **arrays,
    )
