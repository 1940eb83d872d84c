"""Weight of easy and hard prompts: known numbers, brute force, limits, and sampling beside it."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import Conventions, ScenarioError, build_scenario, evaluate
from grpo_core.difficulty import can_enumerate, difficulty, largest
from grpo_core.prompt_rewards import (
    compositions,
    draw,
    multinomial,
    prompts_from_rates,
    prompts_from_table,
)
from grpo_core.scales import SCALES, chosen_scale, scaled_advantages
from grpo_core.simulation import Estimate, simulate_difficulty

NAN = np.nan
RATES = (0.01, 0.1, 0.25, 0.5)
GRADED = prompts_from_table([0, 0.3, 1], [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1], [0, 0.4, 0.6]])

# Prompt weight c, population std, eps 0, for G = 2, 4, 8, 16, 64 and endless.
POPULATION = {
    0.01: (1, 1.7275, 2.6089, 3.7330, 6.7362, 10.0504),
    0.1: (1, 1.6903, 2.3277, 2.8478, 3.2548, 3.3333),
    0.25: (1, 1.6450, 2.0261, 2.1979, 2.2848, 2.3094),
    0.5: (1, 1.6160, 1.8557, 1.9341, 1.9842, 2),
}
SAMPLE = {
    0.01: (0.7071, 1.4960, 2.4404, 3.6145, 6.6834),
    0.1: (0.7071, 1.4638, 2.1774, 2.7574, 3.2292),
    0.25: (0.7071, 1.4246, 1.8953, 2.1281, 2.2669),
    0.5: (0.7071, 1.3995, 1.7358, 1.8727, 1.9686),
}
RIGHT = {
    0.01: (0.99, 1.7102, 2.5828, 3.6957, 6.6688),
    0.1: (0.9, 1.5213, 2.0949, 2.5630, 2.9293),
    0.25: (0.75, 1.2338, 1.5196, 1.6484, 1.7136),
    0.5: (0.5, 0.8080, 0.9278, 0.9671, 0.9921),
    0.75: (0.25, 0.4113, 0.5065, 0.5495, 0.5712),
    0.9: (0.1, 0.1690, 0.2328, 0.2848, 0.3255),
    0.99: (0.01, 0.0173, 0.0261, 0.0373, 0.0674),
}
SIZES = (2, 4, 8, 16, 64)


def exact(rates, G, scale="group", **options):
    if scale in ("group", "batch"):
        options = {"eps": 0.0, **options}
    return difficulty(prompts_from_rates(rates), G, scale, **options)


# --- known numbers -----------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES)
def test_known_weights_with_the_population_std(rate):
    for both in (rate, 1 - rate):
        found = [exact([both], G).prompt_weight[0] for G in SIZES]
        assert_allclose(found, POPULATION[rate][:5], atol=6e-5)
        assert exact([both], 2).limit[0] == pytest.approx(POPULATION[rate][5], abs=6e-5)


@pytest.mark.parametrize("rate", RATES)
def test_known_weights_with_the_sample_std(rate):
    found = [exact([rate], G, ddof=1).prompt_weight[0] for G in SIZES]
    assert_allclose(found, SAMPLE[rate], atol=6e-5)


@pytest.mark.parametrize("rate", RIGHT)
def test_known_advantages_of_a_right_answer_and_the_mirrored_wrong_one(rate):
    assert_allclose([exact([rate], G).right[0] for G in SIZES], RIGHT[rate], atol=6e-5)
    assert_allclose(
        [exact([1 - rate], G).wrong[0] for G in SIZES], -np.array(RIGHT[rate]), atol=6e-5
    )


def test_group_of_four_by_hand():
    # Own answer right, p = 1/2: 0, 1, 2, 3 of the other three right with 1, 3, 3, 1 of 8.
    # A = sqrt((4 - k)/k) for k = 1, 2, 3, 4 right: 1.732, 1, 0.577, 0.
    by_hand = (np.sqrt(3) + 3 + 3 * np.sqrt(1 / 3)) / 8
    assert exact([0.5], 4).right[0] == pytest.approx(by_hand, rel=1e-14)
    # The general formula at G = 4: sqrt(3) + (3 - 2 sqrt(3)) p q.
    p = np.linspace(0, 1, 11)
    weight = np.sqrt(3) + (3 - 2 * np.sqrt(3)) * p * (1 - p)
    assert_allclose(exact(p, 4).prompt_weight, weight, rtol=1e-13)


def test_without_a_divisor_every_prompt_weighs_the_same():
    for G in SIZES:
        assert_allclose(exact(RATES, G, "none").prompt_weight, (G - 1) / G, rtol=1e-12)
        assert_allclose(exact(RATES, G, "leave_one_out").prompt_weight, 1, rtol=1e-12)


def test_groups_of_two_and_three_do_not_weigh_by_difficulty():
    p = np.linspace(0.01, 0.99, 9)
    assert_allclose(exact(p, 2).prompt_weight, 1, rtol=1e-13)
    assert_allclose(exact(p, 2, ddof=1).prompt_weight, np.sqrt(0.5), rtol=1e-13)
    assert_allclose(exact(p, 3).prompt_weight, np.sqrt(2), rtol=1e-13)
    assert largest(exact(p, 3).prompt_weight) == ()


def test_the_hardest_and_easiest_weigh_most_but_the_middle_moves_fastest():
    found = exact([0.01, 0.3, 0.5, 0.7, 0.99], 16)
    assert largest(found.prompt_weight) == (0, 4)
    assert largest(found.speed) == (2,)
    assert largest(found.expected_size) == (2,)
    assert largest(found.right) == (0,)


def test_a_large_eps_takes_the_weighting_away():
    weight = exact(RATES, 16, eps=10.0, ddof=1).prompt_weight
    assert_allclose(weight, 15 / 16 / 10, rtol=0.06)
    assert weight.max() / weight.min() < 1.06


def test_the_std_of_the_batch_weighs_all_prompts_nearly_alike():
    # Sample std; over all 256 reward vectors of two prompts with four answers each.
    found = exact([0.1, 0.6], 4, "batch", ddof=1)
    assert_allclose(found.prompt_weight, [1.4748, 1.5759], atol=6e-5)
    many = exact(np.tile([0.1, 0.6], 200), 4, "batch")
    pooled = 0.75 / np.sqrt(0.35 * 0.65)
    assert_allclose(many.prompt_weight, pooled, rtol=5e-3)
    assert_allclose(many.limit, 1 / np.sqrt(0.35 * 0.65), rtol=1e-13)


def test_a_prompt_may_be_put_beside_a_batch():
    together = exact([0.1, 0.6, 0.3], 4, "batch")
    beside = exact([0.3], 4, "batch", beside=prompts_from_rates([0.1, 0.6]))
    assert_allclose(beside.prompt_weight, together.prompt_weight[2:], rtol=1e-12)
    assert_allclose(beside.limit, together.limit[2:], rtol=1e-12)


# --- limits ------------------------------------------------------------------------------


@pytest.mark.parametrize("G", [2, 4, 8, 64])
def test_at_rates_of_0_and_1_the_weight_is_its_limit(G):
    found = exact([0.0, 1.0], G)
    # A lone right answer of G has advantage sqrt(G - 1); a right one among right ones 0.
    assert_allclose(found.prompt_weight, np.sqrt(G - 1), rtol=1e-13)
    assert_allclose(found.right, [np.sqrt(G - 1), 0], rtol=1e-13)
    assert found.silent.tolist() == [1, 1]
    assert found.expected_size.tolist() == [0, 0]
    assert found.speed.tolist() == [0, 0]
    assert found.limit.tolist() == [np.inf, np.inf]
    assert found.asymmetry.tolist() == [np.inf, 0]


def test_asymmetry_is_the_odds_of_a_wrong_answer_under_every_scale():
    for key in SCALES:
        found = exact([0.1, 0.25, 0.9], 6, key)
        assert_allclose(found.asymmetry, [9, 3, 1 / 9], rtol=1e-11)


def test_mean_square_is_the_share_of_mixed_groups():
    found = exact(RATES, 8)
    assert_allclose(found.mean_square, 1 - found.silent, rtol=1e-12)
    assert_allclose(exact(RATES, 8, ddof=1).mean_square, 7 / 8 * (1 - found.silent), rtol=1e-12)


# --- brute force -------------------------------------------------------------------------


def brute(values, chances, G, divisor):
    """E[A | own value] over all V**G reward vectors, with NumPy's mean and std."""
    values, chances = np.array(values, dtype=float), np.array(chances)
    expected = np.zeros(len(values))
    for others in product(range(len(values)), repeat=G - 1):
        for own in range(len(values)):
            r = values[[own, *others]]
            if r.min() < r.max():
                expected[own] += np.prod(chances[list(others)]) * (r[0] - r.mean()) / divisor(r)
    return expected


