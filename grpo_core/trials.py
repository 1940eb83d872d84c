"""Made-up groups, judged by the core's own stages."""

import numpy as np

from .errors import ScenarioError
from .prompt_rewards import compositions, multinomial
from .scenario import as_batch, build_scenario
from .stages import STAGES

# What makes an advantage follow from more than the rewards of its own group: stage, row, and
# the option that does so unless it is at its default (None: the row does in any case).
BEYOND_GROUP = (
    ("rewards", "normalize_then_sum", "batch_scale"),
    ("advantage", "batch_std", None),
    ("advantage", "nonzero_scaled", None),
    ("advantage", "length_weighted", None),
    ("advantage", "returns", "gamma"),
    ("whitening", "tokens", None),
)


def first_chosen(conventions, rows):
    """The choice that is among rows like those of `BEYOND_GROUP`, in words; "" for none."""
    for stage, variant, option in rows:
        choice = conventions[stage]
        if choice.variant != variant:
            continue
        if option is None:
            return f"{stage} set to {variant!r}"
        default = conventions.variant(stage).option(option).default
        if choice.options[option] != default:
            return f"{option} of {variant!r} set to {choice.options[option]!r}"
    return ""


def made_up(conventions):
    """Conventions for a batch that is made up: no row that reads what only a run records.

    Such a row gives way to its stage's default, save that of the advantage.
    """
    for stage in STAGES:
        if stage != "advantage" and conventions.variant(stage).needs:
            conventions = conventions.replace(stage, STAGES[stage].default)
    return conventions


def judge(rewards, conventions):
    """Advantages of groups that exist only as rewards, by the rows that are chosen.

    Parameters
    ----------
    rewards : ndarray, shape (N, G)
        A group in each row.
    conventions : Conventions
        Its stages *rewards*, *advantage* and *whitening* are run.

    Returns
    -------
    ndarray, shape (N, G)

    Raises
    ------
    ScenarioError
        The advantages read more than the rewards of their own group: steps, or the rest of the
        batch, see `BEYOND_GROUP`.
    """
    row = conventions.variant("advantage")
    beyond = first_chosen(conventions, BEYOND_GROUP)
    if row.needs:
        beyond = f"advantage set to {row.key!r}, which reads {', '.join(row.needs)}"
    if beyond:
        raise ScenarioError(
            f"{beyond}; wanted advantages that follow from the rewards of a group alone",
            field="advantage",
        )
    batch, _ = as_batch(build_scenario(rewards=rewards))
    scores = conventions.run("rewards", batch, np.zeros(batch.valid.shape))
    advantages = conventions.run("advantage", batch, scores).token_advantages
    return conventions.run("whitening", batch, advantages, np.zeros_like(advantages))[..., 0]


def judge_groups(rewards, conventions):
    """Advantages of sampled groups, shape (N, P, G), see `judge`."""
    return judge(rewards.reshape(-1, rewards.shape[2]), conventions).reshape(rewards.shape)


def by_count(G, conventions):
    """Advantages in a group of G of which k are right (reward 1) and the others wrong (0).

    Returns
    -------
    right, wrong : ndarray, shape (G + 1,)
        Of a right and of a wrong answer, by k; 0 where there is none such.
    """
    k = np.arange(G + 1)
    advantages = judge((np.arange(G) < k[:, None]).astype(np.float64), conventions)
    return np.where(k > 0, advantages[:, 0], 0.0), np.where(k < G, advantages[:, -1], 0.0)


def binomial(n, rate):
    """Chance of 0, 1, ... n successes in n draws; exact at rates 0 and 1. Shape (n + 1,)."""
    return multinomial(compositions(n, 2), np.array([[rate, 1 - rate]]))[0]
