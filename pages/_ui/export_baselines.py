"""Code of advantages by other baselines and scales than the group's own."""

from .export_judging import CENTRED, OVER_STD, Judge, alone, statistics
from .export_shaping import COMBINED, to_tokens
from .export_spelling import Snippet


def _eps(w):
    return f"eps = {w.options['eps']!r}"


def _safe(above, below, zero):
    return f"np.where({zero}, 0.0, {above} / np.where({zero}, 1.0, {below}))"


def _batch_std(w):
    ddof = w.options["ddof"]
    divisor = f"max(every.size - {ddof}, 1)" if ddof else "max(every.size, 1)"
    return [
        "# (score - group mean) / (std of the whole batch + eps)",
        _eps(w),
        *statistics(w, 0),
        "every = scores[scored] - (scores[scored][0] if scored.any() else 0.0)",
        "every = every - every.sum() / max(every.size, 1)",
        f"batch_std = np.sqrt((every**2).sum() / {divisor})",
        "std = np.full(len(scores), batch_std)",
        "equal = batch_std == 0",
        f"advantages = {_safe('deviation', 'batch_std + eps', 'equal')}",
    ]


def _batch_scale(_w):
    return "scale = np.full((len(scores), 1), 0.0 if equal else 1 / (batch_std + eps))"


def _leave_one_out(w):
    return [
        "# score - mean of the others = n / (n - 1) (score - mean)",
        *statistics(w, 0),
        "others = np.where(count > 1, count / np.maximum(count - 1, 1), 0.0)",
        "advantages = deviation * others",
        *alone(w),
    ]


def _leave_one_out_std(w):
    return [
        "# (score - mean of the others) / (their sample std + eps)",
        _eps(w),
        *statistics(w, 0),
        "others = np.maximum(count - 1, 1).astype(np.float64)",
        "middle = -deviation / others  # mean of the others, from the group's mean",
        "squares = (deviation**2).sum(axis=1, keepdims=True) - deviation**2",
        "spread_others = squares / others - middle**2",
        "peak = np.abs(deviation).max(axis=1, keepdims=True)",
        "rounding = spread_others <= 1e-15 * peak**2  # the others are equal",
        "spread_others = np.where(rounding, 0.0, spread_others)",
        "spread_others = np.sqrt(spread_others * others / np.maximum(others - 1, 1))",
        "divisor = np.where(spread_others > 0, spread_others + eps, 1.0)",
        "advantages = np.where(scored & (count > 1), (deviation - middle) / divisor, 0.0)",
    ]


def _leave_one_out_std_scale(_w):
    return "scale = np.where(scored, 1 / divisor * count / others, 0.0)"


def _uncompared(w):
    return ["# no baseline", *statistics(w, 0), "advantages = np.where(scored, scores, 0.0)"]


def _length_weighted(w):
    return [
        "# score - mean of the scores weighted by length",
        *statistics(w, 0),
        "length_weights = np.where(scored, valid.sum(axis=-1), 0.0)",
        "size = length_weights.sum(axis=1, keepdims=True)",
        "shift = (length_weights * deviation).sum(axis=1, keepdims=True)",
        "shift = shift / np.where(size > 0, size, 1.0)",
        "mean = mean + shift[:, 0]",
        "advantages = np.where(scored, deviation - shift, 0.0)",
        *alone(w),
    ]


def _over_mean(w):
    return [
        "# (score - mean) / (mean + eps), 0 where the mean is not above 0",
        _eps(w),
        *statistics(w, 0),
        "none = ~(mean[:, None] > 0)",
        f"advantages = {_safe('deviation', 'mean[:, None] + eps', 'none')}",
    ]


def _nonzero_scaled(w):
    return [
        "# alpha (score - mean), alpha: all scores over those that are not 0",
        f"f_norm = {w.options['f_norm']!r}",
        *statistics(w, 0),
        "nonzero = (scored & (scores != 0)).sum()",
        "alpha = (scored.sum() / nonzero if nonzero else 1.0) / f_norm",
        "advantages = deviation * alpha",
        *alone(w, "scores * alpha"),
    ]


