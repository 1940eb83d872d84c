"""The noise of the policy gradient under each baseline, by seeded simulation."""

from dataclasses import dataclass

import numpy as np

from .baselines import BASELINES, GROUP, Baseline, BaselineOptions
from .errors import ScenarioError
from .inputs import checked_number
from .variants import Number

GROUPS = Number(low=2, high=200_000, integer=True)
SEED = Number(low=0, high=999_999, integer=True)
_CELLS = 2_000_000  # numbers held at once while sampling
_KEPT = 20_000_000  # gradients kept until their moments are taken


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledNoise:
    """Moments of sampled gradients, with a standard error each; shapes as in `Noise`."""

    row: Baseline
    groups: int
    mean: np.ndarray
    mean_error: np.ndarray
    variance: np.ndarray
    variance_error: np.ndarray


def sampled_noise(policy, G, options=None, *, groups=4000, seed=0):
    """The same by simulation: many groups, all baselines on the same samples.

    Parameters
    ----------
    policy : AnswerPolicy
    G : int
    options : BaselineOptions, optional
    groups : int
        How many groups are sampled for each prompt.
    seed : int

    Returns
    -------
    dict of str to SampledNoise
    """
    G, options = checked_number("G", G, GROUP), options or BaselineOptions()
    groups, seed = checked_number("groups", groups, GROUPS), checked_number("seed", seed, SEED)
    P, _, D = policy.scores.shape
    if groups * P * D > _KEPT:
        raise ScenarioError(
            f"{groups} groups of {P} prompts are too many at once; wanted at most "
            f"{_KEPT // (P * D)}",
            field="groups",
        )
    found = {key: np.empty((groups, P, D)) for key in BASELINES}
    for chunk, answers in _drawn(policy, G, groups, seed):
        rewards, scores = _outcomes(policy, answers)
        for key, row in BASELINES.items():
            advantages = row.advantages(rewards, policy, options)
            found[key][chunk] = np.einsum("npg,npgd->npd", advantages, scores) / G
    return {key: _sampled(row, found[key]) for key, row in BASELINES.items()}


def value_estimates(policy, G, *, groups=200, seed=0):
    """What group means say about the true value: sampled means of G rewards, (groups, P)."""
    G = checked_number("G", G, GROUP)
    groups, seed = checked_number("groups", groups, GROUPS), checked_number("seed", seed, SEED)
    means = [
        np.mean(_outcomes(policy, answers)[0], axis=2)
        for _, answers in _drawn(policy, G, groups, seed)
    ]
    return np.concatenate(means)


def _drawn(policy, G, groups, seed):
    """Chunks of sampled answers (n, P, G), with the slice of groups that each fills."""
    rng = np.random.default_rng(seed)
    P, K, D = policy.scores.shape
    step = max(_CELLS // (P * G * max(K, D)), 1)
    prompts = np.broadcast_to(np.arange(P), (step, P))
    for start in range(0, groups, step):
        chunk = slice(start, min(start + step, groups))
        yield chunk, draw_answers(policy, rng, prompts[: chunk.stop - start], G)


def draw_answers(policy, rng, prompts, G):
    """Sampled answers (n, P, G) to prompts given as indices (n, P); never one of probability 0."""
    p = policy.probabilities
    edges = np.cumsum(p, axis=1)
    after = np.cumsum(p[:, ::-1], axis=1)[:, ::-1] - p  # mass of the answers behind
    edges = np.where(after > 0, edges, np.inf)
    uniform = rng.random((*prompts.shape, G))
    return np.sum(uniform[..., None] >= edges[prompts][:, :, None, :], axis=3)


def _outcomes(policy, answers):
    prompt = np.arange(answers.shape[1])[None, :, None]
    return policy.rewards[prompt, answers], policy.scores[prompt, answers]


def _sampled(row, gradients):
    n = len(gradients)
    mean = np.mean(gradients, axis=0)
    squares = np.sum((gradients - mean) ** 2, axis=2)  # (n, P)
    return SampledNoise(
        row=row,
        groups=n,
        mean=mean,
        mean_error=np.std(gradients, axis=0, ddof=1) / np.sqrt(n),
        variance=np.sum(squares, axis=0) / (n - 1),
        variance_error=np.std(squares, axis=0, ddof=1) / np.sqrt(n),
    )
