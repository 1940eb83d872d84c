"""Findings about the value of the loss: what it hides and what it adds."""

import numpy as np

from ..errors import place
from ..numerics import times, total
from ..words import count, number, opening
from . import facts
from .row import FindingRow


def loss_zero_gradient_not(evaluation):
    """Contributions that cancel in the loss and not in the gradient."""
    size, norm = facts.turnover(evaluation), evaluation.metrics["gradient_norm"]
    if not (np.isfinite(size) and abs(evaluation.loss) <= facts.NEGLIGIBLE * size and norm > 0):
        return None
    strongest = facts.largest(np.abs(evaluation.gradient), evaluation.valid)
    return {
        "places": (strongest,),
        "loss": evaluation.loss,
        "size": size,
        "norm": norm,
        "on_policy": facts.on_policy(evaluation) and worth_its_advantage(evaluation),
    }


def worth_its_advantage(evaluation):
    """True if every token's surrogate is its advantage, times what selection and correction say."""
    expected = facts.worth_advantage(evaluation)
    apart = np.abs(evaluation.surrogate - expected)[evaluation.kept]
    return bool(np.all(apart <= facts.NEGLIGIBLE * np.abs(expected[evaluation.kept])))


def _say_loss_zero_gradient_not(figures):
    tiny = abs(figures["loss"]) <= 1e-12 * figures["size"]
    loss = "0" if tiny else f"about 0 ({number(figures['loss'])})"
    text = f"The loss is {loss}, but the gradient is not: its norm is {number(figures['norm'])}."
    if figures["on_policy"]:
        text += " At ratio 1 a token is worth its advantage, and weighted these add up to 0."
    else:
        text += " What the tokens contribute adds up to 0."
    return f"{text} Training follows the gradient, not the value of the loss."


def nothing_to_learn(evaluation):
    """Neither a loss nor a gradient."""
    if evaluation.loss != 0 or np.any(evaluation.gradient):
        return None
    return {
        "places": (),
        "tokens": bool(evaluation.kept.any()),
        "advantages": bool(np.any(evaluation.token_advantages)),
    }


def _say_nothing_to_learn(figures):
    why = "its tokens' contributions and gradients are all 0"
    if not figures["tokens"]:
        why = "no token counts"
    elif not figures["advantages"]:
        why = "every advantage is 0 and no KL term pulls"
    return f"The loss and the gradient are 0: this batch teaches nothing, because {why}."


def on_policy_loss_not_zero(evaluation):
    """At ratio 1 and without KL: the part of the loss that unequal weights make."""
    size = facts.turnover(evaluation)
    if not (_loss_of_advantages(evaluation) and facts.alike(evaluation)):
        return None
    present = evaluation.scenario["present"]
    weight = total(times(evaluation.weight, evaluation.factor), axis=2)  # (P, G), of completions
    mean = total(weight, axis=1) / np.maximum(np.sum(present, axis=1), 1)
    excess = np.where(present, weight - mean[:, None], 0)
    by_group = total(times(excess, facts.first_token(evaluation)), axis=1)  # (P,)
    if not abs(float(total(by_group))) > facts.NEGLIGIBLE * size:
        return None
    group = int(np.argmax(np.abs(by_group)))
    (heavy,) = facts.largest(weight[group], present[group])
    (light,) = facts.largest(-weight[group], present[group])
    return {
        "places": ((group, heavy), (group, light)),
        "loss": evaluation.loss,
        "equal": float(evaluation.loss + total(by_group)),
        "lengths": tuple(int(evaluation.lengths[group, i]) for i in (heavy, light)),
        "weights": tuple(float(weight[group, i]) for i in (heavy, light)),
        "size": size,
    }


def _loss_of_advantages(evaluation):
    """True if the loss is not 0 at ratio 1, and all of it is weighted advantages."""
    return loss_at_ratio_one(evaluation) and worth_its_advantage(evaluation)