def _best_over_second(w):
    second = "ordered[:, 1:2]" if w.scenario.sizes["G"] > 1 else "ordered"
    by_std = w.options["divide"] == "std"
    divisor = "spread + eps" if by_std else "np.ones_like(lead)"
    return [
        "# only the best gets an advantage: its lead over the second best",
        *([_eps(w)] if by_std else []),
        *statistics(w, w.options["ddof"]),
        "ordered = -np.sort(np.where(scored, -scores, np.inf), axis=1)",
        "enough = scored.sum(axis=1, keepdims=True) > 1",
        "best = np.argmax(np.where(scored, scores, -np.inf), axis=1)[:, None]",
        "first = np.take_along_axis(scores, best, axis=1)",
        f"lead = np.where(enough, first - np.where(enough, {second}, 0.0), 0.0)",
        f"divisor = {divisor}",
        "equal = divisor == 0",
        "winner = np.arange(scores.shape[1]) == best",
        f"share = {_safe('lead', 'divisor', 'equal')}",
        "advantages = np.where(winner & enough, share, 0.0)",
    ]


def _pass_at_k(w):
    return [
        "# analytic advantages of pass@k: the chance that k of n are all wrong",
        f"k, right_above = {int(w.options['k'])!r}, {w.options['right_above']!r}",
        _eps(w),
        *statistics(w, 0),
        "right = scored & (scores > right_above)",
        "n = scored.sum(axis=1, keepdims=True).astype(np.float64)",
        "wrong = n - right.sum(axis=1, keepdims=True)",
        "none, rest = np.ones_like(n), np.ones_like(n)",
        "for i in range(k):",
        "    none = none * np.clip((wrong - i) / np.maximum(n - i, 1), 0.0, 1.0)",
        "for i in range(k - 1):",
        "    rest = rest * np.clip((wrong - 1 - i) / np.maximum(n - 1 - i, 1), 0.0, 1.0)",
        "divisor = np.sqrt(none * (1 - none)) + eps",
        "equal = none * (1 - none) == 0",
        "value = np.where(right, none, none - rest)",
        f"advantages = np.where(scored, {_safe('value', 'divisor', 'equal')}, 0.0)",
    ]


def _one_over(below, zero):
    return lambda _w: f"scale = {_safe('1', below, zero)}"


def _ones(_w):
    return "scale = np.ones((len(scores), 1))"


def _returns(w):
    given = "token_rewards" in w.scenario and w.row("rewards") == "outcome"
    more = " + np.where(valid, token_rewards, 0.0)" if given else ""
    single = [f"{n} = {n}.astype(np.float32)" for n in ("token_advantages", "advantages")]
    return [
        "# rewards summed from each token on: the score at the last one, and rewards per token",
        f"gamma = {w.options['gamma']!r}",
        *statistics(w, 0),
        "last = valid & (np.cumsum(valid, axis=-1) == valid.sum(axis=-1, keepdims=True))",
        f"earned = np.where(last, scores[..., None], 0.0){more}",
        "token_advantages = np.zeros(valid.shape)",
        "ahead = np.zeros(rewards.shape)",
        "for t in reversed(range(valid.shape[-1])):",
        "    ahead = np.where(valid[..., t], earned[..., t] + gamma * ahead, ahead)",
        "    token_advantages[..., t] = np.where(valid[..., t], ahead, 0.0)",
        "advantages = ahead  # that of a completion's first token",
        *(single if w.single else []),
    ]


# Where scores reach beyond the range of squares, these alone are written in units that fit.
WIDE = ("mean_std", "mean_only")

JUDGES = {
    "mean_std": OVER_STD,
    "mean_only": CENTRED,
    "batch_std": Judge(_batch_std, _batch_scale),
    "leave_one_out": Judge(_leave_one_out, lambda _w: "scale = others"),
    "leave_one_out_std": Judge(_leave_one_out_std, _leave_one_out_std_scale),
    "uncompared": Judge(_uncompared, _ones),
    "length_weighted": Judge(_length_weighted, _ones),
    "over_mean": Judge(_over_mean, _one_over("mean[:, None] + eps", "none")),
    "nonzero_scaled": Judge(
        _nonzero_scaled, lambda _w: "scale = np.full((len(scores), 1), alpha)", "alpha"
    ),
    "best_over_second": Judge(_best_over_second, _one_over("divisor", "equal")),
    "pass_at_k": Judge(_pass_at_k, _one_over("divisor", "equal")),
}


def _judged(judge):
    """Scores, or the components that they are combined from, under one judge."""

    def code(w):
        combined = COMBINED.get(w.row("rewards"))
        if combined is None:
            return [*judge.lines(w), *to_tokens(w)]
        return combined(w, judge)

    return Snippet(code)


ADVANTAGE_SNIPPETS = {
    **{("advantage", key): _judged(judge) for key, judge in JUDGES.items()},
    ("advantage", "returns"): Snippet(_returns),
}
