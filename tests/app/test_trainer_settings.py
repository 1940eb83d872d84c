"""The block of trainer settings on the page Conventions: lines to copy, and a field to paste."""

import pytest

from pages._ui.menu import MENU
from tests.app.driver import settled, start, visit

KEY = "conventions_setting"
STORE = "store"


@pytest.fixture
def app():
    return visit(start(), MENU["Conventions"])


def paste(app, text):
    return settled(app.text_area(key=KEY).set_value(text).run())


def test_the_lines_follow_the_example(app):
    assert any("GRPOConfig(" in code.value for code in app.code)


def test_pasted_settings_are_taken_and_what_stays_is_said(app):
    paste(app, "GRPOConfig(epsilon_high=0.28, beta=0.01, use_vllm=True)")
    settled(app.button(key=f"{KEY}_take").click().run())
    conventions = app.session_state[STORE].scenario.conventions
    assert conventions["surrogate"].options["epsilon_high"] == 0.28
    assert conventions["kl"].options["beta"] == 0.01
    assert conventions["correction"].variant == "none"
    assert any("logp\\_sampler" in info.value for info in app.info)


def test_a_text_that_cannot_be_read_changes_nothing_and_says_so(app):
    before = app.session_state[STORE].scenario
    paste(app, "GRPOConfig(")
    assert any("not closed" in error.value for error in app.error)
    assert not [button for button in app.button if button.key == f"{KEY}_take"]
    assert app.session_state[STORE].scenario is before
    paste(app, "")
    assert not app.error


def test_a_text_that_is_too_long_is_answered_and_the_field_stays_usable(app):
    text = "GRPOConfig(beta=0.1)\n" + "x y z " * 33_000
    paste(app, text)
    assert any("at most 60\\,000 are read" in error.value for error in app.error)
    assert app.text_area(key=KEY).value == text
    paste(app, "beta: 0.1")
    assert not app.error
    assert app.button(key=f"{KEY}_take")


def test_with_nothing_read_there_is_nothing_to_take(app):
    paste(app, "GRPOConfig(beta=args.beta)")
    assert not [button for button in app.button if button.key == f"{KEY}_take"]


def test_marks_in_a_pasted_text_are_shown_and_never_obeyed(app):
    paste(app, "beta: 0.1\n'<b>mark</b>': 1\n**bold**: 2")
    shown = " ".join(block.proto.body for block in app.get("html"))
    assert "<b>mark" not in shown
    assert "&lt;b&gt;mark" in shown
