"""Each finding is raised by an example and not by a near miss; examples say what they teach."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core import STAGES, Choice, Conventions, build_scenario, evaluate
from grpo_core.answer_policies import softmax_policy
from grpo_core.baselines import gradient_noise
from grpo_core.clip_cases import clip_cases
from grpo_core.difficulty import difficulty
from grpo_core.findings import FINDINGS, SEVERITIES, find
from grpo_core.findings.terms import EFFECTS, LENGTH_FORMULAS
from grpo_core.group_size import budget_curve
from grpo_core.length import length_weights
from grpo_core.prompt_rewards import prompts_from_table
from grpo_core.silent import leftover, silent_probability
from grpo_core.terms import TERMS, Term
from grpo_core.variants import OneOf
from grpo_core.words import cells, groups, listing, number, percent
from pages._ui import numbers
from pages._ui.examples import load_examples
from pages._ui.menu import MENU

EXAMPLES = {key: example.scenario for key, example in load_examples().items()}
INF = float("inf")


def findings(scenario):
    return {finding.code: finding for finding in find(evaluate(scenario))}


def one_group(rewards, *, conventions=None, **arrays):
    """One prompt, a reward for each completion; per-token arrays as lists of rows."""
    arrays = {key: rows if key == "terms" else [rows] for key, rows in arrays.items()}
    return build_scenario(rewards=[rewards], conventions=conventions or Conventions({}), **arrays)


def tokens(new, old=None, ref=None, *, advantage=1.0, conventions=None):
    """Two completions; the first holds the given tokens and the advantage, the second one token.

    With advantages 1 and -1 the filler token has ratio 1 and no KL.
    """
    old, ref = old or new, ref or new
    pad = [0.0] * (len(new) - 1)
    mask = [[1] * len(new), [1] + [0] * len(pad)]
    rewards = [1, 0] if advantage > 0 else [0, 1]
    rows = {"logp_new": new, "logp_old": old, "logp_ref": ref}
    arrays = {key: [row, [-1.0, *pad]] for key, row in rows.items()}
    return one_group(rewards, mask=mask, conventions=conventions, **arrays)


def of(**choices):
    return Conventions.of(**choices)


def shaped(task, *terms, combine="sum_then_normalize", advantage="mean_std", kl=None, **arrays):
    """One prompt with a task reward and terms, each given as (values, weight) or a `Term`."""
    columns = [[None] * len(task) if isinstance(term, Term) else term[0] for term in terms]
    named = tuple(
        term if isinstance(term, Term) else Term(name, term[1])
        for name, term in zip("abc", terms, strict=False)
    )
    choices = {"rewards": combine, "advantage": advantage} | ({"kl": kl} if kl else {})
    values = np.array(columns, dtype=float).T.tolist()
    return one_group(task, conventions=of(**choices), terms=named, term_values=values, **arrays)


def stepped(outcome, *steps, **options):
    """One prompt judged by its steps, a list of rewards per completion, one token each."""
    longest = max(map(len, steps))
    pad = [[float("nan")] * (longest - len(row)) for row in steps]
    ends = [list(range(len(row))) + rest for row, rest in zip(steps, pad, strict=True)]
    return one_group(
        outcome,
        step_rewards=[row + rest for row, rest in zip(steps, pad, strict=True)],
        step_ends=ends,
        mask=[[t < max(len(row), 1) for t in range(longest)] for row in steps],
        conventions=of(advantage=("process", options)),
    )


def kinds(rewards, *rates, **changed):
    """A batch, and kinds of prompts with these success rates."""
    return build_scenario(
        rewards=rewards,
        reward_chances=[[1 - rate, rate] for rate in rates],
        reward_values=[0, 1],
        **changed,
    )


def right(G, *counts):
    """Rewards of groups of G, so many right in each."""
    return [[1] * k + [0] * (G - k) for k in counts]


def lengths(*counts, rewards, **changed):
    """One prompt whose completions have so many tokens."""
    mask = [[t < n for t in range(max(counts))] for n in counts]
    return one_group(rewards, mask=mask, **changed)


def short(weight, **options):
    """A linear penalty of length, 1 for 10 tokens."""
    return Term("short", weight, Choice("length_linear", {"per": 10.0, **options}))


LENGTHS = {"logp_new": [[-1.0] * 6] * 2, "mask": [[1, 1, 0, 0, 0, 0], [1] * 6]}  # 2 and 6 tokens
THREE_HALVES = {"logp_new": [[-1.0] * 4] * 2, "mask": [[1, 1, 1, 0], [1] * 4]}  # 3 and 4
PULLED = {"logp_new": [[-1.0], [-1.0]], "logp_ref": [[-2.0], [-1.0]]}
KL_IN_REWARD = of(kl=("k1", {"place": "reward", "beta": 0.1}))
GIVEN = of(advantage="given")
FOUR_LENGTHS = {"mask": [[1] * 6, [1, 1, 0, 0, 0, 0]] * 2}  # 6, 2, 6 and 2 tokens
NO_KL = of(kl=("k3", {"beta": 0.0}))


def bounded(surrogate, **options):
    """A batch at ratio 1 with advantages 1 and -1 under one surrogate."""
    return one_group([1, 0], conventions=of(surrogate=(surrogate, options), kl=("k3", {"beta": 0})))


def clamped(d):
    """One token at this distance from the reference, under verl's low_var_kl."""
    return tokens([-1.0 - d], ref=[-1.0], conventions=of(kl=("k3", {"beta": 0.1, **VERL_CLAMPS})))


VERL_CLAMPS = {"clamp_in": 20.0, "clamp_out": 10.0}
WHITENED = of(advantage="mean_only", whitening="tokens", kl=("k3", {"beta": 0.0}))


@dataclass(frozen=True)
class Case:
    """A scenario that raises a finding, and one that is close to it and does not."""

    raises: object
    near_miss: object


