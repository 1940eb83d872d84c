"""What the weight of a term does to a group: worked by hand, and at the edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from grpo_core import ScenarioError
from grpo_core.shaping_curves import (
    WEIGHTS,
    advantage_against_weight,
    takeover_weight,
    tied_group,
)
from grpo_core.shaping_parts import COMBINE

WAYS = list(COMBINE)


def test_four_of_eight_by_the_sample_formula():
    # s = sqrt(1/4 x 8/7) = 0.534522; at w the advantage is 0.5 / (s + 1e-4 / w).
    group = tied_group(8, 4, [1e-2, 1e-3, 1e-4, 1e-6], ddof=1, eps=1e-4)
    assert group.having.round(3).tolist() == [0.918, 0.788, 0.326, 0.005]
    assert group.takeover == pytest.approx(1e-4 / 0.534522, rel=1e-6)


def test_one_of_eight_by_the_sample_formula():
    # s = sqrt(7/64 x 8/7) = 0.353553; 0.875 / s = 2.474874 is the limit.
    group = tied_group(8, 1, [1e-4, 1e-3, 1e-2, 0.1, 1], ddof=1, eps=1e-4)
    assert_allclose(group.having, [0.6464, 1.9292, 2.4068, 2.4679, 2.4742], atol=5e-5)
    assert group.takeover == pytest.approx(2.83e-4, rel=1e-3)


@pytest.mark.parametrize(("k", "G"), [(1, 8), (4, 8), (7, 8), (1, 2), (3, 5)])
def test_the_limits_are_roots_of_how_many_have_the_bonus(k, G):
    having, lacking = tied_group(G, k, ddof=0).limits
    assert having == pytest.approx(np.sqrt((G - k) / k), rel=1e-14)
    assert lacking == pytest.approx(-np.sqrt(k / (G - k)), rel=1e-14)
    sample = tied_group(G, k, ddof=1).limits
    assert_allclose(sample, np.array([having, lacking]) * np.sqrt((G - 1) / G), rtol=1e-14)


def test_at_the_takeover_advantages_are_half_their_limit():
    whole = tied_group(8, 3, ddof=1, eps=1e-4)
    half = tied_group(8, 3, [whole.takeover], ddof=1, eps=1e-4)
    assert half.having[0] == pytest.approx(whole.limits[0] / 2, rel=1e-14)
    assert half.lacking[0] == pytest.approx(whole.limits[1] / 2, rel=1e-14)


def test_a_penalty_turns_both_around():
    up, down = tied_group(8, 3, [0.01]), tied_group(8, 3, [-0.01])
    assert_allclose(down.having, -up.having, rtol=1e-15)
    assert_allclose(down.lacking, -up.lacking, rtol=1e-15)


@pytest.mark.parametrize("k", [0, 8])
@pytest.mark.parametrize("eps", [0.0, 1e-4])
def test_a_bonus_that_all_or_none_get_does_nothing(k, eps):
    group = tied_group(8, k, eps=eps)
    assert not group.having.any()
    assert not group.lacking.any()
    assert (group.limits, group.takeover) == ((0, 0), None)


def test_a_weight_of_0_gives_0_also_without_eps():
    group = tied_group(4, 1, [0.0, 1e-300], eps=0.0)
    assert group.having.tolist() == [0.0, pytest.approx(np.sqrt(3))]
    assert group.takeover is None


def test_a_group_of_one():
    assert not tied_group(1, 1, ddof=1).having.any()


def test_takeover_of_each_group():
    # Stds by the sample formula: of 0, 0, 1, 1 sqrt(1/3); of 0, 2 sqrt(2); nothing differs.
    bonus = [[0, 0, 1, 1], [0, 2, np.nan, np.nan], [3, 3, 3, 3]]
    found = takeover_weight(bonus, ddof=1, eps=1e-4)
    assert_allclose(found, [1e-4 * np.sqrt(3), 1e-4 / np.sqrt(2), np.nan], rtol=1e-14)


def test_the_default_weights_reach_from_1e8th_to_1():
    assert (WEIGHTS[0], WEIGHTS[-1]) == (1e-8, 1.0)
    assert not WEIGHTS.flags.writeable


# Task 1, 1, 0, 0 and bonus 0, 1, 1, 0: both have mean 1/2 and std 1/2, so z is -1 or 1.
TASK, BONUS = [1, 1, 0, 0], [0, 1, 1, 0]


def test_summed_before_normalisation():
    # w = 1: 1, 2, 1, 0 with mean 1 and std sqrt(1/2). w = 0.5: 1, 1.5, 0.5, 0: mean 0.75,
    # deviations 0.25, 0.75, -0.25, -0.75, std sqrt(5)/4.
    found = advantage_against_weight(TASK, BONUS, [0, 0.5, 1], eps=0)
    r2, r5 = np.sqrt(2), np.sqrt(5)
    expected = [[1, 1, -1, -1], [1 / r5, 3 / r5, -1 / r5, -3 / r5], [0, r2, 0, -r2]]
    assert_allclose(found, expected, atol=1e-15)


def test_each_normalised_and_then_summed():
    found = advantage_against_weight(TASK, BONUS, [0, 0.5, 1], combine="normalize_then_sum", eps=0)
    assert_allclose(found, [[1, 1, -1, -1], [0.5, 1.5, -0.5, -1.5], [0, 2, 0, -2]], rtol=1e-15)


def test_added_after_normalisation():
    found = advantage_against_weight(TASK, BONUS, [0, 0.5, 1], combine="add_after", eps=0)
    assert_allclose(found, [[1, 1, -1, -1], [1, 1.5, -0.5, -1], [1, 2, 0, -1]], rtol=1e-15)


@pytest.mark.parametrize("combine", ["sum_then_normalize", "normalize_then_sum"])
def test_without_the_std_the_weight_matters_in_a_tied_group(combine):
    # w (f - k/G) with k = 1, G = 4.
    found = advantage_against_weight(
        [1] * 4, [1, 0, 0, 0], [0.01, 1], combine=combine, scale="none"
    )
    assert_allclose(found, [[0.0075, -0.0025, -0.0025, -0.0025], [0.75, -0.25, -0.25, -0.25]])


def test_normalised_on_its_own_the_weight_survives_in_a_tied_group():
    tied = [1] * 8, [1, 1, 1, 1, 0, 0, 0, 0]
    found = advantage_against_weight(*tied, [0.01, 1], combine="normalize_then_sum", eps=0)
    assert_allclose(found[:, 0], [0.01, 1], rtol=1e-15)
    added = advantage_against_weight(*tied, [0.01, 1], combine="add_after", eps=0)
    assert_allclose(added[:, 0], [0.01, 1], rtol=1e-15)


def test_a_value_that_is_missing_adds_nothing():
    # Completion 2 has no bonus value and completion 3 nothing at all: 1, 1, 0 with w = 1.
    nan = np.nan
    found = advantage_against_weight([1, 0, 0, nan], [0, 1, nan, nan], [1.0], eps=0)
    r2 = np.sqrt(2)
    assert_allclose(found, [[1 / r2, 1 / r2, -r2, 0]], rtol=1e-14)
    own = advantage_against_weight(
        [1, 0, 0, nan], [0, 1, nan, nan], [1.0], combine="normalize_then_sum", eps=0
    )
    # z of 1, 0, 0 is sqrt 2, -1/sqrt 2, twice; z of 0, 1 is -1, 1.
    assert_allclose(own, [[r2 - 1, 1 - 1 / r2, -1 / r2, 0]], rtol=1e-14)


@pytest.mark.parametrize("common", [0.0, 0.1, 1.0, 1e8, -3e150])
def test_what_a_tied_group_has_in_common_does_not_swallow_a_tiny_weight(common):
    found = advantage_against_weight([common] * 4, [1, 0, 0, 0], [1e-30], eps=0)
    assert_allclose(found[0, 0], np.sqrt(3), rtol=1e-14)


@pytest.mark.parametrize("combine", WAYS)
def test_extreme_values_give_numbers_and_no_warning(combine):
    found = advantage_against_weight([1e200, -1e200, 0], [1e-300, 0, 0], combine=combine)
    assert np.all(np.isfinite(found))


def test_what_is_too_large_to_be_added_is_refused():
    with pytest.raises(ScenarioError, match="prompt 0, completion 1 are too large"):
        advantage_against_weight([0, 1e308, 0], [0, 1e308, 0], [1.0])


BAD = [
    (lambda: tied_group(8, 9), "bonuses is 9; wanted a whole number of at least 0 and at most 8"),
    (lambda: tied_group(2.5, 1), "size is 2.5; wanted a whole number of at least 1"),
    (lambda: tied_group(8, 4, [0.1, np.nan]), "weights at entry 1 is nan"),
    (lambda: tied_group(8, 4, ddof=2), "ddof is 2; wanted one of 0, 1"),
    (lambda: tied_group(8, 4, eps=-1), "eps is -1; wanted a number of at least 0"),
    (lambda: takeover_weight([[np.inf, 1]]), "bonus at prompt 0, completion 0 is inf"),
    (
        lambda: advantage_against_weight([1, 0], [1, 0, 0]),
        r"bonus has shape \(3,\); expected \(2,\) like task",
    ),
    (lambda: advantage_against_weight([1, "x"], [1, 0]), "task at completion 1 is 'x'; wanted"),
    (lambda: advantage_against_weight([], []), "task is empty; wanted at least one value"),
    (lambda: advantage_against_weight([1], [1], 0.5), "weights has shape"),
    (
        lambda: advantage_against_weight([1], [1], combine="add"),
        "combine is 'add'; wanted one of 'sum_then_normalize', 'normalize_then_sum', 'add_after'",
    ),
    (
        lambda: advantage_against_weight([1], [1], scale="batch"),
        "scale is 'batch'; wanted one of 'std', 'none'",
    ),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_bad_input_is_refused_with_its_place(call, words):
    with pytest.raises(ScenarioError, match=words):
        call()
