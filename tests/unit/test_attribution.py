"""Attribution: what each component has in the advantages, and its share of a group's spread."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import Conventions, Term, build_scenario, evaluate
from grpo_core.attribution import spread_shares

NAN = np.nan


def attributed(rewards, column, weight, combine="sum_then_normalize", eps=0.0, arrays=None):
    conventions = Conventions.of(rewards=combine, advantage=("mean_std", {"eps": eps}))
    scenario = build_scenario(
        rewards=rewards,
        term_values=np.array(column, float)[..., None],
        terms=[Term("bonus", weight)],
        conventions=conventions,
        **(arrays or {}),
    )
    return evaluate(scenario)


# k = 2 of G = 8 are right, m = 4 have the bonus, n11 = 1 has both.
RIGHT, BONUS = [[1.0, 1, 0, 0, 0, 0, 0, 0]], [[0.0, 1, 1, 1, 0, 0, 1, 0]]


@pytest.mark.parametrize(
    ("weight", "task"), [(0.1, 0.98684), (0.5, 0.75), (1, 0.42857), (2, 0.15789)]
)
def test_share_of_a_task_and_a_bonus(weight, task):
    # Share of the bonus: [w^2 m (G - m) + w (G n11 - k m)] over that plus k (G - k)
    # + w (G n11 - k m). Here G n11 = k m, so it is 16 w^2 / (12 + 16 w^2).
    shares = attributed(RIGHT, BONUS, weight).attribution.shares
    assert_allclose(shares[:, 0], [task, 1 - task], atol=1e-5)


def test_what_a_bonus_and_the_task_are_worth():
    # Variance of the sum at w = 0.5, where the two are uncorrelated: 12/64 + 0.25 * 16/64 = 0.25.
    computed = attributed(RIGHT, BONUS, 0.5)
    assert_allclose(computed.std, [0.5])
    task, bonus = computed.attribution.parts[:, 0]
    # 1 or 0 less the mean 0.25, over 0.5; half of 1 or 0 less the mean 0.5, over 0.5.
    assert_allclose(task, np.where(np.array(RIGHT[0]) == 1, 1.5, -0.5))
    assert_allclose(bonus, np.where(np.array(BONUS[0]) == 1, 0.5, -0.5))


def test_what_a_sample_std_makes_of_it():
    # Over 7 instead of 8: std 0.534522; 1 / 0.534522 = 1.871 and 0.5 / 0.534522 = 0.935.
    scenario = attributed(RIGHT, BONUS, 0.5).scenario.choose("advantage", ddof=1, eps=0)
    task, bonus = evaluate(scenario).attribution.parts[:, 0]
    assert_allclose(task.max() - task.min(), 1.871, atol=5e-4)
    assert_allclose(bonus.max() - bonus.min(), 0.935, atol=5e-4)


def test_the_part_of_a_term_is_its_deviation_over_the_std_of_the_sum_and_eps():
    # Sums 1.5, 0, 2, 0: deviations of the term 0.5 (1, 0, 2, 0) from its mean 0.375.
    computed = attributed([[1.0, 0, 1, 0]], [[1.0, 0, 2, 0]], 0.5, eps=0.25)
    std = np.std([1.5, 0, 2, 0])
    expected = (0.5 * np.array([1, 0, 2, 0]) - 0.375) / (std + 0.25)
    assert_allclose(computed.attribution.parts[1, 0], expected)
    assert_allclose(computed.attribution.parts.sum(axis=0), computed.advantages)


def test_a_share_is_negative_where_a_term_pulls_against_the_sum():
    # Sums 1 1 .5 .5: deviations 0.25, of the task 0.5, of the bonus -0.25: shares 2 and -1.
    shares = attributed([[1.0, 1, 0, 0]], [[0.0, 0, 1, 1]], 0.5).attribution.shares
    assert_allclose(shares[:, 0], [2, -1])


@pytest.mark.parametrize("combine", ["sum_then_normalize", "normalize_then_sum"])
def test_terms_that_cancel_have_no_share(combine):
    computed = attributed([[1.0, 1, 0, 0]], [[0.0, 0, 1, 1]], 1.0, combine)
    # Judged apart, each component tells the completions from each other, and so no group is tied.
    assert computed.tied.tolist() == [combine == "sum_then_normalize"]
    assert not computed.advantages.any()
    assert computed.attribution.shares.tolist() == [[0], [0]]


@pytest.mark.parametrize("rewards", [[[0.1, 0.1, 0.1]], [[2.0]], [[NAN, NAN]], [[NAN, 1.0]]])
def test_groups_without_spread_have_no_share(rewards):
    column = np.full(np.shape(rewards), NAN)
    assert attributed(rewards, column, 1.0).attribution.shares.tolist() == [[0], [0]]


def test_each_group_has_its_own_shares():
    # The first is tied in the task, the second has no bonus.
    shares = attributed([[1.0, 1], [1, 0]], [[1.0, 0], [0, 0]], 0.01).attribution.shares
    assert_allclose(shares, [[0, 1], [1, 0]], atol=1e-12)


def test_shares_where_each_is_normalised():
    # Parts +-1 and 0.5 * +-1, uncorrelated: variances 1 and 0.25.
    shares = attributed([[1.0, 1, 0, 0]], [[1.0, 0, 1, 0]], 0.5, "normalize_then_sum")
    assert_allclose(shares.attribution.shares[:, 0], [0.8, 0.2])


def test_shares_where_terms_are_added_after():
    # Parts +-1 (variance 1) and 0.5 or 0 (variance 1/16): 16/17 and 1/17.
    shares = attributed([[1.0, 1, 0, 0]], [[1.0, 0, 1, 0]], 0.5, "add_after")
    assert_allclose(shares.attribution.shares[:, 0], [16 / 17, 1 / 17])


def test_absent_completions_have_no_part():
    arrays = {"present": [[1, 1, 0]]}
    computed = attributed([[1.0, 0, 9]], [[0.0, 1, 9]], 0.5, arrays=arrays).attribution
    plain = attributed([[1.0, 0]], [[0.0, 1]], 0.5).attribution
    assert_array_equal(computed.parts[..., :2], plain.parts)
    assert_array_equal(computed.shares, plain.shares)
    assert not computed.parts[..., 2].any()
    assert np.isnan(computed.values[..., 2]).all()


def test_values_are_as_given_and_weighted_ones_have_the_weight():
    found = attributed([[1.0, NAN]], [[NAN, 3.0]], 0.5).attribution
    assert found.names == ("task", "bonus")
    assert found.weights.tolist() == [1, 0.5]
    assert_array_equal(found.values, [[[1, NAN]], [[NAN, 3]]])
    assert_array_equal(found.weighted, [[[1, 0]], [[0, 1.5]]])


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_shares_do_not_depend_on_the_size_of_the_parts(unit):
    parts = unit * np.array([[[0.5, 0.5, -0.5, -0.5]], [[-0.25, -0.25, 0.25, 0.25]]])
    scored = np.ones((1, 4), bool)
    assert_allclose(spread_shares(parts, scored)[:, 0], [2, -1])