CASES = {
    # All equal; one differs.
    "tied_group": Case(one_group([0.1, 0.1, 0.1]), one_group([0.1, 0.1, 0.2])),
    # A spread of 1/1000 of the largest reward; ten times as much.
    "nearly_tied_group": Case(one_group([1, 1, 0.999]), one_group([1, 1, 0.99])),
    # log pi old - log pi ref is 1 and 0, so the scores are 0.9 and 1; under k1 in the objective
    # the rewards stay equal.
    "tie_broken_by_kl": Case(
        one_group([1, 1], conventions=KL_IN_REWARD, **PULLED),
        one_group([1, 1], conventions=of(kl=("k1", {"beta": 0.1})), **PULLED),
    ),
    "group_of_one": Case(one_group([1, None]), one_group([1, 0])),
    # 5 and 3 are divided by their own spread; without the division the 2 between them shows.
    "group_of_two": Case(
        one_group([5, 3]), one_group([5, 3], conventions=of(advantage="mean_only"))
    ),
    "missing_reward": Case(one_group([1, None, 0]), one_group([1, 0, 0])),
    "empty_completion": Case(
        one_group([1, 0], mask=[[1, 1], [0, 0]]), one_group([1, 0], mask=[[1, 1], [0, 1]])
    ),
    # A float32 mean leaves 1e-3; the same number in a group that is not tied is an advantage.
    "advantages_residue": Case(
        one_group([1, 1], advantages=[1e-3, 1e-3], conventions=GIVEN),
        one_group([1, 0], advantages=[1e-3, 1e-3], conventions=GIVEN),
    ),
    "loss_zero_gradient_not": Case(one_group([1, 0, 0]), one_group([1, 1, 1])),
    # Advantages 1 and -1 on 2 and 6 tokens: loss -(2 - 6) / 8 = 0.5. By completion it is 0.
    "on_policy_loss_not_zero": Case(
        one_group([1, 0], conventions=of(aggregation="token_mean"), **LENGTHS),
        one_group([1, 0], **LENGTHS),
    ),
    # 3 times as long; 4/3 is not worth a sentence.
    "token_weight_by_length": Case(one_group([1, 0], **LENGTHS), one_group([1, 0], **THREE_HALVES)),
    # Loss 0 logged and 0 here, to within 1e-6; or not.
    "logged_loss": Case(
        build_scenario(rewards=[[1, 0]], logged_loss=9e-7),
        build_scenario(rewards=[[1, 0]], logged_loss=1.1e-6),
    ),
    "logged_loss_differs": Case(
        build_scenario(rewards=[[1, 0]], logged_loss=1.1e-6),
        build_scenario(rewards=[[1, 0]], logged_loss=9e-7),
    ),
    # Ratios 1.22 and 1; with rewards 1 and 1 no advantage, with 1 and 0 one to clip.
    "nothing_clipped_no_advantage": Case(
        tokens([-1.0], [-1.2]).replace(rewards=[[1, 1]]), tokens([-1.0], [-1.2])
    ),
    # 1 of 6 is right: 2 (1/6)(5/6) = 27.8% of pairs are mixed, and it takes 4 for
    # 1 - (5/6)^4 - (1/6)^4 = 51.7%. At 1 of 4 three are enough: 1 - 27/64 - 1/64 = 56.3%.
    "group_too_small": Case(
        build_scenario(rewards=right(2, 1, 0, 0)), build_scenario(rewards=right(2, 1, 0))
    ),
    # Population std sqrt(1 x 7)/8 = 0.3307 and 0.5: factor 1.51; sqrt(2 x 6)/8 = 0.433: 1.15.
    "divided_unevenly": Case(
        build_scenario(rewards=right(8, 1, 4)), build_scenario(rewards=right(8, 2, 4))
    ),
    # Pairs at rate 0.5 tie half of the time: one of two is half of the batch. One of three is
    # less than half, and 0.58 standard deviations, 0.289 each, below what is expected.
    "silent_share": Case(kinds(right(2, 2, 1), 0.5), kinds(right(2, 2, 1, 1), 0.5)),
    # Mean length 5, so s = 0.2: the wrong answer pulls the logit by -(1/2 - 0.2)/2 = -0.15, the
    # right one by (1/8 - 0.2)/2 = -0.0375; times -(1 - s)/s = -4 both make it longer. Swapped
    # all signs turn, and the whole, -0.75, is 1.21 times its size by chance, 0.618.
    "length_pull": Case(lengths(2, 8, rewards=[0, 1]), lengths(2, 8, rewards=[1, 0])),
    "nothing_to_learn": Case(
        one_group([1, 1], conventions=of(kl=("k3", {"beta": 0.0}))),
        one_group([1, 0], conventions=of(kl=("k3", {"beta": 0.0}))),
    ),
    "nothing_clipped_ratio_one": Case(tokens([-1.0]), tokens([-1.0], [-1.001])),
    # Ratios 1 and e^0.1 = 1.105 are inside 0.8 to 1.2; e^0.2 = 1.221 is not.
    "nothing_clipped_inside_band": Case(tokens([-1.0], [-1.1]), tokens([-1.0], [-1.2])),
    # Ratio e^0.5 = 1.65 is above the band: stopped with A > 0, kept with A < 0.
    "clipped_share": Case(tokens([-1.0], [-1.5]), tokens([-1.0], [-1.5], advantage=-1.0)),
    "outside_band_not_clipped": Case(
        tokens([-1.0], [-1.5], advantage=-1.0), tokens([-1.0], [-1.5])
    ),
    # k3 at d = 4 is 49.6, at d = 0.5 it is 0.149; at d = 1 (0.718) no spike, however lonely.
    "kl_spike": Case(
        tokens([-5.0, -1.0], ref=[-1.0, -0.5]), tokens([-2.0, -1.0], ref=[-1.0, -0.99])
    ),
    # One with the reference elsewhere, one with the reference in the same place.
    "tied_group_kl_pull": Case(
        one_group([1, 1], **PULLED), one_group([1, 1], conventions=NO_KL, **PULLED)
    ),
    # log pi ref is above log pi new: k1 = -0.5, k3 = 0.149.
    "kl_below_zero": Case(
        tokens([-1.0], ref=[-0.5], conventions=of(kl="k1")), tokens([-1.0], ref=[-0.5])
    ),
    # The slope of k1 is 1 at both tokens; in the reward it has none.
    "kl_same_pull_everywhere": Case(
        tokens([-1.0, -2.0], ref=[-0.5, -2.0], conventions=of(kl="k1")),
        tokens([-1.0, -2.0], ref=[-0.5, -2.0], conventions=KL_IN_REWARD),
    ),
    # d = 1 and 0.5: k1 -1.5, k2 0.625, k3 0.867 in all. d = -1 and 0.5: 0.5, 0.625, 0.517.
    "kl_estimates_apart": Case(
        tokens([-2.0, -2.0], ref=[-1.0, -1.5], conventions=of(aggregation="token_mean")),
        tokens([-2.0, -2.0], ref=[-3.0, -1.5], conventions=of(aggregation="token_mean")),
    ),
    # Two completions that differ in one term alone; and in the task as well.
    "shaping_only_group": Case(
        shaped([1, 1, 1, 1], ([1, 0, 0, 0], 0.01)), shaped([1, 1, 1, 0], ([1, 0, 0, 0], 0.01))
    ),
    # Task and term have the same spread and no covariance: the share is w^2 / (1 + w^2).
    "term_dominates": Case(
        shaped([1, 1, 0, 0], ([0, 1, 1, 0], 1.1)), shaped([1, 1, 0, 0], ([0, 1, 1, 0], 1.0))
    ),
    # 1 + 0 and 0 + 1; 1 + 0 and 0 + 0.9.
    "terms_cancel": Case(shaped([1, 0], ([0, 1], 1)), shaped([1, 0], ([0, 1], 0.9))),
    # 1 + 2 (0) and 0 + 2 (0.5); apart the second term has twice the weight of the first.
    "summed_tie_pushes": Case(
        shaped([1, 0], ([0, 0.5], 2), combine="normalize_then_sum"),
        shaped([1, 0], ([0, 0.5], 2)),
    ),
    # Ratios e^1.1 = 3.004 and e^1.09 = 2.974 against verl's c of 3.
    "dual_clip_active": Case(
        tokens([-1.0], [-2.1], advantage=-1.0, conventions=of(surrogate="dual_clip")),
        tokens([-1.0], [-2.09], advantage=-1.0, conventions=of(surrogate="dual_clip")),
    ),
    # k3 at d = 2.7 is 11.2, at 2.5 it is 8.68; the clamp is at 10.
    "kl_clamp_active": Case(clamped(2.7), clamped(2.5)),
    # 1.28 is an edge of a band; 10 is the wide band of DeepSeek-R1.
    "edge_given_as_offset": Case(
        bounded("clip", epsilon_high=1.28), bounded("clip", epsilon_low=1.0, epsilon_high=10.0)
    ),
    "delta_inside_band": Case(bounded("two_sided", delta=1.2), bounded("two_sided", delta=1.21)),
    "narrow_log_bounds": Case(
        bounded("gmpo", log_low=0.2, log_high=0.2), bounded("gmpo", log_low=0.2)
    ),
    # TRL's default, and ScaleRL's.
    "cispo_bound_below_one": Case(
        bounded("cispo", bound="absolute"), bounded("cispo", bound="absolute", epsilon_high=5.0)
    ),
    # 2 / 1 and 2 / 1.05 of 1 and -1: -(2 - 1.905) / 2 = -0.0476; at equal tau they cancel.
    "sapo_loss_on_policy": Case(bounded("sapo"), bounded("sapo", tau_down=1.0)),
    # Log-probabilities of -1 and -2 with advantages 1 and -1: loss -(-1 + 2) / 2; of -1 and -1: 0.
    "loss_of_log_probabilities": Case(
        bounded("reinforce").replace(logp_new=[[[-1.0], [-2.0]]], logp_old=[[[-1.0], [-2.0]]]),
        bounded("reinforce"),
    ),
    # Of 2 answers no 4 can be drawn, of 4 they can.
    "pass_at_more_than_the_group": Case(
        one_group([1, 0], conventions=of(advantage=("pass_at_k", {"k": 4}))),
        one_group([1, 0, 0, 0], conventions=of(advantage=("pass_at_k", {"k": 4}))),
    ),
    "fully_masked_batch": Case(
        one_group([1, 0], mask=[[0], [0]]), one_group([1, 0], mask=[[1], [0]])
    ),
    # Added up one by one in float32, 8 times 0.9 is 7.2 + 4.8e-7, whose eighth is one unit off;
    # four times 0.9 is exactly 4 times float32's 0.9.
    "float32_residue": Case(one_group([0.9] * 8), one_group([0.9] * 4)),
    # Micro-batches of 2 and 6 tokens of 8: factors 4/2 and 4/6. Given the 8 there are none.
    "micro_batch_split": Case(
        one_group([1, 0], conventions=of(aggregation="token_mean"), **LENGTHS),
        one_group([1, 0], conventions=of(aggregation=("token_mean", {"tokens": 8.0})), **LENGTHS),
    ),
    # 2 tokens of 1/2, 6 of -1/2 and 2 of 0: their mean is -0.2, and the 0 is above it.
    "tied_group_pushed": Case(
        build_scenario(
            rewards=[[1, 0], [1, 1]],
            mask=[LENGTHS["mask"], [[1] + [0] * 5] * 2],
            conventions=WHITENED,
        ),
        build_scenario(rewards=[[1, 0], [1, 1]], conventions=WHITENED),
    ),
    "wrong_sign": Case(
        shaped([1, 0], short(-0.5), **LENGTHS), shaped([1, 0], short(0.5), **LENGTHS)
    ),
    "constant_term": Case(shaped([1, 0], ([1, 1], 0.5)), shaped([1, 0], ([1, 0.9], 0.5))),
    # 6 tokens for what is right, 2 for what is not: -1. Two of each for each: 0.
    "length_term_correlated": Case(
        shaped([1, 0, 1, 0], short(0.1), **FOUR_LENGTHS),
        shaped([1, 1, 0, 0], short(0.1), **FOUR_LENGTHS),
    ),
    "missing_value": Case(shaped([1, 0], ([1, None], 0.5)), shaped([1, 0], ([1, 0], 0.5))),
    # Two steps of 1 against one of 1, above the mean of [1, 1, 1, 0]; one each.
    "gain_by_steps": Case(stepped([1, 1, 0], [1, 1], [1], [0]), stepped([1, 1, 0], [1], [1], [0])),
    # The wrong answer 0, 0 with two or one passed steps behind: its tokens get 0.177 and
    # -0.408 on average, its first one -1.414 and -1.633.
    "wrong_answer_pushed_up": Case(
        stepped([0, 1], [0, 0, 1, 1], [1, 1]), stepped([0, 1], [0, 0, 1], [1, 1])
    ),
    "tied_steps": Case(stepped([1, 0], [1, 1], [1]), stepped([1, 0], [1, 1], [0.9])),
    "no_steps": Case(stepped([1, 0], [1, 0], []), stepped([1, 0], [1, 0], [1])),
    # By the outcome every token of the first is below 0; its passed step is above.
    "credit_sign_changes": Case(stepped([0, 1], [0, 1], [1]), stepped([0, 1], [0, 0], [1])),
    # Advantages [1.633, 0.408, 1.225] and [-1.633, -0.816]; one step each leaves one each.
    "on_policy_loss_of_tokens": Case(stepped([1, 0], [1, 0, 1], [0, 0]), stepped([1, 0], [1], [0])),
    "float32_overflow": Case(tokens([-1.0], [-89.8]), tokens([-1.0], [-89.7])),
    "logp_minus_inf": Case(tokens([-INF], [-1.0]), tokens([-1e4], [-1.0])),
    # -1 + 3 (0.5) = 0.5 is above 0; -1 + 2 (0.5) = 0 is not.
    "drift_held": Case(
        build_scenario(rewards=[[1.0]], logp_new=[[[-0.5]]], logp_old=[[[-1.0]]], drift=3.0),
        build_scenario(rewards=[[1.0]], logp_new=[[[-0.5]]], logp_old=[[[-1.0]]], drift=2.0),
    ),
}


