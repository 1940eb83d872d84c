"""Returns to go: what is still earned from a token on."""

import numpy as np
import pytest

from grpo_core import Conventions, build_scenario, evaluate
from grpo_core.returns import returns_to_go


def to_go(rewards, valid=None, gamma=1.0):
    rewards = np.array([[rewards]], float)
    valid = np.ones(rewards.shape, bool) if valid is None else np.array([[valid]], bool)
    return returns_to_go(np.where(valid, rewards, 0.0), valid, gamma)[0, 0].tolist()


def test_by_hand():
    assert to_go([1, 2, 4]) == [7, 6, 4]
    # 1 + .5 (2 + .5 * 4)
    assert to_go([1, 2, 4], gamma=0.5) == [3, 4, 4]
    assert to_go([1, 2, 4], gamma=0.0) == [1, 2, 4]


def test_masked_tokens_are_no_steps():
    assert to_go([1, 99, 2, 99, 4], [1, 0, 1, 0, 1], gamma=0.5) == [3, 0, 4, 0, 4]
    assert to_go([1, 2], [0, 0]) == [0, 0]


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 33])
@pytest.mark.parametrize("gamma", [1.0, 0.9, 1e-200])
def test_every_length_equals_a_loop(length, gamma):
    rng = np.random.default_rng(length)
    rewards = rng.normal(size=length)
    expected, carried = [], 0.0
    for reward in rewards[::-1]:
        carried = reward + gamma * carried
        expected.append(carried)
    np.testing.assert_allclose(to_go(rewards, gamma=gamma), expected[::-1], rtol=1e-12, atol=1e-14)


def test_a_sum_within_range_is_right_where_a_part_of_it_is_not():
    big = np.finfo(float).max
    assert to_go([0.0, -big, big, big]) == [big, big, np.inf, big]
    assert to_go([-np.inf, np.inf, 1.0]) == [-np.inf, np.inf, 1]


def row(**more):
    return evaluate(
        build_scenario(
            rewards=[[1.0, -1.0]],
            mask=[[[1, 1, 1], [1, 0, 1]]],
            conventions=Conventions.of(advantage=("returns", {"gamma": 0.5})),
            **more,
        )
    )


def test_the_reward_of_a_completion_falls_on_its_last_token():
    computed = row()
    assert computed.token_advantages.tolist() == [[[0.25, 0.5, 1], [-0.5, 0, -1]]]
    assert computed.advantages.tolist() == [[0.25, -0.5]]


def test_rewards_of_tokens_are_earned_where_they_fall():
    computed = row(token_rewards=[[[4, 0, 0], [0, 7, 2]]])
    assert computed.token_advantages.tolist() == [[[4.25, 0.5, 1], [0.5, 0, 1]]]
