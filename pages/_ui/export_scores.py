"""Scores and advantages of completions as straight-line NumPy."""

from .export_judging import CENTRED, OVER_STD, statistics
from .export_shaping import COMBINED, to_tokens
from .export_spelling import Snippet

# What a missing reward counts as: lines that say which completions are scored, and the rewards.
_MISSING = {
    "leave_out": (
        ["# a missing reward is left out of its group", "scored = present & ~np.isnan(rewards)"],
        "rewards",
    ),
    "as_zero": (
        [
            "# a missing reward counts as 0",
            "scored = present",
            "filled = np.where(np.isnan(rewards), 0.0, rewards)",
        ],
        "filled",
    ),
}


def _outcome(w):
    lines, scores = _MISSING[w.options["missing"]]
    if w.in_reward:
        scores = w.spelling.less_summed(scores, "reward_penalty", "axis=-1")
    return [*lines, f"scores = np.where(scored, {scores}, 0.0)"]


def _given(w):
    return [
        "# given, not computed; mean and std are for reading",
        *statistics(w, 0),
        "advantages = np.where(present, advantages, 0.0)",
        *to_tokens(w),
    ]


def _judged(judge):
    """Scores, or the components that they are combined from, under one judge."""

    def code(w):
        combined = COMBINED.get(w.row("rewards"))
        if combined is None:
            return [*judge.lines(w), *to_tokens(w)]
        return combined(w, judge)

    return Snippet(code)


SCORE_SNIPPETS = {
    ("rewards", "outcome"): Snippet(_outcome),
    ("advantage", "mean_std"): _judged(OVER_STD),
    ("advantage", "mean_only"): _judged(CENTRED),
    ("advantage", "given"): Snippet(_given),
}