def test_every_finding_has_a_case():
    assert CASES.keys() == FINDINGS.keys()


@pytest.mark.parametrize("code", CASES)
def test_example_raises_finding(code):
    assert code in findings(CASES[code].raises)


@pytest.mark.parametrize("code", CASES)
def test_near_miss_does_not_raise_finding(code):
    assert code not in findings(CASES[code].near_miss)


@pytest.mark.parametrize("code", FINDINGS)
def test_row_is_complete(code):
    row = FINDINGS[code]
    assert row.severity in SEVERITIES
    assert row.page in MENU
    assert row.question.endswith("?")


# What each shipped example says, no more and no less.
EXAMPLE_CODES = {
    "four-answers": {"clipped_share", "outside_band_not_clipped", "token_weight_by_length"},
    "one-zero-zero-one": {"loss_zero_gradient_not", "nothing_clipped_ratio_one"},
    "tied-and-graded": {"tied_group", "loss_zero_gradient_not", "nothing_clipped_ratio_one"},
    "half-clipped": {"clipped_share", "group_of_two"},
    "every-clip-case": {"clipped_share", "dual_clip_active", "outside_band_not_clipped"},
    "tied-group": {"tied_group", "tied_group_kl_pull", "outside_band_not_clipped"},
    "nearly-tied": {"nearly_tied_group", "clipped_share", "outside_band_not_clipped"},
    "on-policy": {
        "loss_zero_gradient_not",
        "nothing_clipped_ratio_one",
        "token_weight_by_length",
    },
    "token-mean-on-policy": {
        "on_policy_loss_not_zero",
        "micro_batch_split",
        "nothing_clipped_ratio_one",
        "token_weight_by_length",
    },
    "group-of-two": {"group_of_two", "nothing_clipped_inside_band"},
    "long-against-short": {
        "token_weight_by_length",
        "nothing_clipped_inside_band",
        "length_pull",
    },
    "left-padding": {"nothing_clipped_inside_band"},
    "mask-with-hole": {"clipped_share"},
    "missing-reward": {"missing_reward", "clipped_share"},
    "unequal-groups": {
        "tied_group",
        "tied_group_kl_pull",
        "clipped_share",
        "divided_unevenly",
    },
    "kl-spike": {"kl_spike", "kl_estimates_apart", "nothing_clipped_inside_band"},
    "float32-overflow": {"float32_overflow", "outside_band_not_clipped"},
    "sequence-ratio": {"clipped_share", "outside_band_not_clipped"},
    "kl-in-reward": {"tie_broken_by_kl", "kl_below_zero", "nothing_clipped_inside_band"},
    "more-steps-more-credit": {
        "gain_by_steps",
        "on_policy_loss_of_tokens",
        "nothing_clipped_ratio_one",
        "token_weight_by_length",
    },
    "recorded-steps": {
        "wrong_answer_pushed_up",
        "credit_sign_changes",
        "kl_spike",
        "kl_estimates_apart",
        "clipped_share",
        "outside_band_not_clipped",
        "token_weight_by_length",
    },
    "empty-steps-pass": {
        "wrong_answer_pushed_up",
        "credit_sign_changes",
        "kl_spike",
        "kl_estimates_apart",
        "clipped_share",
        "outside_band_not_clipped",
        "token_weight_by_length",
    },
    "bonus-breaks-a-tie": {
        "shaping_only_group",
        "loss_zero_gradient_not",
        "nothing_clipped_ratio_one",
    },
    "recorded-step-bonus": {
        "shaping_only_group",
        "term_dominates",
        "divided_unevenly",
        "kl_spike",
        "kl_estimates_apart",
        "clipped_share",
        "outside_band_not_clipped",
        "token_weight_by_length",
    },
    "length-and-judge": {
        "length_term_correlated",
        "missing_value",
        "loss_zero_gradient_not",
        "nothing_clipped_ratio_one",
        "token_weight_by_length",
        "length_pull",
    },
    "terms-cancel": {
        "terms_cancel",
        "tied_group",
        "nothing_to_learn",
        "nothing_clipped_ratio_one",
    },
    "terms-per-token": {
        "on_policy_loss_of_tokens",
        "nothing_clipped_ratio_one",
        "token_weight_by_length",
    },
    "hard-and-easy-prompts": {
        "divided_unevenly",
        "loss_zero_gradient_not",
        "nothing_clipped_ratio_one",
    },
    "groups-of-three": {"tied_group", "loss_zero_gradient_not", "nothing_clipped_ratio_one"},
    "graded-difficulty": {
        "divided_unevenly",
        "loss_zero_gradient_not",
        "nothing_clipped_ratio_one",
    },
    "mostly-silent": {
        "tied_group",
        "silent_share",
        "tied_group_kl_pull",
        "clipped_share",
        "token_weight_by_length",
    },
    "large-groups-tie": {
        "tied_group",
        "silent_share",
        "divided_unevenly",
        "loss_zero_gradient_not",
        "nothing_clipped_ratio_one",
    },
    "budget-of-samples": {"loss_zero_gradient_not", "nothing_clipped_ratio_one"},
    "one-other-answer": {
        "tied_group",
        "silent_share",
        "group_of_two",
        "loss_zero_gradient_not",
        "nothing_clipped_ratio_one",
    },
    "long-wrong-answers": {
        "loss_zero_gradient_not",
        "nothing_clipped_ratio_one",
        "token_weight_by_length",
        "length_pull",
    },
    "lengths-and-difficulty": {
        "loss_zero_gradient_not",
        "nothing_clipped_ratio_one",
        "token_weight_by_length",
        "length_pull",
    },
    "recorded-batch": {
        "advantages_residue",
        "kl_spike",
        "kl_estimates_apart",
        "logged_loss",
        "clipped_share",
        "outside_band_not_clipped",
        "tied_group_kl_pull",
        "token_weight_by_length",
    },
}


@pytest.mark.parametrize("key", EXAMPLES)
def test_example_says_exactly(key):
    assert findings(EXAMPLES[key]).keys() == EXAMPLE_CODES[key]


def test_every_example_is_listed():
    assert EXAMPLE_CODES.keys() == EXAMPLES.keys()


@pytest.mark.parametrize("key", EXAMPLES)
def test_example_is_introduced_in_one_line_and_one_sentence(key):
    example = load_examples()[key]
    assert len(example.title) <= 34
    assert example.teaches.endswith(".")
    assert ". " not in example.teaches


# --- words -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.00014790312, "0.0001479"),
        (-0.5, "−0.5"),
        (-0.0, "0"),
        (99.996, "100"),
        (23094.01, "23094"),
        (999999.7, "1e6"),
        (5.51e-8, "5.51e−8"),
        (-INF, "−inf"),
    ],
)
def test_numbers_are_rounded_for_reading(value, said):
    assert number(value) == said


@given(st.floats(allow_nan=False))
def test_sentences_and_pages_write_a_number_alike(value):
    rounded = float(f"{value:.3e}")  # at the edge of two notations both are right
    assert number(rounded) == numbers.number(rounded)


def test_shares_are_whole_only_when_they_are():
    assert [percent(share) for share in (0.5, 1 / 3, 1.0, 0.99999)] == [
        "50%",
        "33.3%",
        "100%",
        ">99.9%",
    ]


def test_places_are_named_and_the_rest_counted():
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert groups([(3,)]) == "the group of prompt 3"
    assert groups([(p,) for p in range(9)]) == ("the groups of prompts 0, 1, 2, 3 and 5 more")
    assert cells([(0, 1), (2, 3)]) == "prompt 0, completion 1; prompt 2, completion 3"
    assert cells([(0, 1, 4)], 3) == "prompt 0, completion 1, token 4 and 2 more"


# --- sentences ---------------------------------------------------------------------------


def text(scenario, code):
    return findings(scenario)[code].text


def test_groups_of_one_kind_make_one_finding():
    scenario = build_scenario(rewards=[[1, 1], [1, 0], [2, 2]])
    finding = findings(scenario)["tied_group"]
    assert finding.where == (0,)
    assert finding.figures["places"] == ((0,), (2,))
    assert finding.text.startswith("The groups of prompts 0 and 2 are tied")


def test_errors_come_before_warnings_before_notes():
    scenario = build_scenario(
        rewards=[[1, 1], [1, 0]],
        logp_new=[[[-INF], [-1.0]], [[-1.0], [-1.0]]],
        logp_old=[[[-1.0], [-1.0]], [[-1.5], [-1.0]]],
    )
    severities = [finding.severity for finding in find(evaluate(scenario))]
    assert {"error", "warning", "note"} == set(severities)
    assert severities == sorted(severities, key=list(SEVERITIES).index)


def test_near_tie_says_how_a_difference_became_an_advantage():
    # [1, 1, 0.999]: mean 0.99967, std 0.0004714; 1 / std = 2121; the odd one is 2/3000 below
    # the mean, which times 2121 is 1.414.
    said = text(one_group([1, 1, 0.999]), "nearly_tied_group")
    assert "differ by at most 0.001" in said
    assert "by 2121" in said
    assert "0.0006667 from the mean became an advantage of 1.414" in said


def test_near_tie_says_how_much_of_the_divisor_is_eps():
    # Rewards 0.9 and 0.9001: sample std 7.071e-5; TRL's eps 1e-4 is 58.6% of the sum.
    trl = of(advantage=("mean_std", {"ddof": 1, "eps": 1e-4}))
    assert "eps is 58.6% of the divisor" in text(
        one_group([0.9, 0.9001], conventions=trl), "nearly_tied_group"
    )


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e3, 1e200])
def test_near_ties_do_not_depend_on_the_unit_of_the_rewards(scale):
    conventions = of(advantage=("mean_std", {"eps": 0.0}))
    near = one_group([scale, scale, 0.9999 * scale], conventions=conventions)
    clear = one_group([scale, 0.0, 0.0], conventions=conventions)
    assert "nearly_tied_group" in findings(near)
    assert "nearly_tied_group" not in findings(clear)


