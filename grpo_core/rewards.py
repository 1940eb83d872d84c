"""Stage *rewards*: from what was scored to the scores that a group is judged by."""

from dataclasses import dataclass

import numpy as np

from .numerics import cast, total
from .variants import OneOf, Option, Variant, table


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores (P, G), and which completions have one."""

    scores: np.ndarray
    scored: np.ndarray


def outcome(batch, reward_penalty, *, missing):
    """One reward per completion, less the penalty that a KL term puts into it.

    Parameters
    ----------
    batch : Batch
    reward_penalty : ndarray, shape (P, G, L)
        Summed over the completion's tokens and subtracted before the baseline.
    missing : {'leave_out', 'as_zero'}
        What a NaN reward counts as.

    Returns
    -------
    Scores
        Completions without a score hold 0 and are not ``scored``.
    """
    known = ~np.isnan(batch.rewards)
    scored = batch.present & (known | (missing == "as_zero"))
    rewards = np.where(known, batch.rewards, batch.dtype.type(0))
    # Negated before the sum, so that infinite penalties of both signs give -inf, not +inf.
    penalty = cast(total(-reward_penalty, axis=-1), batch.dtype)
    with np.errstate(over="ignore"):
        return Scores(np.where(scored, rewards + penalty, batch.dtype.type(0)), scored)


REWARDS = table(
    Variant(
        key="outcome",
        label="one reward per completion",
        function=outcome,
        formula=r"R_i = r_i - \sum_t p_{i,t}",
        source="DeepSeekMath (arXiv 2402.03300) section 4.1.2; p is the KL penalty where it "
        "is placed in the reward, else 0",
        trl="reward_funcs, weighted sum",
        verl="token_level_rewards summed over the response",
        choose_when="A verifier or reward model scores the whole answer.",
        options=(
            Option(
                key="missing",
                default="leave_out",
                domain=OneOf(
                    {"leave_out": "left out of the group", "as_zero": "counted as reward 0"}
                ),
                label="Missing reward",
                help="A completion that no reward function scored: leave it out of its "
                "group's mean and std and give it advantage 0, or count it as reward 0.",
                trl="left out (since 1.x)",
                verl="not handled: NaN spreads over the group",
            ),
        ),
    )
)
