"""Your run without a browser: every tab, both runs, the way to other pages, choices that stay."""

import numpy as np
import pytest

from grpo_core import evaluate
from pages._ui.menu import MENU
from pages._ui.run_report_panels import report_of
from pages._ui.runs.opening import look, open_run, sources_of_uploads
from tests.app.driver import data, messages, scenario, settled, start, visit
from tests.unit.judged_runs import RUNS

ROW = MENU["Your_run"]
TABS = (
    "Groups",
    "Every picture over the steps",
    "Convention",
    "Columns and settings",
    "Record log-probabilities",
)


def opened(tab="Groups", **choices):
    """The page with a run and a tab chosen."""
    app = visit(start(), ROW)
    for name, value in choices.items():
        setattr(app.session_state["runs"], name, value)
    app.session_state["run_tabs"] = tab
    return settled(app.run())


def press(app, label):
    return settled(next(button for button in app.button if button.label == label).click().run())


def text(app):
    """All text that the page shows, HTML blocks included."""
    blocks = [*(block.proto.body for block in app.get("html")), *(m.value for m in app.markdown)]
    return "\n".join([*blocks, *(caption.value for caption in app.caption)])


@pytest.mark.parametrize("run", ["trl-addition", "trl-addition-step-bonus"])
@pytest.mark.parametrize("tab", TABS)
def test_every_tab_of_every_shipped_run_is_drawn(run, tab):
    app = opened(tab, shown=run)
    assert not messages(app)
    assert data(app)


@pytest.mark.parametrize("tab", TABS[:3])
def test_a_second_run_is_drawn_beside_the_first(tab):
    alone, both = opened(tab), opened(tab, beside="trl-addition")
    assert sum(map(len, data(both))) > sum(map(len, data(alone)))


def test_the_hacked_run_says_so_first_and_the_healthy_one_does_not():
    assert "“step_count” is being hacked, and step 79 is the turn" in text(opened())
    assert "is being hacked" not in text(opened(shown="trl-addition"))


def test_a_finding_leads_to_its_step_and_a_group():
    app = opened()
    assert app.session_state["runs"].held["trl-addition-step-bonus"].step == 79
    app = press(app, "Show step 113")
    assert app.session_state["runs"].held["trl-addition-step-bonus"].step == 113
    app = press(app, "Show the group")
    held = app.session_state["runs"].held["trl-addition-step-bonus"]
    assert held.opened.run.steps[held.group] == held.step
    assert "no signal" in text(app)


def test_a_group_without_tokens_says_so_and_leads_to_the_nearest_that_has_them():
    app = opened()
    assert "No per-token arrays of this group were recorded" in text(app)
    app = press(app, "Show step 81, which has them")
    assert "No per-token arrays" not in text(app)
    assert "Colour: advantage" in text(app)


def test_opening_a_group_makes_it_the_example_with_the_convention_of_the_run():
    app = opened()
    run = app.session_state["runs"].held["trl-addition-step-bonus"]
    app = press(press(app, "Show step 81, which has them"), "Open this group everywhere")
    taken, q = scenario(app), run.group
    assert taken.sizes["P"] == 1
    assert taken.conventions["advantage"].options["ddof"] == 1
    assert taken.conventions["kl"].options["beta"] == 0.02
    assert [term.name for term in taken.terms] == ["step_count"]
    np.testing.assert_allclose(
        evaluate(taken).advantages[0], run.opened.run.advantages[q], atol=1e-5
    )


def test_opening_a_group_leaves_the_page_where_it_was():
    app = press(opened(), "Show step 81, which has them")
    run = app.session_state["runs"].held["trl-addition-step-bonus"]
    where = (run.step, run.group)
    app = visit(press(app, "Open this group everywhere"), ROW)
    assert (run.step, run.group) == where


def test_the_whole_step_opens_too():
    app = opened()
    app = press(press(app, "Show step 81, which has them"), "Open the whole step")
    assert scenario(app).sizes["P"] == 8


def test_typed_weights_change_what_is_said_and_can_be_taken_back():
    app = opened("Convention")
    run = app.session_state["runs"].held["trl-addition-step-bonus"]
    before = text(app)
    app.number_input(key="run_weight_trl-addition-step-bonus_1").set_value(0.1)
    app = settled(app.run())
    assert run.weights == (1.0, 0.1)
    assert text(app) != before
    app = press(app, "As found again")
    assert run.weights is None
    assert text(app) == before


def test_another_task_turns_the_question_round():
    app = opened("Columns and settings")
    app.selectbox(key="run_task_trl-addition-step-bonus").set_value("step_count")
    app = settled(app.run())
    assert "is being hacked" not in text(app)


def test_roles_that_leave_no_reward_are_refused_and_the_run_stays():
    app = opened("Columns and settings")
    for name in ("correctness", "step_count"):
        app.selectbox(key=f"run_role_trl-addition-step-bonus_{name}").set_value("ignore")
    app = press(app, "Read again with these")
    assert any("no column with a reward" in message for message in messages(app))
    assert "“step_count” is being hacked" in text(app)


def test_a_column_left_out_is_gone_from_the_rewards():
    app = opened("Columns and settings")
    app.selectbox(key="run_role_trl-addition-step-bonus_step_count").set_value("ignore")
    app = press(app, "Read again with these")
    held = app.session_state["runs"].held["trl-addition-step-bonus"]
    assert held.opened.run.names == ("correctness",)
    assert not messages(app)


def test_settings_that_cannot_be_read_are_said_and_the_defaults_stand_in():
    app = opened("Columns and settings")
    app.text_area(key="run_settings_trl-addition-step-bonus").set_value("GRPOConfig(beta=")
    app = settled(app.run())
    assert any("settings were not read" in message for message in messages(app))
    assert "Groups open under the defaults of TRL 1.16" in text(app)


def test_visiting_another_page_keeps_run_step_and_choices():
    app = press(opened(shown="trl-addition"), "Show the group")
    step = app.session_state["runs"].held["trl-addition"].step
    app = visit(visit(app, MENU["KL"]), ROW)
    assert app.session_state["runs"].shown == "trl-addition"
    assert app.session_state["runs"].held["trl-addition"].step == step
    assert "122 of 1,600 groups" in text(app)


def test_the_page_leaves_the_example_of_the_other_pages_alone():
    app = start()
    before = scenario(app)
    assert scenario(visit(app, ROW)) is before


def test_every_format_of_run_can_be_shown_without_advantages_lengths_or_a_log():
    rows = ["question,answer,score"] + [f"q{k // 4},a{k},{k % 3}" for k in range(12)]
    survey = look(sources_of_uploads([("scores.csv", "\n".join(rows).encode())]))
    for tab in TABS:
        app = visit(start(), ROW)
        here = app.session_state["runs"]
        first = here.held["trl-addition-step-bonus"]
        here.held["upload 1"] = type(first)("upload 1", "Yours", survey, open_run(survey))
        here.shown = "upload 1"
        app.session_state["run_tabs"] = tab
        app = settled(app.run())
        assert not messages(app)


def test_the_report_holds_every_sentence_of_the_page():
    app = opened()
    here = app.session_state["runs"]
    page = report_of(here.held[here.shown], None)
    assert "“step_count” is being hacked, and step 79 is the turn" in page
    assert (RUNS / "trl-addition.zip").stat().st_size + (
        RUNS / "trl-addition-step-bonus.zip"
    ).stat().st_size < 3_000_000
