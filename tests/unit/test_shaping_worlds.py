"""What shaping does to the policy: two worlds, against sums over every single outcome."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from grpo_core import ScenarioError
from grpo_core.shaping_potential import (
    CREDITS,
    Potential,
    TwoSteps,
    prompt_weights,
    two_step_gradients,
)
from grpo_core.shaping_worlds import Bandit, bandit_update, follow_update, update_flip

SAMPLE = {"ddof": 1, "eps": 0.0}


def expected_gap(bandit, weight, policy, ddof, eps):
    """E[advantage | A] - E[advantage | B] of the first completion, outcome by outcome."""
    kinds = [  # (chance, reward, is A)
        (policy * bandit.success_a, 1.0, True),
        (policy * (1 - bandit.success_a), 0.0, True),
        ((1 - policy) * bandit.success_b, 1.0 + weight, False),
        ((1 - policy) * (1 - bandit.success_b), weight, False),
    ]
    sums = {True: 0.0, False: 0.0}
    for group in product(kinds, repeat=bandit.size):
        rewards = np.array([reward for _, reward, _ in group])
        std = np.std(rewards, ddof=ddof)
        if np.ptp(rewards) > 0:
            advantage = (rewards[0] - np.mean(rewards)) / (std + eps)
            sums[group[0][2]] += np.prod([chance for chance, _, _ in group]) * advantage
    return sums[True] / policy - sums[False] / (1 - policy)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize(("ddof", "eps"), [(0, 1e-8), (1, 1e-4), (1, 0.5)])
@pytest.mark.parametrize("weight", [-0.3, 1e-3, 0.2, 1.5])
def test_the_gap_is_that_of_all_outcomes(size, ddof, eps, weight):
    bandit = Bandit(success_a=0.7, success_b=0.4, size=size)
    found = bandit_update(bandit, [0.0, weight], [0.5, 0.2], ddof=ddof, eps=eps)
    expected = [
        [expected_gap(bandit, w, policy, ddof, eps) for policy in (0.5, 0.2)] for w in (0.0, weight)
    ]
    assert_allclose(found.gap, expected, rtol=1e-11)
    assert_allclose(found.update, found.gap * [0.25, 0.16], rtol=1e-14)


@pytest.mark.parametrize("size", range(2, 9))
def test_without_the_std_the_gap_is_that_of_the_expected_rewards(size):
    # Less the group's own mean: (G - 1) / G of a - b - w, for every policy.
    bandit, weights = Bandit(success_a=0.6, success_b=0.35, size=size), np.linspace(-1, 2, 7)
    found = bandit_update(bandit, weights, [0.1, 0.5, 0.99], scale="none")
    expected = np.repeat((0.25 - weights)[:, None] * (size - 1) / size, 3, axis=1)
    assert_allclose(found.gap, expected, atol=1e-14)


# Where the expected update turns, for groups of 2, 4 and 8: sample formula, no eps. 0 is
# any positive weight.
TURNS = [
    (0.6, 0.5, 0.5, 0, 0, 0.1040),
    (0.3, 0.1, 0.5, 0, 0, 0.0729),
    (0.3, 0.1, 0.05, 0, 0, 0),
    (0.95, 0.5, 0.5, 0, 0.4273, 0.4557),
    (0.05, 0.02, 0.5, 0, 0, 0),
]


@pytest.mark.parametrize(("a", "b", "policy", "two", "four", "eight"), TURNS)
def test_with_the_std_the_update_turns_elsewhere_than_the_optimum(a, b, policy, two, four, eight):
    for size, expected in ((2, two), (4, four), (8, eight)):
        bandit = Bandit(success_a=a, success_b=b, size=size)
        assert update_flip(bandit, policy, **SAMPLE) == pytest.approx(expected, abs=5e-5)
        plain = update_flip(bandit, policy, scale="none")
        assert plain == pytest.approx(bandit.optimum_flip, abs=1e-11)
        assert bandit.optimum_flip == pytest.approx(a - b)


@pytest.mark.parametrize(("a", "b"), [(0.9, 0.3), (0.8, 0.4), (0.6, 0.1), (0.5, 0.0), (1.0, 0.4)])
def test_in_groups_of_two_only_the_order_counts(a, b):
    # B wins but where A is right and B wrong, for every weight between 0 and 1: A is
    # favoured up to 1 if a (1 - b) > 1/2, else never.
    turn = update_flip(Bandit(success_a=a, success_b=b, size=2), **SAMPLE)
    assert turn == pytest.approx(1.0 if a * (1 - b) > 0.5 else 0.0)


def test_eps_makes_any_weight_one_of_its_own_size():
    bandit = Bandit(success_a=0.3, success_b=0.1, size=4)
    turns = [update_flip(bandit, ddof=1, eps=eps) for eps in (1e-4, 1e-6)]
    assert 0 < turns[0] < 1e-3
    assert turns[1] == pytest.approx(turns[0] / 100, rel=1e-2)


def test_beyond_the_turn_b_is_favoured_and_before_it_a():
    bandit = Bandit(success_a=0.95, success_b=0.5, size=4)
    turn = update_flip(bandit, ddof=1, eps=1e-4)
    before, after = bandit_update(bandit, [turn - 1e-6, turn + 1e-6], ddof=1, eps=1e-4).gap[:, 0]
    assert before > 0 > after


def test_where_b_is_better_without_a_bonus_the_optimum_needs_none():
    bandit = Bandit(success_a=0.2, success_b=0.6)
    assert (bandit.optimum_flip, update_flip(bandit)) == (0.0, 0.0)


def test_the_chance_that_the_bonus_alone_decides():
    # Two completions, one of each answer (1/2), both right (0.06) or both wrong (0.56).
    bandit = Bandit(success_a=0.3, success_b=0.2, size=2)
    assert bandit_update(bandit, [0.1]).decided[0] == pytest.approx(0.31)


def test_followed_the_update_leads_to_the_answer_it_favours():
    bandit = Bandit(success_a=0.3, success_b=0.1)  # the optimum is A up to a bonus of 0.2
    with_std = follow_update(bandit, 0.1, 0.5, steps=300, ddof=1)
    without = follow_update(bandit, 0.1, 0.5, steps=300, scale="none")
    assert with_std[-1] < 0.05
    assert without[-1] > 0.8
    # The first step: logit 0 moves by the update.
    step = bandit_update(bandit, [0.1], ddof=1).update[0, 0]
    assert with_std[:2].tolist() == pytest.approx([0.5, 1 / (1 + np.exp(-step))])


def test_a_path_ends_at_certainty_and_not_in_an_overflow():
    path = follow_update(Bandit(success_a=0.0, success_b=1.0), 1.0, steps=50, learning_rate=1e3)
    assert np.all((path >= 0) & (path <= 1))


# Two steps. The true gradient by the logit of going on: 0.4 x 0.6 x (0.55 - 0.4) = 0.036, by
# that of being right: 0.4 x 0.25 x (0.9 - 0.2) = 0.07.
WORLD = TwoSteps()


def test_the_true_gradient_by_hand():
    assert_allclose(WORLD.gradient, [0.036, 0.07], rtol=1e-14)


def token_0(key, **potential):
    return two_step_gradients(WORLD, Potential(**potential), size=2, eps=0.0)[key][0]


KNOWN = [
    ("steps_mean", {}, -0.020),
    ("steps_mean", {"middle": 0.5}, -0.020),
    ("steps_mean", {"start": 0.5}, 0.020),
    ("steps_std", {}, -0.136),
    ("steps_std", {"middle": 0.5}, 0.017),
    ("steps_std", {"middle": 1.0}, -0.023),
]


@pytest.mark.parametrize(("key", "potential", "expected"), KNOWN)
def test_pooled_steps_change_the_gradient_even_its_sign(key, potential, expected):
    assert token_0(key, **potential) == pytest.approx(expected, abs=5e-4)


POTENTIALS = [{}, {"middle": 0.5}, {"start": 0.5}, {"end": -2.0}, {"start": 1, "middle": -3}]


@pytest.mark.parametrize("potential", POTENTIALS)
@pytest.mark.parametrize("size", [2, 3, 8])
def test_a_potential_leaves_outcomes_and_returns_to_go_alone(potential, size):
    found = two_step_gradients(WORLD, Potential(**potential), size=size)
    for key in ("leave_one_out", "to_go"):
        assert_allclose(found[key], WORLD.gradient, rtol=1e-12)
    assert_allclose(found["to_go_mean"], WORLD.gradient * (size - 1) / size, rtol=1e-12)
    plain = two_step_gradients(WORLD, size=size)
    assert_allclose(found["outcome_std"], plain["outcome_std"], rtol=1e-7, atol=1e-12)


def test_over_the_std_a_potential_of_the_middle_changes_returns_to_go():
    plain = two_step_gradients(WORLD)["to_go_std"]
    shaped = two_step_gradients(WORLD, Potential(middle=0.5))["to_go_std"]
    assert abs(shaped[1] - plain[1]) > 0.1


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("potential", POTENTIALS)
def test_pooled_steps_are_those_of_all_outcomes(size, potential):
    kinds = WORLD.step_rewards(Potential(**potential))
    expected = np.zeros(2)
    for group in product(range(3), repeat=size):
        steps = [kinds[kind][~np.isnan(kinds[kind])] for kind in group]
        pool = np.concatenate(steps)
        chance = np.prod(WORLD.chances[list(group)])
        for kind, own in zip(group, steps, strict=True):
            z = (own - pool.mean()) / (pool.std(ddof=1) + 0.01)
            to_go = np.array([z.sum(), z[1:].sum()])
            expected += chance * to_go * WORLD.scores[kind] / size
    found = two_step_gradients(WORLD, Potential(**potential), size=size, ddof=1, eps=0.01)
    assert_allclose(found["steps_std"], expected, rtol=1e-11, atol=1e-14)


EASY = TwoSteps(right=0.9, short_reward=0.0, wrong_reward=0.0, right_reward=1.0)
HARD = TwoSteps(right=0.1, short_reward=0.0, wrong_reward=0.0, right_reward=1.0)


@pytest.mark.parametrize("potential", [Potential(), Potential(start=1, middle=-2)])
def test_without_the_std_every_prompt_counts_alike_and_with_it_the_hard_one_more(potential):
    found = prompt_weights([EASY, HARD], potential, size=8)
    for key in ("leave_one_out", "to_go"):
        assert_allclose(found[key], np.ones((2, 2)), rtol=1e-11)
    assert_allclose(found["to_go_mean"], np.full((2, 2), 7 / 8), rtol=1e-11)
    easy, hard = found["outcome_std"]
    assert np.all(hard > 1.2 * easy)


def test_the_std_of_pooled_steps_lets_the_potential_weigh_the_prompts():
    plain = prompt_weights([EASY, HARD], size=8)["steps_std"]
    shaped = prompt_weights([EASY, HARD], Potential(middle=0.5), size=8)["steps_std"]
    assert plain[1, 0] > plain[0, 0]
    assert shaped[1, 0] < shaped[0, 0]


def test_a_prompt_that_teaches_nothing_has_no_weight():
    flat = TwoSteps(short_reward=0.5, wrong_reward=0.5, right_reward=0.5)
    for weights in prompt_weights([flat]).values():
        assert np.isnan(weights).all()
    for key in ("leave_one_out", "outcome_std", "to_go_std"):
        assert not two_step_gradients(flat)[key].any()


def test_every_way_of_credit_says_whether_it_divides():
    # Rewards ten times as large: what divides does not see it.
    large = TwoSteps(short_reward=4.0, wrong_reward=2.0, right_reward=9.0)
    small, tenfold = (two_step_gradients(world, size=3, eps=0.0) for world in (WORLD, large))
    for key, credit in CREDITS.items():
        factor = 1 if credit.divides else 10
        assert_allclose(tenfold[key], factor * small[key], rtol=1e-11, atol=1e-13)


BAD = [
    (lambda: Bandit(success_a=1.2, success_b=0), "success_a is 1.2; wanted a number of at least 0"),
    (lambda: Bandit(success_a=1, success_b=0, size=9), "size is 9; wanted a whole number"),
    (lambda: bandit_update(Bandit(success_a=1, success_b=0), [np.inf]), "weights at entry 0"),
    (
        lambda: bandit_update(Bandit(success_a=1, success_b=0), [0.1], [0.5, 1.0]),
        "policy_a at entry 1 is 1; wanted a chance above 0 and below 1",
    ),
    (lambda: update_flip(Bandit(success_a=1, success_b=0), 0.0), "policy_a at entry 0 is 0"),
    (lambda: update_flip(Bandit(success_a=1, success_b=0), eps=-1), "eps is -1; wanted"),
    (lambda: follow_update(Bandit(success_a=1, success_b=0), 0.1, steps=0), "steps is 0; wanted"),
    (lambda: TwoSteps(go_on=0), "go_on at entry 0 is 0; wanted a chance"),
    (lambda: TwoSteps(right_reward=np.nan), "right_reward is nan; wanted a number"),
    (lambda: Potential(middle="up"), "middle is 'up'; wanted a number"),
    (lambda: two_step_gradients(WORLD, size=1), "size is 1; wanted a whole number of at least 2"),
    (lambda: two_step_gradients(None), "world is no TwoSteps"),
    (lambda: two_step_gradients(WORLD, ddof=3), "ddof is 3; wanted one of 0, 1"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_bad_input_is_refused_with_what_is_wanted(call, words):
    with pytest.raises(ScenarioError, match=words):
        call()
