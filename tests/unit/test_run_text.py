"""Texts of a run as HTML: nothing in them is ever markup, and colours can be read."""

import html

import numpy as np
import pytest

from pages._ui.palette import PALETTES
from pages._ui.run_text import coloured_text, contrast, ink, plain_text, safe, shade
from tests.unit.tags import Tags

LIGHT = PALETTES["light"]
every_palette = pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' style='position:fixed",
    "$x$ and $$y$$",
    "&amp;&lt;script&gt;",
    "```html\n<b>\n```",
    "a\u202eb\u2066c\u200d",
    "\ud800 alone \udfff",
    "\x00\x1b[31m\x7f\x85",
    "line\r\nline\u2028line",
    "e\u0301\u0301\u0301",
    "{{ 1 + 1 }} ${alert(1)}",
)


def harmless(text):
    """Only our own tags with our own attributes; can be sent as UTF-8; nothing invisible."""
    text.encode()
    for tag, attributes in Tags(text).found:
        assert tag in ("div", "p", "span", "br")
        assert set(attributes) <= {"style", "title", "dir"}
    hidden = [c for c in text if ord(c) < 32 or c in "\x7f\x85\u202e\u2066\u2028\u200b"]
    assert not hidden


@pytest.mark.parametrize("text", HOSTILE)
@every_palette
def test_whatever_a_model_wrote_is_shown_and_never_read(text, palette):
    for written in (
        plain_text(text),
        coloured_text([text, "b"], [1.0, -1.0], palette, title="t"),
        coloured_text(["a"], [1.0], palette, title=text),
    ):
        harmless(written)


@pytest.mark.parametrize("text", HOSTILE[:7])
def test_escaped_text_reads_as_it_was(text):
    assert Tags(safe(text)).text == text.replace("\n", "↵")


def test_what_is_not_seen_is_shown_by_its_code_in_full():
    assert safe("a\u202eb") == "a\\u202eb"
    assert safe("\u202e" * 50) == "\\u202e" * 50
    assert safe("\U000e0041") == "\\ue0041"


def test_line_ends_are_signs_and_breaks_and_blanks_stay_blanks():
    assert safe("a b\nc\td") == "a b↵<br>c⇥d"


@pytest.mark.parametrize(
    ("size", "said"), [(10, None), (4000, None), (4001, "1 more character"),
                       (7210, "3,210 more characters"), (1_000_000, "996,000 more characters")]
)  # fmt: skip
def test_a_long_text_is_cut_and_says_by_how_much(size, said):
    for written in (plain_text("x" * size), coloured_text(["x" * size], [1], LIGHT, title="")):
        assert written.count("x") < 4100
        assert ("more character" in written) == (said is not None)
        assert said is None or said in written


def test_of_many_tokens_the_first_are_shown():
    written = coloured_text(["ab"] * 100, np.ones(100), LIGHT, title="", limit=20)
    assert written.count("ab</span>") == 10
    assert "90 more tokens" in written


def test_empty_tokens_count_as_one_character():
    written = coloured_text([""] * 100, np.ones(100), LIGHT, title="", limit=20)
    assert written.count("·</span>") == 20


@every_palette
def test_text_stands_out_from_every_colour(palette):
    for value in np.linspace(-1.2, 1.2, 1001):
        back = shade(value, 1.0, palette)
        assert contrast(ink(back, palette), back) >= 4.5


@every_palette
def test_stronger_values_stand_further_from_the_ground(palette):
    for sign in (1, -1):
        steps = [
            contrast(shade(sign * value, 1.0, palette), palette.background)
            for value in np.linspace(0.05, 1, 20)
        ]
        assert steps[-1] > steps[10] > steps[0]
        assert np.all(np.diff(steps) > -0.2)


def test_sign_is_told_by_colour_and_by_line():
    spans = [
        attributes["style"]
        for _, attributes in Tags(
            coloured_text(["a", "b", "c", "d"], [1, -1, 0, np.nan], LIGHT, title="")
        ).found
        if attributes.get("title")
    ]
    up, down, zero, none = spans
    assert LIGHT.diverging[-1] in up
    assert LIGHT.diverging[0] in down
    assert ("solid" in up, "dotted" in down) == (True, True)
    assert "background" not in zero + none
    assert "border" not in zero + none


def test_the_exact_number_is_the_tooltip():
    written = coloured_text(["a", "b"], [0.1 + 0.2, np.nan], LIGHT, title="")
    titles = [
        attributes["title"] for _, attributes in Tags(written).found if attributes.get("title")
    ]
    assert titles == ["0.30000000000000004", "no value"]


def test_texts_may_share_a_scale():
    alone = coloured_text(["a"], [0.5], LIGHT, title="value")
    shared = coloured_text(["a"], [0.5], LIGHT, title="value", largest=1.0)
    assert LIGHT.diverging[-1] in alone
    assert "+0.5" in alone
    assert "+1" in shared
    assert f'title="0.5" style="margin-right:1px;background:{shade(0.5, 1, LIGHT)}' in shared


@pytest.mark.parametrize(
    "values", [[], [np.nan] * 3, [0.0] * 3, [np.inf, -np.inf, 1.0], [1e308, -1e308, 5e-324]]
)
@pytest.mark.parametrize("largest", [None, 0.0, 2.0])
def test_every_kind_of_number_can_be_drawn(values, largest):
    written = coloured_text("abc", values, LIGHT, title="t", largest=largest)
    harmless(written)
    assert "nan" not in html.unescape(written)
