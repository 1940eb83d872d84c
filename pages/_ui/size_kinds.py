"""Kinds of prompts on the group size page: a small policy from the tables, and what is known of it.

An example without such tables shows a policy of four kinds with several right and several wrong
answers each; what is edited there becomes part of the example.
"""

from dataclasses import dataclass

import numpy as np

from grpo_core import ARRAYS, ScenarioError
from grpo_core.answer_policies import AnswerPolicy, softmax_policy
from grpo_core.arrays import OWN_AXES
from grpo_core.baseline_trials import sampled_noise, value_estimates
from grpo_core.baselines import BaselineOptions, gradient_noise
from grpo_core.group_size import BudgetCurve, budget_curve, sampled_batches, whole_sizes
from grpo_core.prompt_rewards import prompts_from_table
from grpo_core.silent import silent_probability

# Success rates of about 0.06, 0.3, 0.65 and 0.9; answers 1 and 3 are right.
_LOGITS = (
    (2.0, -0.5, 1.0, -1.5),
    (1.5, 0.7, 0.6, -0.5),
    (0.5, 1.2, -0.4, 0.3),
    (-1.0, 2.0, -0.6, 0.8),
)
_REWARDS = (0.0, 1.0, 0.0, 1.0)
_FIRST = (0.6, 0.7)  # share of the first wrong and of the first right answer
_RARE = 1e-6
_KEYS = ("answer_logits", "answer_rewards")
_LOWEST = -1000.0  # below the largest logit: the answer never comes
_GROUPS = 300
_CELLS = 4_000_000  # sampled answers times parameters that a simulation may cost
_LARGEST = 64  # group size up to which curves reach, or further if the chosen one is larger
_SIZES = 5


def with_answers(scenario):
    """The scenario with both tables of answers; the same object if it has them.

    Where it has kinds of prompts by their chances, the answers are made to score as they do.
    """
    if all(key in scenario for key in _KEYS):
        return scenario
    held = next((scenario[key] for key in _KEYS if key in scenario), None)
    if held is not None:
        rewards = np.tile(np.resize(_REWARDS, held.shape[1]), (len(held), 1))
        made = {"answer_logits": np.zeros(held.shape), "answer_rewards": rewards}
    elif "reward_chances" in scenario:
        made = _like_the_kinds(scenario)
    else:
        rewards = np.tile(_REWARDS, (len(_LOGITS), 1))
        made = {"answer_logits": np.array(_LOGITS), "answer_rewards": rewards}
    return scenario.replace(**{key: made[key] for key in _KEYS if key not in scenario})


def _like_the_kinds(scenario):
    """Two right and two wrong answers for each kind, that score as often and as high."""
    chances = scenario["reward_chances"].astype(np.float64)
    steps = np.linspace(0.0, 1.0, chances.shape[1])
    values = scenario.arrays.get("reward_values", steps).astype(np.float64)
    low, high = float(np.min(values)), float(np.max(values))
    sums = np.sum(chances, axis=1)
    means = np.where(sums > 0, chances @ values / np.where(sums > 0, sums, 1.0), values[0])
    rates = np.clip((means - low) / (high - low) if high > low else means * 0, _RARE, 1 - _RARE)
    likely = np.stack([1 - rates, rates], axis=1)  # wrong, right
    logits = np.log(np.concatenate([likely * _FIRST, likely * (1 - np.array(_FIRST))], axis=1))
    rewards = np.tile(np.where(np.array(_REWARDS) > 0, high, low), (len(rates), 1))
    return {"answer_logits": np.round(logits, 2), "answer_rewards": rewards}


def resized(scenario, kinds, answers):
    """As many kinds and answers as wanted: a new kind like the last one, a new answer worth 0.

    Raises
    ------
    ScenarioError
        More or fewer than a table can hold.
    """
    for name, size, axis in (("kinds of prompts", kinds, "Q"), ("answers", answers, "A")):
        own = OWN_AXES[axis]
        if not own.low <= size <= own.high:
            raise ScenarioError(f"{size} {name} are wanted; a table holds {own.low} to {own.high}")
    scenario = with_answers(scenario)

    def fitted(array):
        rows = array[np.minimum(np.arange(kinds), len(array) - 1)]
        wide = np.zeros((kinds, max(answers, rows.shape[1])))
        wide[:, : rows.shape[1]] = rows
        return wide[:, :answers]

    return scenario.replace(**{key: fitted(scenario[key]) for key in _KEYS})


