"""Stage whitening: advantages of all tokens to mean 0 and variance 1."""

import numpy as np
import pytest

from grpo_core import Conventions, build_scenario, evaluate
from grpo_core.presets import PRESETS

# Rewards 3 and -1 with 3 and 1 tokens, minus their mean: 2 2 2 | -2.
# Mean 1; squares 1 1 1 9 = 12, over 3 or 4.
MASK = [[[1, 1, 1, 0], [0, 1, 0, 0]]]


def whitened(row, dtype=float, advantage="mean_only", rewards=((3.0, -1.0),), mask=MASK, **options):
    conventions = Conventions.of(advantage=advantage, whitening=(row, options))
    rewards = np.array(rewards, dtype)
    return evaluate(build_scenario(rewards=rewards, mask=mask, conventions=conventions))


@pytest.mark.parametrize(
    ("options", "up", "down"),
    [
        ({"ddof": 1, "eps": 0.0}, 1 / 2, -3 / 2),
        ({"ddof": 0, "eps": 0.0}, 1 / 3**0.5, -3 / 3**0.5),
        ({"ddof": 0, "eps": 1.0}, 1 / 2, -3 / 2),
        ({"ddof": 0, "eps": 1.0, "guard": "floor"}, 1 / 3**0.5, -3 / 3**0.5),
        # count 4 + 1: mean .8, squares 3 * 1.44 + 7.84 = 12.16, over 5
        ({"ddof": 0, "eps": 0.0, "count_eps": 1.0}, 1.2 / 2.432**0.5, -2.8 / 2.432**0.5),
        ({"ddof": 1, "eps": 0.0, "limit": 1.0}, 1 / 2, -1.0),
    ],
    ids=str,
)
def test_over_all_tokens_by_hand(options, up, down):
    computed = whitened("tokens", **options)
    expected = [[[up, up, up, 0], [0, down, 0, 0]]]
    np.testing.assert_allclose(computed.token_advantages, expected, rtol=1e-14)
    assert computed.advantages.tolist() == [[2, -2]]  # as judged, before


def test_a_floor_under_the_variance():
    # Half of the rewards: variance 3/4, below a floor of 1.
    computed = whitened("tokens", rewards=[[1.5, -0.5]], ddof=0, eps=1.0, guard="floor")
    assert computed.token_advantages[0, :, 1].tolist() == [0.5, -1.5]


def test_the_long_completion_pulls_the_mean():
    computed = whitened("tokens", eps=0.0)
    assert computed.token_advantages.sum() == pytest.approx(0, abs=1e-15)
    assert computed.token_advantages[0, 0, 0] != -computed.token_advantages[0, 1, 1]


def test_nothing_is_done_unless_asked_for():
    assert whitened("none").token_advantages.max() == 2
    computed = whitened("none", limit=1.5)
    assert computed.token_advantages.tolist() == [[[1.5] * 3 + [0], [0, -1.5, 0, 0]]]


@pytest.mark.parametrize("guard", ["added", "floor"])
@pytest.mark.parametrize("eps", [0.0, 1e-8])
@pytest.mark.parametrize("count_eps", [0.0, 1e-8])
@pytest.mark.parametrize("score", [1.0, 0.1, 1e8 + 0.1, 1e200, -1e-300])
def test_equal_advantages_become_exactly_0(guard, eps, count_eps, score):
    options = {"guard": guard, "eps": eps, "count_eps": count_eps, "advantage": "uncompared"}
    for mask in (MASK, np.ones((1, 2, 3))):
        computed = whitened("tokens", rewards=[[score, score]], mask=mask, **options)
        assert not computed.token_advantages.any()
    assert not whitened("tokens", rewards=[[1.0, 0.0]], mask=np.zeros((1, 2, 4)), **options).loss


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("power", [900, -900])
def test_the_unit_of_the_rewards_does_not_matter_without_eps(ddof, power):
    plain, scaled = (
        whitened("tokens", rewards=[[3.0 * unit, -1.0 * unit]], eps=0.0, ddof=ddof)
        for unit in (1.0, 2.0**power)
    )
    assert scaled.token_advantages.tolist() == plain.token_advantages.tolist()


