"""The sentences of the shaping page: every number computed, the conclusion that of the numbers."""

import numpy as np
import pytest

from grpo_core import Term, build_scenario, evaluate
from grpo_core.shaping_potential import CREDITS
from grpo_core.shaping_views import logged, shaping_inputs, tied_bonus, weight_curves
from grpo_core.shaping_weights import safe_weight, share_weight
from grpo_core.shaping_world_views import bandit_view, potential_view
from pages._ui.examples import load_examples
from pages._ui.numbers import number
from pages._ui.shaping_tables import batch_frame, log_frame, prompt_weight_frame
from pages._ui.shaping_words import (
    driver_line,
    mixed_line,
    no_small_line,
    safe_line,
    share_line,
    tied_line,
)
from pages._ui.shaping_world_words import (
    bandit_line,
    log_line,
    potential_line,
    prompt_weight_line,
    size_line,
)

EXAMPLES = load_examples()
NAN = np.nan


def batch(task, bonus, weight, combine="sum_then_normalize", *, name="bonus", **advantage):
    """Groups with one given term; a list for each prompt."""
    scenario = build_scenario(rewards=task)
    scenario = scenario.with_terms((Term(name, weight),), np.array(bonus, float)[..., None])
    scenario = scenario.choose("rewards", combine)
    return evaluate(scenario.choose("advantage", **{"eps": 1e-4, "ddof": 1, **advantage}
                                    if "variant" not in advantage else advantage))  # fmt: skip


def tied_said(evaluation, prompt=0):
    curves = weight_curves(evaluation, prompt, 0)
    combine = evaluation.scenario.conventions["rewards"].variant
    bonus, term = tied_bonus(evaluation, prompt, 0), evaluation.scenario.terms[0]
    return tied_line(bonus, term, combine, curves.takeover)


def mixed_said(evaluation, prompt=0):
    return mixed_line(evaluation, weight_curves(evaluation, prompt, 0), prompt, 0)


def log_of(evaluation):
    return logged(evaluation), evaluation.attribution.names


def safe_said(evaluation):
    inputs = shaping_inputs(evaluation)
    return safe_line(safe_weight(*inputs.given, 0, **inputs.options), evaluation.scenario.terms[0])


def share_found(evaluation):
    inputs = shaping_inputs(evaluation)
    return share_weight(*inputs.given, 0, **inputs.options)


HALF = [[1, 1, 1, 1, 0, 0, 0, 0]]


class TestTied:
    @pytest.mark.parametrize(
        ("weight", "words"),
        [
            (1e-2, "they would get +0.9182, the others −0.9182. That is 98.2% of"),
            (1e-2, "98.2% of 0.9354 = √((8 − 4) / 4) · √(7 / 8)"),
            (1e-2, "any weight well above 0.0001871 leads. So 0.01 is no small weight"),
            (1e-3, "+0.788,"),
            (1e-3, "eps holds some of it back"),
            (1e-6, "eps outweighs the term"),
        ],
    )
    def test_four_of_eight(self, weight, words):
        said = tied_said(batch([[1] * 8], HALF, weight))
        assert said.startswith("4 of 8 completions gain by “bonus”.")
        assert words in said

    def test_without_eps_any_weight_will_do(self):
        assert "where any weight leads" in tied_said(batch([[1] * 8], HALF, 1e-6, eps=0))

    @pytest.mark.parametrize(
        ("combine", "words"),
        [
            ("normalize_then_sum", "+0.009352, the others −0.009352: the weight of 0.01 counts"),
            ("add_after", "+0.01, the others 0: the weight of 0.01 counts in full"),
        ],
    )
    def test_where_the_weight_counts_what_summing_would_give_is_said(self, combine, words):
        said = tied_said(batch([[1] * 8], HALF, 0.01, combine))
        assert words in said
        assert "Summed first, before normalising, it would be +0.9182." in said

    def test_without_a_standard_deviation(self):
        said = tied_said(batch([[1] * 8], HALF, 0.01, variant="mean_only"))
        assert "nothing is divided by a spread" in said

    def test_nothing_to_gain(self):
        assert "gain alike" in tied_said(batch([[1, 0]], [[2, 2]], 0.1))
        assert "is 0: it does nothing" in tied_said(batch([[1, 0]], [[1, 0]], 0.0))


class TestMixed:
    def test_a_tied_group_is_named(self):
        said = mixed_said(batch([[1] * 8], HALF, 0.01))
        assert said == "Prompt 0 is such a group: every task reward is 1."

    def test_a_worse_answer_above_is_named(self):
        # Sums 1 and 2 (w = 2): the wrong one stands above.
        said = mixed_said(batch([[1, 0]], [[0, 1]], 2.0))
        assert "Completion 1 is the worse answer and stands above" in said
        assert "outweighs" not in mixed_said(batch([[1, 0]], [[0, 1]], 0.5))

    def test_the_second_normalisation_is_not_in_the_curves(self):
        scenario = batch([[1, 0]], [[0, 1]], 0.5, "normalize_then_sum").scenario
        evaluation = evaluate(scenario.choose("rewards", batch_scale="completion"))
        assert "before the second normalisation" in mixed_said(evaluation)


