"""Made-up groups, judged by the core's own stages."""

import numpy as np

from .errors import ScenarioError
from .prompt_rewards import compositions, multinomial
from .scenario import as_batch, build_scenario


def judge(rewards, conventions):
    """Advantages of groups that exist only as rewards, by the rows that are chosen.

    Parameters
    ----------
    rewards : ndarray, shape (N, G)
        A group in each row.
    conventions : Conventions
        Its stages *rewards* and *advantage* are run.

    Returns
    -------
    ndarray, shape (N, G)

    Raises
    ------
    ScenarioError
        The advantage row reads more than rewards, such as steps.
    """
    row = conventions.variant("advantage")
    if row.needs:
        raise ScenarioError(
            f"advantage is set to {row.key!r}, which reads {', '.join(row.needs)}; wanted one that "
            "follows from rewards alone",
            field="advantage",
        )
    batch, _ = as_batch(build_scenario(rewards=rewards))
    scores = conventions.run("rewards", batch, np.zeros(batch.valid.shape))
    return conventions.run("advantage", batch, scores).advantages


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
