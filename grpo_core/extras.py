"""Stages *entropy* and *accumulation*: a bonus beside the policy term, and a last factor."""

import numpy as np

from .numerics import times
from .variants import Number, Option, Variant, table


def no_bonus(batch):
    """Nothing."""
    return np.zeros(batch.valid.shape, batch.dtype)


def bonus(batch, *, coefficient):
    """``coefficient * entropy`` of each token, added to the per-token objective.

    Entropy is a sum over the whole vocabulary. The log-probability of the sampled token says
    nothing of its gradient, which is left out here.
    """
    return np.where(batch.valid, times(batch.dtype.type(coefficient), batch.entropy), 0)


def factor(batch, *, factor):
    """A number that the whole objective is multiplied by."""
    return batch.dtype.type(factor)


ENTROPIES = table(
    Variant(
        key="none",
        label="none",
        function=no_bonus,
        formula=r"0",
        source="the default",
        trl="entropy_coef=0.0",
        verl="entropy_coeff=0",
        choose_when="Sampling stays varied enough without being paid for it.",
    ),
    Variant(
        key="bonus",
        label="entropy bonus",
        function=bonus,
        formula=r"c_H\,H_t",
        source="A3C (arXiv 1602.01783); verl entropy_coeff",
        trl="entropy_coef",
        verl="entropy_coeff",
        choose_when="The policy narrows too fast.",
        options=(
            Option(
                key="coefficient",
                default=0.001,
                domain=Number(low=-1e3, high=1e3),
                label="Entropy coefficient",
                help="In the objective the bonus is averaged like the policy term.",
                trl="entropy_coef=0.0 (mean over tokens)",
                verl="entropy_coeff=0 (as loss_agg_mode)",
            ),
        ),
        needs=("entropy",),
    ),
)

ACCUMULATIONS = table(
    Variant(
        key="factor",
        label="one factor",
        function=factor,
        formula=r"\times\,\mathrm{factor}",
        source="gradient accumulation: 1 / steps for a loss that is averaged per micro-batch",
        trl="1 / gradient_accumulation_steps, except in dapo, cispo and vespo",
        verl="1 / micro-batches, unless normalised globally",
        choose_when="What is shown is one of several micro-batches of an update.",
        options=(
            Option(
                key="factor",
                default=1.0,
                domain=Number(low=0.0, high=1e6),
                label="Factor of the loss",
                help="1 over the number of micro-batches, as a rule.",
                trl="1 / gradient_accumulation_steps",
                verl="1 / micro-batches",
            ),
        ),
    ),
)