@pytest.mark.parametrize("guard", ["added", "floor"])
def test_no_eps_is_seen_beside_a_huge_spread_and_no_spread_beside_a_large_eps(guard):
    # Two tokens +-x: sample variance 2 x^2.
    pair = {"mask": [[[1], [1]]], "advantage": "uncompared", "guard": guard}
    huge = whitened("tokens", rewards=[[1e200, -1e200]], **pair).token_advantages.ravel()
    np.testing.assert_allclose(huge, [2**-0.5, -(2**-0.5)], rtol=1e-15)
    tiny = whitened("tokens", rewards=[[1e-200, -1e-200]], **pair).token_advantages.ravel()
    np.testing.assert_allclose(tiny, [1e-196, -1e-196], rtol=1e-14)


@pytest.mark.parametrize("ddof", [0, 1])
def test_a_single_token_is_its_own_mean(ddof):
    computed = whitened("tokens", mask=[[[1], [0]]], ddof=ddof)
    assert not computed.token_advantages.any()


def test_number_type_is_kept():
    for row in ("none", "tokens"):
        assert whitened(row, np.float32).token_advantages.dtype == np.float32


def test_openrlhf_holds_the_judged_reward_before_the_kl_is_taken_off():
    # Rewards 1 and 0: +-0.7071, within 10. k1 is 10 at each of 400 tokens of the first, 0.1 after
    # the coefficient: its first token pays 400 * 0.1 = 40, its last one 0.1.
    new, ref = np.full((1, 2, 400), -11.0), np.full((1, 2, 400), -21.0)
    ref[0, 1] = -11.0
    scenario = build_scenario(
        rewards=[[1.0, 0.0]],
        logp_new=new,
        logp_ref=ref,
        conventions=PRESETS["openrlhf-0.11-group_norm"].conventions,
    )
    computed = evaluate(scenario).token_advantages[0]
    np.testing.assert_allclose(computed[0, [0, -1]], [0.5**0.5 - 40, 0.5**0.5 - 0.1], rtol=1e-7)
    np.testing.assert_allclose(computed[1], -(0.5**0.5))
    # Held within 0.5 it is 0.5 - 40.
    held = evaluate(scenario.choose("whitening", limit=0.5)).token_advantages[0]
    np.testing.assert_allclose([held[0, 0], held[1, 0]], [0.5 - 40, -0.5])


@pytest.mark.parametrize("guard", ["added", "floor"])
def test_what_is_held_before_is_whitened_as_it_is(guard):
    # 2 2 2 | -2 held within 1.5: half of the deviations of 3 and -3.
    held = whitened("tokens", before=1.5, guard=guard)
    plain = whitened("tokens", rewards=[[1.5, -1.5]], guard=guard)
    np.testing.assert_array_equal(held.token_advantages, plain.token_advantages)


def test_kl_in_the_returns_is_taken_off_before():
    # Advantages 2 2 2 | -2 less .1 * (1 1 1) to go: 1.7 1.8 1.9 | -2.
    scenario = whitened("tokens", eps=0.0).scenario
    new, ref = np.full((1, 2, 4), -1.0), np.full((1, 2, 4), -1.0)
    ref[0, 0] = -2.0
    arrays = {"logp_new": new, "logp_old": new, "logp_ref": ref}
    moved = scenario.replace(**arrays).choose("kl", "k1", beta=0.1, place="returns")
    values = np.array([1.7, 1.8, 1.9, -2.0])
    expected = (values - values.mean()) / values.std(ddof=1)
    np.testing.assert_allclose(evaluate(moved).token_advantages[0, 0, :3], expected[:3])
