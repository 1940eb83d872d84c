"""Export: the page's numbers as a NumPy script, a notebook and CSV tables."""

import json
import re
import textwrap
from dataclasses import dataclass

import numpy as np

from grpo_core import STAGES, evaluate

from .computed import RESULTS, kl_in_reward
from .export_arrays import array_lines
from .export_code import SNIPPETS
from .export_recorded import recorded
from .export_spelling import CAREFUL, Careful, Plain, Writing
from .export_tables import tables_csv, tables_zip

# What a section of the script is about, before the variant's own name.
_TITLES = {
    "kl": "KL per token",
    "rewards": "Scores",
    "advantage": "Advantages",
    "ratio": "Ratio of new to old policy",
    "surrogate": "Surrogate",
    "aggregation": "Weight of each token",
}

__all__ = ["conventions_text", "notebook", "script", "tables_csv", "tables_zip"]


@dataclass(frozen=True)
class Section:
    """A part of the script: a title, its formula as LaTeX or '', and lines of code."""

    title: str
    formula: str
    lines: tuple[str, ...]


def script(scenario):
    """A Python program that computes the page's numbers with NumPy alone.

    Parameters
    ----------
    scenario : Scenario

    Returns
    -------
    str
        The arrays written out digit for digit, the chosen conventions as straight-line code,
        and at the end a dict ``results`` with every array by its name in `Evaluation`.
        A variant that has no such code is there as the arrays that it gave.
    """
    parts = [f'"""{_intro(scenario)}\n"""', "import numpy as np"]
    for section in _sections(scenario):
        parts.append("\n".join([f"# --- {section.title}", *section.lines]))
    return "\n\n".join(parts) + "\n"


def notebook(scenario, title):
    """The same program as a Jupyter notebook (nbformat 4.5), one cell for each stage.

    Parameters
    ----------
    scenario : Scenario
    title : str
        Shown as the heading.

    Returns
    -------
    str
        JSON.
    """
    intro = f"# {_plain_markdown(title)}\n\n```\n{_intro(scenario)}\n```"
    cells = [_markdown(intro), _code(["import numpy as np"])]
    for section in _sections(scenario):
        formula = f"\n\n${section.formula}$" if section.formula else ""
        cells += [_markdown(f"## {section.title}{formula}"), _code(section.lines)]
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _markdown(text):
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(lines):
    source = "\n".join(lines).splitlines(keepends=True)
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }


def _plain_markdown(text):
    """A title on one line, its markup characters escaped."""
    line = " ".join(text.split())
    return "".join("\\" + char if char in r"\`*_{}[]<>#|$!~" else char for char in line)


def conventions_text(conventions):
    """The chosen conventions in plain words, each with its name in TRL and verl.

    Returns
    -------
    str
        A line for each stage and an indented one for each option.
    """
    lines = []
    for stage in STAGES.values():
        row = conventions.variant(stage.key)
        lines.append(_line("", stage.label, row.label, row))
        for key, value in conventions[stage.key].options.items():
            option = row.option(key)
            words = getattr(option.domain, "words", {}).get(value, value)
            lines.append(_line("    ", option.label, words, option))
    return "\n".join(lines)


def _line(indent, label, words, row):
    return f"{indent}{label}: {words}. TRL: {row.trl}. verl: {row.verl}."


def _intro(scenario):
    return "\n".join(
        [
            "One GRPO update, computed with NumPy alone.",
            "",
            "Shapes: P prompts, G completions per prompt, L token positions, all counted from 0.",
            "Conventions (behind each, its name and default in TRL and verl):",
            "",
            *(
                folded
                for line in conventions_text(scenario.conventions).splitlines()
                for folded in _folded(line)
            ),
        ]
    )


def _folded(line):
    indent = line[: len(line) - len(line.lstrip())] + "    "
    return textwrap.wrap(line, 96, subsequent_indent=indent, break_on_hyphens=False)


def _sections(scenario):
    evaluation = evaluate(scenario)
    writings = _writings(scenario, evaluation)
    snippets = {
        stage: SNIPPETS.get((stage, choice.variant)) or recorded(evaluation, stage)
        for stage, choice in scenario.conventions.choices.items()
    }
    combined = ("rewards", scenario.conventions["rewards"].variant)
    if evaluation.attribution is not None and combined not in SNIPPETS:
        # The advantage row judged components then, which its code cannot see in the scores.
        snippets["advantage"] = recorded(evaluation, "advantage")

    def section(stage):
        row = scenario.conventions.variant(stage)
        title = f"{_TITLES.get(stage, STAGES[stage].label)}: {row.label}"
        return Section(title, row.formula, tuple(snippets[stage].code(writings[stage])))

    careful = isinstance(writings["kl"].spelling, Careful)
    helpers = [Section("Arithmetic with infinities", "", tuple(CAREFUL.splitlines()))]
    sections = [
        *(helpers if careful else []),
        Section("Arrays", "", tuple(array_lines(scenario))),
        *(section(stage) for stage in STAGES),
        _objective(snippets, writings),
    ]
    return [*sections, _results(scenario, sections)]


def _writings(scenario, evaluation):
    """What each stage's snippet needs to know."""
    scores = evaluation.scores[evaluation.scored]
    extreme = _extreme(scores)
    careful = extreme or _vast(scenario, evaluation)
    return {
        stage: Writing(
            options=dict(choice.options),
            spelling=Careful() if careful else Plain(),
            in_reward=kl_in_reward(evaluation),
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


def _objective(snippets, writings):
    w = writings["kl"]
    s = w.spelling
    double = "dtype=np.float64" if w.single else ""
    penalised = "surrogate" if w.in_reward else s.less("surrogate", "kl_penalty")
    weighted_kl = s.times("weight", "kl")
    no_kl = ["kl_gradient = np.zeros_like(policy_gradient)  # the KL is inside the reward"]
    lines = [
        f"per_token = {penalised}",
        f"contribution = {s.times('weight', 'per_token')}",
        f"objective = {s.summed('contribution', double)}",
        "loss = 0.0 - objective  # what a trainer minimises",
        f"mean_kl = {s.summed_of(weighted_kl, double)}",
        "",
        "# Gradient of the objective by logp_new, by way of the ratio.",
        f"pull = {s.times('weight', 'd_ratio')}",
        *snippets["ratio"].back(writings["ratio"]),
        *(no_kl if w.in_reward else snippets["kl"].back(w)),
        f"gradient = {s.plus('policy_gradient', 'kl_gradient')}",
    ]
    formula = r"J = \sum w\,(s - \beta\,\mathrm{KL}),\quad \partial J / \partial \log\pi_{new}"
    return Section("Objective, loss and gradient", formula, tuple(lines))


def _results(scenario, sections):
    """Everything that the lines before assign under a name of `Evaluation`."""
    code = [line for section in sections for line in section.lines]
    assigned = {found[1] for found in map(re.compile(r"(\w+) = ").match, code) if found}
    lines = [
        "results = {",
        *(f'    "{name}": {name},' for name in RESULTS if name in assigned),
        "}",
        'for name in ("objective", "loss", "mean_kl"):',
        '    print(f"{name:<10} {results[name]:.10g}")',
        'print("advantages", advantages, sep="\\n")',
    ]
    if "logged_loss" in scenario:
        lines.append('print(f"logged loss {logged_loss:.10g}, here {loss - logged_loss:+.3g}")')
    return Section("Results", "", tuple(lines))
