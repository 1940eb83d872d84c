"""Sentences of the page Process rewards: each says what the worked case holds, number by number."""

import numpy as np
import pytest

from grpo_core import Texts, evaluate
from grpo_core.credit_rules import CREDIT_RULES
from grpo_core.gaming import standing, try_edits
from grpo_core.process_views import against_outcome
from pages._ui.process_words import (
    chosen_line,
    credit_line,
    gaming_line,
    left_out_line,
    pooling_line,
    rules_list,
    step_text,
    steps_line,
    trick_line,
)
from tests.unit.stepped import stepped


def credit(scenario):
    return credit_line(against_outcome(evaluate(scenario)))


def gaming(*rewards, prompt=0, **arrays):
    return gaming_line(evaluate(stepped(list(rewards), **arrays)), prompt)


class TestCredit:
    def test_what_the_steps_change_in_one_sentence(self):
        # Steps 1.633 0.408 1.225 | -1.633 -0.816 0; outcome 1 1 1 | -1 -1 -1. Differences by size
        # 0.633 + 0.592 + 0.225 + 0.633 + 0.184 + 1 = 3.266.
        scenario = stepped([[1, 0, 1], [0, 0]], lengths=[3, 3], outcome=[1, 0])
        assert credit(scenario) == (
            "Against the outcome reward alone 1 token of 6 loses all that the outcome gives. The "
            "largest change is at prompt 0, completion 1, token 2: −1 → 0. Summed by size, "
            "advantages move by 3.266."
        )

    def test_signs_that_turn_are_counted(self):
        # Steps 0 0 1 1 | 1 1 as padded: -1.414 0 1.414 0.7071 | 1.414 0.7071. Outcome -1 | 1.
        # Tokens 2 and 3 turn, token 1 gets 0. Largest at token 2: 2.414.
        scenario = stepped([[0, 0, 1, 1], [1, 1]], lengths=[4, 2], outcome=[0, 1])
        said = credit(scenario)
        assert "2 tokens of 6 change sign; 1 token of 6 loses all" in said
        assert "at prompt 0, completion 0, token 2: −1 → 1.414." in said

    def test_credit_where_the_outcome_is_tied(self):
        said = credit(stepped([[1, 0], [0, 0]], outcome=[1, 1]))
        assert "4 tokens of 4 get credit where the outcome gives none" in said

    def test_a_change_that_turns_nothing_says_so(self):
        # 1 1 | 0: mean 2/3, std 0.4714: 1.414 0.7071 | -1.414, of the same signs as 1 | -1.
        said = credit(stepped([[1, 1], [0]], lengths=[2, 1], outcome=[1, 0]))
        assert "alone no token changes sign. The largest change" in said

    def test_nothing_changed(self):
        same = "Every token gets what the outcome reward alone would give it."
        assert credit(stepped([[1.0], [0.0]], outcome=[1, 0])) == same
        assert credit(stepped([[], []], outcome=[1, 1])) == same

    def test_rounding_is_no_change(self):
        rewards = [0.1, 0.7, 0.4, 0.3]
        one = stepped([[r] for r in rewards], outcome=[r * (1 + 2e-16) for r in rewards])
        assert credit(one) == "Every token gets what the outcome reward alone would give it."


