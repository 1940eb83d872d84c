"""How many samples a prompt, if all of them together are given: closed forms and simulation."""

from dataclasses import dataclass

import numpy as np

from .answer_policies import RATE
from .baseline_trials import SEED, draw_answers
from .baselines import GROUP, group_price
from .errors import ScenarioError
from .inputs import checked_array, checked_number
from .stages import Conventions
from .trials import judge_groups
from .variants import Number

BUDGET = Number(low=2, high=1_000_000, integer=True)
_PROMPTS = Number(low=1, high=4096, integer=True)
_BATCHES = Number(low=2, high=100_000, integer=True)
_CELLS = 20_000_000
_MOST_SIZES = 256


def signal_chance(rates, sizes):
    """Chance that a group holds right and wrong answers: ``1 - p^G - (1 - p)^G``.

    Parameters
    ----------
    rates : array-like, shape (P,)
    sizes : array-like of int, shape (S,)

    Returns
    -------
    ndarray, shape (P, S)
        With full precision near rates of 0 and 1; exactly 0 at them.
    """
    rates = checked_array("rates", rates, "P", RATE)[:, None]
    sizes = checked_array("sizes", sizes, "S", GROUP)
    rare = np.minimum(rates, 1 - rates)  # by symmetry the smaller of the two will do
    with np.errstate(under="ignore"):
        return np.maximum(-np.expm1(sizes * np.log1p(-rare)) - rare**sizes, 0.0)


def size_for_signal(rates, chance=0.5):
    """Smallest group of at most 1024 that holds both kinds with at least this chance.

    Returns
    -------
    ndarray of int, shape (P,)
        0 where no such size is enough, as for rates 0 and 1.
    """
    chance = checked_number("chance", chance, RATE)
    sizes = np.arange(int(GROUP.low), int(GROUP.high) + 1)
    enough = signal_chance(rates, sizes) >= chance  # grows with G
    return np.where(enough.any(axis=1), sizes[np.argmax(enough, axis=1)], 0)


def whole_sizes(budget):
    """Group sizes of at least 2 that divide a budget of samples, shape (S,)."""
    sizes = np.arange(2, checked_number("budget", budget, BUDGET) + 1)
    return sizes[(budget % sizes == 0) & (sizes <= GROUP.high)]


@dataclass(frozen=True, eq=False, kw_only=True)
class BudgetCurve:
    """Noise of a batch's gradient against the group size, at a fixed budget.

    Attributes
    ----------
    sizes : ndarray of int, (S,)
    prompts : ndarray, (S,)
        That the budget is enough for; not rounded.
    samples : ndarray, (S,)
        The noise that every sample brings along, whatever it is compared with.
    baseline : ndarray, (S,)
        What the group mean costs: the price of having no value network.
    between : ndarray, (S,)
        What the choice of prompts adds, if each batch draws fresh ones.
    fresh, same : ndarray, (S,)
        Variance of the batch gradient with fresh prompts, and with the same ones in every
        batch: all three parts, and the first two.
    best_fresh, best_same : int
        Of the sizes, the one with the smallest; of equal ones the first.
    ideal : float
        ``1 + sqrt(V / B)``, the best size for fresh prompts, as if sizes were no whole
        numbers. Infinite where all prompts pull the same way.
    gradient : ndarray, (D,)
        The mean over prompts: what the batch aims at.
    """

    sizes: np.ndarray
    prompts: np.ndarray
    samples: np.ndarray
    baseline: np.ndarray
    between: np.ndarray
    fresh: np.ndarray
    same: np.ndarray
    best_fresh: int
    best_same: int
    ideal: float
    gradient: np.ndarray


