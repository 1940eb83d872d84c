"""Scores, shaping terms, steps and advantages written out for `plain_loops`, one cell at a time.

Shares no code with the core.
"""

import math
from functools import partial


def _mean(values):
    return math.fsum(values) / len(values)


def _std(values, ddof):
    if len(values) <= ddof:
        return 0.0
    mean = _mean(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - ddof))


def _over_std(value, values, ddof, eps):
    std = _std(values, ddof)
    return 0.0 if std == 0 else (value - _mean(values)) / (std + eps)


def _less_mean(value, values):
    return value - _mean(values)


# The next tables work with cells (p, g), and with views of them: a function of a cell and a token
# t that gives a number, the whole completion's for t None.


def _group(view, cells, cell):
    """What a view gives for each completion of a cell's group, save those without a value."""
    values = [view(other, None) for other in cells if other[0] == cell[0]]
    return [value for value in values if value is not None]


def _judged(view, cells, judge):
    """A view of advantages; 0 where there is no value."""

    def advantage(cell, t):
        value = view(cell, t)
        return 0.0 if value is None else judge(value, _group(view, cells, cell))

    return advantage


def _summed(parts, case):
    """A view of the weighted sum of components, None where all are missing."""

    def score(cell, t):
        known = [w * view(cell, t) for w, view in parts if view(cell, t) is not None]
        return math.fsum(known) - case["penalty"][cell] if known else None

    return score


def _sum_then_normalize(case, judge):
    return _judged(_summed(case["parts"], case), case["cells"], judge)


def _outcome(case, judge):
    return _judged(_summed(case["parts"][:1], case), case["cells"], judge)


def _normalize_then_sum(case, judge, batch_scale, batch_eps):
    (weight, task), *terms = case["parts"]

    def less_penalty(cell, t):
        return None if task(cell, t) is None else task(cell, t) - case["penalty"][cell]

    judged = [
        (w, _judged(view, case["cells"], judge)) for w, view in [(weight, less_penalty), *terms]
    ]
    scored = _summed(case["parts"], case)

    def whole(cell, t):
        if scored(cell, None) is None:
            return None
        return math.fsum(w * advantage(cell, t) for w, advantage in judged)

    if batch_scale == "none":
        return lambda cell, t: whole(cell, t) or 0.0
    # Over tokens, a completion counts once for each of its tokens.
    times = {cell: case["lengths"][cell] if batch_scale == "token" else 1 for cell in case["cells"]}
    values = [whole(cell, None) for cell in case["cells"] for _ in range(times[cell])]
    values = [value for value in values if value is not None]
    std = _std(values, 1)
    divisor = math.hypot(std, batch_eps) if batch_scale == "token" else std + batch_eps

    def scaled(cell, t):
        value = whole(cell, t)
        return 0.0 if value is None or std == 0 else (value - _mean(values)) / divisor

    return scaled


def _add_after(case, judge):
    (weight, task), *terms = case["parts"]
    task = _judged(_summed([(weight, task)], case), case["cells"], judge)

    def advantage(cell, t):
        added = [w * view(cell, t) for w, view in terms if view(cell, t) is not None]
        return math.fsum([task(cell, t), *added])

    return advantage


REWARDS = {  # (case, judge of a value among values, own options) -> view of advantages
    "outcome": _outcome,
    "sum_then_normalize": _sum_then_normalize,
    "normalize_then_sum": _normalize_then_sum,
    "add_after": _add_after,
}


def _mean_std(case, combine, **options):
    return combine(case, partial(_over_std, **options))


def _mean_only(case, combine):
    return combine(case, _less_mean)


def _given(case, combine):
    return lambda cell, t: case["given"][cell]


