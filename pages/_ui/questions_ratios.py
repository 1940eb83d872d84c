"""Questions on ratios: what is clipped, and what corrects for another engine's sampling."""

import math
from functools import partial

import numpy as np

from grpo_core import evaluate
from grpo_core.presets import PRESETS

from .numbers import number, percent
from .question_row import Answer, Question, listed, tokens

_row = partial(Question, topic="Ratios and clipping")


def _moved(ratios, advantages, **choices):
    """Completions of one token each, with these ratios."""
    old = np.full((len(ratios), 1), -4.0)
    return tokens(old + np.log(ratios)[:, None], old=old, advantages=advantages, **choices)


def _loss(scenario, variant, **options):
    return evaluate(scenario.choose("surrogate", variant, **options)).loss


def _fraction_answer(scenario):
    e = evaluate(scenario)
    away = float(np.mean(np.abs(e.ratio[e.valid] - 1) > 0.2))
    return Answer(
        f"{percent(away)} of the ratios are outside 0.8 to 1.2, but only "
        f"{percent(e.metrics['clip'])} of the tokens lose their gradient: a ratio above stops a "
        "positive advantage, one below a negative. Count with the sign.",
        {"outside": away, "clipped": e.metrics["clip"]},
    )


def _bounds_answer(scenario):
    e = evaluate(scenario)
    options = scenario.conventions["surrogate"].options
    low, high = np.abs(e.surrogate[0, :, 0])
    return Answer(
        f"The two numbers are distances from 1. epsilon {number(options['epsilon_low'])} and "
        f"{number(options['epsilon_high'])} hold ratios of 0.5 and 1.5 at {number(low)} and "
        f"{number(high)}.",
        {"low": low, "high": high},
    )


def _cispo_answer(scenario):
    trl, scale = evaluate(scenario).loss, _loss(scenario, "cispo", epsilon_high=5.0,
                                                bound="absolute")  # fmt: skip
    verl = _loss(scenario, "cispo", epsilon_low=0.2, epsilon_high=0.2, bound="offset")
    return Answer(
        f"In TRL it is the bound itself: with the default of 0.2 every weight is at most 0.2, and "
        f"the loss of a token at ratio 1 is {number(trl)}. With 5, as in ScaleRL, it is "
        f"{number(scale)}. verl adds it to 1: {number(verl)}.",
        {"trl": trl, "scalerl": scale, "verl": verl},
    )


def _unbounded_answer(scenario):
    ppo = evaluate(scenario).loss
    dual = _loss(scenario, "dual_clip", dual_clip=3.0)
    delta = _loss(scenario, "two_sided", delta=2.0)
    return Answer(
        f"PPO's clip does not bound a negative advantage from above: ratio 5 gives a loss of "
        f"{number(ppo)}. Dual clip with c = 3 stops at {number(dual)} (verl has it on), TRL's "
        f"delta = 2 at {number(delta)}.",
        {"ppo": ppo, "dual": dual, "delta": delta},
    )


def _masked_overflow():
    return tokens([[-1.0, 0.0]], old=[[-1.0, -200.0]], advantages=[1], mask=[[1, 0]])


def _overflow_answer(scenario):
    e = evaluate(scenario)
    slopes = 0 - e.gradient[0, 0]
    with np.errstate(all="ignore"):
        product = np.float32(0) * np.exp(np.float32(200))
    naive = "NaN" if np.isnan(product) else number(float(product))
    return Answer(
        f"The second token is masked and its ratio e^200 overflows float32. Masked by a product "
        f"its gradient is 0 × inf = {naive}; selected before the exponential it is 0. Loss "
        f"{number(e.loss)}, gradient {listed(slopes)}.",
        {"loss": e.loss, "slopes": slopes},
    )


