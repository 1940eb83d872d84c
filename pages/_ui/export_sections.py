"""The sections of a script: arrays, the stages that act, and the objective with its gradient."""

from dataclasses import dataclass

import numpy as np

from grpo_core import STAGES, evaluate

from .computed import Between
from .export_arrays import array_lines
from .export_baselines import JUDGES, WIDE
from .export_code import SNIPPETS
from .export_judging import extreme
from .export_recorded import recorded
from .export_shaping import wide
from .export_spelling import CAREFUL, Careful, Plain, Writing
from .export_tokens import hold_lines, returns_lines

# What a section is about, before the variant's own name.
_TITLES = {
    "kl": "KL per token",
    "rewards": "Scores",
    "advantage": "Advantages",
    "ratio": "Ratio of new to old policy",
    "surrogate": "Surrogate",
    "aggregation": "Weight of each token",
}


@dataclass(frozen=True)
class Section:
    """A part of the script: a title, its formula as LaTeX or '', and lines of code."""

    title: str
    formula: str
    lines: tuple[str, ...]


def sections_of(scenario):
    """Sections of a script that computes a scenario, in order; a stage at rest has none."""
    evaluation = evaluate(scenario)
    writings = _writings(scenario, evaluation)
    snippets = _snippets(evaluation, writings)
    careful = isinstance(writings["kl"].spelling, Careful)
    return [
        *(
            [Section("Arithmetic with infinities", "", tuple(CAREFUL.splitlines()))]
            if careful
            else []
        ),
        Section("Arrays", "", tuple(array_lines(scenario))),
        *(
            section
            for stage in STAGES
            for section in _stage(stage, snippets[stage], writings[stage])
            if section.lines
        ),
        _objective(snippets, writings),
    ]


def _snippets(evaluation, writings):
    """The code of each stage; its recorded numbers where there is none that fits the batch."""
    conventions = evaluation.scenario.conventions
    snippets = {
        stage: SNIPPETS.get((stage, choice.variant)) or recorded(evaluation, stage)
        for stage, choice in conventions.choices.items()
    }
    combined = ("rewards", conventions["rewards"].variant)
    judge, w = conventions["advantage"].variant, writings["advantage"]
    # The advantage row judged components then, which its code cannot see in the scores.
    blind = evaluation.attribution is not None and combined not in SNIPPETS
    if blind or (judge in JUDGES and judge not in WIDE and wide(w).extreme):
        snippets["advantage"] = recorded(evaluation, "advantage")
    if writings["whitening"].row("whitening") == "tokens" and _far_tokens(evaluation):
        snippets["whitening"] = recorded(evaluation, "whitening")
    return snippets


def _far_tokens(evaluation):
    """Whether what is whitened has squares beyond double range."""
    return extreme(Between(evaluation).unwhitened[evaluation.valid])


def _stage(stage, snippet, w):
    row = w.scenario.conventions.variant(stage)
    title = f"{_TITLES.get(stage, STAGES[stage].label)}: {row.label}"
    lines = [*_before(stage, w), *snippet.code(w), *_after(stage, w)] if w.acts(stage) else []
    yield Section(title, row.formula, tuple(lines))
    if stage != "advantage":
        return
    yield Section("Advantages within their limit", "", tuple(hold_lines(w)))
    if w.place == "returns":
        formula = r"A_{i,t} - \sum_{u\ge t} \beta\,\mathrm{KL}_u"
        yield Section("KL in the returns", formula, tuple(returns_lines(w)))


def _before(stage, w):
    """``kept`` and ``counted`` begin as all tokens; each filter narrows them."""
    first = "truncated" if w.acts("truncated") else "tied"
    return ["kept = counted = valid"] if stage == first else []


def _after(stage, w):
    by_advantage = {"zero": True, "drop": w.evaluation.step_advantages is not None}
    if stage == "advantage" and by_advantage.get(w.row("tied")):
        return ["own_advantages = token_advantages"]
    if stage != "surrogate" or not _factors(w):
        return []
    factor, *others = _factors(w)
    for other in others:
        factor = w.spelling.times(factor, other)
    surrogate = w.spelling.times("factor", "surrogate")
    return [f"factor = {factor}", f"surrogate = {surrogate}  # with its factor"]


