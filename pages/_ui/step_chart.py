"""Each completion's tokens with its steps: where they end, and what each was worth."""

from functools import partial

import numpy as np

from .figure import FONT_SIZE
from .heatmaps import token_heatmap
from .numbers import number

_WIDE = 56  # pixels of a column from which on a reward fits beside its bar, on a phone too
_MOST = 400  # bars; more would be a smear


def step_strip(evaluation, prompt, *, palette, former=None, pinned=None, selected=None):
    """The tokens of one prompt's completions, coloured by the reward of their step.

    A bar stands where a step ends, its reward above it where there is room; several steps
    that end at one token have one bar. Tokens after the last step stay empty.
    """
    return token_heatmap(
        evaluation,
        "step_rewards",
        prompts=prompt,
        palette=palette,
        former=former,
        selected=selected,
        written=True,
        over=partial(_bars, evaluation.scenario, prompt),
    )


def _bars(scenario, prompt, grid, column, palette):
    if "step_ends" not in scenario:
        return [], []
    present = scenario["present"][prompt][:, None]
    ends = np.where(present, scenario["step_ends"][prompt], np.nan)
    rewards = scenario["step_rewards"][prompt]
    ending = {}  # (completion, token) -> rewards of the steps that end there
    for g, s in np.argwhere(~np.isnan(ends))[:_MOST].tolist():
        ending.setdefault((g, int(ends[g, s])), []).append(rewards[g, s])
    bars = [_bar(g, end, palette) for g, end in ending]
    labels = [_label(g, end, worth, palette) for (g, end), worth in ending.items()]
    return bars, labels if column >= _WIDE else []


def _bar(g, end, palette):
    x = end + 0.5
    line = {"color": palette.text, "width": 2.5}
    return {"type": "line", "x0": x, "x1": x, "y0": g - 0.46, "y1": g + 0.46, "line": line}


def _label(g, end, worth, palette):
    text = ", ".join(number(value, 2) for value in worth[:3]) + (", …" if len(worth) > 3 else "")
    return {
        "text": text, "x": end + 0.5, "y": g - 0.49, "xanchor": "right", "yanchor": "top",
        "xshift": -3, "showarrow": False, "bgcolor": palette.background, "opacity": 0.9,
        "borderpad": 0, "font": {"size": FONT_SIZE - 3, "color": palette.text},
    }  # fmt: skip