def loss_at_ratio_one(evaluation):
    """True if the loss is not 0 at ratio 1, and neither KL nor entropy explains it."""
    size = facts.turnover(evaluation)
    beside = np.abs(evaluation.kl_penalty) + np.abs(evaluation.entropy_bonus)
    beside = float(total(times(evaluation.weight, beside)))
    return (
        facts.on_policy(evaluation)
        and np.isfinite(size)
        and beside <= facts.NEGLIGIBLE * size < abs(evaluation.loss)
    )


def _say_on_policy_loss_not_zero(figures):
    (_, light) = figures["places"][1]
    long, short = figures["lengths"]
    heavy_weight, light_weight = figures["weights"]
    equal = 0.0 if abs(figures["equal"]) <= 1e-12 * figures["size"] else figures["equal"]
    factor = (
        f"{number(heavy_weight / light_weight)} times as much as" if light_weight else "more than"
    )
    return (
        f"Every ratio is 1, yet the loss is {number(figures['loss'])}: the completions do not "
        f"weigh the same. {opening(place(figures['places'][0]))} with "
        f"{count(long, 'token')} weighs {factor} completion {light} with "
        f"{count(short, 'token')}. With equal weights the loss would be {number(equal)}."
    )


def on_policy_loss_of_tokens(evaluation):
    """At ratio 1 and without KL: a loss because tokens have advantages of their own."""
    if not _loss_of_advantages(evaluation) or facts.alike(evaluation):
        return None
    whole = np.where(evaluation.valid, facts.first_token(evaluation)[..., None], 0.0)
    weight = times(evaluation.weight, evaluation.factor)
    own = times(weight, evaluation.token_advantages - whole)
    apart = total(own, axis=2)  # (P, G)
    if not abs(float(total(apart))) > facts.NEGLIGIBLE * facts.turnover(evaluation):
        return None
    worst = facts.largest(np.abs(apart), evaluation.scenario["present"])
    return {
        "places": (worst,),
        "loss": evaluation.loss,
        "alike": float(evaluation.loss + total(apart)),
        "size": facts.turnover(evaluation),
        "advantages": _ends(evaluation, worst),
    }


def _ends(evaluation, where):
    """Advantages of a completion's first and last token that counts."""
    own = evaluation.token_advantages[where][evaluation.valid[where]]
    return float(own[0]), float(own[-1])


def _say_on_policy_loss_of_tokens(figures):
    first, last = figures["advantages"]
    alike = 0.0 if abs(figures["alike"]) <= 1e-12 * figures["size"] else figures["alike"]
    return (
        f"Every ratio is 1, yet the loss is {number(figures['loss'])}: the tokens of a completion "
        f"do not share one advantage. {opening(place(figures['places'][0]))} goes from "
        f"{number(first)} at its first token to {number(last)} at its last. If all tokens had "
        f"what the first one has, the loss would be {number(alike)}."
    )


ROWS = (
    FindingRow(
        code="nothing_to_learn",
        severity="warning",
        page="Objective",
        question="Why is the loss 0?",
        find=nothing_to_learn,
        sentence=_say_nothing_to_learn,
    ),
    FindingRow(
        code="loss_zero_gradient_not",
        severity="note",
        page="Objective",
        question="Why is the loss 0?",
        find=loss_zero_gradient_not,
        sentence=_say_loss_zero_gradient_not,
    ),
    FindingRow(
        code="on_policy_loss_not_zero",
        severity="note",
        page="Objective",
        question="Why is the loss not 0?",
        find=on_policy_loss_not_zero,
        sentence=_say_on_policy_loss_not_zero,
    ),
    FindingRow(
        code="on_policy_loss_of_tokens",
        severity="note",
        page="Objective",
        question="Why is the loss not 0?",
        find=on_policy_loss_of_tokens,
        sentence=_say_on_policy_loss_of_tokens,
    ),
)