def test_a_spread_below_a_guarding_eps_is_a_near_tie():
    assert "nearly_tied_group" in findings(one_group([1e-9, 0.0]))


@pytest.mark.parametrize("eps", [0.0, 1e-8, 1e-4, 10.0])
def test_right_and_wrong_is_never_a_near_tie(eps):
    scenario = one_group([1] + [0] * 999, conventions=of(advantage=("mean_std", {"eps": eps})))
    assert "nearly_tied_group" not in findings(scenario)


@pytest.mark.parametrize(("ddof", "size"), [(0, "1"), (1, "0.7071")])
def test_two_completions_get_the_same_advantages_whatever_the_rewards(ddof, size):
    for rewards in ([1, 0], [5, 3], [0.2, -7]):
        scenario = one_group(rewards, conventions=of(advantage=("mean_std", {"ddof": ddof})))
        assert f"gets {size}, the other −{size}" in text(scenario, "group_of_two")


def test_two_nearly_tied_completions_are_not_said_to_get_one():
    trl = of(advantage=("mean_std", {"ddof": 1, "eps": 1e-4}))
    assert "group_of_two" not in findings(one_group([0.9, 0.9001], conventions=trl))


def test_a_policy_that_stays_inside_the_band_is_told_how_far_it_has_moved():
    said = text(tokens([-1.0, -1.5], [-1.1, -1.4]), "nothing_clipped_inside_band")
    # e^-0.1 and e^0.1
    assert "every ratio, from 0.9048 to 1.105, is inside the band (0.8 to 1.2)" in said


def test_clipped_share_counts_tokens_and_gradient():
    # Ratio e and 1, advantages 1 and -1, equal weights: e / (e + 1) = 73.1% of the gradient.
    said = text(EXAMPLES["half-clipped"], "clipped_share")
    assert "1 of 2 tokens (50%) is clipped" in said
    assert "73.1% of the policy gradient" in said


def test_dual_clip_is_named():
    conventions = of(surrogate="dual_clip")
    scenario = tokens([-1.0], [-2.5], advantage=-1.0, conventions=conventions)  # e^1.5 = 4.48 > 3
    assert "1 beyond the dual clip" in text(scenario, "clipped_share")
    assert "outside_band_not_clipped" not in findings(scenario)


def test_outside_the_band_names_the_band_to_its_last_digit():
    assert "0.9997 to 1.0004" in text(EXAMPLES["sequence-ratio"], "outside_band_not_clipped")


@pytest.mark.parametrize(
    ("new", "drift", "why"),
    [
        ([-1.0, -1.0], 1.0, "the new policy is still the one that sampled"),
        ([-1.5, -1.0], 0.0, "the drift is 0"),
        ([-1.5, -0.5], 1.0, "what its tokens gained and lost cancels"),  # +0.5 - 0.5
    ],
)
def test_ratio_one_names_its_cause(new, drift, why):
    scenario = build_scenario(
        rewards=[[1.0]],
        logp_new=[[new]],
        logp_old=[[[-1.0, -1.0]]],
        drift=drift,
        conventions=of(ratio="sequence"),
    )
    assert text(scenario, "nothing_clipped_ratio_one").endswith(f"because {why}.")


def test_on_policy_loss_names_the_two_completions_and_the_loss_without_the_effect():
    # 11 and 4 tokens of 35: loss = -(1.2127 (10 - 10) + 0.7276 (4 - 11)) / 35 = 0.1455.
    said = text(EXAMPLES["token-mean-on-policy"], "on_policy_loss_not_zero")
    assert "the loss is 0.1455" in said
    assert "completion 3 with 11 tokens weighs 2.75 times as much as completion 2 with 4" in said
    assert said.endswith("With equal weights the loss would be 0.")


@pytest.mark.parametrize(
    ("aggregation", "said"),
    [
        # 2 and 6 tokens: 1/2 against 1/6 of a completion; everywhere else a token is a token.
        ("completion_mean", "counts 3 times as much as one of the longest"),
        ("token_mean", "counts as much as one of the longest"),
        ("constant", "counts as much as one of the longest"),
    ],
)
def test_token_weight_is_that_of_the_aggregation(aggregation, said):
    scenario = one_group([1, 0], conventions=of(aggregation=aggregation), **LENGTHS)
    assert said in text(scenario, "token_weight_by_length")


def test_kl_spike_is_found_in_a_large_batch_too():
    # 2 x 200 tokens of KL 0.0214 (d = 0.2) against one of 49.6: 85% of the mean KL, 340 times
    # an even share.
    logp = np.full((1, 2, 200), -1.0)
    ref = logp + 0.2
    logp[0, 1, 7], ref[0, 1, 7] = -5.0, -1.0
    scenario = build_scenario(rewards=[[1, 0]], logp_new=logp, logp_ref=ref)
    assert findings(scenario)["kl_spike"].where == (0, 1, 7)


def test_two_large_kls_are_no_spike():
    assert "kl_spike" not in findings(tokens([-3.0, -3.0], ref=[-0.5, -0.4]))


def test_a_spike_beside_tokens_without_kl_is_found():
    assert "kl_spike" in findings(tokens([-5.0, -1.0], ref=[-1.0, -1.0]))


def test_kl_in_float32_overflows_by_its_own_exponential():
    # k3 of d = 89 is e^89 > 3.4e38; k2 is 89^2 / 2.
    scenario = tokens([-90.0], ref=[-1.0])
    assert "difference to the reference is 89" in text(scenario, "float32_overflow")
    assert "float32_overflow" not in findings(scenario.choose("kl", "k2"))


def test_minus_infinity_names_the_policies():
    scenario = tokens([-INF], [-1.0], [-INF])
    assert "(new and reference policy)" in text(scenario, "logp_minus_inf")


def test_no_rewards_are_not_missing_where_advantages_are_given():
    scenario = build_scenario(advantages=[[1.0, -1.0]], conventions=GIVEN)
    assert "missing_reward" not in findings(scenario)


def test_missing_reward_says_what_the_convention_makes_of_it():
    scenario = one_group([1, None, 0])
    assert "left out of the group. Its advantage is 0." in text(scenario, "missing_reward")
    as_zero = scenario.choose("rewards", missing="as_zero")
    assert "counted as reward 0" in text(as_zero, "missing_reward")
    assert "advantage is 0" not in text(as_zero, "missing_reward")


def test_advantages_without_the_mark_of_rounding_are_not_explained_by_it():
    residue = one_group([1, 1], advantages=[1e-3, 1e-3], conventions=GIVEN)
    other = one_group([1, 1], advantages=[1e-3, -1e-3], conventions=GIVEN)
    assert "float32" in text(residue, "advantages_residue")
    assert "float32" not in text(other, "advantages_residue")


def test_residue_says_what_it_does_to_the_loss():
    # Two tokens of one completion each, ratio 1: loss -(0.001 + 0.001) / 2.
    residue = one_group([1, 1], advantages=[1e-3, 1e-3], conventions=GIVEN)
    assert text(residue, "advantages_residue").endswith("They change the loss by −0.001.")


def test_residue_does_not_claim_what_the_given_advantages_leave():
    # Loss 0 with any of these advantages, and 0.1 logged: no advantage explains it.
    scenario = build_scenario(rewards=[[1, 1]], advantages=[[0.3, -0.3]], logged_loss=0.1)
    said = text(scenario, "advantages_residue")
    assert said.endswith("With the given advantages −0.1 would remain.")


def test_of_several_near_ties_the_largest_advantage_is_told():
    trl = of(advantage=("mean_std", {"ddof": 1, "eps": 1e-4}))
    scenario = build_scenario(rewards=[[1, 1 + 1e-8], [0.9, 0.9001]], conventions=trl)
    finding = findings(scenario)["nearly_tied_group"]
    assert finding.figures["places"] == ((1,), (0,))
    assert finding.text.endswith("Nearly tied, too: the group of prompt 0.")


# --- what combined rewards and steps leave of older findings -----------------------------


def test_equal_sums_judged_apart_are_not_called_tied():
    # 1 + 2 (0) = 0 + 2 (0.5), and advantages 1 - 2 and -1 + 2.
    apart = shaped(
        [1, 0], ([0, 0.5], 2), combine="normalize_then_sum", **PULLED, kl=("k3", {"beta": 0.1})
    )
    assert not {"tied_group", "tied_group_kl_pull"} & findings(apart).keys()
    assert "tied_group_kl_pull" in findings(apart.choose("rewards", "sum_then_normalize"))


def test_a_tied_group_names_its_total():
    scenario = shaped([1, 1], ([1, 1], 0.5), combine="add_after", advantage="mean_only")
    # Added after normalising the 0.5 is an advantage, and a group of equal ones is not silent.
    assert "tied_group" not in findings(scenario)
    assert "every score in it is 1.5" in text(
        scenario.choose("rewards", "normalize_then_sum"), "tied_group"
    )


def test_equal_outcomes_are_not_called_tied_where_steps_are_judged():
    scenario = stepped([1, 1], [1, 0], [0]).replace(advantages=[[1e-3, 1e-3]])
    found = findings(scenario.choose("kl", "k3", beta=0.1))
    assert not {"tied_group", "tied_group_kl_pull", "advantages_residue"} & found.keys()


def test_near_ties_and_pairs_are_those_of_scores_that_are_divided_by_their_spread():
    near = [1, 1, 0.999]
    assert "nearly_tied_group" not in findings(stepped(near, [1, 0], [0], [1]))
    for combine in ("normalize_then_sum", "add_after"):
        assert "nearly_tied_group" not in findings(shaped(near, ([0, 1, 0], 1e-6), combine=combine))
    assert "nearly_tied_group" in findings(shaped(near, ([0, 0, 1e-6], 1)))
    assert "group_of_two" in findings(shaped([1, 0], ([0, 0.5], 1)))
    assert "group_of_two" not in findings(shaped([1, 0], ([0, 0.5], 1), combine="add_after"))
    assert "group_of_two" not in findings(stepped([1, 0], [1, 0, 1], [0]))


