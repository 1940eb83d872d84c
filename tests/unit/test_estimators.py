"""Estimators over two small distributions: exact moments, gradients, and what samples show."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import ScenarioError, build_scenario, resize
from grpo_core.estimators import (
    PAIRS,
    compare,
    exact_kl,
    resize_distributions,
    sample,
    seed_of,
    with_distributions,
)

BARE = build_scenario(rewards=[[1.0, 0.0]])


def compared(new, ref):
    return compare(BARE.replace(dist_new=new, dist_ref=ref))


# Mean KL both ways, mean of k2, standard deviations of k1, k2, k3: enumerated independently.
KNOWN = [
    ((0.5, 0.3, 0.2), (0.4, 0.4, 0.2), 0.02527, 0.02582, 0.02486, 0.2215, 0.0143, 0.0160),
    ((0.9, 0.099, 0.001), (0.2, 0.3, 0.5), 1.2377, 3.1391, 1.0982, 0.815, 0.597, 15.55),
]


@pytest.mark.parametrize(("new", "ref", "kl", "forward", "k2", "s1", "s2", "s3"), KNOWN)
def test_known_moments(new, ref, kl, forward, k2, s1, s2, s3):
    found = compared(new, ref)
    assert found.reverse == pytest.approx(kl, rel=1e-3)
    assert found.forward == pytest.approx(forward, rel=1e-3)
    rows = found.estimators
    assert rows["k1"].expected == pytest.approx(found.reverse, rel=1e-12)
    assert rows["k3"].expected == pytest.approx(found.reverse, rel=1e-12)
    assert rows["k1"].bias == rows["k3"].bias == 0
    assert rows["k2"].expected == pytest.approx(k2, rel=1e-3)
    assert rows["k2"].bias == pytest.approx(k2 - kl, abs=1e-4)
    stds = [rows[key].std for key in ("k1", "k2", "k3")]
    assert stds == pytest.approx([s1, s2, s3], rel=5e-3)


def test_two_tokens_by_hand():
    # 0.5 log(0.5/0.9) + 0.5 log(0.5/0.1) = 0.510826; k3 per token 0.212213 and 0.809438.
    found = compare(BARE)
    assert found.reverse == pytest.approx(0.510826, abs=1e-6)
    assert found.estimators["k3"].values == pytest.approx([0.212213, 0.809438], abs=1e-6)
    # Gradient of the forward KL: new - ref = -0.4, 0.4.
    assert_allclose(found.estimators["k3"].gradient, [-0.4, 0.4], rtol=1e-12)


def weights(size):
    return st.lists(st.floats(1e-3, 1.0), min_size=size, max_size=size)


PAIR = st.integers(2, 8).flatmap(lambda size: st.tuples(weights(size), weights(size)))


@given(PAIR)
def test_whose_gradient_each_estimator_has(pair):
    found = compared(*pair)
    assume(not np.allclose(found.reverse_gradient, found.forward_gradient, atol=1e-6))
    rows = found.estimators
    assert not rows["k1"].gradient.any()
    assert_allclose(rows["k2"].gradient, found.reverse_gradient, atol=1e-12)
    assert_allclose(rows["k3"].gradient, found.forward_gradient, atol=1e-12)
    assert (rows["k2"].gradient_of, rows["k3"].gradient_of) == ("reverse", "forward")


@given(PAIR)
def test_the_gradients_of_both_kls_are_their_slopes_by_the_logits(pair):
    new, ref = (np.array(weights) / np.sum(weights) for weights in pair)
    found = compared(*pair)
    for kl, gradient in (
        (lambda p: exact_kl(p, ref), found.reverse_gradient),
        (lambda p: exact_kl(ref, p), found.forward_gradient),
    ):
        for token in range(len(new)):
            ends = []
            for step in (1e-5, -1e-5):
                logits = np.log(new)
                logits[token] += step
                ends.append(kl(np.exp(logits) / np.exp(logits).sum()))
            slope = (ends[0] - ends[1]) / 2e-5
            assert slope == pytest.approx(gradient[token], abs=1e-7)


def test_equal_distributions_have_no_kl_and_no_gradient():
    found = compared([0.25] * 4, [1.0] * 4)
    assert found.reverse == found.forward == 0
    for row in found.estimators.values():
        assert (row.expected, row.bias, row.std) == (0, 0, 0)
        assert not row.gradient.any()


def test_what_does_not_add_up_to_one_is_divided_by_its_sum():
    found = compared([1e308, 1e308], [9.0, 1.0])
    assert found.new.tolist() == [0.5, 0.5]
    assert_allclose(found.ref, [0.9, 0.1], rtol=1e-15)
    assert found.sums[1] == 10


def test_a_token_that_the_reference_never_gives_makes_the_kl_infinite():
    found = compared([0.5, 0.5], [1.0, 0.0])
    assert found.reverse == np.inf
    assert found.forward == pytest.approx(np.log(2))
    assert found.reverse_gradient is None
    assert [row.expected for row in found.estimators.values()] == [np.inf] * len(found.estimators)
    assert found.estimators["k2"].gradient is None
    assert found.estimators["k3"].gradient_of == "forward"


def test_mass_that_the_policy_gave_up_is_missing_from_k3():
    found = compared([0.75, 0.25, 0.0], [0.4, 0.4, 0.2])
    assert found.forward == np.inf
    assert found.missing == pytest.approx(0.2)
    assert found.estimators["k3"].bias == pytest.approx(-0.2)
    assert found.estimators["k1"].bias == 0


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_samples_agree_with_the_exact_moments_and_repeat_with_their_seed(pair):
    found = compared(*pair)
    samples = sample(found, 3)
    for key, row in found.estimators.items():
        held = samples[key]
        assert not any(np.isnan(a).any() for a in (held.running, held.low, held.high, held.std))
        assert held.counts[0] == 1
        assert held.counts[-1] == 1024
        if not np.isfinite(row.std):
            continue
        error = row.std / np.sqrt(1024 * 200)
        assert abs(held.mean[-1] - row.expected) <= 4 * error + 1e-12
        assert held.std[-1] == pytest.approx(row.std / 32, rel=0.25, abs=1e-9)
        assert np.all(held.low <= held.high)
    again, other = sample(found, 3), sample(found, 4)
    assert_array_equal(again["k1"].running, samples["k1"].running)
    assert not np.array_equal(other["k1"].running, samples["k1"].running)


def test_the_policy_never_samples_a_token_of_probability_zero():
    found = compared([0.0, 1.0, 0.0], [0.2, 0.6, 0.2])
    assert_allclose(sample(found)["k1"].running, -np.log(0.6), rtol=1e-12)


# --- in a scenario -----------------------------------------------------------------------


def test_an_example_without_distributions_gets_a_pair_and_keeps_its_own():
    whole = with_distributions(BARE)
    assert whole["dist_new"].tolist() == [0.5, 0.5]
    assert "dist_new" not in BARE
    assert with_distributions(whole) is whole
    alone = with_distributions(BARE.replace(dist_new=[0.2, 0.3, 0.5]))
    assert_allclose(alone["dist_ref"], [1 / 3] * 3)


def test_more_tokens_come_with_probability_zero_and_fewer_are_cut():
    wider = resize_distributions(BARE, 4)
    assert wider["dist_ref"].tolist() == [0.9, 0.1, 0, 0]
    assert resize_distributions(wider, 2)["dist_new"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"dist_new": [1.0]}, "dist_new has 1 tokens; wanted 2 to 8"),
        ({"dist_new": [0.1] * 9}, "dist_new has 9 tokens; wanted 2 to 8"),
        ({"dist_new": [0.5, -0.5]}, "dist_new at token 1 is -0.5; wanted a probability"),
        ({"dist_new": [0.5, np.nan]}, "dist_new at token 1 is nan"),
        ({"dist_ref": [0.0, 0.0]}, "dist_ref is 0 at all tokens"),
        ({"dist_new": [0.5, 0.5], "dist_ref": [1, 1, 1]}, "dist_ref has 3 tokens; expected 2"),
        ({"seed": 0.5}, "seed is 0.5; wanted a whole number from 0 to 999,999"),
        ({"seed": -1}, "seed is -1.0; wanted a whole number"),
    ],
)
def test_bad_distributions_and_seeds_are_named(arrays, message):
    with pytest.raises(ScenarioError) as caught:
        BARE.replace(**arrays)
    assert str(caught.value).startswith(message)


def test_a_resize_of_the_batch_leaves_the_distributions_alone():
    scenario = BARE.replace(dist_new=[0.5, 0.5], dist_ref=[0.9, 0.1], seed=7)
    wider = resize(scenario, P=3, G=5, L=2)
    assert wider["dist_ref"].tolist() == [0.9, 0.1]
    assert seed_of(wider) == 7
    assert seed_of(BARE) == 0
