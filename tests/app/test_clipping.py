"""Clipping, driven without a browser: the drift, its two buttons, both tables, the switch."""

import json

import numpy as np
import pytest

from grpo_core import effective_logp_new, evaluate, same_scenario
from grpo_core.clip_cases import clip_cases
from grpo_core.drift import keep_drift, seeded_direction, with_drift
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
    type_cell,
    visit,
)

EXAMPLES = load_examples()
ROW = MENU["Clipping"]


def opened(key="four-answers", **changes):
    """The page with an example, changed by ``drift=`` if asked for."""
    shown = EXAMPLES[key].scenario
    if "drift" in changes:
        shown = with_drift(shown, changes["drift"])
    return visit(start(encode(shown, View(), EXAMPLES)), ROW)


def tokens(app, sign):
    """How many tokens the picture of one sign holds, and how many of them are crossed."""
    picture = data(app)[0 if sign > 0 else 1]
    sizes = {trace["name"]: len(trace.get("customdata", ())) for trace in picture}
    return sum(sizes.get(name, 0) for name in ("tokens", "clipped")), sizes.get("clipped", 0)


def buttons(app):
    return {button.key for button in app.button}


def test_the_pictures_hold_every_valid_token_and_cross_the_clipped_ones():
    app = opened()
    evaluation = evaluate(scenario(app))
    cases = {item.case.key: item.tokens for item in clip_cases(evaluation)}
    up, down = tokens(app, 1), tokens(app, -1)
    assert up[0] + down[0] == np.sum(evaluation.valid)
    assert (up[1], down[1]) == (cases["clipped_high"], cases["clipped_low"])


def test_the_slider_moves_the_pictures_and_not_the_table():
    app = opened()
    stored = scenario(app)["logp_new"]
    before = figures(app)
    settled(app.slider(key="clipping_drift").set_value(2.0).run())
    assert scenario(app).drift == 2.0
    assert scenario(app)["logp_new"].tobytes() == stored.tobytes()
    assert figures(app) != before
    assert any("at 2" in caption.value for caption in app.caption)
    settled(app.slider(key="clipping_drift").set_value(0.0).run())
    assert (tokens(app, 1)[1], tokens(app, -1)[1]) == (0, 0)


def test_the_drift_is_in_the_link_and_keeping_it_changes_no_picture():
    app = opened(drift=2.5)
    assert app.slider(key="clipping_drift").value == 2.5
    loss = evaluate(scenario(app)).loss
    kept = keep_drift(scenario(app))
    settled(app.button(key="clipping_keep").click().run())
    assert same_scenario(scenario(app), kept)
    assert evaluate(scenario(app)).loss == loss
    assert "clipping_keep" not in buttons(app)


def test_a_drift_that_no_slider_reaches_is_drawn_and_said():
    app = opened(drift=-1e200)
    assert scenario(app).drift == -1e200
    assert not messages(app)
    assert any("1e200" in caption.value for caption in app.caption)


def test_a_drift_above_zero_is_held_and_named():
    app = opened(drift=3.0)
    _, held = effective_logp_new(scenario(app))
    assert held.any()
    said = " ".join(block.proto.body for block in app.get("html"))
    assert "held at 0" in said


def test_an_on_policy_batch_is_offered_a_direction_and_then_clips():
    app = opened("on-policy")
    start_from = scenario(app)
    settled(app.button(key="clipping_direction").click().run())
    assert same_scenario(scenario(app), seeded_direction(start_from, 0))
    assert "clipping_direction" not in buttons(app)
    settled(app.slider(key="clipping_drift").set_value(3.0).run())
    assert tokens(app, 1)[1] + tokens(app, -1)[1] > 0


def test_where_every_token_has_moved_no_direction_is_offered():
    assert "clipping_direction" not in buttons(opened("every-clip-case"))


def test_both_policies_can_be_edited_beside_the_advantage():
    app = opened()
    frame = app.data_editor[0].value
    assert frame["A"].tolist() == ["+1.21", "−1.21", "+0.728", "−0.728"]
    before = figures(app)
    type_cell(app, "logp_new", 0, "2", "-0.75")
    assert scenario(app)["logp_new"][0, 0, 2] == -0.75
    assert figures(app) != before
    app.session_state["clipping_logp"] = "Log-probabilities, old policy"
    settled(app.run())
    before = figures(app)
    type_cell(app, "logp_old", 1, "3", "-0.5")
    assert scenario(app)["logp_old"][0, 1, 3] == -0.5
    assert figures(app) != before


def test_the_pictures_hold_all_prompts_or_the_shown_one():
    app = opened("recorded-batch")
    evaluation = evaluate(scenario(app))
    everything = tokens(app, 1)[0]
    assert everything == np.sum(evaluation.valid & (evaluation.token_advantages > 0))
    settled(app.segmented_control(key="clipping_tokens").set_value("one").run())
    alone = tokens(app, 1)[0]
    assert alone == np.sum((evaluation.valid & (evaluation.token_advantages > 0))[0])
    bars = next(trace for picture in data(app) for trace in picture
                if trace["name"] == "share of the tokens")  # fmt: skip
    assert bars["x"] == [item.share for item in clip_cases(evaluation, 0)]


@pytest.mark.parametrize("variant", ["clip", "dual_clip"])
def test_every_surrogate_and_ratio_draws_its_own_curve(variant):
    app = opened("every-clip-case")
    settled(app.selectbox(key="clipping_surrogate").select(variant).run())
    settled(app.selectbox(key="clipping_ratio").select("sequence").run())
    assert scenario(app).conventions["ratio"].variant == "sequence"
    assert not messages(app)
    curve = next(t for t in json.loads(figures(app)[1])["data"] if t["name"] == "surrogate")
    assert curve["x"]["shape"] if "shape" in curve["x"] else curve["x"]["bdata"]
