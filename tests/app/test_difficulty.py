"""The page Difficulty, driven without a browser: kinds of prompts, group size, way of dividing."""

import numpy as np
import pytest

from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.menu import MENU
from pages._ui.rate_tables import to_graded, with_kinds
from pages._ui.view import View
from tests.app.driver import (
    figures,
    messages,
    scenario,
    settled,
    start,
    table_key,
    type_cell,
    visit,
)

EXAMPLES = load_examples()


def opened(given=None):
    given = EXAMPLES["hard-and-easy-prompts"].scenario if given is None else given
    return visit(start(encode(given, View(), EXAMPLES)), MENU["Difficulty"])


def said(app):
    return " ".join(block.proto.body for block in app.get("html"))


def press(app, label):
    return settled(next(b for b in app.button if b.label == label).click().run())


def rates(app):
    return scenario(app)["reward_chances"][:, 1].tolist()


def test_an_example_without_kinds_shows_nine_and_stores_none():
    app = opened(EXAMPLES["four-answers"].scenario)
    assert "reward_chances" not in scenario(app)
    assert "0.01 or 0.99 count 1.41 times as much" in said(app)
    type_cell(app, "kinds_rates", 0, "success rate", "0.3")
    assert rates(app)[:2] == [0.3, 0.05]
    assert "0.99 count 1.41 times" in said(app)


def test_a_typed_rate_moves_the_conclusion_and_both_pictures():
    app = opened()
    before = figures(app)[:2]
    type_cell(app, "kinds_rates", 0, "success rate", "0.001")
    assert not messages(app)
    assert "rate 0.001 count 1.42 times" in said(app)
    assert all(now != then for now, then in zip(figures(app), before, strict=False))


def test_a_bad_rate_is_refused_beside_the_table_and_the_picture_stays():
    app = opened()
    before = rates(app)
    type_cell(app, "kinds_rates", 1, "success rate", "1.2")
    (message,) = messages(app)
    assert "row 1, success rate: 1.2; wanted a number from 0 to 1" in message
    assert rates(app) == before


def test_rows_can_be_added_and_removed():
    app = opened()
    app.session_state[table_key(app, "kinds_rates")] = {
        "edited_rows": {}, "added_rows": [{"success rate": "0.6"}], "deleted_rows": [0, 1],
    }  # fmt: skip
    settled(app.run())
    assert rates(app) == [0.25, 0.5, 0.75, 0.875, 0.95, 0.6]


def test_groups_of_two_weigh_all_prompts_alike():
    app = opened()
    settled(app.number_input(key="difficulty_group_size").set_value(2).run())
    assert scenario(app)["group_size"] == 2
    assert "no weighting by difficulty at all" in said(app)


@pytest.mark.parametrize("wrong", [1, 513])
def test_a_group_size_out_of_range_is_refused(wrong):
    app = opened()
    settled(app.number_input(key="difficulty_group_size").set_value(wrong).run())
    assert "wanted a whole number from 2 to 512" in " ".join(messages(app))
    assert scenario(app)["group_size"] == 8


def test_the_way_of_dividing_is_the_examples_own():
    app = opened()
    settled(app.selectbox(key="difficulty_advantage").set_value("mean_only").run())
    assert "Every prompt counts the same, 0.875. Nothing is divided by" in said(app)


def test_graded_rewards_and_back_keep_the_means():
    app = opened()
    before = rates(app)
    press(app, "Graded rewards")
    assert scenario(app)["reward_values"].tolist() == [0, 0.5, 1]
    type_cell(app, "kinds_graded", 0, "2", "0.5")
    assert not messages(app)
    assert scenario(app)["reward_chances"][0, 2] == 0.5
    press(app, "Right or wrong")
    np.testing.assert_allclose(rates(app)[1:], before[1:])


def test_values_of_the_reward_can_be_edited_added_and_taken_away():
    app = opened(to_graded(with_kinds(EXAMPLES["four-answers"].scenario)))
    type_cell(app, "reward_values", 1, "reward_values", "0.1")
    assert scenario(app)["reward_values"].tolist() == [0, 0.1, 1]
    settled(app.number_input(key="difficulty_values").set_value(4).run())
    assert scenario(app)["reward_values"].tolist() == [0, 0.1, 1, 2]
    settled(app.number_input(key="difficulty_values").set_value(2).run())
    assert scenario(app)["reward_values"].tolist() == [0, 0.1]


def test_values_that_become_0_and_1_turn_the_table_into_rates():
    app = opened()
    press(app, "Graded rewards")
    settled(app.number_input(key="difficulty_values").set_value(2).run())
    type_cell(app, "reward_values", 1, "reward_values", "1")
    assert table_key(app, "kinds_rates")
    assert not messages(app)


def test_the_batch_gives_its_rates_with_a_warning_about_its_ties():
    app = opened(EXAMPLES["tied-group"].scenario)
    press(app, "Take the batch's groups")
    assert rates(app) == [0.5, 1, 0.25]
    assert scenario(app)["group_size"] == 4
    (note,) = app.info
    assert "always ties, which its true rate need not do" in note.value.replace("\\", "")


def test_a_batch_without_scores_is_refused_in_words():
    plain = EXAMPLES["one-zero-zero-one"].scenario
    app = opened(plain.replace(rewards=np.full((1, 4), np.nan)))
    press(app, "Take the batch's groups")
    assert "no reward to take a rate from" in " ".join(messages(app))


def test_what_to_do_is_told_of_the_batch_on_the_screen():
    app = opened(EXAMPLES["tied-group"].scenario)
    assert "raises the share of prompt 2 from 42.9% to 46.4%" in said(app)
    frame = next(t.value for t in app.dataframe if "groups that teach" in t.value.columns)
    assert set(frame["groups that teach"]) == {"2"}
    type_cell(app, "rewards", 1, "0", "0")
    frame = next(t.value for t in app.dataframe if "groups that teach" in t.value.columns)
    assert set(frame["groups that teach"]) == {"3"}
