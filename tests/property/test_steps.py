"""Laws of steps and of their edits, over drawn groups."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core.credit_rules import CREDIT_RULES
from grpo_core.step_credit import (
    credit_changes,
    gains_by_count,
    mass,
)
from grpo_core.step_edits import (
    append_step,
    drop_step,
    merge_steps,
    pack,
    split_step,
    swap_steps,
)
from tests.step_pools import pool_of, pool_with_halves, pool_with_step

OPTIONS = {"ddof": st.sampled_from([0, 1]), "eps": st.sampled_from([0.0, 1e-8, 1e-4, 1.0])}
REWARD = st.integers(-20, 20).map(lambda whole: whole / 8)
WIDE = st.floats(-100, 100, allow_subnormal=False)


@st.composite
def batches(draw, reward=REWARD):
    """Packed steps on valid tokens: (step_ends, step_rewards, valid)."""
    P, G, L = draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    ends, rewards = np.full((P, G, 4), np.nan), np.full((P, G, 4), np.nan)
    valid = np.array(draw(st.lists(st.booleans(), min_size=P * G * L, max_size=P * G * L)))
    valid = valid.reshape(P, G, L)
    for p, g in np.ndindex(P, G):
        tokens = np.flatnonzero(valid[p, g]).tolist()
        own = draw(st.lists(st.sampled_from(tokens), max_size=4)) if tokens else []
        ends[p, g, : len(own)] = sorted(own)
        rewards[p, g, : len(own)] = draw(st.lists(reward, min_size=len(own), max_size=len(own)))
    return ends, rewards, valid


def a_step(data, ends):
    """Where one of the drawn steps is; groups without any are passed over."""
    places = np.argwhere(~np.isnan(ends)).tolist()
    assume(places)
    return tuple(data.draw(st.sampled_from(places)))


def a_pair(data, ends):
    there = ~np.isnan(ends)
    places = np.argwhere(there[..., :-1] & there[..., 1:]).tolist()
    assume(places)
    return tuple(data.draw(st.sampled_from(places)))


def spread(rewards, p):
    """Whether a group's rewards differ by more than rounding, so that results can be compared."""
    held = rewards[p][~np.isnan(rewards[p])]
    return held.size > 1 and np.ptp(held) > 1e-3


def assert_same_pool(found, expected):
    assert found.count == expected.count
    assert_allclose(found.mean, expected.mean, atol=1e-9)
    assert_allclose(found.std, expected.std, atol=1e-9)
    assert_allclose(found.first, expected.first, rtol=1e-7, atol=1e-7)


@given(batches(WIDE), OPTIONS["ddof"], OPTIONS["eps"])
def test_first_tokens_of_a_pooled_group_add_up_to_0(batch, ddof, eps):
    _, rewards, _ = batch
    pool = pool_of(rewards, 0, ddof=ddof, eps=eps)
    assert abs(np.sum(pool.first)) <= 1e-9


@given(batches(), OPTIONS["ddof"], OPTIONS["eps"])
def test_a_pools_first_tokens_are_what_the_sum_gives_before_the_first_end(batch, ddof, eps):
    ends, rewards, valid = batch
    tokens = CREDIT_RULES["sum"].function(rewards, ends, valid, ddof=ddof, eps=eps)
    for p, g in np.argwhere(valid.any(axis=-1)).tolist():
        first = tokens[p, g, np.argmax(valid[p, g])]
        assert_allclose(first, pool_of(rewards, p, ddof=ddof, eps=eps).first[g], atol=1e-9)


@given(batches(), st.data(), WIDE, OPTIONS["ddof"], OPTIONS["eps"])
def test_the_closed_form_of_an_added_step_is_what_appending_measures(batch, data, x, ddof, eps):
    ends, rewards, valid = batch
    places = np.argwhere(valid.any(axis=-1)).tolist()
    assume(places)
    p, g = data.draw(st.sampled_from(places))
    _, after = append_step(ends, rewards, valid, (p, g), reward=x)
    assume(spread(after, p))
    found = pool_with_step(rewards, (p, g), x, ddof=ddof, eps=eps)
    assert_same_pool(found, pool_of(after, p, ddof=ddof, eps=eps))