class TestDriver:
    def test_shares_over_groups_and_who_decides_alone(self):
        # Group 0 is tied in the task: all bonus. In group 1 the bonus has w^2 / (1 + w^2) = 0.2.
        said = driver_line(*log_of(batch([[1] * 4, [1, 1, 0, 0]], [[1, 0, 1, 0]] * 2, 0.5)))
        assert said == (
            "“bonus” drives the update: 60% of the spread, on average over 2 groups, task 40%. In "
            "the group of prompt 0 the task rewards are equal: shaping alone decides it."
        )

    def test_at_half_nothing_drives_alone_and_nothing_is_betrayed(self):
        # Two of four each, uncorrelated, both of weight 1: half of the spread each, as the
        # finding, which speaks from 50.5% on.
        found = log_of(batch([[1, 1, 0, 0]], [[1, 0, 1, 0]], 1.0))
        assert driver_line(*found) == (
            "Nothing drives the update alone. Shares of the spread: task 50% and “bonus” 50%."
        )
        assert log_line(*found).startswith("Nothing betrays a term here")
        # w^2 / (1 + w^2) = 0.5098 at 1.02.
        more = log_of(batch([[1, 1, 0, 0]], [[1, 0, 1, 0]], 1.02))
        assert driver_line(*more).startswith("“bonus” drives the update: 51% of the spread, task")
        assert "“bonus” has 51% of the spread" in log_line(*more)

    def test_a_share_below_0_works_against_the_total(self):
        said = driver_line(*log_of(batch([[1, 0]], [[0, 1]], 0.25)))
        assert "task drives" in said
        assert said.endswith("A share below 0 works against the total: “bonus”.")

    def test_a_total_that_cancels(self):
        assert "No group pushes" in driver_line(*log_of(batch([[1, 0]], [[0, 1]], 1.0)))


class TestWeights:
    def test_the_pair_that_turns_first_is_named(self):
        # 1 against w: beyond 1 the wrong answer with the bonus is ahead.
        said = safe_said(batch([[1, 0, 0]], [[0, 0, 1]], 0.5))
        assert "Up to 1 no worse answer outranks" in said
        assert "completion 2 overtakes completion 0 of prompt 0" in said
        assert said.endswith("The present weight, 0.5, is within.")
        assert safe_said(batch([[1, 0, 0]], [[0, 0, 1]], 2.0)).endswith("is beyond it.")

    def test_no_weight_is_too_large_where_the_best_gain_most(self):
        assert "puts a worse answer first" in safe_said(batch([[1, 0]], [[1, 0]], 0.5))

    def test_the_weight_of_a_tenth(self):
        # w^2 / (1 + w^2) = 0.1 at 1/3.
        evaluation = batch([[1, 1, 0, 0]], [[1, 0, 1, 0]], 0.5)
        term = evaluation.scenario.terms[0]
        assert share_line(share_found(evaluation), term) == (
            "At 0.3333 “bonus” carries 10% of the spread, on average."
        )
        assert "No group here differs" in no_small_line(share_found(evaluation), term)

    def test_no_weight_is_small_in_a_tied_group(self):
        evaluation = batch([[1] * 8], HALF, 0.01)
        found, term = share_found(evaluation), evaluation.scenario.terms[0]
        assert "100% of the groups that push differ by it alone" in share_line(found, term)
        assert "no weight well above 0.0001871 is small" in no_small_line(found, term)
        added = batch([[1] * 8], HALF, 0.01, "add_after")
        assert "counts in full" in no_small_line(share_found(added), term)


class TestLog:
    def test_a_bonus_that_goes_against_the_task_is_betrayed(self):
        log, names = log_of(batch([[1, 0, 0, 0]] * 2, [[0, 1, 1, 0], [0, 1, 0, 1]], 1.0))
        said = log_line(log, names)
        assert "within groups “bonus” goes against the task (correlation −0.577)" in said

    def test_a_term_that_goes_with_the_task_is_not(self):
        assert log_line(*log_of(batch([[1, 0]], [[1, 0]], 0.1))).startswith("Nothing betrays")

    def test_the_real_run_is(self):
        said = log_line(*log_of(evaluate(EXAMPLES["recorded-step-bonus"].scenario)))
        assert "“steps shown” has 79.4% of the spread" in said
        assert "shaping alone decides 50% of the groups" in said

    def test_the_tables_hold_the_same(self):
        log, names = log_of(evaluate(EXAMPLES["recorded-step-bonus"].scenario))
        frame = log_frame(log, names)
        assert frame.loc["steps shown"].tolist() == ["4.25", "79.4%", "−0.385"]
        assert batch_frame(log)["this batch"].tolist() == ["50%", "16.67", "19.9"]