DIVISORS = {
    "group": (lambda r: r.std() + 0.01, {"eps": 0.01}),
    "sample": (lambda r: r.std(ddof=1), {"eps": 0.0, "ddof": 1}),
    "none": (lambda r: 1.0, {}),
    "leave_one_out": (lambda r: (len(r) - 1) / len(r), {}),
}


@pytest.mark.parametrize("key", DIVISORS)
@pytest.mark.parametrize("G", [2, 3, 5])
def test_enumeration_of_counts_equals_that_of_all_groups(key, G):
    divisor, options = DIVISORS[key]
    found = difficulty(GRADED, G, "group" if key == "sample" else key, **options)
    for p in range(len(GRADED)):
        slow = brute(GRADED.values[p], GRADED.probabilities[p], G, divisor)
        assert_allclose(found.expected_advantage[p], slow, rtol=1e-12, atol=1e-14)


def test_the_whole_gradient_of_a_softmax_policy():
    # Four answers with rewards 0, 1, 0.3, 1: sum over all 4**3 groups of (1/G) sum A grad log pi.
    chances, rewards, G = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0, 1, 0.3, 1]), 3
    scores = np.eye(4) - chances
    gradient = np.zeros(4)
    for group in product(range(4), repeat=G):
        r = rewards[list(group)]
        if r.min() < r.max():
            A = (r - r.mean()) / r.std(ddof=1)
            gradient += np.prod(chances[list(group)]) * (A @ scores[list(group)]) / G
    found = difficulty(prompts_from_table([rewards], [chances]), G, ddof=1, eps=0.0)
    # sum_v E[A | v] grad P(v), with grad P(v) = P(v) (e_v - P)
    order = np.argsort(rewards, kind="stable")
    push = np.empty(4)
    push[order] = found.expected_advantage[0]
    assert_allclose(chances * (push - chances @ push), gradient, atol=1e-15)
    assert 0.9 < found.alignment[0] < 1
    # With nothing to divide by it is c times the gradient of the mean reward, c = 2/3.
    plain = difficulty(found.prompts, G, "none")
    assert plain.alignment[0] == pytest.approx(1)
    assert plain.prompt_weight[0] == pytest.approx(2 / 3)


