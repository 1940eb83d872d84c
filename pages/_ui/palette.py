"""Colours, light and dark. The same quantity has the same colour on every page."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Palette:
    """Colours of one theme; the theme file of the app holds the same values.

    ``diverging`` runs from negative to positive and meets zero between its two middle
    colours; ``sequential`` runs from zero upwards.
    """

    background: str
    panel: str
    text: str
    faint: str
    line: str
    positive: str
    negative: str
    neutral: str
    categories: tuple[str, ...]
    diverging: tuple[str, ...]
    sequential: tuple[str, ...]

    def of_sign(self, value):
        """Colour of a signed number."""
        return self.positive if value > 0 else self.negative if value < 0 else self.neutral


PALETTES: Mapping[str, Palette] = MappingProxyType(
    {
        "light": Palette(
            background="#ffffff",
            panel="#f6f7f9",
            text="#1b1f24",
            faint="#5b6670",
            line="#e3e6ea",
            positive="#1f5fa8",
            negative="#c8612a",
            neutral="#9aa3ad",
            categories=("#1f5fa8", "#c8612a", "#2e8b6f", "#8a63b8", "#a8862a", "#5b6670"),
            diverging=(
                "#b2500f", "#d0763a", "#e59d6b", "#f3c6a5", "#faeee6",
                "#eaf0f7", "#b5cfe8", "#7fadd8", "#4a86c2", "#1f5fa8",
            ),
            sequential=(
                "#f2f6fb", "#d0e0f1", "#afcbe6", "#8fb5db", "#709fd0",
                "#4f89c4", "#3573b5", "#1e5ca4", "#154984", "#0d3666",
            ),
        ),
        "dark": Palette(
            background="#0f1318",
            panel="#171c23",
            text="#e6e9ed",
            faint="#9aa6b2",
            line="#2a313a",
            positive="#6ba7e6",
            negative="#e8935c",
            neutral="#6d7884",
            categories=("#6ba7e6", "#e8935c", "#5fc2a1", "#b99be0", "#d6b65a", "#9aa6b2"),
            diverging=(
                "#f0a26c", "#d98448", "#a8622f", "#6e4526", "#2c2722",
                "#222a33", "#274a6b", "#2f6aa0", "#4a8fd0", "#7ab8f5",
            ),
            sequential=(
                "#1d2733", "#233a52", "#284f73", "#2e6395", "#3a79b3",
                "#4a8fd0", "#65a6e5", "#84bdf6", "#add4fa", "#d6eafc",
            ),
        ),
    }
)  # fmt: skip


def color_scale(colors):
    """Evenly spaced stops for a Plotly colour scale."""
    last = len(colors) - 1
    return [[index / last, color] for index, color in enumerate(colors)]