def budget_curve(policy, budget, *, sizes=None):
    """How noisy the gradient of a batch is, if the budget is split into groups of each size.

    Parameters
    ----------
    policy : AnswerPolicy
        Prompts are drawn from its P, all equally likely. They share the D parameters: a logit
        of answer k is one parameter for all prompts, plus what the prompt itself adds.
    budget : int
        Samples in the batch, P times G.
    sizes : array-like of int, optional
        Default: every size up to the budget, at most 256.

    Returns
    -------
    BudgetCurve

    Notes
    -----
    Law of total variance over the prompts, with leave-one-out advantages:
    ``Var = (1/P) [B + W/G + V / (G (G - 1))]``. W is the mean of E[(R - value)^2 |S|^2] -
    |g|^2 and V that of Var R E|S|^2 + |g|^2, B the variance of the prompts' gradients g. The
    best G is ``1 + sqrt(V/B)``; without B (the same prompts in every batch)
    larger is always better. Derived here; when G = 2 does as well as 16 (2-GRPO, arXiv
    2510.00977) follows from it.
    """
    budget = checked_number("budget", budget, BUDGET)
    if sizes is None:
        sizes = np.arange(2, min(budget, _MOST_SIZES) + 1)
    G = checked_array("sizes", sizes, "S", GROUP)
    W = np.mean(policy.noise_about(policy.value))
    V = np.mean(group_price(policy))
    gradient = np.mean(policy.gradient, axis=0)
    B = np.mean(np.sum((policy.gradient - gradient) ** 2, axis=1))
    prompts = budget / G
    samples, baseline = W / G / prompts, V / (G * (G - 1)) / prompts
    same = samples + baseline
    fresh = same + B / prompts
    return BudgetCurve(
        sizes=G.astype(int),
        prompts=prompts,
        samples=samples,
        baseline=baseline,
        between=B / prompts,
        fresh=fresh,
        same=same,
        best_fresh=int(G[np.argmin(fresh)]),
        best_same=int(G[np.argmin(same)]),
        ideal=float(1 + np.sqrt(V / B)) if B > 0 else float("inf"),
        gradient=gradient,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledBatches:
    """Noise of sampled batch gradients, a standard error beside each.

    ``fresh`` is the variance over batches of fresh prompts; ``same`` that about the mean of
    the very prompts in the batch, which is left if they are the same every time.
    """

    batches: int
    mean: np.ndarray
    mean_error: np.ndarray
    fresh: float
    fresh_error: float
    same: float
    same_error: float


def sampled_batches(policy, prompts, G, *, batches=2000, seed=0):
    """The same by simulation: draw prompts, groups and leave-one-out gradients.

    Parameters
    ----------
    policy : AnswerPolicy
    prompts, G : int
        Of each batch.
    batches, seed : int

    Returns
    -------
    SampledBatches
    """
    prompts, G = checked_number("prompts", prompts, _PROMPTS), checked_number("G", G, GROUP)
    batches, seed = checked_number("batches", batches, _BATCHES), checked_number("seed", seed, SEED)
    P, K, D = policy.scores.shape
    cells = prompts * G * max(K, D)
    if cells > _CELLS:
        raise ScenarioError(
            f"a batch of {prompts} x {G} samples is too large to simulate; wanted fewer",
            field="prompts",
        )
    rng = np.random.default_rng(seed)
    step = max(_CELLS // (10 * cells), 1)
    gradients, aims = [], []
    for start in range(0, batches, step):
        chosen = rng.integers(0, P, (min(step, batches - start), prompts))
        found = _leave_one_out(policy, chosen, G, rng)
        gradients.append(np.mean(found, axis=1))
        aims.append(np.mean(policy.gradient[chosen], axis=1))
    gradient, aim = np.concatenate(gradients), np.concatenate(aims)
    mean = np.mean(gradient, axis=0)
    fresh, fresh_error = _spread(gradient - mean, ddof=1)
    same, same_error = _spread(gradient - aim, ddof=0)
    return SampledBatches(
        batches=batches,
        mean=mean,
        mean_error=np.std(gradient, axis=0, ddof=1) / np.sqrt(batches),
        fresh=fresh,
        fresh_error=fresh_error,
        same=same,
        same_error=same_error,
    )


def _leave_one_out(policy, chosen, G, rng):
    """Gradient of a group for each prompt chosen, (n, prompts, D)."""
    answers = draw_answers(policy, rng, chosen, G)  # (n, prompts, G)
    prompt = chosen[..., None]
    centred = judge_groups(policy.rewards[prompt, answers], Conventions.of(advantage="mean_only"))
    return np.einsum("npg,npgd->npd", centred, policy.scores[prompt, answers]) / (G - 1)


def _spread(off, ddof):
    squares = np.sum(off**2, axis=1)
    n = len(squares)
    return float(np.sum(squares) / (n - ddof)), float(np.std(squares, ddof=1) / np.sqrt(n))
