"""Questions on the loss: how tokens are averaged, and over what."""

from functools import partial

import numpy as np

from grpo_core import evaluate

from .numbers import count, number
from .question_row import Answer, Question, listed, on_policy, tokens

_row = partial(Question, topic="Loss and averages")


def _loss(scenario, variant, **options):
    return evaluate(scenario.choose("aggregation", variant, **options)).loss


def _short_and_long(**choices):
    """Two tokens with advantage 1 and four with -1."""
    return on_policy([1, -1], [2, 4], **choices)


def _zero_answer(scenario):
    e = evaluate(scenario)
    slopes = -e.gradient[0, :, 0]
    return Answer(
        f"The ratio is {number(e.ratio[0, 0, 0])} and the advantages add up to "
        f"{number(float(np.sum(e.advantages)))}, so the loss is {number(e.loss)} whatever was "
        f"learned. Its gradient by log π is {listed(slopes)}, and that is what trains.",
        {"loss": e.loss, "slopes": slopes},
    )


def _pull_answer(scenario):
    e = evaluate(scenario)
    return Answer(
        f"The policy term is {number(float(np.max(np.abs(e.policy_gradient))))}, as it should be. "
        f"The KL term has no advantage in it: {number(e.kl_penalty[0, 0, 0])} per token, "
        f"beta × {number(e.kl[0, 0, 0], 6)}, pulls to the reference all the same.",
        {"policy": e.policy_gradient, "penalty": e.kl_penalty[0, 0, 0], "kl": e.kl[0, 0, 0]},
    )


def _modes_answer(scenario):
    token, completion = evaluate(scenario).loss, _loss(scenario, "completion_mean")
    return Answer(
        f"Four tokens of loss 1 and one of 6: the mean over tokens (DAPO, verl's token-mean) is "
        f"{number(token)}, the mean of completions (GRPO, seq-mean-token-mean) "
        f"{number(completion)}.",
        {"token": token, "completion": completion},
    )


def _per_prompt_answer(scenario):
    batch, prompt = evaluate(scenario).loss, _loss(scenario, "prompt_mean")
    completion = _loss(scenario, "completion_mean")
    return Answer(
        f"TRL and verl take it over the batch: {number(batch)}. Read per prompt it is "
        f"{number(prompt)}, and GRPO's mean of completions {number(completion)}.",
        {"batch": batch, "prompt": prompt, "completion": completion},
    )


def _horizon_answer(scenario):
    old, now = evaluate(scenario).loss, _loss(scenario, "constant", length=4)
    return Answer(
        f"The sum was divided by the length alone: {number(old)} here, and twice that with twice "
        f"the rows. Since 0.9 it is divided by the number of rows, too, as in the paper: "
        f"{number(now)}.",
        {"length_only": old, "constant": now},
    )


def _split_answer(scenario):
    whole = evaluate(scenario).loss
    apart = [
        evaluate(on_policy([a], [n], aggregation="token_mean")).loss
        for a, n in zip(scenario["rewards"][0], scenario["mask"][0].sum(axis=-1), strict=True)
    ]
    split = float(np.mean(apart))
    return Answer(
        f"Over the whole batch the loss is {number(whole)}. Split into micro-batches of one "
        f"completion, each divided by its own tokens ({listed(apart)}), their mean is "
        f"{number(split)}. Divide by the tokens of the whole batch and the split does not matter.",
        {"whole": whole, "split": split},
    )


def _accumulation_answer(scenario):
    now, before = evaluate(scenario).loss, _loss(scenario, "token_mean", tokens=40)
    return Answer(
        f"Four micro-batches of 10 tokens were sampled, two make an update. Divided by all "
        f"40 tokens the update's loss was {number(before)}; divided by its own 20 it is "
        f"{number(now)}.",
        {"before": before, "after": now},
    )


def _twice_answer(scenario):
    right = evaluate(scenario).gradient[0, 0, 0]
    again = evaluate(scenario.choose("accumulation", factor=0.25)).gradient[0, 0, 0]
    return Answer(
        f"The tokens of the whole update are divided by already. Divided by the four steps again, "
        f"a token's gradient is {number(again)} for {number(right)}: {number(again / right)} of "
        "it.",
        {"right": right, "again": again},
    )


def _truncated():
    scenario = on_policy([1, 1], [2, 4], aggregation="token_mean")
    return scenario.replace(truncated=[[0, 1]]).choose("truncated", "drop")


def _truncated_answer(scenario):
    after = evaluate(scenario).loss
    before = _loss(scenario, "token_mean", tokens=6)
    return Answer(
        f"Two tokens are left of six. Divided by all six the loss is {number(before)}, as if the "
        f"cut ones had been worth 0; divided by the two that count it is {number(after)}.",
        {"before": before, "after": after},
    )


def _nothing():
    scenario = _short_and_long(aggregation="token_mean")
    return scenario.replace(mask=np.zeros_like(scenario["mask"]))


