"""What steps bring: the pool in closed form, masses, gains by count, and other rules."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import ScenarioError, process_advantages
from grpo_core.credit_rules import CREDIT_RULES
from grpo_core.step_credit import (
    credit_changes,
    gains_by_count,
    late_credit,
    mass,
)
from tests.step_pools import pool_of, pool_with_halves, pool_with_step

NAN = np.nan


def group(*rewards):
    """One group, a token to each step: ends, rewards (1, G, S) and valid (1, G, S)."""
    size = max(map(len, rewards))
    filled = np.array([[[*row, *[NAN] * (size - len(row))] for row in rewards]], dtype=float)
    valid = ~np.isnan(filled)
    return np.where(valid, np.arange(size), NAN), filled, valid


def z_of(rewards, ddof=0, eps=0.0):
    """Normalised step rewards (1, G, S) by the plain formula."""
    pool = rewards[~np.isnan(rewards)]
    return np.nan_to_num((rewards - pool.mean()) / (pool.std(ddof=ddof) + eps))


def first_of(*rewards):
    return pool_of(group(*rewards)[1], 0, eps=0).first


def test_the_pool_of_two_completions_by_hand():
    # Pool 1, 0, 1, 0, 0: mean 0.4, std sqrt(0.24) = 0.4899. Deviations 2 - 3 x 0.4 = 0.8 and
    # 0 - 2 x 0.4 = -0.8; over the std 1.633 and -1.633.
    pool = pool_of(group([1, 0, 1], [0, 0])[1], 0, eps=0)
    assert (pool.count, pool.mean) == (5, 0.4)
    assert pool.std == pytest.approx(0.4899, abs=5e-5)
    assert_allclose(pool.deviations, [0.8, -0.8], atol=1e-15)
    assert_allclose(pool.first, [1.633, -1.633], atol=5e-4)


# What an edit of [1, 0, 1], [0, 0] makes of the first tokens, each worked by hand:
#   copy of a 1: pool 1 1 0 1 0 0, mean 1/2, std 1/2: (3 - 4/2) / (1/2) = 2
#   copy of the 0: pool of six, mean 1/3, std sqrt(2)/3: (2 - 4/3) / 0.4714 = 1.414
#   the first 1 in halves: mean 1/3, squares (1/4 + 1/4 + 1)/6 - 1/9 = 5/36, std 0.3727:
#     (2 - 4/3) / 0.3727 = 1.789
#   a pass for the second: mean 1/2, std 1/2: (2 - 3/2) / (1/2) = 1
EDITED = {
    "copy of a right step": (lambda r: pool_with_step(r, (0, 0), 1.0, eps=0), 2.0),
    "copy of the wrong step": (lambda r: pool_with_step(r, (0, 0), 0.0, eps=0), 1.4142),
    "a right step in halves": (lambda r: pool_with_halves(r, (0, 0, 0), eps=0), 1.7889),
    "a pass for the other": (lambda r: pool_with_step(r, (0, 1), 1.0, eps=0), 1.0),
}


@pytest.mark.parametrize(("edited", "first"), EDITED.values(), ids=EDITED)
def test_the_first_token_after_an_edit_by_hand(edited, first):
    pool = edited(group([1, 0, 1], [0, 0])[1])
    assert_allclose(pool.first, [first, -first], atol=5e-5)


def test_the_tokens_after_an_edit_by_hand():
    rule = CREDIT_RULES["sum"].function
    ends, rewards, valid = group([1, 1, 0, 1], [0, 0])
    # Mean and std 1/2: a 1 is worth 1, a 0 is worth -1.
    expected = [[[2, 1, 0, 1], [-2, -1, 0, 0]]]
    assert_allclose(rule(rewards, ends, valid, eps=0), expected, atol=1e-12)
    ends, rewards, valid = group([1, 0, 1], [0, 0, 1])
    assert_allclose(rule(rewards, ends, valid, eps=0), [[[1, 0, 1], [-1, 0, 1]]], atol=1e-12)


def test_the_std_can_turn_a_gain_before_the_division_into_a_loss_after_it():
    # Pool of 1 and 0, ten each: mean 1/2, std 1/2, sums 5 and -5, first tokens 10 and -10. One
    # step of 4 more: d = 3.5, sum 5 + 3.5 x 10/21 = 6.667, variance 20/21 (1/4 + 12.25/21) =
    # 0.7937, std 0.8909, first token 7.483.
    _, rewards, _ = group([1] * 10, [0] * 10)
    before, after = pool_of(rewards, 0), pool_with_step(rewards, (0, 0), 4.0)
    assert (before.deviations[0], before.first[0]) == pytest.approx((5, 10))
    assert (after.deviations[0], after.first[0]) == pytest.approx((6.667, 7.483), abs=5e-4)


@pytest.mark.parametrize("ddof", [0, 1])
def test_a_pool_that_an_edit_ties_gives_exactly_0(ddof):
    # 0.2 in halves beside 0.1: three times 0.1.
    halves = pool_with_halves(group([0.2], [0.1])[1], (0, 0, 0), ddof=ddof)
    assert not halves.first.any()
    same = pool_with_step(group([0.1, 0.1, 0.1], [0.1])[1], (0, 1), 0.1, ddof=ddof, eps=0)
    assert not same.first.any()
    alone = pool_with_step(group([NAN], [NAN])[1], (0, 1), 3.0, ddof=ddof, eps=0)
    assert (alone.count, alone.mean, alone.std) == (1, 3.0, 0.0)
    assert not alone.first.any()
    assert not pool_of(group([NAN], [NAN])[1], 0, ddof=ddof, eps=0).first.any()


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_tiny_and_huge_rewards_give_the_same_pools(size):
    _, rewards, _ = group([1, 0, 1], [0, 0])
    plain = pool_with_step(rewards, (0, 1), 0.5, eps=0)
    scaled = pool_with_step(rewards * size, (0, 1), 0.5 * size, eps=0)
    assert_allclose(scaled.first, plain.first, rtol=1e-12)
    plain, scaled = (pool_with_halves(r, (0, 0, 2), eps=0) for r in (rewards, rewards * size))
    assert_allclose(scaled.first, plain.first, rtol=1e-12)


def test_pools_refuse_what_is_not_there():
    _, rewards, _ = group([1, 0], [0])
    with pytest.raises(ScenarioError, match="completion 2 is not in the batch"):
        pool_with_step(rewards, (0, 2), 1.0)
    with pytest.raises(ScenarioError, match="completion 1, step 1 is nan"):
        pool_with_step(rewards, (0, 1), NAN)
    with pytest.raises(ScenarioError, match="completion 1 has no step 1"):
        pool_with_halves(rewards, (0, 1, 1))


# Repeating one step n times beside fixed others: the more the better above the pool's mean,
# the fewer the better below it.
@pytest.mark.parametrize(
    ("reward", "others", "firsts"),
    [
        (0.6, ([0.2, 0.2, 0.9, 0.9], [0.4, 0.4]), (0.312, 0.580, 1.029, 1.723, 2.726)),
        (0.2, ([0.6, 0.6, 0.9, 0.9], [0.4, 0.4]), (-1.53, -2.51, -3.92, -5.87, -8.56)),
    ],
)
def test_repeating_a_step_pays_above_the_mean_and_costs_below(reward, others, firsts):
    found = [first_of([reward] * n, *others)[0] for n in (1, 2, 4, 8, 16)]
    assert_allclose(found, firsts, atol=5e-3)


def test_the_mass_of_equal_steps_grows_with_the_square_of_their_number():
    # n = 4 steps of z: z (1 + 2 + 3 + 4) = 10 z.
    ends, rewards, valid = group([0.6] * 4, [0.2, 0.2, 0.9, 0.9], [0.4, 0.4])
    z = z_of(rewards)
    assert mass(z, ends, valid)[0, 0] == pytest.approx(10 * z[0, 0, 0])


def test_a_step_counts_once_for_each_valid_token_up_to_its_end():
    # Tokens 0, 2, 3 count. Steps end at 2 and 3, so they reach 2 and 3 tokens: 2 z_0 + 3 z_1.
    ends = np.array([[[2.0, 3.0]]])
    valid = np.array([[[True, False, True, True]]])
    assert mass(np.array([[[0.5, -1.0]]]), ends, valid)[0, 0] == 2 * 0.5 - 3 * 1.0


# Wrong answer [0, 0] with m passes appended, right answer [1, 1]: first token of the wrong one
# (the right one has the opposite), mass of both, mean over tokens; first and last token of the
# wrong one under the mean instead of the sum. For m = 2: pool 0 0 1 1 1 1, mean 2/3, std 0.4714,
# a 0 is -1.4142, a 1 is 0.7071; first 2 (-1.4142) + 2 (0.7071) = -1.4142; mass
# -1.4142 (1 + 2) + 0.7071 (3 + 4) = 0.7071 against 0.7071 (1 + 2) = 2.1213.
PADDED = {
    0: (-2.0, -3.0, 3.0, -1.5, -1.0, -1.0),
    1: (-1.633, -1.225, 2.449, -0.408, -0.544, 0.816),
    2: (-1.414, 0.707, 2.121, 0.177, -0.354, 0.707),
    4: (-1.155, 5.196, 1.732, 0.866, -0.192, 0.577),
    8: (-0.894, 16.55, 1.342, 1.655, -0.089, 0.447),
}


def padded_answer(m):
    return group([0, 0] + [1] * m, [1, 1])


@pytest.mark.parametrize("m", PADDED)
def test_a_wrong_answer_padded_with_passes_is_reinforced(m):
    first, own, other, average, mean_first, mean_last = PADDED[m]
    ends, rewards, valid = padded_answer(m)
    assert_allclose(first_of(*([0, 0] + [1] * m, [1, 1])), [first, -first], atol=5e-4)
    masses = mass(z_of(rewards), ends, valid)[0]
    assert_allclose(masses, [own, other], atol=5e-3)
    assert masses[0] / (m + 2) == pytest.approx(average, abs=5e-4)
    mean = CREDIT_RULES["mean"].function(rewards, ends, valid, eps=0)[0, 0]
    assert_allclose([mean[0], mean[m + 1]], [mean_first, mean_last], atol=5e-4)
    # Two completions whose means differ: -1 and 1, whatever the padding.
    by_mean = CREDIT_RULES["completion_mean"].function(rewards, ends, valid, eps=0)
    assert_allclose(by_mean[valid], [-1] * (m + 2) + [1, 1], atol=1e-12)


def test_from_three_passes_on_the_wrong_answer_has_more_mass_than_the_right_one():
    masses = {m: mass(z_of(r), e, v)[0] for m in (2, 3) for e, r, v in [padded_answer(m)]}
    assert masses[2][0] < masses[2][1]
    assert_allclose(masses[3], [2.846, 1.897], atol=5e-4)


@pytest.mark.parametrize(("m", "late"), [(0, False), (1, False), (2, True), (8, True)])
def test_late_credit_is_found_where_sum_and_first_token_disagree(m, late):
    ends, rewards, valid = padded_answer(m)
    assert late_credit(z_of(rewards), ends, valid).tolist() == [[late, False]]


def test_a_gain_by_count_names_the_pair_and_its_size():
    # z of 1 is 1, of 0 is -1 (four of each). Totals 3, 1, -4; completion 0 has 3 steps of 1,
    # completion 1 has 1 of the same: 2 more by count alone. At equal count it would have 1.
    ends, rewards, _ = group([1, 1, 1], [1], [0, 0, 0, 0])
    gains = gains_by_count(z_of(rewards), ends)
    assert gains.where.tolist() == [[0, 0, 1]]
    assert_allclose(gains.gain, [2])
    assert gains.steps.tolist() == [[3, 1]]
    assert_allclose(gains.means, [[1, 1]])
    assert_allclose(gains.totals, [[3, 1]])
    assert_allclose(gains.at_equal_count, [1])


def test_a_worse_completion_can_win_by_more_steps():
    # Pool 1 1 1 0 | 1 | 0 0 0: mean 1/2, z = 1 and -1. Totals 2, 1, -3; means 0.5, 1, -1.
    ends, rewards, _ = group([1, 1, 1, 0], [1], [0, 0, 0])
    gains = gains_by_count(z_of(rewards), ends)
    assert gains.where.tolist() == [[0, 0, 1]]
    assert_allclose(gains.at_equal_count, [0.5])


def test_below_the_mean_fewer_steps_pay():
    ends, rewards, _ = group([0], [0, 0, 0], [1, 1, 1, 1])
    z = z_of(rewards)
    assert gains_by_count(z, ends).where.shape == (0, 3)
    gains = gains_by_count(z, ends, fewer=True)
    assert gains.where.tolist() == [[0, 0, 1]]
    assert_allclose(gains.gain, [2])


def test_better_steps_are_no_gain_by_count_and_the_largest_gain_comes_first():
    ends, rewards, _ = group([1, 1, 1, 1], [0.9, 0.9], [0, 0, 0])
    assert not len(gains_by_count(z_of(rewards), ends).where)
    ends, rewards, _ = group([1], [1, 1, 1], [1, 1], [0] * 6, [NAN])
    gains = gains_by_count(z_of(rewards), ends)
    assert gains.where.tolist() == [[0, 1, 0], [0, 1, 2], [0, 2, 0]]
    assert_allclose(gains.gain, [2, 1, 1])


def test_a_batch_without_steps_has_no_gains_and_no_mass():
    ends, _, valid = group([NAN, NAN], [NAN, NAN])
    z = np.zeros(ends.shape)
    assert gains_by_count(z, ends).gain.shape == (0,)
    assert not mass(z, ends, valid).any()
    assert not late_credit(z, ends, valid).any()


def test_credit_changes_by_hand():
    outcome = np.array([[[1.0, 1.0, 1.0], [-1.0, -1.0, 5.0], [0.0, 0.0, 0.0]]])
    process = np.array([[[2.0, -0.5, 1e-17], [-1.0, 0.5, 7.0], [0.0, 0.25, 0.0]]])
    valid = np.ones((1, 3, 3), dtype=bool)
    valid[0, 1, 2] = False
    found = credit_changes(process, outcome, valid)
    # Differences 1, -1.5, -1, 0, 1.5, (masked), 0, 0.25, 0; 1e-17 is rounding, so credit is lost.
    assert np.argwhere(found.flipped).tolist() == [[0, 0, 1], [0, 1, 1]]
    assert np.argwhere(found.lost).tolist() == [[0, 0, 2]]
    assert np.argwhere(found.gained).tolist() == [[0, 2, 1]]
    assert (found.tokens, found.largest, found.where) == (8, -1.5, (0, 0, 1))
    assert found.total == pytest.approx(1 + 1.5 + 1 + 1.5 + 0.25)
    assert found.flipped_total == pytest.approx(3.0)
    assert found.difference[0, 1, 2] == 0


def test_equal_advantages_change_nothing():
    same = np.array([[[1.0, -np.inf, 0.0]]])
    found = credit_changes(same, same, np.ones((1, 1, 3), dtype=bool))
    assert (found.total, found.largest, found.where) == (0.0, 0.0, None)
    assert not (found.flipped | found.gained | found.lost).any()


def test_an_infinite_outcome_does_not_hide_the_signs_of_the_others():
    outcome, process = np.array([[[-np.inf, 1.0]]]), np.array([[[1.0, -1.0]]])
    found = credit_changes(process, outcome, np.ones((1, 1, 2), dtype=bool))
    assert found.flipped.all()
    assert found.where == (0, 0, 0)


def plain_rule(key, rewards, ends, valid, ddof):
    """The same by a loop over tokens, of one group with eps 0."""
    z = z_of(rewards, ddof)[0]
    result = np.zeros(valid.shape[1:])
    means = [np.mean(row[~np.isnan(row)]) for row in rewards[0]]
    for g, t in zip(*np.nonzero(valid[0]), strict=True):
        later = z[g][~np.isnan(ends[0, g]) & (np.nan_to_num(ends[0, g]) >= t)]
        if key == "completion_mean":
            result[g, t] = (means[g] - np.mean(means)) / np.std(means, ddof=ddof)
        elif later.size:
            result[g, t] = {"sum": np.sum, "mean": np.mean, "minimum": np.min}[key](later)
    return result


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("key", CREDIT_RULES)
def test_every_rule_is_its_plain_loop(key, ddof):
    # Holes in the mask, two steps at one token, a gap among the steps, tokens after the last.
    ends = np.array([[[1, 1, 4, NAN], [0, NAN, 2, 3], [5, NAN, NAN, NAN]]])
    rewards = np.array([[[0.2, 1, 0, NAN], [-1, NAN, 0.5, 2], [0.7, NAN, NAN, NAN]]])
    valid = np.ones((1, 3, 6), dtype=bool)
    valid[0, 0, 2] = valid[0, 1, 5] = False
    found = CREDIT_RULES[key].function(rewards, ends, valid, ddof=ddof, eps=0)
    assert_allclose(found[0], plain_rule(key, rewards, ends, valid, ddof), atol=1e-12)


def test_the_sum_is_what_process_advantages_gives():
    ends, rewards, valid = group([1, 0.3, 1], [0, 0], [0.5])
    lists = ([[row[~np.isnan(row)].tolist() for row in array[0]]] for array in (rewards, ends))
    found = CREDIT_RULES["sum"].function(rewards, ends, valid, ddof=1, eps=1e-4)
    assert_allclose(found, process_advantages(*lists, valid, ddof=1, eps=1e-4), atol=1e-12)


@pytest.mark.parametrize("key", CREDIT_RULES)
def test_tied_and_missing_steps_give_exactly_0_under_every_rule(key):
    rule = CREDIT_RULES[key].function
    ends, rewards, valid = group([0.1, 0.1, 0.1], [0.1])
    assert not rule(rewards, ends, valid, eps=0).any()
    ends, rewards, _ = group([NAN], [NAN])
    assert_array_equal(rule(rewards, ends, np.ones((1, 2, 3), dtype=bool)), np.zeros((1, 2, 3)))


def test_passes_cannot_lift_a_failed_step_under_the_minimum():
    for m in (1, 2, 8):
        ends, rewards, valid = padded_answer(m)
        found = CREDIT_RULES["minimum"].function(rewards, ends, valid, eps=0)[0, 0]
        z = z_of(rewards)[0, 0]
        assert_allclose(found, z, atol=1e-12)
        assert (found[:2] < 0).all()
        assert (found[2:] > 0).all()
