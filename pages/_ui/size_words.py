"""What a group's size does to its baseline, its signal and its noise, in computed sentences."""

import numpy as np

from grpo_core.answer_policies import rate_policy
from grpo_core.baselines import gradient_noise, leave_one_out_variance
from grpo_core.group_size import size_for_signal
from grpo_core.words import listing

from .numbers import count, number, percent
from .size_noise import measured

_SAME = 1e-9


def value_line(view):
    """Which knows the true values better: a group's mean or one constant for all kinds."""
    policy = view.policy
    by_group = policy.reward_variance / view.G
    by_constant = (view.constant - policy.value) ** 2
    off, constant_off = (float(np.sqrt(np.mean(part))) for part in (by_group, by_constant))
    closer = int(np.sum(by_group < by_constant))
    N = len(policy.value)
    if not np.any(by_group > 0) and not np.any(by_constant > 0):
        return "No reward varies here: a mean of any group is the true value."
    return (
        f"A mean of {view.G} answers misses the true value by {number(off, 3)} (root mean "
        f"square), one constant for all kinds by {number(constant_off, 3)}. The group's mean is "
        f"the better guess for {closer} of {count(N, 'kind')}, and it needs no value network."
    )


def price_line(view, kind=None):
    """What it costs to have no value network: leave-one-out against the true value."""
    noise = measured(view, "variance", kind)
    group, value = noise["leave_one_out"], noise["true_value"]
    if not group > 0:
        return "There is no noise here: the reward of every answer is the same."
    if not value > 0:
        return (
            f"With the true value there would be no noise at all; leave-one-out has "
            f"{number(group)} per sample. That is the price of having no value network."
        )
    return (
        f"The price of having no value network: {percent(group / value - 1)} more noise at "
        f"G = {view.G} ({number(group)} with leave-one-out, {number(value)} with the true "
        "value). It falls as 1/(G − 1)."
    )


def factor_line(view):
    """That the answer's own reward in the mean is a factor, and no bias in direction."""
    G = view.G
    return (
        f"The mean with the answer itself in it is leave-one-out times (G − 1)/G = "
        f"{number((G - 1) / G)}. Same direction, same signal to noise: a smaller step and no "
        f"bias. A learning rate {number(G / (G - 1))} times as large makes up for it."
    )


def pair_line(view):
    """What is special about groups of two."""
    policy = view.policy
    pair = 2 * leave_one_out_variance(policy, 2)
    bare = policy.noise_about(np.zeros_like(policy.value))
    worse = np.flatnonzero(pair > bare * (1 + _SAME))
    said = []
    if view.binary:
        said.append(
            "At G = 2 and rewards of 0 and 1 GRPO is leave-one-out itself: both give 1 and −1, "
            "or 0 in a tie (with the population std). Dividing by the std weighs nothing"
            f"{'' if view.G == 2 else ' there'}."
        )
    if worse.size:
        kind = int(worse[np.argmax(pair[worse] / np.maximum(bare[worse], 1e-300))])
        said.append(
            f"With a single other answer to compare with, noise is above that of no baseline at "
            f"all for {_kinds(worse)} (kind {kind}: {number(pair[kind])} against "
            f"{number(bare[kind])})."
        )
    elif np.any(pair > 0):
        said.append("Here even a group of two is no noisier than having no baseline.")
    return " ".join(said)


def _kinds(which):
    names = [str(kind) for kind in which[:4].tolist()]
    if len(which) > 4:
        names.append(f"{len(which) - 4} more")
    return f"{'kind' if len(which) == 1 else 'kinds'} {listing(names)}"


def best_line(view):
    """Where the true value is not the best baseline, or worse than none."""
    policy = view.policy
    value, best = policy.noise_about(policy.value), policy.noise_about(policy.best_constant)
    bare = policy.noise_about(np.zeros_like(policy.value))
    if not np.any(value > best * (1 + 1e-6)):
        return "Here no constant has less noise than the true value."
    gain = np.where(value > 0, 1 - best / np.where(value > 0, value, 1.0), 0.0)
    kind = int(np.argmax(gain))
    text = (
        f"The true value is not the best baseline. For kind {kind} the constant "
        f"{number(policy.best_constant[kind], 3)} has {percent(float(gain[kind]))} less noise "
        f"than its true value {number(policy.value[kind], 3)}: it weighs answers by how far "
        "they move the policy."
    )
    worse = np.flatnonzero(value > bare * (1 + 1e-6))
    if worse.size:
        one = int(worse[np.argmax(value[worse] / np.maximum(bare[worse], 1e-300))])
        text += (
            f" For {_kinds(worse)} the true value is even worse than no baseline (kind {one}: "
            f"{number(value[one])} against {number(bare[one])})."
        )
    return text