class TestGaming:
    def test_who_gains_by_more_steps_and_how_much(self):
        # Pool 1 1 1 1 0 0: mean 2/3, std 0.4714, a 1 is worth 0.7071. 3 x 0.7071 = 2.121.
        assert gaming([1, 1, 1], [1], [0, 0], outcome=[1, 1, 0]) == (
            "Completion 0 stands 1.414 above completion 1 only because it has more steps, 3 "
            "against 1: on average they are no better (the same, normalised). With 1 it would get "
            "0.7071 and not 2.121."
        )

    def test_worse_steps_on_average_are_said_with_both_means(self):
        # Pool 1 1 1 0.8 | 1 | 0 0: mean 4.8/7 = 0.6857, squares 3 x 0.0988 + 0.0131 + 0.0988 + 2 x
        # 0.4702 = 1.349, std 0.439. z: 1 is 0.716, 0.8 is 0.2604: mean of the first 0.6021.
        said = gaming([1, 1, 1, 0.8], [1], [0, 0], outcome=[1, 1, 0])
        assert (
            "4 against 1: on average they are no better (0.6021 against 0.716, normalised)" in said
        )

    def test_who_gains_by_fewer_steps_where_nobody_gains_by_more(self):
        # Pool 1 1 | 0 | 0 0 0: mean 1/3, std 0.4714, a 0 is worth -0.7071.
        assert gaming([1, 1], [0], [0, 0, 0], outcome=[1, 0, 0]) == (
            "Completion 1 stands 1.414 above completion 2 only because it has fewer steps, 1 "
            "against 3: on average they are no better (the same, normalised). With 3 it would get "
            "−2.121 and not −0.7071."
        )

    def test_a_wrong_answer_that_is_padded(self):
        # Three pads: mean 5/7, std 0.4518, z 0.6325 and -1.581. First 3 x 0.6325 - 2 x 1.581 =
        # -1.265; all tokens -3 x 1.581 + (3 + 4 + 5) x 0.6325 = 2.846.
        assert gaming([0, 0, 1, 1, 1], [1, 1], outcome=[0, 1]) == (
            "Completion 0 is pushed up, though its reward 0 is below its group's mean: its first "
            "token gets −1.265, its tokens together 2.846."
        )

    def test_with_an_outcome_weight_it_is_the_whole_advantage_that_pushes(self):
        # As above less the outcome's -1 on each of 5 tokens, by its weight: first -1.265 - 0.5,
        # together 2.846 - 2.5; at weight 1 nothing is left above 0.
        pads = {"outcome": [0, 1]}
        half = gaming([0, 0, 1, 1, 1], [1, 1], **pads, options={"outcome_weight": 0.5})
        assert half == (
            "Completion 0 is pushed up (with the outcome's part), though its reward 0 is below its "
            "group's mean: its first token gets −1.765, its tokens together 0.346."
        )
        whole = gaming([0, 0, 1, 1, 1], [1, 1], **pads, options={"outcome_weight": 1.0})
        assert whole.startswith("Completion 0: its first token gets −1.265 by its steps, its")

    def test_a_wrong_answer_pushed_up_at_its_start_only(self):
        # Pool 1 1 1 0 0 0 | 0: the answer fails late. Mean 3/7, std 0.4949, z 1.155 and -0.866.
        # First 3 x 1.155 - 3 x 0.866 = 0.866; together 6 x 1.155 - 15 x 0.866 = -6.062.
        said = gaming([1, 1, 1, 0, 0, 0], [0], [], outcome=[0, 0, 1])
        assert said.startswith("Completion 0 is pushed up at its start, though its reward 0 is")
        assert "gets 0.866, its tokens together −6.062." in said

    def test_an_answer_whose_end_outweighs_its_start(self):
        # Tied outcomes: nobody is below the mean.
        said = gaming([0, 0, 1, 1, 1], [1, 1], outcome=[1, 1])
        assert said.startswith("Completion 0: its first token gets −1.265, its tokens together")
        assert said.endswith("so what stands at the end counts most.")

    def test_others_alike_are_counted(self):
        pads = [0, 0, 1, 1, 1]
        said = gaming(pads, pads, [1, 1], [1, 1], outcome=[0, 0, 1, 1])
        assert "below its group's mean, and 1 other alike: " in said

    @pytest.mark.parametrize("rewards", [([1], [0]), ([], []), ([1, 1], [1])], ids=str)
    def test_nobody_gains_by_the_number_alone(self, rewards):
        assert gaming(*rewards, outcome=[1, 1]) == (
            "Nobody gains by the number of steps alone here: no completion stands above another "
            "whose steps are as good on average."
        )

    def test_only_the_shown_prompt_is_told(self):
        both = stepped([[[1, 1, 1], [1], [0, 0]], [[1], [0], [1]]], outcome=[[1, 1, 0], [1, 0, 1]])
        assert gaming_line(evaluate(both), 0).startswith("Completion 0 stands")
        assert gaming_line(evaluate(both), 1).startswith("Nobody")

    def test_an_absent_completion_takes_no_part(self):
        said = gaming([1, 1, 1], [1], [0, 0], outcome=[1, 1, 0], present=[[1, 0, 1]])
        assert "completion 1" not in said.lower()

    def test_scores_that_are_missing_are_below_nothing(self):
        assert "pushed up" not in gaming([0, 0, 1, 1, 1], [1, 1], outcome=[np.nan, 1])


class TestTricks:
    def said(self, scenario, where):
        return trick_line(try_edits(scenario, where), standing(scenario, where), where)

    def test_the_best_trick_with_what_it_brings(self):
        # Appended at token 2: pool 0 0 1 | 1 1, z 0.8165 and -1.225. First -1.633, together
        # -1.225 - 2 x 1.225 + 3 x 0.8165 = -1.225.
        assert self.said(stepped([[0, 0], [1, 1]], lengths=[3, 3]), (0, 0, 0)) == (
            "Prompt 0, completion 0: the best trick is “Append an easy step”. The sum of its "
            "tokens' advantages goes −3 → −1.225, its first token's goes −2 → −1.633, and no token "
            "of the answer is changed."
        )

    def test_a_first_token_that_stays_says_so(self):
        # 1 0 0 | 0 with a token each. Swapping moves the 1 to a later token, the first one stays.
        said = self.said(stepped([[4, 0, 0], [0]], lengths=[3, 3]), (0, 0, 0))
        assert "the best trick is “Swap with the next step”" in said
        assert "its first token's stays " in said

    def test_no_trick_helps(self):
        alone = stepped([[1.0], [1.0]])
        assert self.said(alone, (0, 0, -1)) == (
            "Prompt 0, completion 0: no trick raises the sum of its tokens' advantages, 0."
        )

    def test_no_trick_applies(self):
        absent = stepped([[1, 0], [0, 1]], present=[[1, 0]])
        assert self.said(absent, (0, 1, -1)) == "This completion has no step that could be changed."