@given(batches(), st.data(), OPTIONS["ddof"], OPTIONS["eps"])
def test_the_closed_forms_of_both_splits_are_what_splitting_measures(batch, data, ddof, eps):
    ends, rewards, valid = batch
    p, g, _ = where = a_step(data, ends)
    options = {"ddof": ddof, "eps": eps}
    _, copied = split_step(ends, rewards, valid, where, how="copy")
    found = pool_with_step(rewards, (p, g), rewards[where], **options)
    assert_same_pool(found, pool_of(copied, p, **options))
    _, halved = split_step(ends, rewards, valid, where, how="halves")
    found = pool_with_halves(rewards, where, **options)
    assert_same_pool(found, pool_of(halved, p, **options))


@given(batches(), st.data(), REWARD)
def test_a_step_pays_its_completion_and_costs_the_others_only_above_the_mean(batch, data, x):
    _, rewards, _ = batch
    p, g, _ = a_step(data, rewards)
    before, after = pool_of(rewards, p), pool_with_step(rewards, (p, g), x)
    assume(before.std > 0 and after.std > 0)
    n = np.sum(~np.isnan(rewards[p]), axis=-1)
    sign = np.sign(x - before.mean) if abs(x - before.mean) > 1e-9 else 0
    change = after.deviations - before.deviations
    change = np.where(np.abs(change) < 1e-9, 0, change)
    own = np.arange(n.size) == g
    # Steps of others make room to gain, own steps make room to lose.
    assert np.sign(change[g]) == (sign if n.sum() > n[g] else 0)
    assert_array_equal(np.sign(change[~own]), np.where(n[~own] > 0, -sign, 0))


@given(batches(), st.data())
def test_splitting_into_halves_loses_if_and_only_if_the_mean_is_above_0(batch, data):
    _, rewards, _ = batch
    p, g, s = a_step(data, rewards)
    before, after = pool_of(rewards, p), pool_with_halves(rewards, (p, g, s))
    n = np.sum(~np.isnan(rewards[p]), axis=-1)
    assume(before.std > 0 and after.std > 0 and n.sum() > n[g])
    change = after.deviations[g] - before.deviations[g]
    mean = np.nanmean(rewards[p])
    assert (change < -1e-9) == (mean > 1e-9)
    assert (change > 1e-9) == (mean < -1e-9)


@given(batches(), st.data())
def test_taking_a_step_away_pays_only_below_the_mean(batch, data):
    ends, rewards, valid = batch
    p, g, s = where = a_pair(data, ends)
    others = np.sum(~np.isnan(rewards[p])) > np.sum(~np.isnan(rewards[p, g]))
    for edit, taken in (
        (drop_step, rewards[where]),
        (merge_steps, np.mean(rewards[p, g, s : s + 2])),
    ):
        _, left = edit(ends, rewards, valid, where)
        before, after = pool_of(rewards, p), pool_of(left, p)
        if others and before.std > 0 and after.std > 0:
            change = after.deviations[g] - before.deviations[g]
            below = before.mean - taken
            assert (np.abs(change) > 1e-9) == (abs(below) > 1e-9)
            assert abs(below) <= 1e-9 or np.sign(change) == np.sign(below)


@given(batches(), st.data(), OPTIONS["ddof"])
def test_swapping_two_steps_changes_no_first_token(batch, data, ddof):
    ends, rewards, valid = batch
    p, _, _ = where = a_pair(data, ends)
    _, after = swap_steps(ends, rewards, valid, where)
    before = pool_of(rewards, p, ddof=ddof)
    assert_allclose(pool_of(after, p, ddof=ddof).first, before.first, atol=1e-9)


@given(st.lists(REWARD, min_size=2, max_size=5, unique=True), st.data())
def test_the_better_of_two_steps_has_more_mass_when_it_comes_later(rewards, data):
    s = data.draw(st.integers(0, len(rewards) - 2))
    rewards[s : s + 2] = sorted(rewards[s : s + 2], reverse=True)
    rewards = np.array([[rewards]])
    ends = np.arange(rewards.size, dtype=float).reshape(rewards.shape)
    valid = np.ones(rewards.shape, dtype=bool)

    def own_mass(step_rewards):
        return np.sum(CREDIT_RULES["sum"].function(step_rewards, ends, valid, eps=0))

    _, later = swap_steps(ends, rewards, valid, (0, 0, s))
    assert own_mass(later) > own_mass(rewards)