def _sampled(steps, level, *, mode="mask", high=3.0):
    """One completion whose old policy is `steps` nats above the sampler at each token."""
    old = np.full((1, len(steps)), -2.0)
    scenario = tokens(old, advantages=[1])
    scenario = scenario.replace(logp_sampler=[old - np.asarray(steps)])
    return scenario.choose("correction", "sampler", level=level, mode=mode, high=high)


def _weights(scenario, **options):
    return evaluate(scenario.choose("correction", **options)).factor[0, 0, 0]


def _summed_answer(scenario):
    dropped = _weights(scenario)
    product = _weights(scenario, high=0.0)
    mean = _weights(scenario, level="sequence_mean")
    return Answer(
        f"100 tokens that are each 0.012 nats apart multiply to {number(product, 5)}. That is "
        f"above 3, so sequence_mask gives the whole answer weight {number(dropped)}. Their "
        f"geometric mean is {number(mean, 5)}.",
        {"masked": dropped, "product": product, "mean": mean},
    )


def _top_p_answer(scenario):
    token, whole = _weights(scenario, level="token"), _weights(scenario)
    return Answer(
        f"The sampler's probabilities are over the kept 90% only, so each is 1/0.9 too large. The "
        f"ratio is {number(token)} at every token, and {number(whole)} over 20 of them, though the "
        "policies are the same.",
        {"token": token, "sequence": whole},
    )


def _numerator():
    scenario = tokens([[-0.5]], old=[[-1.0]], advantages=[1]).replace(logp_sampler=[[[-1.2]]])
    return scenario.choose("correction", "sampler", level="token", mode="truncate", high=3.0)


def _numerator_answer(scenario):
    right = _weights(scenario)
    wrong = _weights(scenario.replace(logp_old=scenario["logp_new"]))
    return Answer(
        f"The one before the update, old over sampler: {number(right, 5)}. With the current one "
        f"in its place, {number(wrong, 5)}, the move of the update is counted twice, since the "
        "ratio has it already.",
        {"right": right, "wrong": wrong},
    )


_DAPO = PRESETS["dapo"].conventions["surrogate"]

ROWS = (
    _row("clip-fraction", "TRL", "trl pull request 3175",
         "Is every ratio outside the band clipped?",
         lambda: _moved([0.5, 0.5, 1.5, 1.5], [1, -1, 1, -1]), _fraction_answer),
    _row("bounds-or-offsets", "JustRL", "JustRL#2",
         "Is the clip range [0.8, 1.28] or [0.2, 0.28]?",
         lambda: _moved([0.5, 1.5], [-1, 1], surrogate=("clip", dict(_DAPO.options))),
         _bounds_answer),
    _row("cispo-bound", "SkyRL, TRL, Liger", "SkyRL pull requests 1928 and 553",
         "Is CISPO's bound 5, or 1 + 4? Why is the loss so small in TRL?",
         lambda: tokens([[-2.0]], advantages=[1], surrogate=(
             "cispo", {"epsilon_high": 0.2, "bound": "absolute"})), _cispo_answer),
    _row("dual-clip", "verl", "verl pull request 784",
         "Why is the loss huge where the ratio is large and the advantage negative?",
         lambda: _moved([5.0], [-1]), _unbounded_answer),
    _row("nan-gradient", "Soup", "Soup#342",
         "The loss is finite and the gradient NaN. How?", _masked_overflow, _overflow_answer),
    _row("sequence-mask", "TRL", "trl#5814, #4772",
         "Why are all long answers masked by the importance sampling ratio?",
         lambda: _sampled([0.012] * 100, "sequence"), _summed_answer),
    _row("top-p", "TRL, ms-swift", "trl#6789, ms-swift pull request 8442",
         "Why is the importance sampling ratio below 1 with top_p?",
         lambda: _sampled([math.log(0.9)] * 20, "sequence", mode="truncate"), _top_p_answer),
    _row("tis-numerator", "slime", "slime pull request 179",
         "Which policy is above the sampler in truncated importance sampling?",
         _numerator, _numerator_answer),
)  # fmt: skip
