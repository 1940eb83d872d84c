"""What an evaluation holds, by name: for the chain, the script and the tables alike."""

from dataclasses import fields

import numpy as np

from grpo_core import Evaluation
from grpo_core.scenario import as_batch

# Arrays and numbers of an Evaluation, in the order in which they are computed.
RESULTS = tuple(
    field.name for field in fields(Evaluation) if field.name not in ("scenario", "metrics")
)


def per_token(evaluation):
    """Names of the results that have a value at each token, in order."""
    return [name for name in RESULTS if name != "valid" and np.ndim(getattr(evaluation, name)) == 3]


def kl_in_reward(evaluation):
    """True if the KL penalty is part of the reward, false if it is part of the objective.

    A KL row that does not leave the choice is asked by its numbers.
    """
    place = evaluation.scenario.conventions["kl"].options.get("place")
    return bool(np.any(evaluation.reward_penalty)) if place is None else place == "reward"


@np.errstate(under="ignore")
def surrogate_slope(evaluation):
    """``d surrogate / d ratio`` of each token (P, G, L), as the chosen surrogate gives it."""
    conventions = evaluation.scenario.conventions
    batch, _ = as_batch(evaluation.scenario)
    ratio = conventions.run("ratio", batch)
    return conventions.run("surrogate", batch, ratio, evaluation.token_advantages).d_ratio
