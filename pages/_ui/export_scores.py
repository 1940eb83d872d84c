"""Scores and advantages of completions as straight-line NumPy."""

from .export_judging import statistics
from .export_shaping import to_tokens
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


def _given_per_token(w):
    summed = "token_advantages.sum(axis=-1, dtype=np.float64)"
    return [
        "# given, not computed; mean and std are for reading",
        *statistics(w, 0),
        "token_advantages = np.where(valid, token_advantages, 0.0)",
        f"advantages = {summed} / np.maximum(valid.sum(axis=-1), 1)",
        *(["advantages = advantages.astype(np.float32)"] if w.single else []),
    ]


SCORE_SNIPPETS = {
    ("rewards", "outcome"): Snippet(_outcome),
    ("advantage", "given"): Snippet(_given),
    ("advantage", "given_per_token"): Snippet(_given_per_token),
}
