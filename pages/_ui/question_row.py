"""A public question: what was asked and where, the smallest batch that shows it, the answer."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grpo_core import Conventions, build_scenario

from .numbers import number

NO_KL = ("k3", {"beta": 0.0})
ITSELF = "uncompared"  # the rewards of the small batch are its advantages


@dataclass(frozen=True)
class Answer:
    """A sentence, and the numbers in it under names."""

    text: str
    numbers: dict


@dataclass(frozen=True)
class Question:
    """One row of `QUESTIONS`.

    ``thread`` names the public report; ``build`` gives the batch under the conventions that
    were asked about, ``solve`` takes it and gives the `Answer`, whose numbers are computed.
    """

    key: str
    framework: str
    thread: str
    asks: str
    build: Callable
    solve: Callable
    topic: str

    @cached_property
    def scenario(self):
        """The small batch."""
        return self.build()

    @cached_property
    def answer(self):
        """What the numbers of the batch say."""
        return self.solve(self.scenario)


def listed(values, digits=5):
    """A few numbers in a row; one, where three or more are all alike."""
    texts = [number(value, digits) for value in np.asarray(values).ravel().tolist()]
    return texts[0] if len(set(texts)) == 1 and len(texts) > 2 else ", ".join(texts)


def group(rewards, **choices):
    """One group, or several, judged by their rewards alone: one token each."""
    rewards = np.atleast_2d(np.array(rewards, dtype=np.float64))
    return build_scenario(rewards=rewards, conventions=Conventions.of(kl=NO_KL, **choices))


def on_policy(advantages, lengths, **choices):
    """A batch whose ratios are all 1, so that a token's loss is less its advantage.

    ``advantages`` and ``lengths`` are (P, G); all log-probabilities are -1.
    """
    lengths = np.atleast_2d(lengths)
    mask = np.arange(lengths.max()) < lengths[..., None]
    choices = {"kl": NO_KL, "advantage": ITSELF, **choices}
    return build_scenario(
        rewards=np.atleast_2d(np.array(advantages, dtype=np.float64)),
        logp_new=np.full(mask.shape, -1.0),
        mask=mask,
        conventions=Conventions.of(**choices),
    )


def tokens(new, *, old=None, ref=None, advantages=None, mask=None, **choices):
    """Completions of one prompt from log-probabilities (G, L), with their advantages (G,)."""
    new = np.array([new], dtype=np.float64)
    G = new.shape[1]

    def beside(values):
        return new if values is None else np.array([values], dtype=np.float64)

    choices = {"kl": NO_KL, "advantage": ITSELF, **choices}
    return build_scenario(
        rewards=[[0.0] * G if advantages is None else advantages],
        logp_new=new,
        logp_old=beside(old),
        logp_ref=beside(ref),
        mask=None if mask is None else [mask],
        conventions=Conventions.of(**choices),
    )