def _process(case, combine, over, outcome_weight, **options):
    outcome = combine(case, partial(_over_std, **options))

    def pool(cell):
        shared = [c for c in case["cells"] if c == cell or (over == "group" and c[0] == cell[0])]
        return [reward for c in shared for end, reward in case["steps"][c]]

    def advantage(cell, t):
        later = [reward for end, reward in case["steps"][cell] if t is None or end >= t]
        steps = [_over_std(reward, pool(cell), **options) for reward in later]
        return math.fsum(steps) + outcome_weight * outcome(cell, t)

    return advantage


ADVANTAGES = {  # (case, way of combining, options) -> view of advantages
    "mean_std": _mean_std,
    "mean_only": _mean_only,
    "given": _given,
    "process": _process,
}


def _format_bonus(tokens, column, reward, bonus, otherwise):
    if math.isnan(column):
        return None
    return otherwise if column == 0 else bonus


def _length_linear(tokens, column, reward, free, per):
    return -(len(tokens) - free) / per if len(tokens) > free else 0.0


def _overlong(tokens, column, reward, limit, buffer, beyond):
    n = len(tokens)
    if n <= limit - buffer:
        return 0.0
    if n > limit and beyond == "held":
        return -1.0
    return (limit - buffer - n) / buffer


def _cosine_length(tokens, column, reward, limit, right_above, beyond, **corners):
    kind = "right" if reward > right_above else "wrong"
    at = len(tokens) / limit
    if at > 1 and beyond == "held":
        return corners[f"{kind}_long"]
    short, long = corners[f"{kind}_short"], corners[f"{kind}_long"]
    return (short + long) / 2 + (short - long) / 2 * math.cos(math.pi * at)


def _repetition(tokens, column, reward, n):
    grams = [tuple(token["id"] for token in tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return len(set(grams)) / len(grams) - 1 if grams else 0.0


TERMS = {  # (valid tokens, column of term_values, task reward, options) -> value, None if blank
    "given": lambda tokens, column, reward: None if math.isnan(column) else column,
    "format_bonus": _format_bonus,
    "length_linear": _length_linear,
    "overlong": _overlong,
    "cosine_length": _cosine_length,
    "repetition": _repetition,
    "per_token": lambda tokens, column, reward: [token["reward"] for token in tokens],
}


def case(arrays, sizes, terms, penalty, task_weight=1.0, missing="leave_out", tokens="sum"):
    """What the tables above read: cells, lengths, steps and components of a batch as lists."""
    P, G, L = sizes
    cells = [(p, g) for p in range(P) for g in range(G) if arrays["present"][p][g]]
    valid = {(p, g): [t for t in range(L) if arrays["mask"][p][g][t]] for p, g in cells}

    def at(key, cell, *more):
        p, g = cell
        row = arrays[key][p][g]
        return row[more[0]] if more else row

    def filled(value):
        return 0.0 if value is None and missing == "as_zero" else value

    def view(k, term, cell, t):
        read = [
            {"id": at("token_ids", cell, u), "reward": at("token_rewards", cell, u)}
            for u in valid[cell]
        ]
        row, options = TERMS[term.formula.variant], term.formula.options
        value = row(read, at("term_values", cell, k), at("rewards", cell), **options)
        if not isinstance(value, list):
            return filled(value)
        since = t if tokens == "to_go" and t is not None else 0
        return math.fsum(v for u, v in zip(valid[cell], value, strict=True) if u >= since)

    def task(cell, t):
        reward = at("rewards", cell)
        return filled(None if math.isnan(reward) else reward)

    shaped = [(term.weight, partial(view, k, term)) for k, term in enumerate(terms)]
    steps = {
        cell: [
            (end, reward)
            for end, reward in zip(at("step_ends", cell), at("step_rewards", cell), strict=True)
            if not math.isnan(end)
        ]
        for cell in cells
    }
    return {
        "cells": cells,
        "valid": valid,
        "lengths": {cell: len(valid[cell]) for cell in cells},
        "given": {cell: at("advantages", cell) for cell in cells},
        "penalty": {cell: penalty(*cell, valid[cell]) for cell in cells},
        "parts": [(task_weight, task), *shaped],
        "steps": steps,
    }