def test_a_tie_that_a_term_breaks_is_not_blamed_on_the_kl():
    apart = shaped([1, 1], ([1, 0], 0.5), kl=("k1", {"place": "reward", "beta": 0.1}), **PULLED)
    assert "tie_broken_by_kl" not in findings(apart)
    equal = shaped([1, 1], ([1, 1], 0.5), kl=("k1", {"place": "reward", "beta": 0.1}), **PULLED)
    assert "tie_broken_by_kl" in findings(equal)
    # Judged apart the task is tied, save for the KL: 0.1 (1), and z is -1 and 1.
    said = text(apart.choose("rewards", "normalize_then_sum"), "tie_broken_by_kl")
    assert "equal task rewards" in said
    assert "differ by up to 0.1, and their part of the advantages reaches 1." in said


def test_a_lone_completion_is_not_said_to_get_nothing_where_a_term_is_added():
    lone = {"present": [1, 0], "combine": "add_after"}
    assert "group_of_one" not in findings(shaped([1, 0], ([1, 0], 0.5), **lone))
    assert "group_of_one" in findings(shaped([1, 0], ([0, 0], 0.5), **lone))
    assert "group_of_one" not in findings(stepped([1, None], [1, 0], [0]))


def test_a_missing_outcome_is_told_only_where_outcomes_are_read():
    scenario = stepped([1, None], [1, 0], [0])
    assert "missing_reward" not in findings(scenario)
    assert "missing_reward" in findings(scenario.choose("advantage", outcome_weight=1.0))
    assert "missing_reward" not in findings(shaped([1, None], ([1, 0], 0.5)))


def test_an_empty_completion_moves_no_mean_where_its_reward_is_not_read():
    scenario = stepped([1, 0], [1], []).replace(mask=[[[1], [0]]])
    assert "moves its group's mean" not in text(scenario, "empty_completion")
    read = scenario.choose("advantage", outcome_weight=1.0)
    assert "moves its group's mean" in text(read, "empty_completion")


def test_a_loss_of_unequal_tokens_is_not_blamed_on_unequal_weights():
    # Token advantages [1.633, 0.408, 1.225] and [-1.633, -0.816]: means 1.0887 and -1.2247,
    # loss -(1.0887 - 1.2247) / 2 = 0.068. With 1.633 and -1.633 throughout it is 0.
    scenario = stepped([1, 0], [1, 0, 1], [0, 0])
    assert "on_policy_loss_not_zero" not in findings(scenario)
    said = text(scenario, "on_policy_loss_of_tokens")
    assert "the loss is 0.06804" in said
    assert "completion 0 goes from 1.633 at its first token to 1.225 at its last" in said
    assert said.endswith("the loss would be 0.")


# --- shaped rewards ----------------------------------------------------------------------


def test_shaping_alone_pushes_at_full_size_whatever_the_weight():
    # One of four has the bonus: sqrt(3) = 1.732, also at half of a weight far above eps.
    finding = findings(shaped([1, 1, 1, 1], ([1, 0, 0, 0], 0.01)))["shaping_only_group"]
    assert "every task reward in it is 1, yet advantages reach 1.732" in finding.text
    assert "the term 'a' makes up 100% of their spread" in finding.text
    assert finding.text.endswith("At half the weight of every term they would reach 1.732.")
    half = evaluate(shaped([1, 1, 1, 1], ([1, 0, 0, 0], 0.005)))
    assert finding.figures["halved"] == pytest.approx(half.advantages[0, 0], rel=1e-9)


@pytest.mark.parametrize("weight", [1e-8, 1e-4, 1.0])
def test_advantage_at_half_weights_is_that_of_half_weights(weight):
    trl = ("mean_std", {"ddof": 1, "eps": 1e-4})
    scenario = shaped([1, 1, 1], ([1, 0, 0], weight), ([0, 0.5, 0], weight), advantage=trl)
    half = evaluate(scenario.with_terms([Term("a", weight / 2), Term("b", weight / 2)],
                                        scenario["term_values"]))  # fmt: skip
    figures = findings(scenario)["shaping_only_group"].figures
    assert figures["halved"] == pytest.approx(np.max(np.abs(half.advantages)), rel=1e-6)


@pytest.mark.parametrize("change", [{"advantage": "mean_only"}, {"combine": "normalize_then_sum"}])
def test_half_weights_are_told_only_where_the_sum_is_divided(change):
    said = text(shaped([1, 1, 1, 1], ([1, 0, 0, 0], 0.01), **change), "shaping_only_group")
    assert "half" not in said


def test_a_task_without_weight_is_not_called_tied():
    scenario = shaped([1, 0], ([0, 1], 1), combine=("sum_then_normalize", {"task_weight": 0.0}))
    found = findings(scenario)
    assert "shaping_only_group" not in found
    assert (
        "100% of the spread of the advantages, the task reward 0%." in found["term_dominates"].text
    )


def test_a_dominating_term_is_told_apart_where_task_rewards_differ():
    # Tied in the task: all of the spread is the term's. With 1, 1, 0, 0 and 0, 1, 1, 0 at
    # weight 0.5 it is 0.25 / 1.25 = 20%; the mean is 60%.
    scenario = build_scenario(
        rewards=[[1, 1, 1, 1], [1, 1, 0, 0]],
        term_values=[[[0], [1], [1], [0]]] * 2,
        terms=(Term("bonus", 0.5),),
        conventions=of(rewards="sum_then_normalize"),
    )
    finding = findings(scenario)["term_dominates"]
    assert "makes up 60% of the spread of the advantages, the task reward 40%" in finding.text
    assert finding.text.endswith("Where task rewards differ it is 20%.")
    assert finding.where == (0,)


def test_cancelling_terms_are_named_with_what_they_move():
    said = text(shaped([3, 0], ([0, 6], 0.5)), "terms_cancel")
    assert "the task reward differs by 3 there and the term 'a' by 3" in said
    assert "the sum is 3 for every completion: every advantage is 0" in said


def test_terms_that_cancel_up_to_rounding_cancel():
    # 0.3 + 0 and 0.1 + 0.2 = 0.30000000000000004: with eps 0 the rounding gets advantages of 1.
    scenario = shaped([0.3, 0.1], ([0, 0.2], 1), advantage=("mean_std", {"eps": 0.0}))
    found = findings(scenario)
    assert "save for rounding, of which advantages of 1 are made" in found["terms_cancel"].text
    assert "term_dominates" not in found


def test_terms_that_cancel_apart_give_all_the_same():
    # z is 1 and -1 (less 2e-8, by eps), the added terms -1 + 5 and 1 + 5.
    said = text(shaped([1, 0], ([4, 6], 1), combine="add_after"), "terms_cancel")
    assert said.endswith("they give every completion the advantage 5: none is preferred.")


@pytest.mark.parametrize(
    ("combine", "advantage", "said"),
    [("normalize_then_sum", "1", "each reward is judged"), ("add_after", "0.5", "the task reward")],
)
def test_equal_sums_that_push_name_the_sum_and_the_advantage(combine, advantage, said):
    # z of task and term are 1, -1 and -1, 1: 1 - 2 = -1. Added after: 1 + 0.5 and -1 + 1.5.
    values = [0, 0.5] if combine == "normalize_then_sum" else [0.25, 0.75]
    found = text(shaped([1, 0], (values, 2), combine=combine), "summed_tie_pushes")
    assert f"yet advantages reach {1.5 if combine == 'add_after' else advantage}" in found
    assert said in found


def test_a_wrong_sign_names_who_is_paid():
    # -6 / 10 and -2 / 10, times -0.5.
    finding = findings(shaped([1, 0], short(-0.5), **LENGTHS))["wrong_sign"]
    assert finding.figures["places"] == ((0, 1), (0, 0))
    assert "never above 0 (down to −0.6) and its weight is −0.5" in finding.text
    assert "it adds 0.3 to prompt 0, completion 1, and as much or less to 1 more" in finding.text


def test_a_negative_weight_is_right_for_values_above_0():
    assert "wrong_sign" not in findings(shaped([1, 0], ([0, 3], -0.5)))
    assert "wrong_sign" not in findings(shaped([1, 0], ([0, 0], -0.5)))


@pytest.mark.parametrize(
    ("combine", "said"),
    [
        ("sum_then_normalize", "it changes no advantage there."),
        ("normalize_then_sum", "it changes no advantage there."),
        ("add_after", "it adds 0.5 to every advantage there."),
    ],
)
def test_what_all_of_a_group_get_counts_only_where_it_is_added_after(combine, said):
    scenario = shaped([1, 0], ([1, 1], 0.5), combine=combine)
    assert text(scenario, "constant_term").endswith(said)
    gained = evaluate(scenario).advantages - evaluate(shaped([1, 0], ([0, 0], 0.5))).advantages
    np.testing.assert_allclose(gained, 0.5 if combine == "add_after" else 0, atol=1e-12)


def test_rewards_of_tokens_with_equal_sums_are_no_constant_term():
    # As returns to go a token earned late counts for more tokens.
    scenario = shaped(
        [1, 0],
        Term("tokens", 1.0, Choice("per_token")),
        token_rewards=[[1, 0], [0, 1]],
        combine="add_after",
    )
    assert "constant_term" not in findings(scenario)
    assert "constant_term" in findings(scenario.choose("rewards", tokens="sum"))


@pytest.mark.parametrize(
    ("weight", "said"), [(0.1, "punishes right answers"), (-0.1, "pays for being right once more")]
)
def test_a_length_term_says_which_way_it_goes(weight, said):
    found = text(shaped([1, 0, 1, 0], short(weight), **FOUR_LENGTHS), "length_term_correlated")
    assert said in found
    assert f"reward at {'−' if weight > 0 else ''}1 (4 completions)" in found
    assert found.endswith("have 6 tokens on average, those below 2.")