TEXTS = Texts(("p",), (((*"a+b;", "<b>", "■"), (*"c=d;", "", "")),))


class TestWhichStep:
    scenario = stepped(
        [[1, 0], [1]], [[3, 4], [3]], lengths=[6, 4], outcome=[1, 0]
    ).with_texts(TEXTS)  # fmt: skip

    def test_it_is_named_with_what_it_reads(self):
        assert chosen_line(self.scenario, (0, 0, 1), 0).startswith(
            "Tried on completion 0, step 0, which reads “a+b;”. Click"
        )
        assert step_text(self.scenario, 0, 0, 1) == "<b>"

    def test_two_steps_with_one_end_share_no_text(self):
        double = stepped([[1, 0]], [[3, 3]], lengths=[6]).with_texts(
            Texts(("p",), (((*"a+b;", "<b>", "■"),),))
        )
        assert [step_text(double, 0, 0, s) for s in (0, 1)] == ["a+b;", ""]

    def test_a_long_text_is_cut(self):
        assert len(step_text(self.scenario, 0, 0, 0, most=3)) <= 3

    @pytest.mark.parametrize(
        ("where", "arrays", "words"),
        [
            ((0, 0, 5), {}, "no step: the selected token is after the last one"),
            ((0, 1, 5), {}, "no step: the selected token is padding"),
            ((0, 1, 0), {"present": [[1, 0]]}, "which is absent"),
        ],
    )
    def test_where_there_is_none_it_says_why(self, where, arrays, words):
        scenario = self.scenario.replace(**arrays)
        said = chosen_line(scenario, where, -1)
        assert said.startswith(f"Tried on completion {where[1]}, {words}. ")

    def test_a_completion_without_steps(self):
        assert "completion 1, which has no step." in chosen_line(stepped([[1], []]), (0, 1, 0), -1)


class TestSteps:
    def test_count_mean_and_standard_deviation(self):
        # Pool 1 0 1 0 0: mean 0.4, std 0.4899; of six tokens one is after the last step.
        assert steps_line(stepped([[1, 0, 1], [0, 0]], lengths=[3, 3]), 0) == (
            "5 steps (2 to 3 a completion), pooled: mean 0.4, standard deviation 0.4899. 1 token "
            "(16.7%) after the last step gets 0."
        )

    def test_the_standard_deviation_is_the_one_in_use(self):
        # sqrt(1.2 / 4) = 0.5477.
        said = steps_line(stepped([[1, 0, 1], [0, 0]], options={"ddof": 1}), 0)
        assert "mean 0.4, sample standard deviation 0.5477" in said

    def test_steps_of_each_completion_have_no_common_mean(self):
        said = steps_line(stepped([[1, 0], [0, 1]], options={"over": "completion"}), 0)
        assert said == "4 steps, each normalised among the steps of its completion."

    def test_no_step(self):
        said = "No completion of this prompt has a step, so steps give no advantage here."
        assert steps_line(stepped([[], []]), 0) == said
        assert steps_line(stepped([[1], [1]], present=[[0, 0]]), 0) == said

    def test_absent_completions_do_not_count(self):
        assert steps_line(stepped([[1, 0], [9]], present=[[1, 0]]), 0).startswith(
            "2 steps, pooled: mean 0.5, standard deviation 0.5."
        )

    def test_one_step_and_the_largest_numbers(self):
        assert steps_line(stepped([[1.0]]), 0).startswith("1 step, pooled: mean 1, standard")
        top = np.finfo(float).max
        assert "mean 0, standard deviation 1.798e308" in steps_line(stepped([[top], [-top]]), 0)


def test_the_outcomes_part_is_only_spoken_of_where_there_is_one():
    assert left_out_line(stepped([[1], [0]])) == ""
    said = left_out_line(stepped([[1], [0]], options={"outcome_weight": 0.5}))
    assert said == "The outcome's own part, of weight 0.5, is left out."


def test_the_pool_of_the_other_rules_is_only_spoken_of_where_it_is_another():
    assert pooling_line(stepped([[1], [0]])) == ""
    said = pooling_line(stepped([[1], [0]], options={"over": "completion"}))
    assert said == "Pooled over all steps of the group, also where the advantage above is not."


def test_every_rule_says_what_it_does():
    lines = rules_list().split("\n")
    assert len(lines) == len(CREDIT_RULES)
    assert lines[0] == (
        "- Sum of the steps to go: grows with the number of steps that are better than the "
        "group's mean."
    )
