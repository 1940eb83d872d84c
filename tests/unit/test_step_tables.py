"""Steps as a table and as pasted lists: what is typed arrives, a bad row is named."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from grpo_core import ScenarioError, build_scenario, same_scenario
from grpo_core.arrays import OWN_AXES
from pages._ui.step_tables import COLUMNS, frame_to_steps, paste_steps, steps_to_frame
from pages._ui.tables import paste_array
from tests.property import drawn

NAN = np.nan


def scenario(**changes):
    """Two prompts, two completions, four tokens; completion 1 of prompt 0 has two tokens."""
    arrays = {
        "rewards": [[1.0, 0.0], [0.5, 0.25]],
        "logp_new": np.full((2, 2, 4), -1.0),
        "mask": [[[1, 1, 1, 1], [1, 1, 0, 0]], [[1, 1, 1, 1], [1, 1, 1, 1]]],
    }
    return build_scenario(**{**arrays, **changes})


def stepped(**changes):
    """Three steps in prompt 0; one in prompt 1, behind a gap."""
    ends = [[[1, 3], [0, NAN]], [[NAN, NAN], [NAN, 2]]]
    rewards = [[[1.0, 0.5], [-1.0, NAN]], [[NAN, NAN], [NAN, 0.25]]]
    return scenario(**{"step_ends": ends, "step_rewards": rewards, **changes})


def frame(*rows):
    return pd.DataFrame(list(rows), columns=list(COLUMNS), dtype=object)


def refusal(start, *rows, prompt=0):
    with pytest.raises(ScenarioError) as caught:
        frame_to_steps(start, frame(*rows), prompt)
    assert "\n" not in str(caught.value)
    return caught.value


class TestTable:
    def test_one_row_is_one_step(self):
        table = steps_to_frame(stepped(), 0)
        assert list(table.columns) == ["completion", "end", "reward"]
        assert set(table.dtypes) == {np.dtype(np.float64)}
        assert table.to_numpy().tolist() == [[0, 1, 1], [0, 3, 0.5], [1, 0, -1]]
        assert steps_to_frame(stepped(), 1).to_numpy().tolist() == [[1, 2, 0.25]]

    def test_without_steps_the_table_is_empty_and_putting_it_back_changes_nothing(self):
        start = scenario()
        table = steps_to_frame(start, 1)
        assert table.shape == (0, 3)
        assert set(table.dtypes) == {np.dtype(np.float64)}
        assert frame_to_steps(start, table, 1) is start
        assert frame_to_steps(start, frame([None, "", NAN]), 1) is start

    def test_the_first_row_creates_the_arrays(self):
        changed = frame_to_steps(scenario(), frame([1, 1, 0.5]), 0)
        assert_array_equal(changed["step_ends"], [[[NAN], [1]], [[NAN], [NAN]]])
        assert_array_equal(changed["step_rewards"], [[[NAN], [0.5]], [[NAN], [NAN]]])

    def test_an_unedited_table_is_the_same_scenario(self):
        start = stepped(step_rewards=np.float32(stepped()["step_rewards"]))
        for prompt in (0, 1):
            table = steps_to_frame(start, prompt)
            assert frame_to_steps(start, table, prompt) is start
            shuffled = table.iloc[::-1].astype(object)
            assert frame_to_steps(start, shuffled, prompt) is start

    def test_rows_are_sorted_by_completion_and_end_and_equal_ends_stay_as_they_stand(self):
        rows = [[1, "1", "2"], [0, 3, 0.1], [None, None, None], [0, 0, 0.2], [0, 3, 0.3]]
        changed = frame_to_steps(stepped(), frame(*rows), 0)
        assert_array_equal(changed["step_ends"][0], [[0, 3, 3], [1, NAN, NAN]])
        assert_array_equal(changed["step_rewards"][0], [[0.2, 0.1, 0.3], [2, NAN, NAN]])

    def test_other_prompts_keep_their_steps_when_the_arrays_grow(self):
        rows = [[0, 0, 1.0]] * 5
        changed = frame_to_steps(stepped(), frame(*rows), 0)
        assert changed["step_ends"].shape == (2, 2, 5)
        assert steps_to_frame(changed, 1).equals(steps_to_frame(stepped(), 1))

    def test_rows_that_are_gone_take_their_steps_away(self):
        changed = frame_to_steps(stepped(), frame(), 0)
        assert_array_equal(changed["step_ends"][0], np.full((2, 2), NAN))
        assert changed["step_ends"].shape == (2, 2, 2)

    def test_steps_of_an_absent_completion_are_kept_and_not_shown(self):
        start = stepped(present=[[1, 0], [1, 1]])
        assert steps_to_frame(start, 0)["completion"].tolist() == [0, 0]
        changed = frame_to_steps(start, frame([0, 2, 1]), 0)
        assert_array_equal(changed["step_ends"][0], [[2, NAN], [0, NAN]])

    @pytest.mark.parametrize(
        ("row", "message", "field", "where"),
        [
            ([None, 1, 1], "row 1: completion is blank; wanted the number of a completion, from 0 "
             "to 1", "step_ends", (0,)),
            (["x", 1, 1], "row 1: completion is 'x'; wanted the number", "step_ends", (0,)),
            ([2, 1, 1], "row 1: completion is 2; wanted the number", "step_ends", (0,)),
            ([-1, 1, 1], "row 1: completion is -1; wanted", "step_ends", (0,)),
            ([0.5, 1, 1], "row 1: completion is 0.5; wanted", "step_ends", (0,)),
            ([0, None, 1], "row 1, completion 0, step 1: end is blank; wanted a token position "
             "from 0 to 3", "step_ends", (0, 0, 1)),
            ([0, "end", 1], "row 1, completion 0, step 1: end is 'end'; wanted a token position",
             "step_ends", (0, 0, 1)),
            ([0, 4, 1], "step 1: end is 4; wanted a token position from 0 to 3", "step_ends",
             (0, 0, 1)),
            ([0, 1.5, 1], "step 1: end is 1.5; wanted a token position", "step_ends", (0, 0, 1)),
            ([0, np.inf, 1], "step 1: end is inf; wanted a token position", "step_ends", (0, 0, 1)),
            ([1, 2, 1], "row 1, completion 1, step 0: end is 2; wanted a token that counts; this "
             "one is padding", "step_ends", (0, 1, 0)),
            ([0, 1, ""], "row 1, completion 0, step 1: reward is blank; wanted a finite number",
             "step_rewards", (0, 0, 1)),
            ([0, 1, np.inf], "reward is inf; wanted a finite number", "step_rewards", (0, 0, 1)),
            ([0, 1, "high"], "reward is 'high'; wanted a finite number", "step_rewards", (0, 0, 1)),
        ],
    )  # fmt: skip
    def test_a_bad_row_is_named_with_what_is_wanted(self, row, message, field, where):
        error = refusal(stepped(), [0, 1, 1.0], row)
        assert message in str(error)
        assert (error.field, error.where) == (field, where)

    def test_a_step_of_an_absent_completion_says_how_to_bring_it_back(self):
        start = stepped(present=[[1, 0], [1, 1]])
        assert "switch it on in the table of present completions" in str(refusal(start, [1, 0, 1]))

    def test_a_reward_beyond_float32_is_refused_where_the_array_is_float32(self):
        start = stepped(step_rewards=np.float32(stepped()["step_rewards"]))
        assert "reward is 1e+300; wanted a finite number" in str(refusal(start, [0, 1, 1e300]))
        assert frame_to_steps(stepped(), frame([0, 1, 1e300]), 0)["step_rewards"][0, 0, 0] == 1e300

    def test_more_steps_than_there_may_be_are_refused(self):
        most = OWN_AXES["S"].high
        rows = [[0, 3, 1.0]] * (most + 1)
        assert frame_to_steps(stepped(), frame(*rows[:-1]), 0).own_sizes["S"] == most
        assert f"it has {most + 1} steps; at most {most}" in str(refusal(stepped(), *rows))

    def test_a_table_without_its_columns_is_refused(self):
        with pytest.raises(ScenarioError, match="no column 'reward'"):
            frame_to_steps(stepped(), frame().drop(columns="reward"), 0)


@st.composite
def stepped_scenarios(draw):
    P, G, L = draw(st.tuples(*[st.integers(1, 3)] * 3))
    flags = st.lists(st.booleans(), min_size=P * G * L, max_size=P * G * L)
    mask = np.array(draw(flags)).reshape(P, G, L)
    present = np.array(draw(flags))[: P * G].reshape(P, G)
    ends, rewards = draw(drawn.steps(mask, present, st.floats(-9, 9, width=32)))
    kind = draw(st.sampled_from([np.float32, np.float64]))
    return build_scenario(
        rewards=np.zeros((P, G)), logp_new=np.full((P, G, L), -1.0), mask=mask, present=present,
        step_ends=ends, step_rewards=rewards.astype(kind),
    )  # fmt: skip


@given(stepped_scenarios(), st.randoms(use_true_random=False))
def test_a_table_of_steps_put_back_in_any_order_of_completions_is_the_same_scenario(start, random):
    for prompt in range(start.sizes["P"]):
        table = steps_to_frame(start, prompt)
        assert frame_to_steps(start, table, prompt) is start
        groups = [rows for _, rows in table.groupby("completion")]
        random.shuffle(groups)
        if groups:
            assert frame_to_steps(start, pd.concat(groups), prompt) is start


@given(stepped_scenarios())
def test_a_table_of_steps_rebuilds_them_from_nothing(start):
    bare = start.replace(step_ends=None, step_rewards=None)
    for prompt in range(start.sizes["P"]):
        table = steps_to_frame(start, prompt)
        rebuilt = frame_to_steps(bare, table, prompt)
        assert steps_to_frame(rebuilt, prompt).equals(table)


@given(stepped_scenarios(), st.data())
def test_any_edit_of_a_cell_gives_a_scenario_or_one_sentence(start, data):
    table = steps_to_frame(start, 0).astype(object)
    values = st.sampled_from([None, NAN, -1, 0, 1, 2, 1.5, np.inf, "", "1", "x\ny", True, [1]])
    table.loc[len(table)] = data.draw(st.lists(values, min_size=3, max_size=3))
    try:
        changed = frame_to_steps(start, table, 0)
    except ScenarioError as error:
        message = str(error)
    else:
        assert len(steps_to_frame(changed, 0)) >= len(table) - 1
        return
    assert message.startswith("row ")
    assert "\n" not in message


class TestPaste:
    def test_lists_for_each_completion_are_the_steps(self):
        one = scenario(rewards=[[1, 0]], logp_new=np.full((1, 2, 4), -1.0), mask=None)
        for prompt in (None, 0):
            changed = paste_steps(one, "[[1, 3], [2]]", "[[1, 0.5], [0.25]]", prompt)
            assert_array_equal(changed["step_ends"], [[[1, 3], [2, NAN]]])
            assert_array_equal(changed["step_rewards"], [[[1, 0.5], [0.25, NAN]]])

    def test_one_prompt_s_steps_go_into_their_prompt(self):
        changed = paste_steps(stepped(), "[[0, 1, 2], []]", "[[1, 2, 3], []]", 1)
        assert_array_equal(changed["step_ends"][1], [[0, 1, 2], [NAN] * 3])
        assert steps_to_frame(changed, 0).equals(steps_to_frame(stepped(), 0))
        narrow = paste_steps(changed, "[[3], [3]]", "[[1], [1]]", 1)
        assert narrow["step_ends"].shape == (2, 2, 3)

    def test_steps_of_several_prompts_are_all_of_them(self):
        text = "[[[0], [1]], [[2], [3]]]"
        changed = paste_steps(stepped(), text, text, 1)
        assert changed["step_ends"].tolist() == [[[0], [1]], [[2], [3]]]

    def test_several_prompts_bring_their_number_with_them(self):
        text = "[[[0], [1], [1]], [[2], [3], []], [[], [], [0]]]"
        changed = paste_steps(scenario(), text, text)
        assert changed.sizes == {"P": 3, "G": 3, "L": 4}
        assert len(steps_to_frame(changed, 2)) == 1

    def test_completions_without_steps_may_be_pasted(self):
        changed = paste_steps(stepped(), "[[], []]", "[[], []]", 0)
        assert len(steps_to_frame(changed, 0)) == 0

    def test_a_line_or_column_of_one_number_each_is_one_step_each(self):
        for text in ("[0, 1]", "0\n1", "0 1"):
            changed = paste_steps(stepped(), text, text, 1)
            assert steps_to_frame(changed, 1)["end"].tolist() == [0, 1]

    def test_a_spreadsheet_may_have_blank_cells(self):
        changed = paste_steps(stepped(), "1\t3\n0\t", "1\t2\n3\t", 0)
        assert steps_to_frame(changed, 0).to_numpy().tolist() == [[0, 1, 1], [0, 3, 2], [1, 0, 3]]

    def test_the_same_steps_are_the_same_scenario(self):
        start = stepped()
        texts = [repr(start[key].tolist()) for key in ("step_ends", "step_rewards")]
        assert paste_steps(start, *texts) is start

    @pytest.mark.parametrize(
        ("ends", "rewards", "message"),
        [
            ("", "[[1], [1]]", "step_ends: nothing was pasted"),
            ("[[1], [x]]", "[[1], [1]]", "step_ends: character 8: 'x' is not a number"),
            ("[[1], [1]]", "[[1], [1]", "step_rewards: character 10: the list is not closed"),
            ("[[1], [1]]", "[]", "step_rewards: the pasted list is empty"),
            ("[[1, 2], [1]]", "[[1], [1]]", "step_rewards at prompt 0, completion 0, step 1 is "
             "missing"),
            ("[[1], [1]]", "[[1, 2], [1]]", "step_ends at prompt 0, completion 0, step 1 is "
             "missing; wanted an end for every step reward"),
            ("[[1], [1]]", "[[1], [inf]]", "completion 1, step 0"),
            ("[[4], [1]]", "[[1], [1]]", "completion 0, step 0 is 4; wanted a token position"),
            ("[[1], [2]]", "[[1], [1]]", "completion 1, step 0 is 2; wanted a token that counts"),
            ("[[3, 1], [1]]", "[[1, 1], [1]]", "completion 0, step 1 is 1; wanted steps in"),
            ("[[1], [1], [1]]", "[[1], [1], [1]]", "each prompt here has 2"),
            ("[[1], [1], [1]]", "[[1], [1]]", "paste both for the same ones"),
            ("[0, 1, 1]", "[1, 1, 1]", "wanted a list for each of the 2 completions"),
            (f"[[{'3,' * 299}3], [1]]", f"[[{'1,' * 299}1], [1]]", "it has 300 steps; at most"),
        ],
    )  # fmt: skip
    def test_what_does_not_fit_is_refused_with_its_place(self, ends, rewards, message):
        with pytest.raises(ScenarioError) as caught:
            paste_steps(stepped(), ends, rewards, 0)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_one_of_the_two_arrays_has_to_fit_the_other(self):
        changed = paste_array(stepped(), "step_ends", "[[2, 3], [1]]", 0)
        assert_array_equal(changed["step_ends"][0], [[2, 3], [1, NAN]])
        assert_array_equal(changed["step_rewards"], stepped()["step_rewards"])
        whole = paste_array(stepped(), "step_rewards", "[[[7, 8], [9]], [[], [null, 6]]]")
        assert steps_to_frame(whole, 1)["reward"].tolist() == [6]
        for text in ("[[2], [1]]", "[[2, 3, 3], [1]]"):
            with pytest.raises(ScenarioError, match="completion 0, step"):
                paste_array(stepped(), "step_ends", text, 0)
        with pytest.raises(ScenarioError, match="step_rewards at prompt 0, completion 0, step 0"):
            paste_array(scenario(), "step_ends", "[[2], [1]]", 0)

    @pytest.mark.parametrize("key", ["step_ends", "step_rewards"])
    def test_the_code_of_an_array_pasted_back_is_the_same_scenario(self, key):
        code = repr(stepped()[key].tolist())
        assert same_scenario(paste_array(stepped(), key, code), stepped())
