"""Process rewards: pooled over the group's steps, summed over the steps still to end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import ScenarioError, group_advantages, process_advantages

FULL = np.ones((1, 2, 4))


def test_a_token_gets_the_sum_of_the_steps_that_end_at_or_after_it():
    # Pool 1, 0, 1, 0, 0: mean 0.4, population std sqrt(0.24) = 0.4899.
    # Normalised: 1.2247 for a 1, -0.8165 for a 0.
    #   completion 0, ends 0, 1, 3: 1.2247 - 0.8165 + 1.2247 = 1.6330, then 0.4082, 1.2247, 1.2247
    #   completion 1, ends 1, 2: -1.6330, -1.6330, -0.8165, and 0 after its last step
    computed = process_advantages([[[1, 0, 1], [0, 0]]], [[[0, 1, 3], [1, 2]]], FULL)
    expected = [[[1.6330, 0.4082, 1.2247, 1.2247], [-1.6330, -1.6330, -0.8165, 0.0]]]
    assert_allclose(computed, expected, atol=5e-5)


def test_the_sample_formula_divides_by_one_less():
    population = process_advantages([[[1, 0, 1], [0, 0]]], [[[0, 1, 3], [1, 2]]], FULL, eps=0)
    sample = process_advantages([[[1, 0, 1], [0, 0]]], [[[0, 1, 3], [1, 2]]], FULL, ddof=1, eps=0)
    assert_allclose(sample, population * np.sqrt(4 / 5), rtol=1e-12)


def test_one_step_at_the_end_is_outcome_supervision():
    rewards = [[0.3, 1.0, -2.0]]
    mask = np.array([[[1, 1, 1], [1, 1, 0], [1, 0, 0]]])
    ends = [[[2], [1], [0]]]
    computed = process_advantages([[[r] for r in rewards[0]]], ends, mask)
    assert_allclose(computed, group_advantages(rewards)[..., None] * mask, rtol=1e-12)


def test_several_steps_may_end_at_one_token():
    together = process_advantages([[[1, 0], [0]]], [[[2, 2], [3]]], FULL)
    # Pool 1, 0, 0: 1.4142 and -0.7071; together 0.7071 at tokens 0 to 2.
    assert_allclose(together[0, 0], [0.7071, 0.7071, 0.7071, 0.0], atol=5e-5)


@pytest.mark.parametrize("value", [0.1, 1e8 + 0.1, 1e200, 5e-324, -0.7])
@pytest.mark.parametrize("ddof", [0, 1])
def test_equal_step_rewards_give_exactly_0(value, ddof):
    steps = [[[value, value, value], [value]]]
    assert not process_advantages(steps, [[[0, 1, 2], [3]]], FULL, ddof=ddof).any()


@pytest.mark.parametrize("ddof", [0, 1])
def test_a_pool_of_one_step_or_of_none_gives_0(ddof):
    assert not process_advantages([[[7.0], []]], [[[1], []]], FULL, ddof=ddof).any()
    assert not process_advantages([[[], []]], [[[], []]], FULL, ddof=ddof).any()


def test_groups_are_normalised_each_on_their_own():
    one, other = [[1, 0], [0.5]], [[9.0], [3.0, 3.0]]
    ends = [[0, 2], [3]], [[1], [0, 3]]
    both = process_advantages([one, other], list(ends), np.ones((2, 2, 4)))
    for index, steps in enumerate((one, other)):
        alone = process_advantages(steps, ends[index], np.ones((2, 4)))
        assert_array_equal(both[index], alone)


def test_masked_tokens_and_padding_get_0():
    mask = np.array([[[0, 1, 0, 1], [1, 1, 1, 0]]])
    computed = process_advantages([[[1], [0]]], [[[3], [2]]], mask)
    assert_array_equal(computed != 0, mask.astype(bool))


@given(st.data())
def test_splitting_off_a_step_of_mean_reward_changes_no_other_step(data):
    """A step with the pool's mean reward adds nothing but shrinks the std."""
    rewards = data.draw(st.lists(st.floats(-5, 5), min_size=2, max_size=4))
    pool = [*rewards, float(np.mean(rewards))]
    if np.std(rewards) < 1e-3:
        return
    mask = np.ones((1, len(pool)))
    ends = list(range(len(pool)))
    with_it = process_advantages([pool], [ends], mask, eps=0)
    steps = with_it - np.append(with_it[:, 1:], [[0.0]], axis=1)
    expected = (np.array(pool) - np.mean(rewards)) / np.std(pool)
    assert_allclose(steps[0], expected, atol=1e-9)


BAD = {
    "end beyond the completion": ([[1], [0]], [[4], [0]], "completion 0, step 0 is 4"),
    "negative end": ([[1], [0]], [[-1], [0]], "completion 0, step 0 is -1"),
    "end between two tokens": ([[1], [0]], [[0.5], [0]], "completion 0, step 0 is 0.5"),
    "end in padding": ([[1], [0]], [[0], [3]], "completion 1, step 0 is 3; wanted a token that"),
    "out of order": ([[1, 0], [0]], [[2, 1], [0]], "completion 0, step 1 is 1; wanted steps in"),
    "reward missing": ([[1, None], [0]], [[0, 1], [0]], "completion 0, step 1 is missing"),
    "reward infinite": ([[1], [np.inf]], [[0], [0]], "completion 1, step 0 is inf"),
    "counts differ": ([[1, 0], [0]], [[0], [0]], "completion 0 has 2 step rewards and 1 step"),
    "completions missing": ([[1]], [[0]], "1 prompts with [1] completions; expected 1 with 2"),
    "text": ([[1], [0, "a"]], [[0], [0]], "prompt 0, completion 1, step 1 is 'a'; wanted a number"),
    "a number as text": ([["1"], [0]], [[0], [0]], "completion 0, step 0 is '1'; wanted a number"),
    "text in an end": ([[1], [0]], [[0], ["0"]], "step_ends at prompt 0, completion 1, step 0 is"),
    "too long": ([[10**400], [0]], [[0], [0]], "completion 0, step 0 is 1000000"),
    "not nested": ([1, 0], [0, 0], "step_rewards is not a list of numbers"),
    "nested too deep": ([[[1]], [[0]]], [[0], [0]], "completion 0, step 0 is [1]; wanted a number"),
}


@pytest.mark.parametrize(("rewards", "ends", "says"), BAD.values(), ids=BAD)
def test_bad_input_names_the_completion_and_the_step(rewards, ends, says):
    mask = [[[1, 1, 1, 1], [1, 1, 1, 0]]]
    with pytest.raises(ScenarioError) as caught:
        process_advantages([rewards], [ends], mask)
    assert says in str(caught.value)


def test_the_place_of_text_is_counted_over_all_prompts():
    rewards = [[[1], []], [[0, 1], [1, "x"]]]
    with pytest.raises(ScenarioError, match="at prompt 1, completion 1, step 1 is 'x'") as caught:
        process_advantages(rewards, rewards, np.ones((2, 2, 2)))
    assert caught.value.where == (1, 1, 1)


def test_eps_may_be_a_number_of_numpy():
    plain, other = (
        process_advantages([[[1], [0]]], [[[0], [0]]], FULL, eps=eps)
        for eps in (0.5, np.float32(0.5))
    )
    assert_array_equal(plain, other)


@pytest.mark.parametrize("options", [{"ddof": 2}, {"eps": -1.0}, {"eps": np.nan}, {"eps": "x"}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ScenarioError):
        process_advantages([[[1], [0]]], [[[0], [0]]], FULL, **options)
