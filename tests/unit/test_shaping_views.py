"""What the shaping page shows: a term to start from, curves over a weight, two small worlds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from grpo_core import Choice, ScenarioError, Term, build_scenario, evaluate
from grpo_core.shaping_curves import tied_group
from grpo_core.shaping_parts import COMBINE
from grpo_core.shaping_views import (
    logged,
    ordered_inputs,
    shaping_inputs,
    tied_bonus,
    weight_curves,
    with_shaping,
)
from grpo_core.shaping_weights import safe_weight
from grpo_core.shaping_world_views import bandit_view, potential_view, world_size

NAN = np.nan
SAMPLE = {"ddof": 1, "eps": 1e-4}
every_way = pytest.mark.parametrize("combine", COMBINE)


def shaped(
    task, values, weights, combine="sum_then_normalize", *, missing="leave_out", **advantage
):
    """One group with given terms; ``values`` holds a list for each term."""
    names = [Term(f"term {k}", weight) for k, weight in enumerate(weights)]
    scenario = build_scenario(rewards=[task]).with_terms(
        names, np.moveaxis(np.array([values], dtype=float), 1, 2)
    )
    scenario = scenario.choose("rewards", combine, missing=missing)
    return evaluate(scenario.choose("advantage", **advantage))


def tied(weight, k=4, size=8, **advantage):
    bonus = [1.0] * k + [0.0] * (size - k)
    return shaped([1.0] * size, [bonus], [weight], **advantage)


class TestVirtualTerm:
    def test_every_second_answer_gets_a_bonus_where_there_are_no_terms(self):
        given = build_scenario(rewards=[[1, 0, 0, 1]])
        scenario = with_shaping(given)
        assert [term.name for term in scenario.terms] == ["bonus"]
        assert_array_equal(scenario["term_values"][0, :, 0], [1, 0, 1, 0])
        assert scenario.conventions["rewards"].variant == "sum_then_normalize"

    def test_what_is_combined_already_stays_the_same_object(self):
        scenario = with_shaping(build_scenario(rewards=[[1, 0]]))
        assert with_shaping(scenario) is scenario

    def test_the_choices_that_are_kept(self):
        given = build_scenario(rewards=[[1, NAN]], advantages=[[3, -3]])
        given = given.choose("rewards", "outcome", missing="as_zero")
        scenario = with_shaping(given.choose("advantage", "given"))
        assert scenario.conventions["rewards"].options["missing"] == "as_zero"
        assert scenario.conventions["advantage"].variant == "mean_std"
        stepped = build_scenario(
            rewards=[[1, 0]], step_ends=[[[0], [0]]], step_rewards=[[[1], [0]]]
        ).choose("advantage", "process", ddof=1, eps=0.5)
        options = with_shaping(stepped).conventions["advantage"].options
        assert (options["ddof"], options["eps"]) == (1, 0.5)

    def test_float32_stays_float32(self):
        given = build_scenario(rewards=np.float32([[1, 0]]))
        assert evaluate(with_shaping(given)).advantages.dtype == np.float32


class TestCurves:
    @every_way
    @pytest.mark.parametrize("advantage", [SAMPLE, {"variant": "mean_only"}], ids=["std", "none"])
    def test_they_pass_through_the_advantages_at_the_present_weight(self, combine, advantage):
        # The present weight is one of those that are drawn; another term is held.
        task, values = [1, 0, 0.5, 0], [[1, 0, NAN, 1], [-3, 0, 2, 1]]
        evaluation = shaped(task, values, [0.0123, 0.25], combine, **advantage)
        curves = weight_curves(evaluation, 0, 0)
        (at,) = np.flatnonzero(curves.weights == 0.0123)
        assert_allclose(curves.mixed[combine][at], evaluation.advantages[0], rtol=1e-9)

    def test_a_negative_weight_keeps_its_sign(self):
        evaluation = shaped([1, 0, 0], [[0, 1, 0]], [-0.1], **SAMPLE)
        curves = weight_curves(evaluation, 0, 0)
        (at,) = np.flatnonzero(np.isclose(curves.weights, 0.1))
        assert curves.sign == -1
        assert_allclose(curves.mixed["sum_then_normalize"][at], evaluation.advantages[0])

    def test_a_missing_value_counts_as_asked(self):
        for missing in ("leave_out", "as_zero"):
            evaluation = shaped(
                [1, 0, NAN], [[1, NAN, NAN]], [0.1], "normalize_then_sum", missing=missing
            )
            curves = weight_curves(evaluation, 0, 0)
            (at,) = np.flatnonzero(np.isclose(curves.weights, 0.1))
            drawn = curves.mixed["normalize_then_sum"][at]
            assert_allclose(drawn, evaluation.advantages[0], rtol=1e-9)

    def test_the_tied_group_is_the_closed_form(self):
        curves = weight_curves(shaped([1, 0, 0, 0], [[0, 1, 1, 0]], [0.1], **SAMPLE), 0, 0)
        closed = tied_group(4, 2, curves.weights, **SAMPLE)
        drawn = curves.tied["sum_then_normalize"]
        assert_allclose(drawn[:, 1], closed.having, rtol=1e-9)
        assert_allclose(drawn[:, 0], closed.lacking, rtol=1e-9)
        assert_allclose(curves.takeover, closed.takeover)

    def test_the_worst_of_those_that_gain_and_the_best_of_those_that_do_not_are_followed(self):
        curves = weight_curves(shaped([1, 1, 0, 0.5], [[0, 1, 1, 0]], [0.1]), 0, 0)
        assert (curves.high, curves.low) == (2, 0)

    def test_the_two_cross_at_the_largest_safe_weight(self):
        evaluation = shaped([1, 1, 0.4, 0.4], [[0, 1, 1, 0]], [0.1], **SAMPLE)
        inputs, curves = shaping_inputs(evaluation), weight_curves(evaluation, 0, 0)
        largest = safe_weight(*inputs.given, 0, **inputs.options).batch_largest
        drawn = curves.mixed["sum_then_normalize"]
        ahead = drawn[:, curves.high] > drawn[:, curves.low]
        assert largest == pytest.approx(0.6)
        assert_array_equal(ahead, curves.weights > largest)

    def test_a_term_that_all_gain_alike_by_has_one_completion_to_follow(self):
        evaluation = shaped([1, 0], [[2, 2]], [0.1])
        curves = weight_curves(evaluation, 0, 0)
        assert curves.high == curves.low
        assert curves.takeover is None
        assert tied_bonus(evaluation, 0, 0) is None

    @pytest.mark.parametrize(
        ("weight", "reach"), [(1e-12, (-12, 0)), (0.0, (-8, 0)), (300.0, (-8, 3))]
    )
    def test_the_present_weight_is_on_the_axis(self, weight, reach):
        curves = weight_curves(shaped([1, 0], [[1, 0]], [weight]), 0, 0)
        assert_allclose(np.log10(curves.weights[[0, -1]]), reach)

    def test_what_cannot_be_added_up_is_refused(self):
        with pytest.raises(ScenarioError, match="too large"):
            weight_curves(shaped([1e308, -1e308], [[1, 0]], [0.1]), 0, 0)


class TestTiedBonus:
    @pytest.mark.parametrize(
        ("weight", "advantage"), [(1e-2, 0.918), (1e-3, 0.788), (1e-4, 0.326), (1e-6, 0.005)]
    )
    def test_four_of_eight_with_the_sample_formula(self, weight, advantage):
        # s = sqrt(8/4 / 7) = 0.5345; 0.5 w / (0.5345 w + 1e-4) at w = 0.01: 0.918
        bonus = tied_bonus(tied(weight, **SAMPLE), 0, 0)
        assert (bonus.high, bonus.low) == pytest.approx((advantage, -advantage), abs=5e-4)
        assert (bonus.size, bonus.having, bonus.binary) == (8, 4, True)
        assert bonus.limits == pytest.approx((np.sqrt(7 / 8), -np.sqrt(7 / 8)))

    @pytest.mark.parametrize("k", [1, 3, 7])
    def test_the_limits_are_the_closed_form(self, k):
        bonus = tied_bonus(tied(0.5, k), 0, 0)
        assert bonus.limits == pytest.approx((np.sqrt((8 - k) / k), -np.sqrt(k / (8 - k))))

    def test_the_weight_counts_in_full_where_nothing_divides_by_the_terms_spread(self):
        added = tied_bonus(tied(0.01, combine="add_after", **SAMPLE), 0, 0)
        assert (added.high, added.low, added.limits) == (0.01, 0, None)
        assert added.summed == pytest.approx(0.918, abs=5e-4)
        plain = tied_bonus(tied(0.01, variant="mean_only"), 0, 0)
        assert (plain.high, plain.low, plain.limits) == (0.005, -0.005, None)

    def test_of_more_than_two_values_the_ends_count(self):
        bonus = tied_bonus(shaped([0, 0, 0], [[2, 1, 0]], [1], eps=0), 0, 0)
        assert not bonus.binary
        assert (bonus.high, bonus.low) == pytest.approx((np.sqrt(1.5), -np.sqrt(1.5)))


class TestInputs:
    def test_a_weighted_task_is_weighted_before_it_is_judged(self):
        # A(2 r) = A(r): the weight of the task is gone where the term is added after.
        scenario = evaluate_with_task_weight(2.0, "add_after")
        inputs = shaping_inputs(scenario)
        assert inputs.options["task_weight"] == 1
        assert_array_equal(inputs.task, [[2, 0, 0]])

    def test_each_on_its_own_keeps_the_weight_for_the_sum(self):
        inputs = shaping_inputs(evaluate_with_task_weight(2.0, "normalize_then_sum"))
        assert inputs.options["task_weight"] == 2
        assert_array_equal(inputs.task, [[1, 0, 0]])


class TestOrderAndLog:
    def test_a_kl_in_the_reward_makes_no_answer_better(self):
        # Right, right, wrong with the bonus; the penalty costs the second 0.25, the others 0.
        scenario = build_scenario(
            rewards=[[1, 1, 0]],
            logp_new=[[[-1], [-1], [-1]]], logp_ref=[[[-1], [-1.5], [-1]]],
        ).with_terms((Term("bonus", 0.1),), [[[0], [0], [1]]])  # fmt: skip
        scenario = scenario.choose("rewards", "sum_then_normalize")
        evaluation = evaluate(scenario.choose("kl", "k1", beta=0.5, place="reward"))
        inputs = ordered_inputs(evaluation)
        assert_array_equal(inputs.task, [[1, 1, 0]])
        assert_allclose(inputs.terms[-1], [[0, -0.25, 0]], atol=1e-12)
        safe = safe_weight(*inputs.given, 0, **inputs.options)
        assert safe.batch_largest == pytest.approx(0.75)  # 1 - 0.25 against the bonus
        assert safe.where == (0, 1, 2)

    @every_way
    def test_without_a_penalty_there_is_no_further_term(self, combine):
        evaluation = shaped([1, NAN, 0], [[1, 0, NAN]], [0.1], combine, missing="as_zero")
        inputs = ordered_inputs(evaluation)
        assert inputs.terms.shape == (1, 1, 3)
        assert_array_equal(inputs.task, [[1, 0, 0]])

    @every_way
    def test_a_weight_of_the_task_changes_no_mean(self, combine):
        evaluation = evaluate_with_task_weight(-2.0, combine)
        assert logged(evaluation).task_mean == pytest.approx(1 / 3)
        assert logged(evaluation).correlation == pytest.approx(
            logged(evaluate_with_task_weight(1.0, combine)).correlation
        )

    @every_way
    def test_shares_are_those_of_the_attribution(self, combine):
        evaluation = shaped([1, 0, 0.5, 0], [[1, 0, 2, 1]], [0.3], combine, **SAMPLE)
        assert_allclose(logged(evaluation).shares, evaluation.attribution.shares, rtol=1e-9)


def evaluate_with_task_weight(weight, combine):
    start = with_shaping(build_scenario(rewards=[[1, 0, 0]]))
    return evaluate(start.choose("rewards", combine, task_weight=weight))


class TestWorlds:
    def test_the_update_turns_before_the_optimum(self):
        # Rates .3 and .1, groups of 8, sample formula: .0729 against .2 (by enumeration).
        scenario = build_scenario(rewards=[[0] * 8], arm_rates=[0.3, 0.1])
        view = bandit_view(scenario, 0.1, {"scale": "std", "ddof": 1, "eps": 1e-12})
        assert view.optimum_flip == pytest.approx(0.2)
        assert view.update_flip == pytest.approx(0.0729, abs=5e-5)
        assert view.reward_gap_now > 0 > view.update_now
        assert view.path[-1] < 0.05

    def test_without_the_standard_deviation_both_turn_together(self):
        view = bandit_view(build_scenario(rewards=[[0] * 4]), 0.1, {"scale": "none"})
        assert view.update_flip == pytest.approx(view.optimum_flip)

    @pytest.mark.parametrize(
        ("given", "size"), [({}, 3), ({"group_size": 2}, 2), ({"group_size": 64}, 8)]
    )
    def test_groups_are_as_large_as_can_be_summed_over(self, given, size):
        assert world_size(build_scenario(rewards=[[1, 0, 0]], **given)) == size

    def test_a_potential_is_harmless_for_sums_and_not_for_pooled_steps(self):
        # By enumeration, groups of 2: .036 whatever the potential; -.136 without, +.017 with it.
        scenario = build_scenario(rewards=[[0, 0]], potential=[0, 0.5, 0])
        view = potential_view(scenario, {"ddof": 1, "eps": 0.0})
        assert view.true == pytest.approx(0.036)
        assert view.now["leave_one_out"][0] == pytest.approx(0.036)
        population = potential_view(scenario, {"ddof": 0, "eps": 0.0})
        assert population.plain["steps_std"][0] == pytest.approx(-0.136, abs=5e-4)
        assert population.now["steps_std"][0] == pytest.approx(0.017, abs=5e-4)
        assert {"leave_one_out", "to_go", "to_go_mean", "steps_mean"} <= set(view.kept)
        assert "steps_std" in view.moved

    def test_a_std_makes_a_prompt_of_close_rewards_heavier(self):
        view = potential_view(build_scenario(rewards=[[0] * 4]), {"ddof": 0, "eps": 0.0})
        assert view.close["outcome_std"] / view.wide["outcome_std"] == pytest.approx(10)
        assert view.close["to_go_mean"] == pytest.approx(view.wide["to_go_mean"])


def test_a_computed_term_is_varied_like_a_given_one():
    mask = [[[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]]
    scenario = build_scenario(rewards=[[1, 1, 1]], mask=mask).with_terms(
        (Term("length", 0.1, Choice("length_linear", {"per": 10.0})),)
    )
    evaluation = evaluate(with_shaping(scenario))
    curves = weight_curves(evaluation, 0, 0)
    assert (curves.high, curves.low) == (2, 0)  # the shortest loses least
