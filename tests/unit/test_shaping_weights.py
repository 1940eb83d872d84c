"""How heavy a term may be, and what to log: small batches worked by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from grpo_core import ScenarioError
from grpo_core.shaping_curves import advantage_against_weight
from grpo_core.shaping_log import shaping_log
from grpo_core.shaping_parts import COMBINE
from grpo_core.shaping_weights import safe_weight, share_weight

INF, NAN = np.inf, np.nan
WAYS = list(COMBINE)


def test_a_wrong_answer_with_the_bonus_passes_a_right_one_without_it_at_1():
    found = safe_weight([[1, 1, 0, 0]], [[0, 1, 1, 0]], 0.3)
    assert (found.largest.tolist(), found.batch_largest) == ([1.0], 1.0)
    assert (found.least.tolist(), found.batch_least) == ([0.0], 0.0)
    assert found.where == (0, 0, 2)  # completion 0 is right, 2 wrong with the bonus


def test_the_batch_takes_the_smallest_of_its_groups():
    # Group 0: 2 against 1 + w. Group 1: 1 against 4 w. Group 2: the right one has the bonus.
    task, bonus = [[2, 1], [1, 0], [1, 0]], [[0, 1], [0, 4], [1, 0]]
    found = safe_weight(task, bonus, 1.0)
    assert found.largest.tolist() == [1.0, 0.25, INF]
    assert found.batch_largest == 0.25
    assert found.where == (1, 0, 1)


def test_graded_rewards_compare_every_two():
    # 3 against 2 + 5 w passes at 0.2; 2 + 5 w against 0 + 8 w at 2/3; 3 against 8 w at 3/8.
    assert safe_weight([[3, 2, 0]], [[0, 5, 8]], 1.0).batch_largest == pytest.approx(0.2)


@pytest.mark.parametrize("task", [[[1, 1, 1]], [[0, 0, 0]], [[1, NAN, NAN]]])
def test_where_no_answer_is_better_than_another_no_weight_is_too_large(task):
    found = safe_weight(task, [[0, 1, 5]], 1.0)
    assert (found.batch_largest, found.where) == (INF, None)


def test_the_other_terms_are_held():
    # Total 1 - 0.5, w + 0: the other term takes half of the lead.
    task, terms = [[1, 0]], [[[0, 1]], [[1, 0]]]
    assert safe_weight(task, terms, [0.1, -0.5], 0).batch_largest == 0.5
    assert safe_weight(task, terms, [0.1, 0.0], 0).batch_largest == 1.0


def test_a_lead_that_other_terms_used_up_leaves_a_weight_of_0():
    assert safe_weight([[1, 0]], [[[0, 1]], [[1, 0]]], [0.1, -1.0]).batch_largest == 0


def test_rounding_in_the_other_terms_is_no_lead():
    # 0.3 - 0.1 - 0.2 is -2.8e-17 in doubles, for 0.
    terms = [[[0, 1]], [[0.1, 0]], [[0.2, 0]]]
    found = safe_weight([[0.3, 0]], terms, [1.0, -1.0, -1.0])
    assert found.batch_largest == 0


def test_a_term_that_has_to_make_up_for_another():
    # Other term: the wrong one is ahead by 1. The term gives the right one 2 w, and another
    # wrong one 3 w: 2 w >= 1 from 0.5 on; 2 w >= 3 w - 2 up to 2.
    task = [[1, 0, 0]]
    terms = [[[2, 0, 3]], [[-1, 1, -2]]]
    found = safe_weight(task, terms, [1.0, 1.0], 0)
    assert (found.batch_least, found.batch_largest) == (0.5, 2.0)


def test_where_no_weight_will_do_there_is_none():
    task, terms = [[1, 0]], [[[0, 1]], [[0, 2]]]
    found = safe_weight(task, terms, [1.0, 1.0], 0)
    assert np.isnan([found.batch_least, found.batch_largest, *found.largest]).all()
    assert found.where == (0, 0, 1)
    same = safe_weight(task, [[[1, 1]], [[0, 2]]], [1.0, 1.0], 0)  # adds the same to both
    assert np.isnan(same.batch_largest)


def test_a_negative_weight_is_looked_for_below_0():
    # A penalty of length: right 10 tokens, wrong 2. 1 - 10 v against -2 v: v = 1/8.
    found = safe_weight([[1, 0]], [[10, 2]], -0.01)
    assert (found.batch_largest, found.batch_least) == (-0.125, 0)


def outranked(task, advantages):
    better = task[:, None] > task
    return np.any(better & (advantages[:, None] < advantages - 1e-12))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("combine", WAYS)
def test_just_below_nobody_is_outranked_and_just_above_somebody_is(combine, seed):
    rng = np.random.default_rng(seed)
    task, bonus = rng.integers(0, 3, 8).astype(float), rng.normal(size=8)
    task[1], bonus[2] = NAN, NAN
    found = safe_weight([task], [bonus], 1.0, combine=combine)
    largest = found.batch_largest
    around = [largest * (1 - 1e-9), largest * (1 + 1e-6)]
    below, above = advantage_against_weight(task, bonus, around, combine=combine)
    assert not outranked(task, below)
    assert outranked(task, above)
    _, better, worse = found.where
    assert task[better] > task[worse]
    assert above[better] < above[worse]


def test_normalised_on_its_own_a_term_counts_in_units_of_its_spread():
    # z of 1, 1, 0, 0 and of 0, 100, 100, 0 are both -1 or 1: passes at 1, not at 1/100.
    task, bonus = [[1, 1, 0, 0]], [[0, 100, 100, 0]]
    assert safe_weight(task, bonus, 1.0).batch_largest == 0.01
    own = safe_weight(task, bonus, 1.0, combine="normalize_then_sum", eps=0.0)
    assert own.batch_largest == pytest.approx(1.0, rel=1e-14)
    # Added after: 1 against -1 + 100 w.
    after = safe_weight(task, bonus, 1.0, combine="add_after", eps=0.0)
    assert after.batch_largest == pytest.approx(0.02, rel=1e-14)


def test_many_completions_are_compared_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    task, bonus = rng.integers(0, 2, (3, 9)).astype(float), rng.normal(size=(3, 9))
    whole = safe_weight(task, bonus, 1.0)
    monkeypatch.setattr("grpo_core.shaping_weights._PAIRS", 20)
    blocks = safe_weight(task, bonus, 1.0)
    assert blocks.largest.tolist() == whole.largest.tolist()
    assert blocks.where == whole.where


# Shares of the spread.


def test_a_share_by_hand():
    # Same spread, no covariance: w^2 / (1 + w^2) = 0.1 at w = 1/3.
    found = share_weight([[1, 1, 0, 0]], [[0, 1, 1, 0]], 1.0)
    assert_allclose(found.groups, [1 / 3], rtol=1e-14)
    assert found.batch == pytest.approx(1 / 3, rel=1e-12)
    assert (found.at_least, found.tied.tolist(), found.share) == (0.0, [False], 0.1)


def test_a_tenth_of_the_known_example():
    # Task 11000000, bonus 01110010. At the weights 0.1, 0.5, 1, 2 the task has .987, .75,
    # .429, .158 of the spread, so the bonus has 0.25 at 0.5.
    task, bonus = [[1, 1, 0, 0, 0, 0, 0, 0]], [[0, 1, 1, 1, 0, 0, 1, 0]]
    shares = [shaping_log(task, bonus, w).shares[0, 0] for w in (0.1, 0.5, 1, 2)]
    assert_allclose(shares, [0.987, 0.75, 0.429, 0.158], atol=5e-4)
    assert_allclose(share_weight(task, bonus, 1.0, share=0.25).groups, [0.5], rtol=1e-14)


def test_a_tied_group_has_the_whole_share_at_any_weight():
    found = share_weight([[1, 1], [0, 0], [1, 0], [1, 0]], [[1, 0], [2, 2], [1, 0], [3, 3]], 1.0)
    # Group 0 is tied in the task, group 1 in everything, group 3 in the bonus alone.
    assert found.tied.tolist() == [True, False, False, False]
    assert_allclose(found.groups, [NAN, NAN, 1 / 9, NAN], rtol=1e-14)  # w / (1 + w) = 0.1
    assert found.at_least == pytest.approx(1 / 3)  # of the three groups that push
    assert np.isnan(found.batch)  # a third already: never as little as a tenth
    # The mean of 1, w / (1 + w) and 0 is 1/2 where w / (1 + w) = 1/2.
    half = share_weight(
        [[1, 1], [0, 0], [1, 0], [1, 0]], [[1, 0], [2, 2], [1, 0], [3, 3]], 1.0, share=0.5
    )
    assert half.batch == pytest.approx(1.0, rel=1e-12)


def test_eps_takes_over_a_tied_group_at_eps_over_the_spread_of_the_term():
    task, bonus = [[1, 1, 1, 1], [1, 0, 0, 0]], [[1, 0, 0, 1], [1, 0, 0, 0]]
    found = share_weight(task, bonus, 1.0, eps=1e-4)
    assert_allclose(found.takeover, [2e-4, NAN], rtol=1e-14)
    assert_allclose(share_weight(task, bonus, -1.0, eps=1e-4).takeover, [-2e-4, NAN])
    for options in ({"eps": 0.0}, {"scale": "none"}, {"combine": "normalize_then_sum"}):
        assert np.isnan(share_weight(task, bonus, 1.0, **options).takeover).all()


def test_a_term_opposed_to_the_task_leaps_over_every_share():
    # Task f, bonus -f: total (1 - w) f; the share is -w / (1 - w), below 0 or above 1.
    found = share_weight([[1, 0]], [[0, 1]], 1.0)
    assert np.isnan(found.groups[0])
    assert np.isnan(found.batch)


def test_a_penalty_reaches_its_share_below_0():
    up = share_weight([[1, 1, 0, 0]], [[0, 1, 1, 0]], 1.0)
    down = share_weight([[1, 1, 0, 0]], [[0, -1, -1, 0]], -1.0)
    assert_allclose(down.groups, -up.groups, rtol=1e-14)
    assert down.batch == pytest.approx(-up.batch)


@pytest.mark.parametrize("combine", WAYS)
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9])
def test_at_the_weight_found_the_log_shows_the_share(combine, share):
    rng = np.random.default_rng(3)
    task = rng.integers(0, 3, (5, 7)).astype(float)
    terms = rng.normal(size=(2, 5, 7))
    task[1, 2], terms[0, 2, 3], terms[1, 4, 0] = NAN, NAN, NAN
    found = share_weight(task, terms, [1.0, 0.3], 0, share=share, combine=combine)
    for p, weight in enumerate(found.groups):
        log = shaping_log(task, terms, [weight, 0.3], combine=combine)
        assert log.shares[1, p] == pytest.approx(share, rel=1e-9)
    log = shaping_log(task, terms, [found.batch, 0.3], combine=combine)
    assert log.mean_shares[1] == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150])
def test_a_share_is_found_at_every_size_of_number(scale):
    task = np.array([[1, 1, 0, 0]]) * scale
    assert_allclose(share_weight(task, [[0, 1, 1, 0]], 1.0).groups, [scale / 3], rtol=1e-12)


# What to log.


def test_the_log_of_a_hacked_batch():
    # Group 0 is tied on the task and decided by the bonus; in group 1 the bonus goes to the
    # wrong ones; group 2 is silent.
    task = [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]]
    bonus = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]]
    lengths = [[4, 4, 8, 8], [10, 20, 2, 4], [5, 5, 5, 5]]
    log = shaping_log(task, bonus, 0.5, lengths)
    assert (log.task_mean, log.term_means.tolist()) == (0.5, [8 / 12])
    assert log.decided.tolist() == [True, False, False]
    assert log.decided_share == pytest.approx(1 / 3)
    # Deviations: task 0 in group 0, +-1/2 in group 1; bonus +-1/2 in both. -1 / sqrt(1 x 2).
    assert log.correlation[0] == pytest.approx(-1 / np.sqrt(2))
    # Right: 10, 20, 5, 5, 5, 5. Wrong: 4, 4, 8, 8, 2, 4.
    assert (log.right_above, log.right_length, log.wrong_length) == (0.5, 50 / 6, 30 / 6)
    # Group 1: total f - f / 2 = f / 2 with f the task: it has 2, the bonus -1.
    assert_allclose(log.shares, [[0, 2, 0], [1, -1, 0]], rtol=1e-14)
    assert_allclose(log.mean_shares, [1, 0], atol=1e-15)


def test_terms_that_cancel_leave_no_share_and_decide_nothing():
    # 0.1 + 0.2 against 0.3 differ in the last digit of doubles only.
    terms = [[[0.1, 0.0]], [[0.2, 0.0]], [[0.0, 0.3]]]
    log = shaping_log([[1, 1]], terms, [1.0, 1.0, 1.0])
    assert not log.shares.any()
    assert not log.decided.any()


def test_a_term_right_with_the_task_and_one_against_it():
    log = shaping_log([[1, 0, 1, 0]], [[[3, 1, 3, 1]], [[0, 7, 0, 7]], [[2, 2, 2, 2]]], [1, 1, 1])
    assert_allclose(log.correlation, [1, -1, NAN], rtol=1e-14)


def test_differences_between_groups_are_no_correlation():
    log = shaping_log([[0, 0], [1, 1]], [[0, 0], [5, 5]], 1.0)
    assert np.isnan(log.correlation[0])


def test_missing_values_are_left_out():
    task, bonus = [[1, 0, NAN, 0]], [[2, NAN, 4, 0]]
    log = shaping_log(task, bonus, 1.0, [[3, NAN, 9, 5]])
    assert log.task_mean == pytest.approx(1 / 3)
    assert log.term_means.tolist() == [2.0]
    assert log.correlation[0] == pytest.approx(1.0)  # of completions 0 and 3
    assert (log.right_length, log.wrong_length) == (3, 5)
    # Sum 3, 0, 4, 0 less the task alike: a missing value adds nothing.
    assert_allclose(np.sum(log.shares, axis=0), 1, rtol=1e-14)


def test_nobody_is_right_or_wrong_where_all_are_alike_or_no_length_is_known():
    same = shaping_log([[1, 1]], [[1, 0]], 1.0, [[3, 4]])
    assert np.isnan([same.right_above, same.right_length, same.wrong_length]).all()
    told = shaping_log([[1, 1]], [[1, 0]], 1.0, [[3, 4]], right_above=0.5)
    assert (told.right_length, np.isnan(told.wrong_length)) == (3.5, True)
    blank = shaping_log([[1, 0]], [[1, 0]], 1.0)
    assert np.isnan([blank.right_length, blank.wrong_length]).all()


def test_a_batch_of_which_nothing_is_known():
    log = shaping_log([[NAN, NAN]], [[NAN, NAN]], 1.0, [[1, 2]])
    assert np.isnan([log.task_mean, *log.term_means, *log.correlation]).all()
    assert (log.decided_share, log.mean_shares.tolist()) == (0, [0, 0])
    assert safe_weight([[NAN, NAN]], [[NAN, NAN]], 1.0).batch_largest == INF
    assert np.isnan(share_weight([[NAN, NAN]], [[NAN, NAN]], 1.0).batch)


BAD = [
    ({"terms": [[1, 0, 0]]}, r"terms have shape \(1, 3\); expected \(1, 2\) like task"),
    ({"terms": [[1, NAN], [1]]}, "terms"),
    ({"terms": [[INF, 0]]}, "terms at term 0, prompt 0, completion 0 is inf"),
    ({"task": [[1, "a"]]}, "task at prompt 0, completion 1 is 'a'; wanted"),
    ({"weights": [1, 2]}, "2 weights for 1 terms; wanted one for each"),
    ({"weights": NAN}, "weights at term 0 is nan; wanted a finite number"),
    ({"weights": 1e308, "terms": [[1e10, 0]]}, "prompt 0, completion 0 are too large"),
    ({"term": 1}, "term is 1; wanted a whole number of at least 0 and at most 0"),
    ({"task_weight": NAN}, "task_weight is nan; wanted a number"),
    ({"combine": "mix"}, "combine is 'mix'; wanted one of"),
    ({"tokens": "sum"}, "there is no option tokens; wanted one of combine, scale, ddof, eps"),
]


@pytest.mark.parametrize(("changed", "words"), BAD)
@pytest.mark.parametrize("function", [safe_weight, share_weight, shaping_log])
def test_bad_input_is_refused_with_its_place(function, changed, words):
    if function is shaping_log and "term" in changed:
        return
    given = {"task": [[1, 0]], "terms": [[1, 0]], "weights": 1.0, **changed}
    with pytest.raises(ScenarioError, match=words):
        function(given.pop("task"), given.pop("terms"), given.pop("weights"), **given)


@pytest.mark.parametrize("share", [0, 1, 1.5, -0.1, NAN, "half"])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ScenarioError, match="share is .*; wanted a number"):
        share_weight([[1, 0]], [[1, 0]], 1.0, share=share)


def test_lengths_of_another_shape_are_refused():
    with pytest.raises(ScenarioError, match=r"lengths has shape \(1, 3\); expected \(1, 2\)"):
        shaping_log([[1, 0]], [[1, 0]], 1.0, [[1, 2, 3]])


def test_inputs_are_not_modified():
    task, terms, weights = np.array([[1.0, NAN]]), np.array([[[NAN, 1.0]]]), np.array([2.0])
    for function in (safe_weight, share_weight, shaping_log):
        function(task, terms, weights)
    assert_allclose(task, [[1, NAN]])
    assert_allclose(terms, [[[NAN, 1]]])