def small_policy(scenario):
    """The policy that the tables of answers describe, or that of an example without them.

    Raises
    ------
    ScenarioError
        Rewards beyond what the closed forms can hold.
    """
    scenario = with_answers(scenario)
    logits = scenario["answer_logits"].astype(np.float64)
    with np.errstate(over="ignore"):
        below = logits - np.max(logits, axis=1, keepdims=True)  # the same policy
    return softmax_policy(np.maximum(below, _LOWEST), scenario["answer_rewards"])


def group_size_of(scenario):
    """Completions for each kind of prompt."""
    return int(scenario.arrays.get("group_size", ARRAYS["group_size"].default))


def budget_of(scenario):
    """Completions that an update may cost, never fewer than one group."""
    held = scenario.arrays.get("budget", ARRAYS["budget"].default)
    return max(int(held), group_size_of(scenario))


@dataclass(frozen=True, eq=False, kw_only=True)
class SizeView:
    """What is known exactly of the small policy at one group size.

    ``options`` are those of the baselines; their ``constant`` is the mean value of all kinds,
    ``ddof`` and ``eps`` are the example's. ``noise`` is None
    where there are too many different rewards to sum over; ``refusal`` then says so.
    ``signal`` (N, S) is each kind's chance of a group that is not tied at ``sizes`` (S,),
    ``now`` (N,) that at G. ``means`` (groups, N) are sampled group means.
    """

    policy: AnswerPolicy
    G: int
    budget: int
    seed: int
    options: BaselineOptions
    noise: dict | None
    refusal: str
    sizes: np.ndarray
    signal: np.ndarray
    now: np.ndarray
    curve: BudgetCurve
    means: np.ndarray

    @property
    def binary(self):
        """Whether every reward is 0 or 1."""
        return bool(np.all(np.isin(self.policy.rewards, (0.0, 1.0))))

    @property
    def constant(self):
        """The baseline of that name."""
        return self.options.constant


def std_of(scenario):
    """``ddof`` and ``eps`` of the example's advantages, as far as their row has them."""
    options = scenario.conventions["advantage"].options
    return {key: options[key] for key in ("ddof", "eps") if key in options}


def size_view(policy, G, budget, seed=0, **std):
    """Everything that the page shows save the larger simulations, see `SizeView`.

    ``std`` is as `std_of` gives it.
    """
    options = BaselineOptions(constant=float(np.mean(policy.value)), **std)
    try:
        noise, refusal = gradient_noise(policy, G, options), ""
    except ScenarioError as error:
        noise, refusal = None, str(error)
    prompts = prompts_from_table(policy.rewards, policy.probabilities)
    sizes = np.unique(np.rint(np.geomspace(2, max(_LARGEST, G), 40)).astype(int))
    signal = np.array([1 - silent_probability(prompts, int(size)) for size in sizes]).T
    largest = min(max(budget, 2), 512)
    return SizeView(
        policy=policy,
        G=G,
        budget=budget,
        seed=seed,
        options=options,
        noise=noise,
        refusal=refusal,
        sizes=sizes,
        signal=np.maximum(signal, 0.0),
        now=np.maximum(1 - silent_probability(prompts, G), 0.0),
        curve=budget_curve(policy, budget, sizes=np.arange(2, largest + 1)),
        means=value_estimates(policy, G, groups=_groups_of(policy, G), seed=seed),
    )


def _groups_of(policy, G):
    return max(min(_CELLS // (policy.probabilities.size * G), _GROUPS), 20)


def sampled_baselines(view):
    """The noise of each baseline by simulation; None where that would take too long."""
    N, K = view.policy.probabilities.shape
    groups = min(_CELLS // (N * K * view.G), 1000)
    if groups < 100 or view.noise is None:
        return None
    return sampled_noise(view.policy, view.G, view.options, groups=groups, seed=view.seed)


def sampled_sizes(view):
    """Simulated batches at a few sizes that divide the budget, as {G: SampledBatches}."""
    K = view.policy.probabilities.shape[1]
    batches = min(_CELLS // (view.budget * K), 250)
    sizes = whole_sizes(view.budget)
    sizes = sizes[(sizes <= view.curve.sizes[-1]) & (view.budget // sizes <= 4096)]
    if batches < 50 or not sizes.size:
        return {}
    at = np.unique(np.rint(np.linspace(0, len(sizes) - 1, _SIZES)).astype(int))
    return {
        G: sampled_batches(view.policy, view.budget // G, G, batches=batches, seed=view.seed)
        for G in sizes[at].tolist()
    }
