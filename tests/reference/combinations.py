"""Few conventions that cover every pair of choices, and a small batch that meets all the edges."""

from itertools import product

import numpy as np

from grpo_core import STAGES, Choice, Conventions, build_scenario
from grpo_core.terms import Term
from grpo_core.variants import OneOf

# Numeric options that change which formula applies, or whose default does nothing, get a second
# value beside their default. Each lies within what the edge batch holds.
OTHER_VALUES = {
    "accumulation.factor": 0.25,
    "advantage.eps": 0.0,
    "advantage.floor": 0.9,
    "advantage.gamma": 0.7,
    "advantage.k": 2,
    "advantage.f_norm": 2.0,
    "advantage.outcome_weight": 0.7,
    "aggregation.completions": 5.0,
    "aggregation.count_eps": 0.5,
    "aggregation.length": 7,
    "aggregation.tokens": 9.0,
    "correction.clamp": 0.3,
    "correction.high": 0.0,
    "correction.low": 0.8,
    "kl.clamp_in": 0.3,
    "kl.clamp_out": 0.05,
    "ratio.clamp": 0.3,
    "rewards.task_weight": -1.3,
    "selection.share": 1.0,
    "selection.threshold": -0.2,
    "surrogate.count_eps": 0.5,
    "surrogate.delta": 1.1,
    "surrogate.epsilon_high": 1.1,
    "surrogate.epsilon_low": 0.05,
    "surrogate.truncate": 1.2,
    "whitening.before": 0.7,
    "whitening.count_eps": 0.5,
    "whitening.eps": 0.4,
    "whitening.limit": 0.6,
}


def option_values(stage, option):
    """Every value of a choice between names; of a number its default and `OTHER_VALUES`."""
    if isinstance(option.domain, OneOf):
        return list(option.domain.words)
    other = OTHER_VALUES.get(f"{stage.key}.{option.key}")
    return [option.default] if other is None else [option.default, other]


def choices(stage, with_options=True):
    """Every row of one stage: with defaults, or so that every two values of options meet."""
    for variant in stage.variants.values():
        options = variant.options if with_options else ()
        values = [option_values(stage, option) for option in options]
        for picked in pairwise([len(each) for each in values]):
            chosen = zip(options, values, picked, strict=True)
            yield Choice(variant.key, {option.key: each[pick] for option, each, pick in chosen})


def combinations(with_options=()):
    """Conventions in which every pair of choices of two stages occurs together at least once.

    Stages named in `with_options` also run through their options, the others keep defaults. All
    products of the rows would be thousands; what goes wrong goes wrong between two stages.
    """
    rows = {key: list(choices(stage, key in with_options)) for key, stage in STAGES.items()}
    widest_first = sorted(rows, key=lambda key: -len(rows[key]))
    picks = pairwise([len(rows[key]) for key in widest_first])
    return [
        Conventions({key: rows[key][pick] for key, pick in zip(widest_first, picked, strict=True)})
        for picked in picks
    ]


