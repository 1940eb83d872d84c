"""Charts: pure functions from Evaluations to Plotly figures. Pages import them from here."""

from .bars import advantage_bars, formula_bars
from .case_bars import case_bars
from .cell_traces import CELLS
from .figure import CONFIG, alt_text
from .heatmaps import token_heatmap
from .quantities import PIPELINE, QUANTITIES
from .strip import group_strip
from .surrogate_chart import surrogate_chart

__all__ = [
    "CELLS",
    "CONFIG",
    "PIPELINE",
    "QUANTITIES",
    "advantage_bars",
    "alt_text",
    "case_bars",
    "formula_bars",
    "group_strip",
    "surrogate_chart",
    "token_heatmap",
]