def test_two_answers_of_graded_rewards_are_only_compared():
    # A = sign(r1 - r2): expected advantage is P(other below) - P(other above).
    found = difficulty(GRADED, 2, eps=0.0)
    assert_allclose(found.expected_advantage[0], [-0.8, 0.2 - 0.3, 0.7], atol=1e-14)


def test_a_batch_of_one_prompt_is_its_group():
    for ddof in (0, 1):
        alone, group = (exact([0.3], 5, key, ddof=ddof) for key in ("batch", "group"))
        for name in ("expected_advantage", "mean_square", "expected_size"):
            assert_allclose(getattr(alone, name), getattr(group, name), rtol=1e-12)


# --- sampling beside it ------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("prompts", [prompts_from_rates([0.02, 0.3, 0.9, 0, 1]), GRADED])
@pytest.mark.parametrize("G", [2, 8])
def test_sampling_agrees_with_the_closed_form(scale, prompts, G):
    if not can_enumerate(prompts, G, scale):
        assert scale == "batch"
        assert prompts is GRADED
        return
    sampled = simulate_difficulty(prompts, G, scale, batches=3000, seed=5)
    closed = difficulty(prompts, G, scale)
    names = ("expected_advantage", "expected_size", "mean_square", "silent", "prompt_weight")
    for name in names:
        estimate, value = getattr(sampled, name), getattr(closed, name)
        assert estimate.mean.shape == value.shape
        assert estimate.agrees(value).all(), name
    assert not sampled.silent.agrees(closed.silent + 0.1).any()


def test_graded_rewards_over_the_std_of_the_batch_are_sampled_right():
    # Two prompts with two answers each: all 3**4 batches.
    prompts = prompts_from_table([0, 0.3, 1], GRADED.probabilities[:2])
    values, expected = prompts.values[0], np.zeros((2, 3))
    for batch in product(range(3), repeat=4):
        at = np.reshape(batch, (2, 2))
        chance = np.prod(np.take_along_axis(prompts.probabilities, at, axis=1))
        r = values[at]
        if r.min() < r.max():
            A = (r - r.mean(axis=1, keepdims=True)) / r.std(ddof=1)
            for p in range(2):
                expected[p, at[p, 0]] += chance * A[p, 0]
    expected /= prompts.probabilities
    sampled = simulate_difficulty(prompts, 2, "batch", ddof=1, eps=0.0)
    assert sampled.expected_advantage.agrees(expected).all()
    assert np.all(sampled.expected_advantage.error < 0.04)


