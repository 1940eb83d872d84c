"""Code of advantages from step rewards."""

from dataclasses import replace

from grpo_core.scenario import as_batch

from .export_judging import OVER_STD, extreme, read_from
from .export_shaping import COMBINED, to_tokens, wide
from .export_spelling import Snippet

# How step rewards are pooled: a comment, and the shape in which a row is a pool.
_POOLS = {
    "group": ("all steps of a group", "(len(step_rewards), -1)"),
    "completion": ("each completion's own steps", "(-1, step_rewards.shape[-1])"),
}

# What an outcome without a part in it is read from: scores, and who has one.
_READ = {"add_after": ("np.where(known[0], weighted[0], 0.0)", "known[0]")}


def _process(w):
    batch, _ = as_batch(w.scenario)
    w = wide(w)
    w = replace(w, extreme=w.extreme or extreme(batch.step_rewards))
    return [*OVER_STD.function(w), *_outcome(w), *_steps(w), *_together(w)]


def _outcome(w):
    """Mean and std of the outcome; its advantage where it has a part."""
    row = w.row("rewards")
    if not w.options["outcome_weight"]:
        scores, scored = _READ.get(row, ("scores", "scored"))
        return ["# mean and std of the outcome, to read", *read_from(scores, scored)]
    lines = [*read_from("scores", "scored"), "advantages = found[2]", *to_tokens(w)]
    if row in COMBINED:
        lines = COMBINED[row](w, OVER_STD, defined=True)
    return [*lines, "outcome, outcome_at_token = advantages, token_advantages"]


def _steps(w):
    comment, pools = _POOLS[w.options["over"]]
    single = ".astype(np.float32)" if w.single else ""
    return [
        "",
        f"# step rewards by the mean and std of {comment}",
        "there = ~np.isnan(step_ends)  # (P, G, S)",
        f"pools = {pools}",
        f"known_steps = np.where(there, step_rewards, 0.0).reshape(pools){single}",
        "_, _, judged_steps, _ = judged(known_steps, there.reshape(pools))",
        "step_advantages = judged_steps.reshape(there.shape)",
        "# a token receives the sum over the steps that end at or after it",
        "ending = np.zeros(valid.shape)",
        "p, g, s = np.nonzero(there)",
        "at = step_ends[p, g, s].astype(int)",
        "np.add.at(ending, (p, g, at), step_advantages[p, g, s])",
        "to_go = np.flip(np.cumsum(np.flip(ending, axis=-1), axis=-1), axis=-1)",
        "advantages = step_advantages.sum(axis=-1)",
        "token_advantages = np.where(valid, to_go, 0.0)",
    ]


def _together(w):
    s, weight = w.spelling, w.options["outcome_weight"]
    lines = []
    if weight:
        whole, at_token = (s.times("outcome_weight", name) for name in _OUTCOME)
        lines = [
            f"outcome_weight = {weight!r}",
            f"advantages = {s.plus('advantages', whole)}",
            f"token_advantages = {s.plus('token_advantages', at_token)}",
        ]
    names = ("advantages", "token_advantages") if w.single else ()
    return [*lines, *(f"{name} = {name}.astype(np.float32)" for name in names)]


_OUTCOME = ("outcome", "outcome_at_token")
PROCESS_SNIPPETS = {("advantage", "process"): Snippet(_process)}