class TestWorlds:
    @staticmethod
    def bandit(weight, G=8, rates=(0.3, 0.1), **options):
        scenario = build_scenario(rewards=[[0] * G], arm_rates=list(rates))
        return bandit_line(bandit_view(scenario, weight, options))

    def test_the_hack_is_learned_though_it_is_worth_less(self):
        said = self.bandit(0.1, scale="std", ddof=1, eps=1e-4)
        assert "At weight 0.1 A is worth more, yet the expected update favours B" in said
        assert "B is worth more only from 0.2 on, but is learned from 0.0734 on" in said

    def test_without_a_standard_deviation_nothing_is_learned_too_early(self):
        said = self.bandit(0.1, scale="none")
        assert "A is worth more, and the expected update agrees" in said
        assert "Both turn at 0.2" in said

    def test_where_a_is_never_worth_more_that_is_said(self):
        for rates in ((0.2, 0.2), (0.1, 0.4)):
            said = self.bandit(0.1, rates=rates, scale="std", ddof=0, eps=1e-8)
            assert "no weight makes A worth more, and the update favours it at none." in said
            assert "up to 0" not in said

    def test_a_turn_at_the_same_weight_under_a_std_is_not_put_down_to_its_absence(self):
        # So large an eps makes the divisor a constant.
        said = self.bandit(0.1, scale="std", ddof=0, eps=1e6)
        assert "Both turn at 0.2." in said
        assert "nothing is divided" not in said

    def test_pairs_of_a_good_answer_learn_it_beyond_its_worth(self):
        # Of two completions A is favoured up to a weight of 1 if a (1 - b) > 1/2: 0.81.
        said = self.bandit(0.1, G=2, rates=(0.9, 0.1), scale="std", ddof=0, eps=1e-8)
        assert "B is worth more from 0.8 on, but is learned only from 1 on." in said

    def test_the_share_of_groups_that_the_bonus_decides(self):
        # Pairs of one A and one B, chance 1/2, tied in the task in 0.3 x 0.1 + 0.7 x 0.9 = 0.66.
        said = self.bandit(0.1, G=2, scale="std", ddof=0, eps=1e-8)
        scenario = build_scenario(rewards=[[0, 0]], arm_rates=[0.3, 0.1])
        view = bandit_view(scenario, 0.1, {"scale": "std", "ddof": 0, "eps": 1e-8})
        assert view.decided == pytest.approx(0.33)
        assert view.reward_gap_now == pytest.approx(0.1)
        # 0.2 less the weight, along all weights.
        np.testing.assert_allclose(view.reward_gap, 0.2 - view.weights)
        assert "A is worth more" in said
        # All eight wrong or right, less those of one answer only: 0.8^8 + 0.2^8 - (0.9^8 + 0.1^8 +
        # 0.7^8 + 0.3^8) / 2^8 = 0.1659.
        assert "In 16.6% of the groups" in self.bandit(0.1, G=8, scale="std", ddof=1, eps=1e-4)

    def test_the_largest_group_that_is_summed_over_is_said(self):
        assert size_line(8, 8) == ""
        assert "group of 8" in size_line(64, 8)

    def test_where_a_potential_is_harmless(self):
        view = potential_view(
            build_scenario(rewards=[[0, 0]], potential=[0.5, 0, 0]), {"ddof": 0, "eps": 0.0}
        )
        said = potential_line(view)
        assert "Harmless for" in said
        assert "steps, less the mean of all steps" in said.split("Not for")[1]
        assert "even pushed the other way" in said  # -.020 turns into +.020

    def test_no_potential_changes_nothing(self):
        view = potential_view(
            build_scenario(rewards=[[0, 0]], potential=[0, 0, 0]), {"ddof": 0, "eps": 0.0}
        )
        assert "changes no gradient" in potential_line(view)

    def test_a_std_weighs_prompts(self):
        view = potential_view(build_scenario(rewards=[[0] * 4]), {"ddof": 0, "eps": 0.0})
        assert "weighs 10 times as much" in prompt_weight_line(view)
        frame = prompt_weight_frame(view)
        assert frame.loc["returns to go"].tolist() == ["1", "1"]
        for key, row in CREDITS.items():
            assert frame.loc[row.label].tolist() == [
                number(view.wide[key], 3), number(view.close[key], 3)
            ]  # fmt: skip
        divided = next(key for key, row in CREDITS.items() if row.divides)
        # Ten times closer rewards weigh ten times as much, so the columns differ.
        assert view.close[divided] == pytest.approx(10 * view.wide[divided])