def test_standard_errors_shrink_with_the_root_of_the_number_of_batches():
    few, many = (
        simulate_difficulty(GRADED, 4, batches=n, seed=1).prompt_weight.error for n in (500, 8000)
    )
    assert_allclose(few / many, 4, rtol=0.15)


def test_sampling_repeats_with_its_seed_whatever_the_block():
    prompts = prompts_from_rates([0.2, 0.6])
    one, again, other = (simulate_difficulty(prompts, 4, batches=50, seed=s) for s in (1, 1, 2))
    assert_array_equal(one.expected_advantage.mean, again.expected_advantage.mean)
    assert not np.array_equal(one.expected_advantage.mean, other.expected_advantage.mean)


def test_what_never_came_up_does_not_disagree():
    prompts = prompts_from_rates([1e-7])
    sampled = simulate_difficulty(prompts, 4, batches=100)
    assert sampled.prompt_weight.mean.tolist() == [0]
    assert sampled.prompt_weight.agrees(difficulty(prompts, 4).prompt_weight).all()


def test_an_estimate_is_refused_beyond_its_errors():
    estimate = Estimate(np.array([1.0]), np.array([0.01]), 10**6, np.array([1.0]))
    assert estimate.agrees(np.array([1.03])).all()
    assert not estimate.agrees(np.array([1.05])).any()


# --- scales ------------------------------------------------------------------------------

BATCH = np.array([[1, 0, 0, 1], [0.5, 0.5, 0.5, 0.5], [3, 1, NAN, 2]])


@pytest.mark.parametrize(("scale", "variant"), [("group", "mean_std"), ("none", "mean_only")])
def test_scales_of_a_group_are_the_rows_of_the_core(scale, variant):
    options = {"ddof": 1, "eps": 1e-4} if scale == "group" else {}
    conventions = Conventions.of(advantage=(variant, options))
    core = evaluate(build_scenario(rewards=BATCH, conventions=conventions)).advantages
    assert_array_equal(scaled_advantages(BATCH, scale, **options), core)


def test_the_std_of_the_batch_by_hand():
    # 1, 0, 0, 0 and 1, 1, 1, 0: mean 1/2, sample std sqrt(2/7) = 0.534522.
    found = scaled_advantages([[1, 0, 0, 0], [1, 1, 1, 0]], "batch", ddof=1, eps=0.0)
    assert_allclose(found[0], np.array([0.75, -0.25, -0.25, -0.25]) / 0.5345224838, rtol=1e-9)
    trl = scaled_advantages([[1, 0, 0, 0], [1, 1, 1, 0]], "batch", ddof=1, eps=1e-4)
    assert_allclose(trl[1], [0.4676, 0.4676, 0.4676, -1.4029], atol=5e-5)


def test_leaving_one_out_by_hand():
    # 3 against the mean of 1 and 2; the missing score has none.
    assert_allclose(scaled_advantages(BATCH, "leave_one_out")[2], [1.5, -1.5, 0, 0], atol=1e-15)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("reward", [0.1, 1e8 + 0.1, 1e200])
def test_a_tied_group_has_advantage_exactly_0_under_every_scale(scale, reward):
    rewards = np.array([[reward] * 3, [0.0, 1.0, 2.0]])
    assert scaled_advantages(rewards, scale)[0].tolist() == [0, 0, 0]
    assert scaled_advantages(rewards[:1], scale).tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("scale", SCALES)
def test_no_advantage_is_above_its_peak(scale):
    row, options = chosen_scale(scale, {})
    rewards = prompts_from_rates([0.05, 0.5]).values[0][np.eye(8, dtype=int)[None, :2]]
    advantages = row.function(rewards, **options)
    assert np.abs(advantages).max() <= row.peak(1.0, 2, 8)


# --- prompts -----------------------------------------------------------------------------


def test_compositions_and_their_chances_by_hand():
    assert compositions(2, 2).tolist() == [[0, 2], [1, 1], [2, 0]]
    assert len(compositions(4, 3)) == 15
    assert_allclose(
        multinomial(compositions(2, 2), np.array([[0.25, 0.75]])), [[9 / 16, 6 / 16, 1 / 16]]
    )
    assert multinomial(compositions(3, 2), np.array([[0.0, 1.0]])).tolist() == [[1, 0, 0, 0]]


