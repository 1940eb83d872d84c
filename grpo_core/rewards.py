"""Stage *rewards*: from what was scored to the scores that a group is judged by."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from .combination import normalised_sum, sum_of_normalised, terms_added
from .components import Components, components
from .numerics import cast, total
from .variants import Number, OneOf, Option, Variant, table


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores (P, G), and which completions have one.

    Where scores are combined from components, ``combine(batch, normalise)`` gives the
    advantages, see `grpo_core.combination`; ``scores`` is their weighted sum. ``apart`` are
    pairs (values, known) of components that are judged on their own.
    """

    scores: np.ndarray
    scored: np.ndarray
    components: Components | None = None
    combine: Callable | None = None
    apart: tuple = ()

    @property
    def tied(self):
        """Groups of two or more scores that are all equal, also in what is judged apart; (P,)."""
        several = np.sum(self.scored, axis=1) > 1
        each = [lowest_and_highest(*pair) for pair in ((self.scores, self.scored), *self.apart)]
        return several & np.all([low == high for low, high in each], axis=0)


def lowest_and_highest(values, among):
    """Smallest and largest of the flagged values of each group, 0 and 0 without one; both (P,)."""
    some = among.any(axis=1)
    low = np.min(np.where(among, values, np.inf), axis=1)
    high = np.max(np.where(among, values, -np.inf), axis=1)
    return np.where(some, low, 0.0), np.where(some, high, 0.0)


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


def sum_then_normalize(batch, reward_penalty, **options):
    """Weighted sum of task reward and terms, judged as one score."""
    return _combined(batch, reward_penalty, normalised_sum, **options)


def normalize_then_sum(batch, reward_penalty, *, batch_scale, batch_eps, **options):
    """Task reward and terms each judged on its own, then summed with their weights."""
    combine = partial(sum_of_normalised, batch_scale=batch_scale, batch_eps=batch_eps)
    return _combined(batch, reward_penalty, combine, apart=True, **options)


def add_after(batch, reward_penalty, **options):
    """The task reward judged alone; weighted terms are added to its advantage."""
    return _combined(batch, reward_penalty, terms_added, apart=True, **options)


def _combined(batch, reward_penalty, combine, apart=False, **options):
    parts = components(batch, reward_penalty, **options)
    summed = total(np.moveaxis(parts.weighted, 0, -1), axis=-1)
    return Scores(
        scores=cast(np.where(parts.scored, summed, 0.0), batch.dtype),
        scored=parts.scored,
        components=parts,
        combine=partial(combine, parts),
        apart=tuple(zip(parts.weighted, parts.known, strict=True)) if apart else (),
    )


_MISSING = Option(
    key="missing",
    default="leave_out",
    domain=OneOf({"leave_out": "left out of the group", "as_zero": "counted as reward 0"}),
    label="Missing reward",
    help="A completion that no reward function scored: leave it out of its group's mean and std "
    "and give it advantage 0, or count it as reward 0. Of several rewards, one that is missing "
    "adds nothing to a sum, and is left out of its own mean and std.",
    trl="left out (since 1.x)",
    verl="not handled: NaN spreads over the group",
)
_COMBINED = (
    Option(
        key="task_weight",
        default=1.0,
        domain=Number(low=-1e6, high=1e6),
        label="Weight of the task",
        help="What the task reward is multiplied by; each term has a weight of its own.",
        trl="the first of reward_weights",
        verl="1, fixed",
    ),
    _MISSING,
    Option(
        key="tokens",
        default="to_go",
        domain=OneOf({"to_go": "as returns to go", "sum": "summed over the completion"}),
        label="Terms per token",
        help="As returns to go, a token answers only for what is earned from it on: what was "
        "earned before it is taken off. Mean and std are those of whole sums either way.",
        trl="not in its GRPO trainer",
        verl="summed (grpo)",
    ),
)

REWARDS = table(
    Variant(
        key="outcome",
        label="one reward per completion",
        function=outcome,
        formula=r"R_i = r_i - \sum_t p_{i,t}",
        source="DeepSeekMath (arXiv 2402.03300) section 4.1.2; p is the KL penalty where it "
        "is placed in the reward, else 0",
        trl="reward_funcs, one function",
        verl="token_level_rewards summed over the response",
        choose_when="A verifier or reward model scores the whole answer.",
        options=(_MISSING,),
    ),
    Variant(
        key="sum_then_normalize",
        label="with terms: summed, then normalised",
        function=sum_then_normalize,
        formula=r"R_i = w_0 r_i + \sum_k w_k f_{i,k} - \sum_t p_{i,t}",
        source="TRL GRPOTrainer, multi_objective_aggregation",
        trl='multi_objective_aggregation="sum_then_normalize", reward_weights',
        verl="a reward function that returns the sum",
        choose_when="One total is what you want raised. In a group tied in the task, a term of "
        "any weight well above eps pushes at full strength.",
        options=_COMBINED,
    ),
    Variant(
        key="normalize_then_sum",
        label="with terms: each normalised, then summed",
        function=normalize_then_sum,
        formula=r"A_i = w_0 A_i(r) + \sum_k w_k A_i(f_k)",
        source="GDPO (arXiv 2601.05242); A(.) is the advantage formula on one component",
        trl='multi_objective_aggregation="normalize_then_sum"',
        verl="adv_estimator=gdpo",
        choose_when="Weights should say how strongly each term pushes, also in groups tied in "
        "the task.",
        options=(
            *_COMBINED,
            Option(
                key="batch_scale",
                default="none",
                domain=OneOf(
                    {
                        "none": "none",
                        "completion": "over all completions",
                        "token": "over all tokens",
                    }
                ),
                label="Then over the batch",
                help="A second normalisation of the sums, by the sample std of the whole batch.",
                trl="over all completions",
                verl="over all tokens (masked_whiten)",
            ),
            Option(
                key="batch_eps",
                default=1e-4,
                domain=Number(low=0.0, high=1e6),
                label="eps of the batch",
                help="Added to the std over completions; its square is added to the variance "
                "over tokens.",
                trl="1e-4",
                verl="1e-4: 1e-8 on the variance",
            ),
        ),
    ),
    Variant(
        key="add_after",
        label="with terms: added after normalising",
        function=add_after,
        formula=r"A_i = A_i(w_0 r) + \sum_k w_k f_{i,k}",
        source="the task reward alone is judged by its group; terms keep their scale and mean",
        trl="not offered",
        verl="not offered",
        choose_when="A term is in units of an advantage already, and must not be rescaled.",
        options=_COMBINED,
    ),
)
