"""Task reward and terms: summed then normalised, normalised then summed, or added after."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import (
    STAGES,
    Choice,
    Conventions,
    ScenarioError,
    Term,
    build_scenario,
    evaluate,
    shaped_rewards,
)
from grpo_core.presets import PRESETS

NAN = np.nan
COMBINING = [key for key in STAGES["rewards"].variants if key != "outcome"]
NO_EPS = ("mean_std", {"eps": 0})
SAMPLE = {"ddof": 1, "eps": 1e-4}


def shaped(rewards, columns, weights, combine, advantage=NO_EPS, arrays=None, kl="k3", **options):
    """The evaluation of a task reward (P, G) with terms of given values, one column (P, G) each."""
    conventions = Conventions.of(rewards=(combine, options), advantage=advantage, kl=kl)
    return evaluate(
        build_scenario(
            rewards=rewards,
            term_values=np.stack([np.array(column, float) for column in columns], axis=-1),
            terms=[Term(f"term {k}", weight) for k, weight in enumerate(weights)],
            conventions=conventions,
            **(arrays or {}),
        )
    )


# One group of four: the task pays the outer two, the term every second.
TASK, BONUS = [[1.0, 0, 0, 1]], [[0.0, 1, 0, 1]]


def test_summed_then_normalised():
    # Sums 1, 0.5, 0, 1.5: mean 0.75, squares .0625 .0625 .5625 .5625, std sqrt(.3125) = .559017.
    computed = shaped(TASK, [BONUS], [0.5], "sum_then_normalize")
    assert_allclose(computed.scores, [[1, 0.5, 0, 1.5]])
    assert_allclose(computed.std, [np.sqrt(0.3125)])
    assert_allclose(computed.advantages, [[0.447214, -0.447214, -1.341641, 1.341641]], atol=1e-6)
    # Parts: +-0.5 and 0.5 * +-0.5, over the one std.
    task, bonus = computed.attribution.parts
    assert_allclose(task, [[0.894427, -0.894427, -0.894427, 0.894427]], atol=1e-6)
    assert_allclose(bonus, [[-0.447214, 0.447214, -0.447214, 0.447214]], atol=1e-6)


def test_each_normalised_then_summed():
    # Either component has deviations of +-0.5 and std 0.5: +-1, and the bonus counts half.
    computed = shaped(TASK, [BONUS], [0.5], "normalize_then_sum")
    assert_allclose(computed.advantages, [[0.5, -0.5, -1.5, 1.5]])
    assert_allclose(computed.attribution.parts[0], [[1, -1, -1, 1]])
    assert_allclose(computed.attribution.parts[1], [[-0.5, 0.5, -0.5, 0.5]])
    assert_allclose(computed.scores, [[1, 0.5, 0, 1.5]])


def test_added_after_normalising():
    # The task alone gives +-1; the bonus adds 0.5 where it is, and has no mean taken off.
    computed = shaped(TASK, [BONUS], [0.5], "add_after")
    assert_allclose(computed.advantages, [[1, -0.5, -1, 1.5]])
    assert_allclose(computed.attribution.parts[1], [[0, 0.5, 0, 0.5]])


@pytest.mark.parametrize(
    ("combine", "expected"),
    [
        ("sum_then_normalize", [[0.25, -0.25, -0.75, 0.75]]),  # sums less 0.75
        ("normalize_then_sum", [[0.25, -0.25, -0.75, 0.75]]),  # +-0.5 and 0.5 * +-0.5
        ("add_after", [[0.5, 0, -0.5, 1]]),  # +-0.5, plus 0.5 where the bonus is
    ],
)
def test_without_the_std_there_is_no_difference_between_before_and_each(combine, expected):
    computed = shaped(TASK, [BONUS], [0.5], combine, "mean_only")
    assert_allclose(computed.advantages, expected)


@pytest.mark.parametrize(
    ("combine", "expected"),
    [
        # 2 r + f / 2: 2, 0.5, 0, 2.5; mean 1.25, squares .5625 .5625 1.5625 1.5625 over 4, std
        # 1.030776.
        ("sum_then_normalize", [[0.727607, -0.727607, -1.212678, 1.212678]]),
        ("normalize_then_sum", [[1.5, -1.5, -2.5, 2.5]]),  # 2 * +-1 + 0.5 * +-1
        ("add_after", [[1, -0.5, -1, 1.5]]),  # a weight of the task alone is divided out again
    ],
)
def test_the_task_has_a_weight_too(combine, expected):
    computed = shaped(TASK, [BONUS], [0.5], combine, task_weight=2)
    assert_allclose(computed.advantages, expected, atol=1e-6)


@pytest.mark.parametrize(("size", "bonuses"), [(8, 4), (8, 1), (4, 3), (16, 5)])
@pytest.mark.parametrize("weight", [1e-6, 1e-2, 10])
@pytest.mark.parametrize("ddof", [0, 1])
def test_in_a_tied_group_a_bonus_of_any_weight_pushes_at_full_strength(size, bonuses, weight, ddof):
    column = [[1.0] * bonuses + [0.0] * (size - bonuses)]
    advantage = ("mean_std", {"ddof": ddof, "eps": 0})
    computed = shaped([[1.0] * size], [column], [weight], "sum_then_normalize", advantage)
    shrunk = np.sqrt((size - 1) / size) if ddof else 1.0
    up = shrunk * np.sqrt((size - bonuses) / bonuses)
    down = -shrunk * np.sqrt(bonuses / (size - bonuses))
    expected = [[up] * bonuses + [down] * (size - bonuses)]
    # 1 + 1e-6 has lost ten digits of the bonus already.
    assert_allclose(computed.advantages, expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("weight", "expected"), [(1e-2, 0.918), (1e-3, 0.788), (1e-4, 0.326), (1e-6, 0.005)]
)
def test_eps_takes_over_once_the_weight_is_no_larger(weight, expected):
    # 4 of 8, sample std w sqrt(2/7) = 0.5345 w: 0.5 w / (0.5345 w + 1e-4).
    column = [[1.0] * 4 + [0.0] * 4]
    computed = shaped(
        [[1.0] * 8], [column], [weight], "sum_then_normalize", ("mean_std", SAMPLE)
    ).advantages
    assert_allclose(computed[0, :4], expected, atol=5e-4)


def test_in_a_tied_group_the_weight_survives_where_each_is_normalised():
    for weight in (0.01, 0.5):
        computed = shaped([[1.0] * 4], [BONUS], [weight], "normalize_then_sum")
        assert_allclose(computed.advantages, weight * np.array([[-1, 1, -1, 1]]))


def test_a_bonus_that_all_get_does_nothing_before_and_shifts_after():
    same = [[0.1, 0.1, 0.1, 0.1]]
    plain = evaluate(build_scenario(rewards=TASK, conventions=Conventions.of(advantage=NO_EPS)))
    for combine in ("sum_then_normalize", "normalize_then_sum"):
        computed = shaped(TASK, [same], [3.0], combine)
        assert_allclose(computed.advantages, plain.advantages, rtol=1e-14)
    shifted = shaped(TASK, [same], [3.0], "add_after")
    assert_allclose(shifted.advantages, plain.advantages + 0.3)


def test_outcome_ignores_the_terms():
    computed = shaped(TASK, [BONUS], [0.5], "outcome")
    assert_allclose(computed.advantages, [[1, -1, -1, 1]])
    assert computed.attribution is None


def test_two_terms_and_no_term():
    # 1 + 0.5 - 0 | 0.5 - 2 ... : 1, 0.5 - 2, 0, 1.5 with a second term on completion 1 alone.
    second = [[0.0, -2, 0, 0]]
    both = shaped(TASK, [BONUS, second], [0.5, 1.0], "sum_then_normalize", "mean_only")
    assert_allclose(both.scores, [[1, -1.5, 0, 1.5]])
    assert_allclose(both.advantages, np.array([[1, -1.5, 0, 1.5]]) - 0.25)
    for combine in COMBINING:
        scenario = build_scenario(
            rewards=TASK, conventions=Conventions.of(rewards=combine, advantage=NO_EPS)
        )
        alone = evaluate(scenario)
        assert_allclose(alone.advantages, [[1, -1, -1, 1]])
        assert alone.attribution.names == ("task",)


# GDPO's example: the task pays the second of each pair, the bonus the second of the second pair.
PAIRS, SECOND = [[0.0, 1], [0, 1]], [[0.0, 0], [0, 1]]


def test_sums_of_two_groups_collapse_to_the_same_advantages():
    # Sums 0, 1 and 0, 2: in a group of two only the order counts.
    computed = shaped(PAIRS, [SECOND], [1.0], "sum_then_normalize", ("mean_std", SAMPLE))
    assert_allclose(computed.advantages, [[-0.7070, 0.7070], [-0.7071, 0.7071]], atol=5e-5)


def test_scale_of_the_batch_over_completions():
    # +-.7071 and, both components together, +-1.4142: mean 0, squares .5 .5 2 2 over 3, std
    # 1.29099; divided: .5477 and 1.0954.
    computed = shaped(
        PAIRS,
        [SECOND],
        [1.0],
        "normalize_then_sum",
        ("mean_std", SAMPLE),
        batch_scale="completion",
    )
    assert_allclose(computed.advantages, [[-0.5477, 0.5477], [-1.0954, 1.0954]], atol=2e-4)
    assert_allclose(computed.attribution.parts.sum(axis=0), computed.advantages, atol=1e-14)


def test_scale_of_the_batch_over_tokens():
    # Lengths 1, 3, 2, 2. Mean (-.7071 + 3 * .7071 + 0) / 8 = .17678. Deviations -.88388, .53033,
    # -1.59099, 1.23744; squares times lengths .78125 .84375 5.0625 3.0625 over 7: std 1.18020.
    mask = np.arange(3) < np.array([[1, 3], [2, 2]])[..., None]
    computed = shaped(
        PAIRS,
        [SECOND],
        [1.0],
        "normalize_then_sum",
        ("mean_std", {"ddof": 1, "eps": 0}),
        {"mask": mask},
        batch_scale="token",
    )
    assert_allclose(computed.advantages, [[-0.7489, 0.4494], [-1.3481, 1.0485]], atol=1e-4)


@pytest.mark.parametrize("batch_scale", ["completion", "token"])
def test_eps_of_the_batch_is_added_to_the_std_or_to_the_variance(batch_scale):
    # +-1: over two completions or over 2 x 1 tokens the sample variance is 2.
    computed = shaped(
        [[1.0, 0]], [[[0.0, 0]]], [1.0], "normalize_then_sum", batch_scale=batch_scale, batch_eps=1
    )
    size = 1 / (np.sqrt(2) + 1) if batch_scale == "completion" else 1 / np.sqrt(2 + 1)
    assert_allclose(computed.advantages, [[size, -size]])


@pytest.mark.parametrize("batch_scale", ["completion", "token"])
@pytest.mark.parametrize("rewards", [[[0.1] * 3, [7.0] * 3], [[3.0]], [[NAN, 2.0]]])
def test_a_batch_of_equal_advantages_gives_0(batch_scale, rewards):
    blank = np.full(np.shape(rewards), NAN)
    options = {"batch_scale": batch_scale, "batch_eps": 0}
    computed = shaped(rewards, [blank], [1.0], "normalize_then_sum", **options)
    assert not computed.advantages.any()
    assert not computed.attribution.parts.any()


@pytest.mark.parametrize("batch_scale", ["completion", "token"])
@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_scale_of_the_batch_does_not_depend_on_the_size_of_the_rewards(batch_scale, unit):
    # Without eps the unit cancels, also where the square of the spread has no double.
    options = {"batch_scale": batch_scale, "batch_eps": 0}
    computed = shaped(
        [[unit, 0.0]], [[[0.0, 0.0]]], [1.0], "normalize_then_sum", "mean_only", **options
    )
    assert_allclose(computed.advantages, [[0.5**0.5, -(0.5**0.5)]], rtol=1e-12)


# Returns to go: rewards 1, 0, 2 and 0, 1, 0 for the tokens of two completions, task tied.
TOKENS = [[[1.0, 0, 2], [0, 1, 0]]]


def per_token(combine, weight, tokens="to_go", advantage=NO_EPS, arrays=None, rewards=None):
    return evaluate(
        build_scenario(
            rewards=rewards or [[0.0, 0]],
            token_rewards=TOKENS,
            terms=[Term("tokens", weight, Choice("per_token"))],
            conventions=Conventions.of(rewards=(combine, {"tokens": tokens}), advantage=advantage),
            **(arrays or {}),
        )
    )


@pytest.mark.parametrize(
    ("combine", "advantage", "weight", "expected"),
    [
        # Sums 3 and 1, mean 2, std 1. What was earned before a token, 0 1 1 and 0 0 1, is off.
        ("sum_then_normalize", "mean_only", 1, [[1, 0, 0], [-1, -1, -2]]),
        ("sum_then_normalize", "mean_only", 2, [[2, 0, 0], [-2, -2, -4]]),
        # Over std the weight cancels: sums 6 and 2, std 2.
        ("sum_then_normalize", NO_EPS, 2, [[1, 0, 0], [-1, -1, -2]]),
        ("normalize_then_sum", NO_EPS, 2, [[2, 0, 0], [-2, -2, -4]]),
        ("add_after", NO_EPS, 0.5, [[1.5, 1, 1], [0.5, 0.5, 0]]),
    ],
)
def test_returns_to_go_take_off_what_was_earned_before(combine, advantage, weight, expected):
    computed = per_token(combine, weight, advantage=advantage)
    assert_allclose(computed.token_advantages, [expected])
    assert_allclose(computed.advantages, [[row[0] for row in expected]])
    summed = per_token(combine, weight, "sum", advantage)
    assert_allclose(summed.token_advantages, [[[row[0]] * 3 for row in expected]])
    assert_array_equal(summed.advantages, computed.advantages)
    assert_array_equal(summed.attribution.parts, computed.attribution.parts)


def test_returns_to_go_count_from_the_first_token_that_counts():
    mask = [[[0, 1, 1], [1, 0, 1]]]
    # Completion 0 has 0, 2 and completion 1 has 0, 0: sums 2 and 0, mean 1.
    computed = per_token(
        "sum_then_normalize", 1, advantage="mean_only", arrays={"mask": mask}
    ).token_advantages
    assert_allclose(computed, [[[0, 1, 1], [-1, 0, -1]]])


def test_the_scale_of_the_batch_holds_for_returns_to_go_as_well():
    # +-1 over the batch's sample std sqrt(2); what was earned counts 1 / std of the group = 1.
    options = {"tokens": "to_go", "batch_scale": "completion", "batch_eps": 0}
    scenario = build_scenario(
        rewards=[[0.0, 0]],
        token_rewards=TOKENS,
        terms=[Term("tokens", 1.0, Choice("per_token"))],
        conventions=Conventions.of(rewards=("normalize_then_sum", options), advantage=NO_EPS),
    )
    expected = np.array([[[1, 0, 0], [-1, -1, -2]]]) / np.sqrt(2)
    assert_allclose(evaluate(scenario).token_advantages, expected)


def test_equal_sums_give_0_at_every_token_where_the_std_divides():
    arrays = {"token_rewards": [[[1.0, 0, 2], [0, 3, 0]]]}
    scenario = per_token("sum_then_normalize", 1).scenario.replace(**arrays)
    assert not evaluate(scenario).token_advantages.any()
    # Without the std there is no division, and what comes after a token still counts.
    plain = evaluate(scenario.choose("advantage", "mean_only"))
    assert_allclose(plain.token_advantages, [[[0, -1, -1], [0, 0, -3]]])


@pytest.mark.parametrize(
    ("combine", "task_weight", "advantage", "expected"),
    [
        # Penalty 0.5 for completion 0 alone. 1 - 0.5 + 0 and 1 - 0 + 0.5.
        ("sum_then_normalize", 1, "mean_only", [[-0.5, 0.5]]),
        ("sum_then_normalize", 2, "mean_only", [[-0.5, 0.5]]),  # the penalty has no weight
        ("normalize_then_sum", 2, "mean_only", [[-0.75, 0.75]]),  # 2 * +-0.25 and 0.5 * +-0.5
        ("normalize_then_sum", 2, NO_EPS, [[-2.5, 2.5]]),  # 2 * +-1 and 0.5 * +-1
        ("add_after", 2, "mean_only", [[-0.25, 0.75]]),  # 2 - 0.5 and 2; then 0.5 for the second
    ],
)
def test_the_kl_in_the_reward_belongs_to_the_task(combine, task_weight, advantage, expected):
    arrays = {"logp_old": [[[-1.0], [-1.0]]], "logp_ref": [[[-2.0], [-1.0]]]}
    computed = shaped(
        [[1.0, 1.0]],
        [[[0.0, 1.0]]],
        [0.5],
        combine,
        advantage,
        arrays,
        ("k1", {"beta": 0.5, "place": "reward"}),
        task_weight=task_weight,
    )
    assert_allclose(computed.advantages, expected)


# Penalty 0.5 for completion 0, of which the term alone is known: 1 with weight 0.5.
ONLY_TERM = [[NAN, 1.0]], [[[1.0, 0.0]]], [0.5]
MOVED = {"logp_old": [[[-1.0], [-1.0]]], "logp_ref": [[[-2.0], [-1.0]]]}
IN_REWARD = ("k1", {"beta": 0.5, "place": "reward"})


@pytest.mark.parametrize("combine", COMBINING)
@pytest.mark.parametrize("missing", ["leave_out", "as_zero"])
def test_every_score_loses_its_kl_whichever_part_of_it_is_known(combine, missing):
    computed = shaped(*ONLY_TERM, combine, "mean_only", MOVED, IN_REWARD, missing=missing)
    assert_allclose(computed.scores, [[0.5 - 0.5, 1]])


@pytest.mark.parametrize("missing", ["leave_out", "as_zero"])
def test_what_is_judged_as_one_is_judged_less_its_kl(missing):
    given = *ONLY_TERM, "sum_then_normalize", "mean_only", MOVED, IN_REWARD
    computed = shaped(*given, missing=missing)
    # Scores 0 and 1; of the task -0.5 and 1, of the term 0.5 and 0, each less its mean.
    assert_allclose(computed.advantages, [[-0.5, 0.5]])
    assert_allclose(computed.attribution.parts, [[[-0.75, 0.75]], [[0.25, -0.25]]])


@pytest.mark.parametrize("combine", ["normalize_then_sum", "add_after"])
@pytest.mark.parametrize(("missing", "counts"), [("leave_out", False), ("as_zero", True)])
def test_a_task_that_is_judged_apart_and_missing_has_no_kl_in_it(combine, missing, counts):
    computed = shaped(*ONLY_TERM, combine, "mean_only", MOVED, IN_REWARD, missing=missing)
    without = shaped(*ONLY_TERM, combine, "mean_only", {}, "k3", missing=missing)
    assert np.array_equal(computed.advantages, without.advantages) is not counts


def test_rloo_takes_the_kl_off_the_sum_of_what_is_known():
    # Format 1 and task 1, each less 0.05 (-1 + 3) = 0.1: 0.9 and 0.9, and nothing to tell apart.
    arrays = {"logp_old": [[[-1.0], [-1.0]]], "logp_ref": [[[-3.0], [-3.0]]]}
    scenario = build_scenario(
        rewards=[[NAN, 1.0]],
        term_values=[[[1.0], [0.0]]],
        terms=(Term("format"),),
        conventions=PRESETS["trl-rloo-1.16"].conventions,
        **arrays,
    )
    computed = evaluate(scenario)
    assert_allclose(computed.scores, [[0.9, 0.9]])
    assert computed.tied.all()
    assert not computed.advantages.any()


@pytest.mark.parametrize("combine", COMBINING)
def test_given_advantages_know_no_components(combine):
    arrays = {"advantages": [[3.0, -1, 0, 0]]}
    computed = shaped(TASK, [BONUS], [0.5], combine, "given", arrays)
    assert_allclose(computed.advantages, arrays["advantages"])
    assert computed.attribution is None


def test_the_outcome_beside_step_rewards_is_a_combined_one():
    # Steps 1 and 0 of the first two completions: +-1. The outcome: 0.5 * (0.5, -0.5, -1.5, 1.5).
    arrays = {
        "step_ends": [[[0], [0], [NAN], [NAN]]],
        "step_rewards": [[[1], [0], [NAN], [NAN]]],
    }
    advantage = ("process", {"eps": 0, "outcome_weight": 0.5})
    computed = shaped(TASK, [BONUS], [0.5], "normalize_then_sum", advantage, arrays)
    assert_allclose(computed.advantages, [[1.25, -1.25, -0.75, 0.75]])
    assert_allclose(computed.step_advantages[..., 0], [[1, -1, 0, 0]])


@pytest.mark.parametrize("combine", COMBINING)
@pytest.mark.parametrize("missing", ["leave_out", "as_zero"])
def test_shaped_rewards_are_what_a_scenario_computes(combine, missing):
    rewards = [[1.0, NAN, 0.5, NAN], [0.0, 1, 1, 0]]
    column = [[NAN, 0.3, 1.0, NAN], [2.0, 0, NAN, -1]]
    scenario = shaped(rewards, [column], [0.7], combine, missing=missing, task_weight=1.5)
    alone = shaped_rewards(
        rewards, [column], [0.7], combine=combine, missing=missing, task_weight=1.5, eps=0
    )
    assert_array_equal(alone.rewards, scenario.scores)
    assert_array_equal(alone.advantages, scenario.advantages)
    assert_array_equal(alone.parts, scenario.attribution.parts)
    assert_array_equal(alone.shares, scenario.attribution.shares)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 1.0], "there are 2 weights for 1 terms; wanted one for each"),
        ([], "there are 0 weights for 1 terms; wanted one for each"),
        (["0.5"], "weights is ['0.5']; wanted rows of numbers"),
        ([None], "weights at entry 0 is nan; wanted a number of at least -1,000,000"),
        ([np.inf], "weights at entry 0 is inf; wanted a number of at least -1,000,000"),
        (0.5, "weights has shape (); wanted numbers for entries"),
        ([[0.5], [1, 2]], "weights is [[0.5], [1, 2]]; wanted rows of numbers"),
    ],
)
def test_weights_that_are_none_are_refused_by_name(weights, message):
    with pytest.raises(ScenarioError) as caught:
        shaped_rewards(TASK, [BONUS], weights)
    assert str(caught.value).startswith(message)
