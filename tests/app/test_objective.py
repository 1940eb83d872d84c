"""The page Objective, driven without a browser: mask, beta, aggregation, parts of the gradient."""

import json

import pytest

from grpo_core import STAGES, evaluate
from pages._ui.examples import load_examples
from pages._ui.link import encode
from pages._ui.menu import MENU
from pages._ui.numbers import number
from pages._ui.view import View
from tests.app.driver import data, figures, messages, scenario, settled, start, type_cell, visit

EXAMPLES = load_examples()


def opened(key="four-answers"):
    return visit(start(encode(EXAMPLES[key].scenario, View(), EXAMPLES)), MENU["Objective"])


def said(app):
    return " ".join(block.proto.body for block in app.get("html"))


def trace(app, name):
    return next(t for chart in data(app) for t in chart if t.get("name") == name)


def compared(app):
    """Names of the aggregations in the table that compares them."""
    frames = (table.value for table in app.dataframe)
    return next(frame for frame in frames if "gradient norm" in frame.columns).index


def press(app, label):
    return settled(next(b for b in app.button if b.label == label).click().run())


@pytest.mark.parametrize("key", ["four-answers", "recorded-batch", "tied-group", "kl-spike"])
def test_the_drawn_objective_is_the_evaluations(key):
    app = opened(key)
    assert trace(app, "objective")["x"]
    loss = number(evaluate(scenario(app)).loss)
    assert loss in said(app)


def test_a_token_taken_out_of_the_mask_changes_every_picture():
    app = opened()
    before = figures(app)
    type_cell(app, "mask", 3, "0", False)
    assert not messages(app)
    assert not scenario(app)["mask"][0, 3, 0]
    assert all(now != then for now, then in zip(figures(app), before, strict=True))


def test_beta_0_takes_the_kl_part_away():
    app = opened()
    settled(app.number_input(key="objective_kl_beta").set_value(0.0).run())
    assert scenario(app).conventions["kl"].options["beta"] == 0
    assert "the KL part is 0" in said(app)


def test_every_aggregation_can_be_chosen_by_its_button():
    app = opened()
    for variant in STAGES["aggregation"].variants.values():
        if scenario(app).conventions["aggregation"].variant != variant.key:
            press(app, f"Use {variant.label}")
        assert scenario(app).conventions["aggregation"].variant == variant.key
        off = [b.label for b in app.button if b.label.startswith("Use ") and b.disabled]
        assert off == [f"Use {variant.label}"]
        marked = [name for name in compared(app) if name.startswith("●")]
        assert marked == [f"● {variant.label}"]


def test_an_option_of_the_aggregation_is_kept_when_it_is_compared():
    app = opened()
    press(app, "Use constant length (Dr. GRPO)")
    settled(app.number_input(key="objective_aggregation_length").set_value(50).run())
    assert scenario(app).conventions["aggregation"].options["length"] == 50
    assert any("50" in name for name in compared(app))


def test_the_gradient_shows_the_part_that_is_asked_for():
    app = opened()
    titles = {"gradient": "Gradient", "policy_gradient": "Gradient of the surrogate",
              "kl_gradient": "Gradient of the KL"}  # fmt: skip
    for part, title in titles.items():
        app.session_state["objective_part"] = part
        settled(app.run())
        names = [t.get("name") for spec in figures(app) for t in json.loads(spec)["data"]]
        assert title in names


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("on-policy", "They cancel: the loss is 0"),
        ("token-mean-on-policy", "the completions do not weigh the same"),
        ("tied-group", "Prompt 1 has only advantages of 0"),
        ("one-zero-zero-one", "Training follows the gradient"),
    ],
)
def test_the_page_explains_the_loss(key, words):
    assert words in said(opened(key))
