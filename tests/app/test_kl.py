"""The KL page, driven without a browser: curves, the two places, the two distributions."""

import json

import numpy as np
import pytest

from grpo_core import evaluate
from grpo_core.estimators import compare
from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.menu import MENU
from pages._ui.numbers import number
from pages._ui.view import View
from tests.app.driver import figures, messages, scenario, settled, start, type_cell, visit

EXAMPLES = load_examples()
SAMPLED = "Estimates against the exact KL"


def kl_page(key="four-answers", part=None):
    app = visit(start(encode(EXAMPLES[key].scenario, View(), EXAMPLES)), MENU["KL"])
    if part:
        app.session_state["kl_parts"] = part
        settled(app.run())
    return app


def figure(app, words):
    """The figure whose alternative text begins so."""
    return next(chart for chart in app.get("plotly_chart") if chart.proto.alt.startswith(words))


def said(app):
    return " ".join(block.proto.body for block in app.get("html"))


def test_choosing_another_estimate_moves_the_tokens_to_its_curve():
    app = kl_page()
    for row in ("k1", "k2"):
        settled(app.selectbox(key="kl_kl").select(row).run())
        evaluation = evaluate(scenario(app))
        assert f"Mean KL {number(evaluation.mean_kl)} by {row}." in said(app)
        drawn = json.loads(figure(app, "Curves").proto.spec)["data"]
        widths = {trace["name"]: trace["line"]["width"] for trace in drawn
                  if trace["mode"] == "lines"}  # fmt: skip
        assert max(widths, key=widths.get) == row


@pytest.mark.parametrize(("key", "on"), [("four-answers", False), ("kl-spike", True)])
def test_the_log_scale_is_on_where_a_spike_needs_it_and_can_be_switched(key, on):
    app = kl_page(key)
    (switch,) = app.toggle
    assert switch.value is on
    before = figures(app)
    settled(switch.set_value(not on).run())
    assert figures(app) != before
    assert app.toggle[0].value is not on


def test_the_penalty_can_be_moved_into_the_reward():
    app = kl_page("kl-in-reward")
    settled(app.selectbox(key="kl_kl_place").select("objective").run())
    assert scenario(app).conventions["kl"].options["place"] == "objective"
    assert not evaluate(scenario(app)).reward_penalty.any()
    assert "In the objective the penalty has a gradient of its own" in " ".join(
        caption.value for caption in app.caption
    )


def test_closed_parts_draw_nothing():
    app = kl_page()
    assert not any(chart.proto.alt.startswith("Mean of up to") for chart in app.get("plotly_chart"))
    app = kl_page(part=SAMPLED)
    assert figure(app, "Mean of up to")
    assert figure(app, "Bars: expected gradient")
    assert not any("in the reward below" in chart.proto.alt for chart in app.get("plotly_chart"))


def test_editing_a_distribution_changes_the_exact_kl_and_goes_into_the_link():
    app = kl_page(part=SAMPLED)
    assert "0.5108 nats" in said(app)
    type_cell(app, "dist_ref", 0, "dist_ref", "0.5")
    type_cell(app, "dist_ref", 1, "dist_ref", "0.3")
    assert scenario(app)["dist_ref"].tolist() == [0.5, 0.3]
    assert f"{number(compare(scenario(app)).reverse)} nats" in said(app)
    assert "add up to 0.8" in said(app)
    link = app.query_params["s"]
    fresh = start(link[0] if isinstance(link, list) else link)
    assert scenario(fresh)["dist_ref"].tolist() == [0.5, 0.3]
    assert scenario(fresh)["dist_new"].tolist() == [0.5, 0.5]


def test_a_negative_probability_is_named_and_the_last_good_picture_stays():
    app = kl_page(part=SAMPLED)
    before = figures(app)
    type_cell(app, "dist_new", 1, "dist_new", "-0.5")
    assert "token 1" in messages(app)[0]
    assert figures(app) == before


def test_tokens_seed_and_starting_pairs():
    app = kl_page(part=SAMPLED)
    settled(app.number_input(key="kl_size_V").set_value(4).run())
    assert scenario(app)["dist_new"].tolist() == [0.5, 0.5, 0, 0]
    before = figures(app)
    settled(app.number_input(key="kl_seed").set_value(5).run())
    assert scenario(app)["seed"] == 5
    assert figures(app) != before
    pair = "A token that the reference never gives"
    settled(app.selectbox(key="kl_pair").select(pair).run())
    assert scenario(app)["dist_ref"].tolist() == [0.5, 0.5, 0]
    assert "is infinite, as the policy gives token 2" in said(app)
    settled(app.number_input(key="kl_size_V").set_value(2).run())
    assert np.isfinite(compare(scenario(app)).reverse)
    assert not messages(app)


def test_the_findings_answer_whether_a_kl_can_be_negative():
    app = kl_page()
    settled(app.selectbox(key="kl_kl").select("k1").run())
    assert "k1 is below 0 at 10 of 35 tokens" in said(app)
    assert "k1 in the objective gives every token the same gradient" in said(app)
    assert "One token makes up" in said(kl_page("kl-spike"))
    assert "The estimates of one KL differ" in said(kl_page("recorded-batch"))