def _factors(w):
    """Names of what multiplies the surrogate."""
    names = {"selection": "selected", "correction": "correction"}
    return [name for stage, name in names.items() if w.acts(stage)]


def _writings(scenario, evaluation):
    """What each stage's snippet needs to know."""
    scores = evaluation.scores[evaluation.scored]
    extreme = _extreme(scores)
    careful = extreme or _vast(scenario, evaluation)
    return {
        stage: Writing(
            options=dict(choice.options),
            spelling=Careful() if careful else Plain(),
            single=evaluation.ratio.dtype == np.float32,
            extreme=extreme,
            endless=bool(np.any(np.isinf(scores))),
            evaluation=evaluation,
        )
        for stage, choice in scenario.conventions.choices.items()
    }


def _extreme(scores):
    sizes = np.abs(scores[scores != 0].astype(np.float64))
    return bool(np.any((sizes > 1e100) | (sizes < 1e-100)))


# Large if anything is: everything else is a product of these, or a sum.
_SIZES = ("scores", "token_advantages", "ratio", "surrogate", "kl", "kl_penalty", "kl_gradient")


def _vast(scenario, evaluation):
    """True if something is infinite, or so large that a product of two could be."""
    limit = np.finfo(evaluation.ratio.dtype).max ** 0.25
    inputs = [scenario[key][scenario.valid] for key in ("logp_new", "logp_old", "logp_ref")]
    computed = [getattr(evaluation, name) for name in _SIZES]
    return any(np.any(~(np.abs(array) < limit)) for array in (*inputs, *computed))


_NO_GRADIENT = {
    "reward": "the KL is inside the reward",
    "returns": "the KL is inside the returns",
}


def _objective(snippets, writings):
    w = writings["kl"]
    s = w.spelling
    double = "dtype=np.float64" if w.single else ""
    per_token = "surrogate"
    if w.place == "objective":
        per_token = s.less(per_token, "kl_penalty")
    if w.acts("entropy"):
        per_token = s.plus(per_token, "entropy_bonus")
    weighted_kl = s.times("weight", "kl")
    lines = [
        f"per_token = {per_token}",
        f"contribution = {s.times('weight', 'per_token')}",
        f"objective = {s.summed('contribution', double)}",
        "loss = 0.0 - objective  # what a trainer minimises",
        f"mean_kl = {s.summed_of(weighted_kl, double)}",
        "",
        *_policy_gradient(snippets, writings),
        *_kl_gradient(snippets, w),
        f"gradient = {s.plus('policy_gradient', 'kl_gradient')}",
    ]
    formula = r"J = \sum w\,(s - \beta\,\mathrm{KL}),\quad \partial J / \partial \log\pi_{new}"
    return Section("Objective, loss and gradient", formula, tuple(lines))


def _policy_gradient(snippets, writings):
    w = writings["surrogate"]
    s, back = w.spelling, snippets["surrogate"].back
    pull = s.times("weight", "factor") if _factors(w) else "weight"
    if back is not None:
        named = "pull" if _factors(w) else "weight"
        direct = back(w, named)
        if direct is not None:
            lines = ["# Gradient of the objective by logp_new."]
            return [*lines, *([f"pull = {pull}"] if _factors(w) else []), *direct]
    return [
        "# Gradient of the objective by logp_new, by way of the ratio.",
        f"pull = {s.times(pull, 'd_ratio')}",
        *snippets["ratio"].back(writings["ratio"], "pull", "policy_gradient"),
    ]


def _kl_gradient(snippets, w):
    if w.place == "objective":
        return snippets["kl"].back(w, snippets["ratio"])
    reason = _NO_GRADIENT[w.place]
    return [f"kl_gradient = np.zeros_like(policy_gradient)  # {reason}"]
