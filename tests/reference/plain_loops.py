"""GRPO written out token by token with Python's own floats: slow, and easy to check by eye.

Shares no code with the core. The tables of `plain_tokens`, `plain_batch` and `plain_advantages`
name the rows of one stage each; a test compares the names with STAGES, so that a new row without
its plain version is noticed. Gradients are differences of what stands here: nothing is derived.
"""

import math
from functools import partial

from .plain_advantages import ADVANTAGES, REWARDS, case, tied
from .plain_batch import (
    ACCUMULATIONS,
    AGGREGATIONS,
    CORRECTIONS,
    ENTROPIES,
    SELECTIONS,
    TIED,
    TRUNCATED,
    WHITENINGS,
    each,
)
from .plain_tokens import KLS, RATIOS, SURROGATES

TABLES = {
    "ratio": RATIOS,
    "kl": KLS,
    "rewards": REWARDS,
    "advantage": ADVANTAGES,
    "whitening": WHITENINGS,
    "truncated": TRUNCATED,
    "tied": TIED,
    "selection": SELECTIONS,
    "correction": CORRECTIONS,
    "surrogate": SURROGATES,
    "entropy": ENTROPIES,
    "aggregation": AGGREGATIONS,
    "accumulation": ACCUMULATIONS,
}
# Options of the rewards stage that say what a component is; the others go to the row.
COMPONENT_OPTIONS = ("task_weight", "missing", "tokens")
# What a token is called here -> in the arrays of a scenario.
ARRAYS = {
    "new": "logp_new",
    "old": "logp_old",
    "ref": "logp_ref",
    "sampler": "logp_sampler",
    "sampler_weight": "sampler_weights",
    "entropy": "entropy",
}
# What is compared per token -> what a token calls it.
NAMES = {
    "token_advantages": "A",
    "kl": "kl",
    "ratio": "ratio",
    "factor": "factor",
    "surrogate": "surrogate",
    "entropy_bonus": "bonus",
    "kept": "stays",
    "per_token": "per_token",
    "weight": "weight",
    "contribution": "contribution",
}


def evaluate(scenario, moved=None):
    """All per-completion and per-token numbers, as {name: {index: number}}, and the sums.

    With ``moved`` (P, G, L) in place of logp_new wherever it carries a gradient.
    """
    run = {
        key: partial(table[scenario.conventions[key].variant], **scenario.conventions[key].options)
        for key, table in TABLES.items()
        if key not in ("rewards", "advantage")
    }
    arrays = {key: array.tolist() for key, array in scenario.arrays.items()}
    place, beta = (scenario.conventions["kl"].options[key] for key in ("place", "beta"))

    def sampled(p, g, t):
        """The KL of the policy that sampled, times beta; a constant of the update."""
        old, ref = arrays["logp_old"][p][g][t], arrays["logp_ref"][p][g][t]
        return beta * run["kl"](old, ref, old, 1.0)[0]

    def penalty(p, g, tokens):
        return math.fsum(sampled(p, g, t) for t in tokens) if place == "reward" else 0.0

    listed, advantage = _advantages(scenario, arrays, penalty)
    batch = _tokens(arrays, listed["valid"], moved)
    for cell, tokens in batch.items():
        for t, token in tokens.items():
            later = [sampled(*cell, u) for u in tokens if u >= t and place == "returns"]
            token["judged"], token["taken"] = advantage(cell, t), math.fsum(later)
    whitened = run["whitening"](
        *([token[name] for token in each(batch)] for name in ("judged", "taken"))
    )
    for token, value in zip(each(batch), whitened, strict=True):
        token["A"] = value
    counts = _keep(batch, listed, run, arrays["truncated"])
    for tokens in batch.values():
        for t, token in tokens.items():
            token["ratio"] = run["ratio"](tokens, t)
            held = {u: {**other, "new": other["new_held"]} for u, other in tokens.items()}
            token["ratio_held"] = run["ratio"](held, t)
    for cell, tokens in batch.items():
        for t in tokens:
            _add_numbers(batch, cell, t, run, (place, beta), counts, scenario.sizes["L"])
    return _results(batch, listed, advantage)


def _tokens(arrays, valid, moved):
    """Every valid token's numbers, by cell and position."""

    def numbers(p, g, t):
        read = {name: arrays[key][p][g][t] for name, key in ARRAYS.items()}
        read["new_held"] = read["new"]
        return read if moved is None else {**read, "new": moved[p][g][t]}

    return {cell: {t: numbers(*cell, t) for t in tokens} for cell, tokens in valid.items()}


def _keep(batch, listed, run, truncated):
    """Mark the tokens that stay; how many of each completion are counted."""
    counts = {}
    for (p, g), tokens in batch.items():
        group = {cell: tokens for cell, tokens in batch.items() if cell[0] == p}
        equal = listed["tied"](group)
        counts[p, g] = 0
        for token in tokens.values():
            verdicts = [run[key](equal, token, truncated[p][g]) for key in ("truncated", "tied")]
            token["stays"] = all(stays for stays, _ in verdicts)
            counts[p, g] += all(counts_too for _, counts_too in verdicts)
    return counts


def _add_numbers(batch, cell, t, run, penalty, counts, width):
    tokens = batch[cell]
    token, (place, beta) = tokens[t], penalty
    policy, held = ("new", "new_held") if place == "objective" else ("old", "old")
    plain, pull = run["kl"](token[policy], token["ref"], token[held], token["ratio"])
    token["kl"] = pull if place == "objective" else plain
    token["factor"] = run["selection"](batch, tokens, t) * run["correction"](tokens, t)
    token["surrogate"] = token["factor"] * run["surrogate"](tokens, t)
    token["bonus"] = run["entropy"](token)
    in_objective = beta * pull if place == "objective" else 0.0
    token["per_token"] = token["surrogate"] - in_objective + token["bonus"]
    token["weight"] = 0.0
    if token["stays"]:
        token["weight"] = run["aggregation"](counts, cell, width) * run["accumulation"]()
    token["contribution"] = token["weight"] * token["per_token"]


def _advantages(scenario, arrays, penalty):
    """The batch as the plain advantages read it, and what they give for a cell and a token."""
    rewards, advantage = (scenario.conventions[key] for key in ("rewards", "advantage"))
    of_parts = {k: v for k, v in rewards.options.items() if k in COMPONENT_OPTIONS}
    of_row = {k: v for k, v in rewards.options.items() if k not in COMPONENT_OPTIONS}
    sizes = [scenario.sizes[axis] for axis in "PGL"]
    combined = rewards.variant != "outcome"
    listed = case(arrays, sizes, scenario.terms, penalty, combined=combined, **of_parts)
    listed["tied"] = partial(tied, listed, rewards.variant, advantage.variant)
    combine = partial(REWARDS[rewards.variant], **of_row)
    return listed, ADVANTAGES[advantage.variant](listed, combine, **advantage.options)


def _results(batch, listed, advantage):
    out = {
        name: {
            (*cell, t): float(token[key])
            for cell, tokens in batch.items()
            for t, token in tokens.items()
        }
        for name, key in NAMES.items()
    }
    out["advantages"] = {cell: advantage(cell, None) for cell in listed["cells"]}
    sums = {
        "objective": math.fsum(out["contribution"].values()),
        "mean_kl": math.fsum(token["weight"] * token["kl"] for token in each(batch)),
    }
    return out, sums