def pairwise(sizes):
    """Picks, one of each size, in which every pair of picks of two places occurs; no chance in it.

    In-parameter-order: all pairs of the first two; each further place takes, row by row, the pick
    that meets most partners for the first time, and new rows for the partners that are left.
    """
    rows = [list(picks) for picks in product(*map(range, sizes[:2]))]
    for place in range(2, len(sizes)):
        left = {
            (other, partner, pick)
            for other in range(place)
            for partner in range(sizes[other])
            for pick in range(sizes[place])
        }
        used = [0] * sizes[place]
        for row in rows:
            met = [
                sum((other, row[other], pick) in left for other in range(place))
                for pick in range(sizes[place])
            ]
            # Of those that meet as many, the one used least, so that no pick becomes the rule.
            best = max(range(sizes[place]), key=lambda pick: (met[pick], -used[pick]))
            left -= {(other, row[other], best) for other in range(place)}
            row.append(best)
            used[best] += 1
        for other, partner, pick in sorted(left):
            rows.append([partner if at == other else 0 for at in range(place)] + [pick])
    return [tuple(row) for row in rows]


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
    present one without tokens, a missing reward, ratios on either side of every band; terms with
    blanks and garbage, the steps of `_edge_steps`, and what `_edge_sampler` adds.
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
    token_rewards = rng.choice([-0.53, 0.0, 0.27, 1.1], shape)
    token_ids = rng.integers(0, 3, shape).astype(float)
    sampler = _edge_sampler(old)
    fillers = dict(zip(sampler, (np.inf, -1.0, np.nan, -np.inf), strict=True))
    garbage = ((new, np.nan), (old, np.inf), (ref, 1e308), (token_rewards, -np.inf))
    more = [(sampler[key], filler) for key, filler in fillers.items()]
    for array, filler in (*garbage, (token_ids, np.nan), *more):
        array[~mask] = filler
        array[~present] = -filler
    floats = {
        "rewards": np.array([[1.0, 0.25, np.nan, -0.5], [0.3, 2.0, -1.0, np.inf]]),
        "advantages": np.array([[0.7, -1.1, 0.4, -0.2], [1.3, -0.6, 0.9, np.nan]]),
        "term_values": _edge_columns(),
        "logp_new": new,
        "logp_old": old,
        "logp_ref": ref,
        "token_rewards": token_rewards,
        "token_ids": token_ids,
        "truncated": np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -5.0]]),
        **_edge_steps(),
        **sampler,
    }
    with np.errstate(over="ignore"):
        arrays = {key: array.astype(dtype) for key, array in floats.items()}
    return build_scenario(
        mask=mask,
        present=present,
        conventions=conventions or Conventions({}),
        terms=EDGE_TERMS,
        **arrays,
    )


EDGE_TERMS = (
    Term("judge", 0.5, Choice("given")),
    Term("long", 0.3, Choice("overlong", {"limit": 3.5, "buffer": 2.0})),
    Term("tokens", -0.37, Choice("per_token")),
)


def _edge_sampler(old):
    """Per token what the sampler and others report; a log-probability that is not known."""
    rng = np.random.default_rng(21)
    sampler = old + rng.uniform(-0.6, 0.6, old.shape)
    sampler[1, 1, 2] = np.nan
    return {
        "logp_sampler": sampler,
        "sampler_weights": rng.choice([0.0, 0.5, 1.0, 2.5], old.shape, p=[0.1, 0.3, 0.3, 0.3]),
        "entropy": rng.uniform(0.1, 2.0, old.shape),
        "token_advantages": rng.choice([-1.2, -0.4, 0.0, 0.5, 1.5], old.shape),
    }


def tied_scenario(conventions):
    """`edge_scenario` with groups in which all rewards are equal, or all but the missing ones."""
    rewards = np.array([[0.25, 0.25, np.nan, 0.25], [0.3, 2.0, -1.0, np.inf]])
    return edge_scenario(conventions).replace(rewards=rewards)


def lone_scenario(conventions):
    """`edge_scenario` with one completion in its first group."""
    present = np.array([[True, False, False, False], [True, True, True, False]])
    return edge_scenario(conventions).replace(present=present)


def _edge_columns():
    """A term that is blank twice, once where the task reward is too; the others read none."""
    nan = np.nan
    given = np.array([[0.2, nan, nan, 1.0], [0.0, 0.7, 0.4, -np.inf]])
    return np.stack([given, np.full((2, 4), nan), np.full((2, 4), 9.0)], axis=-1)


def _edge_steps():
    """No step, one, several with two at one token, a gap; garbage where nothing is present.

    A completion's deviations from its own mean have few digits, so that they sum to exactly 0 in
    any order: whether an advantage is 0 must not hang on rounding.
    """
    nan = np.nan
    ends = [
        [[0, 1, nan], [nan, nan, nan], [0, nan, 3], [2, 2, 3]],
        [[nan, nan, nan], [1, nan, nan], [0, 2, 2], [np.inf, -3, 0.5]],
    ]
    rewards = [
        [[1.0, 0.5, nan], [nan, nan, nan], [0.25, nan, -1.0], [0.75, 0.0, 0.75]],
        [[nan, nan, nan], [0.9, nan, nan], [0.5, -0.25, 0.5], [np.inf, nan, 1e308]],
    ]
    return {"step_ends": np.array(ends), "step_rewards": np.array(rewards)}
