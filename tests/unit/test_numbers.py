"""Numbers, token texts and colours as a reader sees them."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from pages._ui.figure import FAR, nice_ceiling, tick_step
from pages._ui.numbers import change, exact, number
from pages._ui.palette import PALETTES, color_scale
from pages._ui.token_text import escaped, visible

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (0.5, "0.5"),
        (-0.022713, "−0.02271"),
        (123456.7, "123457"),
        (2.5e-7, "2.5e−7"),
        (-3e12, "−3e12"),
        (np.inf, "inf"),
        (-np.inf, "−inf"),
        (np.nan, "–"),
        (None, "–"),
        (np.float32(0.1), "0.1"),
    ],
)
def test_numbers_are_short_and_have_a_real_minus_sign(value, text):
    assert number(value) == text


def test_a_signed_number_shows_its_plus_but_zero_has_no_sign():
    assert [number(x, 3, signed=True) for x in (0.8660254, -1.0, 0.0)] == ["+0.866", "−1", "0"]


@pytest.mark.parametrize("value", [0.1, -1 / 3, 1e-300, 2.0, np.float64(1e22), np.float32(0.1)])
def test_the_exact_text_gives_back_the_same_number(value):
    assert type(value)(exact(value).replace("−", "-")) == value


def test_a_change_shows_digits_until_the_two_numbers_differ():
    assert change(0.0227, 0.0311) == "0.0227 → 0.0311"
    assert change(0.50000001, 0.50000002) == "0.50000001 → 0.50000002"
    assert change(1.0, 1.0) == "1"
    assert change(np.nan, np.nan) == "–"


@pytest.mark.parametrize("value", [1e-320, 0.013, 0.99, 1.0, 1.01, 7.3, 999.0, 1e300])
def test_axis_ends_are_round_and_not_far_above(value):
    end = nice_ceiling(value)
    assert value <= end <= 1.5 * value


@pytest.mark.parametrize("value", [1.01e300, 1e308, 1.7e308, np.inf])
def test_no_axis_is_so_long_that_the_distance_of_its_ends_overflows(value):
    assert nice_ceiling(value) == FAR


def test_an_axis_without_any_size_ends_at_one():
    assert nice_ceiling(0.0) == 1.0


@pytest.mark.parametrize(("span", "step"), [(7.0, 1.0), (2.4, 0.5), (30.0, 5.0), (0.08, 0.02)])
def test_ruler_ticks_step_by_one_two_or_five(span, step):
    assert tick_step(span) == pytest.approx(step, rel=1e-12)


@pytest.mark.parametrize("span", [5e-324, 1e-310, 1e-300, 2e300, 1.7e308])
def test_a_ruler_of_any_length_has_a_step(span):
    assert 0 < tick_step(span) <= span


def test_invisible_characters_of_a_token_are_shown():
    assert visible(" the\n\t") == "␣the↵⇥"
    assert visible("a\u202eb\x07") == "a\\u202eb\\u0007"


def test_long_texts_are_cut_with_an_ellipsis():
    assert visible("x" * 41) == "x" * 39 + "…"
    assert visible("x" * 40) == "x" * 40


@pytest.mark.parametrize("text", ["<b>bold</b>", "<a href='x'>", "&lt;", "$\\frac12$", "a & b"])
def test_no_token_text_can_act_as_markup(text):
    shown = escaped(text)
    assert not re.search(r"[<>$]|&(?!amp;|lt;|gt;|#36;)", shown)


def test_the_palettes_are_those_of_the_theme():
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    for name, palette in PALETTES.items():
        theme = config["theme"][name]
        assert palette.background == theme["backgroundColor"]
        assert palette.panel == theme["secondaryBackgroundColor"]
        assert palette.text == theme["textColor"]
        assert palette.line == theme["borderColor"]
        assert list(palette.categories) == theme["chartCategoricalColors"]
        assert list(palette.diverging) == theme["chartDivergingColors"]
        assert list(palette.sequential) == theme["chartSequentialColors"]


@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_text_is_readable_on_its_background(palette):
    for color in (palette.text, palette.faint):
        for background in (palette.background, palette.panel):
            assert _contrast(color, background) >= 4.5  # WCAG 2.2, success criterion 1.4.3


@pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
def test_the_colour_of_a_number_follows_its_sign(palette):
    assert palette.of_sign(2.0) == palette.positive
    assert palette.of_sign(-1e-9) == palette.negative
    assert palette.of_sign(0.0) == palette.neutral


def test_a_colour_scale_runs_from_zero_to_one():
    scale = color_scale(("#000000", "#777777", "#ffffff"))
    assert [stop for stop, _ in scale] == [0.0, 0.5, 1.0]


def _contrast(one, other):
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
