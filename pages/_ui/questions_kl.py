"""Questions on the KL term: its sign, its size, and whose gradient it has."""

import math
from functools import partial

import numpy as np

from grpo_core import evaluate

from .numbers import number
from .question_row import Answer, Question, listed, tokens

_row = partial(Question, topic="KL to the reference")


def _kl(scenario, variant=None, **options):
    changed = scenario.choose("kl", variant, **options) if variant or options else scenario
    return evaluate(changed)


def _negative_answer(scenario):
    found = {key: _kl(scenario, key).mean_kl for key in ("k1", "abs", "k2", "k3")}
    return Answer(
        f"k1 of one token is a signed number, {number(found['k1'])} here; only its mean over many "
        f"samples is a KL. abs gives {number(found['abs'])}, k2 {number(found['k2'])}, k3 "
        f"{number(found['k3'])}.",
        found,
    )


def _plus_answer(scenario):
    e = evaluate(scenario)
    own = evaluate(scenario.choose("kl", gradient="own"))
    slope, plain = -e.kl_gradient[0, 0, 0], -own.kl_gradient[0, 0, 0]
    return Answer(
        f"The value of k3, {number(e.mean_kl, 6)}, with the gradient of k2: {number(slope)} by "
        f"log π, where k3's own is {number(plain, 6)}.",
        {"value": e.mean_kl, "slope": slope, "own": plain},
    )


def _far():
    far = [[-5.0], [-20.0], [-89.0]]
    return tokens(far, ref=[[0.0]] * 3, kl=("k3", {"beta": 0.0}))


def _far_answer(scenario):
    kl = evaluate(scenario).kl[0, :, 0]
    held = _kl(scenario, clamp_in=20.0, clamp_out=10.0).kl[0, :, 0]
    keys = ("rewards", "logp_new", "logp_old", "logp_ref")
    narrow = scenario.replace(**{key: scenario[key].astype(np.float32) for key in keys})
    single = evaluate(narrow).kl[0, :, 0]
    return Answer(
        f"k3 grows like e^d: 5, 20 and 89 nats below the reference it is {listed(kl, 5)}, and the "
        f"last is {number(float(single[2]))} in float32. verl and NeMo-RL hold it at "
        f"{number(held[2])}; nothing pulls there any more.",
        {"kl": kl, "held": held, "float32": single},
    )


def _infinite_answer(scenario):
    kl = evaluate(scenario).kl[0, 0]
    at = int(np.argmax(np.isinf(kl)))
    return Answer(
        f"One log-probability of the reference is −inf, at token {at}: k3 is {listed(kl)}, and the "
        "mean over such a batch is not finite. The threads do not settle where it came from; look "
        "for the first token like it.",
        {"kl": kl, "at": at},
    )


def _two_answers(**choices):
    """A policy of 1/2 and 1/2, each of its two tokens sampled once; reference 0.9 and 0.1."""
    half = math.log(0.5)
    return tokens([[half], [half]], ref=[[math.log(0.9)], [math.log(0.1)]], **choices)


def _estimate_answer(scenario):
    e = evaluate(scenario)
    p, q = np.exp(e.logp_new[0, :, 0]), np.exp(e.logp_ref[0, :, 0])
    exact = float(np.sum(p * np.log(p / q)))
    return Answer(
        f"The KL of (0.5, 0.5) to (0.9, 0.1) is {number(exact, 6)}. k3 of the two tokens is "
        f"{listed(e.kl[0, :, 0], 6)}: neither is the KL, their mean under the policy is, "
        f"{number(e.mean_kl, 6)}.",
        {"exact": exact, "kl": e.kl[0, :, 0], "mean": e.mean_kl},
    )


# Change of the two log-probabilities, (1/2, 1/2), with the logit of the first.
_BY_LOGIT = np.array([0.5, -0.5])


def _k1_answer(scenario):
    by_logit = {
        key: float(np.sum(-_kl(scenario, key, beta=1.0).kl_gradient[0, :, 0] * _BY_LOGIT))
        for key in ("k1", "k2")
    }
    return Answer(
        f"In the loss k1 has no gradient on average: by the first logit the mean over both tokens "
        f"is {number(by_logit['k1'])}. That of k2 is {number(by_logit['k2'])}, which is the "
        "gradient of the KL. What is left of k1 is noise, and beta makes it louder.",
        by_logit,
    )


ROWS = (
    _row("negative-kl", "TRL, spinningup", "trl#1161, spinningup#292",
         "How can the KL be negative?",
         lambda: tokens([[-2.0]], ref=[[-1.0]], kl=("k1", {"beta": 0.0})), _negative_answer),
    _row("this-is-not-kl", "TRL", "trl#2854, #3104",
         "Is this a KL at all? It reads one token only.",
         lambda: _two_answers(kl=("k3", {"beta": 0.04})), _estimate_answer),
    _row("kl-explodes", "TRL, torchforge, OpenRLHF", "trl#3015, OpenRLHF#931",
         "Why does the KL jump to a million, or to infinity?", _far, _far_answer),
    _row("kl-nan", "open-r1, ms-swift", "open-r1#704, ms-swift#8378",
         "The KL is NaN from the first step. Where does it come from?",
         lambda: tokens([[-1.0, -1.0]], ref=[[-1.0, -math.inf]]), _infinite_answer),
    _row("k3-plus", "verl", "verl pull request 6058",
         "What does kl_loss_type k3+ compute?",
         lambda: tokens([[-2.0]], ref=[[-1.0]], kl=("k3", {"beta": 1.0, "gradient": "k2"})),
         _plus_answer),
    _row("k1-in-the-loss", "open-instruct", "open-instruct#534",
         "Why does the KL rise when beta rises?",
         lambda: _two_answers(kl=("k1", {"beta": 1.0})), _k1_answer),
)  # fmt: skip
