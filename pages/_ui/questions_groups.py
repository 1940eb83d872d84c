"""Questions on rewards and advantages: what a group's answers are worth."""

from functools import partial

import numpy as np

from grpo_core import Choice, Term, evaluate
from grpo_core.preset_type import sample
from grpo_core.presets import PRESETS

from .numbers import number
from .question_row import Answer, Question, group, listed, on_policy

_row = partial(Question, topic="Rewards and advantages")
_POPULATION = ("mean_std", {"ddof": 0, "eps": 1e-8})


def _advantages(scenario, variant=None, **options):
    changed = scenario.choose("advantage", variant, **options) if variant or options else scenario
    return evaluate(changed).advantages


def _under(scenario, preset):
    return scenario.with_conventions(PRESETS[preset].conventions)


def _batch_std_only(scenario):
    e, batch = evaluate(scenario), evaluate(scenario.choose("advantage", "batch_std"))
    return Answer(
        f"Each group is constant: every advantage is {number(np.max(np.abs(e.advantages)))}, so "
        f"are loss ({number(e.loss)}) and gradient. The std that is logged, "
        f"{number(batch.std[0], 5)}, is that of the whole batch. frac_reward_zero_std is "
        f"{number(e.metrics['tied_groups'])}.",
        {"advantages": e.advantages, "batch_std": batch.std[0],
         "zero_std": e.metrics["tied_groups"], "loss": e.loss},
    )  # fmt: skip


def _gdpo_missing():
    values = [[[np.nan], [1.0], [0.0], [np.nan]]]
    return _under(group([1, 0, 1, 0]).with_terms((Term("second reward"),), values), "gdpo")


def _gdpo_answer(scenario):
    a = evaluate(scenario).advantages[0]
    return Answer(
        f"Leave the missing scores out of their reward's mean and std and nothing is NaN: "
        f"advantages {listed(a)}. A plain mean over a column with a NaN is NaN, and so is "
        "everything after it.",
        {"advantages": a},
    )


def _unscored_answer(scenario):
    out = evaluate(scenario).advantages[0]
    zero = evaluate(scenario.choose("rewards", missing="as_zero")).advantages[0]
    return Answer(
        f"Left out of the group: {listed(out)}, and 0 for the one without a score. Counted as "
        f"reward 0, as older releases did: {listed(zero)}.",
        {"left_out": out, "as_zero": zero},
    )


def _floor_answer(scenario):
    plain = _advantages(scenario)[0]
    floor = _advantages(scenario, floor=0.001)[0]
    return Answer(
        f"grpo gives {listed(plain)}. grpo_vectorized held the variance at 1e−6 at least, so the "
        f"std at 0.001, and gives {listed(floor)}: {number(plain[0] / floor[0], 3)} times less.",
        {"plain": plain, "floor": floor},
    )


def _single_answer(scenario):
    over = _advantages(scenario, "mean_std", ddof=1, eps=1e-6, alone="reward_over_1")[0, 0]
    rloo = _advantages(scenario)[0, 0]
    zero = _advantages(scenario, alone="zero")[0, 0]
    nemo = _advantages(scenario, "leave_one_out_std")[0, 0]
    return Answer(
        f"Each has a rule of its own for a group of one: rloo gives the reward itself, "
        f"{number(rloo)}; rloo_vectorized {number(zero)}; grpo {number(over, 7)}; NeMo-RL "
        f"{number(nemo)}. TRL refuses to train. With 0 nothing is learned.",
        {"rloo": rloo, "vectorized": zero, "grpo": over, "nemo": nemo},
    )


def _residue_answer(scenario):
    a = evaluate(scenario).advantages[0]
    r = np.float32(scenario["rewards"][0, 0])
    unit, n = float(np.spacing(r)), scenario.sizes["G"]
    spread = unit * np.sqrt(n / (n - 1))  # the sample std if each deviation is one unit
    sizes = [unit / (spread + eps) for eps in (1e-4, 1e-6, 1e-9)]
    return Answer(
        f"The advantages are exactly {number(a[0])}. In float32 the mean may be off by one unit "
        f"in the last place, {number(unit, 3)}. Divided by its own std that is "
        f"{number(sizes[0], 2)} with eps 1e−4 (TRL), {number(sizes[1], 2)} with 1e−6 (verl) and "
        f"{number(sizes[2], 2)} with 1e−9 (OpenRLHF).",
        {"advantages": a, "residues": sizes},
    )


def _leave_one_out_answer(scenario):
    a, rewards = evaluate(scenario).advantages[0], scenario["rewards"][0]
    lead = float(rewards[0] - np.mean(rewards[1:]))
    return Answer(
        f"The others of the best answer are all equal, so their std is 0, and dividing by eps "
        f"would give {number(lead / 1e-6)}. The rule is not to divide where it is 0: {listed(a)}.",
        {"advantages": a, "naive": lead / 1e-6},
    )


def _ragged():
    rewards = [[10, 10, 10, 0], [5, 5, 5, 0], [6, 6, 4, 6]]
    return group(rewards, advantage="mean_only").replace(
        present=[[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1]]
    )


def _ragged_answer(scenario):
    own = evaluate(scenario).advantages[1, :3]
    flat = scenario["rewards"][scenario["present"]]
    one = evaluate(group(flat, advantage="mean_only")).advantages[0, 4:7]
    return Answer(
        f"In its own group the tied prompt gets {listed(own)}. A batch of ragged groups that is "
        f"reshaped to one row is one group of {flat.size}, and gives it {listed(one)}.",
        {"own": own, "one_row": one},
    )


