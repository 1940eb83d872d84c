"""Strategies that several property tests share: steps that fit their mask, and terms."""

import numpy as np
from hypothesis import strategies as st

from grpo_core import Choice
from grpo_core.terms import TERMS, Term
from grpo_core.variants import OneOf

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5).filter(
    lambda name: name.strip() not in ("", "task")
)
WEIGHTS = st.sampled_from([1.0, -0.5, 0.1 + 0.2, 1e-6, 0.0])


@st.composite
def steps(draw, mask, present, rewards):
    """Ends and rewards of steps (P, G, S): gaps anywhere, several ends at one token."""
    S = draw(st.integers(1, 4))
    ends = np.full((*present.shape, S), np.nan)
    for cell in np.ndindex(present.shape):
        positions = np.flatnonzero(mask[cell]).tolist()
        if not present[cell]:
            ends[cell] = 9.5  # what stands there is kept and never read
        elif positions:
            slots = sorted(draw(st.sets(st.integers(0, S - 1))))
            picks = st.lists(st.sampled_from(positions), min_size=len(slots), max_size=len(slots))
            ends[cell][slots] = sorted(draw(picks))
    values = [np.nan if np.isnan(end) else draw(rewards) for end in ends.flat]
    return ends, np.array(values).reshape(ends.shape)


@st.composite
def options_of(draw, variant):
    """Options of a variant, at their default or anywhere in their domain."""
    options = {}
    for option in variant.options:
        if isinstance(option.domain, OneOf):
            options[option.key] = draw(st.sampled_from(list(option.domain.words)))
        else:
            value = draw(st.sampled_from([option.default, 0.1 + 0.2, 1.0, 7]))
            options[option.key] = value if value in option.domain else option.default
    return options


@st.composite
def terms(draw, held):
    """Up to three terms whose formulas read no other arrays than those in `held`."""
    usable = [row for row in TERMS.values() if set(row.needs) <= set(held)]
    found = []
    for name in draw(st.lists(NAMES, max_size=3, unique=True)):
        row = draw(st.sampled_from(usable))
        found.append(Term(name, draw(WEIGHTS), Choice(row.key, draw(options_of(row)))))
    return tuple(found)
