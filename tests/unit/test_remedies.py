"""Remedies against silent groups, each on the same batch, worked by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import ScenarioError, group_advantages
from grpo_core.prompt_rewards import prompts_from_rates
from grpo_core.remedies import REMEDIES, Situation, remedied

REWARDS = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 1], [1, 0, 0, 0]], dtype=float)
BONUS = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]], dtype=float)
EXACT = {"eps": 0.0}
EASY = prompts_from_rates([0.5, 0.8])


def situation(**changed):
    return Situation(**{"options": EXACT, "bonus": BONUS, "prompts": EASY, **changed})


@pytest.mark.parametrize("key", REMEDIES)
def test_every_remedy_returns_a_batch_and_leaves_the_rewards_alone(key):
    before = REWARDS.copy()
    found = remedied(REWARDS, key, situation())
    assert found.advantages.shape == found.rewards.shape == REWARDS.shape
    assert_allclose(np.sum(found.advantages, axis=1), 0, atol=1e-12)
    assert_array_equal(REWARDS, before)
    assert found.cost == found.generated / found.teaching


def test_nothing_is_the_group_std_of_the_core():
    found = remedied(REWARDS, "nothing")
    assert_array_equal(found.advantages, group_advantages(REWARDS))
    assert found.silent.tolist() == [True, True, False, False]
    assert (found.teaching, found.generated, found.cost) == (2, 4, 2)


def test_filtering_doubles_what_is_left_of_half_a_batch():
    plain, found = (remedied(REWARDS, key, situation()) for key in ("nothing", "filter"))
    assert_array_equal(found.advantages, plain.advantages)
    assert found.factor.tolist() == [0, 0, 2, 2]
    assert_allclose(found.push, 2 * plain.push)
    assert found.generated == plain.generated


def test_the_std_of_the_batch_and_leaving_one_out_wake_no_silent_group():
    for key in ("batch", "leave_one_out"):
        found = remedied(REWARDS, key, situation())
        assert found.silent.tolist() == [True, True, False, False]
    # Seven of sixteen right: std sqrt(7 x 9)/16; leaving one out: 1 - 0 in the last group.
    batch = remedied(REWARDS, "batch", situation()).advantages
    assert_allclose(batch[2], np.array([0.5, -0.5, -0.5, 0.5]) * 16 / np.sqrt(63))
    loo = remedied(REWARDS, "leave_one_out").advantages
    assert_allclose(loo[3], [1, -1 / 3, -1 / 3, -1 / 3])


@pytest.mark.parametrize("weight", [1e-6, 0.01, 1.0, -1.0])
def test_a_bonus_in_a_tied_group_pushes_at_full_size_whatever_its_weight(weight):
    found = remedied(REWARDS, "shape", situation(bonus_weight=weight))
    # One of four has it: sqrt(3) and -sqrt(1/3). Two of four: 1 and -1.
    sign = np.sign(weight)
    assert_allclose(found.advantages[0], sign * np.array([3, -1, -1, -1]) / np.sqrt(3), rtol=1e-9)
    assert_allclose(found.advantages[1], sign * np.array([1, 1, -1, -1]), rtol=1e-9)
    assert_allclose(found.bonus_share[:3], [1, 1, 0], atol=1e-12)


def test_eps_takes_over_once_the_weight_is_no_larger():
    # s_f = sqrt(1/8 x 7/8 x 8/7) = 0.353553 (sample): half size at w = eps/s_f = 2.83e-4.
    rewards, bonus = np.zeros((1, 8)), np.eye(8)[:1]
    options = {"ddof": 1, "eps": 1e-4}
    for weight, top in ((1e-4, 0.6464), (1e-3, 1.9292), (0.01, 2.4068), (0.1, 2.4679), (1, 2.4742)):
        given = Situation(options=options, bonus=bonus, bonus_weight=weight)
        assert remedied(rewards, "shape", given).advantages[0, 0] == pytest.approx(top, abs=6e-5)


def test_share_of_the_bonus_in_a_mixed_group_by_hand():
    # 1, 0, 0, 0 and a bonus of 0.5 for the third: total 1, 0, 0.5, 0 with mean 0.375.
    # Sum of squared deviations 0.6875; with the bonus's own deviations (-.125, -.125, .375,
    # -.125) the sum of products is -.078125 + .046875 + .046875 + .046875 = 0.0625.
    found = remedied(REWARDS, "shape", situation(bonus_weight=0.5))
    assert found.bonus_share[3] == pytest.approx(0.0625 / 0.6875)


def test_refilling_makes_every_group_teach_at_its_cost():
    found = remedied(REWARDS, "refill", situation(seed=1))
    assert not found.silent.any()
    assert_array_equal(found.rewards[2:], REWARDS[2:])
    assert found.fresh[2:].tolist() == [-1, -1]
    assert set(found.fresh[:2].tolist()) <= {0, 1}
    assert found.generated >= 6
    again, other = (remedied(REWARDS, "refill", situation(seed=s)) for s in (1, 2))
    assert_array_equal(again.rewards, found.rewards)
    assert not np.array_equal(other.rewards, found.rewards)


def test_refilling_costs_two_draws_where_half_the_groups_are_mixed():
    # Groups of two at p = 1/2 are mixed with 1/2, so four silent ones need 8 draws, sd sqrt(8).
    rewards, half = np.ones((4, 2)), prompts_from_rates([0.5])
    drawn = [
        remedied(rewards, "refill", situation(prompts=half, seed=seed)).generated - 4
        for seed in range(200)
    ]
    assert np.mean(drawn) == pytest.approx(8, abs=4 * np.sqrt(8 / 200))


def test_where_no_group_can_be_mixed_the_silent_ones_are_left_out():
    found = remedied(REWARDS, "refill", situation(prompts=prompts_from_rates([0.0, 1.0])))
    assert found.generated == np.inf
    assert found.factor.tolist() == [0, 0, 1, 1]
    assert found.teaching == 2


@pytest.mark.parametrize("key", ["nothing", "filter", "batch", "leave_one_out"])
def test_a_batch_in_which_all_groups_are_silent(key):
    found = remedied(np.ones((3, 4)), key, situation())
    assert not found.advantages.any()
    assert (found.teaching, found.cost) == (0, np.inf)
    assert not found.push.any()


def test_a_batch_without_silent_groups_is_not_refilled():
    found = remedied(REWARDS[2:], "refill", situation())
    assert_array_equal(found.rewards, REWARDS[2:])
    assert found.generated == 2


def test_a_missing_score_gets_no_bonus():
    rewards = REWARDS.copy()
    rewards[0, 0] = np.nan
    found = remedied(rewards, "shape", situation())
    assert found.advantages[0].tolist() == [0, 0, 0, 0]
    assert found.silent[0]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: remedied(REWARDS, "hope"), "unknown remedy 'hope'; choose one of nothing"),
        (lambda: remedied(REWARDS, "shape"), "shape needs bonus"),
        (lambda: remedied(REWARDS, "refill"), "refill needs prompts"),
        (lambda: remedied([[1, np.inf]], "nothing"), "rewards at prompt 0, completion 1 is inf"),
        (lambda: remedied(REWARDS[:2], "shape", situation()), "bonus has shape (4, 4); expected"),
        (
            lambda: remedied(REWARDS, "shape", situation(bonus_weight=np.nan)),
            "bonus_weight is nan; wanted",
        ),
        (lambda: remedied(REWARDS, "refill", situation(seed=-1)), "seed is -1; wanted"),
        (
            lambda: remedied(REWARDS, "nothing", Situation(options={"eps": -1})),
            "scale.eps is -1; wanted",
        ),
    ],
)
def test_bad_input_is_named(build, message):
    with pytest.raises(ScenarioError) as caught:
        build()
    assert str(caught.value).startswith(message)