def _axis_answer(scenario):
    own = evaluate(scenario).advantages
    batch = _advantages(scenario, "batch_std", eps=1e-4)
    return Answer(
        f"By the std of the group: {listed(own[0, :2])} and {listed(own[1, 2:])} for right and "
        f"wrong. Group mean and std of the batch: {listed(batch[0, :2])} and "
        f"{listed(batch[1, 2:])}.",
        {"group": own, "batch": batch},
    )


def _ddof_answer(scenario):
    population = evaluate(scenario).advantages[0]
    trainers = _advantages(scenario, ddof=1)[0]
    return Answer(
        f"Over the population std: {listed(population)}. Every trainer takes the sample std: "
        f"{listed(trainers)}.",
        {"population": population, "sample": trainers},
    )


def _no_division_answer(scenario):
    plain = evaluate(scenario).advantages[0]
    std = _advantages(scenario, "mean_std", ddof=1, eps=1e-6)[0]
    return Answer(
        f"There is none, as in Dr. GRPO: {listed(plain[:2])}. With it, as in GRPO: "
        f"{listed(std[:2])}.",
        {"plain": plain, "std": std},
    )


def _overlong():
    lengths = [[80, 90, 100, 110]]
    penalty = Term(
        "overlong", 1.0, Choice("overlong", {"limit": 100, "buffer": 20, "beyond": "held"})
    )
    scenario = on_policy(
        [0, 0, 0, 0], lengths, rewards="sum_then_normalize", advantage=sample(1e-4)
    )
    return scenario.with_terms((penalty,))


def _overlong_answer(scenario):
    term = scenario.terms[0]
    options = {**term.formula.options, "beyond": "continued"}
    on = scenario.with_terms((Term(term.name, term.weight, Choice("overlong", options)),))
    held, continued = evaluate(scenario).scores[0], evaluate(on).scores[0]
    return Answer(
        f"With a limit of 100 and a buffer of 20 it starts at 80. Lengths 80, 90, 100, 110 cost "
        f"{listed(held)} in TRL and OpenRLHF, which stop at the limit, and {listed(continued)} in "
        "verl, which goes on.",
        {"held": held, "continued": continued},
    )


def _constant_steps():
    base = on_policy([0.0], [3])
    stepped = base.replace(step_ends=[[[0, 1, 2]]], step_rewards=[[[0.1, 0.1, 0.1]]])
    return stepped.choose("advantage", "process", ddof=0, eps=0.0)


def _constant_answer(scenario):
    a = evaluate(scenario).token_advantages[0, 0]
    return Answer(
        f"Equal step rewards hold no signal: {listed(a)}, also without eps. A variance taken as "
        "mean of squares less square of the mean can come out slightly negative, and its root is "
        "no number.",
        {"advantages": a},
    )


ROWS = (
    _row("which-std", "TRL", "trl#2832",
         "Rewards 1, 1, 2: should the advantages not be −0.707, −0.707, 1.414?",
         lambda: group([1, 1, 2], advantage=_POPULATION), _ddof_answer),
    _row("std-of-the-batch", "TRL, ms-swift", "trl#3857, ms-swift#4570",
         "The logged std is above 0, yet loss and gradient are 0. Why?",
         lambda: group([[1, 1], [0, 0]], advantage=sample(1e-4)), _batch_std_only),
    _row("no-division", "tinker-cookbook", "tinker-cookbook#579",
         "Where is the division by the standard deviation?",
         lambda: group([1, 0, 0, 0], advantage="mean_only"), _no_division_answer),
    _row("group-or-batch", "TRL", "trl#3991, grpo-flat#2",
         "Is it normalised over the group or over the batch?",
         lambda: group([[1, 0, 0, 0], [1, 1, 1, 0]], advantage=sample(1e-4)), _axis_answer),
    _row("unscored", "TRL", "trl pull request 5775",
         "What is a completion worth that no reward function scored?",
         lambda: group([1, np.nan, 0, 0], advantage=sample(1e-4)), _unscored_answer),
    _row("missing-in-gdpo", "ms-swift", "ms-swift#8123",
         "One missing reward of several, and the whole batch is NaN. What should it be?",
         _gdpo_missing, _gdpo_answer),
    _row("floor-of-the-variance", "verl", "verl pull request 6348",
         "Why is grpo_vectorized so much weaker on nearly equal rewards?",
         lambda: group([1, 1.00001], advantage=sample(1e-6)), _floor_answer),
    _row("group-of-one", "verl", "verl pull requests 7581 and 3635",
         "Why do rloo and rloo_vectorized disagree on a group of one?",
         lambda: group([0.7], advantage="leave_one_out"), _single_answer),
    _row("float32-residue", "verl, miles", "verl pull request 4597, miles pull request 701",
         "All rewards are 0.9, and still the advantages are not 0. How large are they?",
         lambda: group([0.9] * 8, advantage=sample(1e-6)), _residue_answer),
    _row("million", "NeMo-RL", "NeMo-RL#1518",
         "Why is an advantage one million?",
         lambda: group([1, 0, 0, 0], advantage="leave_one_out_std"), _leave_one_out_answer),
    _row("ragged-batch", "slime", "slime#1414, #2230",
         "Why does a prompt whose rewards are all equal get an advantage?",
         _ragged, _ragged_answer),
    _row("overlong", "verl, OpenRLHF, ms-swift", "verl#3855, OpenRLHF pull request 1091",
         "Where does the overlong penalty start, and does it end?",
         _overlong, _overlong_answer),
    _row("constant-steps", "atropos", "atropos pull request 481",
         "Process rewards that are all equal crash. What should they give?",
         _constant_steps, _constant_answer),
)  # fmt: skip
