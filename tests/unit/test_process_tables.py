"""Tables of the page Process rewards: the numbers of the worked cases, in their cells."""

import numpy as np
import pytest

from grpo_core import evaluate
from grpo_core.credit_rules import CREDIT_RULES
from grpo_core.gaming import standing, try_edits
from pages._ui.process_tables import credit_frame, rules_frame, trials_frame
from tests.unit.stepped import stepped


def rows(frame):
    return dict(zip(frame.index, frame.to_numpy().tolist(), strict=True))


def padded(pads, **options):
    """A wrong answer 0 0 with passed steps behind it, beside a right one 1 1."""
    return evaluate(stepped([[0, 0] + [1] * pads, [1, 1]], outcome=[0, 1], options=options))


class TestCredit:
    def test_steps_and_what_they_give(self):
        # Four passes and two fails: mean 2/3, std 0.4714, z 0.7071 and -1.414. Completion 0: first
        # 2 x (0.7071 - 1.414) = -1.414; over its tokens 3 x -1.414 + (3 + 4) x 0.7071 = 0.7071.
        assert rows(credit_frame(padded(2), None, 0)) == {
            "0": ["4", "0.5", "−1.414", "0.7071"],
            "1": ["2", "1", "1.414", "2.121"],
        }

    def test_what_it_was_before_the_last_edit_stands_before_the_arrow(self):
        assert rows(credit_frame(padded(2), padded(0), 0)) == {
            "0": ["2 → 4", "0 → 0.5", "−2 → −1.414", "−3 → 0.7071"],
            "1": ["2", "1", "2 → 1.414", "3 → 2.121"],
        }

    def test_a_state_before_that_was_not_judged_by_steps_is_not_compared(self):
        former = evaluate(padded(0).scenario.choose("advantage", "mean_std"))
        assert "→" not in credit_frame(padded(2), former, 0).to_numpy().sum()

    def test_completions_without_a_step_have_no_mean_and_absent_ones_no_row(self):
        scenario = stepped([[1, 0], [], [1]], lengths=[2, 2, 2], present=[[1, 1, 0]])
        assert rows(credit_frame(evaluate(scenario), None, 0)) == {
            "0": ["2", "0.5", "0", "−1"], "1": ["0", "–", "0", "0"],
        }  # fmt: skip

    def test_each_prompt_has_its_own_table(self):
        both = evaluate(stepped([[[1, 0], [1]], [[2], [0]]], lengths=[[2, 2], [2, 2]]))
        assert list(rows(credit_frame(both, None, 1)).values()) == [
            ["1", "2", "1", "1"], ["1", "0", "−1", "−1"],
        ]  # fmt: skip

    def test_the_outcomes_part_is_left_out(self):
        with_outcome = padded(2, outcome_weight=1.0)
        assert rows(credit_frame(with_outcome, None, 0)) == rows(credit_frame(padded(2), None, 0))

    def test_the_largest_numbers_have_a_mean(self):
        top = np.finfo(float).max
        frame = credit_frame(evaluate(stepped([[top, top], [-top]])), None, 0)
        assert frame["mean reward"].tolist() == ["1.798e308", "−1.798e308"]


class TestTrials:
    def test_every_trick_shows_what_it_would_bring_and_what_changes(self):
        # Before: -2 at the first token, -3 over all. A pass appended: z 0.8165 and -1.225, first
        # 2 x -1.225 + 0.8165 = -1.633; all three of its tokens: 3 x -1.225 + 3 x 0.8165 = -1.225.
        scenario = stepped([[0, 0], [1, 1]], lengths=[3, 3])
        before = standing(scenario, (0, 0))
        frame = trials_frame(try_edits(scenario, (0, 0, 0)), before)
        assert list(frame.columns) == ["first token", "all tokens"]
        assert frame.loc["Append an easy step"].tolist() == ["−1.633 (+0.367)", "−1.225 (+1.775)"]
        assert frame.loc["Swap with the next step"].tolist() == ["−2 (0)", "−3 (0)"]

    def test_a_trick_that_cannot_be_done_has_dashes(self):
        scenario = stepped([[0, 0], [1, 1]])
        frame = trials_frame(try_edits(scenario, (0, 0, -1)), standing(scenario, (0, 0)))
        assert frame.loc["Drop the step"].tolist() == ["–", "–"]


class TestRules:
    def test_the_other_rules_on_the_padded_answer(self):
        # z 0.7071 and -1.414, m = 2.
        #   sum to go: 0.7071 as above, and 2.121.
        #   mean to go, from the end: 0.7071, 0.7071, 0, -0.3536; together 1.061. The right: 1.414.
        #   minimum to go: 0.7071, 0.7071, -1.414, -1.414, together -1.414. The right: 1.414.
        #   mean of the completion 0.5 against 1: -1 and 1 on each of its 4 and 2 tokens.
        scenario = stepped([[0, 0, 1, 1], [1, 1]], lengths=[4, 2])
        assert list(rows(rules_frame(evaluate(scenario), 0)).values()) == [
            ["0.7071", "2.121"], ["1.061", "1.414"], ["−1.414", "1.414"], ["−4", "2"],
        ]  # fmt: skip

    @pytest.mark.parametrize("pads", [0, 1, 2, 4, 8])
    def test_the_mean_of_the_completion_cannot_be_padded_beside_one_other(self, pads):
        scenario = stepped([[0, 0] + [1] * pads, [1, 1]], lengths=[2 + pads, 2])
        row = rules_frame(evaluate(scenario), 0).loc[CREDIT_RULES["completion_mean"].label]
        assert row.tolist() == [f"−{2 + pads}", "2"]

    def test_the_first_rule_is_the_one_in_use(self):
        evaluation = padded(3)
        shown = rules_frame(evaluation, 0).iloc[0].tolist()
        assert shown == credit_frame(evaluation, None, 0)["all tokens"].tolist()

    def test_an_absent_completion_has_a_dash_and_does_not_count(self):
        alone = stepped([[1, 0], [9, 9]], present=[[1, 0]])
        frame = rules_frame(evaluate(alone), 0)
        assert frame["1"].tolist() == ["–"] * len(CREDIT_RULES)
        # z 1 and -1, one token each: sum to go 0, -1.
        assert frame.iloc[0, 0] == "−1"

    def test_without_steps_every_rule_gives_0(self):
        frame = rules_frame(evaluate(stepped([[], []])), 0)
        assert set(frame.to_numpy().ravel()) == {"0"}
