"""Laws of length and of group size, over drawn batches, worlds and policies."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.testing import assert_allclose

from grpo_core import DEFAULT_CONVENTIONS, Conventions, evaluate
from grpo_core.answer_policies import softmax_policy
from grpo_core.baselines import gradient_noise
from grpo_core.length import length_weights
from grpo_core.length_batches import with_lengths
from grpo_core.recipes import RECIPES, under_recipes
from grpo_core.stop_worlds import hunch_world, length_world
from grpo_core.stopping import CLOSED_FORMS, expected_update, pull
from grpo_core.stopping_trials import expected_objective
from tests.length_batches import length_scenario

some = settings(max_examples=40)
few = settings(max_examples=15)
SHAPE = st.tuples(st.integers(1, 3), st.integers(2, 5))
STOP = st.floats(0.05, 0.95)
RATE = st.floats(0.02, 0.98)


@st.composite
def batches(draw, least=0):
    shape = draw(SHAPE)
    lengths = draw(npst.arrays(np.int64, shape, elements=st.integers(least, 9)))
    rewards = draw(npst.arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.5, 1.0])))
    return length_scenario(lengths, rewards, width=12)


def conventions(aggregation):
    return Conventions.of(advantage="mean_std", aggregation=aggregation)


@some
@given(batches(least=1))
def test_token_weights_add_up_to_the_weight_of_the_batch(scenario):
    found = length_weights(evaluate(scenario))
    for row in found.rows:
        assert_allclose(row.token * found.lengths, row.completion, rtol=1e-12)
    sums = {row.choice.variant: np.sum(row.completion) for row in found.rows}
    assert_allclose(sums["completion_mean"], 1)
    assert_allclose(sums["token_mean"], 1)
    assert sums["constant"] <= 1 + 1e-12


@some
@given(batches())
def test_shares_add_up_to_one_or_the_batch_is_silent(scenario):
    for key, result in under_recipes(scenario).items():
        silent = not result.whole.any()
        assert np.isclose(np.sum(result.share), 0 if silent else 1), key
        parts = result.pull.right + result.pull.wrong
        assert np.isclose(parts, result.pull.whole, atol=1e-12)


@some
@given(batches())
def test_giving_a_batch_the_lengths_that_it_has_changes_nothing(scenario):
    again = with_lengths(scenario, evaluate(scenario).lengths)
    assert np.array_equal(again["mask"], scenario["mask"])


@some
@given(RATE, STOP, st.floats(0.5, 1.0), st.sampled_from(list(CLOSED_FORMS)), st.integers(2, 6))
def test_with_equal_stopping_a_hunch_never_shortens_what_feels_wrong(rate, stop, hunch, key, G):
    world = hunch_world(rate, stop, accuracy=hunch, width=20)
    wrong, right = expected_update(world, conventions(key), G=G)
    assert wrong <= 1e-15
    assert right >= -1e-15
    assert np.isclose(wrong, -right, atol=1e-12)


@few
@given(
    st.integers(2, 4).flatmap(
        lambda n: st.tuples(
            st.lists(STOP, min_size=n, max_size=n), st.lists(RATE, min_size=n, max_size=n)
        )
    ),
    st.sampled_from(list(RECIPES)),
    st.integers(2, 3),
)
def test_closed_forms_are_sums_over_all_groups(world, recipe, G):
    world = length_world(*world)
    chosen = RECIPES[recipe].applied(DEFAULT_CONVENTIONS)
    _, gradient = expected_objective(world, chosen, G=G)
    exact = expected_update(world, chosen, G=G, shared=False)
    assert_allclose(exact, gradient, atol=1e-12)


@some
@given(RATE, STOP, st.sampled_from(list(CLOSED_FORMS)))
def test_flipping_right_and_wrong_flips_the_roles(rate, stop, key):
    one = hunch_world(rate, stop, accuracy=0.9, width=12)
    two = hunch_world(1 - rate, stop, accuracy=0.9, width=12)
    first, second = (pull(w, expected_update(w, conventions(key), G=4)) for w in (one, two))
    assert_allclose(first.update, second.update, rtol=1e-6, atol=1e-12)
    assert_allclose(first.change, -second.change, rtol=1e-6, atol=1e-10)


@st.composite
def policies(draw):
    shape = draw(st.tuples(st.integers(1, 2), st.integers(2, 4)))
    logits = draw(npst.arrays(np.float64, shape, elements=st.floats(-3, 3)))
    rewards = draw(npst.arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, 0.25])))
    return softmax_policy(logits, rewards)


@some
@given(policies(), st.integers(2, 12))
def test_no_constant_is_less_noisy_than_the_best_and_the_group_pays_for_its_mean(policy, G):
    noise = gradient_noise(policy, G)
    least = noise["best_constant"].variance
    for key in ("none", "constant", "true_value"):
        assert np.all(noise[key].variance >= least - 1e-14)
    assert np.all(noise["leave_one_out"].variance >= noise["true_value"].variance - 1e-15)
    shrunk = ((G - 1) / G) ** 2 * noise["leave_one_out"].variance
    assert_allclose(noise["own_included"].variance, shrunk, rtol=1e-12)


@some
@given(policies(), st.integers(2, 6), st.floats(-5, 5), st.sampled_from([0.5, 2.0, 4.0]))
def test_shifting_and_scaling_rewards_leaves_the_signal_of_group_baselines(policy, G, shift, scale):
    other = softmax_policy(
        np.log(policy.probabilities), np.round(policy.rewards * scale + shift, 12)
    )
    for key in ("own_included", "leave_one_out"):
        one, two = (gradient_noise(p, G)[key] for p in (policy, other))
        assert_allclose(one.variance * scale**2, two.variance, rtol=1e-6, atol=1e-11)
        assert_allclose(one.mean * scale, two.mean, atol=1e-9)