def test_length_formulas_are_formulas_of_length_and_never_pay():
    assert TERMS.keys() >= LENGTH_FORMULAS
    batch = evaluate(shaped([1, 0, 1, 0], *(Term(key, 1.0, Choice(key)) for key in LENGTH_FORMULAS),
                            **FOUR_LENGTHS))  # fmt: skip
    assert np.all(batch.attribution.values[1:] <= 0)


@pytest.mark.parametrize(
    ("combine", "missing", "blank", "effect"),
    [
        ("sum_then_normalize", "leave_out", "term", "nothing"),
        ("sum_then_normalize", "leave_out", "task", "nothing"),
        ("sum_then_normalize", "as_zero", "term", "zero"),
        ("normalize_then_sum", "leave_out", "term", "left_out"),
        ("normalize_then_sum", "leave_out", "task", "left_out"),
        ("add_after", "leave_out", "term", "nothing"),
        ("add_after", "leave_out", "task", "left_out"),
        ("normalize_then_sum", "leave_out", "both", "unscored"),
    ],
)
def test_a_missing_value_says_what_the_convention_makes_of_it(combine, missing, blank, effect):
    task = [1, 0, 0.5 if blank == "term" else None]
    values = [1, 0, 2 if blank == "task" else None]
    scenario = shaped(task, (values, 0.5), combine=(combine, {"missing": missing}))
    finding = findings(scenario)["missing_value"]
    which = "the term 'a'" if blank == "term" else "the task reward"
    assert finding.where == (0, 2)
    assert finding.text.startswith(f"Prompt 0, completion 2 has no value of {which}")
    assert EFFECTS[effect] in finding.text
    assert finding.text.endswith("NaN of 3 advantages, those of the whole group.")
    e = evaluate(scenario)
    part = e.attribution.parts[1 if blank == "term" else 0, 0, 2]
    filled = np.nan_to_num(e.attribution.values)
    as_zero = evaluate(shaped(filled[0, 0].tolist(), (filled[1, 0].tolist(), 0.5), combine=combine))
    if effect in ("zero", "nothing"):
        np.testing.assert_allclose(e.advantages, as_zero.advantages, rtol=1e-12)
    else:
        assert part == 0
        assert not np.allclose(e.advantages, as_zero.advantages)
    assert (effect == "unscored") == (not e.scored[0, 2])


# --- steps -------------------------------------------------------------------------------


def test_a_gain_by_steps_says_what_equal_counts_would_give():
    # Of 1, 1, 1, 0: mean 0.75, std 0.433; z of 1 is 0.5774. Two of them against one.
    said = text(stepped([1, 1, 0], [1, 1], [1], [0]), "gain_by_steps")
    assert said.startswith("Prompt 0, completion 0 gains only by having more steps. Its 2 steps")
    assert "the 1 of completion 1 (normalised, 0.5774 against 0.5774)" in said
    assert "add up to 1.155 against 0.5774: 0.5774 more." in said
    assert said.endswith("With 1 step of that mean it would have 0.5774.")


def test_no_one_gains_by_steps_within_completions():
    scenario = stepped([1, 1, 0], [1, 1, 0], [1, 0], [0, 1, 1, 1], over="completion")
    assert "gain_by_steps" not in findings(scenario)


def test_a_padded_wrong_answer_is_pushed_up_on_average():
    # Mean 4 / 6, std 0.4714: z is 0.7071 and -1.4142. Sums to go of 0, 0, 1, 1 are -1.414, 0,
    # 1.414 and 0.707: 0.177 on average.
    said = text(stepped([0, 1], [0, 0, 1, 1], [1, 1]), "wrong_answer_pushed_up")
    assert "is pushed up although its reward 0 is below its group's mean, 0.5" in said
    assert "the advantage −1.414, the mean over its 4 tokens is 0.1768" in said


def test_a_wrong_answer_that_only_starts_well_is_told_so():
    # Mean 3 / 5: z of 1 is 0.8165, of 0 -1.2247; 1, 1, 0 give 0.408, -0.408 and -1.225.
    said = text(stepped([0, 1], [1, 1, 0], [1, 0]), "wrong_answer_pushed_up")
    assert "completion 0 is pushed up at its start although" in said
    assert "the advantage 0.4082, the mean over its 3 tokens is −0.4082" in said


def test_sign_changes_are_counted_against_the_outcome_alone():
    # z of 1 is 0.7071, of 0 -1.4142: [-0.707, 0.707] and [0.707]; the outcome gives -1 and 1.
    said = text(stepped([0, 1], [0, 1], [1]), "credit_sign_changes")
    assert "the sign of 1 of 3 tokens (33.3%), most at prompt 0, completion 0, token 1" in said
    assert "from −1 by the outcome alone to 0.7071" in said
    # 1.7071 of 0.2929 + 1.7071 + 0.2929.
    assert said.endswith("That is 74.5% of all change in credit.")


@pytest.mark.parametrize(
    ("steps", "over", "said"),
    [
        ([[1, 1], [1]], "group", "in the group of prompt 0: all 3 steps have the reward 1."),
        ([[1], []], "group", "in the group of prompt 0: there is a single step, which is its own"),
        ([[1, 1], [1, 0]], "completion", "in prompt 0, completion 0: all 2 steps"),
        ([[1, 1], [0]], "completion", "completion 1: all steps have the same reward within each"),
    ],
)
def test_tied_steps_name_their_pool(steps, over, said):
    assert said in text(stepped([1, 0], *steps, over=over), "tied_steps")


def test_a_completion_without_steps_has_what_the_outcome_gives():
    scenario = stepped([1, 0], [1, 0], [])
    assert text(scenario, "no_steps").endswith("Its tokens get the advantage 0.")
    outcome = scenario.choose("advantage", outcome_weight=1.0)
    assert text(outcome, "no_steps").endswith("Its tokens have the outcome's advantage alone.")


# --- difficulty, silence, size and length ------------------------------------------------


def test_an_uneven_division_names_both_groups_and_the_others_that_it_favours():
    said = text(build_scenario(rewards=right(8, 1, 4, 7)), "divided_unevenly")
    assert "prompt 0 (mean 0.125) is divided by 0.3307, the group of prompt 1 (mean 0.5)" in said
    assert "counts 1.51 times as much in the first. Favoured, too: the group of prompt 2." in said


@pytest.mark.parametrize("choice", ["mean_only", "given"])
def test_what_no_std_divides_is_not_divided_unevenly(choice):
    scenario = build_scenario(rewards=right(8, 1, 4), advantages=[[0.0] * 8] * 2)
    assert "divided_unevenly" not in findings(scenario.choose("advantage", choice))


def test_groups_that_another_finding_explains_are_not_called_favoured():
    pairs = build_scenario(rewards=[[5, 3], [1, 0]])
    assert {"group_of_two"} <= findings(pairs).keys()
    assert "divided_unevenly" not in findings(pairs)
    # A bonus of 0.1 alone: std 0.05 against 0.5, a factor of 10 that no prompt's rate makes.
    bonus = build_scenario(
        rewards=right(4, 4, 2),
        term_values=[[[1], [1], [0], [0]], [[0]] * 4],
        terms=(Term("bonus", 0.1),),
        conventions=of(rewards="sum_then_normalize"),
    )
    assert "shaping_only_group" in findings(bonus)
    assert "divided_unevenly" not in findings(bonus)


def test_ties_beyond_chance_are_told_whether_many_or_few():
    # Groups of 4 at rate 0.5 tie in 2/16 = 12.5% of cases; 4 of 16 is 1.5 standard deviations
    # above, 5 of 16 is 2.3. At rate 0.01 it is 96.1%: 12 of 16 is 4.3 below.
    assert "silent_share" not in findings(kinds(right(4, *[0] * 4, *[2] * 12), 0.5))
    many = text(kinds(right(4, *[0] * 5, *[2] * 11), 0.5), "silent_share")
    assert many.startswith("5 of 16 groups are tied, 31.2%.")
    assert many.endswith("more than chance is between them, so the batch holds other prompts.")
    few = text(kinds(right(4, *[0] * 12, *[1] * 4), 0.01), "silent_share")
    assert "make 96.1% likely: more than chance is between them" in few


def test_chances_of_task_rewards_say_nothing_about_ties_that_the_kl_breaks():
    scenario = kinds([[1, 1]], 0.5, **{key: [rows] for key, rows in PULLED.items()})
    assert "silent_share" in findings(scenario)
    broken = scenario.with_conventions(KL_IN_REWARD)
    assert "tie_broken_by_kl" in findings(broken)
    assert "silent_share" not in findings(broken)


def test_a_pull_that_chance_would_not_make_is_told_although_wrong_answers_get_shorter():
    # The near miss of CASES twice, at half the weight: the whole stays -0.75, its size by chance
    # falls by sqrt(2) from 0.618 to 0.437, and 1.21 of it become 1.72.
    mask = [[[t < n for t in range(8)] for n in (2, 8)]] * 2
    said = text(build_scenario(rewards=[[1, 0]] * 2, mask=mask), "length_pull")
    assert "makes answers shorter (mean 5 tokens, −0.75 per unit of learning rate" in said
    assert "and ±0.437 is chance" in said
    assert "makes wrong ones shorter (−0.15) and right ones shorter (−0.6)." in said


def test_an_answer_whose_tokens_are_pushed_both_ways_is_not_called_right_or_wrong():
    assert "length_pull" not in findings(EXAMPLES["empty-steps-pass"])


# --- the recorded batch ------------------------------------------------------------------


def test_logged_advantages_give_the_trainers_loss():
    scenario = EXAMPLES["recorded-batch"]
    assert evaluate(scenario).loss == pytest.approx(float(scenario["logged_loss"]), abs=1e-6)


