"""Rewards of one group on a line, and how the line becomes advantages."""

import numpy as np

from .figure import FAR, FONT_SIZE, axis, figure, largest, tick_step, unselected
from .numbers import count, exact, number
from .quantities import advantage_title, present

_DOTS = 40  # dots that fit side by side


def group_strip(evaluation, prompt, *, palette, former=None, pinned=None, selected=None):
    """Rewards of one group on a line: mean, one standard deviation, and the advantage as a ruler.

    The lower ruler reads rewards, the upper one advantages: subtracting the mean moves the
    zero, dividing by the std changes the unit. The upper ruler is left out where no such
    ruler exists, because advantages are tied or given. An infinite score is not drawn. Below
    the dots stand those of the pinned state, and of the former one where it differs.
    """
    advantages, scores = evaluation.advantages[prompt], evaluation.scores[prompt]
    drawn = present(evaluation)[prompt] & evaluation.scored[prompt] & np.isfinite(scores)
    (g,) = np.nonzero(drawn)
    scores = np.clip(scores[g].astype(np.float64), -FAR, FAR)
    mean, std = float(evaluation.mean[prompt]), float(evaluation.std[prompt])
    rows = _other_states(evaluation, former, pinned, prompt)
    low, high = _strip_range(np.concatenate([scores, *rows.values()]), mean, std)
    level = _stack(scores, low, high)
    height = 150 + 16 * int(level.max(initial=0)) + 22 * len(rows)
    title = "score (reward less KL penalty)" if np.any(evaluation.reward_penalty) else "reward"
    traces = [_dots(g, scores, level, advantages, palette, selected, prompt)]
    traces += [_rings(x, -1.0 - at, name, palette) for at, (name, x) in enumerate(rows.items())]
    layout = {
        "xaxis": axis(title, palette=palette, range=[low, high], showline=True, nticks=9,
                      linecolor=palette.neutral, ticks="outside", tickcolor=palette.neutral),
        "yaxis": axis("", palette=palette, range=[-0.9 - len(rows), level.max(initial=0) + 1.5],
                      showticklabels=False),
        "shapes": _mean_and_band(mean, std, palette),
        "annotations": [
            *_mean_and_band_names(mean, std, palette),
            *_row_names(rows, palette),
        ],
    }  # fmt: skip
    ruler = _ruler(scores, advantages[g], low, high)
    if ruler is not None:
        ticks, at = ruler
        layout["xaxis2"] = axis(
            advantage_title(evaluation), palette=palette, overlaying="x", side="top",
            range=[low, high], showline=True, linecolor=palette.neutral,
            ticks="outside", tickcolor=palette.neutral,
            tickvals=at, ticktext=[number(tick, 3, signed=True) for tick in ticks],
        )  # fmt: skip
        traces.append({"type": "scatter", "x": [None], "y": [None], "xaxis": "x2",
                       "hoverinfo": "skip"})  # fmt: skip
    return figure(
        traces, palette=palette, height=height, margin=(12, 12, 50, 46),
        alt=f"Rewards of prompt {prompt} on a line: mean {number(mean)}, std {number(std)}, "
        f"{count(len(g), 'scored completion')}.",
        **layout,
    )  # fmt: skip


def _strip_range(scores, mean, std):
    if not scores.size:
        return -1.0, 1.0
    ends = np.array([scores.min(), scores.max(), mean - std, mean + std])
    ends = np.clip(ends[np.isfinite(ends)], -FAR, FAR)
    low, high = float(ends.min()), float(ends.max())
    room = 0.12 * (high - low) or max(abs(low), 1.0) / 2
    return low - room, high + room


def _stack(scores, low, high):
    """Height of each dot, so that dots closer than their width stand on each other."""
    column = np.round((scores - low) / (high - low) * _DOTS)
    order = np.argsort(column, kind="stable")
    first = np.searchsorted(column[order], column[order], side="left")
    level = np.empty(len(scores), dtype=int)
    level[order] = np.arange(len(scores)) - first
    return level


