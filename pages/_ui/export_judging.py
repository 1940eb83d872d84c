"""Code that judges scores against their group: mean, standard deviation, advantages."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Judge:
    """Code of an advantage row that judges scores.

    ``lines(w)`` assign ``mean``, ``std`` and ``advantages`` from ``scores`` and ``scored``;
    ``scale(w)`` is a line that assigns what a difference of scores is multiplied by (P, 1).
    """

    lines: Callable
    scale: Callable
    alone: str = "1.0"  # what the only score of a group is multiplied by

    def scales(self, w):
        """`scale`, with that of the only score of a group."""
        over = _ALONE.get(w.options.get("alone"))
        if over is None:
            return [self.scale(w)]
        own = self.alone + (over if "eps" in w.options else "")
        return [self.scale(w), f"scale = np.where(one, {own}, scale)  # (P, G)"]

    def function(self, w):
        """The same as a function of the script, for rows that judge several things."""
        body = [*self.lines(w), *self.scales(w)]
        return [
            "def judged(scores, scored):",
            '    """Mean, std and advantages of groups, and what a difference is multiplied by."""',
            *(f"    {line}" for line in body),
            "    return mean, std, advantages, scale",
            "",
            "",
        ]


def read_from(scores, scored):
    """Lines that judge scores and read mean and std of their groups."""
    return [f"found = judged({scores}, {scored})", "mean = found[0]", "std = found[1]"]


def extreme(*arrays):
    """Whether numbers are so large or small that their squares leave double range."""
    sizes = np.concatenate([np.abs(array, dtype=np.float64).ravel() for array in arrays])
    return bool(np.any((sizes > 1e100) | ((sizes < 1e-100) & (sizes > 0))))


def statistics(w, ddof):
    scores = "scaled" if w.extreme else "scores"
    divisor = f"np.maximum(count - {ddof}, 1)" if ddof else "count"
    return [
        "count = np.maximum(scored.sum(axis=1, keepdims=True), 1)  # (P, 1)",
        *(["scores = scores.astype(np.float64)"] if w.single else []),
        *(_scaled(w) if w.extreme else []),
        "# measured from the group's first score: exactly 0 in a group of equal scores",
        f"first = np.take_along_axis({scores}, np.argmax(scored, axis=1)[:, None], axis=1)",
        f"shifted = np.where(scored, {scores} - first, 0.0)",
        "shift = shifted.sum(axis=1, keepdims=True) / count",
        "deviation = np.where(scored, shifted - shift, 0.0)  # score - mean",
        f"spread = np.sqrt((deviation**2).sum(axis=1, keepdims=True) / {divisor})",
        *(["spread = np.where(count > 1, spread, 0.0)"] if ddof else []),
        f"mean = {_unscaled(w, '(first + shift)')}[:, 0]",
        f"std = {_unscaled(w, 'spread')}[:, 0]",
    ]


def _scaled(w):
    finite = "scores / unit"
    if w.endless:
        finite = "np.where(np.isinf(scores), np.sign(scores), scores / unit)"
    return [
        "# in units of a power of two near each group's largest score: squares stay in range",
        "peak = np.max(np.abs(scores), axis=1, keepdims=True)",
        "unit = 2.0 ** np.floor(np.log2(np.where(peak > 0, peak, 1.0)))",
        f"scaled = {finite}",
    ]


def _unscaled(w, name):
    if w.extreme:
        scaled = w.spelling.times(name, "unit")
        return scaled if scaled.startswith("times(") else f"({scaled})"
    return name


def _mean_std(w):
    ddof = w.options["ddof"]
    eps, floor = ("eps / unit" if w.extreme else "eps"), w.options.get("floor")
    least = "spread"
    if floor:
        least = f"np.maximum(spread, {'floor / unit' if w.extreme else 'floor'})"
    below = "least" if floor else "spread"
    kind = {0: "population std, divided by n", 1: "sample std, divided by n - 1"}[ddof]
    return [
        f"# (score - mean) / (std + eps), with the {kind}",
        f"eps = {w.options['eps']!r}",
        *([f"floor = {floor!r}  # of the std"] if floor else []),
        *statistics(w, ddof),
        "equal = spread == 0  # nothing to tell apart: advantage 0",
        *([f"least = {least}"] if floor else []),
        f"advantages = np.where(equal, 0.0, deviation / np.where(equal, 1.0, {below} + {eps}))",
        *alone(w),
    ]


def _mean_only(w):
    return [
        "# score - mean",
        *statistics(w, 0),
        f"advantages = {_unscaled(w, 'deviation')}",
        *alone(w),
    ]


_ALONE = {"reward": "", "reward_over_1": " / (1 + eps)"}


def alone(w, score="scores"):
    """Lines for the only score of a group, where it is worth something."""
    over = _ALONE.get(w.options.get("alone"))
    if over is None:
        return []
    worth = f"{score}{over if 'eps' in w.options else ''}"
    return [
        "one = scored & (scored.sum(axis=1, keepdims=True) == 1)  # a group of one",
        f"advantages = np.where(one, {worth}, advantages)",
    ]


def _scale_of_std(w):
    least = "std[:, None]" if w.extreme else "spread"
    below = f"np.maximum({least}, floor) + eps" if w.options.get("floor") else f"{least} + eps"
    return f"scale = np.where(equal, 0.0, 1 / np.where(equal, 1.0, {below}))"


OVER_STD = Judge(_mean_std, _scale_of_std)
CENTRED = Judge(_mean_only, lambda w: "scale = np.ones((len(scores), 1))")
