"""Laws of shaping curves, weights and worlds, each with the ways of combining it holds for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import group_advantages
from grpo_core.shaping import shaped_rewards
from grpo_core.shaping_curves import advantage_against_weight, tied_group
from grpo_core.shaping_log import shaping_log
from grpo_core.shaping_parts import COMBINE
from grpo_core.shaping_potential import Potential, TwoSteps, two_step_gradients
from grpo_core.shaping_weights import safe_weight, share_weight
from grpo_core.shaping_worlds import Bandit, bandit_update

WAYS = list(COMBINE)
weights = st.floats(1e-6, 10)
chances = st.floats(0.05, 0.95)
# Eighths, so that sums are exact and a tie is one.
eighths = st.integers(-24, 24).map(lambda n: n / 8)


def groups(count):
    """As many arrays of one group, its size drawn."""
    return st.integers(2, 7).flatmap(
        lambda G: st.tuples(*[npst.arrays(float, G, elements=eighths) for _ in range(count)])
    )


@st.composite
def batches(draw):
    """Task (P, G), terms (K, P, G) and weights, some values missing."""
    P, G, K = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    cell = eighths | st.just(np.nan)
    return (
        draw(npst.arrays(float, (P, G), elements=cell)),
        draw(npst.arrays(float, (K, P, G), elements=cell)),
        draw(npst.arrays(float, K, elements=eighths)),
    )


@given(
    st.integers(2, 12).flatmap(lambda G: st.tuples(st.just(G), st.integers(0, G))),
    weights | weights.map(lambda w: -w),
    st.sampled_from([0, 1]),
    st.sampled_from([0.0, 1e-8, 1e-4, 0.3]),
    eighths,
)
def test_the_closed_form_of_a_tied_group_is_what_the_group_gets(sizes, weight, ddof, eps, common):
    G, k = sizes
    bonus = [1.0] * k + [0.0] * (G - k)
    found = advantage_against_weight([common] * G, bonus, [weight], ddof=ddof, eps=eps)[0]
    closed = tied_group(G, k, [weight], ddof=ddof, eps=eps)
    expected = [closed.having[0]] * k + [closed.lacking[0]] * (G - k)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@given(groups(2), st.lists(weights, min_size=1, max_size=4))
def test_summed_first_the_curve_is_the_advantage_of_the_sum(group, line):
    task, bonus = group
    found = advantage_against_weight(task, bonus, line, eps=1e-4)
    sums = [group_advantages([task + w * bonus], eps=1e-4)[0] for w in line]
    assert_allclose(found, sums, rtol=1e-6, atol=1e-9)


@given(groups(2), eighths, weights)
@pytest.mark.parametrize("combine", ["sum_then_normalize", "normalize_then_sum"])
def test_a_constant_added_to_a_term_changes_nothing_before_normalisation(
    combine, group, constant, weight
):
    task, bonus = group
    plain = advantage_against_weight(task, bonus, [weight], combine=combine, eps=1e-4)
    moved = advantage_against_weight(task, bonus + constant, [weight], combine=combine, eps=1e-4)
    assert_allclose(moved, plain, atol=1e-8)


@given(groups(2), eighths, weights)
def test_added_after_normalisation_a_constant_stays(group, constant, weight):
    task, bonus = group
    plain = advantage_against_weight(task, bonus, [weight], combine="add_after")
    moved = advantage_against_weight(task, bonus + constant, [weight], combine="add_after")
    assert_allclose(moved, plain + weight * constant, atol=1e-12)


@given(groups(2), weights, st.sampled_from([0.25, 2.0, 16.0]))
def test_summed_first_only_the_proportion_of_the_weights_counts_without_eps(group, weight, factor):
    task, bonus = group
    plain = advantage_against_weight(task, bonus, [weight], eps=0.0)
    scaled = advantage_against_weight(factor * task, bonus, [factor * weight], eps=0.0)
    assert_allclose(scaled, plain, rtol=1e-12)


@given(batches(), st.sampled_from(WAYS))
def test_shares_of_a_group_add_up_to_1_or_are_all_0(batch, combine):
    shares = shaping_log(*batch, combine=combine).shares
    sums = np.sum(shares, axis=0)
    silent = ~np.any(shares, axis=0)
    assert_allclose(sums[~silent], 1, atol=1e-6)


def outranked(task, advantages):
    better = task[:, None] > task
    return np.any(better & (advantages[:, None] < advantages - 1e-9))


@given(groups(2), st.sampled_from(WAYS))
def test_up_to_the_safe_weight_no_worse_answer_is_ahead_and_beyond_it_one_is(group, combine):
    task, bonus = group
    found = safe_weight([task], [bonus], 1.0, combine=combine)
    largest = found.batch_largest
    assert found.batch_least == 0
    assert (found.where is None) == np.isinf(largest)
    line = [10.0] if np.isinf(largest) else [largest, largest * 1.01 + 1e-3]
    inside, *beyond = advantage_against_weight(task, bonus, line, combine=combine)
    assert not outranked(task, inside)
    for advantages in beyond:
        _, better, worse = found.where
        assert task[better] > task[worse]
        assert outranked(task, advantages)


@given(batches(), st.sampled_from(WAYS))
def test_the_present_weight_gives_the_side_only(batch, combine):
    task, terms, held = batch
    found = safe_weight(task, terms, held, 0, combine=combine)
    twice = safe_weight(task, terms, [2 * held[0], *held[1:]], 0, combine=combine)
    assert_array_equal(twice.largest, found.largest)
    assert_array_equal(twice.least, found.least)
    fixed = ~np.isnan(found.least)
    assert np.all(np.abs(found.least[fixed]) <= np.abs(found.largest[fixed]))


@given(groups(2), st.floats(0.01, 0.99))
def test_a_share_is_reached_once_and_exactly(group, share):
    task, bonus = group
    found = share_weight([task], [bonus], 1.0, share=share)
    weight = found.groups[0]
    spreads = np.ptp(task) > 0, np.ptp(bonus) > 0
    assert found.tied[0] == (not spreads[0] and spreads[1])
    if np.isnan(weight):  # or the bonus is the task turned around
        centred = task - task.mean(), bonus - bonus.mean()
        cosine = centred[0] @ centred[1] / max(np.prod([np.linalg.norm(c) for c in centred]), 1e-9)
        assert not all(spreads) or cosine < -1 + 1e-9
        return
    below, at, above = (
        shaping_log([task], [bonus], w).shares[1, 0]
        for w in (weight * 0.999, weight, weight * 1.001)
    )
    assert at == pytest.approx(share, rel=1e-6)
    assert below < share < above
    assert found.batch == pytest.approx(weight, rel=1e-9)


@given(st.tuples(chances, chances), st.integers(2, 5), chances, st.floats(-2, 2))
def test_without_the_std_the_gap_is_that_of_expected_rewards(success, size, policy, weight):
    a, b = success
    bandit = Bandit(success_a=a, success_b=b, size=size)
    gap = bandit_update(bandit, [weight], policy, scale="none").gap[0, 0]
    assert gap == pytest.approx((a - b - weight) * (size - 1) / size, abs=1e-12)


@given(st.tuples(*[st.floats(-3, 3)] * 3), st.tuples(chances, chances), st.integers(2, 5))
def test_a_potential_leaves_undivided_returns_alone(phi, policy, size):
    world = TwoSteps(go_on=policy[0], right=policy[1])
    start, middle, end = phi
    potential = Potential(start=start, middle=middle, end=end)
    found = two_step_gradients(world, potential, size=size)
    for key in ("leave_one_out", "to_go"):
        assert_allclose(found[key], world.gradient, atol=1e-12)
    assert_allclose(found["to_go_mean"], world.gradient * (size - 1) / size, atol=1e-12)


@given(batches(), st.sampled_from(WAYS), st.sampled_from(["std", "none"]))
def test_curves_and_shares_are_those_of_the_shaped_reward(batch, combine, scale):
    task, terms, held = batch
    options = {"combine": combine, "scale": scale, "ddof": 1, "eps": 1e-4}
    for p in range(len(task)):
        whole = shaped_rewards([task[p]], [[terms[0, p]]], held[:1], **options)
        curve = advantage_against_weight(task[p], terms[0, p], held[:1], **options)
        assert_allclose(curve, whole.advantages, rtol=1e-9, atol=1e-9)
    whole = shaped_rewards(task, list(terms), held, **options)
    log = shaping_log(task, terms, held, **options)
    pushing = np.any(log.shares, axis=0)
    assert_allclose(log.shares[:, pushing], whole.shares[:, pushing], rtol=1e-6, atol=1e-6)