def test_own_advantages_miss_the_trainers_loss_by_the_residue_of_the_tied_group():
    trl = EXAMPLES["recorded-batch"].choose("advantage", "mean_std", ddof=1, eps=1e-4)
    found = findings(trl)
    assert "logged_loss_differs" not in found  # the residue explains all of it
    assert "logged_loss_differs" in findings(trl.choose("advantage", ddof=0))
    residue = found["advantages_residue"]
    assert residue.where == (0,)
    assert residue.figures["places"] == ((0,),)
    assert residue.figures["difference"] == pytest.approx(1.479e-4, abs=5e-8)
    assert residue.figures["from_tied"] == pytest.approx(1.48e-4, abs=5e-8)
    assert abs(residue.figures["from_others"]) < 1e-7
    parts = ("from_tied", "from_others", "unexplained")
    assert sum(residue.figures[part] for part in parts) == pytest.approx(
        residue.figures["difference"], rel=1e-9
    )
    assert "from the tied group of prompt 0" in residue.text


# --- what the examples teach -------------------------------------------------------------


def _close(values, expected):
    np.testing.assert_allclose(values, expected, atol=1e-4)


def teaches_four_answers(e):
    assert np.all((e.advantages > 0) == (e.scores > e.mean[:, None]))
    np.testing.assert_array_equal(
        (e.policy_gradient == 0), ~e.valid | e.clipped_low | e.clipped_high
    )


def teaches_one_zero_zero_one(e):
    assert (e.mean[0], e.std[0]) == (0.5, 0.5)
    _close(e.advantages, [[1, -1, -1, 1]])


def teaches_tied_and_graded(e):
    _close(e.advantages, [[0, 0, 0], [-1.2247, 0, 1.2247]])


def teaches_half_clipped(e):
    assert e.ratio[0, 0, 0] == pytest.approx(2.718, abs=5e-4)
    assert e.objective == pytest.approx(0.1, abs=1e-8)
    assert e.gradient[0, 0, 0] == 0


def teaches_every_clip_case(e):
    found = {item.case.key: item for item in clip_cases(e)}
    assert all(item.tokens for item in found.values())
    assert sum(item.tokens for item in found.values()) == 11
    assert (found["clipped_low"].tokens, found["dual_clipped"].tokens) == (1, 1)
    assert percent(found["clipped_low"].gradient) == "3.99%"
    assert percent(found["dual_clipped"].gradient) == "31.9%"


def teaches_tied_group(e):
    assert not e.advantages[1].any()
    assert not e.policy_gradient[1].any()
    assert e.gradient[1].any()


def teaches_nearly_tied(e):
    assert e.advantages[0, 3] == pytest.approx(1.732, abs=5e-4)
    assert np.ptp(e.scores[0]) == pytest.approx(1e-4)
    # "as a whole point would": rewards 0, 0, 0, 1 give the square root of 3.
    whole = evaluate(one_group([0, 0, 0, 1])).advantages[0, 3]
    assert whole == pytest.approx(e.advantages[0, 3], rel=1e-3)


def teaches_on_policy(e):
    assert np.all(e.ratio[e.valid] == 1)
    assert not e.kl.any()
    assert abs(e.loss) < 1e-15
    assert e.metrics["gradient_norm"] > 0.1


def teaches_token_mean_on_policy(e):
    assert np.all(e.ratio[e.valid] == 1)
    assert abs(e.loss) > 0.1
    long, short = 3, 2
    assert e.lengths[0, long] > e.lengths[0, short]
    assert e.advantages[0, long] < 0 < e.advantages[0, short]
    assert e.weight[0, long].sum() > e.weight[0, short].sum()


def teaches_group_of_two(e):
    _close(e.advantages, [[1, -1], [-1, 1], [1, -1]])
    _close(np.ptp(e.scores, axis=1), [0.1, 1, 2])


def teaches_long_against_short(e):
    assert e.lengths.tolist() == [[4, 4, 17, 17]]
    assert e.weight[0, 0, 0] / e.weight[0, 2, 0] == pytest.approx(4.25)


def teaches_left_padding(e):
    assert not e.valid[..., 0].all()
    assert e.valid[..., -1].all()
    right = {}
    for key in ("logp_new", "logp_old", "logp_ref", "mask"):
        rows = e.scenario[key]
        order = np.argsort(~e.valid, axis=-1, kind="stable")
        right[key] = np.take_along_axis(rows, order, axis=-1)
    assert evaluate(e.scenario.replace(**right)).loss == pytest.approx(e.loss, rel=1e-12)


def teaches_mask_with_hole(e):
    hole = ~e.valid & np.logical_or.accumulate(e.valid, axis=-1)
    hole &= np.logical_or.accumulate(e.valid[..., ::-1], axis=-1)[..., ::-1]
    assert hole.sum() == 9  # an arrow, a result and an arrow in three of four answers
    assert not e.gradient[hole].any()


def teaches_missing_reward(e):
    assert e.scored.tolist() == [[True, False, True, True]]
    assert e.advantages[0, 1] == 0
    assert e.mean[0] == pytest.approx(0.3333, abs=5e-5)


def teaches_unequal_groups(e):
    assert e.scored.sum(axis=1).tolist() == [4, 3, 4]
    assert e.tied.tolist() == [False, True, False]
    assert not e.advantages[1].any()


def teaches_kl_spike(e):
    spike = (0, 2, 0)
    assert e.logp_ref[spike] > -1
    assert e.logp_new[spike] < -7
    assert e.kl[spike] * e.weight[spike] > 0.99 * e.mean_kl


def teaches_float32_overflow(e):
    assert e.log_ratio.max() == pytest.approx(91.2)
    assert e.ratio.max() == pytest.approx(4.05e39, rel=5e-3)
    assert e.ratio.max() > np.finfo(np.float32).max


def teaches_sequence_ratio(e):
    stopped = e.clipped_low | e.clipped_high
    whole = stopped.sum(axis=-1)
    assert np.all((whole == 0) | (whole == e.lengths))
    assert np.any(whole == 0)
    assert np.any(whole > 0)
    mean = np.sum(np.where(e.valid, e.logp_new - e.logp_old, 0), axis=-1) / e.lengths
    np.testing.assert_allclose(np.max(e.ratio, axis=-1), np.exp(mean))


def teaches_kl_in_reward(e):
    assert np.ptp(e.scenario["rewards"][0]) == 0
    assert 0 < np.ptp(e.scores[0]) < 0.1
    assert np.abs(e.advantages[0]).max() > 1


def teaches_recorded_batch(e):
    logged = float(e.scenario["logged_loss"])
    assert abs(e.loss - logged) < 1e-6
    own = evaluate(e.scenario.choose("advantage", "mean_std", ddof=1, eps=1e-4))
    assert abs(own.loss - logged) > 1e-4


def teaches_more_steps_more_credit(e):
    # Three, five and one step that hold, and right; the wrong one has less.
    steps = np.sum(~np.isnan(e.scenario["step_ends"][0]), axis=1)
    right = e.scenario["rewards"][0] == 1
    assert steps[right].tolist() == [3, 5, 1]
    assert np.all(e.scenario["step_rewards"][0][right][:, 0] == 1)
    assert np.all(np.diff(e.advantages[0][right][np.argsort(steps[right])]) > 0)


def teaches_recorded_steps(e):
    # Equations left of ';' hold where a step is worth 1, and answers can be wrong none the less.
    wrong = e.scenario["rewards"][0] == 0
    assert np.any(e.step_advantages[0][wrong] > 0)
    assert np.any(e.token_advantages[0][wrong] > 0)


def teaches_empty_steps_pass(e):
    strict = evaluate(EXAMPLES["recorded-steps"])
    lenient, before = (each.scenario["step_rewards"] for each in (e, strict))
    passed = np.isfinite(before) & (lenient > before)
    assert passed.any()
    # The completion that writes most of them goes from far below to above 0.
    most = np.unravel_index(np.argmax(np.sum(passed, axis=2)), passed.shape[:2])
    assert strict.advantages[most] < 0 < e.advantages[most]


def teaches_bonus_breaks_a_tie(e):
    ones = [Term(term.name, 1.0, term.formula) for term in e.scenario.terms]
    full = evaluate(e.scenario.with_terms(ones, e.scenario["term_values"]))
    assert e.scenario.terms[0].weight == 0.01
    _close(e.advantages[0] / full.advantages[0], np.full(8, 0.9818))
    none = evaluate(e.scenario.choose("rewards", "outcome"))
    assert not none.advantages[0].any()
    assert np.max(np.abs(e.advantages[1] - none.advantages[1])) < 0.03


def teaches_recorded_step_bonus(e):
    assert [term.weight for term in e.scenario.terms] == [0.3]
    mean = e.attribution.shares.mean(axis=1)
    assert mean[1] > 0.5 > mean[0]


def teaches_length_and_judge(e):
    task, length = e.scenario["rewards"][0], e.lengths[0]
    assert length[task == 1].mean() > length[task == 0].mean()
    parts = e.attribution.parts[:, 0]
    assert np.sum(parts[0] * parts[1]) < 0
    assert np.isnan(e.attribution.values[2, 0]).tolist() == [False] * 4 + [True, False]


def teaches_terms_cancel(e):
    assert e.tied.all()
    assert not e.token_advantages.any()
    task, term = e.attribution.weighted[:, 0]
    assert np.ptp(task) > 0
    np.testing.assert_allclose(task - task.mean(), term.mean() - term)


def teaches_terms_per_token(e):
    penalised = np.flatnonzero(e.scenario["token_rewards"][0, 1] < 0)
    advantages = e.token_advantages[0, 1]
    before, after = advantages[: penalised[0] + 1], advantages[penalised[0] + 1 :]
    assert np.all(before == before[0])
    assert before[0] < 0
    assert np.all(after > before[0])


def _prompts(e):
    return prompts_from_table(e.scenario["reward_values"], e.scenario["reward_chances"])


def _difficulty(e):
    return difficulty(_prompts(e), int(e.scenario["group_size"]), "group", ddof=0, eps=1e-8)


def teaches_hard_and_easy_prompts(e):
    found = _difficulty(e)
    hard, middle = 0, 3
    assert (found.G, found.prompts.rates[hard], found.prompts.rates[middle]) == (8, 0.05, 0.5)
    for weight, factor in ((found.prompt_weight, 1.33), (found.limit, 2.29)):
        assert weight[hard] / weight[middle] == pytest.approx(factor, abs=5e-3)


