"""What process rewards do to credit, and how they are gamed, in sentences from the numbers."""

import numpy as np

from grpo_core.credit_rules import CREDIT_RULES
from grpo_core.errors import place
from grpo_core.gaming import credited, normalised_steps, present_steps
from grpo_core.group_statistics import group_statistics
from grpo_core.numerics import total
from grpo_core.step_credit import gains_by_count, late_credit
from grpo_core.words import opening

from .numbers import change, count, number, percent
from .token_text import visible

_ROUNDING = 1e-12  # of what is compared; a smaller difference is none
# What tokens may do against the outcome alone: field of `CreditChanges`, of one, of several.
_CHANGES = (
    ("flipped", "changes sign", "change sign"),
    (
        "gained",
        "gets credit where the outcome gives none",
        "get credit where the outcome gives none",
    ),
    ("lost", "loses all that the outcome gives", "lose all that the outcome gives"),
)


def credit_line(compared):
    """Which tokens get another sign than by the outcome reward alone, and how much changes."""
    changes, where = compared.changes, compared.changes.where
    if where is None:
        return "Every token gets what the outcome reward alone would give it."
    old, new = (
        float(state.token_advantages[where]) for state in (compared.outcome, compared.process)
    )
    if abs(changes.largest) <= _ROUNDING * max(abs(old), abs(new)):
        return "Every token gets what the outcome reward alone would give it."
    parts = [
        f"{count(n, 'token')} of {changes.tokens:,} {one if n == 1 else more}"
        for field, one, more in _CHANGES
        if (n := int(np.sum(getattr(changes, field))))
    ]
    return (
        f"Against the outcome reward alone {'; '.join(parts) or 'no token changes sign'}. The "
        f"largest change is at {place(where)}: {change(old, new)}. Summed by size, advantages "
        f"move by {number(changes.total)}."
    )


def gaming_line(evaluation, prompt):
    """Which completion gains only by its number of steps, and which without being right."""
    steps, _ = normalised_steps(evaluation.scenario)
    ends, _ = present_steps(evaluation.scenario)
    z, ends = steps[prompt : prompt + 1], ends[prompt : prompt + 1]
    valid = evaluation.valid[prompt : prompt + 1]
    low = _paid_though_low(evaluation, prompt)
    late = np.flatnonzero(late_credit(z, ends, valid)[0])
    more = _gain_line(gains_by_count(z, ends), "more")
    said = [
        more,
        _low_line(evaluation, prompt, low),
        _late_line([g for g in late.tolist() if g not in low], evaluation.scenario, prompt),
        "" if more else _gain_line(gains_by_count(z, ends, fewer=True), "fewer"),
    ]
    return " ".join(filter(None, said)) or (
        "Nobody gains by the number of steps alone here: no completion stands above another "
        "whose steps are as good on average."
    )


def _gain_line(gains, which):
    if not len(gains.gain):
        return ""
    _, i, j = gains.where[0].tolist()
    (own_steps, other_steps), (own, other) = gains.steps[0].tolist(), gains.means[0].tolist()
    against = "the same" if np.isclose(own, other) else f"{number(own)} against {number(other)}"
    return (
        f"Completion {i} stands {number(gains.gain[0])} above completion {j} only because it has "
        f"{which} steps, {own_steps} against {other_steps}: on average they are no better "
        f"({against}, normalised). With {other_steps} it would get "
        f"{number(gains.at_equal_count[0])} and not {number(gains.totals[0, 0])}."
    )


def _paid(evaluation, prompt):
    """Advantage of each completion's first token, and the sum over its tokens; rounding is 0.

    As the surrogate has them, so with what the outcome adds.
    """
    advantages, valid = evaluation.token_advantages[prompt], evaluation.valid[prompt]
    first = np.take_along_axis(advantages, np.argmax(valid, axis=-1)[:, None], axis=-1)[:, 0]
    masses = total(advantages, axis=-1)
    dust = _ROUNDING * total(np.abs(advantages), axis=-1)
    dust = np.where(np.isfinite(dust), dust, 0.0)
    return tuple(np.where(np.abs(values) <= dust, 0.0, values) for values in (first, masses))


def _paid_though_low(evaluation, prompt):
    """Completions below the group's mean reward that are pushed up all the same, most first."""
    scenario = evaluation.scenario
    rewards = scenario["rewards"][prompt : prompt + 1]
    known = scenario["present"][prompt : prompt + 1] & ~np.isnan(rewards)
    below = group_statistics(np.where(known, rewards, 0.0), known, 0).centred[0] < 0
    first, masses = _paid(evaluation, prompt)
    paid = np.flatnonzero(below & ((first > 0) | (masses > 0)))
    return paid[np.argsort(-masses[paid], kind="stable")].tolist()


def _low_line(evaluation, prompt, low):
    if not low:
        return ""
    g, others = low[0], len(low) - 1
    first, masses = _paid(evaluation, prompt)
    where = "" if masses[g] > 0 else " at its start"
    more = f", and {count(others, 'other')} alike" if others else ""
    whole = " (with the outcome's part)" if left_out_line(evaluation.scenario) else ""
    return (
        f"Completion {g} is pushed up{where}{whole}, though its reward "
        f"{number(evaluation.scenario['rewards'][prompt, g])} is below its group's mean{more}: its "
        f"first token gets {number(first[g])}, its tokens together {number(masses[g])}."
    )