def test_values_may_differ_between_prompts_and_be_left_open():
    prompts = prompts_from_table([[1, 0, NAN], [5, 7, 6]], [[2, 2, NAN], [1, 1, 2]])
    assert prompts.values.tolist() == [[0, 1, 1], [5, 6, 7]]
    assert_allclose(prompts.probabilities, [[0.5, 0.5, 0], [0.25, 0.5, 0.25]])
    assert_allclose(difficulty(prompts, 4, eps=0.0).prompt_weight[0], exact([0.5], 4).prompt_weight)


def test_equal_values_count_as_one():
    split = prompts_from_table([0, 1, 1], [[0.5, 0.2, 0.3]])
    found, whole = difficulty(split, 5), difficulty(prompts_from_rates([0.5]), 5)
    assert_allclose(found.silent, whole.silent)
    assert_allclose(found.prompt_weight, whole.prompt_weight)


def test_a_value_without_a_chance_is_never_drawn():
    prompts = prompts_from_table([0, 1, 2, 3], [[0, 0.1, 0.9, 0], [0.7, 0, 0.3, 0]])
    at = draw(prompts, 50, 100, np.random.default_rng(0))
    assert np.unique(at[:, 0]).tolist() == [1, 2]
    assert np.unique(at[:, 1]).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: prompts_from_rates([0.5, 1.2]), "rates at prompt 1 is 1.2; wanted a success rate"),
        (lambda: prompts_from_rates([-0.1]), "rates at prompt 0 is -0.1"),
        (lambda: prompts_from_rates([NAN]), "rates at prompt 0 is nan"),
        (lambda: prompts_from_rates([]), "rates has shape (0,)"),
        (lambda: prompts_from_rates("abc"), "rates is 'abc'; wanted rows of numbers"),
        (lambda: prompts_from_rates([None, "0.5"]), "rates is [None, '0.5']; wanted rows of"),
        (lambda: prompts_from_rates([10**400]), "rates is [1000000"),
        (lambda: prompts_from_rates([0.5j]), "rates is [0.5j]; wanted rows of numbers"),
        (lambda: prompts_from_table([0, 1], [[1, -1]]), "probabilities at prompt 0, value 1 is -1"),
        (lambda: prompts_from_table([0, 1], [[1, 1], [0, 0]]), "probabilities of prompt 1 are all"),
        (lambda: prompts_from_table([0, NAN], [[1, 1]]), "values at prompt 0, value 1 is nan"),
        (lambda: prompts_from_table([0, np.inf], [[1, 1]]), "values at prompt 0, value 1 is inf"),
        (lambda: prompts_from_table([0, 1, 2], [[1, 1]]), "values has shape (3,); expected (1, 2)"),
        (lambda: exact([0.5], 1), "G is 1; wanted a whole number of at least 2"),
        (lambda: exact([0.5], 2.5), "G is 2.5; wanted"),
        (lambda: exact([0.5], NAN), "G is nan; wanted"),
        (lambda: exact([0.5], 4, "median"), "scale: unknown variant 'median'"),
        (lambda: exact([0.5], 4, eps=-1.0), "scale.eps is -1.0"),
        (lambda: exact([0.5], 4, "none", eps=1.0), "scale.none has no option 'eps'"),
        (lambda: difficulty(GRADED, 4, "batch"), "the std of the batch has a closed form only"),
        (lambda: difficulty(GRADED, 1000), "groups of 1000 answers with 3 different rewards"),
        (lambda: simulate_difficulty(GRADED, 4, batches=1), "batches is 1; wanted"),
        (lambda: simulate_difficulty(GRADED, 4, seed=-1), "seed is -1; wanted"),
    ],
)
def test_bad_input_is_named(build, message):
    with pytest.raises(ScenarioError) as caught:
        build()
    assert str(caught.value).startswith(message)


def test_the_place_of_a_bad_rate_is_known():
    with pytest.raises(ScenarioError) as caught:
        prompts_from_rates([0.1, 0.2, 3.0])
    assert (caught.value.field, caught.value.where) == ("rates", (2,))


def test_a_batch_too_large_for_the_closed_form_can_still_be_simulated():
    prompts = prompts_from_rates(np.full(1000, 0.5))
    assert not can_enumerate(prompts, 64, "batch")
    assert can_enumerate(prompts, 64)
    assert simulate_difficulty(prompts, 64, "batch", batches=2).silent.mean.shape == (1000,)
