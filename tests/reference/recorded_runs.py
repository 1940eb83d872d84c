"""Batches recorded inside TRL's trainer: the loss that it logged, and the advantages.

The settings are those of the two recorded runs: beta 0.02, clip range 0.2, loss averaged per
completion, advantages over the sample standard deviation plus 1e-4.
"""

import numpy as np

from grpo_core import Conventions, build_scenario, evaluate
from tests.reference.recorded import Check

SETTING = {
    "kl": ("k3", {"beta": 0.02}),
    "aggregation": "completion_mean",
}
RECOMPUTED = ("mean_std", {"ddof": 1, "eps": 1e-4})
LOSS, ADVANTAGES, RESIDUE = 1e-6, 1e-5, 1e-6


def checks(path):
    """Loss with the logged advantages; advantages from the rewards; what tied groups leave."""
    with np.load(path, allow_pickle=False) as recorded:
        arrays = {key: recorded[key] for key in recorded.files}
    scenario = build_scenario(
        **{key: arrays[key] for key in ("logp_new", "logp_old", "logp_ref", "mask")},
        rewards=np.sum(arrays["rewards_per_term"] * _weights(arrays), axis=-1),
        advantages=arrays["advantages"],
    )
    logged = evaluate(scenario.with_conventions(Conventions.of(**SETTING, advantage="given")))
    own = evaluate(scenario.with_conventions(Conventions.of(**SETTING, advantage=RECOMPUTED)))
    tied = own.tied[:, None]
    yield Check("loss with the logged advantages", arrays["loss"], logged.loss, 0, LOSS)
    apart = np.where(tied, 0.0, arrays["advantages"])
    yield Check("advantages of groups that are not tied", apart, own.advantages, 0, ADVANTAGES)
    # What is left of the difference in the loss is the residue of the tied groups.
    residue = scenario.replace(advantages=np.where(tied, 0.0, scenario["advantages"]))
    without = evaluate(residue.with_conventions(Conventions.of(**SETTING, advantage="given")))
    yield Check("loss without the residue of tied groups", without.loss, own.loss, 0, RESIDUE)


def _weights(arrays):
    """Weights of the terms, from the logged sums: two terms, the first of weight 1."""
    terms, total = arrays["rewards_per_term"], arrays["rewards"]
    rest = (total - terms[..., 0])[terms[..., 1] != 0] / terms[..., 1][terms[..., 1] != 0]
    return np.array([1.0, np.round(np.median(rest), 6)])