def _late_line(late, scenario, prompt):
    if not late:
        return ""
    first, masses = (values[prompt] for values in credited(scenario))
    g = max(late, key=lambda g: abs(masses[g]))
    more = f", and {count(len(late) - 1, 'other')} alike" if len(late) > 1 else ""
    by = " by its steps" if left_out_line(scenario) else ""
    return (
        f"Completion {g}{more}: its first token gets {number(first[g])}{by}, its tokens together "
        f"{number(masses[g])}. A late step reaches every token before it, so what stands at the "
        "end counts most."
    )


def rules_list():
    """What the other rules do to gaming, one a line, as a list in Markdown."""
    return "\n".join(
        f"- {opening(rule.label)}: {rule.effect[:1].lower()}{rule.effect[1:]}"
        for rule in CREDIT_RULES.values()
    )


def left_out_line(scenario):
    """What tables of steps alone leave out of the tokens' advantages; "" where it is nothing."""
    weight = scenario.conventions["advantage"].options["outcome_weight"]
    if not weight:
        return ""
    return f"The outcome's own part, of weight {number(weight)}, is left out."


def pooling_line(scenario):
    """That the other rules pool over the group also where the advantage does not; else ""."""
    if scenario.conventions["advantage"].options["over"] == "group":
        return ""
    return "Pooled over all steps of the group, also where the advantage above is not."


def chosen_line(scenario, where, step):
    """Which step the tricks are tried on, and what it reads; `where` is the selected token."""
    tried = f"Tried on completion {where[1]}, {_step_name(scenario, where, step)}"
    return f"{tried}. Click a token above for another one. In brackets: what changes."


def _step_name(scenario, where, step):
    p, g, t = where
    if step >= 0:
        text = step_text(scenario, p, g, step)
        return f"step {step}" + (f", which reads “{text}”" if text else "")
    if not scenario["present"][p, g]:
        return "which is absent"
    if np.all(np.isnan(scenario["step_ends"][p, g])):
        return "which has no step"
    if not scenario.valid[p, g, t]:
        return "no step: the selected token is padding"
    return "no step: the selected token is after the last one"


def step_text(scenario, p, g, step, most=24):
    """What the tokens of a step read; "" where no texts are known."""
    if not scenario.texts.tokens:
        return ""
    ends = scenario["step_ends"][p, g]
    before = ends[:step][~np.isnan(ends[:step])]
    start = int(before[-1]) + 1 if before.size else 0
    tokens = range(start, int(ends[step]) + 1)
    return visible("".join(scenario.texts.token(p, g, t) for t in tokens), most)


def trick_line(trials, before, where):
    """What the best of some trials would bring."""
    able = [trial for trial in trials if trial.scenario is not None]
    if not able:
        return "This completion has no step that could be changed."
    best = max(able, key=lambda trial: trial.mass)
    gain = best.mass - before[1]
    who = opening(place(where[:2]))
    if not gain > 1e-9 * max(abs(before[1]), 1.0):
        return f"{who}: no trick raises the sum of its tokens' advantages, {number(before[1])}."
    return (
        f"{who}: the best trick is “{best.edit.label}”. The sum of its tokens' advantages goes "
        f"{change(before[1], best.mass)}, its first token's "
        f"{_goes(before[0], best.first)}, and no token of the answer is changed."
    )


def _goes(before, after):
    """``stays 2`` or ``goes 1 → 2``; a difference of rounding is none."""
    same = abs(after - before) <= _ROUNDING * max(abs(before), abs(after))
    return f"stays {number(before)}" if same else f"goes {change(before, after)}"


def steps_line(scenario, prompt):
    """How many steps the completions of one prompt have, and how their rewards lie."""
    present = scenario["present"][prompt]
    ends, rewards = (array[prompt] for array in present_steps(scenario))
    there = ~np.isnan(ends)
    if not there.any():
        return "No completion of this prompt has a step, so steps give no advantage here."
    per = there.sum(axis=-1)[present]
    spread = "" if per.min() == per.max() else f" ({per.min()} to {per.max()} a completion)"
    return (
        f"{count(int(there.sum()), 'step')}{spread}, {_pooled(scenario, rewards, there)}."
        f"{_after_the_last(scenario, prompt, ends)}"
    )


def _pooled(scenario, rewards, there):
    options = scenario.conventions["advantage"].options
    if options["over"] != "group":
        return "each normalised among the steps of its completion"
    pool = group_statistics(rewards.reshape(1, -1), there.reshape(1, -1), options["ddof"])
    kind = "sample " if options["ddof"] else ""
    return f"pooled: mean {number(pool.mean[0])}, {kind}standard deviation {number(pool.std[0])}"


def _after_the_last(scenario, prompt, ends):
    last = np.max(np.where(np.isnan(ends), -1, ends), axis=-1, initial=-1)
    valid = scenario.valid[prompt]
    after = valid & (np.arange(valid.shape[-1]) > last[:, None])
    if not after.any():
        return ""
    n = int(after.sum())
    return (
        f" {count(n, 'token')} ({percent(n / valid.sum())}) after the last step "
        f"{'gets' if n == 1 else 'get'} 0."
    )
