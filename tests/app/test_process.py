"""The page Process rewards, driven without a browser: steps edited, pasted, gamed and refused."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from grpo_core import build_scenario, evaluate
from grpo_core.process_views import judged_by_steps
from grpo_core.step_edits import EDITS
from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.menu import MENU
from pages._ui.view import View
from tests.app.driver import (
    data,
    figures,
    messages,
    scenario,
    settled,
    start,
    table_key,
    visit,
    waiting,
)
from tests.unit.stepped import stepped

EXAMPLES = load_examples()
PAGE = MENU["Process_rewards"]
NAN = np.nan


def two():
    """Steps 1 0 1 and 0 0, a token each, in answers of three tokens; the first one is right."""
    return stepped([[1, 0, 1], [0, 0]], lengths=[3, 3], outcome=[1, 0])


def opened(given, selected=(0, 0, 0), page=PAGE):
    return visit(start(encode(given, View(selected), EXAMPLES)), page)


def example(key):
    return opened(EXAMPLES[key].scenario)


def edit_rows(app, *, cells=None, added=(), deleted=()):
    """What the grid would report after edits of the table of steps, and a run.

    All edits since the table started afresh, as the grid keeps them.
    """
    app.session_state[table_key(app, "steps")] = {
        "edited_rows": cells or {}, "added_rows": list(added), "deleted_rows": list(deleted),
    }  # fmt: skip
    return settled(app.run())


def steps(app, p=0):
    """Steps of one prompt as lists (end, reward) for each completion."""
    here = scenario(app)
    return [
        [(end, reward) for end, reward in zip(*pair, strict=True) if not np.isnan(end)]
        for pair in zip(
            here["step_ends"][p].tolist(), here["step_rewards"][p].tolist(), strict=True
        )
    ]


def said(app):
    return " ".join(block.proto.body for block in app.get("html"))


def table(app, column):
    return next(frame.value for frame in app.dataframe if column in frame.value.columns)


def advantages(app):
    """Token advantages that the page draws, of the steps and of the outcome alone."""
    chart = data(app)[1]
    return [trace for trace in chart if trace["type"] == "heatmap"]


def press(app, key):
    return settled(app.button(key=key).click().run())


class TestTable:
    def test_a_reward_that_is_edited_moves_every_picture(self):
        app = opened(two())
        before = figures(app)[:3]
        edit_rows(app, cells={1: {"reward": "0.5"}})
        assert not messages(app)
        assert steps(app) == [[(0, 1), (1, 0.5), (2, 1)], [(0, 0), (1, 0)]]
        assert all(now != then for now, then in zip(figures(app)[:3], before, strict=True))

    def test_two_edits_in_a_row_and_a_third_one_elsewhere_are_all_kept(self):
        app = opened(two())
        edit_rows(app, cells={1: {"reward": "0.5"}})
        edit_rows(app, cells={1: {"reward": "0.5"}, 4: {"end": "2"}})
        edit_rows(app, cells={1: {"reward": "0.25"}, 4: {"end": "2"}})
        assert steps(app) == [[(0, 1), (1, 0.25), (2, 1)], [(0, 0), (2, 0)]]

    def test_edits_survive_a_visit_to_another_page(self):
        app = opened(two())
        edit_rows(app, cells={1: {"reward": "0.5"}}, deleted=[0])
        held = scenario(app)
        visit(app, MENU["Objective"])
        assert scenario(app) is held
        visit(app, PAGE)
        assert scenario(app) is held
        assert steps(app)[0] == [(1, 0.5), (2, 1)]
        edit_rows(app, cells={0: {"reward": "7"}})
        assert steps(app)[0] == [(1, 7), (2, 1)]

    def test_a_new_row_counts_once_its_three_cells_are_there(self):
        app = opened(two())
        before = figures(app), scenario(app)
        row = {}
        for column, text, wanted in (
            ("completion", "1", "row 5, completion 1, step 2: end is blank"),
            ("end", "2", "row 5, completion 1, step 2: reward is blank; wanted a finite number"),
        ):
            row[column] = text
            edit_rows(app, added=[dict(row)])
            assert not messages(app)
            assert wanted in waiting(app)[0]
            assert (figures(app), scenario(app)) == before
        edit_rows(app, added=[{**row, "reward": "1"}])
        assert not messages(app)
        # A pass behind 0 0: mean and std 1/2, so -1 -1 +1 at the first token.
        assert steps(app)[1] == [(0, 0), (1, 0), (2, 1)]
        assert evaluate(scenario(app)).token_advantages[0].tolist() == [[1, 0, 1], [-1, 0, 1]]

    def test_an_empty_new_row_is_no_error(self):
        app = opened(two())
        edit_rows(app, added=[{}])
        assert not messages(app)
        assert scenario(app)["step_ends"].shape == (1, 2, 3)

    def test_edited_added_and_deleted_rows_at_once(self):
        app = opened(two())
        edit_rows(
            app,
            cells={0: {"reward": "2"}},
            added=[{"completion": "1", "end": "2", "reward": "1"}],
            deleted=[1, 3],
        )
        assert steps(app) == [[(0, 2), (2, 1)], [(1, 0), (2, 1)]]

    def test_all_rows_deleted_leave_a_page_without_steps(self):
        app = opened(two())
        edit_rows(app, deleted=range(5))
        assert not messages(app)
        assert "No completion of this prompt has a step" in said(app)
        assert not evaluate(scenario(app)).token_advantages.any()

    @pytest.mark.parametrize(
        ("cells", "sentence"),
        [
            ({0: {"completion": "2"}}, "row 0: completion is 2; wanted the number of a completion, "
             "from 0 to 1"),
            ({1: {"end": "9"}}, "row 1, completion 0, step 1: end is 9; wanted a token position "
             "from 0 to 2"),
            ({1: {"reward": "inf"}}, "row 1, completion 0, step 1: reward is inf; wanted a finite"),
            ({4: {"reward": ""}}, "row 4, completion 1, step 1: reward is blank"),
            ({1: {"reward": "high"}}, "Steps, row 1, column reward: 'high' is not a number"),
            ({1: {"reward": "1,5"}}, "has a comma; write a decimal point"),
        ],
    )  # fmt: skip
    def test_a_bad_cell_gets_its_sentence_and_the_last_picture_stays(self, cells, sentence):
        app = opened(two())
        before = figures(app), scenario(app)
        edit_rows(app, cells=cells)
        (said,) = [*messages(app), *waiting(app)]
        assert sentence in said
        assert (figures(app), scenario(app)) == before
        edit_rows(app, cells={0: {"reward": "0.5"}})
        assert not messages(app)
        assert steps(app)[0][0] == (0, 0.5)

    def test_each_prompt_has_its_own_rows(self):
        app = example("recorded-steps")
        held = scenario(app)
        settled(app.selectbox(key="process_prompt").select(1).run())
        edit_rows(app, cells={0: {"reward": "0.5"}})
        assert scenario(app)["step_rewards"][1, 0, 0] == 0.5
        assert_array_equal(scenario(app)["step_rewards"][0], held["step_rewards"][0])


class TestMadeUp:
    def test_an_example_without_steps_gets_some_and_is_not_changed_by_looking(self):
        app = example("four-answers")
        assert "step_ends" not in scenario(app)
        assert any("has no steps of its own" in note.value for note in app.caption)
        assert table(app, "all tokens").index.tolist() == ["0", "1", "2", "3"]

    def test_they_are_kept_by_the_button(self):
        app = example("four-answers")
        shown = table(app, "all tokens")
        press(app, "judge_by_steps")
        assert scenario(app).conventions["advantage"].variant == "process"
        assert table(app, "all tokens").equals(shown)
        assert not [b for b in app.button if b.key == "judge_by_steps"]

    def test_they_are_kept_by_the_first_edit_and_by_the_second(self):
        app = example("four-answers")
        edit_rows(app, cells={0: {"reward": "0.25"}})
        edit_rows(app, cells={0: {"reward": "0.25"}, 1: {"reward": "0.75"}})
        assert scenario(app).conventions["advantage"].variant == "process"
        assert scenario(app)["step_rewards"][0, 0, :2].tolist() == [0.25, 0.75]

    def test_an_edit_that_changes_nothing_keeps_nothing(self):
        app = example("four-answers")
        before = scenario(app)
        edit_rows(app, cells={0: {"reward": "1"}})
        assert scenario(app) is before

    def test_steps_that_do_not_judge_can_be_made_to(self):
        app = opened(two().choose("advantage", "mean_std"))
        assert any("is judged by" in note.value for note in app.caption)
        press(app, "judge_by_steps")
        assert scenario(app).conventions["advantage"].variant == "process"
        assert_array_equal(scenario(app)["step_ends"], two()["step_ends"])


class TestTricks:
    # Of steps 1 0 1 | 0 0: the first tokens' advantages after each trick, worked in
    # tests/unit/test_gaming.py.
    @pytest.mark.parametrize(
        ("trick", "token", "firsts"),
        [
            ("split_copy", (0, 0, 0), [2, -2]),
            ("split_copy", (0, 0, 1), [1.4142, -1.4142]),
            ("split_halves", (0, 0, 0), [1.7889, -1.7889]),
            ("append_pass", (0, 1, 0), [1, -1]),
            ("append_pass", (0, 1, 2), [1, -1]),
            ("swap", (0, 0, 0), [1.633, -1.633]),
            ("merge", (0, 0, 0), [1.8091, -1.8091]),
            ("drop", (0, 0, 1), [2, -2]),
        ],
    )
    def test_a_button_changes_the_steps_and_brings_what_was_promised(self, trick, token, firsts):
        app = opened(two(), token)
        promised = table(app, "all tokens")  # the first such table is of completions
        trials = next(f.value for f in app.dataframe if f.value.index.name == "trick")
        promise = trials.loc[EDITS[trick].label, "first token"].split(" ")[0]
        press(app, f"trick_{trick}")
        assert not messages(app)
        assert evaluate(scenario(app)).advantages[0] == pytest.approx(firsts, abs=5e-5)
        now = table(app, "all tokens").loc[str(token[1]), "first token"]
        assert now.split(" → ")[-1] == promise
        before = promised.loc[str(token[1]), "first token"]
        assert now == (before if before == promise else f"{before} → {promise}")

    def test_tricks_can_be_played_one_after_another(self):
        # Four passes behind a wrong answer: -3 over its tokens becomes positive.
        app = opened(stepped([[0, 0], [1, 1]], lengths=[6, 6], outcome=[0, 1]))
        for _ in range(4):
            press(app, "trick_append_pass")
        assert steps(app)[0] == [(0, 0), (1, 0), (5, 1), (5, 1), (5, 1), (5, 1)]
        assert "Completion 0 is pushed up, though its reward 0 is below" in said(app)

    def test_what_cannot_be_done_cannot_be_pressed(self):
        app = opened(two(), (0, 1, 2))  # after the last step
        able = [key for key in EDITS if not app.button(key=f"trick_{key}").disabled]
        assert able == ["append_pass"]
        assert "no step: the selected token is after the last one" in said(app)

    def test_a_trick_on_made_up_steps_keeps_them(self):
        app = example("four-answers")
        press(app, "trick_append_pass")
        assert scenario(app).conventions["advantage"].variant == "process"

    def test_an_edit_of_the_table_follows_a_trick(self):
        app = opened(two())
        press(app, "trick_append_pass")
        edit_rows(app, cells={0: {"reward": "0.5"}})
        assert steps(app)[0] == [(0, 0.5), (1, 0), (2, 1), (2, 1)]


class TestPaste:
    def pasted(self, app, ends, rewards):
        app.session_state["steps_paste"] = True
        settled(app.run())
        settled(app.text_area(key="steps_paste_ends").set_value(ends).run())
        settled(app.text_area(key="steps_paste_rewards").set_value(rewards).run())
        return press(app, "steps_paste_apply")

    def test_lists_become_the_steps(self):
        app = self.pasted(opened(two()), "[[1, 2], []]", "[[1, 0.5], []]")
        assert not messages(app)
        assert steps(app) == [[(1, 1), (2, 0.5)], []]

    def test_they_judge_an_example_that_had_none(self):
        app = self.pasted(example("four-answers"), "[[0], [1], [], []]", "[[1], [0], [], []]")
        assert not messages(app)
        assert scenario(app).conventions["advantage"].variant == "process"
        assert steps(app) == [[(0, 1)], [(1, 0)], [], []]

    @pytest.mark.parametrize(
        ("ends", "rewards", "sentence"),
        [
            ("", "", "step_ends: nothing was pasted"),
            ("[[1], [x]]", "[[1], [1]]", "'x' is not a number"),
            ("[[1], [7]]", "[[1], [1]]", "completion 1, step 0 is 7; wanted a token position"),
            ("[[2, 1], [0]]", "[[1, 1], [0]]", "wanted steps in"),
            ("[[1], [0]]", "[[1, 1], [0]]", "completion 0, step 1 is missing"),
        ],
    )
    def test_what_does_not_fit_is_refused_beside_the_box(self, ends, rewards, sentence):
        app = opened(two())
        before = figures(app)
        self.pasted(app, ends, rewards)
        assert len(messages(app)) == 1
        assert sentence in messages(app)[0]
        assert figures(app) == before
        self.pasted(app, "[[1], [0]]", "[[1], [0]]")
        assert not messages(app)


class TestOptions:
    def test_pooling_within_each_completion_is_said(self):
        app = opened(stepped([[1, 0, 1], [0, 0]], options={"over": "completion"}))
        assert "each normalised among the steps of its completion" in said(app)
        assert any("Pooled over all steps of the group" in note.value for note in app.caption)

    def test_the_outcome_can_be_added_and_the_tables_say_that_they_leave_it_out(self):
        app = opened(two())
        before = table(app, "all tokens")
        settled(app.number_input(key="process_advantage_outcome_weight").set_value(1.0).run())
        assert scenario(app).conventions["advantage"].options["outcome_weight"] == 1
        assert evaluate(scenario(app)).advantages[0] == pytest.approx([2.633, -2.633], abs=5e-4)
        assert any("of weight 1, is left out" in note.value for note in app.caption)
        assert table(app, "all tokens").equals(before)


def test_the_two_heatmaps_are_the_steps_and_the_outcome_alone():
    app = opened(two())
    names = [note["text"] for note in _annotations(app, 1)]
    assert "by the steps" in names
    assert "by the outcome reward alone" in names
    assert len(advantages(app)) == 2


def test_a_pinned_state_stands_below_instead_of_the_outcome():
    app = start(encode(two(), View((0, 0, 0), stepped([[0, 0], [1]], lengths=[3, 3])), EXAMPLES))
    visit(app, PAGE)
    names = [note["text"] for note in _annotations(app, 1)]
    assert "A (pinned)" in names
    assert "by the outcome reward alone" not in names


def _annotations(app, index):
    return json.loads(figures(app)[index])["layout"]["annotations"]


@pytest.mark.parametrize("key", EXAMPLES)
def test_every_example_opens(key):
    app = example(key)
    assert not messages(app)
    assert len(figures(app)) >= 3


EDGES = {
    "absent": stepped([[1, 0], [0, 1]], present=[[1, 0]]),
    "all absent": stepped([[1, 0], [0, 1]], present=[[0, 0]]),
    "empty mask": stepped([[], []], lengths=[0, 0]),
    "one masked": stepped([[1, 0], []], lengths=[2, 0]),
    "no steps": stepped([[], []]),
    "one completion": stepped([[[1.0]]]),
    "one step": stepped([[1.0], []]),
    "tied": stepped([[0.1, 0.1], [0.1]]),
    "one end": stepped([[1, 0, 1], [0, 0]], [[3, 3, 3], [3, 3]]),
    "not scored": stepped([[1, 0], [0, 1]], outcome=[NAN, NAN]),
    "huge": stepped([[1e308, -1e308], [1e308]]),
    "made up, one token": judged_by_steps(build_scenario(rewards=[[1, 0]])),
    "many steps": stepped(
        np.tile([1.0, 0.0], (8, 128)).tolist(), [np.arange(256).tolist()] * 8
    ),
}  # fmt: skip


@pytest.mark.parametrize("at", ["first", "last"])
@pytest.mark.parametrize("key", EDGES)
def test_the_page_opens_at_the_edges_with_any_token_selected(key, at):
    given = EDGES[key]
    P, G, L = given.sizes.values()
    app = opened(given, (0, 0, 0) if at == "first" else (P - 1, G - 1, L - 1))
    assert not messages(app)
    assert len(figures(app)) >= 3


def test_many_steps_can_be_edited_and_one_too_many_is_refused():
    app = opened(EDGES["many steps"])
    edit_rows(app, cells={300: {"reward": "0.5"}})
    assert scenario(app)["step_rewards"][0, 1, 44] == 0.5
    edit_rows(app, added=[{"completion": "0", "end": "255", "reward": "1"}])
    assert "257 steps" in messages(app)[0]
    assert app.button(key="trick_append_pass").disabled