def _nothing_answer(scenario):
    e = evaluate(scenario)
    return Answer(
        f"{count(int(np.sum(e.valid)), 'token')} count, so there is nothing to average: loss "
        f"{number(e.loss)} and KL {number(e.mean_kl)} here and in TRL, which divides by at least "
        "1. A mask that is summed and divided by gives 0/0, NaN, in verl's token-mean.",
        {"loss": e.loss, "kl": e.mean_kl},
    )


def _padding():
    lines = [[-0.5, -1.0, -9.0, -9.0], [-9.0, -9.0, -0.5, -1.0]]
    return tokens(
        lines, ref=[[-1.0, -1.5, -9.0, -9.0], [-9.0, -9.0, -1.0, -1.5]], advantages=[1, 1],
        mask=[[1, 1, 0, 0], [0, 0, 1, 1]], kl=("k3", {"beta": 0.04}),
    )  # fmt: skip


def _padding_answer(scenario):
    sums = np.sum(evaluate(scenario).contribution[0], axis=-1)
    return Answer(
        f"Not for the sums, if the mask goes along: the same two tokens padded right and left "
        f"contribute {listed(sums)}. Where it matters, the model saw other positions, or padding "
        "was counted.",
        {"sums": sums},
    )


def _entropy():
    scenario = on_policy([0, 0], [2, 4], aggregation="token_mean")
    ones = np.ones(scenario["mask"].shape)
    return scenario.replace(entropy=ones).choose("entropy", "bonus", coefficient=1.0)


def _entropy_answer(scenario):
    mean = evaluate(scenario).objective
    constant = evaluate(scenario.choose("aggregation", "constant")).objective
    return Answer(
        f"It is averaged like the loss. Every token here has entropy 1: token-mean logs "
        f"{number(mean)}, seq-mean-token-sum-norm over the padded width {number(constant)}.",
        {"token_mean": mean, "constant": constant},
    )


def _tied():
    scenario = tokens([[-1.0], [-1.0]], ref=[[-0.5], [-0.5]], advantages=[1, 1],
                      kl=("k3", {"beta": 0.04}))  # fmt: skip
    return scenario.choose("advantage", "mean_std", ddof=1, eps=1e-4)


ROWS = (
    _row("loss-is-zero", "TRL, open-r1", "trl#2703, open-r1#239",
         "The loss starts at 0 and rises, and yet the model learns. Why?",
         lambda: tokens([[-1.0], [-2.0]], advantages=[1, -1]), _zero_answer),
    _row("tied-still-pulls", "TRL", "trl#7068, #6365",
         "Why does a group of equal rewards still change the policy?", _tied, _pull_answer),
    _row("which-mode", "verl", "verl#593, #957, #1233",
         "Which loss_agg_mode is GRPO, and which is DAPO?",
         lambda: on_policy([-1, -6], [4, 1], aggregation="token_mean"), _modes_answer),
    _row("per-batch-or-prompt", "TRL", "trl#5375",
         "Is DAPO's token mean over the batch or over each prompt?",
         lambda: on_policy([[1, -1], [1, -1]], [[2, 4], [8, 2]], aggregation="token_mean"),
         _per_prompt_answer),
    _row("grows-with-the-batch", "verl", "verl#3741, pull request 5417",
         "Why does the loss of Dr. GRPO grow with the micro-batch?",
         lambda: _short_and_long(aggregation=("length_only", {"length": 4})), _horizon_answer),
    _row("micro-batches", "TRL", "trl#3021",
         "Why does the result depend on how the batch is split?",
         lambda: _short_and_long(aggregation="token_mean"), _split_answer),
    _row("accumulation", "TRL", "trl#5619, pull request 6024",
         "Why does gradient accumulation shrink the dapo loss?",
         lambda: on_policy([1, 1], [10, 10], aggregation=("token_mean", {"tokens": 20})),
         _accumulation_answer),
    _row("accumulated-twice", "ms-swift", "ms-swift#10117",
         "Why is the dapo gradient four times too small?",
         lambda: on_policy([1] * 4, [10] * 4, aggregation="token_mean"), _twice_answer),
    _row("truncated", "TRL", "trl#6369",
         "Do truncated completions that are masked still dilute the loss?",
         _truncated, _truncated_answer),
    _row("all-masked", "verl, TRL, unsloth", "verl pull request 782, trl pull request 5826",
         "What is the loss of a batch whose tokens are all masked?", _nothing, _nothing_answer),
    _row("padding-side", "mlx-lm-lora", "mlx-lm-lora pull request 88",
         "Does it matter on which side completions are padded?", _padding, _padding_answer),
    _row("entropy-and-mode", "verl", "verl#3986",
         "Why does the logged entropy change with loss_agg_mode?", _entropy, _entropy_answer),
)  # fmt: skip