@given(batches(), st.sampled_from([0.0, 1e-4]))
def test_the_mass_of_steps_is_the_sum_of_the_token_advantages(batch, eps):
    ends, rewards, valid = batch
    tokens = CREDIT_RULES["sum"].function(rewards, ends, valid, eps=eps)
    z = np.zeros(rewards.shape)
    for p in range(len(z)):
        pool = pool_of(rewards, p, eps=eps)
        z[p] = np.nan_to_num(rewards[p] - pool.mean) / ((pool.std + eps) or 1.0)
    assert_allclose(mass(z, ends, valid), np.sum(tokens, axis=-1), atol=1e-9)


@given(batches(), st.data())
def test_merging_undoes_a_split_and_dropping_undoes_an_append(batch, data):
    ends, rewards, valid = batch
    p, g, _ = where = a_step(data, ends)
    merged = merge_steps(*split_step(ends, rewards, valid, where), valid, where)
    for found, expected in zip(merged, (ends, rewards), strict=True):
        assert_array_equal(found[..., :4], expected)
        assert np.isnan(found[..., 4:]).all()
    longer = append_step(ends, rewards, valid, (p, g))
    last = int(np.sum(~np.isnan(ends[p, g])))
    for found, expected in zip(
        drop_step(*longer, valid, (p, g, last)), (ends, rewards), strict=True
    ):
        assert_array_equal(found[..., :4], expected)


@given(batches(), st.data())
def test_edits_keep_steps_on_tokens_that_count_and_in_order(batch, data):
    ends, rewards, valid = batch
    p, g, _ = where = a_step(data, ends)
    for edit in (split_step, append_step, drop_step):
        after, worth = edit(ends, rewards, valid, where)
        assert_array_equal(np.isnan(after), np.isnan(worth))
        held = after[p, g][~np.isnan(after[p, g])]
        assert (np.diff(held) >= 0).all()
        assert valid[p, g, held.astype(int)].all()
        assert_array_equal(pack(after, worth)[0], after)


@given(batches())
def test_a_gain_by_count_has_more_steps_no_better_ones_and_would_vanish_at_equal_count(batch):
    ends, rewards, _ = batch
    z = np.zeros(rewards.shape)
    for p in range(len(z)):
        pool = pool_of(rewards, p)
        z[p] = np.nan_to_num(rewards[p] - pool.mean) / (pool.std or 1.0)
    gains = gains_by_count(z, ends)
    assert (gains.gain > 0).all()
    assert (gains.steps[:, 0] > gains.steps[:, 1]).all()
    assert (gains.means[:, 0] > 0).all()
    assert (gains.at_equal_count <= gains.totals[:, 1] + 1e-9).all()
    fewer = gains_by_count(z, ends, fewer=True)
    assert (fewer.steps[:, 0] < fewer.steps[:, 1]).all()
    assert (fewer.means[:, 1] < 0).all()


@given(batches(), st.data())
def test_the_minimum_is_at_most_the_mean_and_every_rule_leaves_masked_tokens_0(batch, data):
    ends, rewards, valid = batch
    by_rule = {key: rule.function(rewards, ends, valid) for key, rule in CREDIT_RULES.items()}
    assert all(not tokens[~valid].any() for tokens in by_rule.values())
    assert (by_rule["minimum"] <= by_rule["mean"] + 1e-12).all()


@given(batches())
def test_credit_changes_are_antisymmetric(batch):
    ends, rewards, valid = batch
    left, right = (CREDIT_RULES[k].function(rewards, ends, valid) for k in ("sum", "minimum"))
    there, back = credit_changes(left, right, valid), credit_changes(right, left, valid)
    assert_array_equal(there.difference, -back.difference)
    assert_array_equal(there.flipped, back.flipped)
    assert_array_equal(there.gained, back.lost)
    assert there.total == back.total
