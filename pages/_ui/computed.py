"""What an evaluation holds, and what its stages handed on: for chain, script and tables."""

from dataclasses import fields, replace
from functools import cached_property

import numpy as np

from grpo_core import STAGES, Evaluation
from grpo_core.evaluation import in_returns
from grpo_core.scenario import as_batch

# Arrays and numbers of an Evaluation, in the order in which they are computed.
RESULTS = tuple(
    field.name for field in fields(Evaluation) if field.name not in ("scenario", "metrics")
)

# Rows that may change nothing, and whether their options leave it at that.
_AT_REST = {
    ("whitening", "none"): lambda options: not options["limit"],
    ("truncated", "keep"): lambda options: True,
    ("tied", "keep"): lambda options: True,
    ("selection", "all"): lambda options: True,
    ("correction", "none"): lambda options: True,
    ("entropy", "none"): lambda options: True,
    ("accumulation", "factor"): lambda options: options["factor"] == 1,
}


def acts(conventions, stage):
    """False for a stage that leaves everything as it is, such as whitening by *none*."""
    choice = conventions[stage]
    at_rest = _AT_REST.get((stage, choice.variant))
    return at_rest is None or not at_rest(choice.options)


def held_within(conventions):
    """What advantages are held within before a KL is taken off them; 0: not held."""
    options = conventions["whitening"].options
    return options.get("before" if "before" in options else "limit", 0.0)


def per_token(evaluation):
    """Names of the results that have a value at each token, in order."""
    return [name for name in RESULTS if name != "valid" and np.ndim(getattr(evaluation, name)) == 3]


def kl_place(evaluation):
    """Where the KL penalty enters: ``objective``, ``reward`` or ``returns``.

    A KL row that does not leave the choice is asked by its numbers.
    """
    place = evaluation.scenario.conventions["kl"].options.get("place")
    if place is not None:
        return place
    kl = Between(evaluation).kl
    if np.any(kl.return_penalty):
        return "returns"
    return "reward" if np.any(kl.reward_penalty) else "objective"


def kl_in_reward(evaluation):
    """True if the KL penalty is part of the reward."""
    return kl_place(evaluation) == "reward"


class Between:
    """What the stages of an evaluation handed on, where the evaluation does not keep it."""

    def __init__(self, evaluation):
        self._evaluation = evaluation
        self._conventions = evaluation.scenario.conventions

    @np.errstate(under="ignore")
    def _run(self, stage, *inputs):
        return self._conventions.run(stage, *inputs)

    @cached_property
    def batch(self):
        return as_batch(self._evaluation.scenario)[0]

    @cached_property
    def ratio(self):
        return self._run("ratio", self.batch)

    @cached_property
    def kl(self):
        return self._run("kl", self.batch, self.ratio)

    @cached_property
    def scores(self):
        return self._run("rewards", self.batch, self._evaluation.reward_penalty)

    @cached_property
    def advantages(self):
        return self._run("advantage", self.batch, self.scores)

    @cached_property
    def taken(self):
        """What the KL in the returns takes off the advantages, (P, G, L)."""
        return in_returns(self.batch, self.kl)

    @cached_property
    def held(self):
        """Advantages per token within their limit, before the KL is taken off, (P, G, L)."""
        return self._held(np.zeros_like(self.taken))

    @cached_property
    def unwhitened(self):
        """The same less the KL in the returns, (P, G, L)."""
        return self._held(self.taken)

    def _held(self, taken):
        limit = held_within(self._conventions)
        plain = STAGES["whitening"].variants["none"].function
        return plain(self.batch, self.advantages.token_advantages, taken, limit=limit)

    @cached_property
    def truncated(self):
        return self._run("truncated", self.batch, self.scores, self.advantages)

    @cached_property
    def tied(self):
        return self._run("tied", self.batch, self.scores, self.advantages)

    @cached_property
    def counted(self):
        """Tokens that the denominators of the loss count, bool (P, G, L)."""
        return self.truncated.counted & self.tied.counted

    @cached_property
    def selection(self):
        found = self._run("selection", self.batch, self._evaluation.token_advantages)
        return found.astype(self.batch.dtype)

    @cached_property
    def correction(self):
        return self._run("correction", self.batch)

    @cached_property
    def surrogate(self):
        """Before selection and correction."""
        return self._run("surrogate", self.batch, self.ratio, self._evaluation.token_advantages)

    @cached_property
    def aggregated(self):
        """Weights of the aggregation alone, (P, G, L)."""
        return self._run("aggregation", replace(self.batch, valid=self.counted))
