"""What the files around the code promise: packages, safe defaults, two whole themes, the image."""

import re
import tomllib
from pathlib import Path

import pytest

from pages._ui.runs import layout_text

ROOT = Path(__file__).resolve().parents[2]
CONFIG = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
REQUIREMENTS = (ROOT / "requirements.txt").read_text().split()
THEME = CONFIG["theme"]


def test_four_packages_and_no_other_are_needed_at_run_time():
    names = {re.match(r"[a-z]+", line).group() for line in REQUIREMENTS}
    assert names == {"numpy", "streamlit", "plotly", "pandas"}


def test_every_package_has_a_lowest_and_a_highest_version():
    assert all(re.fullmatch(r"[a-z]+>=[\d.]+,<[\d.]+", line) for line in REQUIREMENTS)


def test_the_core_needs_the_same_numpy_as_the_app_and_nothing_else():
    numpy = next(line for line in REQUIREMENTS if line.startswith("numpy"))
    assert PROJECT["project"]["dependencies"] == [numpy]


def test_a_public_server_shows_no_tracebacks_and_bounds_what_it_is_sent():
    assert CONFIG["client"]["showErrorDetails"] == "none"
    assert CONFIG["server"]["maxUploadSize"] <= 20
    assert CONFIG["server"]["maxMessageSize"] <= 50
    assert CONFIG["server"]["enableCORS"]
    assert CONFIG["server"]["enableXsrfProtection"]


def test_nothing_is_reported_or_fetched_elsewhere():
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert "://" not in (ROOT / ".streamlit/config.toml").read_text()
    assert "url(" not in "".join(path.read_text() for path in (ROOT / "assets").glob("*.css"))


def test_light_and_dark_set_the_same_things():
    assert THEME["light"].keys() == THEME["dark"].keys()
    assert THEME["light"]["sidebar"].keys() == THEME["dark"]["sidebar"].keys()


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("scale", ["chartDivergingColors", "chartSequentialColors"])
def test_a_scale_has_the_ten_different_colours_that_streamlit_takes(mode, scale):
    colours = THEME[mode][scale]
    assert len(colours) == len(set(colours)) == 10
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in colours)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_stands_out_from_its_ground(mode):
    # 4.5 is what WCAG 2.2 asks of text at level AA; links are text, too.
    theme = THEME[mode]
    grounds = [theme["backgroundColor"], theme["secondaryBackgroundColor"]]
    for colour in (theme["textColor"], theme["linkColor"], theme["grayColor"]):
        assert min(contrast(colour, ground) for ground in grounds) >= 4.5


def test_the_image_copies_only_what_is_there():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    sources = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert {"app.py", "grpo_core", "pages", "assets", ".streamlit"} <= set(sources)
    assert [name for name in sources if not (ROOT / name).exists()] == []


def contrast(one, other):
    """Contrast ratio of two colours, from 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour):
    """Relative luminance of ``#rrggbb`` (WCAG 2.2)."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_readme_has_the_layout_of_ones_own_arrays_as_the_page_has_it():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for part in layout_text.MARKDOWN.split("\n\n"):
        assert " ".join(part.split()) in readme
