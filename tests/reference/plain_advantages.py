"""Scores, shaping terms, steps and advantages written out for `plain_loops`, one cell at a time.

Shares no code with the core.
"""

import math
from functools import cache, partial

from .plain_judges import JUDGES, Seat, mean, std

# The next tables work with cells (p, g), and with views of them: a function of a cell and a token
# t that gives a number, the whole completion's for t None.


def _seat(view, case, cell):
    """A cell among those of its group, and of the batch, that have a value."""
    known = [other for other in case["cells"] if view(other, None) is not None]
    group = [other for other in known if other[0] == cell[0]]
    return Seat(
        group=[view(other, None) for other in group],
        at=group.index(cell),
        lengths=[case["lengths"][other] for other in group],
        batch=[view(other, None) for other in known],
    )


def _judged(view, case, judge):
    """A view of advantages; 0 where there is no value.

    A token's is the completion's, less what its value is short of the whole one.
    """

    @cache
    def advantage(cell, t):
        whole = view(cell, None)
        if whole is None:
            return 0.0
        value, slope = judge(_seat(view, case, cell))
        return value if t is None else value + slope * (view(cell, t) - whole)

    return advantage


def _summed(parts, case):
    """A view of the weighted sum of components, None where all are missing."""

    @cache
    def score(cell, t):
        known = [w * view(cell, t) for w, view in parts if view(cell, t) is not None]
        return math.fsum(known) - case["penalty"][cell] if known else None

    return score


def _sum_then_normalize(case, judge):
    return _judged(_summed(case["parts"], case), case, judge)


def _outcome(case, judge):
    return _judged(_summed(case["parts"][:1], case), case, judge)


def _normalize_then_sum(case, judge, batch_scale, batch_eps):
    (weight, task), *terms = case["parts"]

    def less_penalty(cell, t):
        return None if task(cell, t) is None else task(cell, t) - case["penalty"][cell]

    judged = [(w, _judged(view, case, judge)) for w, view in [(weight, less_penalty), *terms]]
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
    spread = std(values, 1)
    divisor = math.hypot(spread, batch_eps) if batch_scale == "token" else spread + batch_eps

    def scaled(cell, t):
        value = whole(cell, t)
        return 0.0 if value is None or spread == 0 else (value - mean(values)) / divisor

    return scaled


def _add_after(case, judge):
    (weight, task), *terms = case["parts"]
    task = _judged(_summed([(weight, task)], case), case, judge)

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


def _by(judge):
    return lambda case, combine, **options: combine(case, partial(judge, **options))


def _given(case, combine):
    return lambda cell, t: case["given"][cell]


def _given_per_token(case, combine):
    def advantage(cell, t):
        tokens = case["token_advantages"][cell]
        return tokens[t] if t is not None else mean(tokens.values()) if tokens else 0.0

    return advantage


def _returns(case, combine, gamma):
    def advantage(cell, t):
        tokens = case["valid"][cell]
        since = tokens if t is None else tokens[tokens.index(t) :]
        earned = [case["earned"][cell][u] for u in since]
        if earned:
            earned[-1] += case["score"](cell, None) or 0.0
        return math.fsum(gamma**k * r for k, r in enumerate(earned))

    return advantage


def _process(case, combine, over, outcome_weight, **options):
    outcome = combine(case, partial(JUDGES["mean_std"], **options))

    def step(reward, pool):
        spread = std(pool, options["ddof"])
        return 0.0 if spread == 0 else (reward - mean(pool)) / (spread + options["eps"])

    def pool(cell):
        shared = [c for c in case["cells"] if c == cell or (over == "group" and c[0] == cell[0])]
        return [reward for c in shared for end, reward in case["steps"][c]]

    def advantage(cell, t):
        later = [reward for end, reward in case["steps"][cell] if t is None or end >= t]
        steps = [step(reward, pool(cell)) for reward in later]
        return math.fsum(steps) + outcome_weight * outcome(cell, t)

    return advantage


ADVANTAGES = {  # (case, way of combining, options) -> view of advantages
    **{key: _by(judge) for key, judge in JUDGES.items()},
    "returns": _returns,
    "given": _given,
    "given_per_token": _given_per_token,
    "process": _process,
}


def tied(listed, rewards, advantage, group):
    """Whether nothing tells a group's completions apart; ``group``: cell -> its tokens."""
    if advantage == "process":
        return all(
            abs(token["judged"]) < 1e-12 for each in group.values() for token in each.values()
        )
    views = [listed["score"]]
    if rewards in ("normalize_then_sum", "add_after"):
        views += [
            _summed([part], {"penalty": dict.fromkeys(group, 0.0)}) for part in listed["parts"]
        ]
    known = [[view(cell, None) for cell in group if view(cell, None) is not None] for view in views]
    return len(known[0]) > 1 and all(not each or min(each) == max(each) for each in known)


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


def case(
    arrays, sizes, terms, penalty, *,
    combined=True, task_weight=1.0, missing="leave_out", tokens="sum",
):  # fmt: skip
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

    @cache
    def view(k, cell, t):
        read = [
            {"id": at("token_ids", cell, u), "reward": at("token_rewards", cell, u)}
            for u in valid[cell]
        ]
        row, options = TERMS[terms[k].formula.variant], terms[k].formula.options
        value = row(read, at("term_values", cell, k), at("rewards", cell), **options)
        if not isinstance(value, list):
            return filled(value)
        since = t if tokens == "to_go" and t is not None else 0
        return math.fsum(v for u, v in zip(valid[cell], value, strict=True) if u >= since)

    def task(cell, t):
        reward = at("rewards", cell)
        return filled(None if math.isnan(reward) else reward)

    shaped = [(term.weight, partial(view, k)) for k, term in enumerate(terms)]
    parts = [(task_weight, task), *shaped]
    penalties = {cell: penalty(*cell, valid[cell]) for cell in cells}
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
        "score": _summed(parts if combined else parts[:1], {"penalty": penalties}),
        "earned": {
            cell: {t: 0.0 if combined else at("token_rewards", cell, t) for t in valid[cell]}
            for cell in cells
        },
        "token_advantages": {
            cell: {t: at("token_advantages", cell, t) for t in valid[cell]} for cell in cells
        },
        "valid": valid,
        "lengths": {cell: len(valid[cell]) for cell in cells},
        "given": {cell: at("advantages", cell) for cell in cells},
        "penalty": penalties,
        "parts": parts,
        "steps": steps,
    }