def teaches_graded_difficulty(e):
    found = _difficulty(e)
    assert e.scenario["reward_values"].tolist() == [0, 0.5, 1]
    alike, apart = 2, 3
    assert found.prompts.mean[alike] == found.prompts.mean[apart]
    assert found.prompts.variance[alike] < found.prompts.variance[apart]
    assert found.prompt_weight[alike] > 1.3 * found.prompt_weight[apart]


def teaches_groups_of_three(e):
    for G in (2, 3):
        weight = difficulty(_prompts(e), G, "group", ddof=0, eps=0.0).prompt_weight
        np.testing.assert_allclose(weight, weight[0])
    assert set(e.scenario["reward_values"].tolist()) == {0, 1}
    np.testing.assert_allclose(e.std[~e.tied], np.sqrt(2) / 3)
    assert int(e.scenario["group_size"]) == 3


def teaches_large_groups_tie(e):
    prompts = _prompts(e)
    assert e.scored.sum(axis=1).tolist() == [16] * 6
    assert np.mean(np.abs(prompts.rates - 0.5) >= 0.45) > 0.5
    assert e.tied.mean() == 0.5
    assert np.mean(silent_probability(prompts, 16)) == pytest.approx(0.52, abs=5e-3)
    assert percent(round(np.mean(silent_probability(prompts, 32)), 2)) == "41%"


def teaches_mostly_silent(e):
    left = leftover(e)
    assert np.mean(_prompts(e).rates < 0.5) > 0.5
    assert (e.tied.sum(), len(e.tied), left.groups) == (6, 8, 0.75)
    assert not left.policy_pull[e.tied].any()
    assert np.all(left.kl_pull[e.tied] > 0)


def _policy(e):
    return softmax_policy(e.scenario["answer_logits"], e.scenario["answer_rewards"])


def teaches_budget_of_samples(e):
    curve = budget_curve(_policy(e), int(e.scenario["budget"]))
    assert curve.best_fresh == 5
    assert np.all(np.diff(curve.same) < 0)


def teaches_one_other_answer(e):
    noise = gradient_noise(_policy(e), 2)
    assert _policy(e).value[0] == pytest.approx(0.4, abs=5e-4)
    assert round(noise["leave_one_out"].per_sample[0], 3) == 0.344
    assert round(noise["none"].per_sample[0], 3) == 0.252


def teaches_long_wrong_answers(e):
    push = length_weights(e).rows[0].push[0]
    assert e.lengths[0, :2].tolist() == [6, 24]
    assert push[1] == pytest.approx(-push[0] / 4)


def teaches_lengths_and_difficulty(e):
    token = length_weights(e).rows[0].token
    is_right = e.scenario["rewards"] == 1
    assert is_right.sum(axis=1).tolist() == [1, 1]
    assert token[0][is_right[0]] == token[0].min()
    assert token[1][is_right[1]] == token[1].max()


@pytest.mark.parametrize("key", EXAMPLES)
def test_example_teaches_the_truth(key):
    check = globals()["teaches_" + key.replace("-", "_")]
    check(evaluate(EXAMPLES[key]))


# --- never an exception, never a warning -------------------------------------------------


def option_value(option):
    if isinstance(option.domain, OneOf):
        return st.sampled_from(list(option.domain.words))
    values = [option.default, 0, 0.5, 1, 1e-4, 1.5, 10, 1e6]
    return st.sampled_from([v for v in map(option.domain.coerce, values) if v in option.domain])


def variant_choice(variant):
    options = {option.key: option_value(option) for option in variant.options}
    return st.builds(Choice, st.just(variant.key), st.fixed_dictionaries(options))


CONVENTIONS = st.builds(
    Conventions,
    st.fixed_dictionaries(
        {
            key: st.one_of([variant_choice(variant) for variant in stage.variants.values()])
            for key, stage in STAGES.items()
        }
    ),
)
REWARD = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, float("nan"), 1e308, -1e308, 5e-324, 1 + 1e-12]),
    st.floats(-10, 10),
)
LOGP = st.one_of(
    st.sampled_from([0.0, -1.0, -INF, -1e308, -1e-300, -100.0, -88.8]), st.floats(-20, 0)
)
STEP_REWARD = st.sampled_from([0.0, 1.0, 0.5, 1.0 + 1e-12, -1e308, 1e308, 5e-324])
WEIGHT = st.sampled_from([0.0, 1.0, -0.5, 1e-6, 1e-300, 1e6, -1e6])
FORMULAS = [variant_choice(variant) for variant in TERMS.values()]
CHANCE = st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1e308])
AT_LEAST_0 = st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1e300])
GIVEN_ADVANTAGE = st.sampled_from([0.0, 1.0, -1.0, 1e-3, 1e308, -1e308, 5e-324])


@st.composite
def scenarios(draw):
    P, G, L = draw(st.tuples(*[st.integers(1, 3)] * 3))

    def array(cell, *shape):
        size = int(np.prod(shape))
        return np.array(draw(st.lists(cell, min_size=size, max_size=size))).reshape(shape)

    logp_new = array(LOGP, P, G, L)
    same = draw(st.booleans())
    arrays = {
        "rewards": array(REWARD, P, G),
        "advantages": array(GIVEN_ADVANTAGE, P, G),
        "logp_new": logp_new,
        "logp_old": logp_new if same else array(LOGP, P, G, L),
        "logp_ref": array(LOGP, P, G, L),
        "mask": array(st.booleans(), P, G, L),
        "present": array(st.booleans(), P, G),
    }
    arrays |= steps(draw, arrays["mask"] & arrays["present"][..., None])
    arrays |= {
        "token_advantages": array(GIVEN_ADVANTAGE, P, G, L),
        "logp_sampler": array(st.one_of(LOGP, st.just(float("nan"))), P, G, L),
        "sampler_weights": array(AT_LEAST_0, P, G, L),
        "entropy": array(AT_LEAST_0, P, G, L),
        "truncated": array(st.booleans(), P, G).astype(float),
    }
    K = draw(st.integers(0, 3))
    terms = draw(st.lists(st.one_of(*FORMULAS), min_size=K, max_size=K))
    terms = [Term(f"term {k}", draw(WEIGHT), formula) for k, formula in enumerate(terms)]
    if K:
        arrays["term_values"] = array(REWARD, P, G, K)
    arrays["token_ids"] = array(st.integers(0, 2), P, G, L)
    arrays["token_rewards"] = array(st.sampled_from([0.0, 1.0, -0.5, 1e300]), P, G, L)
    if draw(st.booleans()):
        arrays["logged_loss"] = draw(st.sampled_from([0.0, 0.1, -1e308]))
    if draw(st.booleans()):
        M = draw(st.integers(2, 3))
        arrays["reward_chances"] = array(CHANCE, draw(st.integers(1, 2)), M)
        arrays["reward_chances"][:, 0] += ~arrays["reward_chances"].any(axis=1)  # none all 0
        arrays["reward_values"] = array(st.sampled_from([0.0, 1.0, 0.5, -1e308]), M)
    if draw(st.booleans()):
        floats = {k: a for k, a in arrays.items() if k.startswith("logp") or k == "rewards"}
        with np.errstate(all="ignore"):
            single = {k: np.clip(a, -3e38, 3e38).astype(np.float32) for k, a in floats.items()}
        arrays |= single
    drift = draw(st.sampled_from([1.0, 0.0, 0.5, -1.0, 3.0, 1e6]))
    return build_scenario(**arrays, terms=terms, conventions=draw(CONVENTIONS), drift=drift)


def steps(draw, valid):
    """Up to three steps for each completion, ending at tokens that count, in order."""
    shape = (*valid.shape[:2], 3)
    ends, rewards = np.full(shape, np.nan), np.full(shape, np.nan)
    for where in np.ndindex(shape[:2]):
        there = np.flatnonzero(valid[where]).tolist()
        if there:
            found = sorted(draw(st.lists(st.sampled_from(there), max_size=3)))
            ends[where][: len(found)] = found
            values = st.lists(STEP_REWARD, min_size=len(found), max_size=len(found))
            rewards[where][: len(found)] = draw(values)
    return {"step_ends": ends, "step_rewards": rewards}


def plain(value):
    if isinstance(value, tuple):
        return all(map(plain, value))
    return type(value) in (bool, int, float, str, type(None))


@st.composite
def larger_groups(draw):
    """Few values of the reward in groups of up to 12, which what is said of rates is about."""
    values = st.sampled_from(draw(st.sampled_from([(0, 1), (0, 0, 0, 0, 0, 1), (0, 1, 2e307)])))
    P, G = draw(st.integers(1, 5)), draw(st.integers(2, 12))
    rewards = draw(st.lists(values, min_size=P * G, max_size=P * G))
    rewards = np.reshape(rewards, (P, G)).astype(float)
    arrays = {"advantages": rewards, "step_rewards": rewards[..., None]}
    arrays["step_ends"] = np.zeros((P, G, 1))
    ones = np.ones((P, G, 1))
    arrays |= dict.fromkeys(("token_advantages", "sampler_weights", "entropy"), ones)
    arrays |= {"logp_sampler": -ones, "truncated": (rewards == 1).astype(float)}
    return kinds(rewards, draw(st.floats(0, 1)), conventions=draw(CONVENTIONS), **arrays)


@given(scenario=st.one_of(scenarios(), larger_groups()))
def test_findings_never_raise_never_warn_and_hold_only_plain_numbers(scenario):
    evaluation = evaluate(scenario)
    for finding in find(evaluation):
        said = finding.text
        assert said.endswith(".")
        assert "undefined" not in said, finding
        assert "nan" not in said, finding
        assert not set("*_`$<>[]") & set(said.replace(">99.9%", "")), said  # nothing to render
        assert all(plain(value) for value in finding.figures.values()), finding
        assert all(0 <= i < n for i, n in zip(finding.where, scenario["mask"].shape, strict=False))
