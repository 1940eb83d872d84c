"""Laws of expected advantages, prompt weights and silent groups, over drawn prompts."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from grpo_core.difficulty import can_enumerate, difficulty
from grpo_core.dynamic_sampling import dynamic_sampling
from grpo_core.prompt_rewards import (
    compositions,
    multinomial,
    prompts_from_rates,
    prompts_from_table,
)
from grpo_core.scales import SCALES
from grpo_core.silent import silent_curve, silent_probability, tied_subgroups

some = settings(max_examples=60)
rate = st.floats(0, 1)
inner = st.floats(1e-3, 1 - 1e-3)
rates = st.lists(rate, min_size=1, max_size=6)
size = st.integers(2, 12)
scale = st.sampled_from(list(SCALES))


@st.composite
def graded(draw):
    """Prompts with up to four rewards of their own."""
    P, V = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    row = st.lists(st.integers(-8, 8).map(lambda n: n / 4), min_size=V, max_size=V)
    weights = st.lists(st.integers(0, 9), min_size=V, max_size=V).filter(any)
    return prompts_from_table(
        draw(st.lists(row, min_size=P, max_size=P)), draw(st.lists(weights, min_size=P, max_size=P))
    )


@some
@given(graded(), st.integers(2, 6), st.sampled_from([k for k in SCALES if SCALES[k].per_group]))
def test_the_mean_advantage_of_all_answers_is_0(prompts, G, key):
    found = difficulty(prompts, G, key)
    mean = np.sum(prompts.probabilities * found.expected_advantage, axis=1)
    assert_allclose(mean, 0, atol=1e-12 * max(prompts.span, 4))


@some
@given(graded(), st.integers(2, 6))
def test_a_better_reward_never_has_the_smaller_expected_advantage(prompts, G):
    found = difficulty(prompts, G)
    assert np.all(np.diff(found.expected_advantage, axis=1) >= -1e-9)


@some
@given(rates, size, scale)
def test_right_and_wrong_answers_balance(values, G, key):
    found = difficulty(prompts_from_rates(values), G, key)
    p = np.array(values)
    assert_allclose(p * found.right + (1 - p) * found.wrong, 0, atol=1e-11)
    assert_allclose(found.expected_size, 2 * p * found.right, rtol=1e-9, atol=1e-11)
    assert not np.isnan(found.prompt_weight).any()


@some
@given(rates, size, st.integers(0, 1), st.sampled_from(["group", "none", "leave_one_out"]))
def test_hard_and_easy_mirror_each_other(values, G, ddof, key):
    options = {"ddof": ddof} if key == "group" else {}
    p = np.array(values)
    hard = difficulty(prompts_from_rates(p), G, key, **options)
    easy = difficulty(prompts_from_rates(1 - p), G, key, **options)
    assert_allclose(hard.prompt_weight, easy.prompt_weight, rtol=1e-9)
    assert_allclose(hard.right, -easy.wrong, rtol=1e-7, atol=1e-12)


@some
@given(inner, size)
def test_the_weight_lies_between_that_of_a_pair_and_its_limit(p, G):
    found = difficulty(prompts_from_rates([p]), G, eps=0.0)
    smaller = difficulty(prompts_from_rates([p]), max(G - 1, 2), eps=0.0)
    assert 1 - 1e-12 <= found.prompt_weight[0] <= min(found.limit[0], np.sqrt(G - 1)) * (1 + 1e-12)
    assert found.prompt_weight[0] >= smaller.prompt_weight[0] - 1e-12


@some
@given(rates, size)
def test_the_sample_std_takes_the_same_factor_from_every_prompt(values, G):
    prompts = prompts_from_rates(values)
    population, sample = (difficulty(prompts, G, eps=0.0, ddof=d).prompt_weight for d in (0, 1))
    assert_allclose(sample, population * np.sqrt((G - 1) / G), rtol=1e-12)


@some
@given(
    st.lists(inner, min_size=2, max_size=5), st.integers(2, 6), st.randoms(use_true_random=False)
)
def test_the_order_of_the_prompts_in_a_batch_does_not_matter(values, G, random):
    order = list(range(len(values)))
    random.shuffle(order)
    found = difficulty(prompts_from_rates(values), G, "batch").prompt_weight
    shuffled = difficulty(prompts_from_rates(np.array(values)[order]), G, "batch").prompt_weight
    assert_allclose(shuffled, found[order], rtol=1e-9)


@some
@given(graded(), st.integers(2, 5), st.sampled_from([0.5, 4.0]), st.sampled_from([-1.0, 3.0]))
def test_a_change_of_unit_changes_advantages_only_where_nothing_is_divided(prompts, G, unit, shift):
    other = prompts_from_table(unit * prompts.values + shift, prompts.probabilities)
    for key, factor, options in (("group", 1.0, {"eps": 0.0}), ("none", unit, {})):
        found, moved = (difficulty(w, G, key, **options) for w in (prompts, other))
        assert_allclose(moved.expected_advantage, factor * found.expected_advantage, atol=1e-10)


@some
@given(graded(), st.integers(2, 6))
def test_chances_of_all_compositions_add_up_to_one(prompts, G):
    counts = compositions(G, prompts.values.shape[1])
    assert len(np.unique(counts, axis=0)) == len(counts)
    assert np.all(np.sum(counts, axis=1) == G)
    chance = multinomial(counts, prompts.probabilities)
    assert_allclose(np.sum(chance, axis=1), 1, rtol=1e-12)
    assert_allclose(chance @ counts, G * prompts.probabilities, atol=1e-11)


@some
@given(rates, size)
def test_silence_falls_with_the_group_and_is_least_in_the_middle(values, G):
    curve = silent_curve([*values, 0.5], [G, G + 1])
    assert np.all(curve[:, 1] <= curve[:, 0])
    assert np.all(curve[-1] <= curve + 1e-15)
    assert np.all((curve >= 0) & (curve <= 1))


@some
@given(graded(), st.integers(2, 6))
def test_mean_square_advantage_and_silence_are_one_thing(prompts, G):
    assume(can_enumerate(prompts, G))
    found = difficulty(prompts, G, eps=0.0)
    assert_allclose(found.mean_square, 1 - silent_probability(prompts, G), atol=1e-9)


@some
@given(
    st.integers(1, 4).flatmap(
        lambda P: st.lists(
            st.lists(st.integers(0, 2), min_size=5, max_size=5), min_size=P, max_size=P
        )
    )
)
def test_observed_frequencies_overstate_silence(rewards):
    # Drawing with replacement from a group ties more often than drawing without.
    values, rewards = np.arange(3.0), np.array(rewards, float)
    prompts = prompts_from_table(values, np.sum(rewards[:, :, None] == values, axis=1))
    for G in (2, 3, 5):
        assert np.all(silent_probability(prompts, G) >= tied_subgroups(rewards, G) - 1e-12)


@some
@given(st.lists(inner, min_size=1, max_size=6), size, st.integers(1, 50), st.integers(1, 20))
def test_dynamic_sampling_costs_at_least_what_it_keeps(values, G, wanted, batch):
    found = dynamic_sampling(prompts_from_rates(values), G, wanted, batch=batch)
    assert found.draws >= wanted
    assert_allclose(np.sum(found.kept_share), 1)
    assert found.draws / batch - 1e-9 <= found.batches <= found.draws / batch + 1
    lowest, highest = min(values), max(values)
    assert lowest - 1e-12 <= found.kept_mean <= highest + 1e-12