def _dots(g, scores, level, advantages, palette, selected, prompt):
    chosen = [selected is not None and selected[:2] == (prompt, index) for index in g.tolist()]
    return {
        "type": "scatter", "mode": "markers+text", "x": scores, "y": level,
        "text": [str(index) for index in g.tolist()],
        "textfont": {"size": FONT_SIZE - 2, "color": palette.background},
        "marker": {"size": 17, "color": [palette.of_sign(a) for a in advantages[g].tolist()],
                   "line": {"color": palette.text, "width": [2 if c else 0 for c in chosen]}},
        "customdata": [[prompt, index, selected[2] if selected else 0] for index in g.tolist()],
        "hovertext": [f"reward {exact(r)}<br>advantage {exact(a)}" for r, a in
                      zip(scores.tolist(), advantages[g].tolist(), strict=True)],
        "hovertemplate": "completion %{text}<br>%{hovertext}<extra></extra>",
        "cliponaxis": False, **unselected(opacity=1),
    }  # fmt: skip


def _scores_of(evaluation, prompt):
    scores = evaluation.scores[prompt].astype(np.float64)
    drawn = present(evaluation)[prompt] & evaluation.scored[prompt] & np.isfinite(scores)
    return np.clip(scores[drawn], -FAR, FAR)


def _other_states(evaluation, former, pinned, prompt):
    """Scores of the pinned state and of the former one, by their name in the picture."""
    rows = {} if pinned is None else {"A": _scores_of(pinned, prompt)}
    if former is not None:
        before = _scores_of(former, prompt)
        if not np.array_equal(before, _scores_of(evaluation, prompt)):
            rows["before"] = before
    return rows


def _rings(scores, y, name, palette):
    return {
        "type": "scatter", "mode": "markers", "x": scores, "y": np.full(len(scores), y),
        "marker": {"size": 11, "symbol": "circle-open", "color": palette.faint,
                   "line": {"width": 1.5}},
        "hovertemplate": f"{name}: reward %{{x}}<extra></extra>", "cliponaxis": False,
        **unselected(opacity=1),
    }  # fmt: skip


def _row_names(rows, palette):
    return [
        {"xref": "paper", "x": 0, "xanchor": "left", "y": -1.0 - at, "yref": "y", "text": name,
         "showarrow": False, "font": {"size": FONT_SIZE - 1, "color": palette.faint}}
        for at, name in enumerate(rows)
    ]  # fmt: skip


def _mean_and_band(mean, std, palette):
    tall = {"yref": "paper", "y0": 0, "y1": 1}
    if not np.isfinite(mean + std):
        return []
    return [
        {"type": "rect", "x0": mean - std, "x1": mean + std, **tall, "line": {"width": 0},
         "fillcolor": palette.line, "opacity": 0.5, "layer": "below"},
        {"type": "line", "x0": mean, "x1": mean, **tall, "layer": "below",
         "line": {"color": palette.faint, "width": 1.5}},
    ]  # fmt: skip


def _mean_and_band_names(mean, std, palette):
    if not np.isfinite(mean + std):
        return []
    base = {"yref": "paper", "y": 1, "yanchor": "top", "showarrow": False,
            "font": {"size": FONT_SIZE - 1, "color": palette.faint}}  # fmt: skip
    names = [{**base, "x": mean, "xanchor": "left", "text": f" mean {number(mean)}"}]
    if std > 0:
        names.append({**base, "x": mean - std, "xanchor": "left", "text": f" ± std {number(std)}"})
    return names


def _ruler(scores, advantages, low, high):
    """Ticks of the advantage and the scores they stand at, if one is a line of the other."""
    advantages = advantages.astype(np.float64)
    if len(scores) < 2 or not np.all(np.abs([scores, advantages]) < FAR):
        return None
    a, b = int(np.argmin(scores)), int(np.argmax(scores))
    rise = scores[b] - scores[a]
    if rise == 0 or advantages[b] <= advantages[a]:
        return None
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        slope = (advantages[b] - advantages[a]) / rise
        fitted = advantages[a] + slope * (scores - scores[a])
        ends = advantages[a] + slope * (np.array([low, high]) - scores[a])
        steep = not (0 < slope < FAR and np.all(np.abs(ends) < FAR))
        if steep or np.max(np.abs(fitted - advantages)) > 1e-6 * largest(advantages):
            return None
    unit = tick_step(ends[1] - ends[0])
    ticks = unit * np.arange(np.ceil(ends[0] / unit), np.floor(ends[1] / unit) + 1)
    return ticks.tolist(), (scores[a] + (ticks - advantages[a]) / slope).tolist()
