"""Moments of an answer's advantage over every group that can come up beside it."""

import numpy as np

from .errors import ScenarioError
from .prompt_rewards import compositions, multinomial

MOST_CELLS = 8_000_000  # rewards of all groups enumerated, about a second
_BLOCK = 500_000  # of them at a time


def moments_by_reward(prompts, G, row, options, beside=None):
    """Mean of A, of abs(A) and of A**2 given the own reward.

    Parameters
    ----------
    prompts : Prompts
    G : int
    row : Scale
        With its `options`.
    beside : Prompts, optional
        For the std of the batch: the other prompts; None for the prompts themselves.

    Returns
    -------
    ndarray, shape (3, P, V)

    Raises
    ------
    ScenarioError
        See `check_closed_form`.
    """
    check_closed_form(prompts, G, row, beside)
    if row.per_group:
        return _enumerated(prompts, G, row, options)
    return _in_a_batch(prompts, G, options, beside)


def check_closed_form(prompts, G, row, beside=None):
    """Refuse what is too much to enumerate, and a batch's std of graded rewards."""
    P, V = prompts.values.shape
    if row.per_group:
        if _cells(prompts, G) > MOST_CELLS:
            raise ScenarioError(
                f"groups of {G} answers with {V} different rewards are too many to enumerate; "
                "take a smaller G or fewer values, or simulate them",
                field="G",
            )
        return
    others = prompts if beside is None else beside
    same = others.two_values and prompts.two_values
    if not (same and np.array_equal(others.values[0], prompts.values[0])):
        raise ScenarioError(
            "the std of the batch has a closed form only where all prompts share the same two "
            "rewards; simulate these prompts, or divide by something else",
            field="scale",
        )
    if max(P, len(others)) * len(others) * G > MOST_CELLS:
        raise ScenarioError(
            f"a batch of {len(others)} prompts with {G} answers each is too large for the closed "
            "form; take fewer prompts, or simulate them",
            field="G",
        )


def _cells(prompts, G):
    P, V = prompts.values.shape
    ways = 1.0
    for value in range(1, V):
        ways *= (G - 1 + value) / value
    rows = len(np.unique(prompts.values, axis=0))
    return ways * V * max(rows * G, P)


def _enumerated(prompts, G, row, options):
    values, which = np.unique(prompts.values, axis=0, return_inverse=True)
    V = values.shape[1]
    counts = compositions(G - 1, V)  # (C, V): the others
    others = np.repeat(np.tile(np.arange(V), len(counts)), counts.ravel()).reshape(-1, G - 1)
    groups = np.empty((len(counts), V, G), dtype=np.intp)  # own answer first
    groups[..., 0] = np.arange(V)
    groups[..., 1:] = others[:, None, :]
    rewards = values[:, groups].reshape(1, -1, G)
    step = max(_BLOCK // G, 1)
    own = [
        row.function(rewards[:, start : start + step], **options)[0, :, 0]
        for start in range(0, rewards.shape[1], step)
    ]
    advantages = np.concatenate(own).reshape(len(values), len(counts), V)
    if len(values) > 1:
        advantages = advantages[which.ravel()]  # (P, C, V)
    likely = multinomial(counts, prompts.probabilities)[:, None, :]
    powers = (advantages, np.abs(advantages), np.square(advantages))
    return np.stack([(likely @ power)[:, 0] for power in powers])


def _in_a_batch(prompts, G, options, beside):
    """The same for the std of the batch, which depends on the number of right answers in it.

    Given k right in the own group, the total is k + T, T right among the other prompts.
    """
    low, high = prompts.values[0]
    rest = _right_among_others(prompts, G, beside)  # (P or 1, M + 1)
    size = rest.shape[1] - 1 + G
    inverse = _inverse_std(size, high - low, **options)
    right = np.arange(G + 1)
    at = right[:, None] + np.arange(rest.shape[1])  # (G + 1, M + 1)
    likely = multinomial(compositions(G - 1, 2)[::-1], prompts.probabilities)  # 0, 1 ... right

    def given(power):
        mean = rest @ (inverse[at] ** power).T  # (P or 1, G + 1): E[divisor**-power | k right]
        up, down = (high - low) * (1 - right / G), (high - low) * right / G
        own_right = np.sum(likely * (mean * up**power)[:, 1:], axis=1)
        own_wrong = np.sum(likely * (mean * down**power)[:, :-1], axis=1)
        return own_wrong, own_right

    wrong, best = given(1)
    sizes = np.column_stack([wrong, best])
    return np.stack([sizes * [-1, 1], sizes, np.column_stack(given(2))])


def _inverse_std(size, span, *, ddof, eps):
    """1 / (std + eps) of `size` rewards of which 0, 1, ... are high; 0 where all are equal."""
    share = np.arange(size + 1) / size
    std = span * np.sqrt(share * (1 - share) * size / (size - ddof))
    return np.where(std > 0, 1 / np.where(std > 0, std + eps, 1.0), 0.0)


def _right_among_others(prompts, G, beside):
    """Distribution of the right answers of all other prompts, (P, M + 1), or (1, M + 1).

    A sum of independent binomials: its transform is the product of theirs, and leaving one
    prompt out takes the product of those before and after it.
    """
    others = prompts if beside is None else beside
    M = (len(others) - (beside is None)) * G
    turns = np.exp(-2j * np.pi * np.arange(M + 1) / (M + 1))
    each = (1 - others.rates[:, None] * (1 - turns)) ** G  # (P, M + 1)
    if beside is None:
        one = np.ones((1, M + 1))
        before = np.cumprod(np.concatenate([one, each[:-1]]), axis=0)
        after = np.cumprod(np.concatenate([one, each[:0:-1]]), axis=0)[::-1]
        product = before * after
    else:
        product = np.prod(each, axis=0, keepdims=True)
    return np.maximum(np.fft.ifft(product, axis=1).real, 0.0)