def std_line(view):
    """What dividing by the std does to the signal; and that two answers would mislead."""
    gains, factors = _gains(view.noise), view.noise["over_std"].factor
    if not gains.size or np.allclose(factors[np.isfinite(factors)], 1, rtol=1e-6):
        return ""  # in pairs the std weighs nothing, which is said above
    text = (
        f"Dividing by the std also changes the target: a kind's pull is multiplied by "
        f"{_span(view.noise['over_std'].factor)}. So compare signal to noise: by kind it is "
        f"{_span(gains)} times that of leave-one-out."
    )
    if not view.binary:
        return text
    if view.policy.probabilities.shape[1] == 2:
        return (
            f"{text} But this table has two answers only: the gradient is then a function of "
            "the reward, and the std looks better than it is. Add answers."
        )
    two = _gains(gradient_noise(rate_policy(view.policy.value, 1, 1), view.G, view.options))
    if not two.size or not np.max(two) > np.max(gains) * (1 + 1e-6):
        return text
    return (
        f"{text} With one right and one wrong answer at the same rates it would look like "
        f"{_span(two)} times. Two answers mislead: the gradient is then a function of the reward."
    )


def _gains(noise):
    """Signal to noise of GRPO over leave-one-out's, of the kinds where both are finite."""
    std, group = noise["over_std"].signal, noise["leave_one_out"].signal
    live = (group > 0) & np.isfinite(group) & (std > 0) & np.isfinite(std)
    return std[live] / group[live]


def _span(factors):
    live = factors[factors > 0]
    if not live.size:
        return "0"
    low, high = float(np.min(live)), float(np.max(live))
    ends = number(low, 3), number(high, 3)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def signal_line(view):
    """How often groups of this size have a signal, and what it takes for the rarest kind."""
    mean, least = float(np.mean(view.now)), int(np.argmin(view.now))
    text = (
        f"Groups of {view.G} are not tied in {percent(mean)} of cases on average, least often "
        f"for kind {least}: {percent(float(view.now[least]))}."
    )
    if not view.binary:
        return text
    needed = int(size_for_signal(view.policy.value[least : least + 1], 0.5)[0])
    rate = number(view.policy.value[least], 3)
    if needed == 0:
        return f"{text} At its success rate of {rate} no group of up to 1,024 reaches one half."
    return (
        f"{text} At its success rate of {rate} it takes G = {needed} to have one at least half of "
        "the time."
    )


def budget_line(view):
    """The best size under the budget, with fresh prompts and with the same ones."""
    curve, G = view.curve, view.G
    if not np.any(curve.fresh > 0):
        return "There is no noise: every size is as good."
    best = curve.best_fresh
    text = (
        f"{count(view.budget, 'sample')}, fresh prompts in every batch: G = {best} has the least "
        f"noise ({number(view.budget / best, 3)} prompts)."
    )
    at = {int(size): float(noise) for size, noise in zip(curve.sizes, curve.fresh, strict=True)}
    if best != G and G in at:
        text += f" G = {G} has {number(at[G] / at[best], 3)} times as much."
    if 2 in at and 16 in at:
        word = "less" if at[2] < at[16] else "more"
        text += f" G = 2 has {word} noise than 16 ({number(at[2])} against {number(at[16])})."
    if np.isinf(curve.ideal):
        text += " All kinds pull the same way, so it does not matter which prompts come."
    return (
        f"{text} With the same prompts in every batch their choice is no noise, and larger groups "
        f"only help: best G = {curve.best_same}, the largest."
    )


def price_lines(view):
    """What larger groups, or more prompts, cost: by the noise of the small policy."""
    curve, G = view.curve, view.G
    at = dict(zip(curve.sizes.tolist(), zip(curve.fresh, curve.same, strict=True), strict=True))
    if G not in at or not at[G][0] > 0:
        return []
    lines = []
    for size, name in ((2 * G, "Larger groups, fewer prompts"), (G // 2, "More, smaller groups")):
        if size in at:
            fresh, same = (_change(a, b) for a, b in zip(at[G], at[size], strict=True))
            lines.append(
                f"{name} (G = {size}), in the small policy: the noise of an update {fresh} with "
                f"fresh prompts and {same} with the same ones. Samples: as many."
            )
    lines.append(
        f"Larger groups, same prompts (G = {2 * G}): twice the samples. "
        "A group mean is off by 0.71 times what it was."
    )
    return lines


def _change(before, after):
    if not before > 0:
        return "stays 0"
    factor = float(after / before)
    if abs(factor - 1) < 5e-4:
        return "stays"
    way = "grows" if factor > 1 else "falls"
    return f"{way} by {percent(abs(factor - 1))}"
